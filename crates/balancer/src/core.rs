//! The dispatcher behind its lock: every call is made, counted and logged here, in one order.

use crate::ask_first::Asking;
use crate::clock::Clock;
use crate::counts::Counts;
use crate::event_log::{self, Completion, EventLog, Loss};
use crate::stand_ins::{StandIns, Word};
use schema::decision::Decision;
use schema::event::{Event, PoolChange, SCHEMA};
use schema::load_report::LoadReport;
use schema::protection::Step;
use schema::report::{Report, Source};
use schema::work_left::WorkLeft;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use strategies::classes::Classes;
use strategies::ejection::Note;
use strategies::{
    Answer, Backend, BackendId, Dispatch, Dispatcher, NewBackend, PollMark, PoolError, Request,
    Spec, Status, Time,
};
use tokio::sync::{Semaphore, mpsc};

/// A client that has waited this many usual latencies for the head of an answer has seen a time-out,
/// whoever's patience ends first: ten times the normal time is where waiting longer brings little more.
const GIVEN_UP_AFTER: u64 = 10;
/// Probes that wait to be sent at most; more are dropped and counted as failed.
const MAX_PROBES: usize = 1024;

/// What the lock guards.
pub(crate) struct State {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) counts: Counts,
    pub(crate) clock: Clock,
    /// Grows with every reset: what was begun before belongs to another run.
    pub(crate) epoch: u64,
    pub(crate) asking: Asking,
    classes: Classes,
    log: Option<EventLog>,
    protection: &'static str,
    in_force: InForce,
    /// Room for what the rules of ejection did.
    notes: Vec<Note>,
    /// Backends that the strategy wants to be asked now; room for them.
    probes: mpsc::Sender<BackendId>,
    targets: Vec<BackendId>,
    stand_ins: StandIns,
}

/// What every pick needs to know of the strategy, made once when it changes.
struct InForce {
    /// Its canonical spelling.
    spelling: String,
    /// The header it reads as a key, if it reads one.
    key_header: Option<String>,
}

impl InForce {
    fn of(spec: &Spec) -> Self {
        Self {
            spelling: spec.to_string(),
            key_header: spec.key_header(),
        }
    }
}

/// The decision of the whole process.
pub(crate) struct Core {
    state: Mutex<State>,
    probes: Mutex<Option<mpsc::Receiver<BackendId>>>,
}

/// One attempt, as the proxy knows it.
pub(crate) struct Attempt<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) client: IpAddr,
    pub(crate) headers: &'a http::HeaderMap,
    pub(crate) body_len: u64,
    pub(crate) number: u32,
    pub(crate) tried: &'a [BackendId],
    pub(crate) cost_mi: Option<f64>,
}

/// What a pick decided, and the record of what was known then.
pub(crate) struct Picked {
    pub(crate) ticket: Ticket,
    pub(crate) name: Arc<str>,
    /// Base URL, `http://HOST:PORT`.
    pub(crate) url: Arc<str>,
    pub(crate) decision: Decision,
}

impl Core {
    pub(crate) fn new(
        dispatcher: Dispatcher,
        log: Option<EventLog>,
        protection: &'static str,
        asking: Asking,
    ) -> Arc<Self> {
        let (probes, asked) = mpsc::channel(MAX_PROBES);
        let mut state = State {
            in_force: InForce::of(dispatcher.spec()),
            dispatcher,
            counts: Counts::default(),
            clock: Clock::start(),
            epoch: 0,
            asking,
            classes: Classes::default(),
            log,
            protection,
            notes: Vec::new(),
            probes,
            targets: Vec::new(),
            stand_ins: StandIns::default(),
        };
        state.log_start();
        state.show_caution();
        state.tell_of_asking();
        Arc::new(Self {
            state: Mutex::new(state),
            probes: Mutex::new(Some(asked)),
        })
    }

    /// The backends to be probed, one by one; once only.
    pub(crate) fn take_probes(&self) -> Option<mpsc::Receiver<BackendId>> {
        self.probes.lock().ok()?.take()
    }

    /// Takes the lock. Never held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a broken rule of the core; going on would hide it.
        self.state.lock().expect("the dispatcher's lock is sound")
    }

    /// Chooses and dispatches; `None` if nothing is eligible.
    pub(crate) fn pick(self: &Arc<Self>, attempt: &Attempt<'_>) -> Option<Picked> {
        let mut state = self.lock();
        let (dispatch, decision) = state.pick(attempt)?;
        let backend = state.dispatcher.backends().get(dispatch.backend)?;
        let (name, url) = (Arc::clone(&backend.name), Arc::clone(&backend.url));
        Some(Picked {
            ticket: Ticket::new(Arc::clone(self), dispatch, state.clock),
            name,
            url,
            decision,
        })
    }
}

