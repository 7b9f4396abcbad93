//! Reading rows back, and whether they are still those that were recorded.

use std::path::Path;

use anyhow::Context as _;
use schema::manifest::{ArmState, Manifest};
use schema::problem::Problem;
use schema::row::Row;

/// Largest rows file: more than twice the largest schedule of one arm, and what fits into memory.
const MAX_ROWS_BYTES: u64 = 8 << 30;

/// Reads rows; one unterminated last line is dropped, any other damage is an error with its line.
pub(crate) fn read_rows(path: &Path) -> anyhow::Result<Vec<Row>> {
    parse(path, &whole_lines(path)?)
}

/// Rows of the manifest's finished arms.
///
/// # Errors
/// Damage, and rows of a finished arm that are not those that were recorded.
pub(super) fn read_recorded(path: &Path, manifest: &Manifest) -> anyhow::Result<Vec<Row>> {
    let text = whole_lines(path)?;
    input::recorded::check(path, &text[..], manifest).map_err(|problem| *problem)?;
    let done: Vec<&str> = finished(manifest).map(|a| a.run_id.as_str()).collect();
    let mut rows = parse(path, &text)?;
    rows.retain(|row| done.contains(&row.run_id.as_str()));
    Ok(rows)
}

fn finished(manifest: &Manifest) -> impl Iterator<Item = &schema::manifest::Arm> {
    let arms = manifest.arms.iter();
    arms.filter(|a| a.state == ArmState::Done)
}

fn whole_lines(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = input::read_up_to(path, MAX_ROWS_BYTES).map_err(|problem| *problem)?;
    let whole = text.iter().rposition(|&b| b == b'\n');
    text.truncate(whole.map_or(0, |at| at + 1));
    Ok(text)
}

fn parse(path: &Path, text: &[u8]) -> anyhow::Result<Vec<Row>> {
    csv::Reader::from_reader(text)
        .deserialize()
        .collect::<Result<Vec<Row>, csv::Error>>()
        .map_err(|error| {
            let what = format!("not a rows file: {error}");
            Problem::new("", "", what).in_source(path.display().to_string())
        })
        .context("rows cannot be read")
}
