//! The program from outside: its JSON, its files, its refusals.

mod bad_input;
mod compare;
mod faults;
mod files;
#[path = "../../../console/tests/support/output.rs"]
mod output;
mod questions;
mod readme;
mod regret;
mod result;
mod sweep;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program.
fn twin(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twin"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The JSON of `twin run`.
fn run_json(arguments: &[&str]) -> serde_json::Value {
    let output = twin(&[&["run", "--json"], arguments].concat());
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}