impl State {
    fn pick(&mut self, attempt: &Attempt<'_>) -> Option<(Dispatch, Decision)> {
        let now = self.begin();
        let key_header = self
            .in_force
            .key_header
            .as_ref()
            .and_then(|name| attempt.headers.get(name.as_str()))
            .and_then(|v| v.to_str().ok());
        let request = Request {
            id: attempt.request_id,
            method: attempt.method,
            url: attempt.url,
            class: self.classes.class_of(attempt.method, attempt.url),
            client: Some(attempt.client),
            key_header,
            body_len: attempt.body_len,
            attempt: attempt.number,
            tried: attempt.tried,
            cost_mi: attempt.cost_mi,
        };
        let started = Instant::now();
        let dispatch = self.dispatcher.pick(now, &request);
        let pick_ns = started.elapsed().as_nanos() as u64;
        self.counts.pick_time.record(pick_ns);
        self.count_stand_ins(started);
        self.dispatcher.take_probes(&mut self.targets);
        for id in self.targets.drain(..) {
            if self.probes.try_send(id).is_err() {
                self.counts.of(id).probes_failed += 1;
            }
        }
        if self.log.is_some() {
            self.log_pick(&request, dispatch.as_ref(), pick_ns);
        }
        let dispatch = dispatch?;
        let decision = self.decision(&dispatch, attempt.number, pick_ns);
        self.counts.picked(dispatch.backend);
        self.counts.wrong_picks += u64::from(self.is_wrong(&dispatch, attempt.tried));
        Some((dispatch, decision))
    }

    /// Counts a pick made without the reports that the strategy compares by, and says so.
    fn count_stand_ins(&mut self, now: Instant) {
        let (new, word) = self.stand_ins.count(now, self.dispatcher.stand_ins());
        self.counts.stand_ins += new;
        let strategy = &self.in_force.spelling;
        match word {
            Some(Word::Lacking) => tracing::warn!(
                "{strategy}: a backend's statistics are missing, too old or impossible; \
                 the fewest own requests for the cores are picked meanwhile"
            ),
            Some(Word::Back) => tracing::info!("{strategy}: the statistics are back"),
            None => {}
        }
    }

    fn decision(&self, dispatch: &Dispatch, attempt: u32, pick_ns: u64) -> Decision {
        let mut decision = Decision {
            strategy: Some(self.in_force.spelling.clone()),
            attempts: Some(attempt + 1),
            pick_ns: Some(pick_ns),
            in_flight: Some(dispatch.in_flight_before),
            mark: dispatch.mark.map(|m| m.word().to_string()),
            ..Decision::default()
        };
        if let Some(backend) = self.dispatcher.backends().get(dispatch.backend) {
            let known = self.dispatcher.candidate(backend);
            decision.container = Some(backend.name.to_string());
            decision.cores = Some(backend.cores);
            decision.memory_gb = Some(backend.memory_mib / 1024.0);
            decision.active_requests = known.active;
            decision.mean_latency_ms_last_50 = known.mean_latency_50_ms;
            decision.predicted_ms = known.predicted_ms;
            decision.stats_age_ms = known.age_ns.map(|ns| ns as f64 / 1e6);
            let usage = usage(backend);
            decision.cpu_percent = usage.and_then(|r| r.cpu_percent);
            decision.memory_mib = usage.and_then(|r| r.memory_used_mib);
        }
        decision
    }

    fn log_pick(&mut self, request: &Request<'_>, dispatch: Option<&Dispatch>, pick_ns: u64) {
        let entry = self.dispatcher.spec().entry();
        // Query values are the client's; they are kept only where the pick depends on them.
        let url = match request.url.split_once('?') {
            Some((path, _)) if !entry.needs_key => path,
            _ => request.url,
        };
        let mut candidates: Vec<_> = self.dispatcher.candidates().collect();
        if let Some(dispatch) = dispatch {
            // The record is of the moment before the dispatch raised the count.
            for candidate in candidates.iter_mut().filter(|c| c.id == dispatch.backend.0) {
                candidate.in_flight = dispatch.in_flight_before;
                candidate.sent_since = candidate.sent_since.map(|n| n.saturating_sub(1));
            }
        }
        let event = Event::Pick {
            t_ns: self.dispatcher.now().as_nanos(),
            dispatch: dispatch.map(|d| d.id),
            request_id: request.id.to_string(),
            method: request.method.to_string(),
            url: url.to_string(),
            class: request.class,
            client: request.client.map(|c| c.to_string()),
            key_header: request.key_header.map(str::to_string),
            body_len: request.body_len,
            attempt: request.attempt,
            tried: request.tried.iter().map(|id| id.0).collect(),
            cost_mi: request.cost_mi.filter(|_| entry.needs_cost),
            backend: dispatch.map(|d| d.backend.0),
            mark: dispatch.and_then(|d| d.mark),
            candidates,
            pick_ns,
        };
        self.log(event);
    }

