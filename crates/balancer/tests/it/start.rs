//! Starting: bad input, ports, backends that are not there.

use crate::output;
use crate::support::{Backend, Balancer, ok, program};
use std::net::TcpListener;

fn refused(flags: &[&str]) -> (i32, String) {
    let done = program().args(flags).output().unwrap();
    (
        done.status.code().unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    )
}

#[test]
fn bad_input_is_named_with_its_bound_and_exits_2() {
    let good = "url=http://127.0.0.1:9";
    for (flags, parts) in [
        (vec!["--backend", "url=ftp://h:1"], vec!["url", "http://"]),
        (vec!["--backend", "url=http://h:99999"], vec!["url"]),
        (vec!["--backend", "url=http://h:1/p"], vec!["url", "path"]),
        (
            vec!["--backend", "url=http://h:1,weight=0"],
            vec!["weight", "0", "1 to 65535"],
        ),
        (
            vec!["--backend", "url=http://h:1,cores=NaN"],
            vec!["cores", "NaN"],
        ),
        (
            vec!["--backend", "url=http://h:1,wieght=1"],
            vec!["wieght", "weight"],
        ),
        (
            vec![
                "--backend",
                "name=a,url=http://h:1",
                "--backend",
                "name=a,url=http://h:2",
            ],
            vec!["--backend: ", "\"a\"", "twice"],
        ),
        (
            vec!["--backend", good, "--strategy", "plb-paper"],
            vec!["--strategy: plb-paper", "--model"],
        ),
        (
            vec!["--backend", good, "--threads", "-1"],
            vec!["'-1' for '--threads <N>'", "1..=256"],
        ),
        (vec![], vec!["--backend"]),
        (
            vec!["--backend", good, "--strategy", "rond-robin"],
            vec!["rond-robin", "round-robin"],
        ),
        (
            vec!["--backend", good, "--stats-interval", "100"],
            vec!["100", "unit"],
        ),
        (
            vec!["--backend", good, "--timeout-connect", "1h"],
            vec!["timeout-connect", "10ms"],
        ),
        (
            vec!["--backend", good, "--ask-first", "0s"],
            vec!["--ask-first", "between 1ms and 1s"],
        ),
        (
            vec!["--backend", good, "--ask-first", "0"],
            vec!["--ask-first", "unit"],
        ),
        (
            vec!["--backend", good, "--ask-first", "3"],
            vec!["--ask-first", "unit"],
        ),
        (
            vec!["--backend", good, "--ask-first", "-1ms"],
            vec!["--ask-first", "-1ms"],
        ),
        (
            vec!["--backend", good, "--ask-first", "10h"],
            vec!["--ask-first", "10h", "between 1ms and 1s"],
        ),
        (
            vec!["--backend", good, "--ask-first", "999us"],
            vec!["--ask-first", "between 1ms and 1s"],
        ),
        (
            vec!["--backend", good, "--ask-first", ""],
            vec!["--ask-first", "unit"],
        ),
        (
            vec!["--backend", good, "--admin", "0.0.0.0:0"],
            vec!["--admin", "--admin-open"],
        ),
        (
            vec!["--backend", good, "--protection", "none"],
            vec!["plain", "guarded"],
        ),
        (vec!["--backend", good, "--threads", "0"], vec!["threads"]),
    ] {
        let (code, text) = refused(&flags);
        assert_eq!(code, 2, "{flags:?}: {text}");
        assert!(text.starts_with("error: "), "{flags:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{flags:?} lacks {part}: {text}");
        }
    }
}

#[test]
fn a_port_or_a_file_that_cannot_be_had_exits_1() {
    let backend = ["--backend", "url=http://127.0.0.1:9"];
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = holder.local_addr().unwrap().to_string();
    let (code, text) =
        refused(&[&backend[..], &["--listen", &held, "--admin", "127.0.0.1:0"]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(&held), "{text}");
    let log = [
        "--event-log",
        "/nowhere/at/all.jsonl",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ];
    let (code, text) = refused(&[&backend[..], &log].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("/nowhere/at/all.jsonl"), "{text}");
}

#[test]
fn a_log_of_an_earlier_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    std::fs::write(&path, "a record\n").unwrap();
    let log = path.display().to_string();
    let flags = ["--backend", "url=http://127.0.0.1:9", "--event-log", &log];
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let (code, text) = refused(&[&flags[..], &free].concat());
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains(&log) && text.contains("name another file"),
        "{text}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a record\n");
    // A second start by mistake: the port is asked for first, so no file comes into being.
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = holder.local_addr().unwrap().to_string();
    let other = folder.path().join("other.jsonl");
    let flags = ["--backend", "url=http://127.0.0.1:9", "--listen", &held];
    let log = [
        "--admin",
        "127.0.0.1:0",
        "--event-log",
        other.to_str().unwrap(),
    ];
    assert_eq!(refused(&[&flags[..], &log].concat()).0, 1);
    assert!(!other.exists());
}

#[test]
fn an_unreachable_backend_is_named_and_the_balancer_not_ready_until_it_is_there() {
    let there = Backend::start(|_| ok("ok"));
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let missing = place.local_addr().unwrap();
    drop(place);
    let balancer = Balancer::in_front_of(&[there.address, missing], &["--strategy", "round-robin"]);
    balancer.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let (code, text) = balancer.admin("GET", "/readyz", "");
    assert_eq!(code, 503);
    assert!(text.contains(&format!("b (http://{missing})")), "{text}");
    let url = format!("http://{}", balancer.admin);
    let check = program()
        .args(["healthcheck", "--url", &url])
        .status()
        .unwrap();
    assert_eq!(check.code(), Some(1), "not ready");
    balancer.admin("DELETE", "/api/backends/b", "");
    balancer.until("ready", |b| b.admin("GET", "/readyz", "").0 == 200);
    let check = program()
        .args(["healthcheck", "--url", &url])
        .status()
        .unwrap();
    assert_eq!(check.code(), Some(0));
}

#[test]
fn a_full_or_closed_standard_output_is_no_panic() {
    for arguments in [
        vec!["strategies"],
        vec!["strategies", "--json"],
        vec!["strategies", "--check", "random"],
    ] {
        let mut command = program();
        command.args(arguments);
        output::a_full_or_closed_output_is_no_panic(command);
    }
}
