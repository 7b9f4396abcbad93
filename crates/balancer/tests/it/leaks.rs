//! Counters that must not leak: client gone, resets, timeouts, at every stage of a request.

use crate::support::{Act, Backend, Balancer, connect, fields, ok, read_head, status};
use std::io::Write;
use std::net::TcpListener;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn ended(balancer: &Balancer, reason: &str) -> u64 {
    balancer.metric(&format!(
        "plumbline_requests_ended_total{{reason=\"{reason}\"}}"
    ))
}

fn attempts(balancer: &Balancer, outcome: &str) -> u64 {
    ["a", "b", "c"]
        .iter()
        .map(|name| {
            balancer.metric(&format!(
                "plumbline_attempts_total{{backend=\"{name}\",outcome=\"{outcome}\"}}"
            ))
        })
        .sum()
}

fn script() -> Backend {
    Backend::start(|seen| match seen.head.split(' ').nth(1).unwrap() {
        "/hang" => Act::Hang,
        "/reset" => Act::AnswerAndReset(Vec::new()),
        "/half" => {
            Act::AnswerAndReset(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec())
        }
        "/slow" => Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec()),
        _ => ok("ok"),
    })
}

#[test]
fn every_way_out_lowers_every_gauge_and_is_counted_once() {
    let backends = [script(), script(), script()];
    let [a, b, c] = &backends;
    let balancer = Balancer::start(
        &[a, b, c],
        &["--protection", "plain", "--strategy", "random"],
    );
    let (cancelled, half_read, reset, cut, good) = (100, 30, 50, 30, 60);
    let hanging = || backends.iter().map(|b| b.hanging()).sum::<usize>();
    // Gone before the head of the answer.
    let clients: Vec<_> = (0..cancelled)
        .map(|_| {
            let mut stream = balancer.connect();
            stream.write_all(get("/hang").as_bytes()).unwrap();
            stream
        })
        .collect();
    balancer.until("all of them hang", |_| hanging() == cancelled);
    assert_eq!(balancer.state()["in_flight"], cancelled);
    drop(clients);
    balancer.until("all of them released", |_| hanging() == 0);
    // Gone within the body.
    for _ in 0..half_read {
        let mut stream = balancer.connect();
        stream.write_all(get("/slow").as_bytes()).unwrap();
        assert_eq!(status(&read_head(&mut stream)), 200);
    }
    for _ in 0..reset {
        let answer = balancer.raw("GET /reset HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&answer), 502);
        assert_eq!(fields(&answer, "x-plumbline-reason"), ["backend_reset"]);
    }
    for _ in 0..cut {
        balancer.raw(get("/half"));
    }
    for _ in 0..good {
        balancer.raw("GET /good HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    balancer.until("every gauge is 0", |b| {
        b.state()["in_flight"] == 0 && b.metric("plumbline_requests_held") == 0
    });
    let gone = (cancelled + half_read) as u64;
    assert_eq!(ended(&balancer, "client_gone"), gone);
    assert_eq!(ended(&balancer, "backend_reset"), reset);
    assert_eq!(ended(&balancer, "body_truncated"), cut);
    assert_eq!(ended(&balancer, "backend"), good);
    let received = balancer.metric("plumbline_requests_received_total");
    assert_eq!(received, gone + reset + cut + good);
    assert_eq!(attempts(&balancer, "cancelled"), gone);
    assert_eq!(attempts(&balancer, "error"), reset + cut);
    assert_eq!(attempts(&balancer, "ok"), good);
    let state = balancer.state();
    let picks: u64 = (0..3)
        .map(|i| state["backends"][i]["picks"].as_u64().unwrap())
        .sum();
    assert_eq!(picks, received, "one attempt each in plain");
    let seen: usize = backends.iter().map(|b| b.seen().len()).sum();
    assert_eq!(seen as u64, received);
}

#[test]
fn a_client_gone_within_its_own_body_is_nobodys_fault() {
    let backend = script();
    let balancer = Balancer::start(&[&backend], &[]);
    for _ in 0..10 {
        let mut stream = balancer.connect();
        stream
            .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhel")
            .unwrap();
        balancer.until("dispatched", |b| b.state()["in_flight"] == 1);
        drop(stream);
        balancer.until("given up", |b| b.state()["in_flight"] == 0);
    }
    balancer.until("counted", |b| ended(b, "client_gone") == 10);
    assert_eq!(attempts(&balancer, "cancelled"), 10);
    assert!(backend.seen().is_empty(), "no whole request came through");
}

#[test]
fn a_kept_connection_that_closed_is_repeated_once_if_guarded_and_502_if_plain() {
    for (protection, code, tries) in [("guarded", 200, "2"), ("plain", 502, "1")] {
        let backend = Backend::start(|seen| {
            // The second request on a connection is met with a close, as an idle limit would.
            if seen.connection == 0 && seen.head.contains("/second") {
                Act::AnswerAndReset(Vec::new())
            } else {
                ok("ok")
            }
        });
        let flags = ["--protection", protection, "--threads", "1"];
        let balancer = Balancer::start(&[&backend], &flags);
        balancer.raw("GET /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = balancer.raw("GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&answer), code, "{protection}: {answer}");
        assert_eq!(fields(&answer, "x-plumbline-attempts"), [tries]);
        let posted = balancer.raw(
            "POST /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(status(&posted), 200);
    }
}

#[test]
fn time_outs_and_refusals_have_their_reasons() {
    let hanging = script();
    let balancer = Balancer::start(&[&hanging], &["--timeout-per-try", "150ms"]);
    let answer = balancer.raw("GET /hang HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 504);
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["per_try_timeout"]);
    let total = ["--timeout-per-try", "0s", "--timeout-total", "150ms"];
    let balancer = Balancer::start(&[&hanging], &total);
    let answer = balancer.raw("GET /hang HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 504);
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["total_timeout"]);
    assert_eq!(attempts(&balancer, "timeout"), 1);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let balancer = Balancer::in_front_of(&[closed], &[]);
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 502);
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["connect_refused"]);
    assert_eq!(fields(&answer, "x-container"), ["a"]);
    assert_eq!(attempts(&balancer, "refused"), 1);
    balancer.admin("POST", "/api/backends/a/drain", "");
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 503);
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["no_backend"]);
    assert_eq!(fields(&answer, "retry-after"), ["1"]);
    assert_eq!(fields(&answer, "x-plumbline-attempts"), ["0"]);
}

