//! `twin compare` from outside.

use crate::{run_json, stderr, stdout, twin};
use serde_json::Value;

const STRATEGIES: &str = "smooth-weighted-round-robin,weighted-least-request,oracle-marginal";

fn compare(more: &[&str]) -> String {
    let base = ["compare", "--load", "0.8", "--requests", "20000"];
    let output = twin(&[&base, more].concat());
    assert!(output.status.success(), "{more:?}: {}", stderr(&output));
    stdout(&output)
}

fn json(more: &[&str]) -> Value {
    serde_json::from_str(&compare(&[more, &["--json"]].concat())).expect("JSON")
}

#[test]
fn each_replication_is_the_run_of_its_seed_and_threads_change_nothing() {
    let flags = [
        "--strategies",
        STRATEGIES,
        "--replications",
        "3",
        "--seed",
        "5",
    ];
    let one = compare(&[&flags[..], &["--threads", "1", "--json"]].concat());
    let many = compare(&[&flags[..], &["--threads", "3", "--json"]].concat());
    assert_eq!(one, many);
    let told: Value = serde_json::from_str(&one).expect("JSON");
    let mut mean = 0.0;
    for seed in ["5", "6", "7"] {
        let run = run_json(&[
            "--strategy",
            "weighted-least-request",
            "--load",
            "0.8",
            "--requests",
            "20000",
            "--seed",
            seed,
        ]);
        mean += run["mean_ms"].as_f64().expect("a number") / 3.0;
    }
    let got = told["strategies"][1]["mean_ms"]["point"]
        .as_f64()
        .expect("a number");
    assert!((got - mean).abs() < 1e-9, "{got} {mean}");
}

/// Round robin draws nothing: its runs differ only by their requests.
fn spread_of_round_robin(workload: &str, more: &[&str]) -> (Value, String) {
    let flags = [
        "compare",
        "--strategies",
        "round-robin",
        "--workload",
        workload,
    ];
    let text = stdout(&twin(&[&flags[..], more].concat()));
    let told = stdout(&twin(&[&flags[..], more, &["--json"]].concat()));
    let told: Value = serde_json::from_str(&told).expect("JSON");
    (told["strategies"][0]["mean_ms"].clone(), text)
}

#[test]
fn a_workload_has_another_schedule_in_every_replication_and_a_list_says_that_it_has_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name).display().to_string();
    let drawn = r#"{"schema":"plumbline.workload/1","name":"w","seed":3,"apis":[
        {"id":"a","method":"GET","url":"/a","task_size_mi":300.0},
        {"id":"b","method":"GET","url":"/b","task_size_mi":900.0}],
        "runs":1000,"order":"shuffled","arrivals":{"process":"poisson","rate_rps":60.0}}"#;
    std::fs::write(of("drawn.json"), drawn).expect("written");
    let (mean, text) = spread_of_round_robin(&of("drawn.json"), &[]);
    let bound = |name: &str| mean[name].as_f64().expect("a bound");
    assert!(
        bound("low") < bound("point") && bound("point") < bound("high"),
        "{mean}"
    );
    assert!(!text.contains("the same in every replication"), "{text}");
    let run = run_json(&["--workload", &of("drawn.json"), "--strategy", "round-robin"]);
    let (first, _) = spread_of_round_robin(&of("drawn.json"), &["--replications", "1"]);
    assert_eq!(
        first["point"], run["mean_ms"],
        "the first is the workload's own"
    );

    let requests: Vec<String> = (0..2000)
        .map(|i| format!(r#"{{"at_us":{},"api":"a"}}"#, i * 20_000))
        .collect();
    let listed = format!(
        r#"{{"schema":"plumbline.workload/1","name":"w","seed":3,"apis":[{{"id":"a","method":"GET",
        "url":"/a","task_size_mi":300.0}}],"requests":[{}]}}"#,
        requests.join(",")
    );
    std::fs::write(of("listed.json"), listed).expect("written");
    let (mean, text) = spread_of_round_robin(&of("listed.json"), &[]);
    assert_eq!(mean["low"], mean["high"], "{mean}");
    assert!(text.contains("the same in every replication"), "{text}");
}

