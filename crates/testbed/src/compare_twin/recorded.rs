//! The result that is compared: its arms, their rows and their event logs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use schema::manifest::{Arm, ArmState, Manifest};
use schema::problem::{Problem, Problems};
use schema::row::Row;
use schema::workload::Workload;

use crate::agreement::timing::{Log, Timing};
use crate::bed::{CORES, configured_limits};
use crate::folder::Folder;
use crate::plan::strategies::find;
use crate::programs::{Programs, Registered};

/// A recorded result, read.
pub(super) struct Recorded {
    pub(super) folder: Folder,
    pub(super) manifest: Manifest,
    pub(super) workload: Workload,
    rows: BTreeMap<String, Vec<Row>>,
    /// Longest wait for reports before a pick, ms, by run; of runs whose balancer asked.
    waits_ms: BTreeMap<String, f64>,
    pub(super) arms: Vec<Arm>,
}

impl Recorded {
    pub(super) fn read(root: &Path, blocks: &[u32]) -> anyhow::Result<Self> {
        let (folder, mut manifest) = Folder::open(root)?;
        if manifest.backend.workers.is_empty() {
            manifest.backend.workers = configured_limits(CORES);
        }
        let path = folder.path("workload.json");
        let source = path.display().to_string();
        let text = input::read_text(&path).map_err(|problem| *problem)?;
        let workload = Workload::parse(&source, &text)?;
        let chosen = |arm: &&Arm| {
            arm.state == ArmState::Done && (blocks.is_empty() || blocks.contains(&arm.block))
        };
        let arms: Vec<Arm> = manifest.arms.iter().filter(chosen).cloned().collect();
        if arms.is_empty() {
            let problem = Problem::new(
                "RESULTS",
                root.display().to_string(),
                "no finished arm to compare",
            );
            return Err(
                Problems::from(problem.next("name other --blocks or finish the bench")).into(),
            );
        }
        let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in folder.read_rows(&manifest)? {
            if arms.iter().any(|a| a.run_id == row.run_id) {
                rows.entry(row.run_id.clone()).or_default().push(row);
            }
        }
        Ok(Self {
            folder,
            manifest,
            workload,
            rows,
            waits_ms: BTreeMap::new(),
            arms,
        })
    }

    /// Finds out in which arms the balancer asked before its picks: those whose strategy reads what is
    /// told then.
    pub(super) fn learn_waits(&mut self, programs: &Programs) -> anyhow::Result<()> {
        let Some(wait_ms) = self.manifest.ask_first_ms else {
            return Ok(());
        };
        let known = programs.strategies()?;
        let asks = |arm: &&Arm| find(&arm.strategy, &known).is_some_and(Registered::reads_reports);
        let asking = self.arms.iter().filter(asks);
        self.waits_ms = asking.map(|arm| (arm.run_id.clone(), wait_ms)).collect();
        Ok(())
    }

    /// How long a pick of this arm waited for reports at most, ms; none if nobody was asked.
    pub(super) fn wait_ms(&self, arm: &Arm) -> Option<f64> {
        self.waits_ms.get(&arm.run_id).copied()
    }

    pub(super) fn rows_of(&self, arm: &Arm) -> Vec<&Row> {
        self.rows
            .get(&arm.run_id)
            .map_or(Vec::new(), |rows| rows.iter().collect())
    }

    pub(super) fn log_of(&self, arm: &Arm) -> Option<PathBuf> {
        let path = self.folder.path(arm.events.as_ref()?);
        path.is_file().then_some(path)
    }

    /// What the log says of time; `None` without a log or with an empty one.
    pub(super) fn timing_of(&self, arm: &Arm, rows: &[&Row]) -> anyhow::Result<Option<Timing>> {
        let Some(path) = self.log_of(arm) else {
            return Ok(None);
        };
        let source = path.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {source}"))?;
        let log = Log::read(&arm.run_id, &text)
            .map_err(|e| Problems::from(Problem::new("", "", e).in_source(source)))?;
        let sent = rows
            .iter()
            .filter_map(|r| Some((r.seq, r.sent_ns?)))
            .collect();
        let nominal_ns = (self.manifest.stats_interval_ms * 1e6) as u64;
        Ok(log.timing(&sent, nominal_ns.max(1)))
    }
}
