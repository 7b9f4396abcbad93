//! The admin API.

use crate::support::{Act, Backend, Balancer, connect, ok, program, read_all, read_head, status};
use serde_json::Value;
use std::io::{Read, Write};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn backends_are_listed_added_changed_drained_and_removed() {
    let (one, two) = (Backend::start(|_| ok("one")), Backend::start(|_| ok("two")));
    let balancer = Balancer::start(&[&one], &["--strategy", "round-robin"]);
    let list = json(&balancer.admin("GET", "/api/backends", "").1);
    assert_eq!(list[0]["name"], "a");
    assert_eq!(list[0]["state"], "up");
    let new = format!(
        "{{\"name\":\"z\",\"url\":\"http://{}\",\"weight\":3,\"cores\":2,\"memory_gb\":1}}",
        two.address
    );
    assert_eq!(balancer.admin("POST", "/api/backends", &new).0, 201);
    assert_eq!(
        balancer.admin("POST", "/api/backends", &new).0,
        409,
        "the name is taken"
    );
    let ask = || balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(balancer.admin("POST", "/api/backends/a/drain", "").0, 200);
    for _ in 0..4 {
        assert!(ask().ends_with("two"));
    }
    assert_eq!(
        json(&balancer.admin("GET", "/api/backends", "").1)[0]["state"],
        "draining"
    );
    assert_eq!(balancer.admin("POST", "/api/backends/a/undrain", "").0, 200);
    assert_eq!(
        balancer
            .admin("PATCH", "/api/backends/z", "{\"weight\":7}")
            .0,
        200
    );
    assert_eq!(
        json(&balancer.admin("GET", "/api/backends", "").1)[1]["weight"],
        7
    );
    assert_eq!(balancer.admin("DELETE", "/api/backends/z", "").0, 200);
    for _ in 0..4 {
        assert!(ask().ends_with("one"));
    }
    for (method, path, body, code) in [
        ("PATCH", "/api/backends/a", "{\"weight\":0}", 400),
        ("PATCH", "/api/backends/a", "{\"weight\":65536}", 400),
        ("PATCH", "/api/backends/a", "{\"wieght\":1}", 400),
        ("PATCH", "/api/backends/nobody", "{\"weight\":1}", 404),
        ("DELETE", "/api/backends/nobody", "", 404),
        ("POST", "/api/backends", "{\"url\":\"ftp://x\"}", 400),
        ("POST", "/api/backends", "{}", 400),
        ("POST", "/api/backends", "not json", 400),
        ("PUT", "/api/strategy", "{\"strategy\":\"nonsense\"}", 400),
        ("GET", "/api/nothing", "", 404),
        ("POST", "/api/strategy", "", 405),
    ] {
        let (got, text) = balancer.admin(method, path, body);
        assert_eq!(got, code, "{method} {path} {body}: {text}");
    }
    let (_, text) = balancer.admin("PUT", "/api/strategy", "{\"strategy\":\"nonsense\"}");
    assert!(
        text.contains("round-robin"),
        "the known ones are listed: {text}"
    );
}

#[test]
fn the_strategy_is_changed_live() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let (code, _) = balancer.admin("PUT", "/api/strategy", "{\"strategy\":\"least-request\"}");
    assert_eq!(code, 200);
    assert_eq!(
        json(&balancer.admin("GET", "/api/strategy", "").1)["strategy"],
        "least-request"
    );
    let known = json(&balancer.admin("GET", "/api/strategies", "").1);
    assert!(
        known
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["name"] == "round-robin")
    );
    let listed = program().args(["strategies", "--json"]).output().unwrap();
    assert_eq!(json(&String::from_utf8(listed.stdout).unwrap()), known);
}

#[test]
fn a_clients_error_is_neither_ok_nor_the_backends_fault() {
    let backend = Backend::start(|seen| {
        if seen.head.starts_with("GET /bad ") {
            let text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            return Act::Answer(text.into());
        }
        ok("ok")
    });
    let balancer = Balancer::start(&[&backend], &[]);
    for path in ["/bad", "/good", "/bad"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        balancer.raw(get);
    }
    balancer.until("all are counted", |b| b.state()["in_flight"] == 0);
    let backend = &balancer.state()["backends"][0];
    assert_eq!(backend["client_errors"], 2, "{backend}");
    assert_eq!(backend["ok"], 1, "{backend}");
    assert_eq!(backend["errors"], 0, "{backend}");
    let sample = "plumbline_attempts_total{backend=\"a\",outcome=\"client_error\"}";
    assert_eq!(balancer.metric(sample), 2);
}

#[test]
fn words_of_a_parameter_are_listed_for_a_menu() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let known = json(&balancer.admin("GET", "/api/strategies", "").1);
    let parameter = |strategy: &str, name: &str| {
        let entry = known.as_array().unwrap().iter();
        let mut entry = entry.filter(|s| s["name"] == strategy);
        let all = entry.next().unwrap()["parameters"].clone();
        let found = all.as_array().unwrap().iter().find(|p| p["name"] == name);
        found.unwrap().clone()
    };
    let ties = parameter("least-request", "ties");
    assert_eq!(ties["only_words"], true);
    assert!(ties["words"].as_array().unwrap().contains(&ties["default"]));
    let forget = parameter("min-response-time", "forget");
    assert_eq!(forget["only_words"], false);
    assert_eq!(forget["words"], serde_json::json!(["never"]));
}

