//! The testbed itself: three workers and a balancer, as local processes or as containers.

pub(crate) mod child;
pub(crate) mod docker;
pub(crate) mod engine;
pub(crate) mod process;
pub(crate) mod select;

use std::path::{Path, PathBuf};

use schema::manifest::{Manifest, WorkerLimits};
use schema::stats::{BYTES_PER_GB, Discipline};
use schema::weights::smallest_integers;
use serde::Deserialize;

use crate::control::Addresses;
use crate::folder::Folder;
use crate::programs::Programs;
use crate::signals::Stop;

use select::Selected;

/// Worker names and memory in GB.
pub(crate) const WORKERS: [(&str, u64); 3] = [("a", 12), ("b", 9), ("c", 6)];
/// The workers' cores unless others are asked for.
pub(crate) const CORES: [f64; 3] = [4.0, 3.0, 2.0];
/// All of them together.
pub(crate) const ALL_CORES: f64 = 9.0;

/// How the programs are started; the same for both kinds.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The workers, in the order of [`WORKERS`].
    pub(crate) workers: Vec<WorkerLimits>,
    pub(crate) discipline: Discipline,
    pub(crate) tell_work_left: bool,
    pub(crate) mips_per_core: f64,
    pub(crate) burn_fraction: f64,
    /// `plain` or `guarded`.
    pub(crate) protection: String,
    /// Poll interval as a flag spells it.
    pub(crate) stats_interval: String,
    /// Longest wait for reports before a pick, or `off`, as a flag spells it.
    pub(crate) ask_first: String,
    /// Strategy and seed the balancer starts with; every arm resets them.
    pub(crate) strategy: String,
    pub(crate) seed: u64,
    /// Folder of latency models, if any are needed.
    pub(crate) models: Option<PathBuf>,
}

impl Settings {
    /// Those of a result, with its models in `folder`.
    pub(crate) fn of(manifest: &Manifest, folder: &Folder) -> Self {
        Self {
            workers: manifest.backend.workers.clone(),
            discipline: manifest.backend.discipline,
            tell_work_left: manifest.backend.tell_work_left,
            mips_per_core: manifest.burn.mips_per_core,
            burn_fraction: manifest.burn.fraction,
            protection: manifest.protection.clone(),
            stats_interval: format!("{}ms", manifest.stats_interval_ms),
            ask_first: manifest
                .ask_first_ms
                .map_or("off".into(), |ms| format!("{ms}ms")),
            strategy: manifest.strategies.first().cloned().unwrap_or_default(),
            seed: manifest.seed,
            models: (!manifest.models.is_empty()).then(|| folder.path("models")),
        }
    }

    /// What a worker is told of itself, as flags.
    fn worker_flags(&self, worker: &WorkerLimits) -> Vec<String> {
        let all_cores: f64 = self.workers.iter().map(|w| w.cores).sum();
        let mut flags: Vec<String> = [
            ("--name", worker.name.clone()),
            ("--cores", worker.cores.to_string()),
            ("--memory-gb", memory_gb(worker).to_string()),
            ("--pool-cores", all_cores.to_string()),
            ("--discipline", self.discipline.to_string()),
            ("--mips-per-core", self.mips_per_core.to_string()),
            ("--burn-fraction", self.burn_fraction.to_string()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_string(), value])
        .collect();
        if self.tell_work_left {
            flags.push("--tell-work-left".into());
        }
        flags
    }
}

/// One replay.
#[derive(Debug, Clone)]
pub(crate) struct Replay<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) block: u32,
    pub(crate) label: &'a str,
    /// Workload file.
    pub(crate) schedule: &'a Path,
    /// Rows file to write.
    pub(crate) out: &'a Path,
    pub(crate) warmup: u64,
    /// Expected length of the schedule, seconds.
    pub(crate) seconds: f64,
    /// Closed loop: calls in flight, whatever the due times are.
    pub(crate) slots: Option<u32>,
}

