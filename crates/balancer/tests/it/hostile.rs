//! Peers that mean harm: backends that never end, clients that never finish, both at odd moments.

use crate::support::{
    Act, Backend, Balancer, PATIENCE, connect, fields, ok, read_all, read_head, status,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A backend that answers every request with `head` and then with `rest` without end.
fn endless(head: &'static str, rest: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                if read_head(&mut stream).is_empty() {
                    return;
                }
                let many = rest.repeat(1000);
                let mut sent = stream.write_all(head.as_bytes());
                while sent.is_ok() {
                    sent = stream.write_all(many.as_bytes());
                }
            });
        }
    });
    address
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn interim_answers_without_end_are_502_and_the_thread_goes_on() {
    let endless = endless("", "HTTP/1.1 100 Continue\r\n\r\n");
    let flags = ["--threads", "1", "--timeout-total", "60s"];
    let flags = [&flags[..], &["--protection", "plain"]].concat();
    let balancer = Balancer::in_front_of(&[endless], &flags);
    let answer = balancer.raw(GET);
    assert_eq!(status(&answer), 502, "{answer}");
    assert_eq!(
        fields(&answer, "x-plumbline-reason"),
        ["backend_bad_response"]
    );
    assert_eq!(balancer.state()["backends"][0]["errors"], 1);

    // Some of them before an answer are as good as none.
    let some = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(100);
    let backend = Backend::start(move |_| {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        Act::Answer(format!("{some}{answer}").into_bytes())
    });
    let balancer = Balancer::start(&[&backend], &[]);
    assert!(balancer.raw(GET).ends_with("ok"));
}

#[test]
fn a_statistics_page_without_end_is_given_up_in_bounded_memory() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let page = endless(
        head,
        "40\r\n                                                                \r\n",
    );
    let flags = ["--stats-interval", "10s", "--threads", "1"];
    let balancer = Balancer::in_front_of(&[page], &flags);
    balancer.until("a poll has failed", |b| {
        b.state()["backends"][0]["polls_failed"].as_u64() > Some(0)
    });
    assert!(balancer.memory_kib("VmHWM") < 64 << 10);
}

