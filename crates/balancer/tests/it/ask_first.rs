//! Questions before picks: whom they reach, what they change, what a worker without an answer costs.

use crate::support::{Act, Backend, Balancer, PATIENCE, connect, fields, ok, program, read_head};
use schema::event::Event;
use schema::report::Source;
use std::io::Read;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Polled once, at the start: what is known later is what was asked.
const ONE_POLL: [&str; 2] = ["--stats-interval", "60s"];

/// A statistics page of a worker that holds `active` requests.
fn page(active: u32) -> Act {
    let text = serde_json::json!({
        "container": "x", "cores": 1.0, "memory_bytes": 1, "active_requests": active,
        "completed": 0, "failed": 0, "sampled_at_unix_ns": 1, "sequence": 1,
        "nominal_mips_per_core": 7450.0, "native_mips_per_core": 7450.0, "burn_fraction": 0.0,
        "discipline": "ps", "loop": "x", "late_burns": 0, "boot_id": "x", "utilization": 0.0,
        "qps": 0.0, "eps": 0.0,
        "work_left": [{"request_id": "other-1", "core_ms": 12.5}],
    });
    ok(&text.to_string())
}

/// A worker that tells of `first` requests when it is polled and does `then` when it is asked.
fn asked(first: u32, then: impl Fn() -> Act + Send + Sync + 'static) -> Backend {
    let polled = AtomicBool::new(false);
    let stats = move |_: &_| {
        if polled.swap(true, Ordering::SeqCst) {
            then()
        } else {
            page(first)
        }
    };
    Backend::telling(stats, |_| ok("ok"))
}

/// A balancer that has been told everything once.
fn polled(backends: &[&Backend], flags: &[&str]) -> Balancer {
    let balancer = Balancer::start(backends, &[flags, &ONE_POLL].concat());
    balancer.until("polled", |b| {
        let known = |name| {
            b.metric(&format!(
                "plumbline_polls_total{{backend=\"{name}\",result=\"ok\"}}"
            ))
        };
        ["a", "b", "c"]
            .iter()
            .take(backends.len())
            .all(|name| known(name) == 1)
    });
    balancer
}

/// The answer to a request, by its container.
fn container(address: SocketAddr) -> String {
    let mut stream = connect(address);
    stream
        .write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let head = read_head(&mut stream);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    fields(&head, "x-container")[0].to_string()
}

fn questions(balancer: &Balancer, name: &str, result: &str) -> u64 {
    balancer.metric(&format!(
        "plumbline_questions_total{{backend=\"{name}\",result=\"{result}\"}}"
    ))
}

fn events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Stops a balancer and replays its log.
fn replays(mut balancer: Balancer, log: &Path, picks: usize) {
    balancer.signal("-TERM");
    assert!(balancer.wait().success());
    let done = program().arg("replay").arg(log).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains(&format!("{picks} of {picks} picks equal")),
        "{text}"
    );
}

