use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ground::{Ground, json, stderr};

fn start(ground: &Ground) -> Child {
    let workload = ground.workload(60);
    ground
        .testbed(&[
            "bench",
            "--strategies",
            "round-robin",
            "--blocks",
            "2",
            "--no-report",
        ])
        .args([
            "--burn-fraction",
            "0.01",
            "--backend",
            "process",
            "--out",
            "out",
            "--workload",
        ])
        .arg(&workload)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("it runs");
}

/// Waits until `states` of the arms begins with these.
fn wait_for_arms(ground: &Ground, wanted: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read(ground.path("out/manifest.json")).unwrap_or_default();
        let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let arms = manifest["arms"].as_array().cloned().unwrap_or_default();
        let states: Vec<&str> = arms.iter().filter_map(|a| a["state"].as_str()).collect();
        if states.starts_with(wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{states:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bad input: exit code 2, and what it says.
fn refused(ground: &Ground, arguments: &[&str], said: &str) {
    let output = ground.testbed(arguments).output().expect("runs");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.contains(said), "{arguments:?}: {text}");
}

#[test]
fn an_interrupted_bench_keeps_its_rows_and_goes_on() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let ground = Ground::new("interrupted");
        let child = start(&ground);
        wait_for_arms(&ground, &["done", "running"]);
        // Held still, so that it cannot end before others have tried its folder.
        signal(&child, Signal::STOP);
        refused(
            &ground,
            &["bench", "--resume", "out"],
            "being filled by process",
        );
        refused(
            &ground,
            &["bench", "--out", "out"],
            "holds a result already",
        );
        signal(&child, sent);
        signal(&child, Signal::CONT);
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
        ground.assert_nothing_left();
        let manifest = json(&ground.path("out/manifest.json"));
        assert_eq!(
            (&manifest["complete"], &manifest["interrupted"]),
            (&false.into(), &true.into())
        );
        let summary = json(&ground.path("out/summary.json"));
        assert_eq!(summary["interrupted"], true);
        let rows = std::fs::read_to_string(ground.path("out/rows.csv")).expect("rows");
        let arms = manifest["arms"].as_array().expect("arms").iter();
        let done = arms.filter(|a| a["state"] == "done").count();
        assert!((1..=2).contains(&done), "{manifest}");
        assert_eq!(rows.lines().count(), 1 + 60 * done, "the finished arms");
        if code == 143 {
            continue;
        }

        for (file, field) in [
            ("workload.json", "workload"),
            ("schedules/b02.json", "schedules"),
        ] {
            let path = ground.path("out").join(file);
            let text = std::fs::read_to_string(&path).expect("read");
            // As a researcher would: another size, and the digest that belongs to it.
            let mut workload = schema::workload::Workload::parse("w", &text).expect("a workload");
            workload.apis[0].task_size_mi += 1.0;
            std::fs::write(&path, workload.to_text()).expect("write");
            refused(&ground, &["bench", "--resume", "out"], field);
            std::fs::write(&path, text).expect("write");
        }
        std::fs::write(ground.path("out/report.html"), "of before").expect("write");
        let resumed = ground
            .testbed(&["bench", "--resume", "out", "--no-report"])
            .output();
        let resumed = resumed.expect("runs");
        assert!(
            matches!(resumed.status.code(), Some(0 | 3)),
            "{}",
            stderr(&resumed)
        );
        assert!(!ground.path("out/report.html").exists(), "it was of before");
        let after = json(&ground.path("out/manifest.json"));
        assert_eq!(after["complete"], true);
        assert_eq!(after["interrupted"], false);
        let order = |m: &serde_json::Value| {
            let arms = m["arms"].as_array().expect("arms").clone();
            arms.iter()
                .map(|a| (a["run_id"].clone(), a["label"].clone(), a["seed"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&manifest), order(&after));
        assert_eq!(
            manifest["arms"][0]["rows_sha256"],
            after["arms"][0]["rows_sha256"]
        );
        let rows = std::fs::read_to_string(ground.path("out/rows.csv")).expect("rows");
        assert_eq!(rows.lines().count(), 1 + 4 * 60);
        ground.assert_nothing_left();

        refused(&ground, &["bench", "--resume", "out"], "complete already");
        let kept = std::fs::read_to_string(ground.path("out/rows.csv")).expect("rows");
        assert_eq!(kept, rows);
    }
}

#[test]
fn a_killed_bench_leaves_nothing_running_and_can_be_resumed() {
    let ground = Ground::new("killed");
    let child = start(&ground);
    wait_for_arms(&ground, &["done", "running"]);
    signal(&child, Signal::KILL);
    child.wait_with_output().expect("ends");
    ground.assert_nothing_left();
    let resumed = ground
        .testbed(&["bench", "--resume", "out", "--no-report"])
        .output();
    let resumed = resumed.expect("runs");
    assert!(
        matches!(resumed.status.code(), Some(0 | 3)),
        "{}",
        stderr(&resumed)
    );
    let rows = std::fs::read_to_string(ground.path("out/rows.csv")).expect("rows");
    assert_eq!(rows.lines().count(), 1 + 4 * 60);
    ground.assert_nothing_left();
}
