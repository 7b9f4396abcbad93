//! The printed table.

use crate::bench::resume::SPEED_CHANGED;
use crate::figures::comparison::{Claim, Metric, Strategy};
use crate::figures::failures::MAX_FAILED_SHARE;
use crate::figures::intervals::Interval;
use crate::figures::run::Outcome;

use super::Summary;

/// Blocks below which a comparison cannot be significant, whatever the difference.
const LEAST_BLOCKS: usize = 6;
/// Runs with failures that a note names; the rest is counted.
const NAMED_RUNS: usize = 3;

/// Everything a bench prints about its result.
pub(super) fn render(summary: &Summary) -> String {
    let mut rows = vec![header(summary)];
    rows.extend(
        summary
            .comparison
            .strategies
            .iter()
            .map(|s| line(summary, s)),
    );
    let mut text = format!("{}\n\n", stamp(summary));
    text.push_str(&aligned(&rows));
    for note in notes(summary) {
        text.push_str(&format!("\n{note}"));
    }
    text.push('\n');
    text
}

/// What the numbers are worth: where, how and from what they were made.
fn stamp(summary: &Summary) -> String {
    let burned = if summary.emulated {
        format!("emulated f={}", summary.burn_fraction)
    } else {
        "f=1, everything really executed".to_string()
    };
    format!(
        "{}: {burned}, {:.0} MIPS a core, load {:.3}, protection {}, {} back end\n\
         {}; commit {}; seed {}; {}",
        summary.name,
        summary.mips_per_core,
        summary.load,
        summary.protection,
        summary.backend,
        summary.machine,
        summary.git_commit.as_deref().unwrap_or("unknown"),
        summary.seed,
        summary.command.join(" ")
    )
}

fn header(summary: &Summary) -> Vec<String> {
    let shares = format!("share {}", summary.workers.join("/"));
    let ratio = format!("mean / {}", summary.comparison.baseline);
    [
        "strategy", "mean ms", "95 %", "p50", "p95", "p99", "MI/ms", "req/s", &shares, &ratio,
        "95 %", "Holm p", "",
    ]
    .map(String::from)
    .into()
}

fn line(summary: &Summary, strategy: &Strategy) -> Vec<String> {
    let mut cells = vec![strategy.label.clone()];
    if strategy.flagged {
        cells.extend(["unstable"].map(String::from));
        cells.extend(std::iter::repeat_n("-".to_string(), 6));
    } else {
        let metric = |m: Metric| strategy.metrics[m.as_str()];
        let mean = metric(Metric::MeanMs);
        cells.push(number(mean.point, 2));
        cells.push(bounds(summary, &mean, 2));
        for (m, digits) in [
            (Metric::P50Ms, 1),
            (Metric::P95Ms, 1),
            (Metric::P99Ms, 1),
            (Metric::ThroughputMiPerMs, 3),
            (Metric::CompletedRps, 1),
        ] {
            cells.push(number(metric(m).point, digits));
        }
    }
    let share = |name: &String| number(100.0 * strategy.shares.get(name).unwrap_or(&0.0), 1);
    cells.push(
        summary
            .workers
            .iter()
            .map(share)
            .collect::<Vec<_>>()
            .join("/"),
    );
    cells.extend(comparison_cells(summary, strategy));
    cells
}

fn comparison_cells(summary: &Summary, strategy: &Strategy) -> [String; 4] {
    let verdict = match (strategy.aa, strategy.claim) {
        _ if strategy.failing => return ["", "", "", &not_compared(strategy)].map(String::from),
        (true, _) => "A/A: the noise floor",
        (false, Some(Claim::Faster)) => "faster",
        (false, Some(Claim::Slower)) => "slower",
        (false, None) => "",
    };
    let Some(difference) = strategy.against_baseline.get(Metric::MeanMs.as_str()) else {
        return ["", "", "", verdict].map(String::from);
    };
    [
        number(difference.ratio.point, 4),
        bounds(summary, &difference.ratio, 4),
        number(difference.p_holm, 3),
        verdict.to_string(),
    ]
}

fn not_compared(strategy: &Strategy) -> String {
    format!("failed {:.2} %: not ranked", 100.0 * strategy.failed_share)
}

fn number(value: f64, digits: usize) -> String {
    if value.is_finite() {
        format!("{value:.digits$}")
    } else {
        "-".into()
    }
}

