use serde_json::Value;

use super::ground::{Ground, json, stderr};

/// Runs `compare-twin` on the result with these flags and returns what it found. How near the two
/// are is the machine's affair; that the exit code says it is not.
fn compare(ground: &Ground, flags: &[&str]) -> Value {
    let mut arguments = vec!["compare-twin", "result", "--json"];
    arguments.extend(flags);
    let output = ground.testbed(&arguments).output().expect("testbed runs");
    let found: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let missed = found["missed"].as_array().expect("a list");
    let code = i32::from(!missed.is_empty());
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    found
}

#[test]
fn a_recorded_bench_is_given_to_the_twin_request_by_request() {
    let ground = Ground::new("compare-twin");
    let workload = ground.workload(60);
    let bench = [
        "bench",
        "--backend",
        "process",
        "--blocks",
        "1",
        "--burn-fraction",
        "0.01",
        "--no-report",
        "--strategies",
        "round-robin,polled-own-sends",
        "--ask-first",
        "50ms",
        "--out",
        "result",
        "--workload",
    ];
    let status = ground.testbed(&bench).arg(&workload).status();
    // 3: a busy machine may send late.
    let code = status.expect("testbed runs").code();
    assert!(matches!(code, Some(0 | 3)), "{code:?}");

    let found = compare(&ground, &[]);
    let measured = &found["calibration"];
    assert_eq!(measured["from"], "closed_loop");
    assert_eq!(measured["workers"].as_array().expect("workers").len(), 3);
    assert_eq!(
        measured,
        &json(&ground.path("result/agreement/calibration.json"))
    );

    let again = compare(
        &ground,
        &[
            "--calibration",
            "result/agreement/calibration.json",
            "--out",
            "again",
        ],
    );
    assert_eq!(&again["calibration"], measured);
    assert_eq!(
        again["arms"], found["arms"],
        "the same input gives the same answer"
    );

    let arms = found["arms"].as_array().expect("arms");
    assert_eq!(arms.len(), 3);
    for arm in arms {
        assert_eq!(arm["parity"]["picks"], 60, "{arm}");
        assert_eq!(arm["parity"]["equal"], 60, "{arm}");
        // Round robin reads no reports, so nobody is asked before its picks.
        let asked = (arm["strategy"] == "polled-own-sends").then_some(50.0);
        assert_eq!(arm["ask_first_ms"].as_f64(), asked, "{arm}");
        let lines = arm["lines"].as_array().expect("lines");
        let has = |quantity: &str| lines.iter().any(|l| l["quantity"] == quantity);
        assert!(has("mean_ms") && has("p99_ms") && has("ks_distance"));
        let one_by_one = arm["strategy"] == "round-robin";
        assert_eq!(has("spearman"), one_by_one);
        if one_by_one {
            // The twin's dispatcher saw the same order, so it picked the same workers.
            assert_eq!(arm["residuals"]["same_worker"], 1.0, "{arm}");
        }
    }
    ground.assert_nothing_left();
}

#[test]
fn what_cannot_be_compared_is_said() {
    let ground = Ground::new("compare-twin-bad");
    let run = |arguments: &[&str]| {
        let output = ground.testbed(arguments).output().expect("testbed runs");
        (output.status.code(), stderr(&output))
    };
    let (code, said) = run(&["compare-twin", "nowhere", "--from-rows"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("nowhere") && said.contains("name a result folder"),
        "{said}"
    );
    let (code, said) = run(&["compare-twin", "x", "--from-rows", "--calibration", "f"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = run(&["compare-twin", "x", "--blocks", "0"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("1..=1000"), "{said}");
}
