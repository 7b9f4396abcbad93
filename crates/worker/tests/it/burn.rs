//! The instruction count, as callgrind counts it.

use crate::output;
use crate::process::{run, worker};
use std::process::Command;

#[test]
fn burn_prints_what_it_burned() {
    let output = run(&["burn", "--mi", "10"]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["mi"], 10.0);
    assert!(json["wall_ms"].as_f64() > Some(0.0) && json["mips"].as_f64() > Some(0.0));
}

#[test]
fn calibrate_prints_the_loop_and_its_speed() {
    let output = run(&["calibrate"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["loop"], "add-xor-7x2");
    assert!(json["native_mips_per_core"].as_f64() > Some(100.0));
}

/// Instructions of the whole program as callgrind counts them; `None` without valgrind.
fn instructions(mi: &str, folder: &std::path::Path) -> Option<f64> {
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!(
            "--callgrind-out-file={}",
            folder.join(mi).display()
        ))
        .arg(env!("CARGO_BIN_EXE_worker"))
        .args(["burn", "--mi", mi])
        .output()
        .ok()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The difference of two sizes leaves out what starting the program costs.
#[test]
fn callgrind_counts_the_millions_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = |mi| instructions(mi, folder.path());
    let (Some(small), Some(large)) = (count("38"), count("600")) else {
        assert!(
            std::env::var_os("PLUMBLINE_REQUIRE_VALGRIND").is_none(),
            "valgrind is required and did not count"
        );
        eprintln!("not run: valgrind is not installed");
        return;
    };
    let error = (large - small) / 562e6 - 1.0;
    println!("562 MI: {} instructions, error {error:.1e}", large - small);
    assert!(error.abs() < 1e-3, "error {error}");
}

#[test]
fn a_full_or_closed_standard_output_is_no_panic() {
    for arguments in [vec!["burn", "--mi", "1"], vec!["calibrate"]] {
        let mut command = worker();
        command.args(arguments);
        output::a_full_or_closed_output_is_no_panic(command);
    }
}
