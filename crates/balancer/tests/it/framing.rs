//! What is refused, what is removed, what is passed on.

use crate::support::{Act, Backend, Balancer, fields, ok, read_all, read_head, status};
use std::io::{Read, Write};

fn get(fields: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: shop\r\n{fields}Connection: close\r\n\r\n")
}

#[test]
fn ambiguous_and_malformed_requests_get_400_with_their_reason_and_no_attempt() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    let big_head = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(66_000)
    );
    let many: String = (0..101).map(|i| format!("x-{i}: 1\r\n")).collect();
    let with = |fields: &str| format!("POST /x HTTP/1.1\r\nHost: a\r\n{fields}\r\nhello");
    let cases: Vec<(String, u16, &str)> = vec![
        (
            with("Content-Length: 5\r\nContent-Length: 6\r\n"),
            400,
            "bad_request",
        ),
        (
            with("Content-Length: 5\r\nContent-Length: 5\r\n"),
            400,
            "bad_request",
        ),
        (with("Content-Length: +5\r\n"), 400, "bad_request"),
        (with("Content-Length: 5 5\r\n"), 400, "bad_request"),
        (
            with("Content-Length: 9223372036854775808\r\n"),
            400,
            "bad_request",
        ),
        (
            with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            400,
            "bad_request",
        ),
        (
            with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            400,
            "bad_request",
        ),
        (
            with("Transfer-Encoding: gzip, chunked\r\n"),
            400,
            "bad_request",
        ),
        (
            with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            400,
            "bad_request",
        ),
        (
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400, "bad_request"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        ("GET / HTTP/1.1\nHost: a\n\n".into(), 400, "bad_request"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n".into(),
            405,
            "method",
        ),
        (long_target, 414, "uri_too_long"),
        (big_head, 431, "head_too_large"),
        (get(&many), 431, "head_too_large"),
        (
            with("Content-Length: 99999999999\r\n"),
            413,
            "body_too_large",
        ),
    ];
    for (request, code, reason) in &cases {
        let answer = balancer.raw(request);
        assert!(!answer.is_empty(), "no answer to {request:.80?}");
        assert_eq!(status(&answer), *code, "{request:.80?}: {answer}");
        assert_eq!(
            fields(&answer, "x-plumbline-reason"),
            [*reason],
            "{request:.80?}"
        );
        assert_eq!(fields(&answer, "x-plumbline-attempts"), ["0"]);
        assert_eq!(fields(&answer, "x-request-id").len(), 1);
        assert!(fields(&answer, "x-container").is_empty());
    }
    assert!(backend.seen().is_empty(), "nothing reached the backend");
    let rejected = balancer.metric("plumbline_heads_rejected_total{reason=\"bad_request\"}");
    assert_eq!(rejected, 18, "all but the one that only its target shows");
    balancer.until("nothing held", |b| b.metric("plumbline_requests_held") == 0);
}

#[test]
fn a_refused_request_is_never_followed_by_what_came_after_it() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let smuggled = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = balancer.raw(smuggled);
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    // Two good requests in one packet are both served, in order; a bad one after them ends it.
    let answer = balancer.raw("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nHost:a\r\nX : 1\r\n\r\n");
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 400").count(), 1, "{answer}");
    let paths: Vec<_> = backend
        .seen()
        .iter()
        .map(|s| s.head.split(' ').nth(1).unwrap().to_string())
        .collect();
    assert_eq!(paths, ["/1", "/2"]);
    assert_eq!(backend.seen()[1].body, b"hi");
}

#[test]
fn hop_by_hop_fields_stay_on_their_hop_and_connections_are_reused() {
    let backend = Backend::start(|_| {
        Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Plumbline-Reason: forged\r\nX-Container: forged\r\nX-Kept: 1\r\n\r\nok".to_vec())
    });
    let balancer = Balancer::start(&[&backend], &["--threads", "1"]);
    for i in 0..100 {
        let answer = balancer.raw(format!("GET /{i} HTTP/1.1\r\nHost: shop:80\r\nConnection: close, X-Foo\r\nX-Foo: 1\r\nTE: gzip\r\nUpgrade: websocket\r\nX-Plumbline-Attempt: forged\r\nX-Request-Id: r-{i}\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n"));
        let head = answer.split("\r\n\r\n").next().unwrap();
        assert_eq!(status(head), 200, "{head}");
        assert_eq!(fields(head, "connection"), ["close"], "closed as asked");
        assert_eq!(fields(head, "x-plumbline-reason"), ["backend"]);
        assert_eq!(fields(head, "x-plumbline-attempts"), ["1"]);
        assert_eq!(fields(head, "x-container"), ["a"]);
        assert_eq!(fields(head, "x-request-id"), [format!("r-{i}")]);
        assert_eq!(fields(head, "x-kept"), ["1"]);
        assert!(fields(head, "x-hop").is_empty() && fields(head, "keep-alive").is_empty());
        let decision = fields(head, "x-plumbline-decision");
        assert!(
            decision[0].contains("container=a,attempts=1,pick_ns="),
            "{decision:?}"
        );
    }
    assert_eq!(
        backend.connections(),
        1,
        "one upstream connection carries all"
    );
    for seen in backend.seen() {
        let head = &seen.head;
        assert_eq!(fields(head, "host"), ["shop:80"]);
        for gone in ["connection", "x-foo", "te", "upgrade", "keep-alive"] {
            assert!(fields(head, gone).is_empty(), "{gone}: {head}");
        }
        assert_eq!(fields(head, "x-forwarded-for"), ["127.0.0.1"]);
        assert_eq!(fields(head, "x-forwarded-host"), ["shop:80"]);
        assert_eq!(fields(head, "via"), ["1.1 plumbline"]);
        let id = fields(head, "x-request-id");
        assert_eq!(
            fields(head, "x-plumbline-attempt"),
            [format!("{}-0", id[0])]
        );
    }
}