/// What the replay client says at its end.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ReplaySummary {
    pub(crate) never_sent: u64,
    pub(crate) interrupted: bool,
    pub(crate) aborted: Option<String>,
    pub(crate) started_unix_ns: u64,
}

/// A running testbed.
pub(crate) enum Bed {
    Process(process::ProcessBed),
    Docker(docker::DockerBed),
}

impl Bed {
    /// Starts workers and balancer, logs and working files in `folder`; containers if `selected`
    /// says so, else processes on ports of the system's choice.
    pub(crate) async fn start(
        selected: &Selected,
        programs: &Programs,
        settings: &Settings,
        folder: &Folder,
    ) -> anyhow::Result<Self> {
        let Some(docker) = selected.docker.clone() else {
            let any = process::Ports {
                traffic: 0,
                admin: 0,
            };
            let bed = process::ProcessBed::start(programs.clone(), settings, folder, any).await?;
            return Ok(Self::Process(bed));
        };
        let bed = docker::DockerBed::start(docker, settings, folder).await?;
        Ok(Self::Docker(bed))
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        match self {
            Self::Process(bed) => bed.addresses(),
            Self::Docker(bed) => bed.addresses(),
        }
    }

    /// Runs the replay client to its end; `None` when it was stopped by a signal.
    ///
    /// # Errors
    /// The client or the testbed failed.
    pub(crate) async fn replay(
        &mut self,
        folder: &Folder,
        replay: &Replay<'_>,
        stop: &Stop,
    ) -> anyhow::Result<Option<ReplaySummary>> {
        match self {
            Self::Process(bed) => bed.replay(folder, replay, stop).await,
            Self::Docker(bed) => bed.replay(folder, replay, stop).await,
        }
    }

    /// Stops everything this bed started.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Process(bed) => bed.stop().await,
            Self::Docker(bed) => bed.stop().await,
        }
    }
}

/// CPU use of a worker that executes this fraction of its work, as if it executed all of it: what its
/// cores would show without emulation, so that a latency model fits whatever is burned.
fn of_whole_work(cpu_percent: f64, burn_fraction: f64) -> f64 {
    if burn_fraction > 0.0 {
        cpu_percent / burn_fraction
    } else {
        cpu_percent
    }
}

/// The workers with these cores as configured, without what an engine says; weights follow the cores.
pub(crate) fn configured_limits(cores: [f64; 3]) -> Vec<WorkerLimits> {
    WORKERS
        .into_iter()
        .zip(cores.into_iter().zip(smallest_integers(&cores)))
        .map(|((name, memory_gb), (cores, weight))| WorkerLimits {
            name: name.to_string(),
            cores,
            memory_bytes: memory_gb * BYTES_PER_GB,
            weight,
            engine_cpus: None,
            engine_memory_bytes: None,
        })
        .collect()
}

fn memory_gb(worker: &WorkerLimits) -> u64 {
    worker.memory_bytes / BYTES_PER_GB
}

/// A worker as the balancer is told of it, but for its address.
fn backend_fields(worker: &WorkerLimits) -> String {
    let (name, weight, cores) = (&worker.name, worker.weight, worker.cores);
    let memory_gb = memory_gb(worker);
    format!("name={name},weight={weight},cores={cores},memory-gb={memory_gb}")
}

/// What the client's exit code and output mean: 0 and 3 (it could not keep the schedule) are runs.
fn client_result(code: Option<i32>, output: &str, log: &str) -> anyhow::Result<ReplaySummary> {
    use anyhow::Context as _;
    match code {
        Some(0 | 3) => serde_json::from_str(output.trim())
            .with_context(|| format!("the simulator printed no summary{log}")),
        Some(code) => anyhow::bail!("the simulator failed with exit code {code}{log}"),
        None => anyhow::bail!("the simulator was killed{log}"),
    }
}
