//! From arguments to result folders: everything that can be wrong is found before anything starts.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use schema::manifest::{self, Backend, Burn, Host, Manifest, Versions};
use schema::problem::Problems;
use schema::workload::Workload;

use super::{Bench, read_input};
use crate::bed::configured_limits;
use crate::bed::select::{Kind, Selected};
use crate::cli::BenchArgs;
use crate::figures::comparison::AA_PREFIX;
use crate::folder::Folder;
use crate::host;
use crate::models::{self, ModelFile};
use crate::plan::burn::{Situation, choose};
use crate::plan::order;
use crate::plan::preset::{at_load, load, rate_rps};
use crate::plan::strategies::{find, parse_list};
use crate::plan::threshold::Threshold;
use crate::programs::Programs;
use crate::signals::Stop;

/// Poll interval of the balancer, ms.
const STATS_INTERVAL_MS: f64 = 100.0;

/// A bench that is ready to get its folder.
pub(crate) enum Plan {
    /// A new result.
    New {
        root: PathBuf,
        manifest: Box<Manifest>,
        workload: Box<Workload>,
        models: Vec<ModelFile>,
        thresholds: Vec<Threshold>,
    },
    /// An interrupted one.
    Resumed {
        folder: Folder,
        manifest: Box<Manifest>,
        thresholds: Vec<Threshold>,
    },
}

/// The back end asked for: a resumed bench goes on with the kind it began with.
pub(super) fn asked_kind(arguments: &BenchArgs, plans: &[Plan]) -> Option<Kind> {
    match plans.first() {
        Some(Plan::Resumed { manifest, .. }) => Some(match manifest.backend.kind.as_str() {
            "docker" => Kind::Docker,
            _ => Kind::Process,
        }),
        _ => arguments.backend,
    }
}

/// One plan per load of the preset.
pub(super) fn plans(arguments: &BenchArgs, programs: &Programs) -> anyhow::Result<Vec<Plan>> {
    let registered = programs.strategies()?;
    let preset = arguments.preset;
    let found = models::find(&arguments.models)?;
    let strategies = match &arguments.strategies {
        Some(text) => parse_list(text, &registered)?,
        None => preset.strategies(&registered, !found.is_empty()),
    };
    let needs_model = |s: &String| find(s, &registered).is_some_and(|r| r.needs_model);
    let found = if strategies.iter().any(needs_model) {
        found
    } else {
        Vec::new()
    };
    programs.check_strategies(&strategies, &found)?;
    let workload = match &arguments.workload {
        Some(path) => Workload::parse(&path.display().to_string(), &read_input(path)?)?,
        None => preset.workload()?,
    };
    let mut labels = strategies.clone();
    labels.push(format!("{AA_PREFIX}{}", strategies[0]));
    let thresholds = parse_thresholds(&arguments.fail_if, &labels)?;
    let calibration = programs.calibrate()?;
    let facts = host::facts(&calibration);
    let versions = Versions {
        plumbline: env!("CARGO_PKG_VERSION").to_string(),
        git_commit: host::git_commit(),
        binaries_sha256: programs.digests()?,
        docker_engine: None,
    };
    let now = jiff::Timestamp::now();
    let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let loads = match arguments.load {
        Some(load) => vec![Some(load)],
        None => preset.loads(),
    };
    let several = loads.len() > 1;
    let mut plans = Vec::new();
    for asked in loads {
        let capacity = arguments.cores.sum() * arguments.mips_per_core;
        let workload = match asked {
            Some(rho) => at_load(workload.clone(), rho, capacity)?,
            None => workload.clone(),
        };
        let suffix = match asked {
            Some(rho) if several => format!("-load-{rho}"),
            _ => String::new(),
        };
        let name = format!("{stamp}-{}{suffix}", preset.as_str());
        let burn = burn(arguments, &workload, &facts);
        if burn.load >= 1.0 {
            console::tell!(
                "warning: a load of {:.3} is more than the workers can do; runs will be unstable, \
                 without mean and rank (below 1: --load)",
                burn.load
            );
        }
        let blocks = arguments
            .blocks
            .unwrap_or_else(|| preset.blocks(strategies.len().saturating_sub(1)));
        let run_name = format!("{stamp}{suffix}");
        let manifest = Manifest {
            schema: manifest::SCHEMA.to_string(),
            name: name.clone(),
            command: std::env::args().collect(),
            created_utc: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            complete: false,
            interrupted: false,
            aborted: None,
            versions: versions.clone(),
            host: facts.clone(),
            // Filled in when the back end is known.
            backend: Backend {
                kind: String::new(),
                reason: String::new(),
                image_id: None,
                workers: configured_limits(arguments.cores.0),
                discipline: arguments.discipline,
                tell_work_left: arguments.tell_work_left,
            },
            preset: preset.as_str().to_string(),
            protection: arguments.protection.clone(),
            flags: if burn.emulated {
                vec!["emulated".into()]
            } else {
                Vec::new()
            },
            burn,
            workload: describe(&workload),
            seed: arguments.seed,
            stats_interval_ms: STATS_INTERVAL_MS,
            ask_first_ms: arguments.ask_first.wait().map(|d| d.as_secs_f64() * 1e3),
            blocks,
            warmup_requests: preset.warmup_requests(&workload),
            models: models::describe(&found)?,
            arms: order::arms(&run_name, &strategies, blocks, arguments.seed),
            strategies: strategies.clone(),
        };
        plans.push(Plan::New {
            root: folder_path(arguments.out.as_deref(), &name, several.then_some(&suffix)),
            manifest: Box::new(manifest),
            workload: Box::new(workload),
            models: found.clone(),
            thresholds: thresholds.clone(),
        });
    }
    Ok(plans)
}

