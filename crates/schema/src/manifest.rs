//! The manifest of a result folder: all that is needed to judge the rows and to make them again.
//!
//! Written before the first request and replaced by rename after every step, so that an interrupted
//! bench says how far it came. Field names are what scripts read; new fields may be added.

use crate::stats::Discipline;
use serde::{Deserialize, Serialize};

/// Version tag.
pub const SCHEMA: &str = "plumbline.manifest/1";

/// One result folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Folder name, `<utc>-<preset>`.
    pub name: String,
    /// The command as given.
    pub command: Vec<String>,
    /// When it began, RFC 3339 in UTC.
    pub created_utc: String,
    /// Every planned arm is done.
    pub complete: bool,
    /// Ended early by a signal.
    pub interrupted: bool,
    /// Why it ended early, when it did (`disk_full`, `interrupted` ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<String>,
    /// What ran.
    pub versions: Versions,
    /// Where it ran.
    pub host: Host,
    /// Process or Docker, and the limits as read back.
    pub backend: Backend,
    /// Bench preset.
    pub preset: String,
    /// Balancer protection preset.
    pub protection: String,
    /// How much was really burned, and why.
    pub burn: Burn,
    /// The workload all arms replay.
    pub workload: Workload,
    /// Root seed of the bench: block order, dispatcher seeds.
    pub seed: u64,
    /// Stats poll interval, ms.
    pub stats_interval_ms: f64,
    /// Longest wait for reports asked for before a pick, ms; absent: nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_first_ms: Option<f64>,
    /// Planned blocks.
    pub blocks: u32,
    /// Leading requests of each arm flagged as warm-up.
    pub warmup_requests: u64,
    /// Strategies in the order given; the first is the baseline.
    pub strategies: Vec<String>,
    /// Latency models that predictive strategies may ask, in the folder `models`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// Every planned arm in running order.
    pub arms: Vec<Arm>,
    /// Marks that concern the whole run: `emulated`, `speed_changed`.
    pub flags: Vec<String>,
}

/// Versions of what ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Versions {
    /// Version of the testbed.
    pub plumbline: String,
    /// Commit of the checkout that the testbed's program lies in, asked of git when the bench began,
    /// with `-dirty` when the tree was changed; absent when unknown.
    pub git_commit: Option<String>,
    /// Digest over the binaries that ran, SHA-256 in hex, by program.
    pub binaries_sha256: std::collections::BTreeMap<String, String>,
    /// Engine version, when containers ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker_engine: Option<String>,
}

/// A latency model as it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Model {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file, in hex.
    pub sha256: String,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Host {
    /// Operating system and kernel.
    pub system: String,
    /// Processor as it names itself.
    pub cpu_model: String,
    /// Cores visible.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Name of the instruction loop.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Native speed with one core busy, MIPS.
    pub native_mips_per_core: f64,
    /// Native speed of one core with all cores busy, MIPS.
    pub native_mips_per_core_all_busy: f64,
}

/// How the programs were started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Backend {
    /// `process` or `docker`.
    pub kind: String,
    /// Why this kind, when the user did not choose it.
    pub reason: String,
    /// The image that all containers were made from, as the engine names it (`sha256:...`); absent for
    /// processes. The programs in it are those of `versions.binaries_sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// The workers.
    pub workers: Vec<WorkerLimits>,
    /// How requests share a worker's cores.
    #[serde(default)]
    pub discipline: Discipline,
    /// Whether workers tell the work left of what they hold.
    #[serde(default)]
    pub tell_work_left: bool,
}

/// One worker as configured and as the engine reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct WorkerLimits {
    /// Backend name.
    pub name: String,
    /// Configured cores.
    pub cores: f64,
    /// Configured memory, bytes.
    pub memory_bytes: u64,
    /// Weight in the balancer.
    pub weight: u32,
    /// CPU limit read back from the engine, cores; absent for processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_cpus: Option<f64>,
    /// Memory limit read back from the engine, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_memory_bytes: Option<u64>,
}

/// The emulation of speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Burn {
    /// Pinned speed of a lane, MIPS.
    pub mips_per_core: f64,
    /// Share of the instructions really executed.
    pub fraction: f64,
    /// True when the fraction is below 1.
    pub emulated: bool,
    /// The arithmetic behind the fraction, one sentence.
    pub reason: String,
    /// Offered load of the workload on all cores, 0..1.
    pub load: f64,
}

/// The workload in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// SHA-256 of the workload as its own field states it.
    pub sha256: String,
    /// APIs.
    pub apis: usize,
    /// Requests per arm.
    pub requests: u64,
    /// Mean task size, MI.
    pub mean_mi: f64,
    /// Mean arrival rate, requests per second.
    pub rate_rps: f64,
}

/// How far an arm came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmState {
    /// Not begun.
    Planned,
    /// Begun, not finished.
    Running,
    /// Finished; its rows count.
    Done,
    /// Ended with an error; its rows do not count.
    Failed,
}

/// One strategy replayed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Arm {
    /// Identity in rows.csv.
    pub run_id: String,
    /// Block, from 1.
    pub block: u32,
    /// Place in the block, from 1.
    pub position: u32,
    /// Label in rows.csv: the strategy, or `aa:` and the baseline.
    pub label: String,
    /// Canonical spelling given to the balancer.
    pub strategy: String,
    /// Seed of the dispatcher's streams.
    pub seed: u64,
    /// How far it came.
    pub state: ArmState,
    /// Wall time of the run's time 0, ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ns: Option<u64>,
    /// Rows in its part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// SHA-256 of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_sha256: Option<String>,
    /// Workload file with this block's seed, relative to the folder; the same for all its arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Event log, relative to the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<String>,
    /// Generator lateness, median, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p50_us: Option<f64>,
    /// Generator lateness, 99th percentile, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_us: Option<f64>,
    /// Share of responses that waited for their own burn beyond the nominal time, 0..1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_burn_share: Option<f64>,
    /// Marks (`unstable`, `generator_late`, `late_burns`, `errors` ...).
    #[serde(default)]
    pub flags: Vec<String>,
    /// Counts that should be equal and are not (`R1: ...`); empty when everything adds up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<String>,
}

/// Mark of an arm some of whose requests could not be sent.
pub const NEVER_SENT: &str = "never_sent";

/// Mark of an arm whose requests left later than the next one was due (99th percentile above the mean
/// gap): the client, not the workload, set the pace.
pub const GENERATOR_SATURATED: &str = "generator_saturated";

/// Marks of an arm that make a result not valid: nothing is claimed from it.
pub const INVALIDATING: [&str; 2] = [NEVER_SENT, GENERATOR_SATURATED];

impl Arm {
    /// Why this arm makes the result not valid, as `run: reason`.
    pub fn faults(&self) -> impl Iterator<Item = String> + '_ {
        let marks = self
            .flags
            .iter()
            .filter(|f| INVALIDATING.contains(&f.as_str()));
        let counts = self.mismatches.iter();
        marks
            .chain(counts)
            .map(|why| format!("{}: {why}", self.run_id))
    }
}

crate::objects!(
    Manifest,
    Versions,
    Model,
    Host,
    Backend,
    WorkerLimits,
    Burn,
    Workload,
    Arm
);
