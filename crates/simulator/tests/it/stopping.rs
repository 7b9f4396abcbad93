//! Signals: what was recorded stays, the rest is named, the exit code tells.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Run;
use crate::server::{Act, Server, answer};

fn stopped_by(signal: Signal) -> crate::Finished {
    let server = Server::answering(Duration::from_millis(100));
    let run = Run::new(&server.url, 400, 10.0);
    let child = run.spawn();
    server.await_requests(50);
    kill_process(Pid::from_child(&child), signal).expect("sent");
    run.wait(child)
}

#[test]
fn an_interrupt_keeps_every_row_and_names_what_was_not_sent() {
    let done = stopped_by(Signal::INT);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_eq!(done.summary["interrupted"], true);
    assert_eq!(done.count("rows"), 400);
    assert_eq!(done.count("ok") + done.count("never_sent"), 400);
    assert!(done.count("ok") >= 50);
    assert!(done.column("error").contains(&"never_sent:interrupted"));
    assert_eq!(done.summary["generator_saturated"], false);
}

#[test]
fn a_termination_has_its_own_exit_code() {
    assert_eq!(stopped_by(Signal::TERM).code, Some(143));
}

#[test]
fn what_does_not_end_within_the_drain_is_cancelled() {
    let server = server_that_hangs_on_the_first(20);
    let run = Run::new(&server.url, 1000, 10.0);
    let child = run.spawn();
    server.await_requests(40);
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    let done = run.wait(child);
    assert_eq!(done.code, Some(130));
    assert_eq!(done.count("cancelled"), 20);
    assert_eq!(done.rows.len(), 1000);
}

#[test]
fn a_second_interrupt_flushes_and_leaves() {
    let server = server_that_hangs_on_the_first(20);
    let run = Run::new(&server.url, 1000, 10.0);
    let child = run.spawn();
    let pid = Pid::from_child(&child);
    server.await_requests(60);
    kill_process(pid, Signal::INT).expect("sent");
    std::thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::INT).expect("sent");
    let done = run.wait(child);
    assert_eq!(done.code, Some(130));
    // The twenty that hang have no outcome; everything else is there.
    assert_eq!(done.rows.len(), 980);
}

fn server_that_hangs_on_the_first(requests: usize) -> Server {
    Server::start(move |n| {
        if n < requests {
            Act::Hang
        } else {
            Act::Send(answer(200, ""), Duration::ZERO)
        }
    })
}