#[test]
fn the_head_limit_is_the_same_on_new_and_kept_connections_and_at_the_admin_door() {
    let backend = Backend::start(|_| ok("ok"));
    let flags = ["--timeout-head", "300ms", "--client-idle", "1h"];
    let balancer = Balancer::start(&[&backend], &flags);
    for door in [balancer.traffic, balancer.admin] {
        let mut fresh = connect(door);
        fresh.write_all(b"GET / HT").unwrap();
        assert_eq!(status(&read_all(&mut fresh)), 408, "a new connection");
        let mut kept = connect(door);
        kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let head = read_head(&mut kept);
        let length: usize = fields(&head, "content-length")[0].parse().unwrap();
        kept.read_exact(&mut vec![0; length]).unwrap();
        kept.write_all(b"GET / HT").unwrap();
        // Were it the idle limit, this read would meet its own end first.
        assert_eq!(status(&read_all(&mut kept)), 408, "a kept connection");
        // A byte now and then makes no difference.
        let mut slow = connect(door);
        let started = Instant::now();
        while slow.write_all(b"x").is_ok() {
            assert!(started.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_new_client_takes_the_place_of_the_longest_idle_one() {
    let backend = Backend::start(|seen| {
        if seen.head.contains("/hang") {
            return Act::Hang;
        }
        ok("ok")
    });
    let flags = ["--max-connections", "3", "--threads", "2"];
    let balancer = Balancer::start(&[&backend], &flags);
    let ask = |stream: &mut TcpStream| {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let head = read_head(stream);
        stream.read_exact(&mut [0; 2]).unwrap();
        status(&head)
    };
    let mut busy = balancer.connect();
    busy.write_all(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    balancer.until("busy", |b| b.state()["in_flight"] == 1);
    let mut idle: Vec<TcpStream> = (0..2).map(|_| balancer.connect()).collect();
    for stream in &mut idle {
        assert_eq!(ask(stream), 200);
    }
    // All places are taken; one more comes in, and the one that is at work stays.
    for _ in 0..5 {
        assert_eq!(ask(&mut balancer.connect()), 200);
    }
    assert_eq!(read_all(&mut idle[0]), "", "closed without a word");
    assert_eq!(balancer.state()["in_flight"], 1);
    let admin = (0..70).map(|_| connect(balancer.admin)).collect::<Vec<_>>();
    assert_eq!(balancer.admin("GET", "/healthz", "").0, 200);
    drop((admin, busy));
    balancer.until("idle", |b| b.state()["in_flight"] == 0);
}

#[test]
fn what_a_worker_says_of_itself_never_breaks_the_balancer() {
    let values = [
        "queue_wait_us=18446744073709551615,service_time_us=18446744073709551615",
        "queue_wait_us=99999999999999999999,service_time_us=1",
        "queue_wait_us=-1,service_time_us=NaN",
        "\u{fc}\u{fc},,,===",
        "TEXT named_metrics.active=1e300,eps=1e308,named_metrics.sequence=1e30",
        "TEXT cpu_utilization=-inf",
        "999999999999999999999999",
    ];
    let backend = Backend::start(move |seen| {
        let number: usize = seen.head.split([' ', '/']).nth(2).unwrap().parse().unwrap();
        let value = values[number];
        let names = [
            "x-worker-timing",
            "endpoint-load-metrics",
            "x-worker-work-left",
            "retry-after",
        ];
        let lines = names.map(|name| format!("{name}: {value}\r\n")).concat();
        Act::Answer(format!("HTTP/1.1 503 No\r\nContent-Length: 0\r\n{lines}\r\n").into_bytes())
    });
    for strategy in [
        "polled-least-request",
        "orca-wrr",
        "c3",
        "prequal",
        "wl-mc:reports=work",
    ] {
        let flags = ["--strategy", strategy, "--eject-mode", "off"];
        let balancer = Balancer::start(&[&backend], &flags);
        for number in 0..values.len() {
            let get = format!(
                "GET /{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Task-Size-Mi: 1e300\r\n\r\n"
            );
            assert_eq!(status(&balancer.raw(get)), 503, "{strategy} {number}");
        }
        assert_eq!(balancer.state()["in_flight"], 0);
    }
}

#[test]
fn a_name_is_checked_at_both_doors() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let address = backend.address;
    for name in ["n,weight=7", "a\\\"b", "a\\nb", "{a}", "", "a b", "\u{fc}"] {
        let body = format!("{{\"name\":\"{name}\",\"url\":\"http://{address}\"}}");
        let (code, text) = balancer.admin("POST", "/api/backends", &body);
        assert_eq!(code, 400, "{name}: {text}");
        assert!(text.contains("letters, digits"), "{name}: {text}");
    }
    let url = format!("{{\"name\":\"b\",\"url\":\"http://{address},weight=7\"}}");
    assert_eq!(balancer.admin("POST", "/api/backends", &url).0, 400);
    let list = balancer.admin("GET", "/api/backends", "").1;
    assert_eq!(list.matches("\"name\"").count(), 1, "{list}");
}

#[test]
fn a_killed_backend_under_load_leaves_nothing_in_flight() {
    let good = Backend::start(|_| ok("good"));
    let killed = Backend::start(|_| Act::AnswerAndReset(Vec::new()));
    let flags = ["--strategy", "round-robin", "--eject-mode", "off"];
    let balancer = Balancer::start(&[&good, &killed], &flags);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let address = balancer.traffic;
            std::thread::spawn(move || {
                (0..25)
                    .map(|_| {
                        let mut stream = connect(address);
                        stream.write_all(GET.as_bytes()).unwrap();
                        status(&read_all(&mut stream))
                    })
                    .collect::<Vec<u16>>()
            })
        })
        .collect();
    let mut codes: Vec<u16> = clients
        .into_iter()
        .flat_map(|c| c.join().unwrap())
        .collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, [200, 502]);
    balancer.until("idle", |b| b.state()["in_flight"] == 0);
}

#[test]
fn odd_requests_are_served_or_refused_and_never_hang() {
    let backend = Backend::start(|_| ok("ok"));
    let balancer = Balancer::start(&[&backend], &[]);
    let long = "x".repeat(65_000);
    for (request, code) in [
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: {long}\r\n\r\n"),
            200,
        ),
        (
            "PROPFIND /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".into(),
            200,
        ),
        (
            "get / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".into(),
            200,
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".into(),
            200,
        ),
        ("GET / HTTP/1.0\r\nHost: a\r\n\r\n".into(), 200),
        (
            "GET http://a/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".into(),
            200,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
                .into(),
            200,
        ),
        (
            format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(33)),
            400,
        ),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".into(), 400),
        ("\r\n\r\n".into(), 400),
        (
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;{}",
                "e".repeat(5000)
            ),
            400,
        ),
        (
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: {}",
                "t".repeat(20_000)
            ),
            400,
        ),
    ] {
        let answer = balancer.raw(&request);
        assert!(!answer.is_empty(), "{request:.60?}");
        assert_eq!(status(&answer), code, "{request:.60?}: {answer}");
    }
    let three = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2) + GET;
    assert_eq!(balancer.raw(three).matches("HTTP/1.1 200").count(), 3);
    balancer.until("nothing held", |b| b.metric("plumbline_requests_held") == 0);
}
