//! `summary.json` and the table a bench prints, from the manifest and the rows.

use std::collections::HashMap;

use schema::manifest::Manifest;
use schema::row::Row;
use serde::Serialize;

use crate::figures::comparison::{Comparison, Metric};
use crate::figures::run::Run;
use crate::plan::threshold::Reference;

pub(crate) mod reasons;
mod table;

/// Mark of an arm whose workers were late with more than a hundredth of their burns.
pub(crate) const LATE_BURNS: &str = "late_burns";

/// Version tag.
pub(crate) const SCHEMA: &str = "plumbline.summary/1";

/// What a result folder comes to. New fields may be added.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    schema: &'static str,
    pub(crate) name: String,
    command: Vec<String>,
    git_commit: Option<String>,
    machine: String,
    backend: String,
    seed: u64,
    preset: String,
    protection: String,
    emulated: bool,
    burn_fraction: f64,
    mips_per_core: f64,
    load: f64,
    complete: bool,
    interrupted: bool,
    /// Marks of the whole bench.
    flags: Vec<String>,
    /// Unequal counts by run.
    mismatches: Vec<String>,
    /// Why the result is not valid, by run; empty for a valid one.
    pub(crate) not_valid: Vec<String>,
    /// The same, one line a reason.
    pub(crate) not_valid_reasons: Vec<String>,
    /// Absent when no run is marked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_burns: Option<LateBurns>,
    /// A smoke test shows that everything works and claims nothing, nor does a result that is not
    /// valid: without claims there is no rank and no difference either.
    claims: bool,
    workers: Vec<String>,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
    pub(crate) runs: Vec<Run>,
}

/// Runs whose answers waited for their own burns.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct LateBurns {
    /// Runs that are marked.
    runs: usize,
    /// The largest share of late answers in one of them, 0..1.
    worst_share: f64,
}

impl LateBurns {
    /// Of the arms that came to a run; `None` when none of them is marked.
    fn of(manifest: &Manifest, runs: &[Run]) -> Option<Self> {
        let shares: Vec<f64> = manifest
            .arms
            .iter()
            .filter(|a| a.flags.iter().any(|f| f == LATE_BURNS))
            .filter(|a| runs.iter().any(|r| r.run_id == a.run_id))
            .map(|a| a.late_burn_share.unwrap_or_default())
            .collect();
        (!shares.is_empty()).then(|| Self {
            runs: shares.len(),
            worst_share: shares.into_iter().fold(0.0, f64::max),
        })
    }
}

impl Summary {
    /// Computes everything from the rows of the finished arms.
    pub(crate) fn of(manifest: &Manifest, rows: &[Row]) -> Self {
        let runs = runs(manifest, rows);
        let mut comparison = Comparison::of(&runs, &manifest.strategies);
        let not_valid: Vec<String> = manifest.arms.iter().flat_map(|a| a.faults()).collect();
        let claims = manifest.preset != "smoke" && not_valid.is_empty();
        if !claims {
            comparison.withdraw();
        }
        Self {
            schema: SCHEMA,
            name: manifest.name.clone(),
            command: manifest.command.clone(),
            git_commit: manifest.versions.git_commit.clone(),
            machine: format!(
                "{}, {} cores, {:.1} GiB, {}",
                manifest.host.cpu_model,
                manifest.host.cores,
                manifest.host.memory_bytes as f64 / schema::stats::BYTES_PER_GB as f64,
                manifest.host.system
            ),
            backend: manifest.backend.kind.clone(),
            seed: manifest.seed,
            preset: manifest.preset.clone(),
            protection: manifest.protection.clone(),
            emulated: manifest.burn.emulated,
            burn_fraction: manifest.burn.fraction,
            mips_per_core: manifest.burn.mips_per_core,
            load: manifest.burn.load,
            complete: manifest.complete,
            interrupted: manifest.interrupted,
            flags: manifest.flags.clone(),
            mismatches: manifest
                .arms
                .iter()
                .flat_map(|a| a.mismatches.iter().map(|m| format!("{}: {m}", a.run_id)))
                .collect(),
            not_valid,
            not_valid_reasons: reasons::lines(manifest),
            late_burns: LateBurns::of(manifest, &runs),
            claims,
            workers: manifest
                .backend
                .workers
                .iter()
                .map(|w| w.name.clone())
                .collect(),
            comparison,
            runs,
        }
    }

    /// A strategy's mean over its runs of one metric; unknown for a flagged or failing one.
    pub(crate) fn value(&self, reference: &Reference) -> Option<f64> {
        let strategy = self
            .comparison
            .strategies
            .iter()
            .find(|s| s.label == reference.label && !s.failing)?;
        let point = strategy.metrics.get(reference.metric.as_str())?.point;
        point.is_finite().then_some(point)
    }

    /// The table and the lines around it.
    pub(crate) fn text(&self) -> String {
        table::render(self)
    }
}

/// One summary per run, in running order.
pub(crate) fn runs(manifest: &Manifest, rows: &[Row]) -> Vec<Run> {
    let mut by_run: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in rows {
        by_run.entry(row.run_id.as_str()).or_default().push(row);
    }
    manifest
        .arms
        .iter()
        .filter_map(|arm| {
            let own = by_run.get(arm.run_id.as_str())?;
            Run::summarize(own, manifest.burn.mips_per_core)
        })
        .collect()
}

/// Mean latency of a strategy for one-line messages.
pub(crate) fn mean_ms(run: &Run) -> f64 {
    Metric::MeanMs.of(run)
}

#[cfg(test)]
mod tests;
