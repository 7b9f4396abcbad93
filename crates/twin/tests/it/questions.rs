//! `twin optimum` and `twin validate` from outside.

use crate::{stderr, stdout, twin};

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = twin(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn the_best_possible_mean_is_told_in_both_units() {
    let asked = ["optimum", "--cores", "4,3,2", "--load", "0.5", "--json"];
    let plain = json(&asked);
    let mean = |json: &serde_json::Value, row: &str, unit: &str| json["rows"][row][unit].as_f64();
    // Erlang's formula for nine cores, the Markov chain for three workers.
    for (row, expected) in [("pooled", 1.01023), ("optimal", 1.01392), ("jsq", 1.05732)] {
        let got = mean(&plain, row, "mean_over_service").expect(row);
        assert!((got - expected).abs() < 1e-5, "{row}: {got}");
        assert_eq!(mean(&plain, row, "mean_ms"), None);
    }
    let sized = json(&[&asked[..], &["--mips-per-core", "1000", "--mean-mi", "50"]].concat());
    let ms = mean(&sized, "pooled", "mean_ms").expect("ms");
    assert!((ms - 50.5115).abs() < 1e-3, "{ms}");
}

#[test]
fn one_case_of_the_acceptance_table_can_be_asked_for() {
    let table = json(&["validate", "--only", "A20", "--json"]);
    let lines = table["lines"].as_array().expect("lines");
    assert_eq!(table["missed"], 0);
    assert!(
        lines.len() > 5
            && lines
                .iter()
                .all(|l| l["id"] == "A20" && l["verdict"] == "pass")
    );
    let text = stdout(&twin(&["validate", "--only", "A21"]));
    assert!(
        text.contains("unstable, worker of 2 cores") && text.contains("0 missed"),
        "{text}"
    );
}

#[test]
fn impossible_questions_are_refused_with_the_bound() {
    let cases: [(&[&str], &str); 5] = [
        (&["optimum", "--load", "1.2"], "above 0 and below 1"),
        (&["optimum", "--load", "0"], "0.0001 to 100"),
        (
            &["optimum", "--load", "0.5", "--cores", "4,x"],
            "such as 4,3,2",
        ),
        (
            &["optimum", "--load", "0.5", "--mean-mi", "-3"],
            "0.001 to 1e9",
        ),
        (&["validate", "--only", "A99"], "(allowed: A1, A2, "),
    ];
    for (arguments, said) in cases {
        let output = twin(arguments);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(
            error.contains(said) && error.lines().count() == 1,
            "{error}"
        );
        assert!(stdout(&output).is_empty());
    }
}
