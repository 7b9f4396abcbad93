//! Faults: what a timeline breaks and mends, and which requests it hits.

use super::agenda::{Event, Rank};
use super::slots::{Ending, Stage};
use super::watch::Watch;
use super::{Engine, Trapped};
use crate::station::Station;
use schema::fault::{BALANCER, Fault, FaultEvent, hits};
use schema::rng::{Purpose, exponential, stream};

impl<S: Station, W: Watch> Engine<'_, S, W> {
    /// Plans the first toggle of every drifting worker.
    pub(super) fn plan_drifts(&mut self) {
        if self.setup.speed_drift.is_some() {
            for worker in 0..self.workers.len() as u32 {
                let rng = stream(self.setup.seed, Purpose::Faults, worker, 0);
                self.drifts.push(rng);
                self.plan_drift(worker);
            }
        }
    }

    fn plan_drift(&mut self, worker: u32) {
        if let Some((mean, _)) = self.setup.speed_drift {
            let at = self.now + mean * exponential(&mut self.drifts[worker as usize]);
            let event = Event::Drift { worker };
            self.agenda.plan(at, Rank::Fault, worker, event);
        }
    }

    pub(super) fn drift(&mut self, index: u32) {
        if let Some((_, factor)) = self.setup.speed_drift {
            let worker = &mut self.workers[index as usize];
            let drift = &mut worker.ward.health.drift;
            *drift = if *drift == 1.0 { factor } else { 1.0 };
            worker.set_speed(self.now);
            self.calendar.set(index, worker.station.next());
        }
        self.plan_drift(index);
    }

    /// Plans the beginning and the end of every fault.
    pub(super) fn plan_faults(&mut self) {
        let Some(timeline) = &self.setup.faults else {
            return;
        };
        self.faulty = true;
        for (number, event) in timeline.events.iter().enumerate() {
            let number = number as u32;
            let begins = event.at.as_secs_f64();
            let event_on = Event::Fault {
                number,
                begins: true,
            };
            self.agenda.plan(begins, Rank::Fault, 0, event_on);
            if let Some(end) = event.end() {
                let event_off = Event::Fault {
                    number,
                    begins: false,
                };
                self.agenda
                    .plan(end.as_secs_f64(), Rank::Fault, 0, event_off);
            }
        }
    }

    pub(super) fn fault(&mut self, number: u32, begins: bool) {
        let Some(timeline) = &self.setup.faults else {
            return;
        };
        let event = &timeline.events[number as usize];
        if event.on == BALANCER {
            self.balancer_fault(event, number, begins);
            return;
        }
        let named = self.setup.workers.iter().position(|w| w.name == event.on);
        if let Some(worker) = named {
            self.worker_fault(worker as u32, event, number, begins);
        }
    }

    /// A balancer that stands still handles nothing: what is for it waits until it goes on.
    pub(super) fn waits_for(&mut self, balancer: u32, rank: Rank, event: Event) -> bool {
        let until = self.balancers[balancer as usize].frozen_until;
        let waits = until > self.now;
        if waits {
            self.agenda.plan(until, rank, 0, event);
        }
        waits
    }

    fn balancer_fault(&mut self, event: &FaultEvent, number: u32, begins: bool) {
        let seed = self.setup.faults.as_ref().map_or(0, |t| t.seed);
        for balancer in &mut self.balancers {
            match &event.fault {
                Fault::Freeze if begins => {
                    let end = event.end().map_or(f64::INFINITY, |e| e.as_secs_f64());
                    balancer.frozen_until = end;
                }
                Fault::PollLoss { p } => {
                    balancer.poll_loss = begins.then_some((seed, u64::from(number), *p));
                }
                Fault::PollDelay { delay } => {
                    balancer.poll_delay = if begins { delay.as_secs_f64() } else { 0.0 };
                }
                Fault::ConnectDelay { delay } => {
                    balancer.connect_delay = if begins { delay.as_secs_f64() } else { 0.0 };
                }
                _ => {}
            }
        }
    }

    fn worker_fault(&mut self, index: u32, event: &FaultEvent, number: u32, begins: bool) {
        let now = self.now;
        let worker = &mut self.workers[index as usize];
        let cores = worker.ward.cores;
        let health = &mut worker.ward.health;
        match &event.fault {
            Fault::Refuse if begins => health.refusing += 1,
            Fault::Refuse => health.refusing -= 1,
            Fault::Slow { factor, .. } => health.slow = if begins { *factor } else { 1.0 },
            Fault::Freeze => health.frozen = begins,
            Fault::Antagonist {
                threads,
                duty_percent,
            } => {
                // Fair shares between the worker's lanes and the busy threads.
                let busy = f64::from(*threads) * duty_percent / 100.0;
                health.stolen = if begins { busy / (busy + cores) } else { 0.0 };
            }
            Fault::StatsHang => health.stats_hang = begins,
            Fault::StatsLie { active, latency } => {
                health.lie_active = active.filter(|_| begins);
                health.lie_latency = latency.filter(|_| begins);
            }
            Fault::Kill { .. } => health.dead = begins,
            fault => {
                let rank = trap_rank(fault);
                if begins {
                    health.traps.push((rank, number));
                    health.traps.sort_unstable();
                } else {
                    health.traps.retain(|(_, n)| *n != number);
                }
            }
        }
        worker.set_speed(now);
        match &event.fault {
            Fault::Kill { .. } if begins => self.lose_all(index),
            Fault::Hang { .. } if !begins => self.let_go(index),
            _ => {}
        }
        let next = self.workers[index as usize].station.next();
        self.calendar.set(index, next);
    }

    /// A process dies with everything it holds.
    fn lose_all(&mut self, index: u32) {
        let mut failed = Vec::new();
        let worker = &mut self.workers[index as usize];
        worker.station.fail_all(self.now, &mut failed);
        for slot in &failed {
            self.book_loss(*slot);
        }
        let worker = &mut self.workers[index as usize];
        if let Some(ledger) = worker.ledger() {
            ledger.forget();
        }
        let next = self.workers[index as usize].station.next();
        self.calendar.set(index, next);
        for slot in failed {
            self.break_off(slot);
        }
        self.let_go(index);
    }

    /// Requests that were read and not answered end when the fault does.
    fn let_go(&mut self, index: u32) {
        let worker = &mut self.workers[index as usize];
        let hung = std::mem::take(&mut worker.ward.hung);
        worker.ward.aside -= hung.len() as u32;
        for slot in hung {
            self.break_off(slot);
        }
    }

    fn break_off(&mut self, slot: u32) {
        let at = &mut self.slots[slot];
        at.left = self.now;
        at.ending = Ending::Broken;
        at.stage = Stage::Returning;
        self.answer_from(slot);
    }

    /// What a faulty worker does with a request that reaches it.
    pub(super) fn trap(&mut self, slot: u32) -> Trapped {
        let at = self.slots[slot];
        let worker = &mut self.workers[at.worker as usize];
        if worker.ward.health.refuses() {
            let at = &mut self.slots[slot];
            at.left = self.now;
            at.ending = Ending::Refused;
            at.stage = Stage::Returning;
            self.answer_from(slot);
            return Trapped::Yes;
        }
        let Some(timeline) = &self.setup.faults else {
            return Trapped::No;
        };
        let url = &self.setup.classes[at.class as usize].url;
        let hit = worker.ward.health.traps.iter().find(|(_, number)| {
            let event = &timeline.events[*number as usize];
            let p = event.fault.chance();
            event.only.matches(0, url) && hits(timeline.seed, u64::from(*number), at.seq, 0, p)
        });
        let Some((_, number)) = hit else {
            return Trapped::No;
        };
        match &timeline.events[*number as usize].fault {
            Fault::Hang { .. } => {
                worker.pass(self.now);
                worker.ward.hung.push(slot);
                worker.ward.aside += 1;
                self.slots[slot].stage = Stage::Hung;
                Trapped::Yes
            }
            Fault::FastFail { status, after, .. } => {
                worker.pass(self.now);
                worker.ward.aside += 1;
                self.slots[slot].stage = Stage::Hung;
                self.slots[slot].ending = Ending::Status(*status);
                let at = self.now + after.as_secs_f64();
                let event = Event::FastFail {
                    slot,
                    seq: self.slots[slot].seq,
                };
                let worker = self.slots[slot].worker;
                self.agenda.plan(at, Rank::Response, worker, event);
                Trapped::Yes
            }
            Fault::ErrorRate { status, .. } => {
                self.slots[slot].ending = Ending::Status(*status);
                Trapped::No
            }
            Fault::Reset { .. } => {
                self.slots[slot].ending = Ending::Broken;
                Trapped::No
            }
            _ => Trapped::No,
        }
    }

    /// A worker answers with an error, outside its cores.
    pub(super) fn fail_fast(&mut self, slot: u32, seq: u64) {
        let at = self.slots[slot];
        if at.seq != seq || at.stage != Stage::Hung {
            return;
        }
        let worker = &mut self.workers[at.worker as usize];
        worker.pass(self.now);
        worker.ward.aside -= 1;
        if let Some(ledger) = worker.ledger() {
            ledger.fail();
        }
        let at = &mut self.slots[slot];
        at.left = self.now;
        at.stage = Stage::Returning;
        self.answer_from(slot);
    }
}

/// Place in the table of faults: of several that hit, the first decides.
fn trap_rank(fault: &Fault) -> u8 {
    match fault {
        Fault::Hang { .. } => 0,
        Fault::FastFail { .. } => 1,
        Fault::ErrorRate { .. } => 2,
        _ => 3,
    }
}
