//! The two programs a comparison runs per arm: the twin and the balancer's replay.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use schema::manifest::{Arm, Manifest};
use schema::row::Row;
use serde::{Deserialize, Serialize};

use crate::agreement::speed::Calibration;
use crate::agreement::timing::Timing;
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
    /// The strategy predicts latencies.
    pub(super) needs_model: bool,
    /// The result's folder of models.
    pub(super) models: &'a Path,
}

impl TwinRun<'_> {
    /// Runs the twin on the requests of `list` and returns its rows, which `out` keeps. The twin takes
    /// one model: the strategy's, or as in the balancer the first that fits.
    pub(super) fn rows(&self, twin: &Path, list: &Path, out: &Path) -> anyhow::Result<Vec<Row>> {
        let models = self.model_files()?;
        let named = |m: &&ModelFile| self.arm.strategy.contains(&format!("model={}", m.name));
        let candidates: Vec<Option<&ModelFile>> = match models.iter().find(named) {
            _ if !self.needs_model => vec![None],
            Some(named) => vec![Some(named)],
            None => models.iter().map(Some).collect(),
        };
        let mut ended = Err(anyhow!(
            "the result holds no latency model for this strategy"
        ));
        for model in candidates {
            ended = self.run(twin, list, out, model);
            if ended.is_ok() {
                break;
            }
        }
        ended?;
        read_rows(out)
    }

    fn run(
        &self,
        twin: &Path,
        list: &Path,
        out: &Path,
        model: Option<&ModelFile>,
    ) -> anyhow::Result<()> {
        let mut command = Command::new(twin);
        command.arg("run").args(self.flags());
        command.arg("--workload").arg(list);
        command.arg("--out").arg(out).arg("--json");
        if let Some(model) = model {
            command.arg("--model").arg(model.flag());
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot run {}", twin.display()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("twin: {}: {}", output.status, complaint.trim());
        }
        Ok(())
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
            (
                "--fetch-delay",
                format!("{}ns", self.timing.map_or(0, |t| t.fetch_ns)),
            ),
            ("--warmup", "0".to_string()),
        ];
        let flags = flags
            .into_iter()
            .map(|(flag, value)| [flag.to_string(), value]);
        flags.flatten().collect()
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
