//! The runs of a result folder: manifest, rows, and each run's event log.

use super::rebuild::Worker;
use super::rows::{MAX_LINE_BYTES, Runs};
use super::{Judged, Setting, log, refuse, stays};
use schema::manifest::{ArmState, Manifest, SCHEMA};
use schema::problem::{Problem, Problems};
use schema::stats::Discipline;
use std::path::Path;

/// Mark of an arm whose mean says nothing.
const UNSTABLE: &str = "unstable";

/// Judges the finished arms. An arm without a log is judged by its rows alone.
///
/// # Errors
/// No result folder, rows that are not those that were recorded, and all of [`Runs`] and [`log::read`].
pub(super) fn judge_all(
    root: &Path,
    discipline: Option<Discipline>,
) -> Result<(Setting, Vec<Judged>), Problems> {
    let manifest = read_manifest(&root.join("manifest.json"))?;
    let workers = manifest.backend.workers.iter().map(|w| Worker {
        name: w.name.clone(),
        cores: w.cores,
        speed: 1.0,
    });
    let setting = Setting {
        workers: workers.collect(),
        discipline: discipline.unwrap_or(manifest.backend.discipline).into(),
        mips_per_core: manifest.burn.mips_per_core,
    }
    .checked()?;
    let path = root.join("rows.csv");
    let file = input::open_lines(&path, MAX_LINE_BYTES).map_err(|problem| *problem)?;
    input::recorded::check(&path, file, &manifest).map_err(|problem| *problem)?;
    let mut runs = Runs::open(&path, setting.named_cores())?;
    let names: Vec<&str> = setting.workers.iter().map(|w| w.name.as_str()).collect();
    let mut judged = Vec::new();
    while let Some(run) = runs.next_run()? {
        let is_it = |a: &&schema::manifest::Arm| a.run_id == run.run_id;
        let Some(arm) = manifest
            .arms
            .iter()
            .find(is_it)
            .filter(|a| a.state == ArmState::Done)
        else {
            continue;
        };
        let mi_per_ms = setting.mips_per_core / 1e3;
        let stays = match arm.events.as_ref().map(|e| root.join(e)) {
            Some(log) if log.is_file() => {
                let dispatches = log::read(&log, &run.run_id, &names)?;
                stays::from_log(&run, &dispatches, mi_per_ms)?
            }
            _ => stays::from_rows(&run, mi_per_ms)?,
        };
        let mut run = setting.judge(&path, run, &stays)?;
        if arm.flags.iter().any(|f| f == UNSTABLE) {
            run.mean_ms = None;
        }
        judged.push(run);
    }
    if judged.is_empty() {
        let problem = Problem::new("", "", "no finished run").in_source(root.display().to_string());
        return refuse(problem.next("finish the bench: testbed bench --resume"));
    }
    Ok((setting, judged))
}

fn read_manifest(path: &Path) -> Result<Manifest, Problems> {
    let text = input::read_text(path)
        .map_err(|problem| problem.next("name a result folder of `testbed bench`, or --rows"))?;
    let source = path.display().to_string();
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
        let problem = Problem::new("", "", format!("not a manifest: {error}"));
        problem.in_source(&source).at(error.line(), error.column())
    })?;
    if manifest.schema != SCHEMA {
        let problem = Problem::new("schema", &manifest.schema, "unknown version");
        return refuse(problem.in_source(source).allowed(SCHEMA));
    }
    if manifest.backend.workers.is_empty() {
        let problem = Problem::new("backend.workers", "", "names no workers").in_source(source);
        return refuse(problem.next("judge rows.csv by itself: --rows, --cores, --mips-per-core"));
    }
    Ok(manifest)
}
