//! The balancer's event log: JSON lines, times in nanoseconds since run start.
//!
//! The first line is `start`; every later line is one call of the dispatcher, in the order in which
//! its lock was taken. Feeding the file to a fresh dispatcher gives every pick again.

use crate::protection::{Mark, Rules, Step};
use crate::report::Report;
use serde::{Deserialize, Serialize};

/// Version tag of the first line.
pub const SCHEMA: &str = "plumbline.events/1";

/// One backend as the dispatcher knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Member {
    /// Dispatcher's id; given once, never reused in a run.
    pub id: u32,
    /// Configured name.
    pub name: String,
    /// Base URL; empty in the twin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Relative capacity, 1..=65535.
    pub weight: u32,
    /// CPU limit.
    pub cores: f64,
    /// Memory limit, MiB.
    pub memory_mib: f64,
    /// Barred from picks by an operator when the log begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// What the dispatcher knew of one candidate at a pick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Candidate {
    /// Backend id.
    pub id: u32,
    /// Own in_flight, this request not counted.
    pub in_flight: u32,
    /// Active requests of the newest report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// Mean latency of the last 50 of the newest report, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_latency_50_ms: Option<f64>,
    /// Age of the newest report, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ns: Option<u64>,
    /// Own sends since the newest report was true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_since: Option<u64>,
    /// Predicted latency, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// How one dispatch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Answered, and not by HTTP 5xx or 429.
    Ok,
    /// HTTP 5xx or 429, or a broken answer.
    Error,
    /// No answer in time.
    Timeout,
    /// Connection refused or unreachable.
    Refused,
    /// Given up by the client or the balancer; says nothing about the backend.
    Cancelled,
}

impl Status {
    /// Counts against the backend.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Timeout | Self::Refused)
    }
}

