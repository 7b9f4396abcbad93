use super::{Arguments, Mean, Question, print};
use clap::{Args as _, FromArgMatches as _};

fn question(line: &[&str]) -> Result<Question, String> {
    let command = Arguments::augment_args(clap::Command::new("optimum").no_binary_name(true));
    let matches = command
        .try_get_matches_from(line)
        .map_err(|e| e.to_string())?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|e| e.to_string())?;
    Question::of(&arguments).map_err(|e| e.to_string())
}

#[test]
fn the_known_answer_for_4_3_2_comes_out_in_both_units() {
    let question = question(&[
        "--load",
        "0.7",
        "--mips-per-core",
        "1500",
        "--mean-mi",
        "201",
    ]);
    let question = question.expect("good flags");
    assert_eq!(question.service_ms, Some(134.0));
    let rows = question.answer().expect("an answer");
    let json = serde_json::to_value(print::json(&question, &rows)).expect("JSON");
    for (row, expected) in [
        ("pooled", 1.09056),
        ("optimal", 1.10717),
        ("sed", 1.10755),
        ("least_per_core", 1.11165),
        ("jsq", 1.20582),
        ("best_split", 1.52720),
        ("weighted_split", 1.5546),
    ] {
        let got = json["rows"][row]["mean_over_service"].as_f64().expect(row);
        assert!((got - expected).abs() < 6e-5, "{row}: {got}");
        let ms = json["rows"][row]["mean_ms"].as_f64().expect(row);
        assert!((ms / got - 134.0).abs() < 1e-9);
    }
    assert_eq!(json["rows"]["equal_split"]["unstable"], true);
    assert!(json["rows"]["equal_split"]["mean_over_service"].is_null());
    let share = json["rows"]["best_split"]["shares"]["a"]
        .as_f64()
        .expect("a share");
    assert!((share - 0.4673).abs() < 6e-5);
    let table = print::table(&question, &rows);
    let equal = table
        .lines()
        .find(|l| l.starts_with("equal"))
        .expect("a row");
    assert!(equal.contains("unstable"), "{table}");
    assert!(table.contains("S = 134.000 ms"));
}

#[test]
fn more_workers_than_three_have_splits_only_and_it_says_why() {
    let question = question(&["--cores", "1*5", "--load", "0.5"]).expect("good flags");
    let rows = question.answer().expect("an answer");
    for row in &rows {
        match row.key {
            "optimal" | "sed" | "least_per_core" | "jsq" => {
                let Mean::NotComputed(why) = &row.mean else {
                    panic!("{row:?}")
                };
                assert!(why.contains("workers must be from 1 to 3"), "{why}");
            }
            // Equal workers: every split here is the equal one, five queues at a load of one half.
            "best_split" | "weighted_split" | "equal_split" => {
                let Mean::Known(mean) = row.mean else {
                    panic!("{row:?}")
                };
                assert!((mean - 2.0).abs() < 1e-6, "{row:?}");
            }
            _ => assert!(matches!(row.mean, Mean::Known(_))),
        }
    }
    assert!(print::table(&question, &rows).contains("not computed"));
}

#[test]
fn bad_flags_are_refused_with_their_bound() {
    for (line, said) in [
        (vec!["--load", "1"], "below 1"),
        (vec!["--load", "-1"], "out of range"),
        (vec!["--load", "x"], "not a number"),
        (vec!["--load", "0.5", "--cores", "4,0"], "out of range"),
        (vec!["--load", "0.5", "--mean-mi", "0"], "0.001 to 1e9"),
        (
            vec!["--load", "0.5", "--mips-per-core", "nan"],
            "out of range",
        ),
    ] {
        let error = question(&line).expect_err("bad");
        assert!(error.contains(said), "{line:?}: {error}");
    }
}
