//! What the balancer counted since start or reset, for the admin pages.

use strategies::{BackendId, Outcome, Status};

/// Latencies kept per backend for the mean on the admin pages.
const RECENT: usize = 50;
/// Picks remembered for the live page.
const LAST_PICKS: usize = 256;
/// Counters of the whole process.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    /// Requests under way, a gauge: kept over a reset.
    pub(crate) held: usize,
    pub(crate) head_rejected: std::collections::BTreeMap<&'static str, u64>,
    /// Second attempts after a kept connection turned out closed.
    pub(crate) stale_retries: u64,
    /// Ids of the last picks, oldest first.
    pub(crate) last_picks: std::collections::VecDeque<BackendId>,
    pub(crate) unserved: u64,
    /// Picks made without the reports that the strategy compares by.
    pub(crate) stand_ins: u64,
    /// Picks that broke a rule the dispatcher keeps; there are none.
    pub(crate) wrong_picks: u64,
    pub(crate) by_reason: std::collections::BTreeMap<&'static str, u64>,
    pub(crate) pick_time: Times<PickBuckets>,
    /// Waits for answers before picks.
    pub(crate) ask_time: Times<AskBuckets>,
    by_backend: Vec<BackendCounts>,
}

impl Counts {
    /// Zero again; what is under way stays counted as held.
    pub(crate) fn afresh(&self) -> Self {
        Self {
            held: self.held,
            ..Self::default()
        }
    }

    /// Counters of one backend.
    pub(crate) fn of(&mut self, id: BackendId) -> &mut BackendCounts {
        if self.by_backend.len() <= id.index() {
            self.by_backend
                .resize_with(id.index() + 1, BackendCounts::default);
        }
        &mut self.by_backend[id.index()]
    }

    /// Counts one pick.
    pub(crate) fn picked(&mut self, id: BackendId) {
        self.of(id).picks += 1;
        if self.last_picks.len() == LAST_PICKS {
            self.last_picks.pop_front();
        }
        self.last_picks.push_back(id);
    }

    /// Counters of one backend, all zero if it was never picked.
    pub(crate) fn peek(&self, id: BackendId) -> BackendCounts {
        self.by_backend.get(id.index()).cloned().unwrap_or_default()
    }
}

/// Counters of one backend.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackendCounts {
    pub(crate) picks: u64,
    /// Complete answers of status below 400.
    pub(crate) ok: u64,
    /// Complete answers of status 400 to 499 but 429: what the client did wrong.
    pub(crate) client_error: u64,
    pub(crate) error: u64,
    pub(crate) timeout: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    pub(crate) connections_opened: u64,
    pub(crate) connections_reused: u64,
    pub(crate) polls: u64,
    pub(crate) polls_failed: u64,
    /// Answers to probes that a strategy asked for.
    pub(crate) probes: u64,
    /// Probes without an answer in time, or that could not be sent.
    pub(crate) probes_failed: u64,
    pub(crate) questions: Questions,
    latency_sum_ms: f64,
    recent_ms: std::collections::VecDeque<f64>,
}

impl BackendCounts {
    /// Counts one outcome.
    pub(crate) fn answered(&mut self, outcome: &Outcome) {
        match outcome.status {
            Status::Ok if is_client_error(outcome) => self.client_error += 1,
            Status::Ok => {
                self.ok += 1;
                self.took(outcome.latency_ns as f64 / 1e6);
            }
            Status::Error => self.error += 1,
            Status::Timeout => self.timeout += 1,
            Status::Refused => self.refused += 1,
            Status::Cancelled => self.cancelled += 1,
        }
    }

    fn took(&mut self, ms: f64) {
        self.latency_sum_ms += ms;
        if self.recent_ms.len() == RECENT {
            self.recent_ms.pop_front();
        }
        self.recent_ms.push_back(ms);
    }

    /// True once the backend answered anything that does not count against it.
    pub(crate) fn has_answered(&self) -> bool {
        self.ok + self.client_error > 0
    }

    /// Outcomes that count against the backend.
    pub(crate) fn errors(&self) -> u64 {
        self.error + self.timeout + self.refused
    }

    /// Mean latency of the last ok answers, ms.
    pub(crate) fn recent_mean_ms(&self) -> Option<f64> {
        let n = self.recent_ms.len();
        (n > 0).then(|| self.recent_ms.iter().sum::<f64>() / n as f64)
    }

    /// Sum of the latencies of all ok answers, ms.
    pub(crate) fn latency_sum_ms(&self) -> f64 {
        self.latency_sum_ms
    }

    /// Sum of the latencies of all ok answers, seconds.
    pub(crate) fn latency_sum_s(&self) -> f64 {
        self.latency_sum_ms / 1e3
    }
}

/// An answer that the backend is not to blame for and that is no success either.
fn is_client_error(outcome: &Outcome) -> bool {
    outcome.http_status.is_some_and(|s| (400..500).contains(&s))
}

/// Questions asked before picks, by how they ended; those under way are not in it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Questions {
    /// Before the wait of their pick was over.
    pub(crate) answered: u64,
    /// After it; the report counts for later picks.
    pub(crate) late: u64,
    /// Never, or not by a statement.
    pub(crate) failed: u64,
    /// Not put: as many as are allowed were under way until the wait was over.
    pub(crate) unsent: u64,
}

impl Questions {
    /// All that ended, those that were not put included.
    pub(crate) fn all(&self) -> u64 {
        self.answered + self.late + self.failed + self.unsent
    }
}

/// Number of bounds of a histogram.
const BOUNDS: usize = 8;

/// Upper bounds of a histogram's buckets, ns, ascending.
pub(crate) trait Buckets {
    const BOUNDS_NS: [u64; BOUNDS];
}

/// Of the time a pick takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct PickBuckets;

impl Buckets for PickBuckets {
    const BOUNDS_NS: [u64; BOUNDS] = [100, 250, 500, 1_000, 2_500, 5_000, 25_000, 100_000];
}

/// Of the wait for answers before a pick.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskBuckets;

impl Buckets for AskBuckets {
    const BOUNDS_NS: [u64; BOUNDS] = [
        250_000,
        500_000,
        1_000_000,
        2_000_000,
        3_000_000,
        5_000_000,
        25_000_000,
        100_000_000,
    ];
}

/// How long something took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times<B> {
    pub(crate) count: u64,
    pub(crate) sum_ns: u64,
    /// Times within each bound, not cumulative; the last holds the rest.
    pub(crate) buckets: [u64; BOUNDS + 1],
    bounds: std::marker::PhantomData<B>,
}

impl<B: Buckets> Times<B> {
    /// Counts one.
    pub(crate) fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.buckets[B::BOUNDS_NS.partition_point(|bound| *bound < ns)] += 1;
    }
}