#[test]
fn engine_reports_reach_the_decision() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let reports = "[{\"backend\":\"a\",\"cpu_percent\":81.5,\"memory_used_bytes\":104857600}]";
    let (code, text) = balancer.admin("POST", "/api/reports", reports);
    assert!((200..300).contains(&code), "{text}");
    let answer = balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(
        answer.contains("cpu_percent=81.5,memory_mib=100"),
        "{answer}"
    );
    for bad in [
        "[{\"backend\":\"x\"}]",
        "[{\"backend\":\"a\",\"cpu_percent\":-1}]",
        "{}",
    ] {
        let (code, _) = balancer.admin("POST", "/api/reports", bad);
        assert!((400..500).contains(&code), "{bad}");
    }
}

#[test]
fn events_are_streamed_and_the_page_stands_alone() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut stream = connect(balancer.admin);
    stream
        .write_all(b"GET /api/events?interval=50ms HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert_eq!(status(&read_head(&mut stream)), 200);
    let mut text = String::new();
    let mut part = [0_u8; 4096];
    while text.matches("data: ").count() < 3 {
        let n = stream.read(&mut part).unwrap();
        text.push_str(&String::from_utf8_lossy(&part[..n]));
    }
    let line = text.lines().find_map(|l| l.strip_prefix("data: ")).unwrap();
    let state = json(line);
    assert_eq!(state["backends"][0]["ok"], 1);
    assert_eq!(state["last_picks"][0], "a");
    assert_eq!(balancer.admin("GET", "/api/events?interval=1ns", "").0, 400);
    let (code, page) = balancer.admin("GET", "/", "");
    assert_eq!(code, 200);
    assert!(page.contains("/api/events") && page.contains("<canvas"));
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "nothing is fetched"
    );
}

#[test]
fn web_pages_and_strangers_are_kept_out() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let ask = |fields: &str| {
        let mut stream = connect(balancer.admin);
        let head = format!(
            "POST /api/backends/a/drain HTTP/1.1\r\n{fields}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        status(&read_all(&mut stream))
    };
    assert_eq!(ask("Host: evil.example\r\n"), 403);
    assert_eq!(
        ask("Host: localhost\r\nOrigin: http://evil.example\r\n"),
        403
    );
    assert_eq!(
        ask("Host: localhost:1\r\nOrigin: http://localhost:1\r\n"),
        200
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token = "0123456789abcdef0123456789abcdef";
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let flag = file.display().to_string();
    let balancer = Balancer::start(&[&backend], &["--admin-token-file", &flag]);
    assert_eq!(balancer.admin("GET", "/api/backends", "").0, 401);
    assert_eq!(balancer.admin("GET", "/healthz", "").0, 200);
    let mut stream = connect(balancer.admin);
    let head = format!(
        "GET /api/backends HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(status(&read_all(&mut stream)), 200);

    // Admin paths on the traffic port are ordinary ones.
    let answer = balancer.raw("GET /api/backends HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with("ok"));
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn a_stop_finishes_what_runs_and_cuts_what_does_not() {
    let backend = Backend::start(|seen| {
        if seen.head.contains("/hang") {
            return Act::Hang;
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        ok("finished")
    });
    let mut balancer = Balancer::start(&[&backend], &[]);
    let mut running = balancer.connect();
    running
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    balancer.until("running", |b| b.state()["in_flight"] == 1);
    balancer.signal("-TERM");
    assert!(read_all(&mut running).ends_with("finished"));
    assert_eq!(balancer.wait().code(), Some(0));

    let mut balancer = Balancer::start(&[&backend], &["--shutdown-grace", "100ms"]);
    let mut running = balancer.connect();
    running
        .write_all(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    balancer.until("running", |b| b.state()["in_flight"] == 1);
    balancer.signal("-TERM");
    assert_eq!(balancer.wait().code(), Some(1), "something was cut");
}

#[test]
fn a_list_where_an_object_is_meant_is_refused_and_changes_nothing() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &["--strategy", "random"]);
    let cases = [
        (
            "POST",
            "/api/backends",
            "[null,\"http://127.0.0.1:1\",1,1,1]",
        ),
        ("PATCH", "/api/backends/a", "[7]"),
        ("PUT", "/api/strategy", "[\"round-robin\"]"),
        ("POST", "/api/reset", "[null,9,null]"),
        ("POST", "/api/reports", "[[\"a\",5.0,1]]"),
        ("POST", "/api/reset", "[]"),
        ("POST", "/api/reset", "null"),
    ];
    for (method, path, body) in cases {
        let (code, text) = balancer.admin(method, path, body);
        assert_eq!(code, 400, "{path} {body}: {text}");
        assert!(text.contains("expected an object"), "{path} {body}: {text}");
    }
    let state = balancer.state();
    assert_eq!(state["strategy"], "random");
    assert_eq!(
        (&state["backends"][0]["weight"], &state["backends"][1]),
        (&1.into(), &serde_json::Value::Null)
    );
    let long = format!("{{\"{}\":1}}", "x".repeat(500_000));
    let (code, text) = balancer.admin("POST", "/api/reset", &long);
    assert_eq!(code, 400);
    assert!(text.len() < 1000, "{} bytes", text.len());
}

#[test]
fn without_a_backend_that_takes_requests_it_is_not_ready() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    balancer.until("ready", |b| b.admin("GET", "/readyz", "").0 == 200);
    let order = |method, path| assert_eq!(balancer.admin(method, path, "").0, 200);
    let not_ready = || {
        let (code, text) = balancer.admin("GET", "/readyz", "");
        assert_eq!(code, 503, "{text}");
        assert!(text.contains("no backend takes requests"), "{text}");
    };
    order("POST", "/api/backends/a/drain");
    not_ready();
    order("POST", "/api/backends/a/undrain");
    assert_eq!(balancer.admin("GET", "/readyz", "").0, 200);
    order("DELETE", "/api/backends/a");
    not_ready();
}
