//! Names of the HTTP headers the programs exchange, in the lower case that HTTP libraries expect.

/// Request: work to burn, in millions of instructions (1 to 100,000, decimals allowed).
pub const TASK_SIZE_MI: &str = "x-task-size-mi";
/// Request and response: identity of one request across all logs.
pub const REQUEST_ID: &str = "x-request-id";
/// Request, balancer to worker: the request id, a dash and the attempt number (0 = first).
pub const ATTEMPT: &str = "x-plumbline-attempt";
/// Response: name of the worker that answered (of the last attempt, if any).
pub const CONTAINER: &str = "x-container";
/// Response: `queue_wait_us=N,service_time_us=N`, measured by the worker.
pub const WORKER_TIMING: &str = "x-worker-timing";
/// Response: `id=core_ms,...` of the jobs a worker still holds (only with `--tell-work-left`).
pub const WORKER_WORK_LEFT: &str = "x-worker-work-left";
/// Response: open request-cost aggregation load report in its text form, see [`crate::load_report`].
pub const LOAD_REPORT: &str = "endpoint-load-metrics";
/// Response: what the balancer knew and did at the pick, see [`crate::decision`].
pub const DECISION: &str = "x-plumbline-decision";
/// Response: why the balancer answered as it did (`backend` when the status is the worker's own).
pub const REASON: &str = "x-plumbline-reason";
/// Response: attempts made for this request.
pub const ATTEMPTS: &str = "x-plumbline-attempts";
/// Prefix of every header that only the balancer may set.
pub const RESERVED_PREFIX: &str = "x-plumbline-";

/// Longest time that a timing header can tell, microseconds: a day. No request lives longer.
pub const MAX_TIMING_US: u64 = 86_400_000_000;

/// Longest name of a worker or backend, bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Whether `text` can be the name of a worker or backend: what stands unescaped in a header, a row, a
/// metric's label, a log line and a path.
pub fn is_name(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(fine)
}

/// `queue_wait_us` and `service_time_us` of a worker's timing header, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTiming {
    /// Time between arrival at the worker and the first instruction, microseconds.
    pub queue_wait_us: u64,
    /// Time between the first instruction and the end of the work, microseconds.
    pub service_time_us: u64,
}

impl WorkerTiming {
    /// Reads `queue_wait_us=N,service_time_us=N`; `None` unless both are present, whole numbers and at
    /// most [`MAX_TIMING_US`]: what cannot be true is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let time = |v: &str| v.parse().ok().filter(|us| *us <= MAX_TIMING_US);
        let mut queue_wait_us = None;
        let mut service_time_us = None;
        for part in text.split(',') {
            match part.trim().split_once('=')? {
                ("queue_wait_us", v) => queue_wait_us = Some(time(v)?),
                ("service_time_us", v) => service_time_us = Some(time(v)?),
                _ => {}
            }
        }
        Some(Self {
            queue_wait_us: queue_wait_us?,
            service_time_us: service_time_us?,
        })
    }
}

impl std::fmt::Display for WorkerTiming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "queue_wait_us={},service_time_us={}",
            self.queue_wait_us, self.service_time_us
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TIMING_US, WorkerTiming};
    use crate::decision::Decision;
    use crate::load_report::{self, LoadReport};
    use proptest::prelude::*;

    #[test]
    fn worker_timing_reads_what_it_prints() {
        let timing = WorkerTiming {
            queue_wait_us: 12,
            service_time_us: 55_300,
        };
        assert_eq!(timing.to_string(), "queue_wait_us=12,service_time_us=55300");
        assert_eq!(WorkerTiming::parse(&timing.to_string()), Some(timing));
        assert_eq!(WorkerTiming::parse("queue_wait_us=12"), None);
        assert_eq!(
            WorkerTiming::parse("queue_wait_us=-1,service_time_us=2"),
            None
        );
        assert_eq!(WorkerTiming::parse(""), None);
        for absurd in [u64::MAX, MAX_TIMING_US + 1] {
            let text = format!("queue_wait_us=1,service_time_us={absurd}");
            assert_eq!(WorkerTiming::parse(&text), None);
        }
    }

    proptest! {
        /// Whatever a worker sends, a reader says a bounded value or that it knows none.
        #[test]
        fn any_text_is_read_within_bounds_or_not_at_all(
            noise in ".{0,80}",
            numbers in prop::collection::vec("[-+0-9.eEinfNa]{0,24}", 4),
        ) {
            let [a, b, c, d] = &numbers[..] else { unreachable!() };
            let timing = format!("queue_wait_us={a},service_time_us={b}");
            for text in [&noise, &timing] {
                if let Some(t) = WorkerTiming::parse(text) {
                    prop_assert!(t.queue_wait_us.max(t.service_time_us) <= MAX_TIMING_US);
                }
            }
            let load = format!("TEXT eps={a},named_metrics.active={b},named_metrics.mean50={c},named_metrics.sequence={d}");
            for text in [&noise, &load] {
                let Ok(report) = LoadReport::parse(text) else { continue };
                for value in [report.eps, report.mean_latency_50_ms].into_iter().flatten() {
                    prop_assert!((0.0..=load_report::MAX_VALUE).contains(&value));
                }
            }
            let decision = format!(
                "pick_ns={a},cores={b},predicted_ms={c},memory_mib={d},container={noise},strategy={noise}"
            );
            for text in [&noise, &decision] {
                let (known, _) = Decision::read(text);
                for value in [known.cores, known.memory_mib].into_iter().flatten() {
                    prop_assert!((0.0..=load_report::MAX_VALUE).contains(&value));
                }
                if let Some(value) = known.predicted_ms {
                    prop_assert!(value.abs() <= load_report::MAX_VALUE);
                }
                for word in [known.container, known.strategy].into_iter().flatten() {
                    prop_assert!(word.len() <= 256 && word.is_ascii());
                    prop_assert!(!word.starts_with(['=', '+', '@', '"', '\t']), "{word}");
                    prop_assert!(!word.contains(char::is_control), "{word}");
                }
            }
        }
    }
}
