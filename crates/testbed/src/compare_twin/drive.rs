//! The two programs a comparison runs per arm: the twin and the balancer's replay.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use schema::manifest::{Arm, Manifest};
use schema::row::Row;
use serde::{Deserialize, Serialize};

use crate::agreement::speed::Calibration;
use crate::agreement::timing::Timing;
use crate::bed::{docker, process};
use crate::folder::read_rows;
use crate::models::{self, ModelFile};
use crate::programs::Programs;

/// Picks of a recorded log that a fresh dispatcher made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parity {
    pub(super) picks: u64,
    pub(super) equal: u64,
}

/// What a run of the twin is told beside its requests.
pub(super) struct TwinRun<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) arm: &'a Arm,
    pub(super) calibration: &'a Calibration,
    pub(super) timing: Option<&'a Timing>,
    /// Longest wait for reports before a pick, ms, if its balancer asked.
    pub(super) wait_ms: Option<f64>,
    /// The result's folder of models.
    pub(super) models: &'a Path,
}

impl TwinRun<'_> {
    /// Runs the twin on the requests of `list` and returns its rows, which `out` keeps.
    pub(super) fn rows(&self, twin: &Path, list: &Path, out: &Path) -> anyhow::Result<Vec<Row>> {
        let mut command = Command::new(twin);
        command.arg("run").args(self.flags());
        command.arg("--workload").arg(list);
        command.arg("--out").arg(out).arg("--json");
        for model in self.model_files()? {
            command.arg("--model").arg(model.flag());
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot run {}", twin.display()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("twin: {}: {}", output.status, complaint.trim());
        }
        read_rows(out)
    }

    fn flags(&self) -> Vec<String> {
        let workers = &self.manifest.backend.workers;
        let list = |value: &dyn Fn(usize) -> String| -> String {
            (0..workers.len()).map(value).collect::<Vec<_>>().join(",")
        };
        let nominal = self.manifest.burn.mips_per_core;
        let speed = self.calibration.lone_mips / nominal;
        let gb = schema::stats::BYTES_PER_GB as f64;
        let one_way_ns = (self.calibration.overhead_ms * 1e6 / 2.0).round();
        // The twin's polls take the network's way as its requests do; the rest of their time is fetch.
        let fetch_ns = self.timing.map_or(0, |t| t.fetch_ns);
        let fetch_ns = fetch_ns.saturating_sub(2 * one_way_ns as u64);
        let usage = match self.manifest.backend.kind.as_str() {
            "docker" => docker::USAGE_INTERVAL,
            _ => process::USAGE_INTERVAL,
        };
        let nominal_ns = (self.manifest.stats_interval_ms * 1e6).round() as u64;
        let flags = [
            ("--strategy", self.arm.strategy.clone()),
            ("--seed", self.arm.seed.to_string()),
            ("--cores", list(&|i| workers[i].cores.to_string())),
            ("--speeds", list(&|_| speed.to_string())),
            ("--weights", list(&|i| workers[i].weight.to_string())),
            (
                "--memory-gb",
                list(&|i| (workers[i].memory_bytes as f64 / gb).to_string()),
            ),
            ("--mips-per-core", nominal.to_string()),
            ("--network-delay", format!("{one_way_ns}ns")),
            (
                "--poll",
                format!("{}ns", self.timing.map_or(nominal_ns, |t| t.interval_ns)),
            ),
            ("--fetch-delay", format!("{fetch_ns}ns")),
            ("--discipline", self.manifest.backend.discipline.to_string()),
            ("--usage", schema::duration::format(usage)),
            ("--protection", self.manifest.protection.clone()),
            ("--warmup", "0".to_string()),
        ];
        let flags = flags
            .into_iter()
            .map(|(flag, value)| [flag.to_string(), value]);
        let asks = self
            .wait_ms
            .map(|ms| ["--ask-first".into(), format!("{ms}ms")]);
        flags.chain(asks).flatten().collect()
    }

    fn model_files(&self) -> anyhow::Result<Vec<ModelFile>> {
        if self.manifest.models.is_empty() {
            return Ok(Vec::new());
        }
        models::find(&[self.models.display().to_string()])
    }
}

/// Feeds the recorded log to a fresh dispatcher of the balancer.
pub(super) fn parity(programs: &Programs, run: &TwinRun<'_>, log: &Path) -> anyhow::Result<Parity> {
    let mut command = Command::new(programs.path("balancer"));
    command
        .arg("replay")
        .arg(log)
        .arg("--json")
        .stdin(Stdio::null());
    for model in run.model_files()? {
        command.arg("--model").arg(model.flag());
    }
    let output = command.output().context("cannot run the balancer")?;
    // 1 says that a pick differs, and the numbers are there.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("balancer replay: {}: {}", output.status, complaint.trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim()).with_context(|| format!("`balancer replay` printed {text:?}"))
}
