//! How fast a worker's core really is, and what a request costs beside its work.
//!
//! A request that never has to share a core stays its overhead and its size over the core's speed:
//! slope and intercept of latency on size. Both are found by medians (the slope as the median over
//! pairs half the sample apart, a thinned Theil-Sen estimate), since a busy host delays single
//! requests by many times the overhead. Busy cores give the speed a second time: in a closed loop
//! by conservation of work, as work done over the integral of min(cores, requests held); in recorded
//! rows, which hold idle times too, from the requests that shared a core.

use serde::{Deserialize, Serialize};

/// Version tag of a calibration file.
pub(crate) const SCHEMA: &str = "plumbline.twin-calibration/1";
/// The speed of a core alone and that of busy cores must agree within this.
pub(crate) const SPEED_BOUND: f64 = 0.05;
/// Fewer points give no line.
const LEAST_POINTS: usize = 20;

/// One request at a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stay {
    pub(crate) task_size_mi: f64,
    pub(crate) begin_ms: f64,
    pub(crate) end_ms: f64,
}

/// Latency of a request that has a core to itself: `overhead_ms + size / mips`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub(crate) mips: f64,
    pub(crate) overhead_ms: f64,
}

/// What the twin's workers are set to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// `closed_loop` or `rows`.
    pub(crate) from: String,
    /// Back end it was measured on.
    pub(crate) backend: String,
    /// Share of the instructions that was really executed.
    pub(crate) burn_fraction: f64,
    /// Speed the workers were asked to hold.
    pub(crate) nominal_mips: f64,
    /// Speed of a core with one request; the twin's.
    pub(crate) lone_mips: f64,
    /// Fixed part of a latency; the twin's network delay there and back.
    pub(crate) overhead_ms: f64,
    /// Requests that the line was drawn through.
    pub(crate) points: usize,
    pub(crate) workers: Vec<BusySpeed>,
}

/// A worker with its cores busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BusySpeed {
    pub(crate) name: String,
    pub(crate) cores: f64,
    /// Speed of one of its cores.
    pub(crate) busy_mips: f64,
}

impl Calibration {
    /// The workers whose two speeds differ by more than [`SPEED_BOUND`], with the difference.
    pub(crate) fn disagreeing(&self) -> Vec<(&str, f64)> {
        let off = |w: &BusySpeed| w.busy_mips / self.lone_mips - 1.0;
        let workers = self.workers.iter().map(|w| (w.name.as_str(), off(w)));
        workers.filter(|(_, off)| off.abs() > SPEED_BOUND).collect()
    }
}

/// The line through lone requests; `None` for too few points or sizes that are all alike.
pub(crate) fn fit(stays: &[Stay]) -> Option<Fit> {
    if stays.len() < LEAST_POINTS {
        return None;
    }
    let mut points = stays.to_vec();
    points.sort_by(|a, b| a.task_size_mi.total_cmp(&b.task_size_mi));
    let half = points.len() / 2;
    let slopes = points
        .iter()
        .zip(&points[half..])
        .filter_map(|(low, high)| {
            let run = high.task_size_mi - low.task_size_mi;
            (run > 0.0).then(|| (high.latency_ms() - low.latency_ms()) / run)
        });
    let slope = median(slopes.collect())?;
    let rest = points
        .iter()
        .map(|p| p.latency_ms() - slope * p.task_size_mi);
    let overhead_ms = median(rest.collect())?.max(0.0);
    (slope > 0.0).then_some(Fit {
        mips: 1e3 / slope,
        overhead_ms,
    })
}

/// The stays of one worker during which it never held more requests than it has cores.
pub(crate) fn alone(stays: &[Stay], cores: f64) -> Vec<Stay> {
    let most = cores.floor().max(1.0) as usize;
    let mut crowded: Vec<(f64, f64)> = Vec::new();
    walk(stays, 0.0, |from, to, held| {
        if held > most {
            crowded.push((from, to));
        }
    });
    let never_crowded = |stay: &&Stay| {
        let first = crowded.partition_point(|(_, to)| *to <= stay.begin_ms);
        crowded
            .get(first)
            .is_none_or(|(from, _)| *from >= stay.end_ms)
    };
    stays.iter().filter(never_crowded).copied().collect()
}

