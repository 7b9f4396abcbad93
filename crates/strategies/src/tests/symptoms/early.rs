//! T14: one early slow sample freezes a backend out.

use super::{ROTATIONS, is_flagged, of_group};
use crate::BackendId;
use crate::registry::{ENTRIES, Group};
use crate::tests::rig::{Fate, MS, Rig};

const SLOW: BackendId = BackendId(2);

/// Share of the slow one in the last 500 of 1,500 requests, percent.
fn late_share(text: &str) -> f64 {
    let mut rig = Rig::new(text, &[1; 5], 6);
    let mut before = 0;
    for i in 0..1500 {
        if i == 1000 {
            before = rig.sent()[SLOW.index()];
        }
        let _ = rig.ask(20 * MS, 20.0, |id, nth| {
            Fate::Serve(if id == SLOW && nth < 3 { 1000.0 } else { 20.0 })
        });
    }
    (rig.sent()[SLOW.index()] - before) as f64 / 5.0
}

#[test]
fn t14_one_early_slow_sample_freezes_a_backend_out() {
    let mut fine = vec![
        "peak-ewma:decay=1s",
        "penalty-peak-ewma:decay=1s",
        "round-robin",
    ];
    fine.extend(ROTATIONS);
    fine.extend(of_group(Group::InFlight));
    for text in fine {
        let share = late_share(text);
        assert!((share - 20.0).abs() <= 5.0, "{text}: {share} %");
    }
    for text in [
        "c3:forget=2s",
        "min-response-time:forget=2s",
        "least-time-ttfb:forget=2s",
    ] {
        let share = late_share(text);
        assert!(share >= 2.0, "{text}: {share} %");
    }
}

#[test]
fn t14_whoever_is_flagged_never_comes_back() {
    let flagged: Vec<&str> = ENTRIES
        .iter()
        .filter(|e| is_flagged(e, "T14"))
        .map(|e| e.name)
        .collect();
    let expected = [
        "min-response-time",
        "least-time",
        "least-time-ttfb",
        "shortest-response",
        "c3",
    ];
    assert_eq!(flagged, expected);
    for text in flagged {
        let share = late_share(text);
        assert!(share < 4.0, "{text} is flagged and fails: {share} %");
    }
}
