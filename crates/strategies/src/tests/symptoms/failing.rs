//! T13: a fast-failing backend attracts traffic; ejection and the hold of fast failures against it.

use super::is_flagged;
use crate::ejection::Phase;
use crate::registry::ENTRIES;
use crate::tests::rig::{Fate, Rig};
use crate::{BackendId, Mark, Rules, Status};
use schema::protection::Ejection;
use schema::rng::unit;

pub(super) const C: BackendId = BackendId(2);

/// How C fails: so many of a hundred requests, so.
#[derive(Clone, Copy)]
pub(super) struct Failing(pub(super) f64, pub(super) Status);

pub(super) const NEVER: Failing = Failing(0.0, Status::Ok);
pub(super) const ALWAYS: Failing = Failing(100.0, Status::Error);

const EJECTING: Rules = Rules {
    ejection: Ejection::DEFAULT,
    ..Rules::plain()
};

/// 50 requests a second, exponential work of 100 ms, one request per core at a time; C fails in 1 ms.
pub(super) fn request(rig: &mut Rig, failing: Failing) -> Option<Mark> {
    let size_ms = rig.exponential(100.0);
    let gap_ms = rig.exponential(20.0);
    let fails = 100.0 * unit(&mut rig.rng) < failing.0;
    rig.ask((gap_ms * 1e6) as u64, size_ms, |id, _| {
        if id == C && fails {
            Fate::Fail(failing.1, 1.0)
        } else {
            Fate::Serve(size_ms)
        }
    })
    .mark
}

/// C's share of the picks of a minute, percent; mean of the seeds.
pub(super) fn share(text: &str, rules: Rules, failing: Failing, seeds: u64) -> f64 {
    let of_seed = |seed| {
        let mut rig = Rig::under(text, &[4, 3, 2], seed, rules).queueing();
        for _ in 0..3000 {
            request(&mut rig, failing);
        }
        rig.sent()[C.index()] as f64 / 30.0
    };
    (0..seeds).map(of_seed).sum::<f64>() / seeds as f64
}

#[test]
fn t13_a_fast_failing_backend_attracts_traffic() {
    for (text, least, most) in [
        ("least-request", 66.0, 74.0),
        ("least-request:ties=random", 66.0, 74.0),
        ("weighted-least-request", 51.0, 59.0),
        ("p2c", 54.0, 62.0),
        ("peak-ewma", 63.0, 71.0),
        ("peak-ewma:choices=0", 99.0, 100.0),
        ("least-time-ttfb", 99.0, 100.0),
        ("least-time", 95.0, 100.0),
        ("shortest-response", 98.0, 100.0),
        ("c3", 98.0, 100.0),
        ("min-response-time", 98.0, 100.0),
        ("prequal:sinkhole=off", 90.0, 100.0),
        ("prequal", 0.0, 1.0),
        ("penalty-peak-ewma", 0.0, 6.0),
        ("smooth-weighted-round-robin", 22.2, 22.3),
        ("weighted-round-robin", 22.2, 22.3),
        ("edf-wrr", 22.2, 22.3),
        ("static-stride", 22.2, 22.3),
    ] {
        let share = share(text, Rules::plain(), ALWAYS, 4);
        assert!((least..=most).contains(&share), "{text}: {share} %");
    }
}

#[test]
fn t13_whoever_is_flagged_attracts_and_nobody_else_does() {
    for entry in ENTRIES {
        let name = entry.name;
        let before = share(name, Rules::plain(), NEVER, 2);
        let failing = share(name, Rules::plain(), ALWAYS, 2);
        let risen = failing - before;
        // It is not flagged because its bound holds: C is full at its share of what is in flight, and
        // only so much of the keys of the others is passed on to it.
        let most = if name == "bounded-load" { 12.0 } else { 4.0 };
        if is_flagged(entry, "T13") {
            assert!(risen >= 5.0, "{name} is flagged: {before} to {failing} %");
        } else {
            assert!(
                risen <= most,
                "{name}: {before} to {failing} %; if that is its nature, name T13 in known_flaws"
            );
        }
        // One error in twenty must not be told from none.
        let five = share(name, Rules::plain(), Failing(5.0, Status::Error), 2);
        assert!(five - before <= 4.0, "{name}: {before} to {five} %");
    }
}

#[test]
fn t13_ejection_protects_every_strategy() {
    for entry in ENTRIES {
        for (seed, status) in [(0, Status::Error), (1, Status::Refused)] {
            let failing = Failing(100.0, status);
            let (name, context) = (entry.name, (entry.name, status));
            let mut rig = Rig::under(name, &[4, 3, 2], seed, EJECTING).queueing();
            let mut before_ejection = 0;
            for _ in 0..3000 {
                request(&mut rig, failing);
                if rig.dispatcher.standing(C).tally.ejections == [0; 3] {
                    before_ejection = rig.sent()[C.index()];
                }
            }
            assert!(before_ejection <= 10, "{context:?}: {before_ejection}");
            assert!(rig.sent()[C.index()] <= 30, "{context:?}: {:?}", rig.sent());

            // Repaired after half a minute: the next trial is the last.
            let mut rig = Rig::under(name, &[4, 3, 2], seed, EJECTING).queueing();
            for _ in 0..1500 {
                request(&mut rig, failing);
            }
            let marks: Vec<_> = (0..1500).filter_map(|_| request(&mut rig, NEVER)).collect();
            assert_eq!(marks, [Mark::Trial], "{context:?}");
            assert_eq!(rig.dispatcher.standing(C).phase, Phase::InService);
        }
    }
}

#[test]
fn t13_half_of_the_answers_bad_is_enough_for_an_ejection() {
    for entry in ENTRIES {
        let mut rig = Rig::under(entry.name, &[4, 3, 2], 3, EJECTING).queueing();
        let is_in = |rig: &Rig| rig.dispatcher.standing(C).phase == Phase::InService;
        for _ in 0..6000 {
            request(&mut rig, Failing(50.0, Status::Error));
            if !is_in(&rig) {
                break;
            }
        }
        // Those that shun it by themselves may never have as many.
        let responses = rig.sent()[C.index()];
        assert!(responses <= 300, "{}: {responses}", entry.name);
        let shuns = ["penalty-peak-ewma", "prequal"].contains(&entry.name);
        assert!(shuns || !is_in(&rig), "{}", entry.name);
    }
}
