//! Relative values of states: what a state costs in the long run, compared with an empty pool.

use super::MAX_WORKERS;

/// The relative value of every state of a box.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    sizes: [usize; MAX_WORKERS],
    workers: usize,
    values: Vec<f64>,
}

impl Values {
    pub(super) fn new(sizes: [usize; MAX_WORKERS], workers: usize, mut values: Vec<f64>) -> Self {
        let empty = values[0];
        values.iter_mut().for_each(|v| *v -= empty);
        Self {
            sizes,
            workers,
            values,
        }
    }

    /// The value of the state with these counts, in requests times S; none outside the box or for a
    /// wrong number of counts. 0 for an empty pool.
    pub fn at(&self, counts: &[u32]) -> Option<f64> {
        if counts.len() != self.workers {
            return None;
        }
        let mut stride = 1;
        let mut at = 0;
        for (&count, size) in counts.iter().zip(self.sizes) {
            let count = count as usize;
            if count >= size {
                return None;
            }
            at += count * stride;
            stride *= size;
        }
        Some(self.values[at])
    }

    /// The value after one more request at `worker`; none outside the box. The optimal strategy sends
    /// where it is least.
    pub fn after(&self, counts: &[u32], worker: usize) -> Option<f64> {
        let mut next = [0; MAX_WORKERS];
        let next = next.get_mut(..counts.len())?;
        next.copy_from_slice(counts);
        *next.get_mut(worker)? += 1;
        self.at(next)
    }
}
