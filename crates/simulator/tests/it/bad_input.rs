//! Bad input ends the program before anything is sent, with one line that says what to change.

use std::fs;
use std::time::Duration;

use crate::{Run, server::Server};

#[test]
fn flags_out_of_bounds_are_refused_with_the_bound() {
    let server = Server::answering(Duration::ZERO);
    let cases = [
        (vec!["--speed", "0"], "0.001 to 1000000"),
        (vec!["--speed", "NaN"], "0.001 to 1000000"),
        (vec!["--timeout", "30"], "no unit"),
        (vec!["--timeout", "0s"], "1ms to 1h"),
        (vec!["--warmup", "-1"], "--warmup"),
        (vec!["--block", "-1"], "'-1' for '--block <N>'"),
        (vec!["--slots", "-1"], "1..=100000"),
        (vec!["--warmup", "2"], "allowed: 0 to 1"),
        (vec!["--max-in-flight", "0"], "1..=1000000"),
        (vec!["--run-id", "a b"], "A-Z a-z 0-9"),
        (vec!["--run-id", ""], "1 to 100 characters"),
        (vec!["--calls", "3"], "--slots"),
        (vec!["--slots", "0"], "1..=100000"),
        (vec!["--slots", "9", "--max-in-flight", "8"], "1 to 8"),
        (vec!["--slots", "9", "--callers", "8"], "9 or more"),
        (vec!["--slots", "2", "--speed", "2"], "cannot be used with"),
        (vec!["--wormup", "1"], "--warmup"),
    ];
    for (flags, expected) in cases {
        let run = Run::new(&server.url, 2, 1.0)
            .without_lag_bound()
            .flags(&flags);
        let done = run.finish();
        assert_eq!(done.code, Some(2), "{flags:?}: {}", done.stderr);
        assert!(
            done.stderr.starts_with("error: "),
            "{flags:?}: {}",
            done.stderr
        );
        assert!(done.stderr.contains(expected), "{flags:?}: {}", done.stderr);
        assert!(!run.out().exists(), "{flags:?}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_bad_target_is_bad_input_and_an_unreachable_one_a_failure() {
    for url in [
        "127.0.0.1:80",
        "https://127.0.0.1:1",
        "http://127.0.0.1:1/x",
        "http://h:99999",
    ] {
        let done = Run::new(url, 2, 1.0).finish();
        assert_eq!(done.code, Some(2), "{url}: {}", done.stderr);
        assert!(
            done.stderr.contains(&format!("--target: {url}: ")),
            "{}",
            done.stderr
        );
    }
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let run = Run::new(&format!("http://127.0.0.1:{port}"), 2, 1.0);
    let done = run.finish();
    assert_eq!(done.code, Some(1));
    assert!(
        done.stderr.contains("is the balancer running?"),
        "{}",
        done.stderr
    );
    assert!(!run.out().exists(), "an older file would have been kept");
}

#[test]
fn a_bad_workload_names_its_place_and_a_missing_one_its_path() {
    let run = Run::new("http://127.0.0.1:1", 2, 1.0);
    let file = run.folder.path().join("w.json");
    let text = fs::read_to_string(&file).expect("written");
    fs::write(&file, text.replace("400.5", "-4")).expect("written");
    let done = run.finish();
    assert_eq!(done.code, Some(2));
    let place = format!("{}:2:", file.display());
    assert!(done.stderr.contains(&place), "{}", done.stderr);
    assert!(
        done.stderr.contains("apis[0].task_size_mi: -4: too small"),
        "{}",
        done.stderr
    );
    fs::remove_file(&file).expect("removed");
    let done = run.finish();
    assert_eq!(done.code, Some(2));
    let missing = format!("error: {}: cannot read it: ", file.display());
    assert!(done.stderr.starts_with(&missing), "{}", done.stderr);
    std::os::unix::fs::symlink("/dev/zero", &file).expect("linked");
    let done = run.finish();
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("is too large"), "{}", done.stderr);
}

#[test]
fn the_workload_is_never_replaced_by_rows() {
    let run = Run::new("http://127.0.0.1:1", 2, 1.0);
    let file = run.folder.path().join("w.json");
    let before = fs::read(&file).expect("written");
    fs::hard_link(&file, run.out()).expect("linked");
    let output = run.command().output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("error: --out: "), "{stderr}");
    assert_eq!(fs::read(&file).expect("still there"), before);
}
