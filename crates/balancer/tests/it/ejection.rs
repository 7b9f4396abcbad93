//! Backends that fail are ejected, tried again and readmitted, and the log tells it all again.

use crate::support::{Act, Backend, Balancer, fields, ok, program};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A backend that fails while the flag is up.
fn fickle() -> (Backend, Arc<AtomicBool>) {
    let failing = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&failing);
    let backend = Backend::start(move |_| {
        if flag.load(Ordering::SeqCst) {
            return Act::Answer(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec());
        }
        ok("fine")
    });
    (backend, failing)
}

fn get(balancer: &Balancer) -> String {
    balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

const SHORT: [&str; 8] = [
    "--strategy",
    "round-robin",
    "--eject-base",
    "300ms",
    "--eject-cap",
    "300ms",
    "--eject-jitter",
    "0",
];

#[test]
fn a_failing_backend_is_ejected_tried_and_readmitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let log = path.display().to_string();
    let (bad, failing) = fickle();
    let (b, c) = (Backend::start(|_| ok("b")), Backend::start(|_| ok("c")));
    let flags = [&SHORT[..], &["--event-log", &log]].concat();
    let mut balancer = Balancer::start(&[&bad, &b, &c], &flags);
    for _ in 0..15 {
        get(&balancer);
    }
    let state = balancer.state();
    assert_eq!(state["backends"][0]["state"], "ejected", "{state}");
    assert_eq!(state["backends"][0]["ejections"], 1);
    assert!(state["backends"][0]["ejected_until_ms"].as_f64() > state["t_ms"].as_f64());
    assert_eq!(state["panic"], false);
    let in_a_row = "plumbline_ejections_total{backend=\"a\",rule=\"consecutive\"}";
    assert_eq!(balancer.metric(in_a_row), 1);
    let up = |name| format!("plumbline_backend_state{{backend=\"{name}\",state=\"up\"}}");
    assert_eq!(
        (balancer.metric(&up("a")), balancer.metric(&up("b"))),
        (0, 1)
    );
    assert_eq!(bad.seen().len(), 5, "five failures in a row");

    // Its time passes; one request tries it, fails, and it is out again.
    let tried = || fields(&get(&balancer), "x-plumbline-decision")[0].contains("mark=trial");
    balancer.until("on trial", |b| b.state()["backends"][0]["state"] == "trial");
    assert!(tried());
    assert!(!tried(), "one trial, then the others");
    let trial = "plumbline_ejections_total{backend=\"a\",rule=\"trial\"}";
    assert_eq!(balancer.metric(trial), 1);
    assert_eq!(bad.seen().len(), 6);

    failing.store(false, Ordering::SeqCst);
    balancer.until("on trial", |b| b.state()["backends"][0]["state"] == "trial");
    // A request that must not be repeated does not try it.
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(!balancer.raw(post).contains("mark=trial"));
    assert!(tried());
    let state = balancer.state();
    assert_eq!(state["backends"][0]["state"], "up", "{state}");
    assert_eq!(state["backends"][0]["trials"], 2);
    assert!(state["backends"][0]["ejected_seconds"].as_f64() >= Some(0.6));
    let before = bad.seen().len();
    for _ in 0..9 {
        assert!(get(&balancer).starts_with("HTTP/1.1 200"));
    }
    assert_eq!(bad.seen().len(), before + 3, "its share is back");
    assert_eq!(balancer.metric("plumbline_wrong_picks_total"), 0);

    balancer.signal("-TERM");
    balancer.wait();
    let done = program()
        .args(["replay", "--json"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(0));
    let verdict: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(verdict["picks"], verdict["equal"]);
    // Ejected, on trial, ejected, on trial, readmitted.
    assert_eq!(
        (&verdict["steps"], &verdict["steps_equal"]),
        (&5.into(), &5.into())
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\"step\":\"ejected\",\"rule\":\"consecutive\""),
        "{text}"
    );
    assert_eq!(text.matches("\"mark\":\"trial\"").count(), 2);
}

#[test]
fn a_hung_backend_is_found_though_its_clients_give_up_first() {
    let hung = Backend::start(|_| Act::Hang);
    let good = Backend::start(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ok("good")
    });
    let flags = [&SHORT[..], &["--eject-after", "2"]].concat();
    let balancer = Balancer::start(&[&hung, &good], &flags);
    balancer.admin("POST", "/api/backends/a/drain", "");
    for _ in 0..10 {
        get(&balancer);
    }
    balancer.admin("POST", "/api/backends/a/undrain", "");
    let state = |b: &Balancer| b.state()["backends"][0]["state"].as_str().map(String::from);
    let ask = || {
        let mut stream = balancer.connect();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        std::io::Write::write_all(&mut stream, request).unwrap();
        stream
    };
    // Who changes its mind at once says nothing of the backend: the usual answer takes 50 ms.
    for _ in 0..8 {
        let before = balancer.state()["received"].as_u64();
        let asked = ask();
        balancer.until("received", |b| b.state()["received"].as_u64() > before);
        drop(asked);
    }
    balancer.until("idle", |b| b.state()["in_flight"] == 0);
    assert_eq!(state(&balancer).as_deref(), Some("up"));
    // Who has waited for far longer than that has seen a time-out.
    let waiting: Vec<_> = (0..4).map(|_| ask()).collect();
    balancer.until("hanging", |_| hung.hanging() == 2);
    std::thread::sleep(Duration::from_secs(2));
    drop(waiting);
    balancer.until("ejected", |b| state(b).as_deref() == Some("ejected"));
    // Its trial is given up as well: it is out again, and not handed to one client after another.
    balancer.until("on trial", |b| state(b).as_deref() == Some("trial"));
    let trial = ask();
    std::thread::sleep(Duration::from_secs(2));
    drop(trial);
    let again = "plumbline_ejections_total{backend=\"a\",rule=\"trial\"}";
    balancer.until("ejected again", |b| b.metric(again) == 1);
}

#[test]
fn plain_ejects_nobody_and_a_fast_failure_is_held_only_when_guarded() {
    for (protection, ejected, held) in [("plain", 0, false), ("guarded", 1, true)] {
        let (bad, _) = fickle();
        let good = Backend::start(|_| ok("good"));
        let flags = ["--strategy", "round-robin", "--protection", protection];
        let balancer = Balancer::start(&[&bad, &good], &flags);
        // Nothing good is known yet, so a good answer is taken to last 100 ms.
        get(&balancer);
        let first = balancer.state();
        assert_eq!(first["backends"][0]["in_flight"], 0);
        if held {
            balancer.until("let go", |b| b.metric("plumbline_held{backend=\"a\"}") == 0);
        } else {
            assert_eq!(first["backends"][0]["held"], 0);
        }
        for _ in 0..19 {
            get(&balancer);
        }
        assert_eq!(
            balancer.state()["backends"][0]["ejections"],
            ejected,
            "{protection}"
        );
        assert_eq!(bad.seen().len(), if ejected == 0 { 10 } else { 5 });
    }
}