    fn respond(&mut self, dispatch: &Dispatch, answer: &Answer, queue_wait_ns: Option<u64>) {
        let now = self.begin();
        let outcome = match self.dispatcher.respond(now, dispatch.id, answer) {
            Ok(outcome) => outcome,
            Err(e) => {
                tracing::error!("{e}");
                return;
            }
        };
        self.counts.of(dispatch.backend).answered(&outcome);
        let t_ns = self.dispatcher.now().as_nanos();
        self.log(Event::Response {
            t_ns,
            dispatch: dispatch.id,
            backend: dispatch.backend.0,
            status: outcome.status,
            http_status: outcome.http_status,
            latency_ns: outcome.latency_ns,
            ttfb_ns: answer.ttfb_ns,
            retry_after_ns: outcome.retry_after_ns,
            service_time_ns: outcome.service_time_ns,
            queue_wait_ns,
        });
        self.log_steps();
    }

    /// The mark of a poll that leaves now.
    pub(crate) fn mark_poll(&mut self, id: BackendId) -> Option<PollMark> {
        let now = self.begin();
        self.dispatcher.mark_poll(now, id)
    }

    /// The backends to be asked before a pick, with their turns; none if that is not wished for.
    pub(crate) fn whom_to_ask(&mut self, tried: &[BackendId]) -> Vec<(BackendId, Arc<Semaphore>)> {
        self.begin();
        self.asking.round(&self.dispatcher, tried)
    }

    /// Takes a report in, if its backend is still a member and it is news.
    pub(crate) fn report(&mut self, id: BackendId, mark: Option<PollMark>, report: Report) {
        let now = self.begin();
        let stored = match self.dispatcher.report(now, id, mark, report) {
            Ok(Some(stored)) => stored.clone(),
            Ok(None) | Err(_) => return,
        };
        let t_ns = self.dispatcher.now().as_nanos();
        self.log(Event::Stats {
            t_ns,
            backend: id.0,
            report: stored,
        });
    }

    /// A request that ends without any dispatch.
    pub(crate) fn unserved(&mut self, request_id: &str, reason: &str, http_status: Option<u16>) {
        self.counts.unserved += 1;
        let t_ns = self.begin().as_nanos();
        self.log(Event::Unserved {
            t_ns,
            request_id: request_id.to_string(),
            reason: reason.to_string(),
            http_status,
        });
    }

    /// Adds a member.
    pub(crate) fn add(&mut self, new: &NewBackend) -> Result<BackendId, PoolError> {
        let now = self.begin();
        let id = self.dispatcher.add(now, new)?;
        self.show_caution();
        let member = self.dispatcher.members().into_iter().find(|m| m.id == id.0);
        if let Some(member) = member {
            self.log_change(PoolChange::Add(member));
        }
        Ok(id)
    }

    /// Removes a member; its late responses are still accounted.
    pub(crate) fn remove(&mut self, id: BackendId) -> Result<(), PoolError> {
        let now = self.begin();
        self.dispatcher.remove(now, id)?;
        self.log_change(PoolChange::Remove { id: id.0 });
        self.log_steps();
        Ok(())
    }

    /// Sets a member's weight.
    pub(crate) fn set_weight(&mut self, id: BackendId, weight: u32) -> Result<(), PoolError> {
        let now = self.begin();
        self.dispatcher.set_weight(now, id, weight)?;
        self.log_change(PoolChange::Weight { id: id.0, weight });
        Ok(())
    }

    /// Takes a member out of service.
    pub(crate) fn drain(&mut self, id: BackendId) -> Result<(), PoolError> {
        let now = self.begin();
        self.dispatcher.drain(now, id)?;
        self.log_change(PoolChange::Drain { id: id.0 });
        Ok(())
    }

