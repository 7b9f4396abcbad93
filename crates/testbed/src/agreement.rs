//! How well the twin agrees with a recorded run that it was given again. Pure: rows in, numbers and
//! verdicts out.
//!
//! The latencies compared count from the moment a request was *sent*, since the twin is given the
//! sends as they were: the generator's lateness, the same on both sides, would only hide a
//! difference. Quantiles interpolate between ranks, as everywhere in this crate.

pub(crate) mod distance;
pub(crate) mod gates;
pub(crate) mod requests;
pub(crate) mod residuals;
pub(crate) mod speed;
pub(crate) mod timing;

use std::collections::BTreeMap;

use schema::row::Row;

use crate::figures::run::Outcome;

/// How one request was answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// Last byte minus send, ms.
    pub(crate) latency_ms: f64,
    /// Name of the worker that answered.
    pub(crate) worker: String,
    /// Waiting and running at the worker, ms, as it told.
    pub(crate) at_worker_ms: Option<f64>,
}

/// The same request in the real run and in the twin's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) real: Answer,
    pub(crate) twin: Answer,
}

/// The pairs of an arm after the warm-up: requests that were answered well on both sides.
/// `seqs[i]` is the recorded place of the twin's request i.
pub(crate) fn pairs(real: &[&Row], twin: &[Row], seqs: &[u64]) -> Vec<Pair> {
    let recorded: BTreeMap<u64, &Row> = real.iter().map(|row| (row.seq, *row)).collect();
    let pair = |row: &Row| {
        let real = recorded.get(seqs.get(usize::try_from(row.seq).ok()?)?)?;
        if real.warmup {
            return None;
        }
        Some(Pair {
            real: answer(real)?,
            twin: answer(row)?,
        })
    };
    twin.iter().filter_map(pair).collect()
}

fn answer(row: &Row) -> Option<Answer> {
    if Outcome::of(row) != Outcome::Ok {
        return None;
    }
    let latency_ns = row.done_ns?.checked_sub(row.sent_ns?)?;
    let at_worker_us = row
        .service_time_us
        .map(|us| us + row.queue_wait_us.unwrap_or(0));
    Some(Answer {
        latency_ms: latency_ns as f64 / 1e6,
        worker: row.container.clone()?,
        at_worker_ms: at_worker_us.map(|us| us as f64 / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::pairs;
    use schema::row::Row;

    fn row(seq: u64, sent_ms: u64, done_ms: u64) -> Row {
        Row {
            seq,
            intended_ns: 0,
            sent_ns: Some(sent_ms * 1_000_000),
            done_ns: Some(done_ms * 1_000_000),
            container: Some("a".into()),
            queue_wait_us: Some(500),
            service_time_us: Some(1500),
            ..Row::default()
        }
    }

    #[test]
    fn requests_are_paired_by_their_recorded_place_and_only_if_answered_after_the_warm_up() {
        let mut warm = row(0, 0, 50);
        warm.warmup = true;
        let mut failed = row(1, 10, 20);
        failed.error = "timeout".into();
        let real = [warm, failed, row(2, 20, 90), row(3, 30, 70)];
        // The balancer saw request 3 before request 2.
        let twin = [
            row(0, 0, 48),
            row(1, 10, 55),
            row(2, 20, 65),
            row(3, 30, 91),
        ];
        let real: Vec<&Row> = real.iter().collect();
        let pairs = pairs(&real, &twin, &[0, 1, 3, 2]);
        let latencies: Vec<(f64, f64)> = pairs
            .iter()
            .map(|p| (p.real.latency_ms, p.twin.latency_ms))
            .collect();
        assert_eq!(latencies, [(40.0, 45.0), (70.0, 61.0)]);
        assert_eq!(pairs[0].real.at_worker_ms, Some(2.0));
    }
}
