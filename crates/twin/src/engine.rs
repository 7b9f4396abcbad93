//! The discrete-event engine: real dispatchers in virtual time.
//!
//! Simultaneous events come in one fixed order, the key (time, rank, tie): completions at workers,
//! responses at balancers, faults, samples of statistics, their arrival, timers, requests reaching
//! workers, arrivals at balancers; ties by worker, then by the order of issue. Times are f64 seconds,
//! compared exactly. Whatever is next anyway (with no network delay: the response of a completion,
//! the start of an arrival) is handled at once instead of going through the queue; the result is
//! equal bit for bit, which a test checks.
//!
//! Request i takes draw i of every stream at its arrival, so two strategies with one seed see the
//! same requests. Slots of finished requests are used again: nothing grows with the number of
//! requests.

mod agenda;
mod arrivals;
mod breakdowns;
mod calendar;
mod draws;
mod invariants;
mod ledger;
mod reports;
mod requests;
mod setup;
mod sizes;
mod slots;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

pub use invariants::Broken;
pub use setup::{
    Class, Delay, Listed, ListedSizes, Patience, Phase, Polls, Setup, Source, WorkLeft, WorkerSetup,
};
pub use watch::{Done, Fate, Picked, Watch};

use crate::station::{Fcfs, Grid, Model, Ps, Quota, Station, Weighted};
use crate::sum::TRAY;
use crate::tally::{Outcome, Tally};
use agenda::{Agenda, Event, Rank};
use arrivals::Arrivals;
use calendar::Calendar;
use rand_chacha::ChaCha8Rng;
use reports::Asks;
use schema::protection::Mode;
use schema::rng::{Purpose, stream};
use sizes::Sizes;
use slots::Slots;
use strategies::ejection::Note;
use strategies::registry::Read;
use strategies::{Dispatcher, PoolError, Spec, Time};
use worker::Worker;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The strategy refuses the pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The simulation broke a law that holds for every run: a mistake in the program.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Simulates `setup` under one strategy.
///
/// # Errors
/// A pool that the strategy refuses; a violated invariant.
pub fn run<W: Watch>(setup: &Setup, spec: &Spec, watch: &mut W) -> Result<Outcome, RunError> {
    run_by(setup, spec, watch, Path::Inline)
}

/// How events that are next anyway are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// At once.
    Inline,
    /// Through the queue like all others: slower, the same result.
    General,
}

/// As [`run`], with the choice of the path.
///
/// # Errors
/// As for [`run`].
pub fn run_by<W: Watch>(
    setup: &Setup,
    spec: &Spec,
    watch: &mut W,
    path: Path,
) -> Result<Outcome, RunError> {
    match setup.model {
        Model::Ps => Engine::<Ps, W>::new(setup, spec, watch, path)?.run(),
        Model::Fcfs => Engine::<Fcfs, W>::new(setup, spec, watch, path)?.run(),
        Model::Quota { .. } => Engine::<Quota, W>::new(setup, spec, watch, path)?.run(),
        Model::Grid { .. } => Engine::<Grid, W>::new(setup, spec, watch, path)?.run(),
        Model::Weighted { .. } => Engine::<Weighted, W>::new(setup, spec, watch, path)?.run(),
    }
}

/// One balancer: its dispatcher and what is wrong with it now.
struct Balancer {
    dispatcher: Dispatcher,
    /// Nothing is handled before this time.
    frozen_until: f64,
    connect_delay: f64,
    poll_delay: f64,
    /// Seed, event number and chance of lost polls.
    poll_loss: Option<(u64, u64, f64)>,
    polls: u64,
}

/// What the strategy looks at, as far as the engine must provide it.
#[derive(Debug, Clone, Copy)]
struct Needs {
    polls: bool,
    piggyback: bool,
    docker: bool,
    probes: bool,
    /// Rules of ejection, and somebody who wants to hear of them.
    steps: bool,
    /// Any report: workers keep their record.
    reports: bool,
    service_time: bool,
    work_left: bool,
    world: bool,
    key: bool,
    cost: bool,
}

