use super::{Api, Drawn, Method, Order, Request, Traffic, Workload};
use crate::laws::arrivals::Arrivals;
use crate::schedule::tests::any_arrivals;
use proptest::prelude::*;

fn sample() -> Workload {
    let api = |id: &str, method, url: &str, task_size_mi| Api {
        id: id.into(),
        method,
        url: url.into(),
        task_size_mi,
    };
    Workload {
        name: "sample".into(),
        seed: u64::MAX,
        generator: serde_json::Map::new(),
        apis: vec![
            api("api-001", Method::Get, "/users/orders", 400.25),
            api("api-002", Method::Post, "/users/orders", 423.0),
        ],
        traffic: Traffic::Drawn(Drawn {
            runs: 3,
            order: Order::Shuffled,
            arrivals: Arrivals::Constant { interval_ms: 10.0 },
            size_cv: 0.0,
        }),
        sha256: String::new(),
    }
    .sealed()
}

/// The sample with a list of requests.
fn listed() -> Workload {
    let mut workload = sample();
    let request = |at_us, api, task_size_mi| Request {
        at_us,
        api,
        task_size_mi,
    };
    workload.traffic = Traffic::Listed(vec![
        request(0, 1, 12.5),
        request(1_500, 0, 99.0),
        request(1_500, 1, 1.0),
    ]);
    workload.sealed()
}

fn findings(text: &str) -> String {
    Workload::parse("w.json", text)
        .expect_err("must be refused")
        .to_string()
}

/// The sample with one piece of its text replaced and the digest left out.
fn changed(from: &str, to: &str) -> String {
    changed_in(&sample(), from, to)
}

fn changed_in(workload: &Workload, from: &str, to: &str) -> String {
    let text = workload.to_text();
    let cut = text.find(",\n  \"sha256\"").expect("canonical form");
    let text = format!("{}\n}}\n", &text[..cut]);
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1)
}

#[test]
fn a_workload_reads_what_it_writes_and_the_digest_is_of_the_file_without_it() {
    let workload = sample();
    let text = workload.to_text();
    let read = Workload::parse("w.json", &text).expect("own output");
    assert_eq!(read, workload);
    assert_eq!(read.to_text(), text);
    assert_eq!(read.requests(), 6);
    assert!((read.mean_task_size_mi() - 411.625).abs() < 1e-12);
    let without = changed("sample", "sample");
    let bare = Workload::parse("w.json", &without).expect("the digest is optional");
    assert_eq!(bare.sha256, workload.sha256);
}

#[test]
fn the_canonical_text_is_this() {
    insta::assert_snapshot!(sample().to_text());
}

#[test]
fn the_digest_may_stand_anywhere_and_betrays_a_change() {
    let without = changed("sample", "sample");
    let first = without.replacen('{', &format!("{{\"sha256\" : \"{}\",", sample().sha256), 1);
    assert_eq!(
        Workload::parse("w.json", &first).expect("same file").sha256,
        sample().sha256
    );
    let edited = sample().to_text().replace("423.0", "424.0");
    assert!(findings(&edited).contains("changed after it was written"));
}

#[test]
fn every_wrong_value_is_named_with_its_place_and_bound() {
    let cases = [
        (
            "423.0",
            "-1",
            "w.json:8:74: apis[1].task_size_mi: -1: too small (allowed: 1 to 100000)",
        ),
        ("423.0", "9e9", "apis[1].task_size_mi: 9e9: too large"),
        (
            "423.0",
            "\"x\"",
            "apis[1].task_size_mi: \"x\": expected a number",
        ),
        ("423.0", "null", "expected a number"),
        ("423.0", "NaN", "not JSON"),
        (
            "\"POST\"",
            "\"FROB\"",
            "apis[1].method: \"FROB\": unknown method (allowed: GET, POST",
        ),
        ("\"POST\"", "\"post\"", "did you mean \"POST\"?"),
        (
            "\"POST\"",
            "\"GET\"",
            "duplicate API: method and url are those of apis[0]",
        ),
        (
            "api-002",
            "api-001",
            "duplicate API: the id is that of apis[0]",
        ),
        (
            "\"/users/orders\"",
            "\"users\"",
            "does not start with a slash",
        ),
        ("\"/users/orders\"", "\"/a b\"", "percent-encoded"),
        ("\"/users/orders\"", "\"/a\\nb\"", "control characters"),
        ("\"runs\": 3", "\"runs\": 0", "the schedule would be empty"),
        (
            "\"runs\": 3",
            "\"runs\": 6000000",
            "too many requests (allowed: 1 to 5000000 with 2 APIs)",
        ),
        ("\"runs\": 3", "\"runs\": 2.5", "expected a whole number"),
        (
            "\"runs\"",
            "\"rums\"",
            "unknown field; did you mean \"runs\"?",
        ),
        (
            "\"runs\": 3",
            "\"runs\": 3, \"runs\": 4",
            "runs: 4: duplicate field",
        ),
        (
            "\"shuffled\"",
            "\"random\"",
            "order: \"random\": unknown order (allowed: shuffled, round, sequential)",
        ),
        (
            "\"constant\"",
            "\"steady\"",
            "unknown arrival process (allowed: constant, poisson, gamma, sine, ramp)",
        ),
        ("10.0", "0", "arrivals.interval_ms: 0: too small"),
        (
            "interval_ms",
            "rate_rps",
            "not a field of constant arrivals",
        ),
        (
            "plumbline.workload/1",
            "plumbline.workload/9",
            "known version (allowed: plumbline.workload/1)",
        ),
        (
            "18446744073709551615",
            "-3",
            "seed: -3: expected a whole number",
        ),
        ("\"sample\"", "\"\"", "not a usable name"),
    ];
    for (from, to, expected) in cases {
        let found = findings(&changed(from, to));
        assert!(found.contains(expected), "{from} -> {to}: {found}");
    }
}

