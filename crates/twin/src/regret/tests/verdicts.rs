//! Verdicts and gaps worked out by hand.

use super::super::gap::{Schedule, closed};
use super::super::judge::{Tail, Verdict, judge};
use super::super::log::Dispatch;
use super::super::rebuild::Discipline;
use super::super::rows::{Request, Run};
use super::super::{Judged, stays};
use super::{stay, worker};

#[test]
fn the_second_request_regrets_the_busy_core() {
    // Two single cores. The first request of 10 ms goes to a at 0; the second of 4 ms at 2 as well:
    // own time 4 + 4 beside 4 alone, and it delays the first by 4.
    let stays = [stay(0, 10.0, 0.0, 0.0, 14.0), stay(0, 4.0, 2.0, 2.0, 10.0)];
    let workers = [worker("a", 1.0, 1.0), worker("b", 1.0, 1.0)];
    let verdict = judge(&workers, Discipline::Sharing, &stays).expect("two picks");
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(verdict.regret_own_ms.mean, 4.0 / 2.0);
    near(verdict.regret_own_ms.p95, 4.0);
    near(verdict.regret_mc_ms.mean, 8.0 / 2.0);
    assert_eq!(
        (verdict.picks, verdict.hit_own, verdict.hit_mc),
        (2, 0.5, 0.5)
    );
    assert_eq!(verdict.rank_shares, [0.5, 0.5]);
}

#[test]
fn a_slow_core_costs_its_speed_and_the_warm_up_is_not_judged() {
    let mut warm = stay(0, 10.0, 0.0, 0.0, 20.0);
    warm.judged = false;
    let stays = [warm, stay(0, 10.0, 30.0, 30.0, 50.0)];
    let workers = [worker("a", 1.0, 0.5), worker("b", 1.0, 1.0)];
    let verdict = judge(&workers, Discipline::InOrder, &stays).expect("one pick");
    let ten = Tail {
        mean: 10.0,
        p95: 10.0,
    };
    assert_eq!((verdict.picks, verdict.regret_own_ms), (1, ten));
    assert_eq!(verdict.regret_mc_ms, ten);
    assert!(judge(&workers, Discipline::InOrder, &stays[..1]).is_none());
}

fn run(intended_ns: u64) -> Run {
    let request = Request {
        seq: 0,
        size_mi: 100.0,
        warmup: false,
        intended_ns,
        sent_done_ns: Some((1_000_000, 21_300_000)),
        worker: Some(0),
        attempts: Some(1),
        ok: true,
        unserved: false,
        at_worker_ns: Some((5_000_000, 15_000_000)),
    };
    Run {
        run_id: "r".into(),
        block: None,
        strategy: "random".into(),
        requests: vec![request],
    }
}

#[test]
fn time_away_from_the_worker_is_half_each_way() {
    // 20.3 ms between send and end, 20 of them at the worker.
    let stays = stays::from_rows(&run(0), 2.0).expect("a whole row");
    let one = &stays[0];
    let times = [one.picked_ms, one.arrived_ms, one.started_ms, one.ended_ms];
    for (got, expected) in times.into_iter().zip([1.0, 1.15, 6.15, 21.15]) {
        assert!((got - expected).abs() < 1e-9, "{times:?}");
    }
    assert_eq!((one.work_ms, one.told, one.judged), (50.0, true, true));
}

#[test]
fn the_log_places_every_attempt_and_only_the_answered_one_is_told() {
    let dispatch = |picked_ns, done_ns, is_first, worker, ok| Dispatch {
        seq: 0,
        is_first,
        worker,
        picked_ns,
        done_ns,
        ok,
    };
    let log = [
        dispatch(0, 3_000_000, true, 1, false),
        dispatch(3_000_000, 23_000_000, false, 0, true),
    ];
    let stays = stays::from_log(&run(0), &log, 2.0).expect("whole");
    let seen = stays
        .iter()
        .map(|s| (s.worker, s.ended_ms, s.told, s.judged));
    assert!(seen.eq([(1, 3.0, false, true), (0, 23.0, true, false)]));
    let text = stays::from_log(&run(0), &log[..1], 2.0).expect_err("no answer");
    assert!(text.to_string().contains("no answer to it"), "{text}");
    let mut several = run(0);
    several.requests[0].attempts = Some(2);
    let text = stays::from_rows(&several, 2.0).expect_err("unknown");
    assert!(text.to_string().contains("several workers"), "{text}");
    several.requests[0] = Request {
        worker: None,
        ok: false,
        attempts: None,
        ..several.requests[0]
    };
    let text = stays::from_rows(&several, 2.0).expect_err("unknown");
    assert!(text.to_string().contains("nobody knows"), "{text}");
    several.requests[0].unserved = true;
    assert_eq!(stays::from_rows(&several, 2.0), Ok(Vec::new()));
}

fn judged(strategy: &str, schedule: u64, mean_ms: Option<f64>) -> Judged {
    let none = Tail {
        mean: 0.0,
        p95: 0.0,
    };
    Judged {
        source: String::new(),
        run_id: String::new(),
        block: None,
        strategy: strategy.into(),
        verdict: Verdict {
            picks: 1,
            regret_own_ms: none,
            regret_mc_ms: none,
            hit_own: 1.0,
            hit_mc: 1.0,
            rank_shares: vec![1.0],
            measured_speeds: vec![None],
        },
        schedule: Schedule::of(&run(schedule)),
        mean_ms,
        failed: 0,
    }
}

#[test]
fn the_gap_is_closed_by_what_is_gained_on_schedules_that_all_three_ran() {
    let wlc = "weighted-least-request";
    let runs = [
        judged(wlc, 1, Some(100.0)),
        judged("oracle-marginal:truth=world", 1, Some(90.0)),
        judged("p2c", 1, Some(104.0)),
        judged(wlc, 2, Some(200.0)),
        judged("oracle-marginal:truth=world", 2, Some(170.0)),
        judged("p2c", 2, Some(180.0)),
        // No oracle on this schedule, no mean on that one.
        judged(wlc, 3, Some(1.0)),
        judged("p2c", 3, Some(9.0)),
        judged("random", 1, None),
    ];
    let gaps: Vec<(&str, f64)> = closed(&runs).into_iter().collect();
    let expected = [
        ("oracle-marginal:truth=world", 1.0),
        ("p2c", 16.0 / 40.0),
        (wlc, 0.0),
    ];
    assert_eq!(gaps, expected);
    // An oracle that gains nothing leaves no gap to close, and one that looks ahead is another one.
    let equal = [
        judged(wlc, 1, Some(9.0)),
        judged("oracle-marginal", 1, Some(9.0)),
    ];
    assert!(closed(&equal).is_empty());
    let ahead = judged("oracle-marginal:look-ahead=0.45", 1, Some(5.0));
    assert!(closed(&[judged(wlc, 1, Some(9.0)), ahead]).is_empty());
}
