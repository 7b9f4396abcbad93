//! Every bad input: exit 2, one line each, with the place and the bound.

use std::fs;

use crate::{generator, stderr};

fn refused(arguments: &[&str]) -> String {
    let output = generator(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty());
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[test]
fn flags_out_of_bounds_are_refused_with_the_bound() {
    let cases = [
        (vec!["--apis", "0"], "100000"),
        (vec!["--runs", "0"], "10000000"),
        (vec!["--apis", "100000", "--runs", "101"], "up to 10000000"),
        (vec!["--arrivals", "constant:10"], "no unit"),
        (vec!["--arrivals", "poisson:-3"], "0.001 to 1000000"),
        (vec!["--arrivals", "sometimes"], "constant:GAP"),
        (vec!["--order", "random"], "shuffled, round, sequential"),
        (vec!["--size-min-mi", "800"], "above --size-max-mi"),
        (vec!["--size-median-mi", "NaN"], "1 to 100000"),
        (vec!["--size-sigma", "11"], "0 to 10"),
        (vec!["--size-median-mi", "90000"], "one draw in a thousand"),
        (vec!["--name", ""], "1 to 128 bytes"),
    ];
    for (flags, expected) in cases {
        let arguments = [vec!["generate", "--seed", "1"], flags].concat();
        let text = refused(&arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    assert!(refused(&["generate"]).contains("--seed"));
}

#[test]
fn a_bad_workload_names_its_place_and_a_missing_one_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.json");
    let path = path.to_str().expect("text");
    fs::write(
        path,
        "{\n  \"schema\": \"plumbline.workload/1\",\n  \"seed\": -1\n}",
    )
    .expect("written");
    let text = refused(&["expand", path]);
    assert!(text.contains(&format!("{path}:3:11: seed: -1: ")), "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("error: ")),
        "{text}"
    );
    fs::write(path, b"{\xff}").expect("written");
    assert!(refused(&["expand", path]).contains("not UTF-8"));

    let output = generator(&["expand", "/no/such/workload.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: cannot read /no/such/workload.json: "));
}