#[test]
fn wrong_shapes_are_findings_and_never_panics() {
    for text in [
        "",
        "[]",
        "{}",
        "null",
        "{\"apis\": 7}",
        "{\"apis\": []}",
        "\u{feff}{}",
        "{\"a\":1",
    ] {
        assert!(!findings(text).is_empty(), "{text}");
    }
    let all = findings("{\"schema\": 1, \"name\": 2, \"seed\": \"x\", \"apis\": {}}");
    assert!(all.lines().count() >= 6, "{all}");
}

#[test]
fn a_list_of_requests_reads_what_it_writes() {
    let workload = listed();
    let text = workload.to_text();
    insta::assert_snapshot!(text);
    let read = Workload::parse("w.json", &text).expect("own output");
    assert_eq!(read, workload);
    assert_eq!(read.requests(), 3);
    assert!((read.mean_task_size_mi() - 37.5).abs() < 1e-12);
    // Half of 1,500 us over two gaps.
    assert!((read.mean_gap_ms() - 0.75).abs() < 1e-12);
}

#[test]
fn an_api_may_be_named_by_place_and_a_size_left_out() {
    let text = changed_in(
        &listed(),
        "\"api\":\"api-002\",\"task_size_mi\":12.5",
        "\"api\":1",
    );
    let workload = Workload::parse("w.json", &text).expect("valid");
    let Traffic::Listed(requests) = &workload.traffic else {
        panic!("a list");
    };
    assert_eq!((requests[0].api, requests[0].task_size_mi), (1, 423.0));
}

#[test]
fn every_wrong_request_is_named_with_its_place_and_bound() {
    let cases = [
        (
            "\"at_us\":1500,\"api\":\"api-001\"",
            "\"at_us\":-1,\"api\":\"api-001\"",
            "w.json:12:14: requests[1].at_us: -1: expected a whole number of microseconds",
        ),
        (
            "\"at_us\":0",
            "\"at_us\":0.5",
            "requests[0].at_us: 0.5: expected a whole number",
        ),
        (
            "\"at_us\":0",
            "\"at_us\":1501",
            "requests[1].at_us: 1500: earlier than the request before it (allowed: 1501 or later)",
        ),
        (
            "\"at_us\":0",
            "\"at_us\":10000000000001",
            "too late (allowed: up to 10000000000000)",
        ),
        (
            "\"api-001\",\"task_size_mi\":99.0",
            "\"api-01\",\"task_size_mi\":99.0",
            "requests[1].api: \"api-01\": no such API; did you mean \"api-001\"?",
        ),
        (
            "\"api\":\"api-001\"",
            "\"api\":2",
            "requests[1].api: 2: no such API (allowed: 0 to 1)",
        ),
        (
            "\"api\":\"api-001\"",
            "\"api\":true",
            "expected the id of an API",
        ),
        ("\"api\":\"api-001\",", "", "requests[1].api: missing field"),
        (
            "99.0",
            "0.5",
            "requests[1].task_size_mi: 0.5: too small (allowed: 1 to 100000)",
        ),
        ("99.0", "1e300", "too large"),
        (
            "\"at_us\":0",
            "\"atus\":0",
            "unknown field; did you mean \"at_us\"?",
        ),
        (
            "\"requests\"",
            "\"runs\": 3, \"requests\"",
            "runs: 3: not a field of a workload with",
        ),
    ];
    for (from, to, expected) in cases {
        let found = findings(&changed_in(&listed(), from, to));
        assert!(found.contains(expected), "{from} -> {to}: {found}");
    }
    let text = listed().to_text();
    let start = text.find("\"requests\"").expect("a list");
    let head = &text[..start];
    for (list, expected) in [
        ("[]", "would be empty"),
        ("7", "expected an array"),
        ("[7]", "an object"),
    ] {
        let found = findings(&format!("{head}\"requests\": {list}}}"));
        assert!(found.contains(expected), "{list}: {found}");
    }
}

