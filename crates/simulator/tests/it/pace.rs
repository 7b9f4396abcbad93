//! Open loop: requests leave when they are due, and latency counts from then.

use std::time::Duration;

use crate::{Run, server::Server};

fn ms(row: &crate::Row, from: &str, to: &str) -> f64 {
    let stamp = |column: &str| row[column].parse::<f64>().expect("a stamp");
    (stamp(to) - stamp(from)) / 1e6
}

/// A server frozen for F: a request due x into the freeze takes F - x. Were the client to wait for
/// answers before it sends, hardly any request would see the freeze.
#[test]
fn a_frozen_server_is_seen_by_every_request_due_in_the_freeze() {
    let server = Server::answering(Duration::from_millis(5));
    let run = Run::new(&server.url, 300, 10.0);
    let child = run.spawn();
    server.await_requests(100);
    server.freeze(Duration::from_secs(1));
    let done = run.wait(child);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.count("ok"), 300);
    for from in ["intended_ns", "sent_ns"] {
        let waited = |limit: f64| {
            let slow = done.rows.iter().filter(|r| ms(r, from, "done_ns") > limit);
            slow.count()
        };
        // 100 requests are due in the freeze; of these the first 50 wait half of it or more.
        assert!(
            (80..=125).contains(&waited(100.0)),
            "{from}: {}",
            waited(100.0)
        );
        assert!(
            (35..=65).contains(&waited(500.0)),
            "{from}: {}",
            waited(500.0)
        );
    }
}

/// The client itself frozen for 1 s: it says so, since latency from the due time sees it.
#[test]
fn a_frozen_client_marks_its_run() {
    let server = Server::answering(Duration::ZERO);
    let run = Run::new(&server.url, 200, 10.0).without_lag_bound();
    let child = run.spawn();
    server.await_requests(50);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    std::thread::sleep(Duration::from_secs(1));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("continued");
    let done = run.wait(child);
    assert_eq!(done.code, Some(3));
    assert_eq!(done.summary["generator_saturated"], true);
    assert_eq!(done.count("ok"), 200);
    let late = done
        .rows
        .iter()
        .filter(|r| ms(r, "intended_ns", "sent_ns") > 500.0);
    assert!(late.count() >= 35);
    assert!(done.summary["latency"]["p99_ms"].as_f64() > Some(700.0));
}

#[test]
fn far_more_than_the_machine_can_send_is_flagged_and_every_request_is_a_row() {
    let server = Server::answering(Duration::ZERO);
    let run = Run::new(&server.url, 60_000, 0.001).without_lag_bound();
    let done = run.finish();
    assert_eq!(done.code, Some(3));
    assert_eq!(done.count("rows"), 60_000);
    assert_eq!(done.rows.len(), 60_000);
    let achieved = done.summary["achieved_rps"].as_f64().expect("a rate");
    assert!(achieved > 0.0 && achieved < 1_000_000.0);
    let mut seq: Vec<u64> = done
        .column("seq")
        .iter()
        .map(|s| s.parse().expect("a number"))
        .collect();
    seq.sort_unstable();
    assert!(seq.into_iter().eq(0..60_000), "each request once");
}

#[test]
fn speed_divides_the_due_times() {
    let server = Server::answering(Duration::ZERO);
    let done = Run::new(&server.url, 10, 40.0)
        .flags(&["--speed", "4"])
        .finish();
    let mut due = done.column("intended_ns");
    due.sort_by_key(|ns| ns.len());
    assert_eq!(due[0], "0");
    assert!(due.contains(&"90000000"));
}

#[test]
fn a_list_of_requests_is_sent_as_listed() {
    let server = Server::answering(Duration::ZERO);
    let run = Run::new(&server.url, 1, 1.0).flags(&["--speed", "2"]);
    let workload = r#"{"schema": "plumbline.workload/1", "name": "t", "seed": 1, "apis": [
        {"id": "read", "method": "GET", "url": "/a", "task_size_mi": 400.5},
        {"id": "write", "method": "POST", "url": "/a", "task_size_mi": 7}],
        "requests": [{"at_us": 1000, "api": "write", "task_size_mi": 2.5},
            {"at_us": 1000, "api": "read"}, {"at_us": 31001, "api": 1}]}"#;
    std::fs::write(run.folder.path().join("w.json"), workload).expect("written");
    let done = run.finish();
    let mut rows = done.rows;
    rows.sort_by_key(|row| row["seq"].parse::<u64>().expect("a number"));
    let columns = ["api_id", "task_size_mi", "intended_ns", "status"];
    let found = rows.iter().map(|row| columns.map(|c| row[c].as_str()));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ["write", "2.5", "500000", "200"],
            ["read", "400.5", "500000", "200"],
            ["write", "7", "15500500", "200"]
        ]
    );
}
