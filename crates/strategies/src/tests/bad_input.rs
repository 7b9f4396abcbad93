//! Spellings, pools and calls that are refused, and what the messages say.

use super::models::options;
use super::pools::{dispatcher, members, spec};
use crate::registry::{ENTRIES, Kind, parse_list};
use crate::{Answer, BackendId, Dispatcher, NewBackend, PoolError, Request, Spec, Status, Time};

fn refused(text: &str) -> String {
    text.parse::<Spec>().expect_err(text).to_string()
}

#[test]
fn unknown_names_list_the_known_ones_and_the_nearest() {
    let text = refused("round-robbin");
    assert!(
        text.starts_with("unknown strategy \"round-robbin\"; known: random, weighted-random"),
        "{text}"
    );
    assert!(text.ends_with("; nearest: round-robin"), "{text}");
    let text = refused("least-request:tie=random");
    assert_eq!(
        text,
        "least-request has no parameter \"tie\"; known: ties; nearest: ties"
    );
    assert_eq!(
        refused("random:x=1"),
        "random has no parameter \"x\"; known: none"
    );
}

#[test]
fn values_out_of_bounds_name_the_bound() {
    for (text, expected) in [
        (
            "weighted-least-request:offset=1.5",
            "offset must be between 0 and 1, got 1.5",
        ),
        (
            "weighted-least-request:offset=nan",
            "offset must be between 0 and 1, got nan",
        ),
        (
            "least-request:ties=x",
            "ties must be one of smooth, random, lowest, got x",
        ),
        (
            "smooth-weighted-round-robin:max-fails=0",
            "max-fails must be between 1 and 100 or off, got 0",
        ),
        (
            "least-request:ties=",
            "least-request: ties has an empty value",
        ),
        (
            "least-request:ties",
            "least-request: expected key=value, got \"ties\"",
        ),
        (
            "least-request:ties=random,ties=random",
            "least-request: ties is given twice",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
    assert!(refused("").starts_with("unknown strategy \"\""));
}

#[test]
fn every_duration_without_a_unit_is_told_so() {
    assert_eq!(
        refused("peak-ewma:decay=10"),
        "decay must be between 1ms and 10min, got 10 without a unit (such as 100ms or 10s)"
    );
    assert_eq!(
        refused("peak-ewma:decay=10x"),
        "decay must be between 1ms and 10min, got 10x"
    );
    let mut durations = 0;
    for entry in ENTRIES {
        for parameter in entry.parameters {
            if matches!(parameter.kind, Kind::Duration { .. }) {
                durations += 1;
                let text = refused(&format!("{}:{}=10", entry.name, parameter.name));
                assert!(text.contains("got 10 without a unit"), "{text}");
            }
        }
    }
    assert!(durations > 10, "{durations}");
}

#[test]
fn printing_leaves_defaults_out_and_keeps_the_declared_order() {
    let text = "weighted-least-request:ties=lowest,offset=0.50";
    assert_eq!(
        spec(text).to_string(),
        "weighted-least-request:offset=0.5,ties=lowest"
    );
    assert_eq!(
        spec("weighted-least-request:offset=1.0").to_string(),
        "weighted-least-request"
    );
    assert_eq!(spec("min-concurrency").to_string(), "least-request");
    let list =
        parse_list("random,weighted-least-request:offset=0,ties=smooth,round-robin").unwrap();
    let names: Vec<String> = list.iter().map(Spec::to_string).collect();
    assert_eq!(
        names,
        [
            "random",
            "weighted-least-request:offset=0,ties=smooth",
            "round-robin"
        ]
    );
    assert!(parse_list("random,,random").is_err());
}

#[test]
fn bad_pools_are_refused_whole() {
    let pool = |f: fn(&mut NewBackend)| {
        let mut pool = members(&[4, 3, 2]);
        f(&mut pool[1]);
        Dispatcher::new(&spec("random"), &pool, options()).expect_err("refused")
    };
    assert_eq!(pool(|b| b.weight = 0), PoolError::BadWeight(0));
    assert_eq!(pool(|b| b.weight = 65_536), PoolError::BadWeight(65_536));
    assert_eq!(pool(|b| b.cores = -1.0), PoolError::BadCores(-1.0));
    assert!(matches!(
        pool(|b| b.cores = f64::NAN),
        PoolError::BadCores(_)
    ));
    assert_eq!(pool(|b| b.name.clear()), PoolError::BadName(0));
    let doubled = pool(|b| b.name = "worker-a:8080".into());
    assert_eq!(doubled, PoolError::DuplicateName("worker-a:8080".into()));

    let heavy = spec("weighted-random:method=list");
    let text = Dispatcher::new(&heavy, &members(&[65_535; 3]), options());
    assert!(text.is_ok(), "equal weights need one entry each");
    let many: Vec<u32> = (0..40).map(|i| 65_535 - i).collect();
    let text = Dispatcher::new(&heavy, &members(&many), options())
        .expect_err("refused")
        .to_string();
    assert!(text.contains("allowed: at most 1000000"), "{text}");
}

#[test]
fn changes_of_unknown_backends_change_nothing() {
    let mut d = dispatcher(&spec("random"), &[4, 3, 2], 1);
    let nobody = BackendId(7);
    let unknown = PoolError::UnknownBackend(nobody);
    assert_eq!(d.remove(Time::ZERO, nobody), Err(unknown.clone()));
    assert_eq!(d.drain(Time::ZERO, nobody), Err(unknown.clone()));
    assert_eq!(d.set_weight(Time::ZERO, nobody, 1), Err(unknown));
    assert_eq!(
        d.set_weight(Time::ZERO, BackendId(0), 0),
        Err(PoolError::BadWeight(0))
    );
    assert_eq!(d.mark_poll(Time::ZERO, nobody), None);
    assert_eq!(d.backends().get(BackendId(0)).unwrap().weight, 4);
}

#[test]
fn unknown_and_doubled_responses_are_errors_and_count_nothing() {
    let mut d = dispatcher(&spec("least-request"), &[4, 3, 2], 1);
    let made = d.pick(Time::ZERO, &Request::default()).unwrap();
    let ok = Answer::new(Status::Ok);
    assert!(d.respond(Time::ZERO, made.id + 1, &ok).is_err());
    assert_eq!(d.open_len(), 1);
    assert!(d.respond(Time::ZERO, made.id, &ok).is_ok());
    let text = d
        .respond(Time::ZERO, made.id, &ok)
        .expect_err("doubled")
        .to_string();
    assert!(text.starts_with("dispatch 0 is not open"), "{text}");
    assert!(d.backends().members().all(|b| b.in_flight == 0));
}

#[test]
fn time_going_backward_counts_as_the_latest_seen() {
    let mut d = dispatcher(&spec("round-robin"), &[1, 1], 1);
    let first = d.pick(Time::from_millis(10), &Request::default()).unwrap();
    let second = d.pick(Time::from_millis(3), &Request::default()).unwrap();
    assert_eq!(
        (first.at, second.at),
        (Time::from_millis(10), Time::from_millis(10))
    );
    let outcome = d
        .respond(Time::ZERO, second.id, &Answer::cancelled())
        .unwrap();
    assert_eq!(outcome.latency_ns, 0);
}

#[test]
fn a_hundred_thousand_backends_are_served_and_one_more_than_the_limit_is_refused() {
    let mut d = dispatcher(&spec("smooth-weighted-round-robin"), &vec![1; 100_000], 1);
    assert!(d.pick(Time::ZERO, &Request::default()).is_some());
    let too_many = vec![1; crate::backends::MAX_MEMBERS + 1];
    let refused = Dispatcher::new(&spec("random"), &members(&too_many), options());
    assert_eq!(refused.expect_err("refused"), PoolError::TooMany);
}

#[test]
fn an_oracle_that_knows_the_world_is_refused_for_real_servers() {
    let text = "oracle-marginal:truth=world";
    assert!(spec(text).needs_world());
    let refused = Spec::parse_live(text).unwrap_err().to_string();
    assert!(
        refused.contains("truth=world") && refused.contains("use truth=own"),
        "{refused}"
    );
    assert!(Spec::parse_live("oracle-marginal").is_ok());
}