#[test]
fn an_absolute_target_is_rewritten_and_a_bad_request_id_replaced() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let answer = balancer.raw("GET http://SHOP/a?b=1 HTTP/1.1\r\nHost: shop\r\nX-Request-Id: a b\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 200);
    let seen = &backend.seen()[0];
    assert!(
        seen.head.starts_with("GET /a?b=1 HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    let id = fields(&seen.head, "x-request-id");
    assert_eq!(id, fields(&answer, "x-request-id"));
    assert!(!id[0].contains(' '));
}

#[test]
fn methods_and_statuses_without_a_body_keep_their_framing() {
    let backend = Backend::start(|seen| {
        let bytes: &[u8] = match seen.head.split(' ').nth(1).unwrap() {
            "/head" => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "/204" => b"HTTP/1.1 204 No Content\r\n\r\n",
            "/304" => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
            "/100" => b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "/chunked" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-T: 1\r\n\r\n",
            _ => return Act::AnswerAndClose(b"HTTP/1.0 200 OK\r\n\r\nuntil the end".to_vec()),
        };
        Act::Answer(bytes.to_vec())
    });
    let balancer = Balancer::start(&[&backend], &["--threads", "1"]);
    let ask = |method: &str, path: &str| {
        balancer.raw(format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        ))
    };
    let head = ask("HEAD", "/head");
    assert!(head.ends_with("\r\n\r\n"));
    assert_eq!(fields(&head, "content-length"), ["5"]);
    assert_eq!(status(&ask("GET", "/204")), 204);
    let not_modified = ask("GET", "/304");
    assert!(not_modified.ends_with("\r\n\r\n") && status(&not_modified) == 304);
    assert!(ask("GET", "/100").ends_with("\r\n\r\nok"));
    let chunked = ask("GET", "/chunked");
    assert!(
        chunked.contains("abc") && chunked.ends_with("0\r\n\r\n"),
        "{chunked}"
    );
    assert!(!chunked.contains("X-T"), "trailers are dropped: {chunked}");
    assert_eq!(
        backend.connections(),
        1,
        "all of these leave the connection usable"
    );
    let to_the_end = ask("GET", "/close");
    assert!(to_the_end.contains("until the end") && to_the_end.ends_with("0\r\n\r\n"));
    let state = balancer.state();
    assert_eq!(state["backends"][0]["ok"], 6, "{state}");
    assert_eq!(state["backends"][0]["cancelled"], 0, "{state}");
}

#[test]
fn ambiguous_answers_are_502() {
    let answers: [&[u8]; 6] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
        b"not http at all\r\n\r\n",
    ];
    for bytes in answers {
        let backend = Backend::start(move |_| Act::Answer(bytes.to_vec()));
        let balancer = Balancer::start(&[&backend], &[]);
        let answer = balancer.raw(get(""));
        assert_eq!(status(&answer), 502, "{answer}");
        assert_eq!(
            fields(&answer, "x-plumbline-reason"),
            ["backend_bad_response"]
        );
        assert_eq!(fields(&answer, "x-container"), ["a"]);
        let state = balancer.state();
        assert_eq!(state["backends"][0]["errors"], 1, "{state}");
    }
}

