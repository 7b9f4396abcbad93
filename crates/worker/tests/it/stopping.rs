//! The end of a worker, and starts that must not succeed.

use crate::process::{Running, read, run, send};
use rustix::process::Signal;

#[test]
fn sigterm_finishes_what_is_held_and_exits_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("requests.jsonl");
    let path = log.to_str().expect("a plain path");
    let mut worker = Running::start(&["--request-log", path]);
    let fields = "x-request-id: last\r\nx-plumbline-attempt: last-2\r\n";
    let held = send(&worker.traffic, "GET /?mi=20000 HTTP/1.1", fields);
    worker.wait_for(|stats| stats["active_requests"] == 1);
    let boot_id = worker.stats()["boot_id"].clone();
    worker.get("/nothing");
    worker.signal(Signal::TERM);
    assert_eq!(read(held).status, 200);
    assert_eq!(worker.wait().code(), Some(0));

    let text = std::fs::read_to_string(&log).expect("the log");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["outcome"], "bad_request");
    let last = &lines[1];
    assert_eq!(
        (&last["request_id"], &last["attempt"]),
        (&"last".into(), &2.into())
    );
    assert_eq!(
        (&last["outcome"], &last["mi"]),
        (&"ok".into(), &20_000.0.into())
    );
    assert_eq!(last["boot_id"], boot_id);
    let stamp = |name: &str| last[name].as_u64().expect("a stamp");
    assert!(stamp("arrival_unix_ns") <= stamp("start_unix_ns"));
    // 20,000 MI at 100,000 MIPS.
    assert!(stamp("end_unix_ns") - stamp("arrival_unix_ns") >= 200_000_000);
}

#[test]
fn a_drain_that_takes_too_long_exits_1() {
    let mut worker = Running::start(&["--drain-timeout", "10ms", "--burn-fraction", "0"]);
    let held = send(&worker.traffic, "GET /?mi=100000 HTTP/1.1", "");
    worker.wait_for(|stats| stats["active_requests"] == 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code(), Some(1));
    drop(held);
}

#[test]
fn bad_flags_exit_2_with_one_line() {
    for (args, expected) in [
        (
            ["--cores", "0"],
            "error: --cores: 0: out of bounds (allowed: 0.05 to 100000)",
        ),
        (
            ["--burn-fraction", "2"],
            "error: --burn-fraction: 2: not a fraction",
        ),
        (
            ["--admin", "0.0.0.0:0"],
            "error: --admin: 0.0.0.0:0: not a loopback address",
        ),
    ] {
        let output = run(&args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.starts_with(expected) && text.lines().count() == 1,
            "{text}"
        );
    }
    assert_eq!(run(&["--no-such-flag"]).status.code(), Some(2));
    assert_eq!(run(&["burn", "--mi", "NaN"]).status.code(), Some(2));
}

#[test]
fn a_port_in_use_and_a_log_that_cannot_be_written_exit_1() {
    let worker = Running::start(&[]);
    let output = run(&["--listen", &worker.traffic]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cannot listen"), "{text}");
    let output = run(&[
        "--listen",
        "127.0.0.1:0",
        "--request-log",
        "/no/such/folder/x",
    ]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_request_log_that_lost_lines_is_told_by_the_exit_code_and_stops_nothing() {
    let mut worker = Running::start(&["--request-log", "/dev/full"]);
    for _ in 0..2 {
        assert_eq!(worker.get("/?mi=1").status, 200);
    }
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code(), Some(1));
}
