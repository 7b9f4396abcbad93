use std::process::Command;

use super::ground::{Ground, json, programs, stderr};

const CALLS: u64 = 60;

#[test]
fn workers_have_the_cores_the_discipline_and_the_reports_asked_for() {
    let ground = Ground::new("other-workers");
    let workload = ground.workload(CALLS as u32);
    let output = ground
        .testbed(&[
            "bench",
            "--strategies",
            "wl-mc:discipline=fcfs,reports=work",
        ])
        .args([
            "--cores",
            "0.8,0.6,0.4",
            "--discipline",
            "fcfs",
            "--tell-work-left",
            "--ask-first",
            "50ms",
        ])
        .args(["--blocks", "1", "--no-report", "--backend", "process"])
        .args([
            "--burn-fraction",
            "0.01",
            "--load",
            "0.7",
            "--out",
            "out",
            "--workload",
        ])
        .arg(&workload)
        .output()
        .expect("runs");
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    let out = ground.path("out");
    let manifest = json(&out.join("manifest.json"));
    let backend = &manifest["backend"];
    assert_eq!(backend["discipline"], "fcfs");
    assert_eq!(backend["tell_work_left"], true);
    assert_eq!(manifest["ask_first_ms"], 50.0);
    let shapes: Vec<_> = backend["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .map(|w| (w["cores"].as_f64(), w["weight"].as_u64()))
        .collect();
    let wanted = [(0.8, 4), (0.6, 3), (0.4, 2)].map(|(c, w)| (Some(c), Some(w)));
    assert_eq!(shapes, wanted);
    // One server each at this load: some request waited, which under processor sharing none does.
    let mut rows = csv::Reader::from_path(out.join("rows.csv")).expect("rows");
    let header = rows.headers().expect("a header");
    let at = header.iter().position(|c| c == "queue_wait_us");
    let at = at.expect("queue_wait_us");
    let waited: Vec<u64> = rows
        .records()
        .filter_map(|row| row.expect("a row")[at].parse().ok())
        .collect();
    assert_eq!(waited.len() as u64, 2 * CALLS);
    assert!(waited.iter().any(|us| *us > 0), "{waited:?}");
    let log = out.join(manifest["arms"][0]["events"].as_str().expect("events"));
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("work_left"), "no report of work left");
    assert!(log.contains(r#""source":"probe""#), "nobody was asked");
    ground.assert_nothing_left();
}

#[test]
fn a_bench_of_processes_fills_a_folder_that_adds_up() {
    let ground = Ground::new("whole-line");
    let workload = ground.workload(CALLS as u32);
    let output = ground
        .testbed(&[
            "bench",
            "--strategies",
            "round-robin,random",
            "--blocks",
            "2",
            "--no-report",
        ])
        .args(["--burn-fraction", "0.01", "--out", "out", "--workload"])
        .arg(&workload)
        .output()
        .expect("runs");
    let text = stderr(&output);
    // 3: a busy machine may send late; everything else must be right all the same.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    assert!(
        text.contains("Docker cannot be used"),
        "the fallback is said: {text}"
    );
    ground.assert_nothing_left();

    let out = ground.path("out");
    let manifest = json(&out.join("manifest.json"));
    assert_eq!(manifest["complete"], true, "{manifest}");
    assert_eq!(manifest["backend"]["kind"], "process");
    assert_eq!(manifest["flags"][0], "emulated");
    let arms = manifest["arms"].as_array().expect("arms");
    assert_eq!(arms.len(), 6);
    for arm in arms {
        assert_eq!(arm["state"], "done");
        assert_eq!(arm["rows"], CALLS);
        assert!(arm.get("mismatches").is_none(), "{arm}");
        let events = out.join(arm["events"].as_str().expect("events"));
        let replay = Command::new(programs().join("balancer"))
            .arg("replay")
            .arg(&events)
            .output()
            .expect("runs");
        assert!(replay.status.success(), "{replay:?}");
    }
    let rows = std::fs::read_to_string(out.join("rows.csv")).expect("rows");
    assert_eq!(rows.lines().count() as u64, 1 + 6 * CALLS);
    assert!(!out.join("parts").exists(), "rows.csv holds the parts");

    let summary = json(&out.join("summary.json"));
    let labels: Vec<&str> = summary["strategies"]
        .as_array()
        .expect("strategies")
        .iter()
        .map(|s| s["label"].as_str().expect("label"))
        .collect();
    assert_eq!(labels, ["round-robin", "random", "aa:round-robin"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["emulated f=0.01", "aa:round-robin", "MI/ms", "share a/b/c"] {
        assert!(table.contains(part), "{part}: {table}");
    }

    let again = ground
        .testbed(&["bench", "--out", "out"])
        .output()
        .expect("runs");
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("holds a result already"));

    let summary_before = std::fs::read(out.join("summary.json")).expect("summary");
    for damaged in [
        String::new(),
        rows[..rows.len() / 2].to_string(),
        rows.replace(",GET,", ",PUT,"),
    ] {
        std::fs::write(out.join("rows.csv"), damaged).expect("write");
        for command in [&["report", "out"][..], &["compare", "out", "out"]] {
            let refused = ground.testbed(command).output().expect("runs");
            assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
            assert!(stderr(&refused).contains("rows"), "{}", stderr(&refused));
        }
        let summary = std::fs::read(out.join("summary.json")).expect("summary");
        assert!(summary == summary_before, "nothing is lost");
    }
    std::fs::write(out.join("rows.csv"), &rows).expect("write");

    let compared = ground
        .testbed(&["compare", "out", "out"])
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    let valid = output.status.success();
    assert_eq!(text.contains("B/A 1.0000"), valid, "{text}");
    assert_eq!(text.contains("NOT VALID"), !valid, "{text}");
    assert!(
        !text.contains("INCOMPLETE") && text.contains("not paired"),
        "{text}"
    );

    let manifest = std::fs::read_to_string(out.join("manifest.json")).expect("manifest");
    let cut = manifest.replace("\"complete\": true", "\"complete\": false");
    assert_ne!(cut, manifest);
    std::fs::write(out.join("manifest.json"), cut).expect("write");
    let compared = ground
        .testbed(&["compare", "out", "out"])
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(text.contains("INCOMPLETE"), "{text}");
}

#[test]
fn a_threshold_that_holds_ends_with_3() {
    let ground = Ground::new("threshold");
    let workload = ground.workload(20);
    let output = ground
        .testbed(&[
            "bench",
            "--strategies",
            "round-robin",
            "--blocks",
            "1",
            "--no-report",
        ])
        .args(["--burn-fraction", "0.01", "--out", "out", "--json"])
        .args(["--fail-if", "round-robin.mean_ms > 0.001", "--workload"])
        .arg(&workload)
        .output()
        .expect("runs");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("--fail-if holds: round-robin.mean_ms > 0.001"),
        "{text}"
    );
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["schema"], "plumbline.summary/1");
    ground.assert_nothing_left();
}

