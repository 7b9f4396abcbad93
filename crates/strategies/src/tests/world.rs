//! A seeded stream of everything that can happen to a dispatcher, checked against a slow model.
//!
//! The model keeps nothing but the list of open dispatches and who is in which state; counts are
//! counted anew each time. Everything done is also written as a log.

use super::models::options;
use super::pools::members;
use crate::dispatcher::PollMark;
use crate::registry::Context;
use crate::{Answer, BackendId, Dispatcher, NewBackend, Options, Report, Request, Source, Spec};
use crate::{Status, Time};
use rand_chacha::ChaCha8Rng;
use schema::event::{Event, Member, PoolChange, SCHEMA};
use schema::rng::{Purpose, below, stream, unit};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct State {
    member: bool,
    draining: bool,
    ejected_until: Option<Time>,
    sent: u64,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) dispatcher: Dispatcher,
    pub(super) log: Vec<Event>,
    pub(super) picks: Vec<Option<BackendId>>,
    /// Multiplies every true cost; must change nothing.
    pub(super) cost_scale: f64,
    rng: ChaCha8Rng,
    now: Time,
    open: Vec<(u64, BackendId)>,
    /// Ids of all dispatches so far.
    given: BTreeSet<u64>,
    states: Vec<State>,
    polls: Vec<PollMark>,
    keeps_log: bool,
    /// Load of a backend by its in_flight and weight; a pick must have the least of all eligible.
    pub(super) load: Option<fn(u32, u32) -> f64>,
}

impl World {
    pub(super) fn new(spec: &Spec, weights: &[u32], seed: u64) -> Self {
        Self::in_context(spec, weights, seed, options().context)
    }

    pub(super) fn in_context(spec: &Spec, weights: &[u32], seed: u64, context: Context) -> Self {
        let options = Options {
            seed,
            slow_start_ns: seed.is_multiple_of(3).then_some(5_000_000_000),
            context,
            ..options()
        };
        let dispatcher = Dispatcher::new(spec, &members(weights), options.clone()).expect("a pool");
        let start = Event::Start {
            schema: SCHEMA.into(),
            strategy: spec.to_string(),
            seed,
            started_unix_ns: 0,
            poll_interval_ns: options.context.poll_interval_ns,
            mi_per_ms: Some(options.context.mi_per_ms),
            protection: "plain".into(),
            slow_start_ns: options.slow_start_ns,
            rules: options.rules,
            members: dispatcher.members(),
        };
        let state = State {
            member: true,
            ..State::default()
        };
        Self {
            states: vec![state; weights.len()],
            dispatcher,
            log: vec![start],
            picks: Vec::new(),
            cost_scale: 1.0,
            rng: stream(seed, Purpose::Arrivals, 1, 0),
            now: Time::ZERO,
            open: Vec::new(),
            given: BTreeSet::new(),
            polls: Vec::new(),
            keeps_log: weights.len() <= 10,
            load: None,
        }
    }

    pub(super) fn run(mut self, events: usize) -> Self {
        for _ in 0..events {
            self.step();
        }
        self
    }

    /// Answers everything that is open; all counts are 0 then.
    pub(super) fn finish(mut self) -> Self {
        while !self.open.is_empty() {
            self.respond();
        }
        assert_eq!(self.dispatcher.open_len(), 0);
        for backend in self.dispatcher.backends().members() {
            assert_eq!(backend.in_flight, 0, "{}", self.dispatcher.spec());
        }
        self
    }

    pub(super) fn step(&mut self) {
        self.let_time_pass();
        match below(&mut self.rng, 100) {
            0..45 => self.pick(),
            45..80 => self.respond(),
            80..84 => self.send_poll(),
            84..92 => self.report(),
            _ => self.change_pool(),
        }
        self.check_counts();
    }