#[test]
fn every_wrong_arrival_process_is_named_with_its_bound() {
    let constant = "{\"process\":\"constant\",\"interval_ms\":10.0}";
    let cases = [
        (
            "{\"process\":\"gamma\",\"rate_rps\":10}",
            "arrivals.cv: missing field",
        ),
        (
            "{\"process\":\"gamma\",\"rate_rps\":10,\"cv\":0}",
            "arrivals.cv: 0: too small (allowed: 0.01 to 100)",
        ),
        (
            "{\"process\":\"sine\",\"rate_rps\":10,\"amplitude\":1.5,\"period_ms\":1000}",
            "arrivals.amplitude: 1.5: too large (allowed: 0 to 1)",
        ),
        (
            "{\"process\":\"sine\",\"rate_rps\":10,\"cv\":1,\"amplitude\":1,\"period_ms\":1000}",
            "arrivals.cv: 1: not a field of sine arrivals (allowed: rate_rps, amplitude, period_ms)",
        ),
        (
            "{\"process\":\"ramp\",\"from_rps\":10}",
            "arrivals.legs: missing field",
        ),
        (
            "{\"process\":\"ramp\",\"from_rps\":10,\"legs\":[]}",
            "0 legs (allowed: 1 to 1000)",
        ),
        (
            "{\"process\":\"ramp\",\"from_rps\":10,\"legs\":[{\"to_rps\":0,\"over_ms\":5}]}",
            "arrivals.legs[0].to_rps: 0: too small (allowed: 0.001 to 1000000)",
        ),
        (
            "{\"process\":\"ramp\",\"from_rps\":-1,\"legs\":[{\"to_rps\":1,\"over_ms\":-5}]}",
            "arrivals.legs[0].over_ms: -5: too small (allowed: 0 to 604800000)",
        ),
    ];
    for (arrivals, expected) in cases {
        let found = findings(&changed(constant, arrivals));
        assert!(found.contains(expected), "{arrivals}: {found}");
    }
    let slow = changed(constant, "{\"process\":\"poisson\",\"rate_rps\":1e-3}");
    let found = findings(&slow.replace("\"runs\": 3", "\"runs\": 5000000"));
    assert!(
        found.contains(
            "10000000 requests would take 10000000000000 ms (allowed: up to 10000000000 ms)"
        ),
        "{found}"
    );
}

#[test]
fn noise_that_would_leave_the_bounds_of_a_size_is_refused() {
    let with = |cv: &str| changed("\"runs\"", &format!("\"size_cv\": {cv},\n  \"runs\""));
    let text = with("0.2");
    let workload = Workload::parse("w.json", &text).expect("valid");
    let written = workload.to_text();
    assert!(written.contains("\n  \"size_cv\": 0.2,\n"), "{written}");
    assert_eq!(Workload::parse("w.json", &written), Ok(workload.sealed()));
    assert!(findings(&with("11")).contains("size_cv: 11: too large (allowed: 0 to 10)"));
    assert!(findings(&with("-1")).contains("size_cv: -1: too small"));
    let edge = with("0.2").replace("400.25", "1.0");
    assert!(findings(&edge).contains("size_cv: 0.2: too wide for api-001"));
}

#[test]
fn a_workload_at_another_speed_keeps_its_shape() {
    let twice = sample().at_speed(2.0).expect("within bounds");
    assert!((twice.mean_gap_ms() - 5.0).abs() < 1e-12);
    assert_ne!(twice.sha256, sample().sha256);
    let slow = listed().at_speed(0.5).expect("within bounds");
    assert!((slow.mean_gap_ms() - 1.5).abs() < 1e-12);
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12, 1e-12] {
        assert!(sample().at_speed(speed).is_err(), "{speed}");
    }
    assert!(listed().at_speed(1e-12).is_err());
}

proptest! {
    #[test]
    fn any_drawn_workload_reads_what_it_writes(
        arrivals in any_arrivals(),
        runs in 1_u32..100,
        size_cv in prop_oneof![Just(0.0), 0.001_f64..0.5],
    ) {
        let mut workload = sample();
        workload.traffic = Traffic::Drawn(Drawn { runs, order: Order::Round, arrivals, size_cv });
        let workload = workload.sealed();
        let read = Workload::parse("w.json", &workload.to_text());
        prop_assert_eq!(read, Ok(workload));
    }

    #[test]
    fn any_list_reads_what_it_writes(
        gaps in prop::collection::vec((0_u64..10_000_000, 0_u32..2, 1.0_f64..100_000.0), 1..50)
    ) {
        let mut workload = sample();
        let mut at_us = 0;
        let requests = gaps.into_iter().map(|(gap_us, api, task_size_mi)| {
            at_us += gap_us;
            Request { at_us, api, task_size_mi }
        });
        workload.traffic = Traffic::Listed(requests.collect());
        let workload = workload.sealed();
        let read = Workload::parse("w.json", &workload.to_text());
        prop_assert_eq!(read, Ok(workload));
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        from in 0_usize..700, cut in 0_usize..40, put in "[\\[\\]{}\",:0-9a-z.-]{0,8}"
    ) {
        let mut text = listed().to_text();
        let from = from.min(text.len());
        let to = (from + cut).min(text.len());
        text.replace_range(from..to, &put);
        let _ = Workload::parse("w.json", &text);
    }
}