#[test]
fn bodies_of_both_kinds_arrive_whole_and_broken_ones_are_400() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let post = |rest: &str| {
        balancer.raw(format!(
            "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{rest}"
        ))
    };
    assert_eq!(status(&post("Content-Length: 5\r\n\r\nhello")), 200);
    assert_eq!(
        status(&post(
            "Transfer-Encoding: chunked\r\n\r\n5;ext=\"1\"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"
        )),
        200
    );
    let chunked_get = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(status(&balancer.raw(chunked_get)), 200);
    for seen in backend.seen() {
        assert_eq!(seen.body, b"hello", "{}", seen.head);
        assert!(fields(&seen.head, "x-t").is_empty());
    }
    for broken in [
        "zz\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX",
        "fffffffffffffffff\r\n",
        "5\nhello",
    ] {
        let answer = post(&format!("Transfer-Encoding: chunked\r\n\r\n{broken}"));
        assert_eq!(status(&answer), 400, "{broken:?}: {answer}");
        assert_eq!(fields(&answer, "x-plumbline-reason"), ["bad_request"]);
    }
    let state = balancer.state();
    assert_eq!(
        state["backends"][0]["errors"], 0,
        "no fault of the backend: {state}"
    );
}

#[test]
fn expect_100_is_answered_before_the_body() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let mut stream = balancer.connect();
    stream.write_all(b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 100 "));
    stream.write_all(b"hello").unwrap();
    assert_eq!(status(&read_all(&mut stream)), 200);
    assert!(fields(&backend.seen()[0].head, "expect").is_empty());
}

#[test]
fn a_late_head_is_408_and_an_idle_connection_just_ends() {
    let backend = Backend::start(|_| ok("ok"));
    let flags = ["--timeout-head", "200ms", "--client-idle", "300ms"];
    let balancer = Balancer::start(&[&backend], &flags);
    let mut stream = balancer.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    let answer = read_all(&mut stream);
    assert_eq!(status(&answer), 408, "{answer}");
    assert_eq!(fields(&answer, "x-plumbline-reason"), ["head_timeout"]);
    let mut stream = balancer.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(status(&read_head(&mut stream)), 200);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"ok", "closed without another word");
}

/// RFC 9112 section 2.2: a server should ignore at least one empty line before a request line.
#[test]
fn one_empty_line_before_a_head_is_dropped_and_a_second_one_refused() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let last = get("");
    let post = |body: &str| format!("POST /p HTTP/1.1\r\nHost: a\r\n{body}");
    let length = post("Content-Length: 2\r\n\r\nhi");
    let chunks = post("Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    let no_body = "GET /n HTTP/1.1\r\nHost: a\r\n\r\n";
    for (request, codes) in [
        (format!("\r\n{last}"), vec![200]),
        (format!("{length}\r\n{last}"), vec![200, 200]),
        (format!("{chunks}\r\n{last}"), vec![200, 200]),
        (format!("\r\n{no_body}\r\n{last}"), vec![200, 200]),
        (format!("\r\n\r\n{last}"), vec![400]),
        (format!("{length}\r\n\r\n{last}"), vec![200, 400]),
        (format!("\n{last}"), vec![400]),
        (format!("\r\n\n{last}"), vec![400]),
        (format!("\r\n {last}"), vec![400]),
        (format!("\r{last}"), vec![400]),
        // Still one request: what looks like another is its body.
        (
            format!(
                "\r\nPOST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n\r\n{no_body}",
                no_body.len() + 2
            ),
            vec![200],
        ),
    ] {
        let before = backend.seen().len();
        let answer = balancer.raw(&request);
        let got: Vec<u16> = answer
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|head| head[..3].parse().unwrap())
            .collect();
        assert_eq!(got, codes, "{request:?}: {answer}");
        let passed = codes.iter().filter(|code| **code == 200).count();
        let seen = backend.seen().split_off(before);
        assert_eq!(seen.len(), passed, "{request:?}");
        assert!(seen.iter().all(|s| !s.head.starts_with(['\r', '\n'])));
    }
    // However its bytes come.
    let mut stream = balancer.connect();
    for part in ["\r", "\n", "GE", &last[2..]] {
        stream.write_all(part.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(status(&read_all(&mut stream)), 200);
}

#[test]
fn an_empty_line_neither_starts_nor_stops_the_clock_of_a_head() {
    let backend = Backend::start(|_| ok("ok"));
    let flags = ["--timeout-head", "1s", "--client-idle", "1h"];
    let balancer = Balancer::start(&[&backend], &flags);
    let mut lone = balancer.connect();
    lone.write_all(b"\r\n").unwrap();
    assert_eq!(status(&read_all(&mut lone)), 408);
    let mut kept = balancer.connect();
    kept.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(status(&read_head(&mut kept)), 200);
    kept.read_exact(&mut [0; 2]).unwrap();
    // The end of a body, as some clients write it; then silence for longer than a head may take.
    kept.write_all(b"\r\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1300));
    let (begin, end) = (
        "GET /y HTTP/1.1\r\n",
        "Host: a\r\nConnection: close\r\n\r\n",
    );
    kept.write_all(begin.as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    kept.write_all(end.as_bytes()).unwrap();
    assert_eq!(status(&read_all(&mut kept)), 200);
}
