//! First come, first served: a queue before max(1, round(c)) servers, each of speed c/servers.
//!
//! All servers run at one speed, so one clock serves them all: at most `servers` keys are on it.

use super::keys::Keys;
use super::meter::Meter;
use super::{Departure, Job, Shape, Station, Ticket, Used};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    order: u64,
    job: Job,
    work: f64,
    gone: bool,
}

#[derive(Debug, Clone, Copy)]
struct InService {
    job: Job,
    /// When its service began, s.
    started: f64,
}

/// A worker with a queue before its cores.
#[derive(Debug, Clone)]
pub struct Fcfs {
    servers: usize,
    /// Cores behind one server.
    cores_each: f64,
    speed: f64,
    keys: Keys<InService>,
    /// In order of arrival; canceled ones stay until they come to the front or outnumber the rest.
    queue: VecDeque<Waiting>,
    gone: usize,
    lost: f64,
    meter: Meter,
    at: f64,
    next: f64,
    orders: u64,
    /// Requests held and cores busy, both since `at`.
    held: f64,
    busy: f64,
}

impl Fcfs {
    fn waiting(&self) -> usize {
        self.queue.len() - self.gone
    }

    #[inline(always)]
    fn pass(&mut self, now: f64) -> f64 {
        let dt = now - self.at;
        self.meter.pass(dt, self.held, self.busy);
        self.at = now;
        dt
    }

    /// What V grows by in a second.
    #[inline(always)]
    fn rate(&self) -> f64 {
        self.speed * self.cores_each
    }

    #[inline(always)]
    fn advance(&mut self, now: f64) {
        let dt = self.pass(now);
        if self.busy > 0.0 {
            self.keys.attain(dt * self.rate());
        }
    }

    #[inline(always)]
    fn start(&mut self, order: u64, job: Job, work: f64) {
        let started = self.at;
        self.keys.push(order, InService { job, started }, work);
    }

    /// Starts whoever may start, then as [`Self::plan_next`].
    #[inline(always)]
    fn plan(&mut self) {
        while self.keys.len() < self.servers {
            let Some(first) = self.queue.pop_front() else {
                break;
            };
            if first.gone {
                self.gone -= 1;
            } else {
                self.start(first.order, first.job, first.work);
            }
        }
        self.plan_next();
    }

    /// Works out who is served and the next departure, after a change.
    #[inline(always)]
    fn plan_next(&mut self) {
        let in_service = self.keys.len();
        self.held = f64::from((in_service + self.waiting()) as u32);
        self.busy = f64::from(in_service as u32) * self.cores_each;
        let rate = self.rate();
        self.next = match self.keys.to_first() {
            Some(left) if rate > 0.0 => self.at + left / rate,
            _ => f64::INFINITY,
        };
    }
}

impl Station for Fcfs {
    fn new(shape: &Shape) -> Self {
        let servers = shape.cores.round().max(1.0);
        Self {
            servers: servers as usize,
            cores_each: shape.cores / servers,
            speed: shape.speed,
            keys: Keys::new(shape.mean_work),
            queue: VecDeque::new(),
            gone: 0,
            lost: 0.0,
            meter: Meter::default(),
            at: 0.0,
            next: f64::INFINITY,
            orders: 0,
            held: 0.0,
            busy: 0.0,
        }
    }

    #[inline]
    fn next(&self) -> f64 {
        self.next
    }

    #[inline(always)]
    fn step(&mut self, now: f64) -> Option<Departure> {
        self.pass(now);
        let InService { job, started } = self.keys.pop()?;
        self.plan();
        let started = Some(started);
        Some(Departure { job, started })
    }

    #[inline(always)]
    fn arrive(&mut self, now: f64, job: Job, work: f64, _class: u32) -> Ticket {
        self.advance(now);
        let order = self.orders;
        self.orders += 1;
        // Nobody waits while a server is free.
        if self.keys.len() < self.servers {
            self.start(order, job, work);
        } else {
            let gone = false;
            let waiting = Waiting {
                order,
                job,
                work,
                gone,
            };
            self.queue.push_back(waiting);
        }
        self.plan_next();
        Ticket(order)
    }

    fn cancel(&mut self, now: f64, ticket: Ticket) {
        self.advance(now);
        match self.queue.binary_search_by_key(&ticket.0, |w| w.order) {
            Ok(at) if !self.queue[at].gone => {
                self.queue[at].gone = true;
                self.gone += 1;
                self.lost += self.queue[at].work;
                if self.gone > 16 && 2 * self.gone > self.queue.len() {
                    self.queue.retain(|w| !w.gone);
                    self.gone = 0;
                }
            }
            Ok(_) => {}
            Err(_) => self.keys.cancel(ticket.0),
        }
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
        self.keys.fail_all(|served| failed.push(served.job));
        for waiting in self.queue.drain(..).filter(|w| !w.gone) {
            self.lost += waiting.work;
            failed.push(waiting.job);
        }
        self.gone = 0;
        self.plan();
    }

    #[inline]
    fn first(&self) -> Option<Job> {
        self.keys.first().map(|served| served.job)
    }

    fn present(&self) -> u32 {
        (self.keys.len() + self.waiting()) as u32
    }

    #[inline]
    fn wastes_a_core(&self) -> bool {
        self.waiting() > 0 && self.keys.len() < self.servers
    }

    fn settle(&mut self) {
        self.meter.settle();
    }

    fn used(&self, now: f64) -> Used {
        let dt = now - self.at;
        self.meter.after(dt, self.held, self.busy, self.speed)
    }

    fn left(&self, now: f64, visit: &mut dyn FnMut(Job, f64)) {
        let dv = (now - self.at) * self.rate();
        self.keys.left(dv, |served, left| visit(served.job, left));
        for waiting in self.queue.iter().filter(|w| !w.gone) {
            visit(waiting.job, waiting.work);
        }
    }

    fn lost(&self) -> f64 {
        self.keys.lost() + self.lost
    }
}
