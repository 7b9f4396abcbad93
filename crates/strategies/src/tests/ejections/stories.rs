//! Worked cases, each with its numbers by hand.

use super::*;
use schema::protection::{Rule, Step};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Round robin over `n`, ejected after three failures in a row for 1, 2, 4, 4 s.
fn three_strikes() -> Rules {
    Rules {
        ejection: Ejection {
            after: 3,
            compare: false,
            base_ns: SECOND,
            cap_ns: 4 * SECOND,
            jitter_percent: 0,
            ..Ejection::DEFAULT
        },
        ..Rules::plain()
    }
}

fn pool(text: &str, n: usize, rules: Rules) -> Dispatcher {
    let options = Options { rules, ..options() };
    Dispatcher::new(&spec(text), &members(&vec![1; n]), options).expect("a pool")
}

const GET: Request<'_> = Request {
    id: "",
    method: "GET",
    url: "/",
    class: 0,
    client: None,
    key_header: None,
    body_len: 0,
    attempt: 0,
    tried: &[],
    cost_mi: None,
};

/// One request after `gap_ns`, answered at once by whoever gets it.
fn ask(
    d: &mut Dispatcher,
    gap_ns: u64,
    answer: impl Fn(BackendId) -> Status,
) -> (BackendId, Option<Mark>) {
    let now = d.now().plus_ns(gap_ns);
    let made = d.pick(now, &GET).expect("somebody is eligible");
    d.respond(now, made.id, &Answer::new(answer(made.backend)))
        .expect("open");
    (made.backend, made.mark)
}

/// Asks until something holds; a rule that is broken must not ask for ever.
fn ask_until(
    d: &mut Dispatcher,
    gap_ns: u64,
    answer: impl Fn(BackendId) -> Status,
    holds: impl Fn(&Dispatcher) -> bool,
) {
    for _ in 0..10_000 {
        if holds(d) {
            return;
        }
        ask(d, gap_ns, &answer);
    }
    panic!("never");
}

fn a_fails(id: BackendId) -> Status {
    if id.0 == 0 { Status::Error } else { Status::Ok }
}

fn is_out(d: &Dispatcher, id: u32) -> bool {
    d.standing(BackendId(id)).phase != Phase::InService
}

#[test]
fn good_results_reset_the_count_and_cancelled_ones_leave_it() {
    let mut d = pool("round-robin", 2, three_strikes());
    for statuses in [
        [Status::Error, Status::Timeout, Status::Ok],
        [Status::Refused, Status::Error, Status::Cancelled],
    ] {
        for status in statuses {
            ask(&mut d, MS, |id| if id.0 == 0 { status } else { Status::Ok });
            ask(&mut d, MS, |_| Status::Ok);
            assert!(!is_out(&d, 0));
        }
    }
    // Two failures stand; a third one ejects, whatever was cancelled between them.
    ask(&mut d, MS, a_fails);
    assert!(is_out(&d, 0));
}

#[test]
fn lengths_double_up_to_the_cap_with_one_trial_between() {
    let mut d = pool("round-robin", 3, three_strikes());
    let mut attempts_on_a = 0;
    for _ in 0..20 * 20 {
        attempts_on_a += u32::from(ask(&mut d, 50 * MS, a_fails).0.0 == 0);
    }
    let mut notes = Vec::new();
    d.take_notes(&mut notes);
    let ejected: Vec<(u64, u32, Rule)> = notes
        .iter()
        .filter_map(|n| match n.step {
            Step::Ejected {
                rule,
                until_ns,
                number,
            } => Some(((until_ns - n.at.as_nanos()) / SECOND, number, rule)),
            _ => None,
        })
        .collect();
    // At 0.35, 1.35, 3.4, 7.4, 11.4, 15.4 and 19.4 s.
    let expected = [1, 2, 4, 4, 4, 4, 4].into_iter().zip(1..);
    let expected: Vec<_> = expected
        .map(|(s, number)| {
            let rule = if number == 1 {
                Rule::Consecutive
            } else {
                Rule::Trial
            };
            (s, number, rule)
        })
        .collect();
    assert_eq!(ejected, expected);
    assert_eq!(attempts_on_a, 3 + 6, "three strikes, then one trial each");
}

#[test]
fn a_minute_in_service_forgives_and_time_spent_ejected_is_none() {
    let strike_out = |d: &mut Dispatcher| {
        ask_until(d, MS, a_fails, |d| is_out(d, 0));
        match d.standing(BackendId(0)).phase {
            Phase::Ejected { until } => until.since_ns(d.now()) / SECOND,
            other => panic!("{other:?}"),
        }
    };
    let come_back = |d: &mut Dispatcher| {
        ask_until(d, 10 * MS, |_| Status::Ok, |d| !is_out(d, 0));
    };
    let mut d = pool("round-robin", 2, three_strikes());
    assert_eq!(strike_out(&mut d), 1);
    come_back(&mut d);
    ask(&mut d, 59 * SECOND, |_| Status::Ok);
    assert_eq!(strike_out(&mut d), 2, "59 s are too short");
    // A minute passes while it is out.
    d.let_time_pass(d.now().plus_ns(61 * SECOND));
    come_back(&mut d);
    assert_eq!(strike_out(&mut d), 4);
    come_back(&mut d);
    ask(&mut d, 60 * SECOND, |_| Status::Ok);
    assert_eq!(strike_out(&mut d), 1);
}

