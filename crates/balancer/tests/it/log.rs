//! The event log: whole, ordered, and enough to repeat every pick.

use crate::support::{Act, Backend, Balancer, connect, ok, program, read_head};
use schema::event::Event;
use schema::work_left::WorkLeft;
use std::io::{Read, Write};
use std::path::Path;

fn worker() -> Backend {
    Backend::start(|seen| {
        if seen.head.contains("/bad") {
            return Act::Answer(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec());
        }
        if seen.head.contains("/reset") {
            return Act::AnswerAndReset(Vec::new());
        }
        let report = "endpoint-load-metrics: TEXT cpu_utilization=0.4,eps=0,named_metrics.active=2,named_metrics.mean50=12.5";
        let timing = "x-worker-timing: queue_wait_us=10,service_time_us=200";
        Act::Answer(
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{report}\r\n{timing}\r\n\r\nok")
                .into_bytes(),
        )
    })
}

fn events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "whole lines only");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn load(balancer: &Balancer, requests: usize) {
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let address = balancer.traffic;
            std::thread::spawn(move || {
                for i in 0..requests / 4 {
                    let path = match i % 20 {
                        3 => "/bad?token=secret",
                        7 => "/reset",
                        _ => "/good?token=secret",
                    };
                    let mut stream = connect(address);
                    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: {client}.{i}\r\nAuthorization: secret\r\n\r\n");
                    stream.write_all(head.as_bytes()).unwrap();
                    if i % 20 == 11 {
                        continue;
                    }
                    read_head(&mut stream);
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|c| c.join().unwrap());
    balancer.until("idle", |b| b.metric("plumbline_requests_held") == 0);
}

fn replay(path: &Path) -> (Option<i32>, String) {
    let done = program()
        .arg("replay")
        .arg("--json")
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code(), text)
}

#[test]
fn a_live_run_with_changes_of_every_kind_replays_equal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let workers = [worker(), worker(), worker()];
    let [a, b, c] = &workers;
    let log = path.display().to_string();
    let flags = ["--event-log", &log, "--strategy", "random", "--seed", "7"];
    let mut balancer = Balancer::start(&[a, b, c], &flags);
    load(&balancer, 200);
    for strategy in [
        "smooth-weighted-round-robin",
        "least-request",
        "weighted-random",
    ] {
        let order = format!("{{\"strategy\":\"{strategy}\"}}");
        assert_eq!(balancer.admin("PUT", "/api/strategy", &order).0, 200);
        assert_eq!(
            balancer
                .admin("PATCH", "/api/backends/a", "{\"weight\":5}")
                .0,
            200
        );
        assert_eq!(balancer.admin("POST", "/api/backends/b/drain", "").0, 200);
        load(&balancer, 100);
        assert_eq!(balancer.admin("POST", "/api/backends/b/undrain", "").0, 200);
        load(&balancer, 100);
    }
    let new = format!(
        "{{\"name\":\"d\",\"url\":\"http://{}\",\"weight\":2}}",
        a.address
    );
    assert_eq!(balancer.admin("POST", "/api/backends", &new).0, 201);
    assert_eq!(balancer.admin("DELETE", "/api/backends/c", "").0, 200);
    load(&balancer, 100);
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(0));
    let events = events(&path);
    assert!(matches!(events[0], Event::Start { .. }));
    let picks = events
        .iter()
        .filter(|e| matches!(e, Event::Pick { .. }))
        .count();
    let responses = events
        .iter()
        .filter(|e| matches!(e, Event::Response { .. }))
        .count();
    assert_eq!(picks, responses, "one outcome each");
    assert!(picks >= 900, "{picks}");
    let stats = events.iter().any(|e| matches!(e, Event::Stats { .. }));
    assert!(stats, "load reports of answers are recorded");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("secret"), "no query values, no credentials");
    let (code, verdict) = replay(&path);
    assert_eq!(code, Some(0), "{verdict}");
    assert!(verdict.contains(&format!("\"equal\":{picks}")), "{verdict}");
}

