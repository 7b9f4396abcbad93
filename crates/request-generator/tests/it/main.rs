//! The program from outside: bytes that never change, and messages for bad input.

mod bad_input;
mod files;
mod import;
#[path = "../../../console/tests/support/output.rs"]
mod output;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with its arguments.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_request-generator"));
    command.args(arguments);
    command
}

/// Runs the program.
fn generator(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}
