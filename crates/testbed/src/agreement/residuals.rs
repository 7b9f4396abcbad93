//! Where a difference between real and twin comes from: the worker or the way to it.

use serde::Serialize;

use super::Pair;
use crate::figures::intervals::{mean, quantile};

/// Real minus twin, request by request, in ms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Residuals {
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// The part of the mean that arose at the worker (waiting and running as it told); absent if
    /// workers did not tell.
    pub(crate) at_worker_mean_ms: Option<f64>,
    /// The rest of the mean: client, balancer and network, less the overhead given to the twin.
    pub(crate) on_the_way_mean_ms: Option<f64>,
    /// Share of the requests that both sides sent to the same worker.
    pub(crate) same_worker: f64,
}

/// The residuals of pairs; none without pairs.
pub(crate) fn residuals(pairs: &[Pair]) -> Option<Residuals> {
    if pairs.is_empty() {
        return None;
    }
    let whole: Vec<f64> = pairs
        .iter()
        .map(|p| p.real.latency_ms - p.twin.latency_ms)
        .collect();
    let told: Option<Vec<f64>> = pairs
        .iter()
        .map(|p| Some(p.real.at_worker_ms? - p.twin.at_worker_ms?))
        .collect();
    let at_worker_mean_ms = told.map(|told| mean(&told));
    let same = pairs
        .iter()
        .filter(|p| p.real.worker == p.twin.worker)
        .count();
    let mut sorted = whole.clone();
    sorted.sort_by(f64::total_cmp);
    Some(Residuals {
        mean_ms: mean(&whole),
        p50_ms: quantile(&sorted, 0.5),
        p99_ms: quantile(&sorted, 0.99),
        at_worker_mean_ms,
        on_the_way_mean_ms: at_worker_mean_ms.map(|ms| mean(&whole) - ms),
        same_worker: same as f64 / pairs.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::residuals;
    use crate::agreement::{Answer, Pair};

    #[test]
    fn a_residual_is_split_into_worker_and_way() {
        let answer = |latency_ms, at_worker_ms, worker: &str| Answer {
            latency_ms,
            worker: worker.into(),
            at_worker_ms,
        };
        let pair = |real, at_worker, worker| Pair {
            real: answer(real, Some(at_worker), worker),
            twin: answer(50.0, Some(49.0), "a"),
        };
        let split = residuals(&[pair(53.0, 50.0, "a"), pair(57.0, 52.0, "b")]).expect("pairs");
        assert_eq!(split.mean_ms, 5.0);
        assert_eq!(split.p50_ms, 5.0);
        assert_eq!(split.at_worker_mean_ms, Some(2.0));
        assert_eq!(split.on_the_way_mean_ms, Some(3.0));
        assert_eq!(split.same_worker, 0.5);
        assert_eq!(residuals(&[]), None);
    }
}
