use super::{Fault, ResetAt, Timeline, hits};
use std::time::Duration;

const GOOD: &str = r#"{"version":1,"seed":42,"events":[
 {"at":"20s","on":"c","fault":"fast_fail","for":"60s","status":500,"after":"1ms","p":1.0},
 {"at":"90s","on":"a","fault":"kill","restart_after":"5s"},
 {"at":"100s","on":"balancer","fault":"freeze","for":"2s"},
 {"at":"1s","on":"b","fault":"reset","for":"2s","at_byte":"before_head","path_prefix":"/users","attempt":0}]}"#;

#[test]
fn a_timeline_is_read_with_its_defaults() {
    let timeline = Timeline::parse("f.json", GOOD).expect("good");
    assert_eq!(timeline.seed, 42);
    let [fail, kill, freeze, reset] = &timeline.events[..] else {
        panic!("four events");
    };
    let after = Duration::from_millis(1);
    let expected = Fault::FastFail {
        p: 1.0,
        status: 500,
        after,
    };
    assert_eq!(fail.fault, expected);
    assert_eq!(fail.end(), Some(Duration::from_secs(80)));
    assert_eq!(kill.end(), Some(Duration::from_secs(95)));
    assert_eq!(
        (freeze.on.as_str(), &freeze.fault),
        ("balancer", &Fault::Freeze)
    );
    let expected = Fault::Reset {
        p: 1.0,
        at: ResetAt::BeforeHead,
    };
    assert_eq!(reset.fault, expected);
    assert!(reset.only.matches(0, "/users/7") && !reset.only.matches(1, "/users/7"));
    assert!(!reset.only.matches(0, "/orders"));
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_bound() {
    let event = |fields: &str| format!(r#"{{"version":1,"events":[{{{fields}}}]}}"#);
    let cases = [
        (r#"{"version":2,"events":[]}"#.to_string(), "(allowed: 1)"),
        (
            event(r#""at":"1s","on":"a","fault":"freez","for":"1s""#),
            "did you mean \"freeze\"?",
        ),
        (
            event(r#""at":"1s","on":"a","fault":"freeze""#),
            "events[0].for: missing field",
        ),
        (
            event(r#""at":"1","on":"a","fault":"freeze","for":"1s""#),
            "has no unit",
        ),
        (
            event(r#""at":"1s","on":"a","fault":"freeze","for":"1s","p":1"#),
            "events[0].p: 1: unknown field",
        ),
        (
            event(r#""at":"1s","on":"a","fault":"slow","for":"1s","factor":0"#),
            "(allowed: 0.1 to 1000)",
        ),
        (
            event(r#""at":"1s","on":"a","fault":"hang","for":"1s","p":1.5"#),
            "(allowed: 0 to 1)",
        ),
        (
            r#"{"version":1,"events":[{"at":"1s","on":"a","fault":"freeze","for":"9s"},
                {"at":"5s","on":"a","fault":"freeze","for":"1s"}]}"#
                .to_string(),
            "f.json:2:17: events[1]: freeze on a while events[0] still lasts",
        ),
    ];
    for (text, expected) in cases {
        let problems = Timeline::parse("f.json", &text)
            .expect_err(&text)
            .to_string();
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn chance_is_keyed_and_has_fixed_vectors() {
    // Made by an independent Python version of the documented hash: the fraction lies between.
    for (key, fraction) in VECTORS {
        let [seed, event, sequence, attempt] = key;
        assert!(
            hits(seed, event, sequence, attempt, fraction + 1e-9),
            "{key:?}"
        );
        assert!(
            !hits(seed, event, sequence, attempt, fraction - 1e-9),
            "{key:?}"
        );
    }
    assert!((0..1000).all(|s| hits(1, 0, s, 0, 1.0) && !hits(1, 0, s, 0, 0.0)));
    let hit = (0..100_000).filter(|s| hits(7, 3, *s, 0, 0.3)).count();
    assert!(
        (29_400..30_600).contains(&hit),
        "four sigma around 30 %: {hit}"
    );
}

const VECTORS: [([u64; 4], f64); 4] = [
    ([0, 0, 0, 0], 0.1296456183),
    ([42, 0, 7, 0], 0.173769066531),
    ([42, 1, 7, 0], 0.254882276362),
    ([u64::MAX, 3, 19999, 1], 0.727305884875),
];
