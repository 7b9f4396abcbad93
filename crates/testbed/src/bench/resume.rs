//! `--resume`: the finished arms are kept, the others run again with the same seeds and places.
//!
//! Nothing that shapes a result may have changed meanwhile: the programs, the workload, the
//! machine.

use std::path::Path;

use schema::manifest::{ArmState, Manifest};
use schema::problem::Problem;
use schema::workload::Workload;

use super::prepare::{Plan, block_workload, parse_thresholds};
use super::read_input;
use crate::cli::BenchArgs;
use crate::figures::comparison::AA_PREFIX;
use crate::folder::Folder;
use crate::host;
use crate::models;
use crate::plan::order;
use crate::programs::Programs;

/// A machine this much faster or slower than when the bench began is marked: the workers' speed is
/// pinned, so the rows do not change with it, and shared hosts drift by a third within minutes.
const SPEED_MARKED: f64 = 0.03;

/// Mark of a bench that went on at another speed than it began with.
pub(crate) const SPEED_CHANGED: &str = "speed_changed";

/// Opens an interrupted bench and checks that it may go on here and now.
pub(super) fn plan(
    root: &Path,
    arguments: &BenchArgs,
    programs: &Programs,
) -> anyhow::Result<Plan> {
    let (folder, mut manifest) = Folder::resume(root)?;
    let file = root.join("manifest.json").display().to_string();
    let changed = |field: &str, value: &str, what: &str| {
        Problem::new(field, value, what)
            .in_source(&file)
            .next("start a new bench, or bring back what the old one ran with")
    };
    same_programs(&manifest, programs, &changed)?;
    same_workload(&manifest, &folder, &changed)?;
    same_models(&manifest, &folder, &changed)?;
    same_machine(&mut manifest, programs, &changed)?;
    keep_finished(&folder, &mut manifest)?;
    let mut labels = manifest.strategies.clone();
    labels.extend(
        manifest
            .strategies
            .first()
            .map(|s| format!("{AA_PREFIX}{s}")),
    );
    let thresholds = parse_thresholds(&arguments.fail_if, &labels)?;
    Ok(Plan::Resumed {
        folder,
        manifest: Box::new(manifest),
        thresholds,
    })
}

type Changed<'a> = dyn Fn(&str, &str, &str) -> Problem + 'a;

fn same_programs(
    manifest: &Manifest,
    programs: &Programs,
    changed: &Changed<'_>,
) -> anyhow::Result<()> {
    for (name, digest) in programs.digests()? {
        let then = manifest.versions.binaries_sha256.get(&name);
        if then != Some(&digest) {
            let field = format!("versions.binaries_sha256.{name}");
            return Err(
                changed(&field, then.map_or("", |d| d), "the program is another now").into(),
            );
        }
    }
    Ok(())
}

fn same_workload(
    manifest: &Manifest,
    folder: &Folder,
    changed: &Changed<'_>,
) -> anyhow::Result<()> {
    let path = folder.path("workload.json");
    let workload = Workload::parse(&path.display().to_string(), &read_input(&path)?)?;
    if workload.clone().sealed().sha256 != manifest.workload.sha256 {
        let then = &manifest.workload.sha256;
        return Err(changed("workload.sha256", then, "workload.json is another now").into());
    }
    for block in 1..=manifest.blocks {
        let name = order::schedule_file(block);
        let expected = block_workload(&workload, manifest.seed, block).to_text();
        if read_input(&folder.path(&name))? != expected {
            let what = "is no longer the workload with this block's seed";
            return Err(changed("schedules", &name, what).into());
        }
    }
    Ok(())
}

fn same_models(manifest: &Manifest, folder: &Folder, changed: &Changed<'_>) -> anyhow::Result<()> {
    let now = models::describe(&models::in_folder(&folder.path("models"))?)?;
    for then in &manifest.models {
        if !now.contains(then) {
            let what = "the copy of this model is another now";
            return Err(changed("models", &then.name, what).into());
        }
    }
    Ok(())
}

fn same_machine(
    manifest: &mut Manifest,
    programs: &Programs,
    changed: &Changed<'_>,
) -> anyhow::Result<()> {
    let now = host::facts(&programs.calibrate()?);
    let then = &manifest.host;
    if now.cpu_model != then.cpu_model {
        let what = format!("this machine has another processor, {}", now.cpu_model);
        return Err(changed("host.cpu_model", &then.cpu_model, &what).into());
    }
    if now.cores != then.cores {
        let what = format!("this machine has {} cores", now.cores);
        return Err(changed("host.cores", &then.cores.to_string(), &what).into());
    }
    let (fast, before) = (now.native_mips_per_core, then.native_mips_per_core);
    let change = fast / before - 1.0;
    if change.abs() > SPEED_MARKED {
        console::tell!(
            "this machine runs at {fast:.0} MIPS a core now, at {before:.0} when the bench began"
        );
        if !manifest.flags.iter().any(|f| f == SPEED_CHANGED) {
            manifest.flags.push(SPEED_CHANGED.to_string());
        }
    }
    Ok(())
}

/// Finished arms are those whose rows fit their marker; the rest is set aside and planned anew.
fn keep_finished(folder: &Folder, manifest: &mut Manifest) -> anyhow::Result<()> {
    for arm in &mut manifest.arms {
        if folder.finished(arm).is_some() && arm.rows.is_some() {
            arm.state = ArmState::Done;
            continue;
        }
        folder.set_aside(arm)?;
        arm.state = ArmState::Planned;
        arm.rows = None;
        arm.rows_sha256 = None;
        arm.flags.clear();
        arm.mismatches.clear();
    }
    Ok(())
}