/// Speed of a core of one worker from all it did; `overhead_ms` of each stay was not spent there.
/// Cost: a sort. `None` without core time.
pub(crate) fn busy_mips(stays: &[Stay], cores: f64, overhead_ms: f64) -> Option<f64> {
    let mut core_ms = 0.0;
    walk(stays, overhead_ms, |from, to, held| {
        core_ms += (to - from) * cores.min(held as f64);
    });
    let work_mi: f64 = stays.iter().map(|s| s.task_size_mi).sum();
    (core_ms > 0.0).then(|| 1e3 * work_mi / core_ms)
}

/// Speed of a core as each request found it that had to share one at some time: its size over the
/// core time that an equal share of min(cores, requests held) gave it.
pub(crate) fn shared_mips(stays: &[Stay], cores: f64, overhead_ms: f64) -> Vec<f64> {
    // Core time of one request since the beginning, at every change of the number held.
    let mut attained: Vec<(f64, f64)> = Vec::new();
    let mut sum_ms = 0.0;
    walk(stays, overhead_ms, |from, to, held| {
        if attained.last().is_none_or(|(at, _)| *at < from) {
            attained.push((from, sum_ms));
        }
        sum_ms += (to - from) * (cores / held as f64).min(1.0);
        attained.push((to, sum_ms));
    });
    let until = |at: f64| {
        attained[attained
            .partition_point(|(t, _)| *t < at)
            .min(attained.len() - 1)]
        .1
    };
    let lone = alone(stays, cores);
    let mut lone = lone.iter().peekable();
    let shared = |stay: &&Stay| lone.next_if(|next| *next == *stay).is_none();
    let speed = |stay: &Stay| {
        let (begin, end) = stay.without(overhead_ms);
        let core_ms = until(end) - until(begin);
        (core_ms > 0.0).then(|| 1e3 * stay.task_size_mi / core_ms)
    };
    stays.iter().filter(shared).filter_map(speed).collect()
}

/// Visits the times between changes of the number held, in order.
fn walk(stays: &[Stay], overhead_ms: f64, mut visit: impl FnMut(f64, f64, usize)) {
    let mut changes: Vec<(f64, bool)> = stays
        .iter()
        .flat_map(|s| {
            let (begin, end) = s.without(overhead_ms);
            [(begin, true), (end, false)]
        })
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut held, mut since) = (0_usize, f64::NEG_INFINITY);
    for (at, begins) in changes {
        if held > 0 && at > since {
            visit(since, at, held);
        }
        since = at;
        // Of a stay without length the end may be sorted first; no time passes between the two.
        held = if begins {
            held + 1
        } else {
            held.saturating_sub(1)
        };
    }
}

impl Stay {
    fn latency_ms(&self) -> f64 {
        self.end_ms - self.begin_ms
    }

