//! Processor sharing on c cores: each of n requests runs at speed * min(1, c/n); c may be fractional.
//!
//! dV/dt = speed * min(1, c/n); the next departure is due at now + max(0, first key - V)/rate. V
//! becomes the key of the departing request, never V + dt * rate, so no error gathers in it.

use super::keys::Keys;
use super::meter::Meter;
use super::{Departure, Job, Shape, Station, Ticket, Used};

/// A worker that shares its cores among all requests alike.
#[derive(Debug, Clone)]
pub struct Ps {
    pub(super) cores: f64,
    pub(super) speed: f64,
    pub(super) keys: Keys<Job>,
    pub(super) meter: Meter,
    pub(super) at: f64,
    next: f64,
    orders: u64,
    /// Requests held and dV/dt, both since `at`.
    held: f64,
    rate: f64,
}

impl Ps {
    /// Cores busy since `at`.
    #[inline(always)]
    fn busy(&self) -> f64 {
        if self.held < self.cores {
            self.held
        } else {
            self.cores
        }
    }

    /// Brings the integrals to `now`, and V too unless it is about to be set.
    #[inline(always)]
    fn pass(&mut self, now: f64) -> f64 {
        let dt = now - self.at;
        self.meter.pass(dt, self.held, self.busy());
        self.at = now;
        dt
    }

    #[inline(always)]
    fn advance(&mut self, now: f64) {
        let dt = self.pass(now);
        if self.held > 0.0 {
            self.keys.attain(dt * self.rate);
        }
    }

    /// Works out rate and next departure after a change.
    #[inline(always)]
    fn plan(&mut self) {
        self.held = f64::from(self.keys.len() as u32);
        self.rate = if self.held <= self.cores {
            self.speed
        } else {
            self.speed * self.cores / self.held
        };
        self.next = match self.keys.to_first() {
            Some(left) if self.rate > 0.0 => self.at + left / self.rate,
            // Done already, even if nothing moves any more.
            Some(left) if left <= 0.0 => self.at,
            _ => f64::INFINITY,
        };
    }

    /// Lets the first job out if it is done by `now`, without setting V to its key.
    pub(super) fn step_reached(&mut self, now: f64) -> Option<Job> {
        self.advance(now);
        let job = self.keys.pop_reached();
        self.plan();
        job
    }

    #[cfg(test)]
    pub(super) fn rebase_above(&mut self, limit: f64) {
        self.keys.rebase_above(limit);
    }
}

impl Station for Ps {
    fn new(shape: &Shape) -> Self {
        Self {
            cores: shape.cores,
            speed: shape.speed,
            keys: Keys::new(shape.mean_work),
            meter: Meter::default(),
            at: 0.0,
            next: f64::INFINITY,
            orders: 0,
            held: 0.0,
            rate: shape.speed,
        }
    }

    #[inline]
    fn next(&self) -> f64 {
        self.next
    }

    #[inline(always)]
    fn step(&mut self, now: f64) -> Option<Departure> {
        self.pass(now);
        let job = self.keys.pop()?;
        self.plan();
        Some(Departure { job, started: None })
    }

    #[inline(always)]
    fn arrive(&mut self, now: f64, job: Job, work: f64, _class: u32) -> Ticket {
        self.advance(now);
        let order = self.orders;
        self.orders += 1;
        self.keys.push(order, job, work);
        self.plan();
        Ticket(order)
    }

    fn cancel(&mut self, now: f64, ticket: Ticket) {
        self.advance(now);
        self.keys.cancel(ticket.0);
        self.plan();
    }

    fn set_speed(&mut self, now: f64, speed: f64) {
        self.advance(now);
        self.meter.change_speed(self.speed);
        self.speed = speed;
        self.plan();
    }

    fn fail_all(&mut self, now: f64, failed: &mut Vec<Job>) {
        self.advance(now);
        self.keys.fail_all(|job| failed.push(job));
        self.plan();
    }

    #[inline]
    fn first(&self) -> Option<Job> {
        self.keys.first()
    }

    #[inline]
    fn present(&self) -> u32 {
        self.keys.len() as u32
    }

    fn settle(&mut self) {
        self.meter.settle();
    }

    fn used(&self, now: f64) -> Used {
        let dt = now - self.at;
        self.meter.after(dt, self.held, self.busy(), self.speed)
    }

    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64)) {
        let dv = (now - self.at) * self.rate;
        self.keys.left(dv, visit);
    }

    fn lost(&self) -> f64 {
        self.keys.lost()
    }
}
