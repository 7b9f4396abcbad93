//! What is simulated, apart from the strategy. Made by the front end, which checks the bounds.

use crate::station::{Model, Shape};
use schema::fault::Timeline;
use schema::laws::arrivals::Arrivals;
use schema::laws::sizes::SizeLaw;
use schema::protection::{Limits, Preset, Rules};
use schema::schedule::Due;
use std::sync::Arc;
use strategies::registry::Models;
use strategies::{Context, NewBackend, Options};

/// Everything of a run but its strategy.
#[derive(Debug, Clone)]
pub struct Setup {
    /// In position order.
    pub workers: Vec<WorkerSetup>,
    /// How a worker shares its cores.
    pub model: Model,
    /// Mean work of a request, core-seconds; the unit S.
    pub mean_work: f64,
    /// Speed of a nominal core, millions of instructions per second.
    pub mips_per_core: f64,
    /// Classes of requests.
    pub classes: Vec<Class>,
    /// Law of a request's work relative to its class's mean.
    pub sizes: SizeLaw,
    /// What is asked for, where a list says it instead of the classes' shares.
    pub listed: Option<Listed>,
    /// Whether requests have the targets of their classes; else keys of their own, in turn.
    pub own_targets: bool,
    /// When requests come.
    pub source: Source,
    /// How many.
    pub requests: u64,
    /// Statistics polls.
    pub polls: Polls,
    /// One way between balancer and worker.
    pub network: Delay,
    /// Balancers in front of the same workers.
    pub balancers: u32,
    /// Ask every backend before each pick and wait this long at most, s.
    pub ask_first: Option<f64>,
    /// A balancer gives a request up after this time, s.
    pub timeout: Option<f64>,
    /// What protects the balancers; `None`: neither rules nor limits.
    pub protection: Option<Preset>,
    /// What breaks.
    pub faults: Option<Timeline>,
    /// Each worker toggles between full speed and this share of it, after exponential times with
    /// this mean, s.
    pub speed_drift: Option<(f64, f64)>,
    /// From this request on the work of classes 0, 2, .. is multiplied, that of the others divided.
    pub size_drift: Option<(u64, f64)>,
    /// Requests left out of statistics at the beginning.
    pub warmup: u64,
    /// What workers tell of the work left of what they hold.
    pub work_left: WorkLeft,
    /// Latency models that strategies may read.
    pub models: Models,
    /// Root of every random stream.
    pub seed: u64,
}

/// One worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerSetup {
    /// Unique name.
    pub name: String,
    /// Cores.
    pub cores: f64,
    /// Speed of a core, 1 = nominal.
    pub speed: f64,
    /// Configured weight.
    pub weight: u32,
    /// Memory limit, GB.
    pub memory_gb: f64,
}

/// One class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Name in rows.
    pub id: String,
    /// HTTP method.
    pub method: String,
    /// Request target.
    pub url: String,
    /// Dense number of method and path.
    pub number: u32,
    /// Mean work, core-seconds.
    pub mean_work: f64,
    /// Relative frequency.
    pub share: f64,
    /// Place among the weights of [`Model::Weighted`].
    pub weight_class: u32,
}

/// Requests one by one: request i is item i, from the beginning again after the last one.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The list, never empty.
    pub items: Arc<[Due]>,
    /// Whose sizes count.
    pub sizes: ListedSizes,
}

impl Listed {
    /// Item of request `seq`.
    pub(super) fn item(&self, seq: u64) -> &Due {
        &self.items[(seq % self.items.len() as u64) as usize]
    }
}

/// When requests come.
#[derive(Debug, Clone)]
pub enum Source {
    /// Independent gaps, whatever happens to earlier requests.
    Open {
        /// Law of the gaps.
        gaps: SizeLaw,
        /// Mean rate, requests per second.
        rate_rps: f64,
    },
    /// A process with a rate of its own.
    Process(Arrivals),
    /// Due times as listed, again and again if more are wanted.
    Trace {
        /// The list.
        due: Arc<[Due]>,
        /// Times are multiplied by this.
        stretch: f64,
    },
    /// Users who think, call, wait and think again.
    Users {
        /// How many.
        users: u32,
        /// Mean think time, exponential, s.
        think: f64,
    },
    /// A fixed number of calls in flight; callers beyond that wait their turn, drawn at random.
    Slots {
        /// Calls in flight.
        slots: u32,
        /// Calls of one action.
        calls: u32,
    },
}

