//! `--resume`: the finished arms are kept, the others run again with the same seeds and places.
//!
//! Nothing that shapes a result may have changed meanwhile: the programs, the workload, the speed
//! of the machine.

use std::path::Path;

use schema::manifest::{ArmState, Manifest};
use schema::problem::Problem;
use schema::workload::Workload;

use super::prepare::{Plan, parse_thresholds};
use super::read_input;
use crate::cli::BenchArgs;
use crate::figures::comparison::AA_PREFIX;
use crate::folder::Folder;
use crate::programs::Programs;

/// The machine may be this much faster or slower than when the bench began.
const SPEED_TOLERANCE: f64 = 0.03;
/// A busy moment passes; the closest of this many calibrations counts.
const CALIBRATIONS: usize = 5;

/// Opens an interrupted bench and checks that it may go on here and now.
pub(super) fn plan(
    root: &Path,
    arguments: &BenchArgs,
    programs: &Programs,
) -> anyhow::Result<Plan> {
    let (folder, mut manifest) = Folder::open(root)?;
    let file = root.join("manifest.json").display().to_string();
    let changed = |field: &str, value: &str, what: &str| {
        Problem::new(field, value, what)
            .in_source(&file)
            .next("start a new bench, or bring back what the old one ran with")
    };
    same_programs(&manifest, programs, &changed)?;
    same_workload(&manifest, &folder, &changed)?;
    same_speed(&manifest, programs, &changed)?;
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
    if workload.sha256 != manifest.workload.sha256 {
        let then = &manifest.workload.sha256;
        return Err(changed("workload.sha256", then, "workload.json is another now").into());
    }
    Ok(())
}

fn same_speed(
    manifest: &Manifest,
    programs: &Programs,
    changed: &Changed<'_>,
) -> anyhow::Result<()> {
    let then = manifest.host.native_mips_per_core;
    let mut closest = f64::INFINITY;
    for _ in 0..CALIBRATIONS {
        let now = programs.calibrate()?.native_mips_per_core;
        if (now / then - 1.0).abs() < (closest / then - 1.0).abs() {
            closest = now;
        }
        if (closest / then - 1.0).abs() <= SPEED_TOLERANCE {
            return Ok(());
        }
    }
    let what = format!("this machine runs at {closest:.0} MIPS now, more than 3 % away");
    Err(changed("host.native_mips_per_core", &format!("{then:.0}"), &what).into())
}

/// Finished arms are those whose rows fit their marker; the rest is set aside and planned anew.
fn keep_finished(folder: &Folder, manifest: &mut Manifest) -> anyhow::Result<()> {
    if manifest.complete {
        return Ok(());
    }
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
