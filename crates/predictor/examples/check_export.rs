//! Builds a table from a model's JSON export and compares it with a table file, bit for bit.
//!
//! `cargo run --release -p plumbline-predictor --example check_export -- MODEL.json TABLE` prints how
//! many borders and cells are equal; exit 1 on a difference, 2 on a file that cannot be read. The two
//! files are what `python -m plumbline_analysis.training export --json MODEL.json --out TABLE` writes.

#![allow(clippy::print_stdout, clippy::print_stderr)]
// An example is its own driver: it opens files and prints.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use plumbline_predictor::LatencyTable;
use plumbline_predictor::catboost::Model;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, table] = &arguments[..] else {
        eprintln!("error: usage: check_export MODEL.json TABLE");
        return ExitCode::from(2);
    };
    match compare(model, table) {
        Ok(equal) => ExitCode::from(u8::from(!equal)),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn compare(model: &str, table: &str) -> Result<bool, String> {
    let read = |path: &str| std::fs::read(path).map_err(|e| format!("{path}: {e}"));
    let theirs = LatencyTable::from_bytes(&read(table)?).map_err(|e| format!("{table}: {e}"))?;
    let model = Model::from_json(&read(model)?).map_err(|e| format!("{model}: {e}"))?;
    let ours = model
        .table(theirs.header().clone())
        .map_err(|e| e.to_string())?;
    for (axis, other) in ours.header().axes.iter().zip(&theirs.header().axes) {
        let equal = axis.borders == other.borders;
        println!(
            "{}: {} borders, {}",
            axis.feature,
            axis.borders.len(),
            said(equal)
        );
        if !equal {
            return Ok(false);
        }
    }
    let pairs = ours.cells().iter().zip(theirs.cells());
    let equal = pairs.filter(|(a, b)| a.to_bits() == b.to_bits()).count();
    println!(
        "{equal}/{} cells equal, {} trees",
        theirs.cells().len(),
        model.trees()
    );
    Ok(equal == theirs.cells().len())
}

fn said(equal: bool) -> &'static str {
    if equal { "equal" } else { "different" }
}