#[test]
fn a_worker_that_says_it_is_busy_is_avoided_though_its_poll_said_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("run.jsonl");
    let (a, b) = (asked(0, || page(50)), asked(3, || page(0)));
    let strategy = ["--strategy", "polled-least-request"];
    let unasked = polled(&[&a, &b], &strategy);
    assert_eq!(container(unasked.traffic), "a");
    drop(unasked);

    let (a, b) = (asked(0, || page(50)), asked(3, || page(0)));
    let path = log.display().to_string();
    let flags = [&strategy[..], &["--ask-first", "1s", "--event-log", &path]].concat();
    let balancer = polled(&[&a, &b], &flags);
    for _ in 0..20 {
        assert_eq!(container(balancer.traffic), "b");
    }
    for name in ["a", "b"] {
        assert_eq!(questions(&balancer, name, "answered"), 20, "{name}");
    }
    assert_eq!(balancer.metric("plumbline_ask_seconds_count"), 20);
    // One for the poll; the questions of each thread share another.
    for worker in [&a, &b] {
        assert!(
            worker.stats_connections() <= 3,
            "{}",
            worker.stats_connections()
        );
    }
    let state = balancer.state();
    assert_eq!(state["ask_first_ms"], 1000.0, "{state}");
    assert_eq!(state["asks_first"], true, "{state}");
    assert_eq!(state["backends"][0]["questions_answered"], 20, "{state}");
    replays(balancer, &log, 20);
    // Every pick stands behind the answers of its own questions, which left before it.
    let mut told = 0;
    let mut picks = 0;
    for event in events(&log) {
        match event {
            Event::Stats { t_ns, report, .. } if report.source == Source::Probe => {
                told += 1;
                assert!(report.sampled_at_ns < t_ns);
                let left = report.work_left.as_deref().unwrap_or_default();
                assert_eq!(
                    (left[0].request_id.as_str(), left[0].core_ms),
                    ("other-1", 12.5)
                );
            }
            Event::Pick { .. } => {
                picks += 1;
                assert_eq!(told, 2 * picks);
            }
            _ => {}
        }
    }
    assert_eq!(picks, 20);
}

/// A door that is shut until somebody opens it.
#[derive(Default)]
struct Door(Mutex<bool>, Condvar);

impl Door {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let shut = |open: &mut bool| !*open;
        let waited = self
            .1
            .wait_timeout_while(self.0.lock().unwrap(), PATIENCE, shut);
        assert!(!waited.unwrap().1.timed_out(), "nobody opened");
    }
}

#[test]
fn an_answer_after_its_pick_is_a_report_for_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("run.jsonl");
    let door = Arc::new(Door::default());
    let at_door = Arc::clone(&door);
    let a = asked(0, move || {
        at_door.pass();
        page(50)
    });
    let b = asked(3, || page(1));
    let path = log.display().to_string();
    let flags = [
        "--strategy",
        "polled-least-request",
        "--ask-first",
        "5ms",
        "--event-log",
        &path,
    ];
    let balancer = polled(&[&a, &b], &flags);
    // Nothing but the poll is known of it when the wait is over.
    assert_eq!(container(balancer.traffic), "a");
    assert_eq!(questions(&balancer, "a", "answered"), 0);
    door.open();
    balancer.until("late", |b| questions(b, "a", "late") == 1);
    assert_eq!(balancer.state()["backends"][0]["active_requests"], 50);
    assert_eq!(container(balancer.traffic), "b");
    replays(balancer, &log, 2);
    let late = events(&log)
        .into_iter()
        .skip_while(|e| !matches!(e, Event::Pick { .. }));
    let late = late.filter_map(|event| match event {
        Event::Stats {
            backend: 0, report, ..
        } => Some((report.source, report.active)),
        _ => None,
    });
    assert_eq!(
        late.take(1).collect::<Vec<_>>(),
        [(Source::Probe, Some(50))]
    );
}

#[test]
fn a_worker_that_never_answers_holds_a_bounded_number_of_questions_and_no_request() {
    const CLIENTS: usize = 40;
    const REQUESTS: usize = 10;
    let (a, b) = (asked(0, || Act::Hang), asked(0, || page(0)));
    let flags = ["--strategy", "polled-own-sends", "--ask-first", "1ms"];
    let balancer = polled(&[&a, &b], &flags);
    let answered = AtomicUsize::new(0);
    let mut most = 0;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..REQUESTS {
                        container(balancer.traffic);
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        while !clients.iter().all(|c| c.is_finished()) {
            most = most.max(a.hanging());
            std::thread::yield_now();
        }
    });
    assert_eq!(answered.load(Ordering::SeqCst), CLIENTS * REQUESTS);
    assert_eq!(questions(&balancer, "a", "answered"), 0);
    assert!((1..=64).contains(&most), "{most} at once");
    balancer.until("given up", |b| {
        let ended = ["failed", "unsent"].map(|result| questions(b, "a", result));
        ended.iter().sum::<u64>() == (CLIENTS * REQUESTS) as u64
    });
    assert_eq!(
        balancer.metric("plumbline_ask_seconds_count"),
        (CLIENTS * REQUESTS) as u64
    );
    balancer.until("released", |_| a.hanging() == 0);
}

