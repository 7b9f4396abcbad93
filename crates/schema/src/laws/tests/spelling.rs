use crate::laws::arrivals::{Arrivals, Leg, Rates, SPELLINGS};

const STATED: Rates = Rates {
    full_rps: Some(200.0),
    default_rps: None,
};

fn read(text: &str) -> Arrivals {
    Arrivals::parse(text, STATED).expect("a process")
}

#[test]
fn every_process_can_be_spelled_with_a_rate_or_a_share_of_the_capacity() {
    let leg = |to_rps, over_ms| Leg { to_rps, over_ms };
    let cases = [
        ("constant:10ms", Arrivals::Constant { interval_ms: 10.0 }),
        ("constant:80rps", Arrivals::Constant { interval_ms: 12.5 }),
        // 120 a second: whole microseconds.
        ("constant:60%", Arrivals::Constant { interval_ms: 8.333 }),
        ("poisson:80.5", Arrivals::Poisson { rate_rps: 80.5 }),
        ("poisson:80rps", Arrivals::Poisson { rate_rps: 80.0 }),
        ("poisson:62.5%", Arrivals::Poisson { rate_rps: 125.0 }),
        (
            "gamma:80:3",
            Arrivals::Gamma {
                rate_rps: 80.0,
                cv: 3.0,
            },
        ),
        (
            "bursty:50%:3",
            Arrivals::Gamma {
                rate_rps: 100.0,
                cv: 3.0,
            },
        ),
        (
            "sine:50%:0.5:1min",
            Arrivals::Sine {
                rate_rps: 100.0,
                amplitude: 0.5,
                period_ms: 60_000.0,
            },
        ),
        (
            "ramp:0:120:60s",
            Arrivals::Ramp {
                from_rps: 0.0,
                legs: vec![leg(120.0, 60_000.0)],
            },
        ),
        (
            "ramp:20%:80%:30s:80%:60s:20%:0s",
            Arrivals::Ramp {
                from_rps: 40.0,
                legs: vec![leg(160.0, 30_000.0), leg(160.0, 60_000.0), leg(40.0, 0.0)],
            },
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn a_caller_with_a_rate_of_its_own_may_leave_it_out() {
    let rates = Rates {
        full_rps: None,
        default_rps: Some(50.0),
    };
    let read = |text| Arrivals::parse(text, rates).expect("a process");
    assert_eq!(read("constant"), Arrivals::Constant { interval_ms: 20.0 });
    assert_eq!(read("poisson"), Arrivals::Poisson { rate_rps: 50.0 });
    assert_eq!(read("poisson:70"), Arrivals::Poisson { rate_rps: 70.0 });
    assert_eq!(
        read("gamma:3"),
        Arrivals::Gamma {
            rate_rps: 50.0,
            cv: 3.0
        }
    );
    let sine = Arrivals::Sine {
        rate_rps: 50.0,
        amplitude: 0.5,
        period_ms: 60_000.0,
    };
    assert_eq!(read("sine:0.5:60s"), sine);
}

#[test]
fn a_wrong_spelling_says_what_is_wrong_and_what_is_allowed() {
    let cases = [
        ("", "unknown arrival process \"\""),
        ("poison:3", "did you mean \"poisson\"?"),
        ("uniform:3", "allowed: constant:GAP"),
        ("constant", "expected 1 value after the process and found 0"),
        ("constant:10", "no unit"),
        (
            "constant:0ms",
            "interval_ms 0 is out of range (allowed: 0.001 to 3600000)",
        ),
        ("constant:2h", "out of range"),
        ("constant:-1ms", "is not a number with a unit"),
        (
            "poisson",
            "expected 1 value after the process and found 0 (allowed: poisson:RATE)",
        ),
        (
            "poisson:0",
            "rate_rps 0 is out of range (allowed: 0.001 to 1000000)",
        ),
        ("poisson:-1", "out of range"),
        ("poisson:NaN", "out of range"),
        ("poisson:inf", "out of range"),
        (
            "poisson:x",
            "rate \"x\" is not a number of requests a second or a percentage",
        ),
        ("poisson:10ms", "rate \"10ms\" is not a number"),
        ("poisson:x%", "percentage \"x\" is not a number"),
        ("poisson:0%", "rate_rps 0 is out of range"),
        ("poisson:NaN%", "out of range"),
        (
            "poisson:1:2",
            "expected 1 value after the process and found 2",
        ),
        (
            "gamma:80",
            "expected 2 values after the process and found 1 (allowed: gamma:RATE:CV)",
        ),
        ("gamma:80:0", "cv 0 is out of range (allowed: 0.01 to 100)"),
        (
            "gamma:80:x",
            "coefficient of variation \"x\" is not a number",
        ),
        (
            "sine:80:2:60s",
            "amplitude 2 is out of range (allowed: 0 to 1)",
        ),
        ("sine:80:0.5:60", "no unit"),
        ("sine:80:0.5:0s", "period_ms 0 is out of range"),
        ("sine:80:0.5", "expected 3 values"),
        ("ramp", "no rates (allowed: ramp:FROM:TO:OVER"),
        ("ramp:1:2", "a leg needs a rate and a duration"),
        ("ramp:1:2:3s:4", "a leg needs a rate and a duration"),
        (
            "ramp:-1:2:3s",
            "from_rps -1 is out of range (allowed: 0 to 1000000)",
        ),
        (
            "ramp:1:0:3s",
            "legs[0].to_rps 0 is out of range (allowed: 0.001 to 1000000)",
        ),
        (
            "ramp:1:2:400h",
            "legs[0].over_ms 1440000000 is out of range",
        ),
    ];
    for (text, expected) in cases {
        let found = Arrivals::parse(text, STATED).expect_err("must be refused");
        assert!(found.contains(expected), "{text}: {found}");
    }
    let found = Arrivals::parse("poisson:60%", Rates::default()).expect_err("no capacity");
    assert!(found.contains("capacity that is not stated"), "{found}");
    let long = format!("ramp:1{}", ":2:3s".repeat(1001));
    let found = Arrivals::parse(&long, STATED).expect_err("too long");
    assert!(found.contains("1001 legs (allowed: up to 1000)"), "{found}");
}

#[test]
fn every_process_of_the_table_is_known_to_the_parser_and_listed_by_it() {
    let why = Arrivals::parse("sometimes", STATED).unwrap_err();
    for (form, _) in SPELLINGS {
        assert!(why.contains(form), "{form}: {why}");
        let name = form.split(':').next().unwrap_or(form);
        let why = Arrivals::parse(name, STATED).err().unwrap_or_default();
        assert!(!why.starts_with("unknown"), "{why}");
    }
}
