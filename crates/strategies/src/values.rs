//! What goes into a decision and what comes back from it.

use crate::time::Time;
use schema::event::Status;
use std::net::IpAddr;

/// A backend's number: given once and never reused in a run, growing with the position order. It
/// is not a position; state of a strategy may live in a vector indexed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub u32);

impl BackendId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for BackendId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One attempt to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Request<'a> {
    /// The client's or the balancer's request id; may be empty where nobody looks at it.
    pub id: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path, with the query if there is one.
    pub url: &'a str,
    /// Dense number of (method, path); see [`crate::classes::Classes`].
    pub class: u32,
    /// Client address, if known.
    pub client: Option<IpAddr>,
    /// Value of the header that [`crate::Spec::key_header`] names, if the strategy reads one.
    pub key_header: Option<&'a str>,
    /// Body length, bytes; 0 if unknown.
    pub body_len: u64,
    /// 0 = first attempt.
    pub attempt: u32,
    /// Backends this request was already sent to.
    pub tried: &'a [BackendId],
    /// True work, millions of instructions. The dispatcher blanks it unless the strategy's registry
    /// entry says `needs_cost`.
    pub cost_mi: Option<f64>,
}

/// How a dispatch ended, as the driver tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The outcome.
    pub status: Status,
    /// Last byte minus dispatch, ns; absent: the time of the call minus the time of the dispatch.
    pub latency_ns: Option<u64>,
    /// First byte minus dispatch, ns; absent if there was none.
    pub ttfb_ns: Option<u64>,
    /// HTTP status, if there was one.
    pub http_status: Option<u16>,
    /// Retry-After of the answer, ns.
    pub retry_after_ns: Option<u64>,
    /// CPU part as the worker told it, ns.
    pub service_time_ns: Option<u64>,
}

impl Answer {
    /// An answer of `status` about which nothing else is known.
    pub const fn new(status: Status) -> Self {
        Self {
            status,
            latency_ns: None,
            ttfb_ns: None,
            http_status: None,
            retry_after_ns: None,
            service_time_ns: None,
        }
    }

    /// What a dropped ticket delivers: given up, with the time that passed.
    pub const fn cancelled() -> Self {
        Self::new(Status::Cancelled)
    }
}

/// The single final outcome of a dispatch, as a strategy sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Number of the dispatch, as in [`crate::Dispatch::id`].
    pub dispatch: u64,
    /// The request's class.
    pub class: u32,
    /// When it was dispatched.
    pub dispatched_at: Time,
    /// The backend's in_flight just after, this request counted.
    pub in_flight_at_dispatch: u32,
    /// Last byte minus dispatch, ns.
    pub latency_ns: u64,
    /// First byte minus dispatch, ns; the latency where no first byte was seen.
    pub ttfb_ns: u64,
    /// How it ended.
    pub status: Status,
    /// HTTP status, if there was one.
    pub http_status: Option<u16>,
    /// Retry-After of the answer, ns.
    pub retry_after_ns: Option<u64>,
    /// CPU part as the worker told it, ns.
    pub service_time_ns: Option<u64>,
}
