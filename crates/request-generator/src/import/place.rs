//! From the stamps of a trace to due times.

use rand_core::RngCore;
use schema::problem::{Problem, Problems};
use schema::rng::{Purpose, stream, unit};
use schema::workload::MAX_AT_US;

use super::trace::Row;
use crate::cli::Import;

const SECOND_NS: f64 = 1e9;

/// Requests in the order of their due times.
#[derive(Debug)]
pub(super) struct Placed {
    /// Due time in microseconds after time 0, and the request.
    pub(super) rows: Vec<(u64, Row)>,
    /// Stamps were whole seconds, and requests were spread within theirs.
    pub(super) spread: bool,
    /// Rows that were earlier than a row before them.
    pub(super) sorted: usize,
}

impl Placed {
    /// When the last request is due.
    pub(super) fn span_us(&self) -> u64 {
        self.rows.last().map_or(0, |(at_us, _)| *at_us)
    }
}

/// Sorts the rows by time, spreads those of whole seconds within their second, and counts from the
/// first stamp, `--speed` times as fast.
///
/// # Errors
/// A trace that takes longer than a schedule may.
pub(super) fn place(
    source: &str,
    mut rows: Vec<Row>,
    arguments: &Import,
) -> Result<Placed, Problems> {
    let mut latest = i64::MIN;
    let mut sorted = 0;
    for row in &rows {
        sorted += usize::from(row.stamp.ns < latest);
        latest = latest.max(row.stamp.ns);
    }
    rows.sort_by_key(|row| row.stamp.ns);
    let first_ns = rows.first().map_or(0, |row| row.stamp.ns);
    let spread = !arguments.keep_stamps && rows.iter().all(|row| row.stamp.whole_second);
    let mut rng = stream(arguments.seed, Purpose::Arrivals, 0, 0);
    let within_second = |rng: &mut dyn RngCore| if spread { unit(rng) * SECOND_NS } else { 0.0 };
    let mut placed: Vec<(u64, Row)> = rows
        .into_iter()
        .map(|row| {
            // Two stamps may lie further apart than a signed number of nanoseconds can say.
            let after_ns = (i128::from(row.stamp.ns) - i128::from(first_ns)) as f64;
            let due_ns = after_ns + within_second(&mut rng);
            // A cast saturates, so that a time far out is found below.
            ((due_ns / 1e3 / arguments.speed).round() as u64, row)
        })
        .collect();
    placed.sort_by_key(|(at_us, _)| *at_us);
    let placed = Placed {
        rows: placed,
        spread,
        sorted,
    };
    if placed.span_us() <= MAX_AT_US {
        return Ok(placed);
    }
    let what = format!("the trace takes {} us", placed.span_us());
    Err(Problem::new("", "", what)
        .in_source(source)
        .allowed(format!("up to {MAX_AT_US} us"))
        .next("check --timestamp-unit, raise --speed, or import a part with --limit")
        .into())
}
