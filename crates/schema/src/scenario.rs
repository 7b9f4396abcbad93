//! The scenario: everything a simulated run is told, as a file and as flags.
//!
//! Each field has one text form, checked in one place, whether it comes from a file (a JSON string,
//! number or list of numbers) or from the command line, so a file can say whatever a flag can and
//! the same bound refuses both. Fields that are absent take the simulator's defaults.

mod fields;
mod laws;
mod read;

pub use fields::WEIGHT;
pub use laws::{Arrivals, Discipline, Network, PollPhase, SizeDrift, Sizes, Span, SpeedDrift};
pub use read::Text;

use crate::fault::Timeline;
use crate::protection::Preset;

/// Value of the `schema` field.
pub const SCHEMA: &str = "plumbline.scenario/1";
/// Longest scenario file, bytes.
pub const MAX_BYTES: usize = 8 << 20;
/// Most workers.
pub const MAX_WORKERS: usize = 1 << 17;
/// Most classes of requests.
pub const MAX_APIS: usize = 10_000;
/// Most different CPU weights of one scenario's classes.
pub const MAX_CPU_WEIGHTS: usize = 64;
/// Most requests of one run.
pub const MAX_REQUESTS: u64 = 1_000_000_000_000;

/// A scenario; `None` = not said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    /// What it is called.
    pub name: Option<String>,
    /// Strategy with its parameters.
    pub strategy: Option<String>,
    /// Workload file.
    pub workload: Option<String>,
    /// Latency models, `F` or `NAME=F`.
    pub model: Vec<String>,
    /// Cores of each worker.
    pub cores: Option<Vec<f64>>,
    /// Speed of each worker's cores, 1 = nominal.
    pub speeds: Option<Vec<f64>>,
    /// Configured weight of each worker.
    pub weights: Option<Vec<f64>>,
    /// Memory of each worker, GB.
    pub memory_gb: Option<Vec<f64>>,
    /// Speed of a nominal core, MIPS.
    pub mips_per_core: Option<f64>,
    /// Mean size alone on a nominal core.
    pub mean_service: Option<Span>,
    /// Classes of requests; none = one class.
    pub apis: Vec<Api>,
    /// Law of the sizes.
    pub sizes: Option<Sizes>,
    /// Law of the gaps.
    pub arrivals: Option<Arrivals>,
    /// Offered work over capacity.
    pub load: Option<f64>,
    /// Arrivals per second, instead of a load.
    pub rate_rps: Option<f64>,
    /// How workers share their cores.
    pub discipline: Option<Discipline>,
    /// Poll interval.
    pub poll: Option<Span>,
    /// Poll interval as the mean number of arrivals in it, at all balancers together.
    pub poll_arrivals: Option<f64>,
    /// Whether all workers are sampled at one instant.
    pub poll_phase: Option<PollPhase>,
    /// From the sample to its arrival, besides the way through the network.
    pub fetch_delay: Option<Span>,
    /// Interval of the container engine's CPU and memory figures.
    pub usage: Option<Span>,
    /// One way between balancer and worker.
    pub network_delay: Option<Network>,
    /// Balancers.
    pub balancers: Option<u32>,
    /// Ask every backend before a pick, and wait this long at most.
    pub ask_first: Option<Span>,
    /// A balancer gives a request up after this time.
    pub timeout: Option<Span>,
    /// What protects it; not said: nothing, not even the limits of time of `plain`.
    pub protection: Option<Preset>,
    /// Calls in flight of a closed loop.
    pub slots: Option<u32>,
    /// Calls of one action.
    pub calls: Option<u32>,
    /// Users of a closed loop.
    pub users: Option<u32>,
    /// Their mean think time.
    pub think: Option<Span>,
    /// Requests of the run.
    pub requests: Option<u64>,
    /// Requests left out at the beginning.
    pub warmup: Option<u64>,
    /// Root of every random stream.
    pub seed: Option<u64>,
    /// Workers slow down and recover at random.
    pub speed_drift: Option<SpeedDrift>,
    /// Sizes change during the run.
    pub size_drift: Option<SizeDrift>,
    /// What breaks.
    pub faults: Option<Timeline>,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Api {
    /// Name in rows.
    pub id: String,
    /// HTTP method.
    pub method: String,
    /// Request target.
    pub url: String,
    /// Mean size, millions of instructions.
    pub mean_mi: f64,
    /// Relative frequency.
    pub share: f64,
    /// Weight under weighted sharing.
    pub cpu_weight: f64,
}

impl Scenario {
    /// This scenario with everything that `over` says said anew.
    #[must_use]
    pub fn overridden_by(self, over: Self) -> Self {
        fn first<T>(over: Vec<T>, under: Vec<T>) -> Vec<T> {
            if over.is_empty() { under } else { over }
        }
        macro_rules! fields {
            ($($field:ident),* $(,)?) => {
                Self {
                    $($field: over.$field.or(self.$field),)*
                    model: first(over.model, self.model),
                    apis: first(over.apis, self.apis),
                }
            };
        }
        fields!(
            name,
            strategy,
            workload,
            cores,
            speeds,
            weights,
            memory_gb,
            mips_per_core,
            mean_service,
            sizes,
            arrivals,
            load,
            rate_rps,
            discipline,
            poll,
            poll_arrivals,
            poll_phase,
            fetch_delay,
            usage,
            network_delay,
            balancers,
            ask_first,
            timeout,
            protection,
            slots,
            calls,
            users,
            think,
            requests,
            warmup,
            seed,
            speed_drift,
            size_drift,
            faults,
        )
    }
}

#[cfg(test)]
mod tests;
