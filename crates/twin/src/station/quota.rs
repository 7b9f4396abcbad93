//! A kernel's CPU quota: full speed on the host's cores until the period's budget is used up, then
//! nothing until the next period.
//!
//! The budget is c * period core-seconds and does not carry over. It falls by busy cores * dt. At
//! most two events per period beside the departures, and none while the budget suffices. As the
//! period goes to zero this becomes processor sharing on c cores. Source: Linux CFS bandwidth
//! control.

use super::keys::Keys;
use super::meter::Meter;
use super::{Departure, Job, Model, Shape, Station, Ticket, Used};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Departs,
    Exhausted,
    Refilled,
}

/// A worker held back by a quota.
#[derive(Debug, Clone)]
pub struct Quota {
    host_cores: f64,
    speed: f64,
    period: f64,
    phase: f64,
    full: f64,
    budget: f64,
    throttled: bool,
    /// Number of the next period.
    period_next: u64,
    /// The same as of the planned exhaustion.
    exhausts_before: u64,
    keys: Keys<Job>,
    meter: Meter,
    at: f64,
    next: f64,
    event: Event,
    orders: u64,
}

impl Quota {
    fn refill_at(&self) -> f64 {
        self.phase + self.period_next as f64 * self.period
    }

    fn busy(&self) -> f64 {
        if self.throttled {
            0.0
        } else {
            (self.keys.len() as f64).min(self.host_cores)
        }
    }

    fn rate(&self) -> f64 {
        let n = self.keys.len() as f64;
        if self.throttled {
            0.0
        } else if n <= self.host_cores {
            self.speed
        } else {
            self.speed * self.host_cores / n
        }
    }

    /// Brings integrals and budget to `now`; V is left to the caller.
    fn pass(&mut self, now: f64) -> f64 {
        let (n, busy) = (self.keys.len() as f64, self.busy());
        let dt = now - self.at;
        self.meter.pass(dt, n, busy);
        self.at = now;
        if now < self.refill_at() {
            self.budget = (self.budget - busy * dt).max(0.0);
            return dt;
        }
        // Budgets in between sufficed, or there would have been an event.
        let crossed = ((now - self.phase) / self.period).floor().max(0.0) as u64 + 1;
        self.period_next = crossed.max(self.period_next + 1);
        self.throttled = false;
        let since = (now - (self.refill_at() - self.period)).max(0.0);
        self.budget = (self.full - busy * since).max(0.0);
        dt
    }

    fn advance(&mut self, now: f64) {
        let rate = self.rate();
        let dt = self.pass(now);
        if self.keys.len() > 0 {
            self.keys.attain(dt * rate);
        }
    }

    fn plan(&mut self) {
        (self.next, self.event) = self.first_event();
        self.exhausts_before = self.period_next + u64::from(self.next > self.refill_at());
    }

    fn first_event(&self) -> (f64, Event) {
        let Some(left) = self.keys.to_first() else {
            return (f64::INFINITY, Event::Departs);
        };
        if self.throttled {
            return (self.refill_at(), Event::Refilled);
        }
        let (rate, busy, refill_at) = (self.rate(), self.busy(), self.refill_at());
        let departs = if rate > 0.0 {
            self.at + left / rate
        } else {
            f64::INFINITY
        };
        let exhausted = if self.budget < busy * (refill_at - self.at) {
            self.at + self.budget / busy
        } else if self.full < busy * self.period {
            refill_at + self.full / busy
        } else {
            f64::INFINITY
        };
        if exhausted < departs {
            (exhausted, Event::Exhausted)
        } else {
            (departs, Event::Departs)
        }
    }
}

impl Station for Quota {
    fn new(shape: &Shape) -> Self {
        let Model::Quota {
            period,
            host_cores,
            phase,
        } = shape.model
        else {
            unreachable!("a quota has a period");
        };
        let full = shape.cores * period;
        Self {
            host_cores,
            speed: shape.speed,
            period,
            phase,
            full,
            budget: full,
            throttled: false,
            period_next: u64::from(phase <= 0.0),
            exhausts_before: 0,
            keys: Keys::new(shape.mean_work),
            meter: Meter::default(),
            at: 0.0,
            next: f64::INFINITY,
            event: Event::Departs,
            orders: 0,
        }
    }

    fn next(&self) -> f64 {
        self.next
    }

    fn step(&mut self, now: f64) -> Option<Departure> {
        let departure = match self.event {
            Event::Departs => {
                self.pass(now);
                self.keys.pop()
            }
            Event::Exhausted => {
                self.advance(now);
                // A budget that just lasts to the refill is not exhausted: rounding, not waiting.
                self.throttled = self.period_next == self.exhausts_before;
                None
            }
            Event::Refilled => {
                self.pass(now);
                None
            }
        };
        self.plan();
        departure.map(|job| Departure { job, started: None })
    }

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

    fn present(&self) -> u32 {
        self.keys.len() as u32
    }

    fn settle(&mut self) {
        self.meter.settle();
    }

    fn used(&self, now: f64) -> Used {
        let n = self.keys.len() as f64;
        self.meter.after(now - self.at, n, self.busy(), self.speed)
    }

    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64)) {
        self.keys.left((now - self.at) * self.rate(), visit);
    }

    fn lost(&self) -> f64 {
        self.keys.lost()
    }
}
