//! Did the system keep up? A run that did not has no mean and no percentile.

use super::backlog::Growth;

/// Judged on the window after the first tenth of the time, from two signs: (a) the work routed to some
/// worker is at least what it can do in the window; (b) the number in the system grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// No sign of trouble.
    Stable,
    /// Too few requests to tell.
    TooShort,
    /// One of the two signs: to be run four times longer, at most twice, then it counts as unstable.
    Inconclusive {
        /// Growth of the number in the system, requests per second (or whatever the unit of time is); none if the window was too
        /// short to tell.
        drift_rps: Option<f64>,
        /// The worker with the most work for its capacity.
        worker: usize,
    },
    /// Both signs.
    Unstable {
        /// Growth of the number in the system, requests per second (or whatever the unit of time is).
        drift_rps: f64,
        /// The worker with the most work for its capacity.
        worker: usize,
    },
}

impl Verdict {
    /// The verdict if no longer run is made: one sign is enough.
    #[must_use]
    pub fn at_last(self) -> Self {
        match self {
            Self::Inconclusive { drift_rps, worker } => Self::Unstable {
                drift_rps: drift_rps.unwrap_or(0.0),
                worker,
            },
            settled => settled,
        }
    }

    /// Whether one of two signs says unstable.
    pub fn is_in_doubt(self) -> bool {
        matches!(self, Self::Inconclusive { .. })
    }

    /// From what was routed to each worker in the window, what it could have done in it, and how the
    /// number in the system went. A window too short to show growth shows none.
    pub fn of(routed: &[f64], capacity: &[f64], growth: Option<Growth>) -> Self {
        let loads = routed.iter().zip(capacity).map(|(work, could)| {
            let is_idle = *work == 0.0;
            if is_idle { 0.0 } else { work / could.max(0.0) }
        });
        let most = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
        let (worker, load) = loads.enumerate().fold((0, 0.0), most);
        let is_overloaded = load >= 1.0;
        match growth {
            Some(Growth {
                drift_rps,
                grows: true,
            }) if is_overloaded => Self::Unstable { drift_rps, worker },
            growth if is_overloaded || growth.is_some_and(|g| g.grows) => Self::Inconclusive {
                drift_rps: growth.map(|g| g.drift_rps),
                worker,
            },
            _ => Self::Stable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::backlog::Growth;
    use super::Verdict;

    #[test]
    fn two_signs_make_a_verdict() {
        let growing = |grows| {
            Some(Growth {
                drift_rps: 0.5,
                grows,
            })
        };
        let (calm, busy) = ([1.0, 1.9], [1.0, 2.1]);
        let capacity = [2.0, 2.0];
        assert_eq!(
            Verdict::of(&calm, &capacity, growing(false)),
            Verdict::Stable
        );
        assert_eq!(Verdict::of(&calm, &capacity, None), Verdict::Stable);
        let worker = 1;
        let drift_rps = Some(0.5);
        for (routed, growth) in [(calm, growing(true)), (busy, growing(false))] {
            let verdict = Verdict::of(&routed, &capacity, growth);
            assert_eq!(verdict, Verdict::Inconclusive { drift_rps, worker });
        }
        assert_eq!(
            Verdict::of(&busy, &capacity, None),
            Verdict::Inconclusive {
                drift_rps: None,
                worker
            }
        );
        assert_eq!(
            Verdict::of(&busy, &capacity, growing(true)),
            Verdict::Unstable {
                drift_rps: 0.5,
                worker
            }
        );
    }

    #[test]
    fn the_worker_named_is_the_fullest_for_its_capacity_and_a_dead_one_with_work_is_full() {
        let growing = Some(Growth {
            drift_rps: 1.0,
            grows: true,
        });
        let verdict = Verdict::of(&[3.0, 2.5, 2.2], &[4.0, 3.0, 2.0], growing);
        assert_eq!(
            verdict,
            Verdict::Unstable {
                drift_rps: 1.0,
                worker: 2
            }
        );
        let verdict = Verdict::of(&[0.0, 0.1], &[0.0, 0.0], growing);
        assert_eq!(
            verdict,
            Verdict::Unstable {
                drift_rps: 1.0,
                worker: 1
            }
        );
    }
}
