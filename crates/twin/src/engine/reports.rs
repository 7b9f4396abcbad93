//! How statistics reach a balancer: polls, probes, questions before a pick, response headers, usage.

use super::agenda::{Event, Rank};
use super::slots::Stage;
use super::watch::Watch;
use super::{Delay, Engine, Phase, Setup};
use crate::station::Station;
use rand_chacha::ChaCha8Rng;
use schema::fault::hits;
use schema::report::{Report, Source};
use schema::rng::{Purpose, exponential, stream};
use schema::work_left::WorkLeft;
use std::ops::Range;
use strategies::{BackendId, PollMark};

/// A strategy's question that takes longer than this has no answer, s.
const PROBE_TIMEOUT: f64 = 3e-3;
/// Entity of the network stream that delays of polls are drawn from.
const POLLS: u32 = 1;
/// Every worker of a sweep.
const ALL: u32 = u32::MAX;
/// Memory of a worker that holds nothing, MiB: what Docker tells of an idle worker container.
const MEMORY_AT_REST_MIB: f64 = 6.0;
/// What each request held adds, MiB: the default of the worker's `--memory-per-request-mib`.
const MEMORY_PER_REQUEST_MIB: f64 = 0.25;

/// One poll under way: whom it asks, then what they said.
#[derive(Debug, Default)]
struct Board {
    balancer: u32,
    marks: Vec<PollMark>,
    samples: Vec<(PollMark, Report)>,
}

/// A question under way.
#[derive(Debug)]
struct Ask {
    balancer: u32,
    asked_at: f64,
    mark: Option<PollMark>,
    report: Option<Report>,
    /// The request that waits for it.
    waiting: Option<(u32, u64)>,
}

/// Everything asked and not yet seen.
#[derive(Debug)]
pub(super) struct Asks {
    /// Delays of polls: a stream of their own, so that how often a strategy looks changes nothing for
    /// requests.
    ways: ChaCha8Rng,
    boards: Vec<Board>,
    free_boards: Vec<u32>,
    asks: Vec<Ask>,
    free_asks: Vec<u32>,
    /// Reports on their way with a response, by slot.
    attached: Vec<Option<Report>>,
    probes: Vec<BackendId>,
    rounds: Vec<u64>,
    /// Core-seconds that each worker had used when the engine last looked.
    used_before: Vec<f64>,
}

impl Asks {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            ways: stream(setup.seed, Purpose::Network, POLLS, 0),
            boards: Vec::new(),
            free_boards: Vec::new(),
            asks: Vec::new(),
            free_asks: Vec::new(),
            attached: Vec::new(),
            probes: Vec::new(),
            rounds: vec![0; setup.balancers as usize * setup.workers.len()],
            used_before: vec![0.0; setup.workers.len()],
        }
    }
}

