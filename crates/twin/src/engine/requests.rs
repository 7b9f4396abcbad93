//! The way of a request: arrival, pick, worker, completion, response.

use super::agenda::{Event, Rank};
use super::ledger::Ledger;
use super::setup::{Delay, ListedSizes};
use super::slots::{Ending, Stage};
use super::watch::{Done, Fate, Picked, Watch};
use super::worker::Worker;
use super::{Engine, Trapped};
use crate::station::{Model, Station};
use schema::rng::{below, exponential};
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use strategies::work_left::Price;
use strategies::{Answer, BackendId, Request, Status};

/// Keys of requests that come from no workload repeat after this many.
const KEYS: u64 = 100_000;

/// A request on its way to a worker: what every step asks for, at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coming {
    slot: u32,
    balancer: u32,
    class: u32,
    seq: u64,
    work: f64,
}

impl<S: Station, W: Watch> Engine<'_, S, W> {
    /// The next open arrival.
    #[inline(always)]
    pub(super) fn arrive(&mut self) {
        self.arrivals.take();
        self.enter(0);
    }

    /// A caller of a closed loop calls, if requests are left.
    pub(super) fn call(&mut self, caller: u32) {
        if self.arrivals.may_call() {
            self.arrivals.called(caller, self.issued);
            self.arrivals.take();
            self.enter(caller);
        }
    }

    #[inline(always)]
    fn enter(&mut self, caller: u32) {
        let seq = self.issued;
        self.issued += 1;
        let item = self.setup.listed.as_ref().map(|l| (l.item(seq), l.sizes));
        let class = match item {
            Some((item, _)) => item.api,
            None => self.sizes.class(),
        };
        let mut work = match item {
            Some((item, ListedSizes::Own)) => item.task_size_mi / self.setup.mips_per_core,
            _ => self.setup.classes[class as usize].mean_work * self.sizes.factor(),
        };
        if let Some((_, factor)) = self.setup.size_drift.filter(|(from, _)| seq >= *from) {
            work *= if class % 2 == 0 { factor } else { 1.0 / factor };
        }
        let balancer = match self.setup.balancers {
            1 => 0,
            n => below(&mut self.network, u64::from(n)) as u32,
        };
        let slot = self.slots.take();
        let at = &mut self.slots[slot];
        at.arrived = self.now;
        at.work = work;
        at.seq = seq;
        at.class = class;
        at.balancer = balancer;
        at.caller = caller;
        at.stage = Stage::Waiting;
        at.ending = Ending::Ok;
        self.tally.arrived(seq, self.now, || {
            self.workers
                .iter()
                .map(|w| w.ward.capacity(self.now))
                .collect()
        });
        self.admit(Coming {
            slot,
            balancer,
            class,
            seq,
            work,
        });
    }

    /// What a slot knows of a request on its way to a worker.
    pub(super) fn coming(&self, slot: u32) -> Coming {
        let at = &self.slots[slot];
        Coming {
            slot,
            balancer: at.balancer,
            class: at.class,
            seq: at.seq,
            work: at.work,
        }
    }

    /// A balancer takes a request in; one that stands still does so later.
    #[inline(always)]
    pub(super) fn admit(&mut self, coming: Coming) {
        let Coming { slot, balancer, .. } = coming;
        let until = self.balancers[balancer as usize].frozen_until;
        if until > self.now {
            let event = Event::Thawed { slot };
            self.agenda.plan(until, Rank::Arrival, 0, event);
        } else if self.is_full(balancer) {
            self.finish(slot, Fate::Shed);
        } else if let Some(wait) = self.setup.ask_first {
            self.ask_all(slot, wait);
        } else {
            self.pick(coming);
        }
    }

    /// Whether a balancer refuses new requests.
    #[inline]
    fn is_full(&self, balancer: u32) -> bool {
        let open = || self.balancers[balancer as usize].dispatcher.open_len();
        self.max_in_flight.is_some_and(|most| open() >= most)
    }

    /// What a request of `work` core-seconds would take at each worker if no other came, ms. Counts what
    /// the workers hold, not what is on its way to them.
    fn own_ms(&self, work: f64) -> Vec<f64> {
        let in_order = self.setup.model == Model::Fcfs;
        let own_ms = |worker: &Worker<S>| {
            let mut left_ms = Vec::new();
            let keep = &mut |_, left: f64| left_ms.push(left * 1e3);
            worker.station.left(self.now, keep);
            let mut price = Price::new(worker.ward.cores, in_order);
            price.cost(work * 1e3, left_ms.into_iter()).own_ms / worker.ward.speed_now()
        };
        self.workers.iter().map(own_ms).collect()
    }

    /// Hands the watcher what the rules of ejection did by now.
    pub(super) fn tell_steps(&mut self, balancer: u32) {
        let now = self.time();
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        dispatcher.let_time_pass(now);
        dispatcher.take_notes(&mut self.notes);
        for note in self.notes.drain(..) {
            self.watch.stepped(balancer as usize, &note);
        }
    }

    #[inline(always)]
    pub(super) fn pick(&mut self, coming: Coming) {
        let Coming {
            slot,
            balancer,
            class,
            seq,
            work,
        } = coming;
        if self.needs.steps {
            self.tell_steps(balancer);
        }
        if self.needs.world {
            self.look_at_all(balancer, schema::report::Source::Probe);
        } else if self.setup.polls.interval == 0.0 && self.needs.reports {
            self.look_at_all(balancer, schema::report::Source::Poll);
        }
        let now = self.time();
        let class = &self.setup.classes[class as usize];
        let mut request = Request {
            method: &class.method,
            url: &class.url,
            class: class.number,
            cost_mi: self.needs.cost.then_some(work * self.setup.mips_per_core),
            ..Request::default()
        };
        if self.needs.key {
            let key = seq % KEYS;
            if !self.setup.own_targets {
                self.url.clear();
                // Writing to a string cannot fail.
                let _ = write!(self.url, "/items/{key}");
                request.url = &self.url;
            }
            request.client = Some(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | key as u32)));
        }
        // Workers that tell of their requests name them, so whoever is told must know the names.
        if W::WATCHES || self.needs.work_left {
            self.number.clear();
            let _ = write!(self.number, "{seq}");
            request.id = &self.number;
        }
        let own_ms = if W::WATCHES && self.watch.wants_own_ms() {
            self.own_ms(work)
        } else {
            Vec::new()
        };
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        let dispatch = dispatcher.pick(now, &request);
        if W::WATCHES {
            self.watch.picked(&Picked {
                balancer: balancer as usize,
                slot,
                request: &request,
                dispatch,
                dispatcher,
                own_ms: &own_ms,
            });
        }
        let Some(dispatch) = dispatch else {
            self.finish(slot, Fate::Unserved);
            return;
        };
        let worker = dispatch.backend.0;
        let at = &mut self.slots[slot];
        at.worker = worker;
        at.dispatch = dispatch.id;
        at.stage = Stage::Sent;
        self.tally.picked(seq, worker, work);
        if let Some(patience) = self.patience {
            let event = Event::Timeout { slot, seq };
            self.agenda
                .plan(self.now + patience, Rank::Timer, worker, event);
        }
        if self.needs.probes {
            self.send_probes(balancer);
        }
        let delay = self.delay() + self.balancers[balancer as usize].connect_delay;
        if delay == 0.0 && self.is_next(Rank::Reach) {
            self.reach(slot);
        } else {
            let event = Event::Reach { slot };
            self.agenda
                .plan(self.now + delay, Rank::Reach, worker, event);
        }
    }

    /// One way through the network, s.
    #[inline(always)]
    pub(super) fn delay(&mut self) -> f64 {
        match self.setup.network {
            Delay::Constant(delay) => delay,
            Delay::Exponential(mean) => mean * exponential(&mut self.network),
        }
    }

    /// A request reaches its worker.
    #[inline(always)]
    pub(super) fn reach(&mut self, slot: u32) {
        let now = self.now;
        let at = &mut self.slots[slot];
        if at.stage == Stage::GivenUp {
            self.slots.give_back(slot);
            return;
        }
        at.reached = now;
        at.started = now;
        if self.faulty && self.trap(slot) == Trapped::Yes {
            return;
        }
        let at = &mut self.slots[slot];
        at.stage = Stage::Held;
        let (index, work) = (at.worker, at.work);
        let weight_class = match S::BY_CLASS {
            true => self.setup.classes[at.class as usize].weight_class,
            false => 0,
        };
        let worker = &mut self.workers[index as usize];
        if self.needs.reports {
            worker.pass(now);
            at.held_before = worker.held();
            worker.ledger().into_iter().for_each(Ledger::arrive);
        }
        at.ticket = worker.station.arrive(now, slot, work, weight_class);
        worker.flow.arrived += 1;
        worker.flow.routed += work;
        self.calendar.set(index, worker.station.next());
    }

    /// A station's own event is due: somebody leaves, or only its rate changes.
    #[inline(always)]
    pub(super) fn complete(&mut self, index: u32) {
        let now = self.now;
        let worker = &mut self.workers[index as usize];
        if self.needs.reports {
            worker.pass(now);
        }
        let departure = worker.station.step(now);
        self.calendar.set(index, worker.station.next());
        let Some(departure) = departure else {
            return;
        };
        let slot = departure.job;
        let at = &mut self.slots[slot];
        at.left = now;
        at.started = departure.started.unwrap_or(at.reached);
        at.stage = Stage::Returning;
        worker.flow.completed += 1;
        worker.flow.done += at.work;
        worker.flow.time += now - at.reached;
        if self.needs.reports
            && let Some(ledger) = worker.ledger()
        {
            if at.ending == Ending::Ok {
                ledger.complete(at.held_before, at.reached, at.started, now);
            } else {
                ledger.fail();
            }
        }
        // A connection that is reset carries no head.
        if self.needs.piggyback && at.ending != Ending::Broken {
            self.attach_report(slot);
        }
        if self.is_large {
            self.look_ahead();
        }
        self.answer_from(slot);
    }

    /// Asks memory for what the completion that is most likely next will need, so that it comes while this
    /// one is handled: thousands of workers are more than the nearest caches hold. Decides nothing.
    #[inline(always)]
    fn look_ahead(&self) {
        let (_, next) = self.calendar.first();
        let worker = &self.workers[next as usize];
        let job = worker.station.first();
        let slot = job.map(|job| self.slots[job].dispatch);
        let known = self.balancers[0].dispatcher.backends().get(BackendId(next));
        black_box((worker.flow.time, slot, known.map(|b| b.in_flight)));
    }

    /// Sends a request's answer on its way.
    #[inline(always)]
    pub(super) fn answer_from(&mut self, slot: u32) {
        let delay = self.delay();
        if delay == 0.0 && self.is_next(Rank::Response) {
            self.response(slot);
        } else {
            let worker = self.slots[slot].worker;
            let event = Event::Response { slot };
            self.agenda
                .plan(self.now + delay, Rank::Response, worker, event);
        }
    }

    /// An answer arrives at the balancer.
    #[inline(always)]
    pub(super) fn response(&mut self, slot: u32) {
        let at = &self.slots[slot];
        if at.stage == Stage::GivenUp {
            self.drop_attached(slot);
            self.slots.give_back(slot);
            return;
        }
        let until = self.balancers[at.balancer as usize].frozen_until;
        if until > self.now {
            let event = Event::Response { slot };
            self.agenda.plan(until, Rank::Response, at.worker, event);
            return;
        }
        let (status, http_status, fate) = match at.ending {
            Ending::Ok => (Status::Ok, Some(200), Fate::Ok),
            Ending::Status(code) => (Status::Error, Some(code), Fate::Status(code)),
            Ending::Broken => (Status::Error, None, Fate::Broken),
            Ending::Refused => (Status::Refused, None, Fate::Refused),
        };
        let told = self.needs.service_time && at.ending == Ending::Ok;
        let service_time_ns = told.then_some(((at.left - at.started) * 1e9) as u64);
        let answer = Answer {
            http_status,
            service_time_ns,
            ..Answer::new(status)
        };
        self.tell(slot, &answer);
        if self.needs.piggyback {
            self.take_attached(slot);
        }
        self.finish(slot, fate);
    }

    /// Tells the dispatcher how a dispatch ended.
    #[inline(always)]
    fn tell(&mut self, slot: u32, answer: &Answer) {
        let now = self.time();
        let at = &self.slots[slot];
        let (balancer, dispatch, worker) = (at.balancer, at.dispatch, at.worker);
        if self.needs.steps {
            self.tell_steps(balancer);
        }
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        let outcome = dispatcher
            .respond(now, dispatch, answer)
            .expect("every dispatch is answered once");
        if W::WATCHES {
            let now_ns = now.as_nanos();
            self.watch
                .answered(balancer as usize, now_ns, &outcome, answer, worker);
        }
        if self.needs.steps {
            self.tell_steps(balancer);
        }
    }

    /// A request's outcome is known; its slot is free unless something of it is still on its way.
    #[inline(always)]
    fn finish(&mut self, slot: u32, fate: Fate) {
        let at = &self.slots[slot];
        let (stage, caller) = (at.stage, at.caller);
        let warmup = self
            .tally
            .finished(self.now, self.now - at.arrived, at.work, fate.is_ok());
        if W::WATCHES {
            let at = self.slots[slot];
            self.watch.finished(&Done {
                slot,
                seq: at.seq,
                class: at.class,
                work: at.work,
                arrived: at.arrived,
                reached: at.reached,
                started: at.started,
                left: at.left,
                finished: self.now,
                worker: fate.is_dispatched().then_some(at.worker),
                fate,
                warmup,
            });
        }
        self.finished += 1;
        self.arrivals
            .ended(caller, fate.is_ok(), self.now, &mut self.agenda);
        if stage == Stage::Sent || stage == Stage::Returning && fate == Fate::Timeout {
            self.slots[slot].stage = Stage::GivenUp;
        } else {
            self.slots.give_back(slot);
        }
    }

    /// The balancer gives a request up; its worker stops at once.
    pub(super) fn time_out(&mut self, slot: u32, seq: u64) {
        let now = self.now;
        let at = self.slots[slot];
        if at.seq != seq || at.stage == Stage::GivenUp {
            return;
        }
        if self.waits_for(at.balancer, Rank::Timer, Event::Timeout { slot, seq }) {
            return;
        }
        match at.stage {
            Stage::Held => {
                let worker = &mut self.workers[at.worker as usize];
                worker.pass(now);
                worker.station.cancel(now, at.ticket);
                self.book_loss(slot);
                let next = self.workers[at.worker as usize].station.next();
                self.calendar.set(at.worker, next);
            }
            Stage::Hung => {
                let worker = &mut self.workers[at.worker as usize];
                worker.ward.hung.retain(|s| *s != slot);
                worker.ward.aside -= 1;
            }
            Stage::Waiting | Stage::Sent | Stage::Returning | Stage::GivenUp => {}
        }
        self.tell(slot, &Answer::new(Status::Timeout));
        self.finish(slot, Fate::Timeout);
    }

    /// Books a job that its station no longer holds as lost.
    pub(super) fn book_loss(&mut self, slot: u32) {
        let at = &mut self.slots[slot];
        at.left = self.now;
        let worker = &mut self.workers[at.worker as usize];
        worker.flow.closed.lost += 1;
        worker.flow.closed.lost_work.add(at.work);
        worker.flow.time += self.now - at.reached;
        if let Some(ledger) = worker.ledger() {
            ledger.fail();
        }
    }
}