    fn let_time_pass(&mut self) {
        let ns = match below(&mut self.rng, 200) {
            0..40 => 0,
            40..198 => below(&mut self.rng, 20_000_000),
            198 => below(&mut self.rng, 10_000_000_000),
            _ => 3_600_000_000_000,
        };
        self.now = self.now.plus_ns(ns);
        for state in &mut self.states {
            state.ejected_until = state.ejected_until.filter(|end| *end > self.now);
        }
    }

    fn any_id(&mut self) -> BackendId {
        BackendId(below(&mut self.rng, self.states.len() as u64) as u32)
    }

    fn pick(&mut self) {
        let tried: Vec<BackendId> = match below(&mut self.rng, 5) {
            0 => vec![self.any_id(), self.any_id()],
            _ => Vec::new(),
        };
        let url = format!("/items/{}?page=1", below(&mut self.rng, 500));
        let client = format!("10.0.{}.7", below(&mut self.rng, 200));
        let user = format!("user-{}", below(&mut self.rng, 300));
        let request = Request {
            id: "r",
            method: "GET",
            url: &url,
            class: below(&mut self.rng, 10) as u32,
            client: Some(client.parse().expect("an address")),
            key_header: Some(&user),
            tried: &tried,
            cost_mi: Some((100.0 + 500.0 * unit(&mut self.rng)) * self.cost_scale),
            ..Request::default()
        };
        let eligible: Vec<BackendId> = (0..self.states.len() as u32)
            .map(BackendId)
            .filter(|id| self.is_available(*id) && !tried.contains(id))
            .collect();
        let made = self.dispatcher.pick(self.now, &request);
        let picked = made.map(|d| d.backend);
        self.picks.push(picked);
        if self.keeps_log {
            self.log.push(pick_event(self.now, &request, made));
        }
        let Some(made) = made else {
            assert!(
                eligible.is_empty(),
                "{}: picks when it can",
                self.dispatcher.spec()
            );
            return;
        };
        assert!(
            eligible.contains(&made.backend),
            "{}",
            self.dispatcher.spec()
        );
        self.check_load(made, &eligible);
        assert!(self.given.insert(made.id), "{}", made.id);
        self.open.push((made.id, made.backend));
        self.states[made.backend.index()].sent += 1;
    }

    fn check_load(&self, made: crate::Dispatch, eligible: &[BackendId]) {
        let Some(load) = self.load else {
            return;
        };
        let backends = self.dispatcher.backends();
        let weight = |id| backends.get(id).expect("it is known").weight;
        let chosen = load(made.in_flight_before, weight(made.backend));
        let others = eligible.iter().filter(|id| **id != made.backend);
        for backend in others.filter_map(|id| backends.get(*id)) {
            let other = load(backend.in_flight, backend.weight);
            assert!(
                chosen <= other,
                "{}: {chosen} {other}",
                self.dispatcher.spec()
            );
        }
    }

    fn is_available(&self, id: BackendId) -> bool {
        let state = self.states[id.index()];
        state.member && !state.draining && state.ejected_until.is_none()
    }

    fn respond(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let nth = below(&mut self.rng, self.open.len() as u64) as usize;
        let (dispatch, backend) = self.open.swap_remove(nth);
        let status = match below(&mut self.rng, 10) {
            0 => Status::Error,
            1 => Status::Timeout,
            2 => Status::Refused,
            3 => Status::Cancelled,
            _ => Status::Ok,
        };
        let latency_ns = match below(&mut self.rng, 50) {
            0 => 0,
            1 => u64::MAX,
            _ => below(&mut self.rng, 300_000_000),
        };
        let answer = Answer {
            latency_ns: Some(latency_ns),
            ttfb_ns: (status == Status::Ok).then_some(latency_ns / 2),
            http_status: (status == Status::Error).then_some(503),
            retry_after_ns: (status == Status::Error).then_some(2_000_000_000),
            service_time_ns: (status == Status::Ok).then_some(latency_ns / 3),
            ..Answer::new(status)
        };
        self.dispatcher
            .respond(self.now, dispatch, &answer)
            .expect("it is open");
        assert!(
            self.dispatcher
                .respond(self.now, dispatch, &answer)
                .is_err()
        );
        if self.keeps_log {
            self.log
                .push(response_event(self.now, dispatch, backend, &answer));
        }
    }