    /// Begin and end at the worker, half of the overhead being the way there and half the way back.
    fn without(&self, overhead_ms: f64) -> (f64, f64) {
        let begin = (self.begin_ms + overhead_ms / 2.0).min(self.end_ms);
        (begin, (self.end_ms - overhead_ms / 2.0).max(begin))
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::{BusySpeed, Calibration, Stay, alone, busy_mips, fit, shared_mips};

    fn stay(task_size_mi: f64, begin_ms: f64, end_ms: f64) -> Stay {
        Stay {
            task_size_mi,
            begin_ms,
            end_ms,
        }
    }

    /// Every fifth request was held up by a busy host; the line does not move.
    #[test]
    fn speed_and_overhead_of_a_known_line() {
        let lone: Vec<Stay> = (0..100)
            .map(|i| {
                let size = 250.0 + 5.0 * f64::from(i * 37 % 100);
                let held_up = if i % 5 == 0 { 40.0 } else { 0.0 };
                stay(size, 0.0, size / 8.0 + 0.75 + held_up)
            })
            .collect();
        let fit = fit(&lone).expect("a line");
        assert!((fit.mips - 8000.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.overhead_ms - 0.75).abs() < 1e-9, "{fit:?}");
    }

    #[test]
    fn sizes_that_are_all_alike_give_no_line() {
        assert_eq!(fit(&vec![stay(400.0, 0.0, 50.0); 100]), None);
        assert_eq!(fit(&[stay(400.0, 0.0, 50.0), stay(500.0, 0.0, 60.0)]), None);
    }

    #[test]
    fn a_stay_is_alone_while_no_more_are_held_than_there_are_cores() {
        let stays = [
            stay(1.0, 0.0, 10.0),
            stay(2.0, 5.0, 15.0),
            stay(3.0, 12.0, 20.0),
            stay(4.0, 14.0, 16.0),
            stay(5.0, 20.0, 30.0),
        ];
        let sizes = |cores| -> Vec<f64> {
            alone(&stays, cores)
                .iter()
                .map(|s| s.task_size_mi)
                .collect()
        };
        assert_eq!(sizes(1.0), [5.0]);
        // Three are held from 14 to 15.
        assert_eq!(sizes(2.0), [1.0, 5.0]);
        assert_eq!(sizes(2.5), [1.0, 5.0]);
        assert_eq!(sizes(3.0), [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    /// Two cores at 10 MIPS: 4 requests of 1 MI at once take 200 ms together, one alone 100 ms.
    #[test]
    fn busy_cores_do_work_at_their_speed() {
        let together = [stay(1.0, 0.0, 200.0); 4];
        assert!((busy_mips(&together, 2.0, 0.0).expect("work") - 10.0).abs() < 1e-12);
        let mut all = together.to_vec();
        all.push(stay(1.0, 500.0, 600.0));
        assert!((busy_mips(&all, 2.0, 0.0).expect("work") - 10.0).abs() < 1e-12);
        // With 2 ms of each on the way the same speed comes out of longer stays.
        let longer: Vec<Stay> = all
            .iter()
            .map(|s| stay(s.task_size_mi, s.begin_ms - 1.0, s.end_ms + 1.0))
            .collect();
        assert!((busy_mips(&longer, 2.0, 2.0).expect("work") - 10.0).abs() < 1e-12);
        assert_eq!(busy_mips(&[], 2.0, 0.0), None);
    }

    /// One core at 10 MIPS, two requests of 1 MI sent 50 ms apart: the first runs 50 ms alone, then
    /// both share until it ends at 150 ms; the second ends at 200 ms. A third has the core to itself.
    #[test]
    fn a_shared_core_is_as_fast_as_it_is() {
        let stays = [
            stay(1.0, 0.0, 150.0),
            stay(1.0, 50.0, 200.0),
            stay(1.0, 300.0, 400.0),
        ];
        let speeds = shared_mips(&stays, 1.0, 0.0);
        assert_eq!(speeds.len(), 2);
        assert!(speeds.iter().all(|s| (s - 10.0).abs() < 1e-9), "{speeds:?}");
        assert!(shared_mips(&stays, 2.0, 0.0).is_empty());
        let longer = stays.map(|s| stay(1.0, s.begin_ms - 3.0, s.end_ms + 3.0));
        let speeds = shared_mips(&longer, 1.0, 6.0);
        assert!(speeds.iter().all(|s| (s - 10.0).abs() < 1e-9), "{speeds:?}");
        assert!(shared_mips(&[], 1.0, 0.0).is_empty());
    }

    #[test]
    fn two_speeds_more_than_five_percent_apart_are_told() {
        let worker = |name: &str, busy_mips| BusySpeed {
            name: name.into(),
            cores: 2.0,
            busy_mips,
        };
        let calibration = Calibration {
            schema: super::SCHEMA.into(),
            from: "rows".into(),
            backend: "process".into(),
            burn_fraction: 0.1,
            nominal_mips: 1000.0,
            lone_mips: 1000.0,
            overhead_ms: 0.5,
            points: 100,
            workers: vec![worker("a", 951.0), worker("b", 1049.0), worker("c", 940.0)],
        };
        let told = calibration.disagreeing();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "c");
        assert!((told[0].1 + 0.06).abs() < 1e-12);
    }
}