impl Needs {
    fn of(setup: &Setup, spec: &Spec, watched: bool) -> Self {
        let reads = |what| spec.entry().reads(what);
        let polls = setup.polls.interval > 0.0 && (reads(Read::Poll) || watched);
        let piggyback = reads(Read::Piggyback);
        let (probes, docker) = (spec.entry().needs_probes, reads(Read::Docker) || watched);
        let asks = setup.ask_first.is_some();
        Self {
            polls,
            piggyback,
            docker,
            probes,
            steps: watched && setup.options(0).rules.ejection.mode != Mode::Off,
            reports: polls
                || reads(Read::Poll)
                || piggyback
                || probes
                || asks
                || setup.work_left != WorkLeft::Untold,
            service_time: reads(Read::Latency) || watched,
            work_left: setup.work_left != WorkLeft::Untold,
            world: setup.work_left == WorkLeft::World,
            key: spec.entry().needs_key,
            cost: spec.entry().needs_cost,
        }
    }
}

/// Whether a fault took a request out of its normal way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trapped {
    Yes,
    No,
}

/// Up to so many workers stay in the caches nearest to the processor: a few hundred bytes each.
const NEAR: usize = 256;

/// Events between two pauses: a request has about two, each of which adds to a tray twice at most.
fn pause_after(setup: &Setup) -> u64 {
    (setup.requests / 16).clamp(1, TRAY / 2)
}

/// A run under way.
struct Engine<'a, S: Station, W: Watch> {
    setup: &'a Setup,
    watch: &'a mut W,
    path: Path,
    needs: Needs,
    now: f64,
    calendar: Calendar,
    agenda: Agenda,
    arrivals: Arrivals,
    sizes: Sizes,
    workers: Vec<Worker<S>>,
    balancers: Vec<Balancer>,
    slots: Slots,
    network: ChaCha8Rng,
    asks: Asks,
    /// Streams of the workers' drifts.
    drifts: Vec<ChaCha8Rng>,
    /// Whether there are more workers than the nearest caches hold.
    is_large: bool,
    /// Whether anything may break.
    faulty: bool,
    tally: Tally,
    /// Requests that arrived so far, and those whose outcome is known.
    issued: u64,
    finished: u64,
    next_check: u64,
    /// Events up to the next pause.
    until_pause: u64,
    url: String,
    number: String,
    notes: Vec<Note>,
    patience: Option<f64>,
    max_in_flight: Option<usize>,
}

impl<'a, S: Station, W: Watch> Engine<'a, S, W> {
    fn new(setup: &'a Setup, spec: &Spec, watch: &'a mut W, path: Path) -> Result<Self, PoolError> {
        let needs = Needs::of(setup, spec, W::WATCHES);
        let balancers = (0..setup.balancers)
            .map(|b| {
                let options = setup.options(b);
                Ok(Balancer {
                    dispatcher: Dispatcher::new(spec, &setup.members(), options)?,
                    frozen_until: 0.0,
                    connect_delay: 0.0,
                    poll_delay: 0.0,
                    poll_loss: None,
                    polls: 0,
                })
            })
            .collect::<Result<Vec<_>, PoolError>>()?;
        let responses = match (needs.reports, spec.entry().needs_probes) {
            (false, _) => None,
            (true, false) => Some(ledger::LAST),
            (true, true) => Some(ledger::REMEMBERED),
        };
        let n = setup.workers.len();
        let workers = (0..n).map(|w| Worker::new(setup, w, responses)).collect();
        Ok(Self {
            setup,
            watch,
            path,
            needs,
            now: 0.0,
            calendar: Calendar::new(n),
            agenda: Agenda::default(),
            arrivals: Arrivals::new(setup),
            sizes: Sizes::new(setup),
            workers,
            balancers,
            slots: Slots::default(),
            network: stream(setup.seed, Purpose::Network, 0, 0),
            asks: Asks::new(setup),
            drifts: Vec::new(),
            is_large: n > NEAR,
            faulty: false,
            tally: Tally::new(setup.requests, setup.warmup, n, setup.mean_work),
            issued: 0,
            finished: 0,
            next_check: (setup.requests / 16).max(1),
            until_pause: pause_after(setup),
            url: String::new(),
            number: String::new(),
            notes: Vec::new(),
            patience: setup.patience().map(|(limit, _)| limit),
            max_in_flight: setup.max_in_flight(),
        })
    }

