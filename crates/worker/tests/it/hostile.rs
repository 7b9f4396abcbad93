//! Clients that mean harm: ambiguous heads, heads without an end, web pages of other sites.

use crate::process::{Running, ask};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends raw bytes and reads to the end.
fn raw(address: &str, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    // A worker that has answered and closed early does not read the rest.
    let _ = stream.write_all(bytes.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn ambiguous_requests_are_refused_as_at_the_balancer() {
    let worker = Running::start(&[]);
    let post = |fields: &str, body: &str| {
        let head = "POST /?mi=1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        format!("{head}{fields}\r\n{body}")
    };
    let chunked = "transfer-encoding: chunked\r\n";
    let many: String = (0..101).map(|i| format!("x-{i}: 1\r\n")).collect();
    for (request, status) in [
        (post("content-length: 2\r\n", "hi"), 200),
        (post(chunked, "2\r\nhi\r\n0\r\n\r\n"), 200),
        (post(&format!("content-length: 2\r\n{chunked}"), "hi"), 400),
        (post(&format!("{chunked}content-length: 2\r\n"), "hi"), 400),
        (
            post("content-length: 2\r\ncontent-length: 3\r\n", "hi"),
            400,
        ),
        (
            post("content-length: 2\r\ncontent-length: 2\r\n", "hi"),
            400,
        ),
        (post("x: a\r\n folded\r\n", ""), 400),
        (post("x : a\r\n", ""), 400),
        (post("host: twice\r\n", ""), 400),
        ("GET /?mi=1 HTTP/1.1\nhost: localhost\n\n".into(), 400),
        (post(&many, ""), 431),
        (post(&format!("x: {}\r\n", "x".repeat(66_000)), ""), 431),
        (post(chunked, &format!("2;{}\r\n", "e".repeat(5000))), 400),
        (
            post(chunked, &format!("0\r\nt: {}", "t".repeat(20_000))),
            400,
        ),
    ] {
        let answer = raw(&worker.traffic, &request);
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&line), "{request:.90?}: {answer:.200}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    worker.wait_for(|stats| stats["active_requests"] == 0);
}

#[test]
fn web_pages_of_other_sites_cannot_use_the_admin_listener() {
    let worker = Running::start(&[]);
    let reset = |fields: &str| ask(&worker.admin, "POST /api/reset HTTP/1.1", fields);
    assert_eq!(reset("").status, 200);
    let refused = reset("origin: http://evil.example\r\n");
    assert_eq!(refused.status, 403, "{refused:?}");
    let rebound = "POST /api/reset HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n";
    assert!(raw(&worker.admin, rebound).starts_with("HTTP/1.1 403 "));
}
