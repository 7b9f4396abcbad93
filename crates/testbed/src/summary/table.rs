//! The printed table.

use std::cmp::Reverse;

use crate::bench::resume::SPEED_CHANGED;
use crate::figures::comparison::{Claim, Metric, Strategy};
use crate::figures::failures::MAX_FAILED_SHARE;
use crate::figures::intervals::Interval;
use crate::figures::run::Outcome;

use super::Summary;
use super::reasons::first_few;

/// Blocks below which a comparison cannot be significant, whatever the difference.
const LEAST_BLOCKS: usize = 6;
/// Reasons of failures that a note names; the rest is counted.
const NAMED_REASONS: usize = 5;

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
    if !summary.not_valid_reasons.is_empty() {
        text.push_str(
            "NOT VALID: no rank, no difference, no claim; the figures of each strategy stand by \
             themselves\n",
        );
        for reason in &summary.not_valid_reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        text.push('\n');
    }
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
    let mut cells = vec![
        "strategy", "mean ms", "95 %", "p50", "p95", "p99", "MI/ms", "req/s", &shares,
    ];
    if summary.claims {
        cells.extend([&*ratio, "95 %", "Holm p"]);
    }
    cells.push("");
    cells.into_iter().map(String::from).collect()
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
        cells.push(if summary.claims {
            bounds(&mean, 2)
        } else {
            "-".into()
        });
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
    if summary.claims {
        cells.extend(comparison_cells(strategy));
    }
    cells.push(remark(strategy));
    cells
}

fn comparison_cells(strategy: &Strategy) -> [String; 3] {
    match strategy.against_baseline.get(Metric::MeanMs.as_str()) {
        Some(difference) => [
            number(difference.ratio.point, 4),
            bounds(&difference.ratio, 4),
            number(difference.p_holm, 3),
        ],
        None => Default::default(),
    }
}

fn remark(strategy: &Strategy) -> String {
    if strategy.failing {
        return format!("failed {:.2} %: not ranked", 100.0 * strategy.failed_share);
    }
    match (strategy.aa, strategy.claim) {
        (true, _) if strategy.against_baseline.is_empty() => "A/A",
        (true, _) => "A/A: the noise floor",
        (false, Some(Claim::Faster)) => "faster",
        (false, Some(Claim::Slower)) => "slower",
        (false, None) => "",
    }
    .into()
}

fn number(value: f64, digits: usize) -> String {
    if value.is_finite() {
        format!("{value:.digits$}")
    } else {
        "-".into()
    }
}

fn bounds(interval: &Interval, digits: usize) -> String {
    if interval.has_bounds() {
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
    notes.extend(uncompared(summary));
    notes.extend(why_no_interval(summary));
    notes.extend(lateness(summary));
    if let Some(late) = &summary.late_burns {
        notes.push(format!(
            "late_burns: workers burned late in {} of {} runs (worst {:.1} % of the answers waited for it)",
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
        notes.push(
            "exit code 3: run it again when the machine is quiet, or with a lower --burn-fraction \
             (what each mark means: crates/testbed/README.md)"
                .into(),
        );
    } else if !summary.claims {
        notes.push("a smoke test: it shows that everything works and claims nothing".into());
    } else if summary.comparison.blocks < summary.comparison.blocks_needed as usize {
        notes.push(format!(
            "{}; {} are needed before every comparison could be claimed",
            match summary.comparison.blocks {
                1 => "1 block".to_string(),
                blocks => format!("{blocks} blocks"),
            },
            summary.comparison.blocks_needed.max(LEAST_BLOCKS as u32)
        ));
    }
    if !summary.complete {
        notes.push("incomplete: only finished arms are counted".into());
    }
    notes
}

/// Why a comparison is missing that a reader would look for.
fn uncompared(summary: &Summary) -> Option<String> {
    let strategies = &summary.comparison.strategies;
    let base = strategies
        .iter()
        .find(|s| s.label == summary.comparison.baseline)?;
    let why = match (base.flagged, base.failing) {
        (true, _) => "was unstable",
        (_, true) => "failed too often",
        _ => return None,
    };
    summary
        .claims
        .then(|| format!("nothing is compared with {}: it {why}", base.label))
}

/// What the dashes under 95 % stand for.
fn why_no_interval(summary: &Summary) -> Option<String> {
    if !summary.not_valid.is_empty() {
        return Some("95 %: none for a result that is not valid".into());
    }
    if !summary.claims {
        return Some("95 %: none in a smoke test, whose two blocks would make it too wide".into());
    }
    let strategies = &summary.comparison.strategies;
    let short: Vec<&str> = strategies
        .iter()
        .filter(|s| !s.flagged && !s.metrics[Metric::MeanMs.as_str()].has_bounds())
        .map(|s| s.label.as_str())
        .collect();
    let of_whom = if short.len() < strategies.len() {
        format!(" of a strategy; fewer are there of {}", short.join(", "))
    } else {
        String::new()
    };
    (!short.is_empty()).then(|| format!("95 %: needs at least 2 blocks{of_whom}"))
}

/// What failed under a strategy, how often, and in which runs.
fn failures(summary: &Summary, strategy: &Strategy) -> Option<String> {
    let mut reasons: Vec<(&String, &usize)> = strategy.reasons.iter().collect();
    reasons.sort_by_key(|(reason, count)| (Reverse(**count), *reason));
    let mut shown: Vec<String> = reasons
        .iter()
        .take(NAMED_REASONS)
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    let others: usize = reasons.iter().skip(NAMED_REASONS).map(|(_, n)| **n).sum();
    if others > 0 {
        shown.push(format!("{others} of other reasons"));
    }
    let own = summary.runs.iter().filter(|r| r.label == strategy.label);
    let hit: Vec<String> = own
        .filter(|r| r.count(Outcome::Ok) < r.rows)
        .map(|r| r.run_id.clone())
        .collect();
    (!shown.is_empty()).then(|| {
        format!(
            "{}: {:.2} % of the requests failed, which no latency shows: {} (in {})",
            strategy.label,
            100.0 * strategy.failed_share,
            shown.join(", "),
            first_few(&hit)
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
        "generator_late: the client sent late in {late} of {} runs (worst p99 {:.2} ms at a mean gap of {:.2} ms)",
        summary.runs.len(),
        worst.lateness_p99_ms,
        worst.mean_gap_ms
    ))
}
