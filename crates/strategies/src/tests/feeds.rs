//! Reports that stop, come in another unit or never come: who compares by nothing else picks by own
//! counts meanwhile, says how often, and goes on when they are back.

use super::pools::{dispatcher, letter, spec};
use crate::{BackendId, Dispatcher, Report, Request, Source, Time};

const POOL: [u32; 3] = [4, 3, 2];
/// Until then a report is believed.
const YOUNG: Time = Time::from_millis(10_000);
const OLD: Time = Time::from_nanos(10_000_000_001);

/// Both of those that take the least prediction, with the source that they read.
const LEAST: [(&str, Source); 2] = [("plb-paper", Source::Poll), ("plb-docker", Source::Docker)];

/// What a backend says of itself when so many of its cores are busy.
fn report(source: Source, busy: f64) -> Report {
    Report {
        active: Some(busy as u32),
        mean_latency_50_ms: Some(50.0),
        cpu_percent: Some(100.0 * busy),
        memory_used_mib: Some(6.0),
        ..Report::empty(source, 0)
    }
}

fn tell(d: &mut Dispatcher, at: Time, id: u32, report: Report) {
    let taken = d.report(at, BackendId(id), None, report);
    assert!(taken.expect("a member").is_some());
}

/// Picks of which none is answered.
fn picks(d: &mut Dispatcher, at: Time, n: usize) -> String {
    let pick = |_| d.pick(at, &Request::default()).expect("somebody");
    (0..n).map(pick).map(|made| letter(made.backend)).collect()
}

#[test]
fn without_any_report_the_fewest_own_requests_for_the_cores_are_picked() {
    for (name, _) in LEAST {
        let mut d = dispatcher(&spec(name), &POOL, 1);
        // (q + 1) / cores: A 1/4, B 1/3, A 2/4 (as C), C 1/2, B 2/3, A 3/4, A 1 (as B and C), B, C.
        assert_eq!(picks(&mut d, Time::ZERO, 9), "ABACBAABC", "{name}");
        assert_eq!(d.stand_ins(), 9, "{name}");
        let candidate = d.candidates().next().expect("a member");
        assert_eq!(candidate.predicted_ms, None, "{name}");
    }
}

#[test]
fn a_feed_that_stops_is_believed_for_ten_seconds_and_counts_stand_in_until_it_is_back() {
    for (name, source) in LEAST {
        let mut d = dispatcher(&spec(name), &POOL, 1);
        for (id, busy) in [(0, 4.0), (1, 0.0), (2, 2.0)] {
            tell(&mut d, Time::ZERO, id, report(source, busy));
        }
        assert_eq!(picks(&mut d, YOUNG, 3), "BBB", "{name}");
        assert_eq!(d.stand_ins(), 0, "{name}");
        // B holds three; one that is silent is enough, since it cannot be compared.
        tell(&mut d, OLD, 0, report(source, 4.0));
        tell(&mut d, OLD, 2, report(source, 2.0));
        assert_eq!(picks(&mut d, OLD, 5), "AACAA", "{name}");
        assert_eq!(d.stand_ins(), 5, "{name}");
        tell(&mut d, OLD, 1, report(source, 0.0));
        assert_eq!(picks(&mut d, OLD, 2), "BB", "{name}");
        assert_eq!(d.stand_ins(), 5, "{name}");
    }
}

#[test]
fn the_age_may_be_asked_for_and_is_three_poll_intervals_at_the_least() {
    let mut d = dispatcher(&spec("plb-paper:max-age=50ms"), &POOL, 1);
    for id in 0..3 {
        tell(&mut d, Time::ZERO, id, report(Source::Poll, 0.0));
    }
    let _ = picks(&mut d, Time::from_millis(50), 1);
    assert_eq!(d.stand_ins(), 0);
    let _ = picks(&mut d, Time::from_millis(51), 1);
    assert_eq!(d.stand_ins(), 1);

    let mut options = super::models::options();
    options.context.poll_interval_ns = 5_000_000_000;
    let members = super::pools::members(&POOL);
    let mut d = Dispatcher::new(&spec("plb-paper"), &members, options).expect("a pool");
    for id in 0..3 {
        tell(&mut d, Time::ZERO, id, report(Source::Poll, 0.0));
    }
    let _ = picks(&mut d, Time::from_millis(15_000), 1);
    assert_eq!(d.stand_ins(), 0);
    let _ = picks(&mut d, Time::from_millis(15_001), 1);
    assert_eq!(d.stand_ins(), 1);
}

