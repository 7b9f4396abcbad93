//! What a run says.

use crate::{run_json, stderr, stdout, twin, workloads};
use serde_json::Value;

#[test]
fn the_json_has_the_stable_keys_in_order() {
    let output = twin(&[
        "run",
        "--json",
        "--strategy",
        "weighted-least-request",
        "--load",
        "0.5",
        "--requests",
        "20000",
    ]);
    let text = stdout(&output);
    let keys = [
        "strategy",
        "requests",
        "load",
        "mean_service_ms",
        "mean_ms",
        "half_width_ms",
        "mean_over_service",
        "p50_ms",
        "p95_ms",
        "p99_ms",
        "unstable",
        "shares",
    ];
    let places: Vec<usize> = keys
        .iter()
        .map(|k| text.find(&format!("\"{k}\":")).expect(k))
        .collect();
    assert!(places.is_sorted(), "{text}");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json.as_object().expect("an object").len(), keys.len());
    let shares = json["shares"].as_object().expect("an object");
    assert!(shares.keys().eq(["a", "b", "c"]));
    let sum: f64 = shares.values().map(|s| s.as_f64().expect("a number")).sum();
    assert!((sum - 1.0).abs() < 1e-12);
}

#[test]
fn a_lone_processor_sharing_worker_has_the_mean_of_theory() {
    // M/M/1: E[T] = S / (1 - load), whatever the discipline.
    for discipline in ["ps", "fcfs"] {
        let json = run_json(&[
            "--strategy",
            "random",
            "--cores",
            "1",
            "--load",
            "0.5",
            "--discipline",
            discipline,
        ]);
        let mean = json["mean_over_service"].as_f64().expect("a number");
        let error = json["half_width_ms"].as_f64().expect("a number") / 100.0;
        assert!(
            (mean - 2.0).abs() < 2.0 * error && error < 0.03,
            "{mean} +- {error}"
        );
        let median = json["p50_ms"].as_f64().expect("a number");
        // FCFS latency is exponential with that mean; only there the median is known.
        if discipline == "fcfs" {
            assert!(
                (median / 200.0 - std::f64::consts::LN_2).abs() < 0.02,
                "{median}"
            );
        }
    }
}

#[test]
fn an_overloaded_worker_is_named_and_has_no_mean() {
    let arguments = [
        "--strategy",
        "round-robin",
        "--cores",
        "4,3,2",
        "--load",
        "0.7",
        "--requests",
        "200000",
    ];
    let json = run_json(&arguments);
    assert_eq!(json["unstable"], true);
    assert_eq!(json["overloaded"], "c");
    for key in [
        "mean_ms",
        "half_width_ms",
        "mean_over_service",
        "p50_ms",
        "p95_ms",
        "p99_ms",
    ] {
        assert!(json[key].is_null(), "{key}");
    }
    let text = stdout(&twin(&[&["run"][..], &arguments].concat()));
    assert!(
        text.contains("unstable") && text.contains("worker c"),
        "{text}"
    );
    assert!(!text.contains("mean ") && !text.contains("p99"), "{text}");
    // At and beyond capacity it runs and says so.
    for load in ["1", "1.5"] {
        let json = run_json(&["--strategy", "p2c", "--load", load, "--requests", "300000"]);
        assert_eq!(json["unstable"], true, "{load}");
    }
}

#[test]
fn a_workload_gives_its_own_requests_mean_and_load() {
    let path = workloads().join("paper.json");
    let path = path.to_str().expect("text");
    let json = run_json(&[
        "--strategy",
        "smooth-weighted-round-robin",
        "--workload",
        path,
    ]);
    assert_eq!(json["requests"], 20_000);
    // 412 MI at 7450 MIPS every 10 ms on nine cores.
    let service = json["mean_service_ms"].as_f64().expect("a number");
    assert!((service - 412.0 / 7.45).abs() < 0.1, "{service}");
    let load = json["load"].as_f64().expect("a number");
    assert!((load - service / 90.0).abs() < 1e-9, "{load}");
    let other = run_json(&[
        "--strategy",
        "random",
        "--workload",
        path,
        "--load",
        "0.3",
        "--requests",
        "50000",
    ]);
    assert_eq!(other["requests"], 50_000);
    assert!((other["load"].as_f64().expect("a number") - 0.3).abs() < 1e-12);
}

#[test]
fn flags_go_before_the_scenario_file_and_the_same_words_mean_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.json");
    let text =
        r#"{"strategy":"p2c","cores":[2,2],"load":0.6,"sizes":"h2:4","requests":50000,"seed":5}"#;
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("text");
    let by_file = run_json(&["--scenario", path]);
    let by_flags = run_json(&[
        "--strategy",
        "p2c",
        "--cores",
        "2,2",
        "--load",
        "0.6",
        "--sizes",
        "h2:4",
        "--requests",
        "50000",
        "--seed",
        "5",
    ]);
    assert_eq!(by_file, by_flags);
    let over = run_json(&["--scenario", path, "--seed", "6"]);
    assert_ne!(over["mean_ms"], by_file["mean_ms"]);
}

#[test]
fn beyond_26_workers_names_are_numbers() {
    let json = run_json(&[
        "--strategy",
        "random",
        "--cores",
        "1*27",
        "--requests",
        "20000",
    ]);
    let shares = json["shares"].as_object().expect("an object");
    assert!(shares.len() == 27 && shares.contains_key("w0") && shares.contains_key("w26"));
}

