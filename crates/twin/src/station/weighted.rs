//! Processor sharing by weight: one clock per class of requests, class rates by water-filling.
//!
//! Without a cap a request of weight w runs at speed * c * w / (sum of all weights held). With the
//! cap of one core, a class whose share per request exceeds one core gets one core each, and the
//! others share what is left. O(classes + log n) per event.

use super::keys::Keys;
use super::meter::Meter;
use super::{Cap, Departure, Job, Model, Shape, Station, Ticket, Used};

/// Classes at most; the low bits of a ticket name the class.
const MAX_CLASSES: usize = 1 << CLASS_BITS;
const CLASS_BITS: u32 = 8;

#[derive(Debug, Clone)]
struct Class {
    weight: f64,
    keys: Keys<Job>,
    /// Cores of one request of this class.
    cores_each: f64,
}

/// A worker that favors some classes of requests.
#[derive(Debug, Clone)]
pub struct Weighted {
    cores: f64,
    speed: f64,
    cap: Cap,
    classes: Vec<Class>,
    /// Places in `classes`, heaviest first.
    by_weight: Vec<usize>,
    meter: Meter,
    at: f64,
    next: f64,
    next_class: usize,
    orders: u64,
}

impl Weighted {
    fn counts(&self) -> (f64, f64) {
        let each = |c: &Class| (c.keys.len() as f64, c.keys.len() as f64 * c.cores_each);
        self.classes
            .iter()
            .map(each)
            .fold((0.0, 0.0), |(n, busy), (m, b)| (n + m, busy + b))
    }

    fn pass(&mut self, now: f64) -> f64 {
        let (held, busy) = self.counts();
        let dt = now - self.at;
        self.meter.pass(dt, held, busy);
        self.at = now;
        dt
    }

    fn advance_but(&mut self, now: f64, leaving: Option<usize>) {
        let dt = self.pass(now);
        for (i, class) in self.classes.iter_mut().enumerate() {
            if class.keys.len() > 0 && Some(i) != leaving {
                class.keys.attain(dt * self.speed * class.cores_each);
            }
        }
    }

    fn share(&mut self) {
        let mut cores = self.cores;
        let held = |c: &Class| c.keys.len() as f64;
        let mut weights: f64 = self.classes.iter().map(|c| held(c) * c.weight).sum();
        for at in &self.by_weight {
            let class = &mut self.classes[*at];
            let n = class.keys.len() as f64;
            if n == 0.0 {
                continue;
            }
            let fair = cores * class.weight / weights;
            if fair > 1.0 && self.cap == Cap::OneCore {
                class.cores_each = 1.0;
                cores -= n;
                weights -= n * class.weight;
            } else {
                class.cores_each = fair;
            }
        }
    }

    fn plan(&mut self) {
        self.share();
        self.next = f64::INFINITY;
        for (i, class) in self.classes.iter().enumerate() {
            let rate = self.speed * class.cores_each;
            let Some(left) = class.keys.to_first().filter(|_| rate > 0.0) else {
                continue;
            };
            let at = self.at + left / rate;
            if at < self.next {
                (self.next, self.next_class) = (at, i);
            }
        }
    }
}

impl Station for Weighted {
    const BY_CLASS: bool = true;

    fn new(shape: &Shape) -> Self {
        let Model::Weighted { weights, cap } = &shape.model else {
            unreachable!("weighted sharing has weights");
        };
        assert!(weights.len() <= MAX_CLASSES, "more classes than tickets");
        let class = |weight: &f64| Class {
            weight: *weight,
            keys: Keys::new(shape.mean_work),
            cores_each: 0.0,
        };
        let mut by_weight: Vec<usize> = (0..weights.len()).collect();
        by_weight.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
        Self {
            cores: shape.cores,
            speed: shape.speed,
            cap: *cap,
            classes: weights.iter().map(class).collect(),
            by_weight,
            meter: Meter::default(),
            at: 0.0,
            next: f64::INFINITY,
            next_class: 0,
            orders: 0,
        }
    }

    fn next(&self) -> f64 {
        self.next
    }

    fn step(&mut self, now: f64) -> Option<Departure> {
        self.advance_but(now, Some(self.next_class));
        let job = self.classes[self.next_class].keys.pop()?;
        self.plan();
        Some(Departure { job, started: None })
    }

    fn arrive(&mut self, now: f64, job: Job, work: f64, class: u32) -> Ticket {
        self.advance_but(now, None);
        let ticket = (self.orders << CLASS_BITS) | u64::from(class);
        self.orders += 1;
        self.classes[class as usize].keys.push(ticket, job, work);
        self.plan();
        Ticket(ticket)
    }

    fn cancel(&mut self, now: f64, ticket: Ticket) {
        self.advance_but(now, None);
        let class = (ticket.0 % MAX_CLASSES as u64) as usize;
        self.classes[class].keys.cancel(ticket.0);
        self.plan();
    }

    fn set_speed(&mut self, now: f64, speed: f64) {
        self.advance_but(now, None);
        self.meter.change_speed(self.speed);
        self.speed = speed;
        self.plan();
    }

    fn fail_all(&mut self, now: f64, failed: &mut Vec<Job>) {
        self.advance_but(now, None);
        for class in &mut self.classes {
            class.keys.fail_all(|job| failed.push(job));
        }
        self.plan();
    }

    fn present(&self) -> u32 {
        self.classes.iter().map(|c| c.keys.len() as u32).sum()
    }

    fn settle(&mut self) {
        self.meter.settle();
    }

    fn used(&self, now: f64) -> Used {
        let (held, busy) = self.counts();
        self.meter.after(now - self.at, held, busy, self.speed)
    }

    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64)) {
        let dt = now - self.at;
        for class in &self.classes {
            class
                .keys
                .left(dt * self.speed * class.cores_each, &mut *visit);
        }
    }

    fn lost(&self) -> f64 {
        self.classes.iter().map(|c| c.keys.lost()).sum()
    }
}