/// Cores told as millicores, memory as bytes: no container of 3 cores and 1 GB can use that much. Nothing
/// of such a report is taken, so what was told before counts until it is too old.
#[test]
fn figures_that_cannot_be_are_passed_over_as_if_the_feed_had_stopped() {
    let good = report(Source::Docker, 0.0);
    let bad = |change: fn(&mut Report)| {
        let mut bad = good.clone();
        change(&mut bad);
        bad
    };
    for bad in [
        bad(|r| r.cpu_percent = Some(2_900.0)),
        bad(|r| r.cpu_percent = Some(600.1)),
        bad(|r| r.memory_used_mib = Some(6.0 * 1_048_576.0)),
        bad(|r| r.memory_used_mib = Some(1_024.1)),
        bad(|r| r.cpu_percent = None),
        bad(|r| r.memory_used_mib = None),
        bad(|r| r.cpu_percent = Some(f64::NAN)),
        bad(|r| r.memory_used_mib = Some(-1.0)),
    ] {
        let mut d = dispatcher(&spec("plb-docker"), &POOL, 1);
        for (id, busy) in [(0, 4.0), (1, 0.0), (2, 2.0)] {
            tell(&mut d, Time::ZERO, id, report(Source::Docker, busy));
        }
        tell(&mut d, YOUNG, 1, bad.clone());
        assert_eq!(picks(&mut d, YOUNG, 2), "BB", "{bad:?}");
        tell(&mut d, OLD, 0, report(Source::Docker, 4.0));
        tell(&mut d, OLD, 2, report(Source::Docker, 2.0));
        tell(&mut d, OLD, 1, bad.clone());
        assert_eq!(picks(&mut d, OLD, 4), "AACA", "{bad:?}");
        assert_eq!(d.stand_ins(), 4, "{bad:?}");
    }
    // A sample that is a little more than all cores is a sample.
    let mut d = dispatcher(&spec("plb-docker"), &POOL, 1);
    for id in 0..3 {
        tell(&mut d, Time::ZERO, id, report(Source::Docker, 2.2));
    }
    let _ = picks(&mut d, Time::ZERO, 1);
    assert_eq!(d.stand_ins(), 0);
}

#[test]
fn of_two_drawn_the_counts_decide_only_if_one_of_them_is_not_told_of() {
    let mut d = dispatcher(&spec("plb-p2c"), &[1, 1], 1);
    tell(&mut d, Time::ZERO, 1, report(Source::Poll, 0.0));
    assert_eq!(d.stand_ins(), 0);
    let first = picks(&mut d, Time::ZERO, 1);
    let second = picks(&mut d, Time::ZERO, 1);
    assert_ne!(first, second);
    assert_eq!(d.stand_ins(), 2);
    tell(&mut d, Time::ZERO, 0, report(Source::Poll, 9.0));
    assert_eq!(picks(&mut d, Time::ZERO, 9), "BBBBBBBBB");
    assert_eq!(d.stand_ins(), 2);

    // Which of equals is first is drawn, what each of them gets is not.
    let mut d = dispatcher(&spec("plb-softmax"), &POOL, 1);
    let picked = picks(&mut d, Time::ZERO, 9);
    let counts = ['A', 'B', 'C'].map(|name| picked.matches(name).count());
    assert_eq!((counts, d.stand_ins()), ([4, 3, 2], 9), "{picked}");
}

/// The made-up model says 22 ms for a request of a kind it does not know, times requests per core where that
/// is above one: with 4, 0 and 2 at 4, 3 and 2 cores 22 * 5/4, 22 and 22 * 3/2.
#[test]
fn what_was_told_before_a_switch_is_known_after_it_and_its_prediction_recorded() {
    for name in ["plb-paper", "plb-softmax", "plb-p2c", "plb-live"] {
        let mut d = dispatcher(&spec("round-robin"), &POOL, 1);
        for (id, active) in [(0, 4.0), (1, 0.0), (2, 2.0)] {
            tell(&mut d, Time::ZERO, id, report(Source::Poll, active));
        }
        d.set_strategy(Time::ZERO, &spec(name)).expect("a pool");
        let _ = picks(&mut d, Time::ZERO, 1);
        assert_eq!(d.stand_ins(), 0, "{name}");
        let predicted: Vec<_> = d.candidates().map(|c| c.predicted_ms).collect();
        assert_eq!(predicted, [Some(27.5), Some(22.0), Some(33.0)], "{name}");
    }
}