/// Which sizes listed requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedSizes {
    /// Those of the list.
    Own,
    /// Those of the size law.
    Law,
}

/// When statistics are sampled and seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Polls {
    /// Time between two samples of a worker by one balancer, s; 0: the board is always live.
    pub interval: f64,
    /// Whether all workers are sampled at one instant.
    pub phase: Phase,
    /// From the sample to its arrival, besides the way through the network, s.
    pub fetch: f64,
    /// Time between two figures of the container engine, s.
    pub usage: f64,
}

/// When the poll loops of one balancer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// All at one instant.
    Together,
    /// Worker i of n is i/n of an interval later.
    Spread,
}

/// What workers tell of the work left of what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkLeft {
    /// Nothing.
    Untold,
    /// In every report.
    Told,
    /// All of it, and the true speed, right before each pick.
    World,
}

/// Which limit of time ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// That of one attempt.
    PerTry,
    /// That of the whole request.
    Total,
}

/// A delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always this long, s.
    Constant(f64),
    /// Exponential with this mean, s.
    Exponential(f64),
}

impl Delay {
    /// Its mean, s.
    pub fn mean(self) -> f64 {
        match self {
            Self::Constant(d) | Self::Exponential(d) => d,
        }
    }
}

impl Setup {
    /// Sum of cores times speed.
    pub fn capacity(&self) -> f64 {
        self.workers.iter().map(|w| w.cores * w.speed).sum()
    }

    /// The members of every balancer's pool.
    pub(super) fn members(&self) -> Vec<NewBackend> {
        let member = |w: &WorkerSetup| NewBackend {
            name: w.name.clone(),
            url: String::new(),
            weight: w.weight,
            cores: w.cores,
            memory_mib: w.memory_gb * 1024.0,
        };
        self.workers.iter().map(member).collect()
    }

    /// What balancer number `b` is told. Balancers draw from different seeds, so that a recorded log
    /// names the one it needs.
    pub(super) fn options(&self, b: u32) -> Options {
        Options {
            seed: self
                .seed
                .wrapping_add(u64::from(b).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            context: Context {
                poll_interval_ns: ((self.polls.interval * 1e9) as u64).max(1),
                mi_per_ms: self.mips_per_core / 1e3,
                models: self.models.clone(),
                ..Context::default()
            },
            rules: self.protection.map_or(Rules::plain(), Preset::rules),
            ..Options::default()
        }
    }

    fn limits(&self) -> Option<Limits> {
        self.protection.map(Preset::limits)
    }

    /// Requests in flight at a balancer above which it refuses new ones.
    pub(super) fn max_in_flight(&self) -> Option<usize> {
        self.limits()?.max_in_flight
    }

    /// When a balancer gives an attempt up, s after the pick, and which limit that is. The total counts
    /// from the pick, too: before it a request waits for answers of `ask_first` at most.
    pub fn patience(&self) -> Option<(f64, Patience)> {
        let limits = self.limits();
        let total = self.timeout.or(limits.map(|l| l.total.as_secs_f64()));
        let per_try = limits.and_then(|l| l.per_try).map(|d| d.as_secs_f64());
        match (per_try, total) {
            (Some(per_try), Some(total)) if per_try < total => Some((per_try, Patience::PerTry)),
            (Some(per_try), None) => Some((per_try, Patience::PerTry)),
            (_, total) => total.map(|total| (total, Patience::Total)),
        }
    }

    pub(super) fn shape(&self, w: usize) -> Shape {
        let worker = &self.workers[w];
        let mut model = self.model.clone();
        if let Model::Quota { period, phase, .. } = &mut model {
            // Kernels do not start their periods together.
            *phase = *period * (w as f64 + 0.37) / self.workers.len() as f64;
        }
        Shape {
            cores: worker.cores,
            speed: worker.speed,
            mean_work: self.mean_work,
            model,
        }
    }
}
