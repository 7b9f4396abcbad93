//! The program from outside, against a small server that behaves as told.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bad_input;
mod crash;
mod outcomes;
mod pace;
mod server;
mod stopping;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// One row by column name.
type Row = HashMap<String, String>;

/// A run to be started: a workload of `requests` requests `gap_ms` apart.
struct Run {
    folder: tempfile::TempDir,
    target: String,
    flags: Vec<String>,
}

impl Run {
    fn new(target: &str, requests: u32, gap_ms: f64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workload = format!(
            r#"{{"schema": "plumbline.workload/1", "name": "t", "seed": 1, "apis": [
                {{"id": "read", "method": "GET", "url": "/users/orders", "task_size_mi": 400.5}}],
                "runs": {requests}, "order": "round",
                "arrivals": {{"process": "constant", "interval_ms": {gap_ms}}}}}"#
        );
        fs::write(folder.path().join("w.json"), workload).expect("written");
        Self {
            folder,
            target: target.to_string(),
            // Bounds on lateness are not what most tests are about, and the machine may be busy.
            flags: vec!["--lag-bound".into(), "10s".into()],
        }
    }

    fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|f| (*f).to_string()));
        self
    }

    fn without_lag_bound(mut self) -> Self {
        self.flags.drain(..2);
        self
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("rows.csv")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simulator"));
        command
            .arg("--workload")
            .arg(self.folder.path().join("w.json"))
            .args(["--target", &self.target, "--json", "--quiet", "--out"])
            .arg(self.out())
            .args(&self.flags);
        command
    }

    fn finish(&self) -> Finished {
        Finished::new(
            self.command().output().expect("the program starts"),
            &self.out(),
        )
    }

    fn spawn(&self) -> Child {
        self.command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    fn wait(&self, child: Child) -> Finished {
        Finished::new(child.wait_with_output().expect("it ends"), &self.out())
    }
}

/// What a run left behind.
struct Finished {
    code: Option<i32>,
    stderr: String,
    summary: serde_json::Value,
    rows: Vec<Row>,
}

impl Finished {
    fn new(output: Output, out: &Path) -> Self {
        let stdout = String::from_utf8(output.stdout).expect("text");
        Self {
            code: output.status.code(),
            stderr: String::from_utf8(output.stderr).expect("text"),
            summary: serde_json::from_str(&stdout).unwrap_or_default(),
            rows: rows(out),
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.summary[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {}", self.summary))
    }

    /// The values of one column.
    fn column(&self, name: &str) -> Vec<&str> {
        self.rows.iter().map(|row| row[name].as_str()).collect()
    }
}

/// The rows of a file; an unterminated last line is dropped, any other damage is a failure.
fn rows(out: &Path) -> Vec<Row> {
    let Ok(text) = fs::read_to_string(out) else {
        return Vec::new();
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut reader = csv::Reader::from_reader(whole.as_bytes());
    assert_eq!(
        reader
            .headers()
            .expect("a header")
            .iter()
            .collect::<Vec<_>>(),
        schema::row::COLUMNS
    );
    reader
        .deserialize()
        .map(|row| row.expect("a whole row"))
        .collect()
}
