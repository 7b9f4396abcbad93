//! Did a run keep up with what was offered to it? A run that did not has no mean and no rank.
//!
//! Judged on recorded rows, in the window after the first tenth of the time:
//!
//! (a) the work routed to some worker is at least what that worker can do in the window;
//! (b) the number in the system over 20 equal slices rises: slope with t > 3.61, and the last five
//! slices hold at least 1.5 times what the first five hold.
//!
//! Both: unstable. Neither: stable. One: inconclusive; since a recorded run cannot be made longer,
//! two more signs decide: latency rises significantly over the last half, or requests were sent
//! and never answered. With either it is unstable, without it keeps its mean and the mark.
//!
//! When not to use: below some 200 requests nothing can be seen in slices; the verdict is unknown.

use std::collections::BTreeMap;

use schema::row::Row;
use serde::Serialize;

use super::intervals::{mean, slope_t};
use super::run::Outcome;

const SLICES: usize = 20;
/// Two-sided p of .002 at 18 degrees of freedom: one false alarm in a thousand upward.
const SLOPE_T: f64 = 3.61;
const GROWTH: f64 = 1.5;
const SKIPPED_SHARE: f64 = 0.1;
const MIN_ROWS: usize = 200;

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    Stable,
    Inconclusive,
    Unstable,
    /// Too few rows to tell.
    Unknown,
}

/// What was found about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) word: Word,
    pub(crate) reasons: Vec<String>,
    /// The worker with the highest routed load.
    pub(crate) worker: String,
    /// Work routed to it over what it could do in the window; 1 = full.
    pub(crate) worker_load: f64,
}

/// The verdict on one run's rows, warm-up included; `mips_per_core` is the pinned speed of a core.
pub(crate) fn judge(rows: &[&Row], mips_per_core: f64) -> Verdict {
    let sent: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|r| r.sent_ns.is_some())
        .collect();
    if sent.len() < MIN_ROWS {
        return Verdict {
            word: Word::Unknown,
            reasons: vec![format!("{} requests are too few to tell", sent.len())],
            worker: String::new(),
            worker_load: f64::NAN,
        };
    }
    let due = || rows.iter().map(|r| r.intended_ns as f64);
    let (first, last) = (
        due().fold(f64::INFINITY, f64::min),
        due().fold(0.0, f64::max),
    );
    let start = first + SKIPPED_SHARE * (last - first);
    let (worker, worker_load) = highest_load(&sent, start, last, mips_per_core);
    let (growth_t, growth) = backlog_growth(&sent, start, last);
    let overload = worker_load >= 1.0;
    let rising = growth_t > SLOPE_T && growth >= GROWTH;
    let mut reasons = Vec::new();
    if overload {
        reasons.push(format!(
            "{worker} was sent {worker_load:.2} times what it can do"
        ));
    }
    if rising {
        reasons.push(format!(
            "the number in the system grew {growth:.1}-fold (t = {growth_t:.1})"
        ));
    }
    if overload != rising {
        reasons.extend(further_signs(&sent, first, last));
    }
    let word = match reasons.len() {
        0 => Word::Stable,
        1 => Word::Inconclusive,
        _ => Word::Unstable,
    };
    Verdict {
        word,
        reasons,
        worker,
        worker_load,
    }
}

/// The worker whose routed work is the largest share of its own capacity, and that share.
fn highest_load(sent: &[&Row], start_ns: f64, end_ns: f64, mips_per_core: f64) -> (String, f64) {
    let mut routed: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for row in sent.iter().filter(|r| r.intended_ns as f64 >= start_ns) {
        if let (Some(container), Some(cores)) = (row.container.as_deref(), row.cores) {
            let (mi, most_cores) = routed.entry(container).or_default();
            *mi += row.task_size_mi;
            *most_cores = most_cores.max(cores);
        }
    }
    let seconds = (end_ns - start_ns) / 1e9;
    let load = |(mi, cores): (f64, f64)| mi / (cores * mips_per_core * seconds);
    routed
        .into_iter()
        .map(|(name, work)| (name.to_string(), load(work)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((String::new(), f64::NAN))
}

/// t of the slope of the mean number in the system, and the last five slices over the first five.
/// A request is in the system from its due time to its end; one whose end is unknown stays.
fn backlog_growth(sent: &[&Row], start_ns: f64, end_ns: f64) -> (f64, f64) {
    let width = (end_ns - start_ns) / SLICES as f64;
    let held: Vec<f64> = (0..SLICES)
        .map(|slice| {
            let low = start_ns + slice as f64 * width;
            let overlap = |row: &&Row| {
                let end = row.done_ns.map_or(f64::INFINITY, |ns| ns as f64);
                (end.min(low + width) - (row.intended_ns as f64).max(low)).max(0.0)
            };
            sent.iter().map(overlap).sum::<f64>() / width
        })
        .collect();
    let early = mean(&held[..5]);
    let growth = if early > 0.0 {
        mean(&held[SLICES - 5..]) / early
    } else {
        f64::INFINITY
    };
    (slope_t(&held), growth)
}

fn further_signs(sent: &[&Row], first_ns: f64, last_ns: f64) -> Vec<String> {
    let mut signs = Vec::new();
    let middle = f64::midpoint(first_ns, last_ns);
    let width = (last_ns - middle) / SLICES as f64;
    let mut slices = vec![Vec::new(); SLICES];
    for row in sent.iter().filter(|r| r.intended_ns as f64 >= middle) {
        if let (Outcome::Ok, Some(latency)) = (Outcome::of(row), row.latency_ms) {
            let slice = ((row.intended_ns as f64 - middle) / width) as usize;
            slices[slice.min(SLICES - 1)].push(latency);
        }
    }
    if slices.iter().map(Vec::len).sum::<usize>() >= MIN_ROWS / 2 {
        let means: Vec<f64> = slices
            .iter()
            .filter(|s| !s.is_empty())
            .map(|s| mean(s))
            .collect();
        let t = slope_t(&means);
        if t > SLOPE_T {
            signs.push(format!("latency rises over the last half (t = {t:.1})"));
        }
    }
    let unanswered = sent
        .iter()
        .filter(|r| matches!(Outcome::of(r), Outcome::Timeout | Outcome::Cancelled))
        .count();
    if unanswered > 0 {
        signs.push(format!(
            "{unanswered} requests were sent and never answered"
        ));
    }
    signs
}
