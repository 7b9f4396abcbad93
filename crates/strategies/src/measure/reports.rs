//! Measuring by what workers say.

use crate::backends::Backend;
use crate::registry::{Context, Kind, Parameter, Spec};
use crate::time::Time;
use schema::report::Report;

/// The parameter `max-age`.
pub(crate) const MAX_AGE: Parameter = Parameter {
    name: "max-age",
    kind: Kind::Duration {
        min_ns: 1_000_000,
        max_ns: 600_000_000_000,
    },
    or: &[],
    default: "3 poll intervals",
    summary: "a report older than this counts as absent",
};

/// What the parameter `max-age` says, ns.
pub(crate) fn max_age_ns(spec: &Spec, context: &Context) -> u64 {
    let three = context.poll_interval_ns.saturating_mul(3);
    spec.duration_ns("max-age").unwrap_or(three)
}

/// The newest report of the statistics page with an active count, unless it is too old.
pub(crate) fn fresh(backend: &Backend, now: Time, max_age_ns: u64) -> Option<(&Report, u32)> {
    let report = backend.newest_stats()?;
    let age_ns = now.since_ns(Time::from_nanos(report.sampled_at_ns));
    let active = report.active?;
    (age_ns <= max_age_ns).then_some((report, active))
}

/// When [`fresh`] gives another answer by the passing of time: the first moment at which the newest
/// report is too old.
pub(crate) fn fresh_until(backend: &Backend, now: Time, max_age_ns: u64) -> Time {
    let end = |report: &Report| Time::from_nanos(report.sampled_at_ns).plus_ns(max_age_ns + 1);
    let end = backend.newest_stats().map_or(Time::MAX, end);
    if end > now { end } else { Time::MAX }
}

/// Requests at a backend, whoever sent them, as of now: own in_flight, and the others' as of the
/// report. Never below own in_flight; without a usable report just that.
pub(crate) fn live_estimate(backend: &Backend, now: Time, max_age_ns: u64) -> u64 {
    let others = fresh(backend, now, max_age_ns).map_or(0, |(report, active)| {
        active.saturating_sub(report.in_flight_before)
    });
    u64::from(backend.in_flight) + u64::from(others)
}