    fn send_poll(&mut self) {
        let id = self.any_id();
        let mark = self.dispatcher.mark_poll(self.now, id);
        assert_eq!(mark.is_some(), self.states[id.index()].member);
        if let Some(mark) = mark.filter(|_| self.polls.len() < 64) {
            self.polls.push(mark);
        }
    }

    /// Late, missing, doubled and out of order, as they come.
    fn report(&mut self) {
        let source = match below(&mut self.rng, 6) {
            0 => Source::Piggyback,
            1 => Source::Docker,
            2 => Source::Probe,
            _ => Source::Poll,
        };
        let polled = matches!(source, Source::Poll | Source::Probe);
        let (id, mark) = if polled {
            if self.polls.is_empty() {
                return;
            }
            let at = below(&mut self.rng, self.polls.len() as u64) as usize;
            let mark = self.polls[at];
            if below(&mut self.rng, 3) > 0 {
                self.polls.swap_remove(at);
            }
            (mark.backend(), Some(mark))
        } else {
            (self.any_id(), None)
        };
        let report = self.random_report(source);
        let is_member = self.states[id.index()].member;
        let stored = self.dispatcher.report(self.now, id, mark, report);
        assert_eq!(stored.is_ok(), is_member);
        if let (Ok(Some(report)), true) = (stored, self.keeps_log) {
            self.log.push(Event::Stats {
                t_ns: self.now.as_nanos(),
                backend: id.0,
                report: report.clone(),
            });
        }
    }

    fn random_report(&mut self, source: Source) -> Report {
        let rng = &mut self.rng;
        let odd = below(rng, 20);
        Report {
            sequence: Some(below(rng, 1000)),
            active: (odd != 0).then(|| below(rng, 20) as u32),
            mean_latency_50_ms: (odd > 1).then(|| unit(rng) * 300.0),
            utilization: Some(if odd == 2 { f64::NAN } else { unit(rng) }),
            qps: Some(if odd == 3 { 0.0 } else { unit(rng) * 50.0 }),
            eps: Some(unit(rng)),
            rif_latency_ms: Some(unit(rng) * 300.0),
            cpu_percent: Some(unit(rng) * 400.0),
            ..Report::empty(source, 0)
        }
    }

    fn change_pool(&mut self) {
        let id = self.any_id();
        let until = self.now.plus_ns(1 + below(&mut self.rng, 2_000_000_000));
        let weight = 1 + below(&mut self.rng, 9) as u32;
        let change = match below(&mut self.rng, 16) {
            0 if self.states.len() < 40 => PoolChange::Add(self.new_member()),
            1 => PoolChange::Remove { id: id.0 },
            2..5 => PoolChange::Weight { id: id.0, weight },
            5..7 => PoolChange::Drain { id: id.0 },
            7..12 => PoolChange::Undrain { id: id.0 },
            12..14 => PoolChange::Eject {
                id: id.0,
                until_ns: until.as_nanos(),
            },
            _ => PoolChange::Readmit { id: id.0 },
        };
        if self.apply(&change) && self.keeps_log {
            self.log.push(Event::Backends {
                t_ns: self.now.as_nanos(),
                change,
            });
        }
    }

    fn new_member(&self) -> Member {
        let id = self.states.len() as u32;
        Member {
            id,
            name: format!("added-{id}:80"),
            url: String::new(),
            weight: 3,
            cores: 0.5,
            memory_mib: 64.0,
            draining: false,
        }
    }

