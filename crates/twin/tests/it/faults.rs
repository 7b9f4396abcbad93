//! When a fault of a timeline may be, from outside: 900 requests at half of nine cores come at 45 a
//! second, so they are expected to have come after 20 s.

use crate::{stderr, twin};

const OPEN: [&str; 4] = ["--load", "0.5", "--requests", "900"];
const CLOSED: [&str; 4] = ["--slots", "9", "--requests", "900"];

/// Exit code and standard error of `twin COMMAND` with one freeze of worker b.
fn with_fault(command: &[&str], at: &str, lasts: &str, flags: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.json");
    let event = format!(r#"{{"at":"{at}","on":"b","fault":"slow","factor":2,"for":"{lasts}"}}"#);
    std::fs::write(&path, format!(r#"{{"version":1,"events":[{event}]}}"#)).expect("written");
    let faults = ["--faults", path.to_str().expect("text")];
    let output = twin(&[command, flags, &faults].concat());
    (output.status.code(), stderr(&output))
}

const RUN: [&str; 3] = ["run", "--strategy", "round-robin"];
const COMPARE: [&str; 5] = [
    "compare",
    "--strategies",
    "round-robin,random",
    "--replications",
    "2",
];

#[test]
fn a_fault_that_begins_after_the_expected_end_is_refused_and_one_may_outlast_it() {
    for command in [&RUN[..], &COMPARE] {
        let (code, told) = with_fault(command, "20001ms", "1s", &OPEN);
        assert_eq!(code, Some(2), "{told}");
        assert!(
            told.contains(
                "faults.events[0].at: 20.001 s: 900 requests are expected to have come by then \
                 (allowed: up to 20.000 s); begin it earlier, or ask for more requests"
            ),
            "{told}"
        );
        let (code, told) = with_fault(command, "10s", "1h", &OPEN);
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn a_run_that_was_over_before_a_fault_began_is_refused() {
    // 900 requests of 100 ms on at most nine cores end long before.
    for command in [&RUN[..], &COMPARE] {
        let (code, told) = with_fault(command, "1000s", "1s", &CLOSED);
        assert_eq!(code, Some(2), "{told}");
        let expected =
            "faults.events[0].at: 1000 s: the run of seed 1 was over by then (allowed: up";
        assert!(told.contains(expected), "{told}");
        let (code, told) = with_fault(command, "1s", "1h", &CLOSED);
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn a_list_of_requests_has_an_end_that_no_fault_outlasts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.json");
    std::fs::write(&path, listed()).expect("written");
    let workload = ["--workload", path.to_str().expect("text"), "--warmup", "0"];
    // Requests at 0, 10 and 30 s; again from 45 s on, a mean gap after the last.
    let cases = [
        (&[][..], "30s", true),
        (&[], "30001ms", false),
        (&["--requests", "2"], "10s", true),
        (&["--requests", "2"], "10001ms", false),
        (&["--requests", "5"], "55s", true),
        (&["--requests", "5"], "55001ms", false),
    ];
    for (more, end, is_good) in cases {
        for command in [&RUN[..], &COMPARE] {
            let flags = [&workload[..], more].concat();
            let (code, told) = with_fault(command, "0s", end, &flags);
            assert_eq!(code == Some(0), is_good, "{more:?} {end}: {told}");
            let refused = told.contains("faults.events[0]: ") && told.contains("ends after");
            assert_eq!(refused, !is_good, "{more:?} {end}: {told}");
        }
    }
}

fn listed() -> String {
    let requests = [0, 10_000_000, 30_000_000]
        .map(|at_us| format!(r#"{{"at_us":{at_us},"api":"a"}}"#))
        .join(",");
    format!(
        r#"{{"schema":"plumbline.workload/1","name":"w","seed":1,"apis":[{{"id":"a","method":"GET",
        "url":"/a","task_size_mi":300.0}}],"requests":[{requests}]}}"#
    )
}
