use super::ground::{Ground, stderr};

#[test]
fn wrong_arguments_end_with_2_and_say_what_is_known() {
    let ground = Ground::new("wrong-arguments");
    std::fs::write(
        ground.path("bad.json"),
        "{\n  \"schema\": \"plumbline.workload/1\",\n oops",
    )
    .expect("write");
    let cases: &[(&[&str], &str)] = &[
        (&["bench", "--preset", "huge"], "smoke"),
        (
            &["bench", "--strategies", "rond-robin"],
            "did you mean \"round-robin\"",
        ),
        (
            &["bench", "--strategies", "round-robin,round-robin"],
            "named twice",
        ),
        (&["bench", "--fail-if", "nobody.mean_ms > 1"], "round-robin"),
        (
            &["bench", "--fail-if", "round-robin.mean_ms"],
            "no comparison",
        ),
        (&["bench", "--workload", "bad.json"], "bad.json:3:"),
        (
            &["bench", "--workload", "none.json"],
            "none.json: cannot read it",
        ),
        (&["bench", "--workload", "/dev/zero"], "is too large"),
        (&["bench", "--blocks", "0"], "1"),
        (&["bench", "--seed", "-1"], "0 to 18446744073709551615"),
        (&["bench", "--burn-fraction", "1.5"], "allowed"),
        (&["bench", "--load", "-1"], "allowed"),
        (&["bench", "--ask-first", "3"], "unit"),
        (&["bench", "--ask-first", "-3ms"], "-3ms"),
        (
            &["bench", "--ask-first", "10h"],
            "between 1ms and 1s, or off",
        ),
        (&["up", "--port", "0"], "1..=65535"),
        (&["up", "--admin-port", "0"], "1..=65535"),
        (&["up", "--port", "65536"], "1..=65535"),
        (
            &["up", "--port", "8081"],
            "--admin-port: 8081: is the port of the traffic, --port, too",
        ),
        (
            &["bench", "--resume", "x", "--seed", "1"],
            "cannot be used with",
        ),
        (
            &["bench", "--resume", "x", "--ask-first", "3ms"],
            "cannot be used with",
        ),
    ];
    for (arguments, part) in cases {
        let output = ground.testbed(arguments).output().expect("runs");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: {text}");
        assert!(
            !ground.path("results").exists(),
            "{arguments:?} left a folder"
        );
    }
}

#[test]
fn docker_is_refused_clearly_when_there_is_none() {
    let ground = Ground::new("no-docker");
    let output = ground
        .testbed(&["bench", "--backend", "docker"])
        .output()
        .expect("runs");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("--backend process"), "{text}");
    assert!(!ground.path("results").exists());
}

#[test]
fn a_folder_that_holds_no_result_is_named() {
    let ground = Ground::new("no-result");
    for arguments in [
        &["bench", "--resume", "nowhere"][..],
        &["report", "nowhere"],
    ] {
        let output = ground.testbed(arguments).output().expect("runs");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("nowhere/manifest.json"), "{text}");
    }
    let output = ground.testbed(&["report"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("run `testbed bench` first"));
}