#[test]
fn a_length_is_drawn_within_a_tenth_of_its_value() {
    let lengths: Vec<f64> = (0..200)
        .map(|seed| {
            let mut rules = three_strikes();
            rules.ejection.jitter_percent = 10;
            let options = Options {
                seed,
                rules,
                ..options()
            };
            let mut d =
                Dispatcher::new(&spec("round-robin"), &members(&[1, 1]), options).expect("a pool");
            for _ in 0..5 {
                ask(&mut d, MS, a_fails);
            }
            match d.standing(BackendId(0)).phase {
                Phase::Ejected { until } => until.since_ns(d.now()) as f64 / 1e9,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert!(lengths.iter().all(|s| (0.9..=1.1).contains(s)));
    // Uniform: the mean of 200 has a standard deviation of 0.2 / sqrt(12 * 200) = 0.004.
    let mean = lengths.iter().sum::<f64>() / 200.0;
    assert!((mean - 1.0).abs() < 0.0165, "{mean}");
    assert!(lengths.iter().any(|s| *s < 0.93) && lengths.iter().any(|s| *s > 1.07));
}

#[test]
fn s4_an_ejection_never_empties_a_small_pool() {
    let most_out = |n: usize, max_percent, at_least_one| {
        let mut rules = three_strikes();
        rules.ejection.max_percent = max_percent;
        rules.ejection.at_least_one = at_least_one;
        let mut d = pool("round-robin", n, rules);
        let mut most = 0;
        for _ in 0..2000 {
            ask(&mut d, 5 * MS, |_| Status::Error);
            most = most.max((0..n as u32).filter(|id| is_out(&d, *id)).count());
        }
        let refused: u64 = (0..n as u32)
            .map(|id| d.standing(BackendId(id)).tally.refused)
            .sum();
        assert!(refused > 0, "a refused ejection is counted");
        most
    };
    for (percent, expected) in [(10, 0), (34, 1), (67, 2), (100, 2)] {
        assert_eq!(most_out(3, percent, false), expected, "{percent} %");
    }
    assert_eq!(most_out(3, 10, true), 1);
    for (n, expected) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3)] {
        assert_eq!(most_out(n, 67, true), expected, "{n} backends");
    }
}

#[test]
fn what_began_before_an_ejection_does_not_prolong_it() {
    let mut d = pool("round-robin", 2, three_strikes());
    let open: Vec<_> = (0..20).map(|_| d.pick(Time::ZERO, &GET).unwrap()).collect();
    let on_a: Vec<_> = open.iter().filter(|made| made.backend.0 == 0).collect();
    let failed = Answer::new(Status::Error);
    for made in &on_a[..9] {
        d.respond(Time::from_millis(1), made.id, &failed).unwrap();
    }
    let standing = d.standing(BackendId(0));
    assert_eq!(standing.tally.ejections.iter().sum::<u64>(), 1);
    // It comes back; the last of the old ones fails then, and two new ones do.
    d.let_time_pass(Time::from_millis(1_100));
    ask_until(&mut d, MS, |_| Status::Ok, |d| !is_out(d, 0));
    d.respond(d.now(), on_a[9].id, &failed).unwrap();
    for _ in 0..4 {
        ask(&mut d, MS, a_fails);
    }
    assert!(!is_out(&d, 0), "two in a row since it came back");
}

#[test]
fn trials_come_one_at_a_time_and_only_to_what_may_be_repeated() {
    let mut rules = three_strikes();
    rules.ejection.trial = 3;
    // A key strategy too: the trial goes before the strategy.
    let mut d = pool("consistent-hash", 3, rules);
    let made = d.pick(Time::ZERO, &GET).unwrap();
    d.respond(Time::ZERO, made.id, &Answer::new(Status::Error))
        .unwrap();
    let broken = made.backend;
    let it_fails = |id| match id == broken {
        true => Status::Error,
        false => Status::Ok,
    };
    ask_until(&mut d, MS, it_fails, |d| is_out(d, broken.0));
    let back = d.now().plus_ns(SECOND);
    let post = Request {
        method: "POST",
        ..GET
    };
    let retry = Request { attempt: 1, ..GET };
    for request in [&post, &retry] {
        let made = d.pick(back, request).unwrap();
        assert!(made.backend != broken && made.mark.is_none());
    }
    let first = d.pick(back, &GET).unwrap();
    assert_eq!((first.backend, first.mark), (broken, Some(Mark::Trial)));
    let second = d.pick(back.plus_ns(9 * SECOND), &GET).unwrap();
    assert!(second.backend != broken, "one is under way");
    d.respond(d.now(), first.id, &Answer::cancelled()).unwrap();
    // Nobody repeats anything for two seconds: then any request will do.
    let waited = d.now();
    assert!(
        d.pick(waited.plus_ns(2 * SECOND - 1), &post)
            .unwrap()
            .mark
            .is_none()
    );
    let any = d.pick(waited.plus_ns(2 * SECOND), &post).unwrap();
    assert_eq!((any.backend, any.mark), (broken, Some(Mark::Trial)));
    let mut good = any;
    for so_far in 1..=3 {
        assert!(is_out(&d, broken.0), "{so_far} good ones are needed");
        d.respond(d.now(), good.id, &Answer::new(Status::Ok))
            .unwrap();
        good = d.pick(d.now(), &GET).unwrap();
    }
    assert!(!is_out(&d, broken.0));
    assert_eq!(
        (good.backend, good.mark),
        (broken, None),
        "its keys are back"
    );
    assert_eq!(d.standing(broken).tally.trials, 4);
}

#[test]
fn with_nobody_up_the_marks_are_ignored() {
    for (panic_percent, expected) in [(None, 0), (Some(0), 3), (Some(20), 3)] {
        let rules = Rules {
            panic_percent,
            ..three_strikes()
        };
        let mut d = pool("round-robin", 3, rules);
        let long = Time::from_millis(60_000);
        (0..3).for_each(|id| d.eject(Time::ZERO, BackendId(id), long).unwrap());
        assert_eq!(d.backends().in_panic(), expected > 0);
        let mut got: Vec<u32> = Vec::new();
        for _ in 0..6 {
            got.extend(d.pick(Time::ZERO, &GET).map(|made| {
                assert_eq!(made.mark, Some(Mark::Panic));
                made.backend.0
            }));
        }
        got.sort_unstable();
        got.dedup();
        assert_eq!(got.len(), expected);
        // One that is up ends it.
        d.readmit(Time::ZERO, BackendId(1)).unwrap();
        assert!(!d.backends().in_panic());
        let made = d.pick(Time::ZERO, &GET).unwrap();
        assert_eq!((made.backend.0, made.mark), (1, None));
    }
    // Half of four: three out are too many, two are not.
    let rules = Rules {
        panic_percent: Some(50),
        ..Rules::plain()
    };
    let mut d = pool("round-robin", 4, rules);
    let long = Time::from_millis(60_000);
    for (id, panics) in [(0, false), (1, false), (2, true)] {
        d.eject(Time::ZERO, BackendId(id), long).unwrap();
        assert_eq!(d.backends().in_panic(), panics);
    }
}

#[test]
fn a_backend_much_worse_than_the_others_is_ejected_though_it_never_fails_five_in_a_row() {
    let rules = Rules {
        ejection: Ejection::DEFAULT,
        ..Rules::plain()
    };
    let mut d = pool("round-robin", 2, rules);
    let mut failures = 0;
    for turn in 0..1_000_u64 {
        let (id, _) = ask(&mut d, 10 * MS, |id| {
            if id.0 == 0 && turn / 2 % 2 == 0 {
                Status::Error
            } else {
                Status::Ok
            }
        });
        failures += u32::from(id.0 == 0 && turn / 2 % 2 == 0);
        if is_out(&d, 0) {
            break;
        }
    }
    // 12 of 24 against 0 of 23: z = 3.93; 13 of 25 against 0 of 24: z = 4.12.
    assert_eq!(failures, 13);
    let by_rule = d.standing(BackendId(0)).tally.ejections;
    assert_eq!(by_rule, [0, 1, 0]);
}

#[test]
fn observed_ejections_come_as_often_as_the_theory_says() {
    let rules = Rules {
        ejection: Ejection {
            mode: Mode::Observe,
            after: 9,
            compare: false,
            ..Ejection::DEFAULT
        },
        ..Rules::plain()
    };
    let mut d = pool("random", 5, rules);
    let mut rng = stream(6, Purpose::Faults, 0, 0);
    for _ in 0..1_000_000 {
        let now = d.now().plus_ns(MS);
        let made = d.pick(now, &GET).unwrap();
        let status = [Status::Ok, Status::Error][below(&mut rng, 2) as usize];
        d.respond(now, made.id, &Answer::new(status)).unwrap();
    }
    let observed: u64 = (0..5)
        .map(|id| d.standing(BackendId(id)).tally.observed)
        .sum();
    // One per (1 - e^T) / ((1 - e) e^T) = 1022 results at e = 0.5, T = 9.
    assert!(observed.abs_diff(978) <= 125, "{observed}");
    assert!((0..5).all(|id| !is_out(&d, id)));
}

#[test]
fn with_the_rules_off_nothing_is_remembered() {
    let mut d = dispatcher(&spec("round-robin"), &[1, 1], 1);
    for _ in 0..1000 {
        ask(&mut d, MS, a_fails);
    }
    assert_eq!(
        d.standing(BackendId(0)),
        crate::ejection::Standing::default()
    );
    let mut notes = Vec::new();
    d.take_notes(&mut notes);
    assert!(notes.is_empty());
}