    fn apply(&mut self, change: &PoolChange) -> bool {
        let (now, dispatcher) = (self.now, &mut self.dispatcher);
        let (id, done) = match *change {
            PoolChange::Add(ref member) => {
                let new: NewBackend = crate::replay::new_backend(member);
                let id = dispatcher.add(now, &new).expect("a new name");
                self.states.push(State::default());
                (id, Ok(()))
            }
            PoolChange::Remove { id } => (BackendId(id), dispatcher.remove(now, BackendId(id))),
            PoolChange::Weight { id, weight } => (
                BackendId(id),
                dispatcher.set_weight(now, BackendId(id), weight),
            ),
            PoolChange::Drain { id } => (BackendId(id), dispatcher.drain(now, BackendId(id))),
            PoolChange::Undrain { id } => (BackendId(id), dispatcher.undrain(now, BackendId(id))),
            PoolChange::Eject { id, until_ns } => {
                let until = Time::from_nanos(until_ns);
                (BackendId(id), dispatcher.eject(now, BackendId(id), until))
            }
            PoolChange::Readmit { id } => (BackendId(id), dispatcher.readmit(now, BackendId(id))),
        };
        let state = &mut self.states[id.index()];
        if !matches!(change, PoolChange::Add(_)) {
            assert_eq!(done.is_ok(), state.member, "only members can be changed");
            if !state.member {
                return false;
            }
        }
        match *change {
            PoolChange::Add(_) => state.member = true,
            PoolChange::Remove { .. } => {
                state.member = false;
                state.ejected_until = None;
            }
            PoolChange::Drain { .. } => state.draining = true,
            PoolChange::Undrain { .. } => state.draining = false,
            PoolChange::Eject { until_ns, .. } => {
                state.ejected_until = Some(Time::from_nanos(until_ns));
            }
            PoolChange::Readmit { .. } => state.ejected_until = None,
            PoolChange::Weight { .. } => {}
        }
        true
    }

    fn check_counts(&self) {
        assert_eq!(self.dispatcher.open_len(), self.open.len());
        if self.states.len() > 50 {
            return;
        }
        for (i, state) in self.states.iter().enumerate() {
            let id = BackendId(i as u32);
            let open = self.open.iter().filter(|(_, b)| *b == id).count();
            let backend = self
                .dispatcher
                .backends()
                .get(id)
                .expect("every id stays known");
            assert_eq!(backend.in_flight as usize, open, "in_flight of {id}");
            assert_eq!(backend.sent, state.sent, "sent to {id}");
            assert_eq!(backend.member, state.member);
            assert_eq!(
                backend.draining && backend.member,
                state.draining && state.member
            );
        }
    }
}

pub(super) fn pick_event(now: Time, request: &Request<'_>, made: Option<crate::Dispatch>) -> Event {
    Event::Pick {
        t_ns: now.as_nanos(),
        dispatch: made.map(|d| d.id),
        request_id: request.id.into(),
        method: request.method.into(),
        url: request.url.into(),
        class: request.class,
        client: request.client.map(|c| c.to_string()),
        key_header: request.key_header.map(String::from),
        body_len: request.body_len,
        attempt: request.attempt,
        tried: request.tried.iter().map(|id| id.0).collect(),
        cost_mi: request.cost_mi,
        backend: made.map(|d| d.backend.0),
        mark: made.and_then(|d| d.mark),
        candidates: Vec::new(),
        pick_ns: 0,
    }
}

pub(super) fn response_event(
    now: Time,
    dispatch: u64,
    backend: BackendId,
    answer: &Answer,
) -> Event {
    Event::Response {
        t_ns: now.as_nanos(),
        dispatch,
        backend: backend.0,
        status: answer.status,
        http_status: answer.http_status,
        latency_ns: answer.latency_ns.expect("given"),
        ttfb_ns: answer.ttfb_ns,
        retry_after_ns: answer.retry_after_ns,
        service_time_ns: answer.service_time_ns,
        queue_wait_ns: None,
    }
}
