//! `compare A B`: what changed between two result folders, strategy by strategy.
//!
//! Two folders come from two times, so their runs are not paired: Welch's t on log means. What the
//! machine as a whole did meanwhile is taken out by the ratio to each folder's own baseline. A strategy
//! whose requests failed too often on one side (`figures::failures`) has shares of failures and no ratio,
//! and there is none at all when one of the folders is not valid (`summary::reasons`). When not to use: to rank strategies; that is what one bench is for.

use std::path::Path;

use anyhow::bail;
use schema::manifest::Manifest;
use serde::Serialize;

use crate::figures::comparison::{Metric, log_means};
use crate::figures::failures::Failures;
use crate::figures::intervals::{Interval, mean, welch};
use crate::figures::run::Run;
use crate::folder::Folder;
use crate::summary::{self, reasons};

/// One strategy in both folders. Means are those of the summary, over runs; the ratio is of geometric
/// means, since its interval is made from logarithms.
#[derive(Debug, Serialize)]
struct Line {
    label: String,
    mean_ms_a: f64,
    mean_ms_b: f64,
    /// Requests after the warm-up that failed, 0..1.
    failed_share_a: f64,
    failed_share_b: f64,
    /// They failed too often, or not alike: no ratio.
    failing: bool,
    /// B over A with 95 % bounds.
    ratio: Interval,
    /// (B over its baseline) over (A over its baseline); absent for the baseline.
    ratio_to_baseline: Option<f64>,
}

