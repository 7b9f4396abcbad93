//! Exact sequences and shares, as the sources of each rule give them.

use super::models::options;
use super::pools::{dispatcher, letter, members, sequence, shares, spec};
use crate::{Dispatcher, Request, Time};

fn starts(text: &str, weights: &[u32], picks: usize) -> String {
    sequence(&mut dispatcher(&spec(text), weights, 1), picks)
}

/// Picks of which none is answered.
fn unanswered(text: &str, weights: &[u32], picks: usize) -> String {
    let mut d = dispatcher(&spec(text), weights, 1);
    (0..picks)
        .map(|_| letter(d.pick(Time::ZERO, &Request::default()).unwrap().backend))
        .collect()
}

#[test]
fn rotations_give_their_sequences() {
    let unequal = [8, 2, 2, 1, 1];
    for (text, weights, expected) in [
        ("round-robin", &[4, 3, 2][..], "ABCABCABC"),
        ("weighted-round-robin", &[4, 3, 2], "AAAABBBCCAAAABBBCC"),
        ("weighted-round-robin", &unequal, "AAAAAAAABBCCDE"),
        (
            "smooth-weighted-round-robin",
            &[4, 3, 2],
            "ABCABACBAABCABACBA",
        ),
        ("smooth-weighted-round-robin", &[5, 1, 1], "AABACAA"),
        ("smooth-weighted-round-robin", &unequal, "ABACAADAEABACA"),
        ("smooth-weighted-round-robin", &[2, 7, 1], "BABBBCBABB"),
        ("edf-wrr", &[4, 3, 2], "ABCABACBAABCABACBA"),
        ("edf-wrr", &[5, 1, 1], "AAAABCA"),
        ("edf-wrr", &unequal, "AAABCAAAADEBCA"),
        ("static-stride", &[4, 3, 2], "ABCACABAB"),
        ("static-stride", &[5, 1, 1], "ACAABAA"),
        ("static-stride", &unequal, "ACEABAACADABAA"),
    ] {
        assert_eq!(
            starts(text, weights, expected.len()),
            expected,
            "{text} {weights:?}"
        );
    }
}

#[test]
fn unanswered_requests_fill_by_weight() {
    assert_eq!(
        unanswered("weighted-least-request:ties=lowest", &[4, 3, 2], 9),
        "ABACBAABC"
    );
    assert!(unanswered("jiq", &[4, 3, 2], 30).starts_with("ABCABACBA"));
    assert_eq!(
        unanswered("weighted-least-request:offset=0,ties=lowest", &[4, 3, 2], 9),
        "ABCABACBA"
    );
}

#[test]
fn list_and_cumulative_agree_draw_for_draw() {
    let run = |text: &str| sequence(&mut dispatcher(&spec(text), &[4, 3, 2], 77), 5000);
    assert_eq!(run("weighted-random:method=list"), run("weighted-random"));
}

#[test]
fn nine_thousand_picks_are_exact_for_the_rotations() {
    let rotations = [
        "weighted-round-robin",
        "smooth-weighted-round-robin",
        "edf-wrr",
        "static-stride",
    ];
    for text in rotations {
        let counts = shares(&mut dispatcher(&spec(text), &[4, 3, 2], 1), 9000);
        assert_eq!(counts, [4000, 3000, 2000], "{text}");
    }
}

#[test]
fn effective_weights_fall_with_failures_and_recover() {
    let mut d = Dispatcher::new(
        &spec("smooth-weighted-round-robin:max-fails=1"),
        &members(&[4, 3, 2]),
        options(),
    )
    .unwrap();
    let made = d.pick(Time::ZERO, &Request::default()).unwrap();
    assert_eq!(letter(made.backend), 'A');
    let failed = crate::Answer::new(crate::Status::Error);
    d.respond(Time::ZERO, made.id, &failed).unwrap();
    // Its working weight is 0 and comes back by 1 a pick; its credit of -5 must be made up first.
    let next = sequence(&mut d, 60);
    assert!(next.starts_with("BCB"), "{next}");
    assert_eq!(next[42..].matches('A').count(), 8, "{next}");
}
