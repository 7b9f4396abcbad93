//! What `twin validate` prints.

use super::Tier;
use super::judge::Line;
use serde::Serialize;
use std::fmt::Write as _;

/// The JSON of the table.
#[derive(Debug, Serialize)]
pub(super) struct Table<'a> {
    tier: &'static str,
    checks: usize,
    missed: usize,
    lines: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    id: &'static str,
    case: &'a str,
    expected: &'a str,
    got: &'a str,
    /// What a number may be off, absolute.
    tolerance: Option<f64>,
    standard_error: Option<f64>,
    verdict: &'static str,
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::Default => "default",
        Tier::Full => "full",
    }
}

fn missed(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.is_miss()).count()
}

pub(super) fn json(tier: Tier, lines: &[Line]) -> Table<'_> {
    Table {
        tier: name(tier),
        checks: lines.len(),
        missed: missed(lines),
        lines: lines
            .iter()
            .map(|line| Entry {
                id: line.id,
                case: &line.case,
                expected: &line.expected,
                got: &line.got,
                tolerance: line.error.map(|e| e.tolerance),
                standard_error: line.error.map(|e| e.standard_error),
                verdict: line.verdict.word(),
            })
            .collect(),
    }
}

/// The table for people.
pub(super) fn table(tier: Tier, lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.case.chars().count()).max();
    let width = width.unwrap_or_default();
    let mut out = String::new();
    for line in lines {
        let Line {
            id,
            case,
            expected,
            got,
            error,
            verdict,
        } = line;
        let error = error.map_or(String::new(), |e| {
            format!("+- {:.5} (s.e. {:.5})", e.tolerance, e.standard_error)
        });
        let comparison = match expected.as_str() {
            "" => got.clone(),
            _ => format!("{expected}; got {got} {error}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<9} {id:<8} {case:<width$}  {}",
            verdict.word(),
            comparison.trim_end()
        );
    }
    let missed = missed(lines);
    let _ = writeln!(
        out,
        "\n{} tier: {} checks, {missed} missed",
        name(tier),
        lines.len()
    );
    out
}
