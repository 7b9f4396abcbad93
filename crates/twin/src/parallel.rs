//! Independent tasks on several threads; results in the order of the tasks, whoever finished first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many threads, or all cores.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(cores, usize::from)
}

/// Runs one task for each weight, the heaviest first.
pub(crate) fn in_order<T: Send>(
    threads: usize,
    weights: &[u64],
    task: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(weights[at]));
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = weights.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = task(at);
            *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let done = results.into_iter();
    done.filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn every_task_runs_once_and_results_keep_the_order() {
        let weights: Vec<u64> = (0..100).map(|i| i * 7919 % 101).collect();
        for threads in [1, 3] {
            assert_eq!(
                in_order(threads, &weights, |at| at),
                (0..100).collect::<Vec<_>>()
            );
        }
        assert_eq!(in_order(2, &[], |at| at), Vec::<usize>::new());
    }
}
