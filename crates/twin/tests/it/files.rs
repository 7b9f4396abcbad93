//! Rows and event logs are those of a real run.

use crate::{output, stderr, twin, workloads};
use schema::event::Event;
use schema::row::COLUMNS;
use std::fs;
use std::process::Command;
use strategies::registry::{ENTRIES, Models};
use strategies::replay::replay;

fn events(path: &std::path::Path) -> Vec<Event> {
    let text = fs::read_to_string(path).expect("a log");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("an event"))
        .collect()
}

#[test]
fn every_pick_of_every_strategy_comes_out_again_when_the_log_is_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("events.jsonl");
    let workload = workloads().join("quick.json");
    for entry in ENTRIES.iter().filter(|e| e.model.is_none()) {
        let output = twin(&[
            "run",
            "--strategy",
            entry.name,
            "--workload",
            workload.to_str().expect("text"),
            "--load",
            "0.7",
            "--balancers",
            "2",
            "--network-delay",
            "exp:1ms",
            "--fetch-delay",
            "3ms",
            "--event-log",
            log.to_str().expect("text"),
        ]);
        assert!(
            output.status.success(),
            "{}: {}",
            entry.name,
            stderr(&output)
        );
        for file in ["events.jsonl", "events-1.jsonl"] {
            let verdict =
                replay(events(&folder.path().join(file)), &Models::default()).expect("a log");
            assert!(verdict.picks > 300, "{}", entry.name);
            assert_eq!(
                verdict.equal, verdict.picks,
                "{}: {:?}",
                entry.name, verdict.first_mismatch
            );
        }
    }
}

#[test]
fn a_workload_keeps_its_noise_of_sizes_under_other_arrivals() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = folder.path().join("rows.csv");
    let workload = workloads().join("scenario-w.json");
    let output = twin(&[
        "run",
        "--strategy",
        "random",
        "--workload",
        workload.to_str().expect("text"),
        "--arrivals",
        "poisson",
        "--out",
        rows.to_str().expect("text"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut reader = csv::Reader::from_path(&rows).expect("rows");
    let sizes = reader.records().filter_map(|row| {
        let row = row.expect("a row");
        let at = |name: &str| COLUMNS.iter().position(|c| *c == name).expect("a column");
        let size: f64 = row[at("task_size_mi")].parse().expect("a number");
        (&row[at("api_id")] == "api-005").then_some(size)
    });
    let sizes: Vec<f64> = sizes.collect();
    // Every tenth of 22,000 requests, mean 120 MI, coefficient of variation .2.
    let n = sizes.len() as f64;
    let mean = sizes.iter().sum::<f64>() / n;
    let cv = (sizes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n).sqrt() / mean;
    assert!((n - 2200.0).abs() < 200.0, "{n}");
    assert!(
        (mean / 120.0 - 1.0).abs() < 0.02 && (cv - 0.2).abs() < 0.015,
        "{mean} {cv}"
    );
}

#[test]
fn rows_have_the_stable_columns_and_one_line_per_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = folder.path().join("rows.csv");
    let workload = workloads().join("quick.json");
    let output = twin(&[
        "run",
        "--strategy",
        "peak-ewma:decay=5s",
        "--workload",
        workload.to_str().expect("text"),
        "--discipline",
        "fcfs",
        "--out",
        rows.to_str().expect("text"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&rows).expect("rows");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(COLUMNS.join(",").as_str()));
    let column = |name: &str| COLUMNS.iter().position(|c| *c == name).expect("a column");
    let mut seen = vec![false; 800];
    let mut warm = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |name: &str| fields[column(name)].parse::<f64>().expect(name);
        seen[number("seq") as usize] = true;
        warm += u32::from(fields[column("warmup")] == "true");
        assert_eq!(
            (fields[column("status")], fields[column("error")]),
            ("200", "")
        );
        assert!(["a", "b", "c"].contains(&fields[column("container")]));
        let latency_us = number("latency_ms") * 1e3;
        let parts = number("queue_wait_us") + number("service_time_us");
        assert!((latency_us - parts).abs() <= 2.0, "{line}");
        // Alone on a core the service takes the size at 7450 MIPS.
        assert!((number("service_time_us") - number("task_size_mi") / 7450.0 * 1e6).abs() <= 1.0);
    }
    assert!(seen.iter().all(|s| *s));
    assert_eq!(warm, 80);
}

#[test]
fn a_full_or_closed_standard_output_is_no_panic() {
    for arguments in [
        vec!["run", "--strategy", "random", "--requests", "1000"],
        vec!["optimum", "--cores", "4,3,2", "--load", "0.6"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twin"));
        command.args(arguments);
        output::a_full_or_closed_output_is_no_panic(command);
    }
}
