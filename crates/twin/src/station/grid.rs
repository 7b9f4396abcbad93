//! Processor sharing whose finished requests leave only at multiples of a step, and count until then.
//!
//! It shows the bias of simulators that keep a smallest gap between events. V advances by rate * dt
//! throughout: nobody leaves when V reaches its key.

use super::ps::Ps;
use super::{Departure, Job, Model, Shape, Station, Ticket, Used};

/// Processor sharing on a grid of times.
#[derive(Debug, Clone)]
pub struct Grid {
    inner: Ps,
    step: f64,
    next: f64,
}

impl Grid {
    /// The first multiple of the step not before `t`, within rounding.
    fn on_grid(&self, t: f64) -> f64 {
        let turns = t / self.step;
        let nearest = turns.round();
        if (turns - nearest).abs() < 1e-9 {
            nearest * self.step
        } else {
            turns.ceil() * self.step
        }
    }

    fn plan(&mut self) {
        // The inner plan is in the past once V has passed a key: that request leaves on the grid too.
        self.next = self
            .on_grid(self.inner.next().max(self.inner.at))
            .max(self.inner.at);
    }
}

impl Station for Grid {
    /// Requests go on sharing the cores while they wait for the grid.
    const EXACT: bool = false;

    fn new(shape: &Shape) -> Self {
        let Model::Grid { step } = shape.model else {
            unreachable!("a grid has a step");
        };
        Self {
            inner: Ps::new(shape),
            step,
            next: f64::INFINITY,
        }
    }

    fn next(&self) -> f64 {
        self.next
    }

    fn step(&mut self, now: f64) -> Option<Departure> {
        let left = self.inner.step_reached(now);
        self.plan();
        left.map(|job| Departure { job, started: None })
    }

    fn arrive(&mut self, now: f64, job: Job, work: f64, class: u32) -> Ticket {
        let ticket = self.inner.arrive(now, job, work, class);
        self.plan();
        ticket
    }

    fn cancel(&mut self, now: f64, ticket: Ticket) {
        self.inner.cancel(now, ticket);
        self.plan();
    }

    fn set_speed(&mut self, now: f64, speed: f64) {
        self.inner.set_speed(now, speed);
        self.plan();
    }

    fn fail_all(&mut self, now: f64, failed: &mut Vec<Job>) {
        self.inner.fail_all(now, failed);
        self.plan();
    }

    fn present(&self) -> u32 {
        self.inner.present()
    }

    fn settle(&mut self) {
        self.inner.settle();
    }

    fn used(&self, now: f64) -> Used {
        self.inner.used(now)
    }

    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64)) {
        self.inner.left(now, visit);
    }

    fn lost(&self) -> f64 {
        self.inner.lost()
    }
}
