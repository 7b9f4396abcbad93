//! What is in the file after a kill and after a failed write.

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Finished, Run, rows, server::Server};

#[test]
fn a_kill_loses_less_than_the_last_second() {
    for wait in [60, 150, 310] {
        let server = Server::answering(Duration::ZERO);
        let run = Run::new(&server.url, 100_000, 5.0);
        let mut child = run.spawn();
        server.await_requests(wait);
        let long_ago = server.requests();
        std::thread::sleep(Duration::from_secs(1));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let rows = rows(&run.out());
        let seqs: HashSet<&str> = rows.iter().map(|r| r["seq"].as_str()).collect();
        assert_eq!(seqs.len(), rows.len(), "no row twice");
        for seq in 0..long_ago - 1 {
            assert!(seqs.contains(seq.to_string().as_str()), "row {seq} is lost");
        }
    }
}

/// Runs the simulator under a limit on the size of files, in blocks of 512 or 1024 bytes.
fn limited(run: &Run, blocks: u32) -> Finished {
    let simulator = run.command();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("ulimit -f {blocks}; exec \"$@\""));
    shell
        .arg("sh")
        .arg(simulator.get_program())
        .args(simulator.get_args());
    Finished::new(shell.output().expect("a shell"), &run.out())
}

#[test]
fn a_full_disk_stops_the_run_and_keeps_whole_rows() {
    let server = Server::answering(Duration::ZERO);
    for blocks in [8, 20] {
        let run = Run::new(&server.url, 2000, 2.0);
        let start = Instant::now();
        let done = limited(&run, blocks);
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert_eq!(done.summary["aborted"], "disk_full");
        assert!(done.stderr.contains("cannot write"), "{}", done.stderr);
        assert!(done.stderr.contains("rows are kept"), "{}", done.stderr);
        let text = fs::read_to_string(run.out()).expect("readable");
        assert!(text.ends_with('\n'), "the last row is whole");
        assert_eq!(done.rows.len() as u64, done.count("rows"));
        assert!(!done.rows.is_empty() && done.rows.len() < 2000);
        assert!(done.count("never_sent") > 0, "sending stopped early");
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}

/// Rows that go to a pipe, to a device and to standard output arrive as in a file.
#[test]
fn what_cannot_seek_takes_every_row() {
    let server = Server::answering(Duration::ZERO);
    let run = Run::new(&server.url, 50, 1.0);
    let header = schema::row::COLUMNS.join(",");
    let check = |text: &str| {
        assert_eq!(text.lines().next(), Some(header.as_str()));
        assert_eq!(text.lines().count(), 51, "{text}");
    };
    let made = Command::new("mkfifo").arg(run.out()).status();
    assert!(made.expect("a pipe").success());
    let child = run.spawn();
    check(&fs::read_to_string(run.out()).expect("rows"));
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(0));
    let summary: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a summary");
    assert_eq!(summary["rows"], 50);

    let mut command = run.command();
    let done = command.args(["--out", "/dev/stdout"]).output();
    let done = done.expect("the program starts");
    assert_eq!(done.status.code(), Some(0));
    check(&String::from_utf8(done.stdout).expect("text"));
    let summary: serde_json::Value = serde_json::from_slice(&done.stderr).expect("a summary");
    assert_eq!(summary["rows"], 50);
    let done = run.command().args(["--out", "/dev/null"]).output();
    assert_eq!(done.expect("the program starts").status.code(), Some(0));
}

#[test]
fn a_device_without_room_and_a_pipe_without_a_reader_end_the_run() {
    let server = Server::answering(Duration::ZERO);
    let run = Run::new(&server.url, 5, 1.0);
    let full = run.command().args(["--out", "/dev/full"]).output();
    let full = full.expect("the program starts");
    assert_eq!(full.status.code(), Some(1));
    assert_eq!(server.requests(), 0);
    let made = Command::new("mkfifo").arg(run.out()).status();
    assert!(made.expect("a pipe").success());
    let alone = run.command().output().expect("the program starts");
    assert_eq!(alone.status.code(), Some(1));
    let text = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(text.contains("nobody opened its other end"), "{text}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_file_that_cannot_be_made_is_said_before_anything_is_sent() {
    let server = Server::answering(Duration::ZERO);
    let mut run = Run::new(&server.url, 5, 1.0);
    run.flags.extend(["--run-id".into(), "x".into()]);
    fs::create_dir(run.out()).expect("a folder in the way");
    let output = run.command().output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.starts_with("error: cannot write ") && text.lines().count() == 1,
        "{text}"
    );
    assert_eq!(server.requests(), 0);
}
