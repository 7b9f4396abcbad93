//! `twin regret` from outside: rows of the twin, a result folder, refusals.

use crate::{stderr, stdout, twin};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Runs 4/3/2 cores under `strategy` at load 0.7 into `rows`.
fn recorded(strategy: &str, rows: &Path, more: &[&str]) {
    let out = rows.to_str().expect("text");
    let always = ["run", "--requests", "3000", "--out", out];
    let output = twin(&[&always[..], &["--strategy", strategy], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

fn judged(arguments: &[&str]) -> Value {
    let output = twin(&[&["regret", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn regret_falls_from_blind_to_counting_to_knowing_and_the_oracle_closes_the_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let strategies = [
        "smooth-weighted-round-robin",
        "weighted-least-request",
        "oracle-marginal",
    ];
    let files: Vec<String> = strategies
        .iter()
        .map(|s| {
            let rows = folder.path().join(format!("{s}.csv"));
            recorded(s, &rows, &["--load", "0.8", "--network-delay", "250us"]);
            rows.display().to_string()
        })
        .collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let arguments = [&["--cores", "4,3,2", "--rows"], &names[..]].concat();
    let answer = judged(&arguments);
    let lines = answer["strategies"].as_array().expect("a list");
    let regret: Vec<f64> = lines
        .iter()
        .map(|l| number(&l["regret_mc_ms"]["mean"]))
        .collect();
    assert!(regret[0] > regret[1] && regret[1] > regret[2], "{regret:?}");
    // It prefers fewer requests by up to a thousandth of a ms, and hears of ends 250 us late.
    assert!(regret[2] < 1e-2, "{regret:?}");
    assert_eq!(number(&lines[2]["gap_closed"]), 1.0);
    assert_eq!(number(&lines[1]["gap_closed"]), 0.0);
    for line in lines {
        let shares = line["rank_shares"].as_array().expect("a list");
        let sum: f64 = shares.iter().map(number).sum();
        assert!((sum - 1.0).abs() < 1e-9 && line["picks"] == 2700, "{line}");
    }
    for speed in answer["runs"][0]["measured_speeds"]
        .as_array()
        .expect("a list")
    {
        assert!((number(speed) - 1.0).abs() < 1e-4, "{speed}");
    }
    let output = twin(&[&["regret"], &arguments[..]].concat());
    let table = stdout(&output);
    let head = table.lines().next().unwrap_or_default();
    assert!(
        head.starts_with("strategy") && head.ends_with("gap closed"),
        "{table}"
    );
}

#[test]
fn a_result_folder_is_judged_by_its_logs_as_its_rows_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    fs::create_dir(root.join("events")).expect("made");
    let rows = root.join("rows.csv");
    let log = root.join("events/one.jsonl");
    recorded("p2c", &rows, &["--event-log", log.to_str().expect("text")]);
    // The balancer's log names requests by their run.
    let text = fs::read_to_string(&log).expect("a log");
    let named = text.replace("\"request_id\":\"", "\"request_id\":\"twin-1-");
    fs::write(&log, &named).expect("written");
    let worker = |name: &str, cores: f64| json!({"name": name, "cores": cores, "memory_bytes": 1, "weight": 1});
    let arm = json!({"run_id": "twin-1", "block": 1, "position": 1, "label": "p2c", "strategy": "p2c", "seed": 1,
        "state": "done", "rows": 3000, "events": "events/one.jsonl", "flags": []});
    let manifest = json!({
        "schema": "plumbline.manifest/1", "name": "n", "command": [], "created_utc": "", "complete": true,
        "interrupted": false,
        "versions": {"plumbline": "0", "git_commit": null, "binaries_sha256": {}},
        "host": {"system": "", "cpu_model": "", "cores": 1, "memory_bytes": 1, "loop": "",
            "native_mips_per_core": 1.0, "native_mips_per_core_all_busy": 1.0},
        "backend": {"kind": "process", "reason": "",
            "workers": [worker("a", 4.0), worker("b", 3.0), worker("c", 2.0)]},
        "preset": "p", "protection": "plain",
        "burn": {"mips_per_core": 7450.0, "fraction": 1.0, "emulated": false, "reason": "", "load": 0.8},
        "workload": {"name": "w", "sha256": "", "apis": 1, "requests": 3000, "mean_mi": 1.0, "rate_rps": 1.0},
        "seed": 1, "stats_interval_ms": 100.0, "blocks": 1, "warmup_requests": 300, "strategies": ["p2c"],
        "arms": [arm], "flags": [],
    });
    fs::write(root.join("manifest.json"), manifest.to_string()).expect("written");
    let root = root.to_str().expect("text");
    let by_log = judged(&[root]);
    let by_rows = judged(&["--rows", rows.to_str().expect("text"), "--cores", "4,3,2"]);
    assert_eq!(by_log["strategies"], by_rows["strategies"]);
    assert_eq!(by_log["runs"][0]["picks"], 2700);

    let refused = |expected: &str| {
        let output = twin(&["regret", root]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected), "{expected}: {text}");
    };
    let lines: Vec<&str> = named.lines().collect();
    fs::write(&log, lines[..lines.len() - 3].join("\n")).expect("written");
    refused("the log ends before the outcome of dispatch");
    let gap = r#"{"event":"gap","t_ns":1,"lost":9}"#;
    fs::write(&log, format!("{}\n{gap}\n", lines[0])).expect("written");
    refused("one.jsonl:2:1: lines were lost here");
    let all = fs::read_to_string(&rows).expect("rows");
    let cut: Vec<&str> = all.split_inclusive('\n').take(2000).collect();
    fs::write(&rows, cut.concat()).expect("written");
    refused("rows.csv: twin-1: 1999 rows of 3000; bring the recorded file back");
    fs::write(Path::new(root).join("manifest.json"), "{}").expect("written");
    refused("not a manifest");
    fs::write(Path::new(root).join("manifest.json"), "[]").expect("written");
    refused("not a manifest: invalid type: sequence, expected an object with named fields");
}

#[test]
fn rows_that_cannot_be_judged_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let name = path.to_str().expect("text");
    recorded("random", &path, &["--load", "0.5"]);
    let whole = fs::read_to_string(&path).expect("rows");
    let refused = |text: &str, more: &[&str], expected: &str| {
        fs::write(&path, text).expect("written");
        let output = twin(&[&["regret", "--rows", name], more].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{expected}: {text}");
        assert!(text.contains(expected), "{expected}: {text}");
        assert!(stdout(&output).is_empty());
    };
    let cores = ["--cores", "4,3,2"];
    let with = |more: &[&'static str]| [&cores, more].concat();
    refused(&whole, &[], "--cores");
    refused(&whole, &["--cores", "4,3,x"], "--cores: 4,3,x");
    refused(&whole, &["--cores", "1*1001"], "(allowed: up to 1000)");
    refused(
        &whole,
        &["--cores", "4,2,3"],
        "give the --cores that the rows were made with",
    );
    refused(
        &whole,
        &["--cores", "4,3"],
        "container: c: no such worker (allowed: a, b)",
    );
    refused(
        &whole,
        &with(&["--mips-per-core", "1500"]),
        "worker a ran at 4.967 of the speed stated (allowed: 0.8 to 1.25)",
    );
    refused("", &cores, "not a rows file: no column run_id");
    refused(
        "a,b\n1,2\n",
        &cores,
        "rows.csv:1:1: not a rows file: no column run_id, block",
    );
    let header = whole.lines().next().expect("a header");
    refused(&format!("{header}\n"), &cores, "no rows");
    refused(
        &whole.replacen(",true,", ",maybe,", 1),
        &cores,
        "rows.csv:2:1: not a rows file",
    );
    refused(
        &whole[..whole.len() - 9],
        &cores,
        "the last line is cut off",
    );
    let mut lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let lost = lines.remove(1000);
    refused(
        &lines.concat(),
        &cores,
        "this request has no row; bring the whole file back",
    );
    lines.push(lines[1]);
    lines.push(lost);
    refused(&lines.concat(), &cores, "two rows of this request");
    let first = whole
        .lines()
        .find(|l| l.starts_with("twin-1,,random,0,"))
        .expect("the first");
    let other = first
        .replacen("twin-1", "other", 1)
        .replacen(",true,", ",false,", 1);
    let apart = format!("{whole}{other}\n{first}\n");
    refused(
        &apart,
        &cores,
        "rows.csv:3003:1: run_id: twin-1: rows of this run stand apart",
    );
    let long = format!("{header}\n{}\n", "x".repeat(1 << 17));
    refused(&long, &cores, "a line is longer than 65536 bytes");
    recorded("random", &path, &["--discipline", "fcfs"]);
    let queued = fs::read_to_string(&path).expect("rows");
    refused(
        &queued,
        &cores,
        "say --discipline fcfs if they serve in order",
    );
    for (arguments, expected) in [
        (vec!["regret", "/no/such/folder"], "cannot read it"),
        (vec!["regret"], "required"),
        (
            vec!["regret", "--rows", "/dev/zero", "--cores", "1"],
            "is longer than",
        ),
    ] {
        let output = twin(&arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
