//! Limits and timeouts of the proxy path, with the reason beside each default.

use schema::protection::Preset;
use std::time::Duration;

/// Protections of the preset `guarded` that this version does not have.
pub(crate) const NOT_YET: &str =
    "retries on other backends, active health checks, per-backend caps with a queue";

/// Effective limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Connecting to a backend: one network, so a second is long.
    pub(crate) connect: Duration,
    /// From the pick to the head of the answer; `None` = only the total counts.
    pub(crate) per_try: Option<Duration>,
    /// The whole request up to the head of the answer.
    pub(crate) total: Duration,
    /// Gap between body bytes, both directions.
    pub(crate) body_idle: Duration,
    /// Client connections at most; then the longest idle one is closed for a new one.
    pub(crate) max_connections: usize,
    /// Request body.
    pub(crate) body_max_bytes: u64,
    /// Requests in flight over all backends; above: 503 `shed`. 0 = no limit.
    pub(crate) shed_max_in_flight: usize,
    /// First to last byte of a request's head.
    pub(crate) head: Duration,
    /// A client connection may be silent this long between requests.
    pub(crate) client_idle: Duration,
    /// SIGTERM waits this long for running requests.
    pub(crate) grace: Duration,
    /// One more attempt when a kept connection was closed by the backend before it answered.
    pub(crate) retry_stale: bool,
}

impl Settings {
    /// The defaults of a protection preset.
    pub(crate) fn of(protection: Preset) -> Self {
        let guarded = protection == Preset::Guarded;
        let limits = protection.limits();
        Self {
            connect: Duration::from_secs(1),
            per_try: limits.per_try,
            total: limits.total,
            body_idle: Duration::from_secs(10),
            max_connections: MAX_CONNECTIONS,
            body_max_bytes: 10 << 20,
            shed_max_in_flight: limits.max_in_flight.unwrap_or(0),
            head: gate::HEAD_LIMIT,
            client_idle: gate::CLIENT_IDLE,
            grace: Duration::from_secs(30),
            retry_stale: guarded,
        }
    }

    /// The clocks of a client connection, at every listener.
    pub(crate) fn clocks(&self) -> gate::Clocks {
        gate::Clocks {
            head: self.head,
            keep_alive: self.client_idle,
            write_idle: self.body_idle,
        }
    }
}

/// Client connections of the proxy at most, unless told otherwise.
pub(crate) const MAX_CONNECTIONS: usize = 4096;
/// Connections of the admin listener at most.
pub(crate) const MAX_ADMIN_CONNECTIONS: usize = 64;
/// An idle upstream connection is closed after this; the workers' own limit is larger.
pub(crate) const UPSTREAM_IDLE: Duration = Duration::from_secs(15);
/// Idle upstream connections kept per backend and thread.
pub(crate) const UPSTREAM_IDLE_MAX: usize = 64;
/// A client has this long before the rate of its body counts.
pub(crate) const BODY_RATE_GRACE: Duration = Duration::from_secs(5);
/// Slowest request body, bytes per second of waiting for the client.
pub(crate) const MIN_BODY_BYTES_PER_S: u64 = 1024;
