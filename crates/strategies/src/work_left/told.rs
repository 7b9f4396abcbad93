//! What a worker tells about the work left of the jobs it holds, whoever sent them.

use schema::stats::WorkLeft;
use std::collections::VecDeque;

/// Own finished jobs that are remembered, so that a report which is older than their end does not
/// bring them back as somebody else's.
const FINISHED: usize = 256;
/// Jobs of one report that are looked at; a worker holds fewer.
pub(crate) const MAX_TOLD: usize = 4096;

/// A request id as a number.
pub(crate) fn hash(request_id: &str) -> u64 {
    twox_hash::XxHash64::oneshot(0, request_id.as_bytes())
}

/// The newest statement of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// In order of arrival.
    jobs: Vec<(u64, f64)>,
    /// The clock of a running job when it was true, core-ms.
    at_ms: f64,
    finished: VecDeque<u64>,
}

impl Told {
    /// Takes a statement that was true when the clock of a running job stood at `at_ms`.
    pub(crate) fn take(&mut self, work_left: &[WorkLeft], at_ms: f64) {
        self.jobs.clear();
        self.at_ms = at_ms;
        for job in work_left.iter().take(MAX_TOLD) {
            let request = hash(&job.request_id);
            if job.core_ms.is_finite() && job.core_ms >= 0.0 && !self.finished.contains(&request) {
                self.jobs.push((request, job.core_ms));
            }
        }
    }

    /// An own job ended.
    pub(crate) fn finish(&mut self, request: u64) {
        if self.finished.len() == FINISHED {
            self.finished.pop_front();
        }
        self.finished.push_back(request);
        self.jobs.retain(|(r, _)| *r != request);
    }

    /// Core-ms left of a job by this statement, when it was made.
    pub(crate) fn left_ms(&self, request: u64) -> Option<f64> {
        let job = self.jobs.iter().find(|(r, _)| *r == request)?;
        Some(job.1)
    }

    /// Every job of the statement that should still be there, in its order, with what is left of
    /// it; the first `running` ran since then.
    pub(crate) fn unfinished(
        &self,
        running: usize,
        now_ms: f64,
    ) -> impl Iterator<Item = (u64, f64)> + Clone {
        let passed = now_ms - self.at_ms;
        let jobs = self.jobs.iter().enumerate();
        jobs.map(move |(i, (request, left_ms))| match i < running {
            true => (*request, left_ms - passed),
            false => (*request, *left_ms),
        })
        .filter(|(_, left_ms)| *left_ms > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Told, hash};
    use schema::stats::WorkLeft;

    fn told(jobs: &[(&str, f64)]) -> Vec<WorkLeft> {
        jobs.iter()
            .map(|(id, core_ms)| WorkLeft {
                request_id: (*id).into(),
                core_ms: *core_ms,
            })
            .collect()
    }

    #[test]
    fn time_passes_for_told_jobs_and_finished_ones_stay_away() {
        let mut t = Told::default();
        t.take(&told(&[("a", 30.0), ("b", 10.0)]), 100.0);
        let left = |t: &Told, running, now_ms| -> Vec<f64> {
            t.unfinished(running, now_ms).map(|(_, ms)| ms).collect()
        };
        assert_eq!(left(&t, 9, 105.0), [25.0, 5.0]);
        assert_eq!(left(&t, 9, 115.0), [15.0]);
        assert_eq!(left(&t, 1, 105.0), [25.0, 10.0]);
        assert_eq!(t.left_ms(hash("a")), Some(30.0));
        t.finish(hash("a"));
        assert_eq!(t.left_ms(hash("a")), None);
        t.take(&told(&[("a", 29.0), ("c", f64::NAN)]), 101.0);
        assert!(left(&t, 9, 101.0).is_empty());
    }
}