    /// Puts a drained member back into service.
    pub(crate) fn undrain(&mut self, id: BackendId) -> Result<(), PoolError> {
        let now = self.begin();
        self.dispatcher.undrain(now, id)?;
        self.log_change(PoolChange::Undrain { id: id.0 });
        Ok(())
    }

    /// Warns of a strategy that serves these members badly.
    fn show_caution(&self) {
        if let Some(text) = self.dispatcher.caution() {
            tracing::warn!("{text}");
        }
    }

    /// Says that a strategy has no use for what it could ask.
    fn tell_of_asking(&self) {
        let spec = self.dispatcher.spec();
        if self.asking.wait().is_some() && !self.asking.applies_to(spec) {
            tracing::info!(
                "{spec} reads neither polls nor probes: nobody is asked before its picks"
            );
        }
    }

    /// Changes the strategy live; what the old one learned is gone.
    pub(crate) fn set_strategy(&mut self, spec: &Spec) -> Result<(), PoolError> {
        let now = self.begin();
        self.dispatcher.set_strategy(now, spec)?;
        self.show_caution();
        self.tell_of_asking();
        self.in_force = InForce::of(spec);
        let t_ns = self.dispatcher.now().as_nanos();
        self.log(Event::Strategy {
            t_ns,
            strategy: self.in_force.spelling.clone(),
        });
        Ok(())
    }

    /// A new run: fresh dispatcher, counters and time 0. The log goes on in `file`, else in one named
    /// after the first, since a log has one start; the receiver hears when the old one is complete, or
    /// what it lacks.
    pub(crate) fn reset(
        &mut self,
        spec: Option<&Spec>,
        seed: Option<u64>,
        file: Option<&str>,
    ) -> Result<Option<Completion>, ResetError> {
        let fresh = self
            .dispatcher
            .fresh(spec, seed)
            .map_err(ResetError::Pool)?;
        let old_log_complete = match (&mut self.log, file) {
            (Some(log), name) => Some(log.rotate(name).map_err(ResetError::Log)?),
            (None, Some(_)) => return Err(ResetError::NoLog),
            (None, None) => None,
        };
        self.dispatcher = fresh;
        self.in_force = InForce::of(self.dispatcher.spec());
        self.counts = self.counts.afresh();
        self.classes = Classes::default();
        self.clock = Clock::start();
        self.epoch += 1;
        self.log_start();
        self.tell_of_asking();
        Ok(old_log_complete)
    }

    /// `plain` or `guarded`.
    pub(crate) fn protection(&self) -> &'static str {
        self.protection
    }

    /// File name of the event log.
    pub(crate) fn log_name(&self) -> Option<&str> {
        self.log.as_ref().map(EventLog::name)
    }

    /// Ends the event log.
    ///
    /// # Errors
    /// What it lacks.
    pub(crate) fn close_log(&mut self) -> Result<(), Loss> {
        self.log.take().map_or(Ok(()), EventLog::close)
    }

    /// Event-log lines that could not be written.
    pub(crate) fn log_lines_lost(&self) -> u64 {
        self.log.as_ref().map_or(0, EventLog::lost)
    }

    /// The member called `name`.
    pub(crate) fn named(&self, name: &str) -> Option<&Backend> {
        self.dispatcher
            .backends()
            .members()
            .find(|b| &*b.name == name)
    }

    /// The time of a call; what became due before it is done and logged first.
    fn begin(&mut self) -> Time {
        let now = self.clock.now();
        self.dispatcher.let_time_pass(now);
        self.log_steps();
        now
    }

    /// Logs what the rules of ejection did since the last line.
    fn log_steps(&mut self) {
        self.dispatcher.take_notes(&mut self.notes);
        for note in std::mem::take(&mut self.notes) {
            self.say(&note);
            self.log(Event::Ejection {
                t_ns: note.at.as_nanos(),
                backend: note.backend.0,
                step: note.step,
            });
        }
    }

    fn say(&self, note: &Note) {
        let backend = self.dispatcher.backends().get(note.backend);
        let name = backend.map_or("", |b| &b.name);
        match note.step {
            Step::Ejected {
                rule,
                until_ns,
                number,
            } => {
                let seconds = (until_ns - note.at.as_nanos()) as f64 / 1e9;
                let rule = rule.word();
                tracing::info!(
                    "backend {name} is ejected for {seconds:.3} s ({rule}, {number} in a row)"
                );
            }
            Step::Readmitted => tracing::info!("backend {name} is back in service"),
            Step::Trial => tracing::debug!("backend {name} is on trial"),
            Step::Refused { rule } | Step::Observed { rule } => {
                let rule = rule.word();
                tracing::debug!("backend {name} would be ejected ({rule})");
            }
        }
    }

    /// Whether a pick broke a rule that the dispatcher keeps: nothing but a mark excuses a backend that
    /// is not up, or one already tried, while another one was there.
    fn is_wrong(&self, dispatch: &Dispatch, tried: &[BackendId]) -> bool {
        let backends = self.dispatcher.backends();
        let is_fine = |b: &Backend| b.is_up() && !tried.contains(&b.id);
        let chosen = backends.get(dispatch.backend);
        dispatch.mark.is_none() && !chosen.is_some_and(is_fine) && backends.members().any(is_fine)
    }

    fn log_start(&mut self) {
        let options = self.dispatcher.options();
        let event = Event::Start {
            schema: SCHEMA.to_string(),
            strategy: self.in_force.spelling.clone(),
            seed: options.seed,
            started_unix_ns: self.clock.started_unix_ns(),
            poll_interval_ns: options.context.poll_interval_ns,
            mi_per_ms: Some(options.context.mi_per_ms),
            protection: self.protection.to_string(),
            slow_start_ns: options.slow_start_ns,
            rules: options.rules,
            members: self.dispatcher.members(),
        };
        self.log(event);
    }

    fn log_change(&mut self, change: PoolChange) {
        let t_ns = self.dispatcher.now().as_nanos();
        self.log(Event::Backends { t_ns, change });
    }

    fn log(&mut self, event: Event) {
        if let Some(log) = &mut self.log {
            log.push(event);
        }
    }
}