#[test]
fn live_counts_are_claimed_to_be_faster_than_weights_alone() {
    // Theory of the same scenario: 1.2688 for the counts, about 1.631 for the weights.
    let told = json(&["--strategies", STRATEGIES]);
    assert_eq!(
        (&told["baseline"], &told["replications"]),
        (&Value::from("smooth-weighted-round-robin"), &Value::from(8))
    );
    let arms = told["strategies"].as_array().expect("a list");
    let live = &arms[1];
    assert_eq!(
        (&live["claim"], &live["rank"]),
        (&Value::from("faster"), &Value::from(2))
    );
    let ratio = &live["against_baseline"]["mean_ms"]["ratio"];
    let of = |key: &str| ratio[key].as_f64().expect("a number");
    assert!((of("point") - 1.2688 / 1.631).abs() < 0.03, "{ratio}");
    assert!(
        of("low") < of("point") && of("point") < of("high"),
        "{ratio}"
    );
    assert_eq!(arms[2]["oracle"], true);
    let gaps = arms
        .iter()
        .map(|a| a["gap_closed"].as_f64().expect("a number"));
    let gaps: Vec<f64> = gaps.collect();
    assert!(
        gaps[0] < -1.0 && gaps[1] == 0.0 && gaps[2] == 1.0,
        "{gaps:?}"
    );
}

#[test]
fn work_left_in_lines_shared_with_other_balancers_is_no_slower_than_live_counts() {
    let told = json(&[
        "--strategies",
        "weighted-least-request,wl-mc:discipline=fcfs,wl-mc:discipline=fcfs,reports=work",
        "--discipline",
        "fcfs",
        "--balancers",
        "4",
        "--replications",
        "3",
    ]);
    let ratio = |at: usize| {
        let ratio = &told["strategies"][at]["against_baseline"]["mean_ms"]["ratio"]["point"];
        ratio.as_f64().expect("a number")
    };
    // Nobody knows more than a quarter of the requests: no sizes can be put to use, and none may harm.
    assert!((0.97..1.005).contains(&ratio(1)), "{}", ratio(1));
    // Who is told of all of them knows that an own one behind them waits, and calls no worker slow for it.
    assert!((0.90..0.98).contains(&ratio(2)), "{}", ratio(2));
}

#[test]
fn an_unstable_strategy_has_the_word_and_no_figure() {
    let flags = ["--strategies", "round-robin,p2c", "--replications", "2"];
    let told = json(&flags);
    let (bad, good) = (&told["strategies"][0], &told["strategies"][1]);
    assert_eq!(
        (&bad["unstable"], &bad["rank"]),
        (&Value::from(true), &Value::Null)
    );
    assert!(
        ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "mean_over_service"]
            .iter()
            .all(|k| bad[k].is_null())
    );
    assert!(good["mean_ms"]["point"].is_number());
    assert!(
        good["against_baseline"]
            .as_object()
            .expect("an object")
            .is_empty()
    );
    let text = compare(&flags);
    let line = text
        .lines()
        .find(|l| l.starts_with("round-robin"))
        .expect("a line");
    assert!(
        line.contains("unstable") && text.contains("runs unstable"),
        "{text}"
    );
    assert!(
        text.contains("too few replications for a claim: 6 are needed"),
        "{text}"
    );
}

#[test]
fn the_csv_has_one_line_per_strategy_and_as_many_fields_as_names() {
    let list = "p2c,peak-ewma:decay=5s,weighted-least-request";
    let text = compare(&["--strategies", list, "--replications", "2", "--csv"]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let lines: Vec<_> = reader.records().map(|r| r.expect("a line")).collect();
    let strategies: Vec<&str> = lines.iter().map(|l| &l[0]).collect();
    assert_eq!(
        strategies,
        ["p2c", "peak-ewma:decay=5s", "weighted-least-request"]
    );
    assert!(lines.iter().all(|l| l.len() == names.len()));
    let at = |name: &str| names.iter().position(|n| n == name).expect(name);
    assert!(lines[0][at("mean_ratio")].is_empty() && !lines[2][at("mean_ratio")].is_empty());
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_next_step() {
    let cases: [(&[&str], &str); 6] = [
        (
            &["--strategies", "p2c,p2c"],
            "p2c is named twice; leave one out",
        ),
        (&["--strategies", "p2c,rnd"], "unknown strategy"),
        (&["--strategies", "p2c,"], "unknown strategy"),
        (
            &["--strategies", "p2c", "--strategy", "random"],
            "name it in --strategies",
        ),
        (
            &["--strategies", "p2c", "--seed", "18446744073709551610"],
            "0 to 18446744073709551608",
        ),
        (&["--strategies", "p2c", "--replications", "0"], "1..=10000"),
    ];
    for (flags, said) in cases {
        let output = twin(&[&["compare"], flags].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {text}");
        assert!(text.contains(said) && stdout(&output).is_empty(), "{text}");
    }
}
