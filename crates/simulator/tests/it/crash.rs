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