/// No bounds in a smoke test: those of two blocks are wide beyond use.
fn bounds(summary: &Summary, interval: &Interval, digits: usize) -> String {
    if summary.claims && interval.has_bounds() {
        format!("{:.digits$}..{:.digits$}", interval.low, interval.high)
    } else {
        "-".into()
    }
}

/// Columns as wide as their widest cell; the first is flush left, the others right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        let cells = rows.iter().filter_map(|r| r.get(c));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let width = widths[c];
            if c == 0 || c + 1 == columns {
                line.push_str(&format!("{cell:<width$}  "));
            } else {
                line.push_str(&format!("{cell:>width$}  "));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.flags.iter().any(|f| f == SPEED_CHANGED) {
        notes.push(
            "speed_changed: resumed on a machine that runs at another speed than at the beginning; \
             the workers' speed is pinned, but late sends and late burns may differ between blocks"
                .into(),
        );
    }
    let strategies = &summary.comparison.strategies;
    let flagged: Vec<&str> = strategies
        .iter()
        .filter(|s| s.flagged)
        .map(|s| s.label.as_str())
        .collect();
    if !flagged.is_empty() {
        notes.push(format!(
            "unstable, so without mean and rank: {}",
            flagged.join(", ")
        ));
    }
    if let Some(late) = lateness(summary) {
        notes.push(late);
    }
    if let Some(late) = &summary.late_burns {
        notes.push(format!(
            "workers burned late in {} of {} runs (worst {:.1} % of the answers)",
            late.runs,
            summary.runs.len(),
            100.0 * late.worst_share
        ));
    }
    notes.extend(strategies.iter().filter_map(|s| failures(summary, s)));
    if strategies.iter().any(|s| s.failing) {
        notes.push(format!(
            "not ranked and not claimed about: more than {} % failed, or more than chance allows \
             beside the strategy that failed least",
            100.0 * MAX_FAILED_SHARE
        ));
    }
    if !summary.not_valid.is_empty() {
        notes.push(format!(
            "NOT VALID, so nothing is claimed; run again when the machine is quiet: {}",
            summary.not_valid.join("; ")
        ));
    } else if !summary.claims {
        notes.push("a smoke test: it shows that everything works and claims nothing".into());
    } else if summary.comparison.blocks < summary.comparison.blocks_needed as usize {
        notes.push(format!(
            "{} blocks; {} are needed before every comparison could be claimed",
            summary.comparison.blocks,
            summary.comparison.blocks_needed.max(LEAST_BLOCKS as u32)
        ));
    }
    if !summary.complete {
        notes.push("incomplete: only finished arms are counted".into());
    }
    notes
}

/// What failed under a strategy, how often, and in which runs.
fn failures(summary: &Summary, strategy: &Strategy) -> Option<String> {
    let bad: Vec<String> = Outcome::ALL[1..]
        .iter()
        .filter_map(|o| {
            let n = *strategy.outcomes.get(o.as_str())?;
            (n > 0).then(|| format!("{n} {}", o.as_str()))
        })
        .collect();
    let own = summary.runs.iter().filter(|r| r.label == strategy.label);
    let hit: Vec<&str> = own
        .filter(|r| r.count(Outcome::Ok) < r.rows)
        .map(|r| r.run_id.as_str())
        .collect();
    let more = match hit.len() {
        n if n > NAMED_RUNS => format!(" and {} more", n - NAMED_RUNS),
        _ => String::new(),
    };
    (!bad.is_empty()).then(|| {
        format!(
            "{}: {:.2} % of the requests failed, which no latency shows: {} (in {}{more})",
            strategy.label,
            100.0 * strategy.failed_share,
            bad.join(", "),
            hit[..hit.len().min(NAMED_RUNS)].join(", ")
        )
    })
}

fn lateness(summary: &Summary) -> Option<String> {
    let worst = summary
        .runs
        .iter()
        .filter(|r| r.late)
        .max_by(|a, b| a.lateness_p99_ms.total_cmp(&b.lateness_p99_ms))?;
    let late = summary.runs.iter().filter(|r| r.late).count();
    Some(format!(
        "the generator was late in {late} of {} runs (worst p99 {:.2} ms at a mean gap of {:.2} ms)",
        summary.runs.len(),
        worst.lateness_p99_ms,
        worst.mean_gap_ms
    ))
}
