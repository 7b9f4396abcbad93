//! Faults do what the timeline says, to whom and when.

use super::super::{Done, Fate, Path, Setup, Source};
use super::{record, setup};
use schema::fault::Timeline;
use schema::laws::sizes::SizeLaw;

fn broken(event: &str) -> Setup {
    let mut setup = setup(0.5, 2_000);
    let text = format!(r#"{{"version":1,"seed":3,"events":[{event}]}}"#);
    setup.faults = Some(Timeline::parse("f", &text).expect("a timeline"));
    setup
}

fn of(setup: &Setup, worker: u32) -> Vec<Done> {
    let (record, _) = record(setup, "round-robin", Path::Inline);
    let here = record.0.into_iter().filter(|d| d.worker == Some(worker));
    here.collect()
}

#[test]
fn a_killed_worker_loses_what_it_holds_and_refuses_until_it_is_back() {
    let setup = broken(r#"{"at":"100s","on":"a","fault":"kill","restart_after":"50s"}"#);
    let (mut lost, mut refused) = (0, 0);
    for done in of(&setup, 0) {
        match done.fate {
            Fate::Ok => assert!(done.finished < 100.0 || done.arrived >= 150.0),
            Fate::Broken => {
                lost += 1;
                assert!(done.arrived < 100.0 && done.finished == 100.0);
            }
            Fate::Refused => {
                refused += 1;
                assert!((100.0..150.0).contains(&done.arrived) && done.finished == done.arrived);
            }
            other => panic!("{other:?}"),
        }
    }
    // A third of 4.5 a second, each held about a second; 50 s of them refused.
    assert!(
        (1..10).contains(&lost) && (60..90).contains(&refused),
        "{lost} {refused}"
    );
}

#[test]
fn a_frozen_worker_keeps_its_requests_and_answers_none() {
    let setup = broken(r#"{"at":"100s","on":"b","fault":"freeze","for":"50s"}"#);
    let all = of(&setup, 1);
    assert!(
        all.iter()
            .all(|d| d.fate == Fate::Ok && !(100.0..150.0).contains(&d.finished))
    );
    assert!(all.iter().any(|d| (100.0..150.0).contains(&d.arrived)));
}

#[test]
fn a_slow_worker_takes_longer_by_the_factor() {
    let mut setup = broken(r#"{"at":"0s","on":"a","fault":"slow","for":"1h","factor":8}"#);
    setup.sizes = SizeLaw::Constant;
    setup.workers.iter_mut().for_each(|w| w.cores = 1e3);
    let all = of(&setup, 0);
    assert!(
        all.iter()
            .all(|d| (d.finished - d.arrived - 8.0).abs() < 1e-9)
    );
}

#[test]
fn fast_failures_come_at_their_time_and_hit_the_same_requests_under_every_strategy() {
    let event = r#"{"at":"0s","on":"a","fault":"fast_fail","for":"1h","p":0.3,"after":"10ms"}"#;
    let setup = broken(event);
    let hit = |strategy| -> Vec<u64> {
        let (record, _) = record(&setup, strategy, Path::Inline);
        let failed = record.0.iter().filter(|d| d.fate == Fate::Status(500));
        let mut hit: Vec<u64> = failed
            .inspect(|d| {
                assert!((d.finished - d.arrived - 0.01).abs() < 1e-9 && d.worker == Some(0))
            })
            .map(|d| d.seq)
            .collect();
        hit.sort_unstable();
        hit
    };
    let seen = |seq: &u64| schema::fault::hits(3, 0, *seq, 0, 0.3);
    for strategy in ["round-robin", "least-request"] {
        let hit = hit(strategy);
        assert!(hit.len() > 100 && hit.iter().all(seen), "{strategy}");
    }
}

#[test]
fn hung_requests_end_with_the_fault_or_at_the_timeout() {
    let event = r#"{"at":"100s","on":"a","fault":"hang","for":"50s"}"#;
    let mut setup = broken(event);
    for done in of(&setup, 0)
        .iter()
        .filter(|d| (100.0..150.0).contains(&d.arrived))
    {
        assert_eq!((done.fate, done.finished), (Fate::Broken, 150.0));
    }
    setup.timeout = Some(20.0);
    for done in of(&setup, 0)
        .iter()
        .filter(|d| (100.0..130.0).contains(&d.arrived))
    {
        assert_eq!(done.fate, Fate::Timeout);
        assert!((done.finished - done.arrived - 20.0).abs() < 1e-9);
    }
}

#[test]
fn statistics_that_hang_or_lie_change_only_the_report() {
    // A worker that says it is empty draws everything; one that says nothing is judged by own counts.
    let lie = r#"{"at":"0s","on":"a","fault":"stats_lie","for":"1h","active":0}"#;
    let share = |event: &str| {
        let (record, _) = record(&broken(event), "polled-least-request", Path::Inline);
        let here = record.0.iter().filter(|d| d.worker == Some(0)).count();
        here as f64 / record.0.len() as f64
    };
    assert!(share(lie) > 0.8);
    let hang = r#"{"at":"0s","on":"a","fault":"stats_hang","for":"1h"}"#;
    assert!((0.3..0.7).contains(&share(hang)));
}

#[test]
fn failures_at_q_times_the_normal_time_draw_their_share_of_the_slots() {
    // Five equal workers, the last fails after q times the normal time; slots = 4 per worker. The
    // failed share is (p/q)/((1-p) + p/q), as availability arithmetic has it.
    let mut setup =
        broken(r#"{"at":"0s","on":"e","fault":"fast_fail","for":"100000h","after":"10s"}"#);
    let names = ["a", "b", "c", "d", "e"];
    let worker = setup.workers[0].clone();
    setup.workers = names
        .map(|name| {
            let mut worker = worker.clone();
            (worker.name, worker.cores, worker.weight) = (name.into(), 1e3, 1);
            worker
        })
        .to_vec();
    setup.source = Source::Slots {
        slots: 20,
        calls: 3,
    };
    setup.requests = 300_000;
    setup.warmup = 30_000;
    let (record, outcome) = record(&setup, "least-request:ties=random", Path::Inline);
    let (p, q) = (0.2, 10.0);
    let expected = (p / q) / ((1.0 - p) + p / q);
    let failed = record.0.iter().filter(|d| d.worker == Some(4)).count();
    let share = failed as f64 / record.0.len() as f64;
    assert!((share - expected).abs() < 0.001, "{share} {expected}");
    let actions = outcome.actions.expect("slots count actions");
    let good = actions.good as f64 / actions.complete as f64;
    let f = (1.0 - expected).powi(3);
    let tolerance = 4.0 * (f * (1.0 - f) / actions.complete as f64).sqrt() + 0.0005;
    assert!((good - f).abs() < tolerance, "{good} {f}");
}
