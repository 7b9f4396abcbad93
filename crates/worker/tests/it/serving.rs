//! Answers, statistics, bounds and the admin listener.

use crate::process::{Running, ask, read, run, send};
use std::io::Write;

#[test]
fn any_method_on_any_path_does_the_work() {
    let worker = Running::start(&["--cores", "2"]);
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        let line = format!("{method} /users/orders/payments?x=1 HTTP/1.1");
        let fields = "x-task-size-mi: 400.5\r\nx-request-id: r-1\r\n";
        let answer = ask(&worker.traffic, &line, fields);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("x-container"), Some("a"));
        assert_eq!(answer.header("x-request-id"), Some("r-1"));
        let timing = answer.header("x-worker-timing").expect("a timing header");
        let timing = schema::headers::WorkerTiming::parse(timing).expect("a good one");
        // 400.5 MI at 100,000 MIPS.
        assert!(timing.service_time_us >= 4004, "{timing:?}");
        assert_eq!(timing.queue_wait_us, 0);
        let report = answer.header("endpoint-load-metrics").expect("a report");
        let report = schema::load_report::LoadReport::parse(report).expect("a good one");
        assert_eq!(report.active, Some(0));
        let body = answer.json();
        assert_eq!(body["container"], "a");
        assert_eq!(body["task_size_mi"], 400.5);
    }
    let answer = worker.get("/users?mi=50");
    assert_eq!(answer.status, 200);
    let stats: schema::stats::Stats =
        serde_json::from_value(worker.stats()).expect("the stable fields");
    assert_eq!((stats.completed, stats.failed), (6, 0));
    assert_eq!((stats.active_requests, stats.sequence), (0, 12));
    assert!(stats.mean_latency_ms_last_50.is_some() && stats.work_left.is_none());
    assert_eq!((stats.cores, stats.memory_bytes), (2.0, 1 << 30));
}

#[test]
fn a_request_without_a_good_size_is_a_400_that_says_so() {
    let worker = Running::start(&[]);
    let answer = worker.get("/users");
    assert_eq!(answer.status, 400);
    let message = answer.json()["message"].as_str().map(str::to_string);
    assert!(message.is_some_and(|m| m.contains("x-task-size-mi") && m.contains("mi (1 to")));
    assert_eq!(worker.get("/users?mi=0").status, 400);
    assert_eq!(worker.get("/users?mi=NaN").status, 400);
    let stats = worker.stats();
    assert_eq!(
        (&stats["failed"], &stats["completed"]),
        (&3.into(), &0.into())
    );
    assert!(stats["mean_latency_ms_last_50"].is_null());
}

#[test]
fn one_more_than_max_active_is_a_503_with_a_reason() {
    let worker = Running::start(&["--max-active", "1", "--burn-fraction", "0"]);
    let held = send(&worker.traffic, "GET /slow?mi=100000 HTTP/1.1", "");
    worker.wait_for(|stats| stats["active_requests"] == 1);
    let answer = worker.get("/more?mi=1");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["error"], "max_active");
    // The client goes away: its work is dropped and the place is free.
    drop(held);
    worker.wait_for(|stats| stats["active_requests"] == 0);
    assert_eq!(worker.get("/more?mi=1").status, 200);
}

#[test]
fn a_body_above_the_bound_is_a_413() {
    let worker = Running::start(&["--max-body-mib", "1"]);
    let fields = "x-task-size-mi: 1\r\ncontent-length: 1048577\r\n";
    assert_eq!(ask(&worker.traffic, "POST / HTTP/1.1", fields).status, 413);
    let fields = "x-task-size-mi: 1\r\ncontent-length: 5\r\n";
    let mut stream = send(&worker.traffic, "POST / HTTP/1.1", fields);
    stream.write_all(b"hello").expect("sent");
    assert_eq!(read(stream).status, 200);
}

#[test]
fn work_left_is_told_only_when_asked_for() {
    let worker = Running::start(&["--tell-work-left", "--burn-fraction", "0"]);
    let fields = "x-request-id: big\r\n";
    let held = send(&worker.traffic, "GET /?mi=100000 HTTP/1.1", fields);
    worker.wait_for(|stats| stats["work_left"][0]["request_id"] == "big");
    let answer = worker.get("/?mi=10");
    let left = answer.header("x-worker-work-left").expect("the header");
    assert!(left.starts_with("big="), "{left}");
    drop(held);
}

#[test]
fn pages_health_and_metrics_answer() {
    let worker = Running::start(&[]);
    assert_eq!(worker.get("/healthz").body, "ok\n");
    worker.get("/?mi=5");
    let metrics = worker.get("/metrics").body;
    assert!(
        metrics.contains("plumbline_worker_completed_total 1"),
        "{metrics}"
    );
    assert!(metrics.trim_end().ends_with("# EOF"));
    let url = format!("http://{}/healthz", worker.traffic);
    assert!(run(&["healthcheck", "--url", &url]).status.success());
    let url = format!("http://{}/nothing", worker.traffic);
    assert_eq!(run(&["healthcheck", "--url", &url]).status.code(), Some(1));
    assert_eq!(
        run(&["healthcheck", "--url", "ftp://x"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_reset_clears_the_window_and_the_counts() {
    let worker = Running::start(&[]);
    worker.get("/?mi=5");
    let before = worker.stats();
    let wrong = ask(&worker.admin, "GET /api/reset HTTP/1.1", "");
    assert_eq!(wrong.status, 405);
    let answer = ask(&worker.admin, "POST /api/reset HTTP/1.1", "");
    assert_eq!(answer.status, 200);
    let after = worker.stats();
    assert_eq!(
        (&before["completed"], &after["completed"]),
        (&1.into(), &0.into())
    );
    assert!(after["mean_latency_ms_last_50"].is_null());
    assert_eq!(before["boot_id"], after["boot_id"]);
    // The admin paths are ordinary work on the traffic port.
    let line = "POST /api/reset HTTP/1.1";
    assert_eq!(ask(&worker.traffic, line, "").status, 400);
}

#[test]
fn native_speed_runs_and_says_so() {
    let flags = ["--mips-per-core", "native", "--discipline", "fcfs"];
    let worker = Running::start_with(&flags);
    assert_eq!(worker.get("/?mi=20").status, 200);
    let stats = worker.stats();
    assert_eq!(
        (&stats["burn_fraction"], &stats["discipline"]),
        (&1.0.into(), &"fcfs".into())
    );
    assert_eq!(
        stats["nominal_mips_per_core"],
        stats["native_mips_per_core"]
    );
}
