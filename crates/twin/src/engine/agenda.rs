//! Everything planned that is neither a station's own event nor the next open arrival.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Order of events at one time. Completions at workers come first and are not planned here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Response = 1,
    Fault,
    Sample,
    Visible,
    Timer,
    Reach,
    Arrival,
}

/// What is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    /// A response arrives at the balancer.
    Response { slot: u32 },
    /// A fault begins or ends.
    Fault { number: u32, begins: bool },
    /// A balancer's poll loop asks one worker.
    Sample { balancer: u32, worker: u32 },
    /// It asks all workers.
    Sweep { balancer: u32 },
    /// Its questions reach the workers.
    Asked { board: u32 },
    /// What was sampled becomes visible.
    Board { board: u32 },
    /// A question of a strategy, or one asked before a pick, reaches a worker.
    Question { ask: u32, worker: u32 },
    /// Its answer arrives.
    Answer { ask: u32 },
    /// The time to wait for answers before a pick is over.
    AskOver { slot: u32, seq: u64 },
    /// The time to wait for a response is over.
    Timeout { slot: u32, seq: u64 },
    /// A request reaches its worker.
    Reach { slot: u32 },
    /// A caller of a closed loop calls.
    Call { caller: u32 },
    /// A balancer that stood still takes a request in.
    Thawed { slot: u32 },
    /// A worker answers with an error before it has done any work.
    FastFail { slot: u32, seq: u64 },
    /// The container engine tells what the workers use.
    Usage,
    /// A worker's speed drifts.
    Drift { worker: u32 },
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    time: f64,
    rank: Rank,
    worker: u32,
    issue: u64,
    event: Event,
}

impl Planned {
    fn key(&self) -> (u64, Rank, u32, u64) {
        // Times are not negative, so their bits order as they do.
        (self.time.to_bits(), self.rank, self.worker, self.issue)
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Planned {}

/// A queue by (time, rank, worker, order of planning).
#[derive(Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Planned>,
    /// The time of the first, looked at far more often than it changes; infinity if nothing is planned.
    first_time: f64,
    issued: u64,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            first_time: f64::INFINITY,
            issued: 0,
        }
    }
}

impl Agenda {
    pub(super) fn plan(&mut self, time: f64, rank: Rank, worker: u32, event: Event) {
        if time == f64::INFINITY {
            return;
        }
        let issue = self.issued;
        self.issued += 1;
        self.first_time = self.first_time.min(time);
        self.heap.push(Planned {
            time,
            rank,
            worker,
            issue,
            event,
        });
    }

    #[inline]
    pub(super) fn first_time(&self) -> f64 {
        self.first_time
    }

    /// Whether nothing is planned before an event of this rank at this time, nor beside it.
    #[inline]
    pub(super) fn is_free(&self, time: f64, rank: Rank) -> bool {
        self.first_time > time
            || self
                .heap
                .peek()
                .is_some_and(|p| p.time == time && p.rank > rank)
    }

    pub(super) fn pop(&mut self) -> Event {
        let first = self.heap.pop().expect("something is planned");
        self.first_time = self.heap.peek().map_or(f64::INFINITY, |p| p.time);
        first.event
    }
}
