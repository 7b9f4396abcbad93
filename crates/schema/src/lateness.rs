//! Was the generator of a run late? One rule for every program.
//!
//! Lateness is `sent - intended` of the requests after the warm-up, those whose latency counts. A run is
//! late when its 99th percentile is above [`bound_ns`], or when some request, warm-up included, could not
//! be sent at all: one that is missing changes what all others met. What was held back on purpose because
//! the run was stopped does not count. The analysis package applies the same rule.

/// Lateness that is always allowed at the 99th percentile, ns.
pub const FLOOR_NS: f64 = 1e6;
/// Lateness that is allowed at the 99th percentile as a share of the mean gap between due times.
pub const GAP_SHARE: f64 = 0.1;

/// Rows held back on purpose: the run was stopped, or its rows could not be written.
const HELD_BACK: [&str; 2] = ["never_sent:interrupted", "never_sent:aborted"];

/// The bound on the 99th percentile: 1 ms or a tenth of the mean gap, whichever is larger.
pub fn bound_ns(mean_gap_ns: f64) -> f64 {
    FLOOR_NS.max(GAP_SHARE * mean_gap_ns)
}

/// True for the column `error` of a row that should have been sent and was not.
pub fn is_missing(error: &str) -> bool {
    error.starts_with("never_sent:") && !HELD_BACK.contains(&error)
}

/// The verdict on a run: its 99th percentile (none when nothing was sent), the bound, and how many rows
/// are missing.
pub fn is_late(p99_ns: Option<f64>, bound_ns: f64, missing: u64) -> bool {
    p99_ns.is_some_and(|p99| p99 > bound_ns) || missing > 0
}

#[cfg(test)]
mod tests {
    use super::{bound_ns, is_late, is_missing};

    #[test]
    fn the_bound_is_a_millisecond_or_a_tenth_of_the_gap() {
        assert_eq!([1e6, 10e6, 30e6].map(bound_ns), [1e6, 1e6, 3e6]);
    }

    #[test]
    fn a_run_is_late_above_the_bound_or_with_a_request_missing() {
        assert!(!is_late(Some(1e6), 1e6, 0) && is_late(Some(1e6 + 1.0), 1e6, 0));
        assert!(is_late(Some(0.0), 1e6, 1) && is_late(None, 1e6, 1));
        assert!(!is_late(None, 1e6, 0));
    }

    #[test]
    fn what_was_held_back_on_purpose_is_not_missing() {
        for error in ["never_sent:max_in_flight", "never_sent:no_socket"] {
            assert!(is_missing(error), "{error}");
        }
        for error in [
            "",
            "timeout",
            "error:never",
            "never_sent:interrupted",
            "never_sent:aborted",
        ] {
            assert!(!is_missing(error), "{error}");
        }
    }
}