#[test]
fn more_requests_than_may_be_held_are_shed() {
    let backend = script();
    let balancer = Balancer::start(&[&backend], &["--shed-max-in-flight", "3"]);
    let held: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = connect(balancer.traffic);
            stream.write_all(get("/hang").as_bytes()).unwrap();
            stream
        })
        .collect();
    balancer.until("three held", |b| b.metric("plumbline_requests_held") == 3);
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 503);
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["shed"]);
    drop(held);
    balancer.until("released", |b| b.metric("plumbline_requests_held") == 0);
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 200);
}

#[test]
fn connections_are_reused_in_a_steady_run() {
    let backends = [script(), script(), script()];
    let [a, b, c] = &backends;
    let balancer = Balancer::start(&[a, b, c], &["--strategy", "random", "--threads", "2"]);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let address = balancer.traffic;
            std::thread::spawn(move || {
                let mut stream = connect(address);
                for _ in 0..500 {
                    stream.write_all(get("/good").as_bytes()).unwrap();
                    assert_eq!(status(&read_head(&mut stream)), 200);
                    let mut body = [0_u8; 2];
                    std::io::Read::read_exact(&mut stream, &mut body).unwrap();
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|c| c.join().unwrap());
    let opened: usize = backends.iter().map(Backend::connections).sum();
    // At most four requests at once over two threads and three backends.
    assert!(opened <= 20, "{opened} connections for 2000 requests");
    let state = balancer.state();
    let reused: u64 = (0..3)
        .map(|i| state["backends"][i]["connections_reused"].as_u64().unwrap())
        .sum();
    assert!(reused * 100 >= 2000 * 99, "{state}");
}
