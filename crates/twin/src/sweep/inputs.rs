//! The files that a sweep names, each read once. Names are relative to the sweep's folder.

use crate::build::Plan;
use crate::models::Library;
use crate::run::{beside, model_beside, text_of};
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use schema::sweep::Sweep;
use schema::workload::Workload;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use strategies::registry::Models;

/// Most workloads of one sweep.
const MAX_WORKLOADS: usize = 100;

/// See the module.
pub(super) struct Inputs {
    folder: PathBuf,
    workloads: BTreeMap<String, Workload>,
    models: BTreeMap<Vec<String>, Models>,
    /// Every file that was read, that of the sweep first.
    paths: Vec<PathBuf>,
    /// Digest of the contents of all of them, in the order of reading.
    contents: Sha256,
}

impl Inputs {
    /// Reads everything that some cell of the sweep in `file` may name.
    pub(super) fn read(file: &Path, sweep: &Sweep) -> anyhow::Result<Self> {
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut inputs = Self {
            folder,
            workloads: BTreeMap::new(),
            models: BTreeMap::new(),
            paths: vec![file.to_path_buf()],
            contents: Sha256::new(),
        };
        let mut library = Library::default();
        for grid in &sweep.grids {
            let values = grid.axes.iter().flat_map(|axis| &axis.values);
            let parts = std::iter::once(&grid.base).chain(values.map(|value| &value.over));
            for part in parts {
                inputs.read_part(part, &mut library)?;
            }
        }
        inputs.contents.update(library.digest());
        inputs.paths.extend(library.paths());
        Ok(inputs)
    }

    fn read_part(&mut self, part: &Scenario, library: &mut Library) -> anyhow::Result<()> {
        if let Some(name) = part
            .workload
            .as_ref()
            .filter(|w| !self.workloads.contains_key(*w))
        {
            if self.workloads.len() == MAX_WORKLOADS {
                let problem = Problem::new("workload", name, "too many workloads");
                return Err(
                    Problems::from(problem.allowed(format!("up to {MAX_WORKLOADS}"))).into(),
                );
            }
            let path = beside(&self.folder, name);
            let text = text_of(Path::new(&path))?;
            self.contents.update(Sha256::digest(&text));
            self.paths.push(PathBuf::from(&path));
            let workload = Workload::parse(&path, &text)?;
            self.workloads.insert(name.clone(), workload);
        }
        if !part.model.is_empty() && !self.models.contains_key(&part.model) {
            let named: Vec<String> = part
                .model
                .iter()
                .map(|m| model_beside(&self.folder, m))
                .collect();
            self.models
                .insert(part.model.clone(), library.load(&named)?);
        }
        Ok(())
    }

    /// Every file that the sweep reads.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Replication `r` of a cell, worked out.
    pub(super) fn plan(&self, scenario: &Scenario, r: u32) -> Result<Plan, Problems> {
        let workload = scenario
            .workload
            .as_ref()
            .and_then(|w| self.workloads.get(w));
        let models = self.models.get(&scenario.model).cloned();
        Plan::replica(scenario, workload, models.unwrap_or_default(), r)
    }

    /// Digest of all that the result depends on: the program's version, the file, and what it names.
    pub(super) fn digest(&self, text: &str) -> String {
        let mut all = self.contents.clone();
        all.update(env!("CARGO_PKG_VERSION"));
        all.update(Sha256::digest(text));
        all.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
