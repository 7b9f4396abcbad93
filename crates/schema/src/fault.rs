//! The fault timeline: what breaks when. So far only the twin reads one; the format is made for real
//! runs too.
//!
//! `{"version":1,"seed":42,"events":[{"at":"20s","on":"c","fault":"fast_fail","for":"60s","p":0.5}]}`.
//! `at` counts from time 0 of the schedule; who runs a timeline refuses one that does not fit the run.
//! Chance is keyed ([`hits`]), so that every strategy and every kind of run sees the same requests hit.

mod read;

use std::time::Duration;

/// Longest timeline file, bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most events of a timeline.
pub const MAX_EVENTS: usize = 10_000;
/// The target word for the balancer.
pub const BALANCER: &str = "balancer";

/// A sequence of faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Root of the keyed chance.
    pub seed: u64,
    /// In the order of the file; an event's place is its number in [`hits`].
    pub events: Vec<FaultEvent>,
}

/// One fault on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultEvent {
    /// When it begins, from time 0 of the schedule.
    pub at: Duration,
    /// Worker name, or [`BALANCER`].
    pub on: String,
    /// How long it lasts; `None` only for `kill`.
    pub lasts: Option<Duration>,
    /// What breaks.
    pub fault: Fault,
    /// Which requests a request fault looks at.
    pub only: Filter,
}

/// Which requests a request fault looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only this attempt, 0 = first.
    pub attempt: Option<u32>,
    /// Only paths that begin so.
    pub path_prefix: Option<String>,
}

impl Filter {
    /// Whether it lets a request through to the fault.
    pub fn matches(&self, attempt: u32, path: &str) -> bool {
        self.attempt.is_none_or(|a| a == attempt)
            && self
                .path_prefix
                .as_ref()
                .is_none_or(|p| path.starts_with(p))
    }
}

/// What breaks. Of the request faults (`hang` to `reset`) the first in this order that hits decides.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Connections are refused; what runs may finish.
    Refuse,
    /// The request is read and never answered.
    Hang {
        /// Chance.
        p: f64,
    },
    /// An error at once, outside the cores.
    FastFail {
        /// Chance.
        p: f64,
        /// HTTP status answered.
        status: u16,
        /// Time until the answer.
        after: Duration,
    },
    /// Normal work, then an error.
    ErrorRate {
        /// Chance.
        p: f64,
        /// HTTP status answered.
        status: u16,
    },
    /// The nominal time is multiplied.
    Slow {
        /// By how much, 0.1..=1000.
        factor: f64,
        /// Whether the extra time is burned.
        burn: bool,
    },
    /// The connection is reset.
    Reset {
        /// Chance.
        p: f64,
        /// Where.
        at: ResetAt,
    },
    /// The statistics page never answers.
    StatsHang,
    /// The statistics page tells other numbers.
    StatsLie {
        /// Told instead of the requests held.
        active: Option<u32>,
        /// Multiplies the mean latency told.
        latency: Option<f64>,
    },
    /// The process dies.
    Kill {
        /// When it is started again; never if absent.
        restart_after: Option<Duration>,
    },
    /// The process stands still and keeps what it holds.
    Freeze,
    /// Others burn the target's cores.
    Antagonist {
        /// Busy threads.
        threads: u32,
        /// Share of the time they are busy, percent.
        duty_percent: f64,
    },
    /// Polls of the balancer are lost.
    PollLoss {
        /// Chance.
        p: f64,
    },
    /// Polls of the balancer come late.
    PollDelay {
        /// By how much.
        delay: Duration,
    },
    /// Connections to workers come about late.
    ConnectDelay {
        /// By how much.
        delay: Duration,
    },
}

/// Where a reset cuts the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetAt {
    /// Before the head.
    BeforeHead,
    /// After this many body bytes.
    Body(u64),
    /// In the middle of the body.
    HalfBody,
}

impl Fault {
    /// Its word in the file.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Hang { .. } => "hang",
            Self::FastFail { .. } => "fast_fail",
            Self::ErrorRate { .. } => "error_rate",
            Self::Slow { .. } => "slow",
            Self::Reset { .. } => "reset",
            Self::StatsHang => "stats_hang",
            Self::StatsLie { .. } => "stats_lie",
            Self::Kill { .. } => "kill",
            Self::Freeze => "freeze",
            Self::Antagonist { .. } => "antagonist",
            Self::PollLoss { .. } => "poll_loss",
            Self::PollDelay { .. } => "poll_delay",
            Self::ConnectDelay { .. } => "connect_delay",
        }
    }

    /// Its chance to hit a request or poll; 1 where it has none.
    pub fn chance(&self) -> f64 {
        match self {
            Self::Hang { p }
            | Self::FastFail { p, .. }
            | Self::ErrorRate { p, .. }
            | Self::Reset { p, .. }
            | Self::PollLoss { p } => *p,
            _ => 1.0,
        }
    }
}

impl FaultEvent {
    /// When it is over; `None` = never.
    pub fn end(&self) -> Option<Duration> {
        let lasts = match self.fault {
            Fault::Kill { restart_after } => restart_after.or(self.lasts),
            _ => self.lasts,
        };
        lasts.map(|l| self.at.saturating_add(l))
    }
}

/// Whether a keyed chance hits: a hash of (seed, event number, sequence number, attempt), taken as a
/// fraction of 2^64, is below `p`. The hash chains the finalizer of SplitMix64 (Steele et al. 2014)
/// over the four numbers.
pub fn hits(seed: u64, event: u64, sequence: u64, attempt: u64, p: f64) -> bool {
    let hash = [event, sequence, attempt]
        .into_iter()
        .fold(mix(seed), |h, x| mix(h ^ x));
    // 53 bits are enough for any p a file can spell, and p = 1 always hits.
    ((hash >> 11) as f64) * (1.0 / (1_u64 << 53) as f64) < p
}

fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