#[test]
fn a_changed_pick_is_found_and_a_gap_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let workers = [worker(), worker()];
    let [a, b] = &workers;
    let log = path.display().to_string();
    let flags = ["--event-log", &log, "--strategy", "round-robin"];
    let mut balancer = Balancer::start(&[a, b], &flags);
    load(&balancer, 40);
    balancer.signal("-TERM");
    balancer.wait();
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text
        .lines()
        .rfind(|l| l.contains("\"event\":\"pick\""))
        .unwrap();
    let other = if line.contains("\"backend\":0") {
        line.replace("\"backend\":0", "\"backend\":1")
    } else {
        line.replace("\"backend\":1", "\"backend\":0")
    };
    std::fs::write(&path, text.replace(line, &other)).unwrap();
    let (code, verdict) = replay(&path);
    assert_eq!(code, Some(1), "{verdict}");
    let gap = format!("{text}{{\"event\":\"gap\",\"t_ns\":1,\"lost\":3}}\n");
    std::fs::write(&path, gap).unwrap();
    assert_eq!(replay(&path).0, Some(2));
    std::fs::write(&path, format!("{text}{{\"event\":\"pi")).unwrap();
    assert_eq!(
        replay(&path).0,
        Some(0),
        "an unfinished last line is left out"
    );
    std::fs::write(&path, "").unwrap();
    assert_eq!(replay(&path).0, Some(2));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(replay(&path).0, Some(2), "no such file");
}

/// The disk is full from the first line on; the traffic goes on, and nobody is told that all is well.
#[test]
fn a_log_that_lost_lines_is_told_by_the_state_the_reset_and_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker();
    let full = folder.path().join("full.jsonl");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let log = full.display().to_string();
    let mut balancer = Balancer::start(&[&worker], &["--event-log", &log]);
    load(&balancer, 40);
    balancer.until("lost", |b| {
        b.metric("plumbline_event_log_lines_lost_total") > 40
            && b.state()["event_log_lines_lost"].as_u64() > Some(40)
    });
    let (code, text) = balancer.admin("POST", "/api/reset", "{\"event_log\":\"b.jsonl\"}");
    assert_eq!(code, 500, "{text}");
    assert!(text.contains("full.jsonl is not whole"), "{text}");
    assert!(text.contains("the new run has begun"), "{text}");
    assert_eq!(balancer.state()["event_log"], "b.jsonl");
    load(&balancer, 40);
    let (code, text) = balancer.admin("POST", "/api/reset", "{\"event_log\":\"c.jsonl\"}");
    assert_eq!(code, 200, "the second log is whole: {text}");
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(1));
    assert_eq!(replay(&folder.path().join("b.jsonl")).0, Some(0));
}

/// A disk that fills up within a line leaves a log of whole lines that replays.
#[test]
fn a_log_cut_by_a_full_disk_replays_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let worker = worker();
    let log = path.display().to_string();
    let flags = ["--event-log", &log, "--strategy", "random"];
    // No file may grow beyond 64 blocks of 512 or 1024 bytes.
    let mut balancer = Balancer::start_limited(&[&worker], &flags, 64);
    load(&balancer, 400);
    balancer.until("lost", |b| {
        b.metric("plumbline_event_log_lines_lost_total") > 0
    });
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(1));
    assert!(events(&path).len() > 20);
    let (code, verdict) = replay(&path);
    assert_eq!(code, Some(0), "{verdict}");
    assert!(!verdict.contains("unfinished"), "{verdict}");
}