#[test]
fn the_model_on_container_figures_is_found_kept_and_replayed_with() {
    let ground = Ground::new("docker-model");
    let workload = ground.workload(CALLS as u32);
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let output = ground
        .testbed(&["bench", "--strategies", "round-robin,plb-docker"])
        .args(["--blocks", "1", "--no-report", "--burn-fraction", "0.01"])
        .arg("--model")
        .arg(&shipped)
        .args(["--out", "out", "--workload"])
        .arg(&workload)
        .output()
        .expect("runs");
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    ground.assert_nothing_left();
    let out = ground.path("out");
    let table =
        |folder: &std::path::Path| std::fs::read(folder.join("docker.plbtab")).expect("a table");
    assert_eq!(table(&out.join("models")), table(&shipped));
    let manifest = json(&out.join("manifest.json"));
    let models = manifest["models"].as_array().expect("models");
    assert!(models.iter().any(|m| m["name"] == "docker"), "{manifest}");
    let arms = manifest["arms"].as_array().expect("arms");
    let arm = arms
        .iter()
        .find(|a| a["label"] == "plb-docker")
        .expect("its arm");
    assert_eq!(arm["state"], "done");
    let replay = Command::new(programs().join("balancer"))
        .arg("replay")
        .arg("--model")
        .arg(out.join("models"))
        .arg(out.join(arm["events"].as_str().expect("events")))
        .output()
        .expect("runs");
    assert!(replay.status.success(), "{replay:?}");
}
