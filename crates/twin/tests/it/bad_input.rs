//! Everything impossible is refused with the bound: exit 2, one line on standard error.

use crate::{stderr, stdout, twin};

#[test]
fn impossible_parameters_are_refused_with_the_bound() {
    let cases: [(&[&str], &str); 37] = [
        (&["--poll", "0ms"], "must be above 0"),
        (&["--poll", "1ns"], "events for every request (allowed: "),
        (
            &["--poll", "1e-300S"],
            "events for every request (allowed: ",
        ),
        (&["--usage", "1ns"], "events for every request (allowed: "),
        (&["--usage", "0s"], "must be above 0"),
        (&["--speed-drift", "1ns"], "events for every request"),
        (&["--discipline", "quota:1ns"], "events for every request"),
        (&["--discipline", "quantum:1ns"], "events for every request"),
        (
            &[
                "--discipline",
                "quota",
                "--candidates",
                "/no/such/folder/c.csv",
            ],
            "; say --discipline ps or fcfs",
        ),
        (&["--protection", "some"], "allowed: plain, guarded"),
        (
            &["--model", "a=/dev/null", "--model", "/no/such/file"],
            "model: a=/dev/null",
        ),
        (&["--cores", "0"], "0.001 to 1000000"),
        (&["--cores", "4,x"], "such as 4,3,2"),
        (&["--load", "-1"], "0.0001 to 100"),
        (&["--load", "NaN"], "0.0001 to 100"),
        (&["--requests", "0"], "1 to 1000000000000"),
        (&["--balancers", "0"], "1 to 1000"),
        (&["--speeds", "1,2"], "(allowed: 1 or 3)"),
        (&["--weights", "1.5"], "whole numbers from 1 to 65535"),
        (
            &["--weights", "0"],
            "--weights: 0: 0 is out of range (allowed: whole numbers from 1 to 65535)",
        ),
        (&["--sizes", "h2:0.5"], "1 to 1000"),
        (
            &["--arrivals", "h2:0.1"],
            "--arrivals: h2:0.1: SCV 0.1 is out of range",
        ),
        (&["--rate", "-1"], "error: --rate: -1: out of range"),
        (
            &["--mips-per-core", "0"],
            "error: --mips-per-core: 0: out of range",
        ),
        (&["--sizes", "workload"], "no workload is given"),
        (&["--users", "3", "--load", "0.5"], "closed loop"),
        (&["--slots", "3", "--users", "3"], "both slots and users"),
        (&["--think", "1s"], "means nothing without users"),
        (&["--mean-service", "1S"], "cannot be given in itself"),
        (&["--warmup", "1000000"], "0 to 999999"),
        (&["--discipline", "quota:100ms:3"], "4 or more"),
        (&["--fetch-delay", "5"], "no unit"),
        (
            &["--arrivals", "poisson:60%", "--load", "0.5"],
            "leave out one of the two",
        ),
        (&["--model", "/no/such/file"], "No such file"),
        (
            &["--workload", "/no/such/file"],
            "/no/such/file: cannot read it",
        ),
        (
            &["--faults", "/no/such/file"],
            "/no/such/file: cannot read it",
        ),
        (&["--faults", "/dev/zero"], "is too large"),
    ];
    for (flags, expected) in cases {
        let arguments = [&["run", "--strategy", "random"], flags].concat();
        let output = twin(&arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(
            text.starts_with("error: ") && text.contains(expected),
            "{arguments:?}: {text}"
        );
        assert!(stdout(&output).is_empty());
    }
}

#[test]
fn impossible_strategies_are_refused() {
    let cases = [
        (vec!["run"], "strategy: missing"),
        (
            vec!["run", "--strategy", "roud-robin"],
            "nearest: round-robin",
        ),
        (
            vec!["run", "--strategy", "d-choices:d=4"],
            "(allowed: 1 to 3)",
        ),
        (vec!["run", "--strategy", "p2c:x=1"], "has no parameter"),
        (
            vec![
                "run",
                "--strategy",
                "weighted-random:method=list",
                "--weights",
                "65535,65534,65533",
                "--cores",
                "1*3000",
            ],
            "weights",
        ),
    ];
    for (arguments, expected) in cases {
        let output = twin(&arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn a_bad_scenario_or_timeline_names_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.json");
    let path = path.to_str().expect("text");
    let refused = |text: &str, flag: &str| {
        std::fs::write(path, text).expect("written");
        let output = twin(&["run", "--strategy", "random", flag, path]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let text = refused("{\n  \"lod\": 0.5\n}", "--scenario");
    assert!(
        text.contains("f.json:2:10: lod: 0.5: unknown field; did you mean \"load\"?"),
        "{text}"
    );
    let event = r#"{"version":1,"events":[{"at":"1s","on":"z","fault":"freeze","for":"1s"}]}"#;
    let text = refused(event, "--faults");
    assert!(
        text.contains("no such target (allowed: balancer, a, b, c)"),
        "{text}"
    );
    let event = r#"{"version":1,"events":[{"at":"1s","on":"balancer","fault":"kill"}]}"#;
    assert!(refused(event, "--faults").contains("cannot be simulated"));
}

#[test]
fn no_output_is_written_over_an_input_or_another_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let (scenario, workload, faults) = (path("s-1.jsonl"), path("w.json"), path("f.json"));
    let text = "{\"strategy\":\"p2c\",\"requests\":100}";
    std::fs::write(&scenario, text).expect("written");
    let shipped = crate::workloads().join("quick.json");
    std::fs::copy(shipped, &workload).expect("copied");
    std::fs::write(&faults, "{\"events\":[]}").expect("written");
    let named = ["--strategy", "p2c", "--requests", "100"];
    let (log, both) = (path("s.jsonl"), path("both"));
    let cases: [&[&str]; 6] = [
        &["--scenario", &scenario, "--out", &scenario],
        &["--scenario", &scenario, "--event-log", &scenario],
        // The second balancer's log.
        &[
            "--scenario",
            &scenario,
            "--balancers",
            "2",
            "--event-log",
            &log,
        ],
        &["--workload", &workload, "--out", &workload],
        &["--faults", &faults, "--event-log", &faults],
        &["--out", &both, "--event-log", &both],
    ];
    let before = [&scenario, &workload, &faults].map(|f| std::fs::read(f).expect("there"));
    for flags in cases {
        let arguments = [&["run"], &named[..], flags].concat();
        let output = twin(&arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    }
    let after = [&scenario, &workload, &faults].map(|f| std::fs::read(f).expect("there"));
    assert_eq!(before, after);
    assert!(!folder.path().join("both").exists());
}
