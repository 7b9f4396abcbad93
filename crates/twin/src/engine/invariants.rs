//! Laws that hold for every run: what went in came out or is still there, in counts, time and work.

use super::Engine;
use super::slots::Stage;
use super::watch::Watch;
use crate::station::Station;
use crate::sum::Sum;

/// How far two sides of a law may differ, relative.
const TOLERANCE: f64 = 1e-9;

/// A broken law: a mistake in the program, not in the input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("invariant broken at {at_s} s, seed {seed}: {law}: {left} against {right}")]
pub struct Broken {
    /// Which law, and where.
    pub law: String,
    /// One side.
    pub left: f64,
    /// The other.
    pub right: f64,
    /// Root seed of the run.
    pub seed: u64,
    /// Simulated time, s.
    pub at_s: f64,
}

/// Sums over the requests that a worker holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    count: u64,
    work: Sum,
    left: Sum,
    time: Sum,
}

impl<S: Station, W: Watch> Engine<'_, S, W> {
    /// Checks every law as of now; O(workers + requests under way).
    pub(super) fn check(&self) -> Result<(), Broken> {
        let now = self.now;
        for (w, worker) in self.workers.iter().enumerate() {
            let mut held = Held::default();
            worker.station.left(now, &mut |slot, left| {
                let at = &self.slots[slot];
                held.count += u64::from(at.stage == Stage::Held);
                held.work.add(at.work);
                held.left.add(left);
                held.time.add(now - at.reached);
            });
            let (flow, used) = (&worker.flow, worker.station.used(now));
            let sum = |parts: &[f64]| {
                let mut sum = Sum::default();
                parts.iter().for_each(|p| sum.add(*p));
                sum.value()
            };
            let (routed, done, time) = flow.sums();
            let lost = flow.closed.lost_work.value();
            let present = u64::from(worker.station.present());
            let left_count = flow.arrived as f64;
            let right_count = (flow.completed + flow.closed.lost + held.count) as f64;
            self.equal(
                w,
                "flow: arrived = completed + lost + present",
                left_count,
                right_count,
                0.0,
            )?;
            self.equal(
                w,
                "present = counted",
                present as f64,
                held.count as f64,
                0.0,
            )?;
            self.equal(
                w,
                "Little's law: integral of the number held = time spent",
                used.held,
                sum(&[time, held.time.value()]),
                TOLERANCE,
            )?;
            self.equal(
                w,
                "work: routed = done + lost + present",
                routed,
                sum(&[done, lost, held.work.value()]),
                TOLERANCE,
            )?;
            if S::EXACT {
                let attained = [
                    done,
                    lost,
                    -worker.station.lost(),
                    held.work.value(),
                    -held.left.value(),
                ];
                self.equal(
                    w,
                    "utilization: integral of busy cores * speed = work attained",
                    used.work,
                    sum(&attained),
                    TOLERANCE,
                )?;
            }
            if worker.station.wastes_a_core() {
                self.equal(w, "no core is idle while a request waits", 1.0, 0.0, 0.0)?;
            }
        }
        let (area, time) = self.tally.little(now);
        let mut present = Sum::default();
        self.slots.each_open(|at| present.add(now - at.arrived));
        let law = "Little's law of the whole system";
        self.equal(usize::MAX, law, area, time + present.value(), TOLERANCE)
    }

    fn equal(
        &self,
        worker: usize,
        law: &str,
        left: f64,
        right: f64,
        tolerance: f64,
    ) -> Result<(), Broken> {
        let scale = left.abs().max(right.abs()).max(self.setup.mean_work);
        if (left - right).abs() <= tolerance * scale {
            return Ok(());
        }
        let at = self.setup.workers.get(worker);
        let place = at.map_or(String::new(), |w| format!(" (worker {})", w.name));
        Err(Broken {
            law: format!("{law}{place}"),
            left,
            right,
            seed: self.setup.seed,
            at_s: self.now,
        })
    }
}