/// A change of the pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum PoolChange {
    /// A member joins, last in position order.
    Add(Member),
    /// A member leaves; its late responses are still accounted.
    Remove {
        /// Backend id.
        id: u32,
    },
    /// A member's weight is set.
    Weight {
        /// Backend id.
        id: u32,
        /// New weight.
        weight: u32,
    },
    /// A member gets nothing new on an operator's wish.
    Drain {
        /// Backend id.
        id: u32,
    },
    /// A drained member is back.
    Undrain {
        /// Backend id.
        id: u32,
    },
    /// A member is barred from outside, whatever the rules of ejection say.
    Eject {
        /// Backend id.
        id: u32,
        /// Until when, ns since run start.
        until_ns: u64,
    },
    /// An ejected member is back.
    Readmit {
        /// Backend id.
        id: u32,
    },
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The state at the beginning; always the first line.
    Start {
        /// [`SCHEMA`].
        schema: String,
        /// Canonical spelling.
        strategy: String,
        /// Root seed of the dispatcher's streams.
        seed: u64,
        /// Wall time of time 0, ns since 1970; 0 in the twin.
        started_unix_ns: u64,
        /// Poll interval, ns.
        poll_interval_ns: u64,
        /// Millions of instructions that a worker's core retires per millisecond; oracles turn true
        /// sizes into times with it. Absent in older logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mi_per_ms: Option<f64>,
        /// `plain` or `guarded`.
        protection: String,
        /// Slow-start window, ns; absent when off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slow_start_ns: Option<u64>,
        /// Rules of ejection and the like; absent when there are none.
        #[serde(default, skip_serializing_if = "Rules::is_plain")]
        rules: Rules,
        /// Members in position order.
        members: Vec<Member>,
    },
    /// A pick and, when it chose, the dispatch that followed at once.
    Pick {
        /// Time, ns.
        t_ns: u64,
        /// Running number of the dispatch; absent when nothing was eligible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dispatch: Option<u64>,
        /// The client's or the balancer's request id.
        request_id: String,
        /// HTTP method.
        method: String,
        /// Path, and query when the strategy reads keys.
        url: String,
        /// Dense number of (method, path).
        class: u32,
        /// Client address as the strategy sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// Value of the key header, when the strategy reads one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_header: Option<String>,
        /// Body length where known, bytes.
        #[serde(default)]
        body_len: u64,
        /// 0 = first.
        attempt: u32,
        /// Ids already tried by this request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tried: Vec<u32>,
        /// True work, only for strategies that are marked `needs_cost`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_mi: Option<f64>,
        /// The chosen backend's id; absent when nothing was eligible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<u32>,
        /// Set when the rules of ejection, not the strategy, let it go there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<Mark>,
        /// What was known of each member, position order.
        candidates: Vec<Candidate>,
        /// How long the pick took, ns.
        pick_ns: u64,
    },
    /// The single outcome of a dispatch.
    Response {
        /// Time, ns.
        t_ns: u64,
        /// Which dispatch.
        dispatch: u64,
        /// Its backend's id.
        backend: u32,
        /// How it ended.
        status: Status,
        /// HTTP status, when there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
        /// Last byte minus dispatch, ns.
        latency_ns: u64,
        /// First byte minus dispatch, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttfb_ns: Option<u64>,
        /// Retry-After of the answer, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ns: Option<u64>,
        /// CPU part as the worker told it, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service_time_ns: Option<u64>,
        /// Waiting part as the worker told it, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue_wait_ns: Option<u64>,
    },
    /// A report was taken in.
    Stats {
        /// Time, ns.
        t_ns: u64,
        /// Backend id.
        backend: u32,
        /// The report with the dispatcher's snapshots.
        report: Report,
    },
    /// The pool changed.
    Backends {
        /// Time, ns.
        t_ns: u64,
        /// How.
        #[serde(flatten)]
        change: PoolChange,
    },
    /// The rules of ejection did something of their own. A replay comes to it by itself.
    Ejection {
        /// Time, ns.
        t_ns: u64,
        /// Backend id.
        backend: u32,
        /// What.
        #[serde(flatten)]
        step: Step,
    },
    /// The strategy was changed live; learned state starts anew.
    Strategy {
        /// Time, ns.
        t_ns: u64,
        /// Canonical spelling.
        strategy: String,
    },
    /// A request that ended without any dispatch.
    Unserved {
        /// Time, ns.
        t_ns: u64,
        /// The request's id.
        request_id: String,
        /// The balancer's reason.
        reason: String,
        /// HTTP status answered, when one was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
    },
    /// Lines were lost here because the log could not keep up: the file cannot be replayed past it.
    Gap {
        /// Time, ns.
        t_ns: u64,
        /// How many lines.
        lost: u64,
    },
}

impl Event {
    /// When it was, ns since run start; 0 for the start.
    pub fn t_ns(&self) -> u64 {
        match self {
            Self::Start { .. } => 0,
            Self::Pick { t_ns, .. }
            | Self::Response { t_ns, .. }
            | Self::Stats { t_ns, .. }
            | Self::Backends { t_ns, .. }
            | Self::Ejection { t_ns, .. }
            | Self::Strategy { t_ns, .. }
            | Self::Unserved { t_ns, .. }
            | Self::Gap { t_ns, .. } => *t_ns,
        }
    }
}

crate::objects!(Member, Candidate);

#[cfg(test)]
mod tests {
    use super::{Event, PoolChange, Status};

    #[test]
    fn lines_read_what_they_write() {
        let line = r#"{"event":"response","t_ns":5,"dispatch":1,"backend":0,"status":"ok","latency_ns":4}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let change = Event::Backends {
            t_ns: 1,
            change: PoolChange::Weight { id: 2, weight: 5 },
        };
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(
            text,
            r#"{"event":"backends","t_ns":1,"change":"weight","id":2,"weight":5}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), change);
    }

    #[test]
    fn cancelled_is_no_failure() {
        assert!(!Status::Ok.is_failure() && !Status::Cancelled.is_failure());
        assert!(Status::Error.is_failure() && Status::Timeout.is_failure());
        assert!(Status::Refused.is_failure());
    }
}
