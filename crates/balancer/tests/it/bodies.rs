//! Bodies in passing: streamed, bounded, cut without a valid end.

use crate::support::{Act, Backend, Balancer, fields, ok, read_all, read_head, status};
use std::io::{Read, Write};

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_cut_answer_never_ends_cleanly() {
    let backend = Backend::start(|seen| {
        let path = seen.head.split(' ').nth(1).unwrap();
        let head = match path {
            "/length" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        };
        Act::AnswerAndClose(head.as_bytes().to_vec())
    });
    let balancer = Balancer::start(&[&backend], &[]);
    for path in ["/length", "/chunked"] {
        let answer = balancer.raw(get(path));
        assert_eq!(status(&answer), 200);
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    // A client of HTTP/1.0 sees the end of the body only in the end of the connection.
    let mut stream = balancer.connect();
    stream
        .write_all(b"GET /chunked HTTP/1.0\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    assert!(
        end.is_err(),
        "a reset, not a clean end: {:?}",
        String::from_utf8_lossy(&bytes)
    );
    balancer.until("three cut", |b| {
        b.metric("plumbline_requests_ended_total{reason=\"body_truncated\"}") == 3
    });
    assert_eq!(balancer.state()["backends"][0]["errors"], 3);
    assert_eq!(balancer.state()["in_flight"], 0);
}

#[test]
fn a_stalled_answer_is_cut_and_counts_as_a_timeout() {
    let backend = Backend::start(|seen| {
        if seen.head.contains("/again") {
            return ok("fine");
        }
        Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec())
    });
    let balancer = Balancer::start(&[&backend], &["--timeout-body-idle", "200ms"]);
    let answer = balancer.raw(get("/stall"));
    assert!(answer.ends_with("half"), "{answer}");
    balancer.until("body_idle", |b| {
        b.metric("plumbline_requests_ended_total{reason=\"body_idle\"}") == 1
    });
    let timeouts = "plumbline_attempts_total{backend=\"a\",outcome=\"timeout\"}";
    assert_eq!(balancer.metric(timeouts), 1);
    assert!(
        balancer.raw(get("/again")).ends_with("fine"),
        "on a fresh connection"
    );
    assert_eq!(backend.connections(), 2);
}

#[test]
fn a_silent_upload_is_408_and_an_overlong_one_413() {
    let backend = Backend::start(|_| ok("ok"));
    let flags = ["--timeout-body-idle", "200ms", "--body-max-bytes", "1000"];
    let balancer = Balancer::start(&[&backend], &flags);
    let mut stream = balancer.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhel")
        .unwrap();
    let answer = read_all(&mut stream);
    assert_eq!(status(&answer), 408, "{answer}");
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["body_timeout"]);
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let answer = balancer.raw(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    ));
    assert_eq!(status(&answer), 413, "{answer}");
    let state = balancer.state();
    assert_eq!(state["backends"][0]["errors"], 0, "{state}");
    balancer.until("nothing in flight", |b| b.state()["in_flight"] == 0);
}

#[test]
fn large_bodies_stream_both_ways_and_are_never_held() {
    const BYTES: usize = 100 << 20;
    let backend = Backend::start(|seen| {
        assert_eq!(seen.body.len(), BYTES);
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes();
        answer.extend_from_slice(&seen.body);
        Act::Answer(answer)
    });
    let balancer = Balancer::start(&[&backend], &["--body-max-bytes", "104857600"]);
    let before_kib = balancer.memory_kib("VmRSS");
    let mut stream = balancer.connect();
    let mut writer = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).unwrap();
        let part: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        for _ in 0..BYTES >> 20 {
            writer.write_all(&part).unwrap();
        }
    });
    assert_eq!(status(&read_head(&mut stream)), 200);
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    sending.join().unwrap();
    assert_eq!(body.len(), BYTES);
    let whole = body.iter().enumerate().all(|(i, b)| *b == (i % 256) as u8);
    assert!(whole, "every byte at its place");
    let extra_kib = balancer.memory_kib("VmHWM") - before_kib;
    assert!(extra_kib < 16 << 10, "{extra_kib} KiB more at the most");
}