impl<S: Station, W: Watch> Engine<'_, S, W> {
    /// Plans when every poll loop asks for the first time.
    pub(super) fn plan_polls(&mut self) {
        if self.needs.docker {
            self.plan_usage();
        }
        if !self.needs.polls {
            return;
        }
        for balancer in 0..self.balancers.len() as u32 {
            match self.setup.polls.phase {
                Phase::Together => self.plan_sample(balancer, ALL),
                Phase::Spread => {
                    for worker in 0..self.workers.len() as u32 {
                        self.plan_sample(balancer, worker);
                    }
                }
            }
        }
    }

    /// Plans when a loop asks next, at a whole number of intervals after its first one.
    fn plan_sample(&mut self, balancer: u32, worker: u32) {
        let (n, interval) = (self.workers.len(), self.setup.polls.interval);
        let many = self.balancers.len() as f64;
        // A lone balancer asks at multiples of the interval; several are out of step.
        let balancer_phase = match self.balancers.len() {
            1 => 0.0,
            _ => (f64::from(balancer) + 0.37) / many,
        };
        let (place, worker_phase, event) = match worker {
            ALL => (0, 0.0, Event::Sweep { balancer }),
            w => (
                w as usize,
                f64::from(w) / n as f64,
                Event::Sample { balancer, worker },
            ),
        };
        let round = &mut self.asks.rounds[balancer as usize * n + place];
        let at = (*round as f64 + balancer_phase + worker_phase) * interval;
        *round += 1;
        let tie = if worker == ALL { 0 } else { worker };
        self.agenda.plan(at, Rank::Sample, tie, event);
    }

    /// A balancer asks every worker at this instant. Under a constant delay the questions stay
    /// together; under a drawn one each goes its own way.
    pub(super) fn sweep(&mut self, balancer: u32) {
        self.plan_sample(balancer, ALL);
        let all = 0..self.workers.len() as u32;
        match self.setup.network {
            Delay::Constant(_) => self.ask_board(balancer, all),
            Delay::Exponential(_) => all.for_each(|w| self.ask_board(balancer, w..w + 1)),
        }
    }

    /// It asks one worker.
    pub(super) fn poll(&mut self, balancer: u32, worker: u32) {
        self.plan_sample(balancer, worker);
        self.ask_board(balancer, worker..worker + 1);
    }

    /// The questions leave: from now on own sends are counted towards the board to come.
    fn ask_board(&mut self, balancer: u32, workers: Range<u32>) {
        if self.balancers[balancer as usize].frozen_until > self.now {
            return;
        }
        let now = self.time();
        let board = self.new_board(balancer);
        let marks = &mut self.asks.boards[board as usize].marks;
        let asking = &mut self.balancers[balancer as usize];
        for worker in workers {
            asking.polls += 1;
            let lost = asking
                .poll_loss
                .is_some_and(|(seed, event, p)| hits(seed, event, asking.polls, 0, p));
            let mark = asking.dispatcher.mark_poll(now, BackendId(worker));
            marks.extend(mark.filter(|_| !lost));
        }
        let delay = self.poll_way();
        if delay == 0.0 {
            self.sample(board);
        } else {
            let event = Event::Asked { board };
            self.agenda.plan(self.now + delay, Rank::Sample, 0, event);
        }
    }

    /// One way of a poll through the network, s.
    fn poll_way(&mut self) -> f64 {
        match self.setup.network {
            Delay::Constant(delay) => delay,
            Delay::Exponential(mean) => mean * exponential(&mut self.asks.ways),
        }
    }

    /// The questions are there: what is told is true at this instant.
    pub(super) fn sample(&mut self, board: u32) {
        let mut samples = std::mem::take(&mut self.asks.boards[board as usize].samples);
        let mut marks = std::mem::take(&mut self.asks.boards[board as usize].marks);
        for mark in marks.drain(..) {
            let report = self.report_of(mark.backend().0, Source::Poll);
            samples.extend(report.map(|report| (mark, report)));
        }
        let this = &mut self.asks.boards[board as usize];
        (this.samples, this.marks) = (samples, marks);
        let balancer = this.balancer as usize;
        let late = self.setup.polls.fetch + self.balancers[balancer].poll_delay;
        let delay = late + self.poll_way();
        if delay == 0.0 && self.is_next(Rank::Visible) {
            self.board(board);
        } else {
            let event = Event::Board { board };
            self.agenda.plan(self.now + delay, Rank::Visible, 0, event);
        }
    }

    /// What was sampled is seen; by a balancer that stands still, later.
    pub(super) fn board(&mut self, board: u32) {
        let balancer = self.asks.boards[board as usize].balancer;
        if self.waits_for(balancer, Rank::Visible, Event::Board { board }) {
            return;
        }
        let mut samples = std::mem::take(&mut self.asks.boards[board as usize].samples);
        for (mark, report) in samples.drain(..) {
            self.take_in(balancer, mark.backend().0, Some(mark), report);
        }
        self.asks.boards[board as usize].samples = samples;
        self.asks.free_boards.push(board);
    }

    fn new_board(&mut self, balancer: u32) -> u32 {
        let index = self.asks.free_boards.pop().unwrap_or_else(|| {
            self.asks.boards.push(Board::default());
            self.asks.boards.len() as u32 - 1
        });
        self.asks.boards[index as usize].balancer = balancer;
        index
    }

    /// Every worker's state as of now, right before a pick: the board of a poll interval of zero, or
    /// the whole truth that an oracle asks for.
    pub(super) fn look_at_all(&mut self, balancer: u32, source: Source) {
        for worker in 0..self.workers.len() as u32 {
            let now = self.time();
            let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
            let mark = dispatcher.mark_poll(now, BackendId(worker));
            if let Some(mut report) = self.report_of(worker, source) {
                if self.needs.world {
                    report.speed = Some(self.workers[worker as usize].ward.speed_now());
                }
                self.take_in(balancer, worker, mark, report);
            }
        }
    }

    fn plan_usage(&mut self) {
        let at = self.now + self.setup.polls.usage;
        self.agenda.plan(at, Rank::Sample, 0, Event::Usage);
    }

    /// CPU use of every worker since the engine last looked, and its memory now. The engine sees the
    /// container, whatever its process answers; of one that has exited there are no figures.
    pub(super) fn usage(&mut self) {
        self.plan_usage();
        for worker in 0..self.workers.len() as u32 {
            let at = &self.workers[worker as usize];
            let used = at.station.used(self.now).busy;
            let before = std::mem::replace(&mut self.asks.used_before[worker as usize], used);
            if at.ward.health.dead {
                continue;
            }
            let held = f64::from(at.held());
            let cores = (used - before) / self.setup.polls.usage;
            let report = Report {
                cpu_percent: Some(100.0 * cores),
                memory_used_mib: Some(MEMORY_AT_REST_MIB + MEMORY_PER_REQUEST_MIB * held),
                ..Report::empty(Source::Docker, 0)
            };
            for balancer in 0..self.balancers.len() as u32 {
                if self.balancers[balancer as usize].frozen_until <= self.now {
                    self.take_in(balancer, worker, None, report.clone());
                }
            }
        }
    }

    /// Sends the questions that a strategy has just named.
    pub(super) fn send_probes(&mut self, balancer: u32) {
        let mut probes = std::mem::take(&mut self.asks.probes);
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        dispatcher.take_probes(&mut probes);
        for id in probes.drain(..) {
            self.ask(balancer, id, None);
        }
        self.asks.probes = probes;
    }

    /// Asks every eligible backend before a pick, and waits.
    pub(super) fn ask_all(&mut self, slot: u32, wait: f64) {
        let (balancer, seq) = (self.slots[slot].balancer, self.slots[slot].seq);
        let backends = self.balancers[balancer as usize].dispatcher.backends();
        let ids = backends.available_ids().to_vec();
        self.slots[slot].unanswered = ids.len() as u32;
        if ids.is_empty() {
            self.pick(self.coming(slot));
            return;
        }
        for id in ids {
            self.ask(balancer, id, Some((slot, seq)));
        }
        let event = Event::AskOver { slot, seq };
        self.agenda.plan(self.now + wait, Rank::Timer, 0, event);
    }

    /// The time to wait is over: pick with what is known.
    pub(super) fn ask_over(&mut self, slot: u32, seq: u64) {
        let at = &self.slots[slot];
        if at.seq == seq && at.stage == Stage::Waiting && at.unanswered > 0 {
            if self.waits_for(at.balancer, Rank::Timer, Event::AskOver { slot, seq }) {
                return;
            }
            self.slots[slot].unanswered = 0;
            self.pick(self.coming(slot));
        }
    }

    fn ask(&mut self, balancer: u32, id: BackendId, waiting: Option<(u32, u64)>) {
        let now = self.time();
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        let ask = Ask {
            balancer,
            asked_at: self.now,
            mark: dispatcher.mark_poll(now, id),
            report: None,
            waiting,
        };
        let index = match self.asks.free_asks.pop() {
            Some(index) => {
                self.asks.asks[index as usize] = ask;
                index
            }
            None => {
                self.asks.asks.push(ask);
                self.asks.asks.len() as u32 - 1
            }
        };
        let event = Event::Question {
            ask: index,
            worker: id.0,
        };
        let at = self.now + self.delay();
        self.agenda.plan(at, Rank::Sample, id.0, event);
    }

    /// A question reaches its worker.
    pub(super) fn question(&mut self, ask: u32, worker: u32) {
        self.asks.asks[ask as usize].report = self.report_of(worker, Source::Probe);
        let at = self.now + self.delay();
        let event = Event::Answer { ask };
        self.agenda.plan(at, Rank::Visible, worker, event);
    }

    /// Its answer arrives; too late, it is dropped.
    pub(super) fn answer(&mut self, ask: u32) {
        let balancer = self.asks.asks[ask as usize].balancer;
        if self.waits_for(balancer, Rank::Visible, Event::Answer { ask }) {
            return;
        }
        let this = &mut self.asks.asks[ask as usize];
        let waiting = this.waiting;
        let (mark, report) = (this.mark, this.report.take());
        let wait = match waiting {
            Some(_) => self.setup.ask_first.unwrap_or(0.0),
            None => PROBE_TIMEOUT,
        };
        let late = self.now - this.asked_at > wait;
        self.asks.free_asks.push(ask);
        let (Some(mark), Some(report)) = (mark, report.filter(|_| !late)) else {
            return;
        };
        self.take_in(balancer, mark.backend().0, Some(mark), report);
        let Some((slot, seq)) = waiting else { return };
        let at = &mut self.slots[slot];
        if at.seq == seq && at.stage == Stage::Waiting && at.unanswered > 0 {
            at.unanswered -= 1;
            if at.unanswered == 0 {
                self.pick(self.coming(slot));
            }
        }
    }

    /// Puts the worker's load report on a response.
    pub(super) fn attach_report(&mut self, slot: u32) {
        let worker = self.slots[slot].worker;
        let report = self
            .report_of(worker, Source::Piggyback)
            .map(|known| Report {
                // The header carries no more than this.
                service_time_mean_ms: None,
                cpu_percent: None,
                rif_latency_ms: None,
                ..known
            });
        let attached = &mut self.asks.attached;
        if attached.len() <= slot as usize {
            attached.resize_with(slot as usize + 1, || None);
        }
        attached[slot as usize] = report;
    }

    /// Takes it off again, unread.
    pub(super) fn drop_attached(&mut self, slot: u32) -> Option<Report> {
        self.asks
            .attached
            .get_mut(slot as usize)
            .and_then(Option::take)
    }

    /// Takes it off and reads it.
    pub(super) fn take_attached(&mut self, slot: u32) {
        if let Some(report) = self.drop_attached(slot) {
            let (balancer, worker) = (self.slots[slot].balancer, self.slots[slot].worker);
            self.take_in(balancer, worker, None, report);
        }
    }

    fn take_in(&mut self, balancer: u32, worker: u32, mark: Option<PollMark>, report: Report) {
        if self.needs.steps {
            self.tell_steps(balancer);
        }
        let now = self.time();
        let dispatcher = &mut self.balancers[balancer as usize].dispatcher;
        let stored = dispatcher
            .report(now, BackendId(worker), mark, report)
            .expect("workers stay members");
        if let (true, Some(stored)) = (W::WATCHES, stored) {
            self.watch
                .reported(balancer as usize, now.as_nanos(), worker, stored);
        }
    }

    /// What a worker says of itself now; nothing if it does not answer.
    fn report_of(&mut self, worker: u32, source: Source) -> Option<Report> {
        let now = self.now;
        let at = &mut self.workers[worker as usize];
        let asked = matches!(source, Source::Poll | Source::Probe);
        if asked && !at.ward.health.tells() && !self.needs.world {
            return None;
        }
        at.pass(now);
        let mut report = at.ward.ledger.as_ref()?.report(source, now, at.held());
        if let Some(active) = at.ward.health.lie_active {
            report.active = Some(active);
        }
        if let Some(factor) = at.ward.health.lie_latency {
            report.mean_latency_50_ms = report.mean_latency_50_ms.map(|m| m * factor);
        }
        if self.needs.work_left {
            let mut left = Vec::new();
            at.station.left(now, &mut |slot, work| {
                left.push(WorkLeft {
                    request_id: self.slots[slot].seq.to_string(),
                    core_ms: work * 1e3,
                });
            });
            report.work_left = Some(left);
        }
        Some(report)
    }
}