/// The newest word on a backend's CPU and memory: the engine's, else its own.
pub(crate) fn usage(backend: &Backend) -> Option<&Report> {
    backend
        .report(Source::Docker)
        .or_else(|| backend.newest_stats())
}

/// Why a reset was refused; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResetError {
    #[error("{0}")]
    Pool(PoolError),
    #[error("event_log: the balancer was started without --event-log; start it with one")]
    NoLog,
    #[error("event_log: {0}")]
    Log(event_log::Refusal),
}

/// What a worker told about itself with its answer.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Time the request waited there, ns.
    pub(crate) queue_wait_ns: Option<u64>,
    /// Its load report.
    pub(crate) load: Option<LoadReport>,
    /// Work left of what it still holds; told with a load report or not at all.
    pub(crate) work_left: Option<Vec<WorkLeft>>,
}

/// An open dispatch. Dropped without an answer it delivers `cancelled`, so in_flight cannot leak.
pub(crate) struct Ticket {
    core: Arc<Core>,
    dispatch: Dispatch,
    /// The run's clock, which no reset replaces while a dispatch is open.
    clock: Clock,
    open: bool,
}

impl Ticket {
    fn new(core: Arc<Core>, dispatch: Dispatch, clock: Clock) -> Self {
        Self {
            core,
            dispatch,
            clock,
            open: true,
        }
    }

    /// Whom it was dispatched to.
    pub(crate) fn backend(&self) -> BackendId {
        self.dispatch.backend
    }

    /// Time since the dispatch, ns.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.clock.now().since_ns(self.dispatch.at)
    }

    /// Delivers the outcome.
    pub(crate) fn finish(mut self, answer: &Answer, told: Told) {
        self.open = false;
        let mut state = self.core.lock();
        state.respond(&self.dispatch, answer, told.queue_wait_ns);
        // True at this moment: right after in_flight was lowered.
        if let Some(load) = &told.load {
            let report = Report {
                work_left: told.work_left,
                ..load.to_report(0)
            };
            state.report(self.dispatch.backend, None, report);
        }
    }

    /// The client has gone while the backend owed it the head of an answer. That says nothing of the
    /// backend, unless it had kept the client waiting for far longer than is usual: then it is a
    /// time-out like the balancer's own, so that a backend that hangs is found whoever gives up first.
    pub(crate) fn give_up(self) {
        let usual_ns = self.core.lock().dispatcher.usual_latency_ns();
        let hung =
            usual_ns.is_some_and(|ns| self.elapsed_ns() >= ns.saturating_mul(GIVEN_UP_AFTER));
        self.fail(if hung {
            Status::Timeout
        } else {
            Status::Cancelled
        });
    }

    /// Delivers an outcome without any answer.
    pub(crate) fn fail(self, status: Status) {
        self.finish(&Answer::new(status), Told::default());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.core
                .lock()
                .respond(&self.dispatch, &Answer::cancelled(), None);
        }
    }
}

#[cfg(test)]
mod tests;
