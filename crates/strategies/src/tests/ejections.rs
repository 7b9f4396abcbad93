//! The rules of ejection against a slow model that keeps every result and counts anew each time.

mod model;
mod stories;

use self::model::Model;
use super::models::options;
use super::pools::{dispatcher, members, spec};
use super::world::{pick_event, response_event};
use crate::ejection::{Note, Phase, Tally};
use crate::registry::ENTRIES;
use crate::{Answer, BackendId, Dispatcher, Mark, Options, Request, Rules, Spec, Status, Time};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use schema::event::{Event, PoolChange, SCHEMA};
use schema::protection::{Ejection, Mode};
use schema::rng::{Purpose, below, stream};

const METHODS: [&str; 4] = ["GET", "POST", "", "DELETE"];

/// A dispatcher and its model, driven by the same random events.
struct Pair {
    dispatcher: Dispatcher,
    model: Model,
    rng: ChaCha8Rng,
    now: Time,
    open: Vec<u64>,
    /// By id: how often it fails, percent.
    failing: Vec<u64>,
    panics: u64,
    holds: u64,
    log: Vec<Event>,
}

fn random_rules(rng: &mut ChaCha8Rng) -> Rules {
    Rules {
        ejection: Ejection {
            mode: [Mode::On, Mode::On, Mode::On, Mode::Observe, Mode::Off][below(rng, 5) as usize],
            after: [0, 0, 1, 3, 9][below(rng, 5) as usize],
            compare: below(rng, 2) == 0,
            base_ns: 100_000_000 << below(rng, 4),
            cap_ns: 200_000_000 << below(rng, 6),
            jitter_percent: 0,
            trial: 1 + below(rng, 3) as u32,
            max_percent: below(rng, 101) as u32,
            at_least_one: below(rng, 2) == 0,
        },
        panic_percent: (below(rng, 3) > 0).then(|| below(rng, 101) as u32),
        fail_hold: (below(rng, 2) == 0).then_some(5.0),
    }
}