/// Prints the comparison.
pub(crate) fn run(a: &Path, b: &Path, json: bool) -> anyhow::Result<()> {
    let (manifest_a, runs_a) = read(a)?;
    let (manifest_b, runs_b) = read(b)?;
    let lines = lines(&manifest_a, &runs_a, &manifest_b, &runs_b);
    if lines.is_empty() {
        bail!("{} and {}: no strategy in common", a.display(), b.display());
    }
    let differing = differing(&manifest_a, &manifest_b);
    if json {
        let value = serde_json::json!({
            "a": a, "b": b, "differing_conditions": differing, "strategies": lines
        });
        console::say!("{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(());
    }
    for (name, folder, manifest) in [("A", a, &manifest_a), ("B", b, &manifest_b)] {
        console::say!("{name} {} ({})", folder.display(), stamp(manifest))?;
        for reason in reasons::lines(manifest) {
            console::say!("  {reason}")?;
        }
    }
    for line in &lines {
        let bounds = if line.ratio.has_bounds() {
            format!(" [{:.4}..{:.4}]", line.ratio.low, line.ratio.high)
        } else {
            String::new()
        };
        let relative = line.ratio_to_baseline.filter(|r| r.is_finite());
        let relative = relative.map_or(String::new(), |r| {
            format!(", relative to the baseline {r:.4}")
        });
        let failed = [line.failed_share_a, line.failed_share_b].map(|share| 100.0 * share);
        let failed = match failed {
            [a, b] if a + b > 0.0 => format!(", failed {a:.2} % -> {b:.2} %"),
            _ => String::new(),
        };
        if line.failing {
            console::say!(
                "{}: not compared, since latencies of good answers alone would mislead{failed}",
                line.label
            )?;
            continue;
        }
        let without = |mean: f64, side| mean.is_nan().then_some(side);
        let without = [without(line.mean_ms_a, "A"), without(line.mean_ms_b, "B")];
        let without: Vec<&str> = without.into_iter().flatten().collect();
        if !without.is_empty() {
            console::say!(
                "{}: not compared: unstable, or no finished run, in {}{failed}",
                line.label,
                without.join(" and ")
            )?;
            continue;
        }
        let ratio = if line.ratio.point.is_finite() {
            format!(", B/A {:.4}{bounds}{relative}", line.ratio.point)
        } else {
            String::new()
        };
        console::say!(
            "{}: mean {:.2} ms -> {:.2} ms{ratio}{failed}",
            line.label,
            line.mean_ms_a,
            line.mean_ms_b,
        )?;
    }
    if !(is_valid(&manifest_a) && is_valid(&manifest_b)) {
        console::say!("no ratios: a result that is not valid is compared with nothing")?;
    }
    console::say!(
        "recorded at different times, so not paired: the machine may have changed meanwhile"
    )?;
    for condition in differing {
        console::say!("not the same: {condition}")?;
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<(Manifest, Vec<Run>)> {
    let (folder, manifest) = Folder::open(path)?;
    let rows = folder.read_rows(&manifest)?;
    let runs = summary::runs(&manifest, &rows);
    Ok((manifest, runs))
}

fn is_valid(manifest: &Manifest) -> bool {
    let mut arms = manifest.arms.iter();
    arms.all(|arm| arm.faults().next().is_none())
}

fn stamp(manifest: &Manifest) -> String {
    let burn = &manifest.burn;
    let burned = if burn.emulated { "emulated " } else { "" };
    let complete = if manifest.complete {
        ""
    } else {
        ", INCOMPLETE"
    };
    let valid = if is_valid(manifest) {
        ""
    } else {
        ", NOT VALID"
    };
    format!(
        "{burned}f={}, {} back end{complete}{valid}",
        burn.fraction, manifest.backend.kind
    )
}

fn lines(a: &Manifest, runs_a: &[Run], b: &Manifest, runs_b: &[Run]) -> Vec<Line> {
    let failures = |label: &str| {
        [runs_a, runs_b].map(|runs| {
            let own: Vec<&Run> = runs.iter().filter(|r| r.label == label).collect();
            Failures::of(&own)
        })
    };
    let failing = |label: &str| {
        let [a, b] = failures(label);
        a.too_many_beside(b) || b.too_many_beside(a)
    };
    let own = |runs: &'_ [Run], label: &str| -> Vec<f64> {
        let own: Vec<&Run> = runs.iter().filter(|r| r.label == label).collect();
        // An unstable run has no mean, so its strategy has none.
        if own.iter().any(|r| r.flagged()) || failing(label) {
            return Vec::new();
        }
        log_means(&own, Metric::MeanMs)
    };
    let means = |logs: &[f64]| -> Vec<f64> { logs.iter().map(|l| l.exp()).collect() };
    let comparable = is_valid(a) && is_valid(b);
    let baseline = a
        .strategies
        .first()
        .filter(|s| comparable && b.strategies.first() == Some(*s));
    let base = baseline.map(|s| mean(&own(runs_b, s)) - mean(&own(runs_a, s)));
    let shared = a.strategies.iter().filter(|s| b.strategies.contains(s));
    shared
        .map(|label| {
            let (logs_a, logs_b) = (own(runs_a, label), own(runs_b, label));
            let ratio = if comparable {
                welch(&logs_a, &logs_b)
            } else {
                Interval::UNKNOWN
            };
            let [failures_a, failures_b] = failures(label);
            Line {
                label: label.clone(),
                mean_ms_a: mean(&means(&logs_a)),
                mean_ms_b: mean(&means(&logs_b)),
                failed_share_a: failures_a.share(),
                failed_share_b: failures_b.share(),
                failing: failing(label),
                ratio_to_baseline: base
                    .filter(|_| baseline != Some(label))
                    .map(|base| (ratio.point - base).exp()),
                ratio: ratio.exp(),
            }
        })
        .collect()
}

/// A workload as people tell them apart: its name, with some of its digest.
fn workload(manifest: &Manifest) -> String {
    let digest: String = manifest.workload.sha256.chars().take(12).collect();
    format!("{} ({digest})", manifest.workload.name)
}

/// Whether and how long picks waited for reports.
fn asked(manifest: &Manifest) -> String {
    match manifest.ask_first_ms {
        None => "nobody".into(),
        Some(ms) => format!("every worker, {ms} ms at most"),
    }
}

/// Conditions that differ and could explain a difference by themselves.
fn differing(a: &Manifest, b: &Manifest) -> Vec<String> {
    let conditions = [
        (
            "processor",
            a.host.cpu_model.clone(),
            b.host.cpu_model.clone(),
        ),
        ("back end", a.backend.kind.clone(), b.backend.kind.clone()),
        (
            "burn fraction",
            a.burn.fraction.to_string(),
            b.burn.fraction.to_string(),
        ),
        (
            "MIPS per core",
            a.burn.mips_per_core.to_string(),
            b.burn.mips_per_core.to_string(),
        ),
        (
            "load",
            format!("{:.3}", a.burn.load),
            format!("{:.3}", b.burn.load),
        ),
        ("workload", workload(a), workload(b)),
        ("seed", a.seed.to_string(), b.seed.to_string()),
        ("protection", a.protection.clone(), b.protection.clone()),
        ("asked before a pick", asked(a), asked(b)),
        (
            "commit",
            a.versions.git_commit.clone().unwrap_or_default(),
            b.versions.git_commit.clone().unwrap_or_default(),
        ),
    ];
    conditions
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(name, a, b)| format!("{name}: {a} against {b}"))
        .collect()
}