pub(super) fn parse_thresholds(
    texts: &[String],
    labels: &[String],
) -> anyhow::Result<Vec<Threshold>> {
    let parsed = texts.iter().map(|text| Threshold::parse(text, labels));
    Ok(parsed.collect::<Result<_, Problems>>()?)
}

fn folder_path(out: Option<&Path>, name: &str, suffix: Option<&String>) -> PathBuf {
    match (out, suffix) {
        (Some(out), Some(suffix)) => out.join(suffix.trim_start_matches('-')),
        (Some(out), None) => out.to_path_buf(),
        (None, _) => Path::new("results").join(name),
    }
}

fn burn(arguments: &BenchArgs, workload: &Workload, host: &Host) -> Burn {
    let situation = Situation {
        load: load(workload, arguments.cores.sum() * arguments.mips_per_core),
        worker_cores: arguments.cores.sum(),
        mips_per_core: arguments.mips_per_core,
        host_cores: host.cores,
        native_mips_all_busy: host.native_mips_per_core_all_busy,
    };
    choose(&situation, arguments.burn_fraction.0)
}

fn describe(workload: &Workload) -> manifest::Workload {
    manifest::Workload {
        name: workload.name.clone(),
        // A workload file may come without its digest.
        sha256: workload.clone().sealed().sha256,
        apis: workload.apis.len(),
        requests: workload.requests(),
        mean_mi: workload.mean_task_size_mi(),
        rate_rps: rate_rps(workload),
    }
}

/// Makes the folder (or takes the resumed one) and says in the manifest what the programs run in.
pub(super) fn bench(
    plan: Plan,
    programs: &Programs,
    selected: &Selected,
    stop: &Stop,
) -> anyhow::Result<Bench> {
    let (folder, mut manifest, thresholds) = match plan {
        Plan::New {
            root,
            manifest,
            workload,
            models,
            thresholds,
        } => {
            let folder = Folder::create(&root)?;
            models::copy(&models, &folder.path("models"))?;
            write_workloads(&folder, &manifest, &workload)?;
            (folder, manifest, thresholds)
        }
        Plan::Resumed {
            folder,
            manifest,
            thresholds,
        } => (folder, manifest, thresholds),
    };
    manifest.backend.kind = selected.kind().to_string();
    manifest.backend.reason.clone_from(&selected.reason);
    manifest.backend.image_id = selected.docker.as_ref().map(|d| d.image.id.clone());
    manifest.versions.docker_engine = selected.docker.as_ref().map(|d| d.engine.version.clone());
    folder.write_manifest(&manifest)?;
    Ok(Bench {
        folder,
        manifest: *manifest,
        programs: programs.clone(),
        selected: Selected {
            docker: selected.docker.clone(),
            reason: selected.reason.clone(),
        },
        thresholds,
        stop: stop.clone(),
    })
}

/// `workload.json` as given, and for each block the same with the block's own seed: all arms of a
/// block replay one schedule, different blocks replay different ones.
fn write_workloads(
    folder: &Folder,
    manifest: &Manifest,
    workload: &Workload,
) -> anyhow::Result<()> {
    let write = |name: &str, workload: &Workload| {
        let path = folder.path(name);
        std::fs::write(&path, workload.to_text())
            .with_context(|| format!("cannot write {}", path.display()))
    };
    write("workload.json", workload)?;
    for block in 1..=manifest.blocks {
        let own = block_workload(workload, manifest.seed, block);
        write(&order::schedule_file(block), &own)?;
    }
    Ok(())
}

/// What all arms of a block replay.
pub(super) fn block_workload(workload: &Workload, seed: u64, block: u32) -> Workload {
    let mut own = workload.clone();
    own.seed = order::schedule_seed(seed, block);
    own
}
