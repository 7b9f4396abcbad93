//! Rows and event logs are those of a real run.

use crate::{output, stderr, twin, workloads};
use schema::event::Event;
use schema::protection::{Rule, Rules, Step};
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
fn guarded_ejects_a_dead_worker_and_its_log_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, faults) = (
        folder.path().join("events.jsonl"),
        folder.path().join("f.json"),
    );
    fs::write(
        &faults,
        r#"{"version":1,"events":[{"at":"10s","on":"b","fault":"kill","restart_after":"30s"},
            {"at":"60s","on":"a","fault":"hang","for":"20s"}]}"#,
    )
    .expect("written");
    for strategy in [
        "weighted-least-request",
        "round-robin",
        "polled-own-sends",
        "maglev",
    ] {
        let output = twin(&[
            "run",
            "--strategy",
            strategy,
            "--load",
            "0.5",
            "--requests",
            "5000",
            "--network-delay",
            "1ms",
            "--protection",
            "guarded",
            "--faults",
            faults.to_str().expect("text"),
            "--event-log",
            log.to_str().expect("text"),
        ]);
        assert!(output.status.success(), "{strategy}: {}", stderr(&output));
        let events = events(&log);
        let Event::Start {
            protection, rules, ..
        } = &events[0]
        else {
            panic!("{:?}", events[0]);
        };
        assert_eq!((protection.as_str(), *rules), ("guarded", Rules::guarded()));
        let steps: Vec<(u64, u32, Step)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Ejection {
                    t_ns,
                    backend,
                    step,
                } => Some((*t_ns, *backend, *step)),
                _ => None,
            })
            .collect();
        // Five refusals in a row, then out; back by a trial after the restart.
        let is_out = |step: &Step| {
            matches!(
                step,
                Step::Ejected {
                    rule: Rule::Consecutive,
                    ..
                }
            )
        };
        let (at, backend, _) = steps.iter().find(|(.., s)| is_out(s)).expect("an ejection");
        assert!(
            *backend == 1 && (10_000_000_000..12_000_000_000).contains(at),
            "{strategy}: {at}"
        );
        let back = steps
            .iter()
            .find(|s| s.1 == 1 && s.2 == Step::Readmitted)
            .expect("back");
        assert!(
            (40_000_000_000..80_000_000_000).contains(&back.0),
            "{strategy}: {}",
            back.0
        );
        // Those that hang are found when an attempt has taken its 10 s.
        let hung = steps
            .iter()
            .find(|s| s.1 == 0 && is_out(&s.2))
            .expect("found");
        assert!(
            (70_000_000_000..75_000_000_000).contains(&hung.0),
            "{strategy}: {}",
            hung.0
        );
        let verdict = replay(events, &Models::default()).expect("a log");
        assert!(
            verdict.picks == 5000 && verdict.steps > 3,
            "{strategy}: {verdict:?}"
        );
        assert!(verdict.is_equal(), "{strategy}: {verdict:?}");
    }
}

