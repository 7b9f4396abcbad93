//! What the rules make of T13: fast failures held, failing backends ejected, tried and taken back.

use super::failing::{ALWAYS, C, Failing, NEVER, share};
use crate::ejection::Phase;
use crate::registry::{ENTRIES, HonorsWeights, Read};
use crate::tests::pools::spec;
use crate::tests::rig::{Fate, MS, Rig, SECOND};
use crate::{Rules, Status};
use schema::rng::unit;

const HOLDING: Rules = Rules {
    fail_hold: Some(5.0),
    ..Rules::plain()
};

#[test]
fn holding_fast_failures_gives_the_shares_that_were_measured() {
    for (text, expected) in [
        ("least-request:ties=random", 33.0),
        ("weighted-least-request", 20.0),
        ("p2c", 33.0),
        ("peak-ewma", 27.0),
        ("peak-ewma:choices=0", 27.0),
    ] {
        let share = share(text, HOLDING, ALWAYS, 4);
        assert!((share - expected).abs() <= 4.0, "{text}: {share} %");
    }
}

#[test]
fn s2_with_fast_failures_held_nobody_gets_more_than_a_fair_share() {
    let cases = [
        ALWAYS,
        Failing(50.0, Status::Error),
        Failing(5.0, Status::Error),
        Failing(100.0, Status::Refused),
    ];
    for text in FAIR {
        let by_weight = spec(text).entry().honors_weights == HonorsWeights::Yes;
        let fair = if by_weight { 200.0 / 9.0 } else { 100.0 / 3.0 };
        for failing in cases {
            let share = share(text, HOLDING, failing, 2);
            assert!(share <= fair + 2.0, "{text} at {} %: {share} %", failing.0);
        }
    }
    for entry in ENTRIES {
        let with = share(entry.name, HOLDING, ALWAYS, 1);
        let without = share(entry.name, Rules::plain(), ALWAYS, 1);
        assert!(
            with <= without + 2.0,
            "{}: {without} to {with} %",
            entry.name
        );
    }
}

/// Rules that must not send a fast-failing backend more than a fair share while it is held.
const FAIR: [&str; 12] = [
    "random",
    "weighted-random",
    "round-robin",
    "weighted-round-robin",
    "smooth-weighted-round-robin",
    "edf-wrr",
    "static-stride",
    "least-request",
    "weighted-least-request",
    "p2c",
    "peak-ewma",
    "peak-ewma:choices=0",
];

/// 50 requests a second of 100 ms each, nobody waiting; C fails in 1 ms.
fn steady(rig: &mut Rig, failing: Failing) -> bool {
    let fails = 100.0 * unit(&mut rig.rng) < failing.0;
    let to = rig.ask(20 * MS, 100.0, |id, _| {
        if id == C && fails {
            Fate::Fail(failing.1, 1.0)
        } else {
            Fate::Serve(100.0)
        }
    });
    to.backend == C && fails
}

/// A guarded minute with C failing: failures of C, how many until it was out (0: never), and its
/// share of the requests in the last 50 s, percent.
fn guarded_minute(rig: &mut Rig, failing: Failing) -> (u64, u64, f64) {
    let (mut failed, mut at_ejection, mut in_ten_s) = (0, 0, 0);
    for i in 0..3000 {
        failed += u64::from(steady(rig, failing));
        if i == 500 {
            in_ten_s = rig.sent()[C.index()];
        }
        if at_ejection == 0 && rig.dispatcher.standing(C).phase != Phase::InService {
            at_ejection = failed;
        }
    }
    let late = (rig.sent()[C.index()] - in_ten_s) as f64 / 25.0;
    (failed, at_ejection, late)
}

#[test]
fn s2_guarded_a_failing_backend_gets_next_to_nothing() {
    for entry in ENTRIES {
        let name = entry.name;
        for failing in [ALWAYS, Failing(100.0, Status::Refused)] {
            let mut rig = Rig::under(name, &[4, 3, 2], 1, Rules::guarded());
            let (failed, _, late) = guarded_minute(&mut rig, failing);
            assert!(failed <= 12, "{name}: {failed} failures in a minute");
            assert!(late <= 1.0, "{name}: {late} %");
        }
        // Those that learn latencies or outcomes may send it too little to be compared.
        let learns = entry.reads(Read::Latency) || entry.reads(Read::Status);
        for seed in [2, 3] {
            let mut rig = Rig::under(name, &[4, 3, 2], seed, Rules::guarded());
            let half = Failing(50.0, Status::Error);
            let (failed, at_ejection, late) = guarded_minute(&mut rig, half);
            assert!(late <= 3.0, "{name}: {late} % at half of the answers bad");
            let in_time = failed < 20 || (1..=20).contains(&at_ejection);
            assert!(
                learns || in_time,
                "{name}: out at failure {at_ejection} of {failed}"
            );
        }
        let mut rig = Rig::under(name, &[4, 3, 2], 4, Rules::guarded());
        guarded_minute(&mut rig, Failing(5.0, Status::Error));
        let ejections = rig.dispatcher.standing(C).tally.ejections;
        assert_eq!(
            ejections, [0; 3],
            "{name}: one bad answer in twenty is no reason"
        );
    }
}

#[test]
fn s2_guarded_a_repaired_backend_is_back_with_its_share() {
    for text in FAIR {
        let mut rig = Rig::under(text, &[4, 3, 2], 5, Rules::guarded());
        guarded_minute(&mut rig, ALWAYS);
        let Phase::Ejected { until } = rig.dispatcher.standing(C).phase else {
            panic!("{text}: not ejected after a minute of failures")
        };
        assert!(
            until.since_ns(rig.dispatcher.now()) <= 33 * SECOND,
            "{text}"
        );
        while rig.dispatcher.now() < until.plus_ns(2 * SECOND) {
            steady(&mut rig, NEVER);
        }
        assert_eq!(rig.dispatcher.standing(C).phase, Phase::InService, "{text}");
        // Ten seconds to settle, then its share of half a minute.
        let mut unharmed = Rig::under(text, &[4, 3, 2], 5, Rules::guarded());
        let settled_share = |rig: &mut Rig| {
            for _ in 0..500 {
                steady(rig, NEVER);
            }
            let before = rig.sent()[C.index()];
            for _ in 0..1500 {
                steady(rig, NEVER);
            }
            (rig.sent()[C.index()] - before) as f64 / 15.0
        };
        let (share, usual) = (settled_share(&mut rig), settled_share(&mut unharmed));
        assert!((share - usual).abs() <= 5.0, "{text}: {usual} to {share} %");
    }
}
