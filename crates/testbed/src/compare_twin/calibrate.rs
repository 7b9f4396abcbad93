//! Where speed and overhead come from: a file, the recorded rows, or workers started for it.
//!
//! Started workers get requests through the balancer in a closed loop, one worker at a time: first
//! one call in flight, then twice as many as it has cores.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use schema::json::Fields;
use schema::manifest::{Arm, Manifest, WorkerLimits};
use schema::problem::{Problem, Problems};
use schema::row::Row;
use schema::schedule;
use schema::workload::{Request, Traffic, Workload};

use super::Recorded;
use crate::agreement::speed::{
    self, BusySpeed, Calibration, Stay, alone, busy_mips, fit, median, shared_mips,
};
use crate::bed::select::{Kind, select};
use crate::bed::{Bed, Replay, Settings};
use crate::cli::CompareTwinArgs;
use crate::control::Control;
use crate::figures::run::Outcome;
use crate::folder::{Folder, read_rows, write_atomically};
use crate::programs::Programs;
use crate::signals::Stop;

/// Calls of each worker with one in flight.
const LONE_CALLS: usize = 40;
/// Calls of each worker per core with two per core in flight.
const BUSY_CALLS_PER_CORE: usize = 40;
/// A recorded worker of which fewer requests shared a core was busy only when something held it up,
/// which tells no speed.
const LEAST_SHARED_SHARE: f64 = 0.2;
const READY_LIMIT: Duration = Duration::from_secs(60);

/// The calibration that the arguments ask for.
pub(super) async fn calibration(
    arguments: &CompareTwinArgs,
    recorded: &Recorded,
    programs: &Programs,
    out: &Path,
) -> anyhow::Result<Calibration> {
    if let Some(path) = &arguments.calibration {
        return read(path);
    }
    if arguments.from_rows {
        return from_rows(recorded);
    }
    closed_loop(recorded, programs, out).await
}

fn read(path: &Path) -> anyhow::Result<Calibration> {
    let source = path.display().to_string();
    let bytes = input::read(path).map_err(|problem| *problem)?;
    let refuse = |field: &str, value: String, what: String| {
        let problem = Problem::new(field, value, what).in_source(&source);
        Problems::from(problem.next("make one with `testbed compare-twin RESULTS --out DIR`"))
    };
    let Fields(read): Fields<Calibration> = serde_json::from_slice(&bytes)
        .map_err(|e| refuse("", String::new(), format!("no calibration: {e}")))?;
    if read.schema != speed::SCHEMA {
        return Err(refuse("schema", read.schema, format!("is not {}", speed::SCHEMA)).into());
    }
    let numbers = [
        ("lone_mips", read.lone_mips, 1.0, 1e6),
        ("overhead_ms", read.overhead_ms, 0.0, 1e4),
    ];
    for (field, value, low, high) in numbers {
        if !(low..=high).contains(&value) {
            let what = format!("out of range (allowed: {low} to {high})");
            return Err(refuse(field, value.to_string(), what).into());
        }
    }
    Ok(read)
}

/// From the requests of the result that had a core to themselves.
fn from_rows(recorded: &Recorded) -> anyhow::Result<Calibration> {
    let manifest = &recorded.manifest;
    // A wait for reports before the pick is no part of the overhead, if it can be told apart.
    let unasked = |arm: &&Arm| recorded.wait_ms(arm).is_none();
    let any_unasked = recorded.arms.iter().any(|arm| unasked(&arm));
    let runs: Vec<Vec<Vec<Stay>>> = recorded
        .arms
        .iter()
        .filter(|arm| !any_unasked || unasked(arm))
        .map(|arm| {
            let rows = recorded.rows_of(arm);
            let workers = manifest.backend.workers.iter();
            workers
                .map(|w| stays(rows.iter().copied(), &w.name))
                .collect()
        })
        .collect();
    let workers = &manifest.backend.workers;
    let lone: Vec<Stay> = runs
        .iter()
        .flat_map(|run| run.iter().zip(workers))
        .flat_map(|(stays, worker)| alone(stays, worker.cores))
        .collect();
    let line = fit(&lone).with_context(|| {
        format!(
            "only {} recorded requests had a core to themselves, or all had one size: no speed can be \
             told from the rows; leave --from-rows out or name a --calibration",
            lone.len()
        )
    })?;
    // Each run has its own time 0.
    let busy = |i: usize| {
        let of_run =
            |run: &Vec<Vec<Stay>>| shared_mips(&run[i], workers[i].cores, line.overhead_ms);
        let speeds: Vec<f64> = runs.iter().flat_map(of_run).collect();
        let all: usize = runs.iter().map(|run| run[i].len()).sum();
        let is_busy = speeds.len() as f64 >= LEAST_SHARED_SHARE * all as f64;
        if is_busy { median(speeds) } else { None }
    };
    let busy: Vec<Option<f64>> = (0..workers.len()).map(busy).collect();
    Ok(assemble(manifest, "rows", &line, lone.len(), &busy))
}