#[test]
fn a_worker_that_fails_fast_attracts_traffic_unless_guarded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, faults) = (folder.path().join("rows.csv"), folder.path().join("f.json"));
    let text = r#"{"version":1,"events":[{"at":"0s","on":"c","fault":"fast_fail","for":"1h"}]}"#;
    fs::write(&faults, text).expect("written");
    let share_failed = |protection: &str| {
        let output = twin(&[
            "run",
            "--strategy",
            "weighted-least-request",
            "--load",
            "0.7",
            "--requests",
            "20000",
            "--protection",
            protection,
            "--faults",
            faults.to_str().expect("text"),
            "--out",
            rows.to_str().expect("text"),
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = fs::read_to_string(&rows).expect("rows");
        let failed = text
            .lines()
            .filter(|line| line.contains(",500,error:backend,"))
            .count();
        failed as f64 / 20_000.0
    };
    // Empty whenever it is looked at, it draws far more than its 2/9 of the work.
    let (plain, guarded) = (share_failed("plain"), share_failed("guarded"));
    assert!(plain > 0.4, "{plain}");
    // Over 320 s: five failures, then a trial after 5, 10, 20, 30, 30 .. s.
    assert!(
        (5.0 / 20_000.0..40.0 / 20_000.0).contains(&guarded),
        "{guarded}"
    );
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

/// A list of four requests, as a trace is imported: three sizes, two APIs, one call twice as large.
const LIST: [(&str, f64); 4] = [
    ("api-1", 200.0),
    ("api-2", 50.0),
    ("api-1", 400.0),
    ("api-2", 150.0),
];

fn listed(folder: &std::path::Path) -> String {
    let requests = LIST.iter().enumerate().map(|(i, (api, mi))| {
        format!(
            r#"{{"at_us":{},"api":"{api}","task_size_mi":{mi}}}"#,
            i * 1000
        )
    });
    let requests = requests.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"schema":"plumbline.workload/1","name":"l","seed":1,"generator":{{}},"apis":[
            {{"id":"api-1","method":"GET","url":"/one","task_size_mi":300}},
            {{"id":"api-2","method":"POST","url":"/two","task_size_mi":100}}],
            "requests":[{requests}]}}"#
    );
    let path = folder.join("list.json");
    fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn listed_requests_keep_their_order_and_sizes_under_every_arrivals() {
    let folder = tempfile::tempdir().expect("a folder");
    let (list, rows) = (listed(folder.path()), folder.path().join("rows.csv"));
    let poisson = ["--arrivals", "poisson", "--load", "0.5"];
    for (how, own_sizes) in [
        (&["--load", "0.5"][..], true),
        (&poisson[..], true),
        (&[&poisson[..], &["--sizes", "workload"]].concat()[..], true),
        (&["--arrivals", "gamma:2", "--rate", "20"][..], true),
        (&["--users", "3", "--think", "1S"][..], true),
        (&["--slots", "2"][..], true),
        (&[&poisson[..], &["--sizes", "exp"]].concat()[..], false),
    ] {
        let out = rows.to_str().expect("text");
        let base = [
            "run",
            "--strategy",
            "round-robin",
            "--workload",
            &list,
            "--requests",
            "4000",
        ];
        let output = twin(&[&base[..], how, &["--out", out]].concat());
        assert!(output.status.success(), "{how:?}: {}", stderr(&output));
        let mut reader = csv::Reader::from_path(&rows).expect("rows");
        let at = |name: &str| COLUMNS.iter().position(|c| *c == name).expect("a column");
        let (mut equal, mut last_ns) = (0, 0.0_f64);
        for row in reader.records() {
            let row = row.expect("a row");
            let number = |name: &str| row[at(name)].parse::<f64>().expect(name);
            let (api, mi) = LIST[number("seq") as usize % 4];
            assert_eq!(&row[at("api_id")], api, "{how:?}");
            equal += u32::from((number("task_size_mi") / mi - 1.0).abs() < 1e-9);
            last_ns = last_ns.max(number("intended_ns"));
        }
        assert_eq!(equal, if own_sizes { 4000 } else { 0 }, "{how:?}");
        // .5 of nine cores of 7450 MIPS, mean 200 MI: 167.6 a second, so 4000 last 23.9 s.
        if how.contains(&"0.5") {
            let seconds = 4000.0 * 200.0 / (0.5 * 9.0 * 7450.0);
            assert!(
                (last_ns * 1e-9 / seconds - 1.0).abs() < 0.06,
                "{how:?} {last_ns}"
            );
        }
    }
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

/// A request after which no other comes takes just what its candidate's line says; whoever is not picked
/// takes what it takes where it is.
#[test]
fn the_cost_of_a_candidate_is_what_the_last_request_takes_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (rows, candidates) = (path("rows.csv"), path("candidates.csv"));
    for discipline in ["ps", "fcfs"] {
        for requests in (21..60).step_by(3) {
            let requests = requests.to_string();
            // A rotation sends the last of each of three lengths to another worker.
            for strategy in ["round-robin", "weighted-random", "weighted-least-request"] {
                let output = twin(&[
                    "run",
                    "--strategy",
                    strategy,
                    "--load",
                    "0.9",
                    "--speeds",
                    "1,0.5,1",
                    "--discipline",
                    discipline,
                    "--requests",
                    &requests,
                    "--warmup",
                    "20",
                    "--poll",
                    "20ms",
                    "--usage",
                    "30ms",
                    "--out",
                    &rows,
                    "--candidates",
                    &candidates,
                ]);
                assert!(output.status.success(), "{}", stderr(&output));
                let read = |path: &str| -> Vec<std::collections::BTreeMap<String, String>> {
                    let mut reader = csv::Reader::from_path(path).expect("a file");
                    reader
                        .deserialize()
                        .map(|line| line.expect("a line"))
                        .collect()
                };
                let last = |row: &&std::collections::BTreeMap<String, String>| {
                    row["seq"].parse::<u64>().ok() == requests.parse::<u64>().ok().map(|n| n - 1)
                };
                let (rows, candidates) = (read(&rows), read(&candidates));
                assert_eq!(
                    candidates.len(),
                    3 * (requests.parse::<usize>().expect("n") - 20)
                );
                let row = rows.iter().find(last).expect("the last row");
                let there = |c: &&std::collections::BTreeMap<String, String>| {
                    last(c) && c["cores"].parse::<f64>() == row["cores"].parse::<f64>()
                };
                let chosen = candidates.iter().find(there).expect("its candidate");
                let number = |text: &str| text.parse::<f64>().expect("a number");
                let (cost, took) = (number(&chosen["cost_ms"]), number(&row["latency_ms"]));
                assert!(
                    (cost - took).abs() < 1e-5,
                    "{strategy} {requests}: {cost}, {took}"
                );
                for name in ["in_flight", "active_requests", "cpu_percent", "memory_mib"] {
                    let (known, told) = (number(&chosen[name]), number(&row[name]));
                    assert_eq!(known, told, "{strategy} {requests}: {name}");
                }
            }
        }
    }
}