#[test]
fn the_dead_are_asked_in_vain_and_the_drained_not_at_all() {
    let dead = {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        held.local_addr().unwrap()
    };
    let (b, c) = (asked(5, || page(5)), asked(5, || page(5)));
    let flags = [
        "--strategy",
        "prequal",
        "--ask-first",
        "1s",
        "--protection",
        "plain",
    ];
    let flags = [&flags[..], &ONE_POLL].concat();
    let balancer = Balancer::in_front_of(&[dead, b.address, c.address], &flags);
    let (status, text) = balancer.admin("POST", "/api/backends/c/drain", "");
    assert_eq!(status, 200, "{text}");
    for _ in 0..5 {
        let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
    assert_eq!(questions(&balancer, "a", "failed"), 5);
    assert_eq!(questions(&balancer, "b", "answered"), 5);
    for result in ["answered", "late", "failed", "unsent"] {
        assert_eq!(questions(&balancer, "c", result), 0, "{result}");
    }
    // Nobody is left: no question, and the refusal is the usual one.
    for name in ["a", "b"] {
        balancer.admin("POST", &format!("/api/backends/{name}/drain"), "");
    }
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(balancer.metric("plumbline_ask_seconds_count"), 5);
}

#[test]
fn a_strategy_that_reads_no_reports_asks_nobody_and_another_in_its_place_does() {
    let a = asked(0, || page(0));
    let balancer = polled(&[&a], &["--strategy", "round-robin", "--ask-first", "1s"]);
    let asks = |strategy: &str, asks: bool, so_far: u64| {
        let body = format!("{{\"strategy\":\"{strategy}\"}}");
        let (status, text) = balancer.admin("PUT", "/api/strategy", &body);
        assert_eq!(status, 200, "{text}");
        container(balancer.traffic);
        assert_eq!(balancer.state()["asks_first"], asks, "{strategy}");
        assert_eq!(balancer.state()["ask_first_ms"], 1000.0);
        assert_eq!(questions(&balancer, "a", "answered"), so_far, "{strategy}");
    };
    asks("round-robin", false, 0);
    asks("polled-own-sends", true, 1);
    asks("least-request", false, 1);
    asks("wl-mc:reports=work", true, 2);
    asks("prequal", true, 3);
    let (status, text) = balancer.admin("POST", "/api/reset", "{\"strategy\":\"random\"}");
    assert_eq!(status, 200, "{text}");
    container(balancer.traffic);
    assert_eq!(questions(&balancer, "a", "answered"), 0);
}

#[test]
fn a_second_attempt_asks_again() {
    let answered = AtomicBool::new(false);
    let stats = |_: &_| page(0);
    let a = Backend::telling(stats, move |_| {
        if answered.swap(true, Ordering::SeqCst) {
            Act::AnswerAndReset(Vec::new())
        } else {
            ok("ok")
        }
    });
    let b = Backend::telling(stats, |_| ok("ok"));
    let flags = [
        "--strategy",
        "polled-least-request",
        "--ask-first",
        "1s",
        "--threads",
        "1",
    ];
    let balancer = Balancer::start(&[&a, &b], &[&flags[..], &["--eject-mode", "off"]].concat());
    let mut requests = 0;
    while balancer.metric("plumbline_stale_retries_total") == 0 {
        balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        requests += 1;
        assert!(requests < 1000, "no kept connection to a was ever used");
    }
    assert_eq!(balancer.metric("plumbline_ask_seconds_count"), requests + 1);
}