/// From workers of the same back end, started for it.
async fn closed_loop(
    recorded: &Recorded,
    programs: &Programs,
    out: &Path,
) -> anyhow::Result<Calibration> {
    let manifest = &recorded.manifest;
    let kind = match manifest.backend.kind.as_str() {
        "docker" => Kind::Docker,
        "process" => Kind::Process,
        other => {
            bail!("{other} workers cannot be started from here; use --from-rows or --calibration")
        }
    };
    let selected = select(Some(kind), programs).await?;
    let stop = Stop::listen()?;
    let root = out.join("calibration");
    // What an earlier comparison left is not mixed with this one.
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let folder = Folder::create(&root)?;
    let settings = Settings {
        strategy: "round-robin".into(),
        ..Settings::of(manifest, &recorded.folder)
    };
    let mut bed = Bed::start(&selected, programs, &settings, &folder).await?;
    let measured = measure(recorded, &mut bed, &folder, &stop).await;
    let stopped = bed.stop().await;
    let (lone, busy) = measured?;
    stopped?;
    let line = fit(&lone)
        .context("the requests of the workload are all of one size; use --calibration")?;
    let workers = manifest.backend.workers.iter();
    let busy: Vec<Option<f64>> = workers
        .zip(&busy)
        .map(|(worker, stays)| busy_mips(stays, worker.cores, line.overhead_ms))
        .collect();
    Ok(assemble(manifest, "closed_loop", &line, lone.len(), &busy))
}

/// Stays with one call in flight, and of each worker those with two per core.
async fn measure(
    recorded: &Recorded,
    bed: &mut Bed,
    folder: &Folder,
    stop: &Stop,
) -> anyhow::Result<(Vec<Stay>, Vec<Vec<Stay>>)> {
    let control = Control::new(bed.addresses().clone())?;
    control.ready(READY_LIMIT).await?;
    let (mut lone, mut busy) = (Vec::new(), Vec::new());
    for worker in &recorded.manifest.backend.workers {
        control.only(&worker.name).await?;
        let cores = worker.cores.ceil().max(1.0) as usize;
        let loops = [(1, LONE_CALLS), (2 * cores, BUSY_CALLS_PER_CORE * cores)];
        for (slots, calls) in loops {
            let rows = measure_one(recorded, worker, slots, calls, bed, folder, stop).await?;
            let stays = stays(rows.iter(), &worker.name);
            if stays.len() != calls {
                let lost = calls - stays.len();
                bail!(
                    "calibration of worker {}: {lost} of {calls} calls failed",
                    worker.name
                );
            }
            if slots == 1 {
                lone.extend(stays)
            } else {
                busy.push(stays)
            }
        }
    }
    Ok((lone, busy))
}

async fn measure_one(
    recorded: &Recorded,
    worker: &WorkerLimits,
    slots: usize,
    calls: usize,
    bed: &mut Bed,
    folder: &Folder,
    stop: &Stop,
) -> anyhow::Result<Vec<Row>> {
    let name = format!("calibration-{}-{slots}", worker.name);
    let list = calls_of(&recorded.workload, calls);
    let schedule = folder.path(&format!("schedules/{name}.json"));
    write_atomically(&schedule, list.to_text().as_bytes())?;
    let rows = folder.path(&format!("parts/{name}.csv"));
    let work_ms = list.mean_task_size_mi() / recorded.manifest.burn.mips_per_core * 1e3;
    let replay = Replay {
        run_id: &name,
        block: 0,
        label: "calibration",
        schedule: &schedule,
        out: &rows,
        warmup: 0,
        seconds: calls as f64 * work_ms / 1e3,
        slots: Some(slots as u32),
    };
    match bed.replay(folder, &replay, stop).await? {
        Some(summary) if !summary.interrupted => read_rows(&rows),
        _ => bail!("interrupted while calibrating; nothing was compared"),
    }
}

/// The first calls of a workload, again from the beginning if it is short, as a list.
fn calls_of(workload: &Workload, calls: usize) -> Workload {
    let due = schedule::expand(workload);
    let list = due
        .iter()
        .cycle()
        .take(calls)
        .zip(0_u64..)
        .map(|(due, i)| Request {
            // A closed loop takes no heed of due times; they only have to be in order.
            at_us: 10_000 * i,
            api: due.api,
            task_size_mi: due.task_size_mi,
        });
    let mut listed = workload.clone();
    listed.traffic = Traffic::Listed(list.collect());
    listed.sealed()
}

fn assemble(
    manifest: &Manifest,
    from: &str,
    line: &speed::Fit,
    points: usize,
    busy: &[Option<f64>],
) -> Calibration {
    let workers = manifest.backend.workers.iter().zip(busy);
    Calibration {
        schema: speed::SCHEMA.into(),
        from: from.into(),
        backend: manifest.backend.kind.clone(),
        burn_fraction: manifest.burn.fraction,
        nominal_mips: manifest.burn.mips_per_core,
        lone_mips: line.mips,
        overhead_ms: line.overhead_ms,
        points,
        workers: workers
            .filter_map(|(worker, busy_mips)| {
                Some(BusySpeed {
                    name: worker.name.clone(),
                    cores: worker.cores,
                    busy_mips: (*busy_mips)?,
                })
            })
            .collect(),
    }
}

/// The well answered requests of one worker.
fn stays<'a>(rows: impl Iterator<Item = &'a Row>, worker: &str) -> Vec<Stay> {
    rows.filter(|r| Outcome::of(r) == Outcome::Ok && r.container.as_deref() == Some(worker))
        .filter_map(|r| {
            Some(Stay {
                task_size_mi: r.task_size_mi,
                begin_ms: r.sent_ns? as f64 / 1e6,
                end_ms: r.done_ns? as f64 / 1e6,
            })
        })
        .collect()
}