    fn run(mut self) -> Result<Outcome, RunError> {
        for (b, balancer) in self.balancers.iter().enumerate() {
            self.watch.began(b, &balancer.dispatcher);
        }
        self.plan_faults();
        self.plan_drifts();
        self.plan_polls();
        self.arrivals.begin(&mut self.agenda);
        while self.finished < self.setup.requests {
            let (completion, worker) = self.calendar.first();
            let (planned, arrival) = (self.agenda.first_time(), self.arrivals.next());
            if completion <= planned && completion <= arrival {
                if completion == f64::INFINITY {
                    break;
                }
                self.pass(completion);
                self.complete(worker);
            } else if planned <= arrival {
                let event = self.agenda.pop();
                self.pass(planned);
                self.handle(event);
            } else {
                self.pass(arrival);
                self.arrive();
            }
            self.until_pause -= 1;
            if self.until_pause == 0 {
                self.pause()?;
            }
        }
        self.check()?;
        Ok(self.outcome())
    }

    /// What need not be done at every event: empties the trays, and checks the laws some times a run.
    #[cold]
    fn pause(&mut self) -> Result<(), Broken> {
        self.until_pause = pause_after(self.setup);
        for worker in &mut self.workers {
            worker.flow.settle();
            worker.station.settle();
        }
        self.tally.settle();
        if self.finished >= self.next_check {
            self.check()?;
            self.next_check += (self.setup.requests / 16).max(1);
        }
        Ok(())
    }

    #[inline]
    fn pass(&mut self, to: f64) {
        debug_assert!(to >= self.now, "time never decreases");
        self.now = to;
        #[cfg(test)]
        tests::spoil(self);
    }

    /// Virtual time as strategies see it: whole nanoseconds, rounded down.
    #[inline]
    fn time(&self) -> Time {
        // Through i64, which the processor converts to directly; times are far below 2^63 ns.
        Time::from_nanos((self.now * 1e9) as i64 as u64)
    }

    /// Whether an event of this rank at the present time would come before everything else planned.
    #[inline]
    fn is_next(&self, rank: Rank) -> bool {
        self.path == Path::Inline
            && self.calendar.first().0 > self.now
            && self.agenda.is_free(self.now, rank)
    }

    #[inline(never)]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Response { slot } => self.response(slot),
            Event::Fault { number, begins } => self.fault(number, begins),
            Event::Sample { balancer, worker } => self.poll(balancer, worker),
            Event::Sweep { balancer } => self.sweep(balancer),
            Event::Asked { board } => self.sample(board),
            Event::Board { board } => self.board(board),
            Event::Question { ask, worker } => self.question(ask, worker),
            Event::Answer { ask } => self.answer(ask),
            Event::AskOver { slot, seq } => self.ask_over(slot, seq),
            Event::Timeout { slot, seq } => self.time_out(slot, seq),
            Event::Reach { slot } => self.reach(slot),
            Event::Call { caller } => self.call(caller),
            Event::Thawed { slot } => self.admit(self.coming(slot)),
            Event::FastFail { slot, seq } => self.fail_fast(slot, seq),
            Event::Usage => self.usage(),
            Event::Drift { worker } => self.drift(worker),
        }
    }

    fn outcome(self) -> Outcome {
        self.tally.outcome(self.now, self.arrivals.actions())
    }
}