impl Pair {
    fn new(spec: &Spec, n: usize, seed: u64) -> Self {
        let mut rng = stream(seed, Purpose::Faults, 2, 0);
        let rules = random_rules(&mut rng);
        let options = Options {
            seed,
            rules,
            ..options()
        };
        let members = members(&vec![2; n]);
        let dispatcher = Dispatcher::new(spec, &members, options).expect("a pool");
        let start = Event::Start {
            schema: SCHEMA.into(),
            strategy: spec.to_string(),
            seed,
            started_unix_ns: 0,
            poll_interval_ns: 100_000_000,
            mi_per_ms: None,
            protection: "guarded".into(),
            slow_start_ns: None,
            rules,
            members: dispatcher.members(),
        };
        Self {
            dispatcher,
            model: Model::new(rules, n),
            rng,
            now: Time::ZERO,
            open: Vec::new(),
            failing: vec![0; n],
            panics: 0,
            holds: 0,
            log: vec![start],
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        below(&mut self.rng, n)
    }

    fn step(&mut self) {
        // Long gaps are few: the comparison needs two times twenty results within ten seconds.
        let gap_ns = match self.below(200) {
            0..3 => self.below(4_000_000_000),
            3 => self.below(90_000_000_000),
            _ => self.below(20_000_000),
        };
        self.now = self.now.plus_ns(gap_ns);
        match self.below(100) {
            0..48 => self.pick(),
            48..94 => self.respond(),
            94..96 => self.turn_a_backend(),
            _ => self.change_pool(),
        }
        self.log_notes();
        self.check();
    }

    fn pick(&mut self) {
        let tried = match self.below(6) {
            0 => vec![self.any()],
            _ => Vec::new(),
        };
        let method = METHODS[self.below(METHODS.len() as u64) as usize];
        let url = format!("/{}", self.below(100));
        let request = Request {
            method,
            url: &url,
            attempt: tried.len() as u32,
            tried: &tried,
            ..Request::default()
        };
        let expected = self.model.trial_for(self.now, &request);
        let made = self.dispatcher.pick(self.now, &request);
        self.log_notes();
        self.log.push(pick_event(self.now, &request, made));
        let Some(made) = made else {
            assert_eq!(expected, None, "a trial is due");
            assert!(self.model.eligible(&tried).is_empty());
            return;
        };
        match expected {
            Some(id) => assert_eq!((made.backend, made.mark), (id, Some(Mark::Trial))),
            None => {
                let panic = self.model.in_panic().then_some(Mark::Panic);
                assert_eq!(made.mark, panic);
                assert!(self.model.eligible(&tried).contains(&made.backend));
            }
        }
        self.model.dispatched(made.backend, made.id, made.mark);
        self.open.push(made.id);
    }

    fn respond(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.below(self.open.len() as u64) as usize;
        let dispatch = self.open.swap_remove(at);
        let backend = self.model.backend_of(dispatch);
        let status = if self.below(12) == 0 {
            Status::Cancelled
        } else if self.below(100) < self.failing[backend.index()] {
            [Status::Error, Status::Timeout, Status::Refused][self.below(3) as usize]
        } else {
            Status::Ok
        };
        let answer = Answer {
            latency_ns: Some(self.below(200_000_000)),
            ..Answer::new(status)
        };
        self.dispatcher
            .respond(self.now, dispatch, &answer)
            .expect("open");
        self.model.answered(self.now, dispatch, status);
        self.log
            .push(response_event(self.now, dispatch, backend, &answer));
    }

    fn any(&mut self) -> BackendId {
        BackendId(self.below(self.failing.len() as u64) as u32)
    }

    fn turn_a_backend(&mut self) {
        let id = self.any();
        self.failing[id.index()] = [0, 0, 0, 10, 60, 100][self.below(6) as usize];
    }

    fn change_pool(&mut self) {
        let id = self.any();
        if !self.model.is_member(id) {
            return;
        }
        let until = self.now.plus_ns(1 + self.below(3_000_000_000));
        let change = match self.below(50) {
            0 => PoolChange::Remove { id: id.0 },
            1..10 => PoolChange::Drain { id: id.0 },
            10..30 => PoolChange::Undrain { id: id.0 },
            30..40 => PoolChange::Eject {
                id: id.0,
                until_ns: until.as_nanos(),
            },
            _ => PoolChange::Readmit { id: id.0 },
        };
        let (now, d) = (self.now, &mut self.dispatcher);
        match change {
            PoolChange::Remove { .. } => d.remove(now, id),
            PoolChange::Drain { .. } => d.drain(now, id),
            PoolChange::Undrain { .. } => d.undrain(now, id),
            PoolChange::Eject { .. } => d.eject(now, id, until),
            _ => d.readmit(now, id),
        }
        .expect("a member");
        self.model.changed(now, &change);
        let t_ns = now.as_nanos();
        self.log.push(Event::Backends { t_ns, change });
    }

    fn log_notes(&mut self) {
        let mut notes: Vec<Note> = Vec::new();
        self.dispatcher.take_notes(&mut notes);
        self.log.extend(notes.iter().map(|note| Event::Ejection {
            t_ns: note.at.as_nanos(),
            backend: note.backend.0,
            step: note.step,
        }));
    }

    fn check(&mut self) {
        self.dispatcher.let_time_pass(self.now);
        self.log_notes();
        self.model.let_time_pass(self.now);
        let mut barred = 0;
        for i in 0..self.failing.len() as u32 {
            let id = BackendId(i);
            let standing = self.dispatcher.standing(id);
            let expected = self.model.standing(self.now, id);
            assert_eq!(standing, expected, "backend {id} at {:?}", self.now);
            barred += usize::from(standing.phase != Phase::InService);
            let backend = self.dispatcher.backends().get(id).expect("known");
            assert_eq!(backend.ejected_until, self.model.barred_until(id));
            assert_eq!(backend.unanswered(), self.model.open_at(id));
        }
        assert!(barred <= self.model.cap(), "never more than the cap");
        let backends = self.dispatcher.backends();
        assert_eq!(backends.in_panic(), self.model.in_panic());
        self.panics += u64::from(backends.in_panic());
        self.holds += backends.members().map(|b| u64::from(b.held)).sum::<u64>();
    }

    fn replays(self) {
        let verdict =
            crate::replay::replay(self.log, &options().context.models).expect("a whole log");
        assert_eq!(verdict.first_mismatch, None);
        assert!(verdict.is_equal(), "{verdict:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_rules_do_what_the_slow_model_does(
        seed in any::<u64>(),
        n in 1_usize..7,
        entry in 0..ENTRIES.len(),
    ) {
        let mut pair = Pair::new(&Spec::of(&ENTRIES[entry]), n, seed);
        for _ in 0..1500 {
            pair.step();
        }
        pair.replays();
    }
}

#[test]
fn the_random_events_reach_every_rule() {
    let mut sum = Tally::default();
    let (mut panics, mut holds) = (0, 0);
    for seed in 0..100 {
        let mut pair = Pair::new(&spec("least-request"), 3 + seed as usize % 4, seed);
        (0..3000).for_each(|_| pair.step());
        for id in 0..pair.failing.len() as u32 {
            let tally = pair.dispatcher.standing(BackendId(id)).tally;
            for (all, n) in sum.ejections.iter_mut().zip(tally.ejections) {
                *all += n;
            }
            sum.refused += tally.refused;
            sum.observed += tally.observed;
            sum.trials += tally.trials;
        }
        panics += pair.panics;
        holds += pair.holds;
    }
    assert!(sum.ejections.iter().all(|n| *n >= 20), "{sum:?}");
    assert!(
        sum.refused.min(sum.observed).min(sum.trials) >= 20,
        "{sum:?}"
    );
    assert!(panics >= 20 && holds >= 20, "{panics} {holds}");
}

#[test]
fn every_entry_works_under_the_rules_and_its_log_replays() {
    for entry in ENTRIES {
        let mut pair = Pair::new(&Spec::of(entry), 5, 8);
        for _ in 0..1000 {
            pair.step();
        }
        pair.replays();
    }
}

#[test]
#[ignore = "slow tier: `cargo test -p plumbline-strategies -- --ignored the_rules_hold_over`"]
fn the_rules_hold_over_many_seeds() {
    for seed in 0..2_000 {
        let entry = &ENTRIES[seed as usize % ENTRIES.len()];
        let mut pair = Pair::new(&Spec::of(entry), 1 + seed as usize % 6, seed);
        for _ in 0..3_000 {
            pair.step();
        }
        pair.replays();
    }
}