#[test]
fn arrivals_as_the_request_generator_spells_them_have_their_rate() {
    for (arrivals, load) in [("gamma:3", "0.5"), ("sine:0.5:60s", "0.5")] {
        let flags = [
            "--strategy",
            "p2c",
            "--arrivals",
            arrivals,
            "--load",
            load,
            "--requests",
            "50000",
        ];
        assert_eq!(run_json(&flags)["load"].to_string(), load, "{arrivals}");
    }
    let json = run_json(&[
        "--strategy",
        "p2c",
        "--arrivals",
        "poisson:60%",
        "--requests",
        "50000",
    ]);
    assert!((json["load"].as_f64().expect("a number") - 0.6).abs() < 1e-9);
}

/// Mean latency, ms, of ten classes with noisy sizes on three whole workers at random gaps.
fn mean_of_noisy_classes(more: &[&str]) -> f64 {
    let workload = workloads().join("scenario-w.json").display().to_string();
    let traffic = [
        "--workload",
        &workload,
        "--sizes",
        "workload",
        "--arrivals",
        "poisson",
    ];
    let workers = ["--cores", "4,3,2", "--mips-per-core", "1500"];
    let length = ["--requests", "22000", "--warmup", "2000"];
    let all = [&traffic[..], &workers, &length, more].concat();
    run_json(&all)["mean_ms"].as_f64().expect("a mean")
}

#[test]
fn who_is_told_the_work_left_knows_whose_it_is_whether_a_log_is_written_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("events.jsonl");
    let scene = |strategy: &str, more: &[&str]| {
        let own = ["--strategy", strategy, "--load", "0.8", "--poll", "10ms"];
        mean_of_noisy_classes(&[&own[..], more].concat())
    };
    let told = scene("wl-mc:reports=work", &[]);
    let log = log.display().to_string();
    assert_eq!(told, scene("wl-mc:reports=work", &["--event-log", &log]));
    // Nearly the knowledge of the oracle; a guess closes about half of the gap.
    let (live, oracle) = (
        scene("weighted-least-request", &[]),
        scene("oracle-marginal", &[]),
    );
    let closed = (live - told) / (live - oracle);
    assert!(closed > 0.8, "{live} {told} {oracle}");
}

#[test]
fn beside_other_balancers_own_completions_do_not_pass_for_slow_workers() {
    let mean = |strategy: &str| {
        let own = ["--strategy", strategy, "--load", "0.6", "--poll", "100ms"];
        mean_of_noisy_classes(&[&own[..], &["--balancers", "4"]].concat())
    };
    let ratio = mean("wl-mc") / mean("weighted-least-request");
    assert!(ratio < 1.01, "{ratio}");
}

#[test]
fn a_handful_of_requests_is_too_short_and_not_unstable() {
    for requests in ["1", "2", "10", "19"] {
        for seed in ["1", "2", "3", "4", "5"] {
            let base = ["--strategy", "round-robin", "--load", "0.9", "--seed", seed];
            let run = run_json(&[&base[..], &["--warmup", "0", "--requests", requests]].concat());
            assert_eq!(
                (&run["unstable"], &run["too_short"]),
                (&false.into(), &true.into())
            );
        }
    }
    let long = run_json(&["--strategy", "p2c", "--requests", "20000"]);
    assert!(long["too_short"].is_null());
}

#[test]
fn several_models_are_found_by_name_and_by_what_they_predict_from() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let file = |name: &str| models.join(name).display().to_string();
    let (live, paper) = (file("live.plbtab"), file("paper.plbtab"));
    let named = [format!("one={paper}"), format!("two={live}")];
    let workload = workloads().join("paper.json");
    let mean = |strategy: &str, models: &[&str]| {
        let mut arguments = vec!["--strategy", strategy, "--requests", "2000"];
        arguments.extend(["--workload", workload.to_str().expect("text")]);
        models.iter().for_each(|m| arguments.extend(["--model", m]));
        run_json(&arguments)["mean_ms"].as_f64().expect("a mean")
    };
    let both = [named[0].as_str(), named[1].as_str()];
    // The one named, wherever it stands; a folder gives all of them.
    assert_eq!(
        mean("plb-paper:model=one", &both),
        mean("plb-paper", &[&paper])
    );
    assert_eq!(
        mean("plb-live:model=two", &both),
        mean("plb-live", &[&live])
    );
    let folder = models.display().to_string();
    assert_eq!(
        mean("plb-live:model=live", &[&folder]),
        mean("plb-live", &[&live])
    );
}

#[test]
fn a_table_that_is_damaged_or_predicts_from_something_else_is_refused() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = folder.path().join("damaged.plbtab");
    let refused = |strategy: &str, model: &std::path::Path, expected: &str| {
        let model = model.display().to_string();
        let output = twin(&["run", "--strategy", strategy, "--model", &model]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{strategy} {model}: {text}");
        assert!(
            text.starts_with("error: ") && text.contains(expected),
            "{strategy} {model}: {text}"
        );
        assert!(stdout(&output).is_empty());
    };
    let table = |name: &str| models.join(format!("{name}.plbtab"));
    for (strategy, own, others) in [
        ("plb-paper", "paper", ["live", "docker"]),
        ("plb-live", "live", ["paper", "docker"]),
        ("plb-docker", "docker", ["paper", "live"]),
    ] {
        let whole = std::fs::read(table(own)).expect("a table");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        for bad in [&bytes[..], &whole[..middle], &whole[..11], b""] {
            std::fs::write(&damaged, bad).expect("written");
            refused(strategy, &damaged, "damaged.plbtab");
        }
        for other in others {
            refused(strategy, &table(other), "needs a latency model trained on");
        }
    }
    let from =
        "predicts from active and mean50, the strategy reads cpu_percent and memory_used_mib";
    refused("plb-docker:model=paper", &table("paper"), from);
    let from =
        "predicts from cpu_percent and memory_used_mib, the strategy reads active and mean50";
    refused("plb-paper:model=docker", &table("docker"), from);
}
