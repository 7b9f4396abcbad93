//! Backends' answers that break the rules, and what reaches the client of them.

use crate::support::{Act, Backend, Balancer, fields, ok, read_head, status};
use std::io::Write;

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn in_front_of(answer: &'static str) -> (Backend, Balancer) {
    let backend = Backend::start(move |_| Act::AnswerAndClose(answer.as_bytes().to_vec()));
    let balancer = Balancer::start(&[&backend], &["--protection", "plain"]);
    (backend, balancer)
}

#[test]
fn an_answer_malformed_where_it_begins_is_a_bad_gateway_that_names_its_backend() {
    let cases = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 600 Odd\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 000 Odd\r\nContent-Length: 2\r\n\r\nok",
    ];
    for answer in cases {
        let (_backend, balancer) = in_front_of(answer);
        let told = balancer.raw(GET);
        assert_eq!(status(&told), 502, "{answer:?}: {told:?}");
        assert_eq!(
            fields(&told, "x-plumbline-reason"),
            ["backend_bad_response"]
        );
        assert_eq!(fields(&told, "x-container"), ["a"]);
        balancer.until("counted", |b| {
            b.metric("plumbline_attempts_total{backend=\"a\",outcome=\"error\"}") == 1
        });
    }
}

/// The head is on its way then: it arrives, with what came before the break, and the end is no clean one.
#[test]
fn an_answer_broken_later_brings_what_came_before_and_no_clean_end() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n";
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let bare = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    for (answer, body) in [(chunked, "5\r\nhello\r\n"), (cut, "hello"), (bare, "")] {
        let (_backend, balancer) = in_front_of(answer);
        let told = balancer.raw(GET);
        let (head, rest) = told.split_once("\r\n\r\n").expect("a head");
        assert_eq!(status(head), 200, "{told:?}");
        assert_eq!(fields(head, "x-container"), ["a"]);
        assert_eq!(rest, body);
        balancer.until("counted", |b| {
            b.metric("plumbline_requests_ended_total{reason=\"body_truncated\"}") == 1
        });
    }
}

#[test]
fn a_client_of_old_keeps_its_connection_only_where_it_sees_the_end() {
    let old = "GET /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let unsaid = "HTTP/1.1 200 OK\r\n\r\nhello";
    for answer in [chunked, unsaid] {
        let (_backend, balancer) = in_front_of(answer);
        let told = balancer.raw(old);
        let (head, body) = told.split_once("\r\n\r\n").expect("a head");
        assert_eq!(status(head), 200, "{told:?}");
        assert!(fields(head, "transfer-encoding").is_empty(), "{head}");
        assert!(fields(head, "content-length").is_empty(), "{head}");
        assert_eq!(fields(head, "connection"), ["close"], "{head}");
        assert_eq!(body, "hello");
    }
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let mut stream = balancer.connect();
    for _ in 0..2 {
        stream.write_all(old.as_bytes()).unwrap();
        let head = read_head(&mut stream);
        assert_eq!(fields(&head, "connection"), ["keep-alive"], "{head}");
        assert_eq!(fields(&head, "content-length"), ["2"]);
        let mut body = [0; 2];
        std::io::Read::read_exact(&mut stream, &mut body).unwrap();
    }
}

#[test]
fn a_task_size_given_twice_is_refused_before_any_attempt() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    for second in ["400", "500"] {
        let told = balancer.raw(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Task-Size-MI: 400\r\nx-task-size-mi: {second}\r\n\r\n"
        ));
        assert_eq!(status(&told), 400, "{told}");
        assert_eq!(fields(&told, "x-plumbline-attempts"), ["0"]);
    }
    assert!(backend.seen().is_empty());
}

#[test]
fn a_balancer_that_is_its_own_backend_says_so_and_does_not_go_on_for_ever() {
    let worker = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&worker], &["--stats-interval", "10min"]);
    let itself = format!(
        "{{\"name\":\"self\",\"url\":\"http://{}\"}}",
        balancer.traffic
    );
    assert_eq!(balancer.admin("POST", "/api/backends", &itself).0, 201);
    assert_eq!(balancer.admin("DELETE", "/api/backends/a", "").0, 200);
    let told = balancer.raw(GET);
    assert_eq!(status(&told), 508, "{told}");
    assert!(told.contains("goes round among balancers"), "{told}");
    // The poll of its statistics goes round too, and as often.
    balancer.until("each has passed it nine times", |b| {
        let rounds = b.metric("plumbline_requests_ended_total{reason=\"loop\"}");
        rounds > 0 && b.metric("plumbline_requests_received_total") == 9 * rounds
    });
}
