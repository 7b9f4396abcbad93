//! Which own jobs ended, so that a worker's older words do not bring them back.

use schema::work_left::WorkLeft;
use std::collections::VecDeque;

/// Own finished jobs that are remembered.
const FINISHED: usize = 256;
/// Jobs of one report that are looked at; a worker holds fewer.
pub(crate) const MAX_TOLD: usize = 4096;

/// A request id as a number.
pub(crate) fn hash(request_id: &str) -> u64 {
    twox_hash::XxHash64::oneshot(0, request_id.as_bytes())
}

/// The newest own jobs that ended at one backend.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finished(VecDeque<u64>);

impl Finished {
    /// An own job ended.
    pub(crate) fn note(&mut self, request: u64) {
        if self.0.len() == FINISHED {
            self.0.pop_front();
        }
        self.0.push_back(request);
    }

    /// What a worker tells of the jobs it holds, without those that ended since and what cannot be.
    pub(crate) fn without(&self, held: &[WorkLeft]) -> impl Iterator<Item = (u64, f64)> {
        held.iter().take(MAX_TOLD).filter_map(|job| {
            let request = hash(&job.request_id);
            let is_left = job.core_ms.is_finite() && job.core_ms >= 0.0;
            (is_left && !self.0.contains(&request)).then_some((request, job.core_ms))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Finished, hash};
    use schema::work_left::WorkLeft;

    #[test]
    fn finished_ones_stay_away() {
        let held = [("a", 30.0), ("b", 10.0), ("c", f64::NAN), ("d", -1.0)].map(|(id, core_ms)| {
            WorkLeft {
                request_id: id.into(),
                core_ms,
            }
        });
        let mut finished = Finished::default();
        let left = |f: &Finished| f.without(&held).collect::<Vec<_>>();
        assert_eq!(left(&finished), [(hash("a"), 30.0), (hash("b"), 10.0)]);
        finished.note(hash("a"));
        assert_eq!(left(&finished), [(hash("b"), 10.0)]);
    }
}
