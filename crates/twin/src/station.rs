//! Worker models: how requests held at one worker share its cores.
//!
//! A [`Station`] knows nothing of balancers or arrivals. The engine hands it work in core-seconds at
//! speed 1 and asks when something happens next; every call brings the station to that time first.
//! All models keep attained service as a clock V and requests as keys on it, so an event costs
//! O(log n) however many share the cores. The slow versions that walk all requests are the oracles
//! in the tests.

mod fcfs;
mod grid;
mod heap;
mod keys;
mod meter;
mod ps;
mod quota;
#[cfg(test)]
mod tests;
mod weighted;

pub use fcfs::Fcfs;
pub use grid::Grid;
pub use meter::Used;
pub use ps::Ps;
pub use quota::Quota;
pub use weighted::Weighted;

/// Number of a job as the engine knows it.
pub type Job = u32;

/// V is set back when it exceeds this many mean works, so that a worker that never empties keeps
/// its precision.
const REBASE_ABOVE: f64 = 1e9;

/// What every model needs to know of its worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Cores, above 0; may be fractional.
    pub cores: f64,
    /// Speed of a core, 1 = nominal.
    pub speed: f64,
    /// Mean work of a request, core-seconds; only scales the precision limit.
    pub mean_work: f64,
    /// What the model itself adds.
    pub model: Model,
}

/// How cores are shared, with the model's own parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Processor sharing: each of n requests runs at speed * min(1, c/n).
    Ps,
    /// First come, first served by max(1, round(c)) servers of speed c/servers.
    Fcfs,
    /// A kernel quota: full speed on `host_cores` until the period's budget of c * period
    /// core-seconds is used up, then nothing until the next period.
    Quota {
        /// Length of a period, s.
        period: f64,
        /// Cores of the host, at least the worker's.
        host_cores: f64,
        /// When the first period begins, s.
        phase: f64,
    },
    /// Processor sharing whose finished requests leave only at multiples of `step`, as in
    /// simulators with a smallest gap between events.
    Grid {
        /// Width of the grid, s.
        step: f64,
    },
    /// Processor sharing by weight.
    Weighted {
        /// Weight of each class of requests, above 0.
        weights: Vec<f64>,
        /// Whether one request can use more than one core.
        cap: Cap,
    },
}

/// What one request can use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// One core.
    OneCore,
    /// All of them.
    None,
}

/// A job that left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// Whose.
    pub job: Job,
    /// When its service began, s; `None` = on arrival.
    pub started: Option<f64>,
}

/// Names a job held, for [`Station::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

/// One worker's cores and the requests it holds.
pub trait Station: std::fmt::Debug {
    /// Whether a job attains exactly its work before it leaves.
    const EXACT: bool = true;

    /// Whether it asks which class a job is of.
    const BY_CLASS: bool = false;

    /// An empty station at time 0.
    fn new(shape: &Shape) -> Self;

    /// When its next own event is due, s; infinity if there is none.
    fn next(&self) -> f64;

    /// Its own event at [`Station::next`]: somebody leaves, or only the rate changes.
    fn step(&mut self, now: f64) -> Option<Departure>;

    /// Takes a job of `work` core-seconds.
    fn arrive(&mut self, now: f64, job: Job, work: f64, class: u32) -> Ticket;

    /// Forgets a job held; the others speed up at once.
    fn cancel(&mut self, now: f64, ticket: Ticket);

    /// Sets the speed of a core; 0 freezes.
    fn set_speed(&mut self, now: f64, speed: f64);

    /// Fails every job held, in order of arrival (weighted: within a class).
    fn fail_all(&mut self, now: f64, failed: &mut Vec<Job>);

    /// The job that leaves next, where that is known at a glance.
    #[inline]
    fn first(&self) -> Option<Job> {
        None
    }

    /// Jobs held.
    fn present(&self) -> u32;

    /// True if a job waits while a core is idle: a broken rule.
    fn wastes_a_core(&self) -> bool {
        false
    }

    /// Empties the trays of its sums.
    fn settle(&mut self);

    /// What was used up to `now`.
    fn used(&self, now: f64) -> Used;

    /// Work left of every job held as of `now`, core-seconds, in no particular order.
    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64));

    /// Work left of canceled and failed jobs when they went, core-seconds.
    fn lost(&self) -> f64;
}