#[test]
fn what_is_no_text_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let worker = worker();
    let log = path.display().to_string();
    let mut balancer = Balancer::start(&[&worker], &["--event-log", &log]);
    load(&balancer, 8);
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(0));
    let whole = std::fs::read(&path).unwrap();
    let second = 1 + whole.iter().position(|b| *b == b'\n').unwrap();
    for bad in [&b"\xff\xfe\n"[..], b"{\"event\":\"\x1b[31m\"}\n", b"{}\n"] {
        let damaged = [&whole[..second], bad, &whole[second..]].concat();
        std::fs::write(&path, damaged).unwrap();
        let (code, text) = replay(&path);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("line 2: no event"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn every_log_is_judged_and_a_missing_model_is_named_where_it_lies() {
    let result = tempfile::tempdir().unwrap();
    let [events, models] = ["events", "models"].map(|name| result.path().join(name));
    std::fs::create_dir(&events).unwrap();
    std::fs::create_dir(&models).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/live.plbtab");
    std::fs::copy(shipped, models.join("live.plbtab")).unwrap();
    let workers = [worker(), worker()];
    let [a, b] = &workers;
    let [predicted, plain] = ["b01-a1.jsonl", "b01-a2.jsonl"].map(|name| events.join(name));
    let (log, folder) = (
        predicted.display().to_string(),
        models.display().to_string(),
    );
    let flags = [
        "--event-log",
        &log,
        "--strategy",
        "plb-live",
        "--model",
        &folder,
    ];
    let balancer = Balancer::start(&[a, b], &flags);
    load(&balancer, 40);
    let order = "{\"strategy\":\"random\",\"event_log\":\"b01-a2.jsonl\"}";
    assert_eq!(balancer.admin("POST", "/api/reset", order).0, 200);
    load(&balancer, 40);
    let judged = |more: &[&str]| {
        let mut replay = program();
        replay.arg("replay").args([&predicted, &plain]).args(more);
        let done = replay.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    assert_eq!(
        balancer.admin("POST", "/api/reset", "").0,
        200,
        "it ends the second log"
    );
    let (code, said, complaint) = judged(&[]);
    assert_eq!(code, Some(2), "{complaint}");
    assert!(
        said.contains("b01-a2.jsonl: ") && said.contains(" picks equal"),
        "{said}"
    );
    assert!(complaint.contains("b01-a1.jsonl"), "{complaint}");
    assert!(
        complaint.contains(&format!("--model {folder}")),
        "{complaint}"
    );
    let (code, said, complaint) = judged(&["--model", &folder]);
    assert_eq!((code, &*complaint), (Some(0), ""));
    assert_eq!(said.matches(" picks equal").count(), 2, "{said}");
}

#[test]
fn a_reset_begins_another_file_and_each_replays_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first.jsonl");
    let workers = [worker(), worker()];
    let [a, b] = &workers;
    let log = path.display().to_string();
    let balancer = Balancer::start(&[a, b], &["--event-log", &log]);
    load(&balancer, 40);
    let order = "{\"strategy\":\"random\",\"seed\":11,\"event_log\":\"b01-a1.jsonl\"}";
    let (code, body) = balancer.admin("POST", "/api/reset", order);
    assert_eq!(code, 200, "{body}");
    let state: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(state["strategy"], "random");
    assert_eq!(state["backends"][0]["picks"], 0);
    // The old file is complete as soon as the answer is there.
    assert!(events(&path).len() > 40);
    assert_eq!(replay(&path).0, Some(0));
    load(&balancer, 40);
    assert_eq!(
        balancer.admin("POST", "/api/reset", "").0,
        200,
        "no body, no name: a file anyway"
    );
    let second = folder.path().join("b01-a1.jsonl");
    let (code, verdict) = replay(&second);
    assert_eq!(code, Some(0), "{verdict}");
    match &events(&second)[0] {
        Event::Start { strategy, seed, .. } => {
            assert_eq!((strategy.as_str(), *seed), ("random", 11))
        }
        other => panic!("{other:?}"),
    }
    for kept in ["first.jsonl", "b01-a1.jsonl"] {
        let before = std::fs::read(folder.path().join(kept)).unwrap();
        let order = format!("{{\"event_log\":\"{kept}\"}}");
        let (code, body) = balancer.admin("POST", "/api/reset", &order);
        assert_eq!(code, 409, "{body}");
        assert!(body.contains("name another file"), "{body}");
        assert_eq!(std::fs::read(folder.path().join(kept)).unwrap(), before);
    }
    assert_eq!(
        balancer.state()["event_log"],
        "first-1.jsonl",
        "the log goes on"
    );
    for bad in ["../x", "a/b", ".x", ""] {
        let order = format!("{{\"event_log\":\"{bad}\"}}");
        assert_eq!(balancer.admin("POST", "/api/reset", &order).0, 400, "{bad}");
    }
    let hanging = Backend::start(|_| Act::Hang);
    let balancer = Balancer::start(&[&hanging], &[]);
    let mut stream = balancer.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    balancer.until("in flight", |b| b.state()["in_flight"] == 1);
    assert_eq!(balancer.admin("POST", "/api/reset", "{}").0, 409);
    drop(stream);
    balancer.until("idle", |b| b.state()["in_flight"] == 0);
    assert_eq!(balancer.admin("POST", "/api/reset", "{}").0, 200);
    let order = "{\"event_log\":\"x.jsonl\"}";
    assert_eq!(
        balancer.admin("POST", "/api/reset", order).0,
        400,
        "no log was asked for"
    );
}

#[test]
fn a_killed_balancer_leaves_a_log_of_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let worker = worker();
    let log = path.display().to_string();
    let flags = ["--event-log", &log, "--protection", "plain"];
    let mut balancer = Balancer::start(&[&worker], &flags);
    load(&balancer, 200);
    balancer.until("written", |_| {
        let text = std::fs::read_to_string(&path).unwrap();
        let responses = text.matches("\"event\":\"response\"").count() as u64;
        // A client that leaves at once may be gone before its request is looked at.
        responses >= 190 && responses == balancer.metric("plumbline_requests_received_total")
    });
    balancer.signal("-KILL");
    balancer.wait();
    events(&path);
    assert_eq!(replay(&path).0, Some(0));
    let unserved = Backend::start(|_| ok("ok"));
    let path = folder.path().join("next.jsonl");
    let log = path.display().to_string();
    let balancer = Balancer::start(&[&unserved], &["--event-log", &log]);
    balancer.admin("POST", "/api/backends/a/drain", "");
    balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: nobody\r\n\r\n");
    balancer.until("recorded", |_| {
        let text = std::fs::read_to_string(&path).unwrap();
        text.contains("\"event\":\"unserved\"") && text.contains("\"reason\":\"no_backend\"")
    });
    // The pick that chose nobody is a call of the dispatcher too.
    balancer.until("with its pick", |_| {
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("\"request_id\":\"nobody\"")
    });
}

/// The worker tells of a job of somebody else's and of what it holds; a list that is not whole says nothing.
#[test]
fn work_left_told_with_answers_is_read_recorded_and_replayed() {
    let worker = |list: &'static str| {
        Backend::start(move |_| {
            let load = "endpoint-load-metrics: TEXT named_metrics.active=1";
            let head = format!("Content-Length: 2\r\n{load}\r\nx-worker-work-left: {list}\r\n");
            Act::Answer(format!("HTTP/1.1 200 OK\r\n{head}\r\nok").into_bytes())
        })
    };
    let workers = [worker("others-1=40.5,b-2=7"), worker(""), worker("a=1,b")];
    let [full, idle, broken] = &workers;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let log = path.display().to_string();
    let flags = ["--event-log", &log, "--strategy", "wl-mc:reports=work"];
    let mut balancer = Balancer::start(&[full, idle, broken], &flags);
    load(&balancer, 80);
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(0));

    let mut told = [0; 3];
    for event in events(&path) {
        let Event::Stats {
            backend, report, ..
        } = event
        else {
            continue;
        };
        let of = |list: &[WorkLeft]| list.iter().map(|j| j.core_ms).collect::<Vec<_>>();
        let left_ms = report.work_left.as_deref().map(of);
        let want = [Some(vec![40.5, 7.0]), Some(Vec::new()), None];
        assert_eq!(left_ms, want[backend as usize]);
        told[backend as usize] += 1;
    }
    assert!(told.iter().all(|n| *n > 0), "{told:?}");
    let (code, verdict) = replay(&path);
    assert_eq!(code, Some(0), "{verdict}");
}
