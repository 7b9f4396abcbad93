use super::{Api, Arrivals, Method, Order, Workload};

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
        runs: 3,
        order: Order::Shuffled,
        arrivals: Arrivals::Constant { interval_ms: 10.0 },
        sha256: String::new(),
    }
    .sealed()
}

fn findings(text: &str) -> String {
    Workload::parse("w.json", text)
        .expect_err("must be refused")
        .to_string()
}

/// The sample with one piece of its text replaced and the digest left out.
fn changed(from: &str, to: &str) -> String {
    let text = sample().to_text();
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
            "unknown arrival process (allowed: constant, poisson)",
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
