//! Feeds a recorded event log to a fresh dispatcher and compares every pick.

use crate::backends::{Backend, NewBackend};
use crate::dispatcher::{Dispatch, Dispatcher, Options, PollMark, PoolError};
use crate::ejection::Note;
use crate::registry::{Context, Models, Spec, SpecError};
use crate::time::Time;
use crate::values::{Answer, BackendId, Request};
use schema::event::{Candidate, Event, Member, PoolChange, SCHEMA};
use schema::workload::MAX_APIS;
use std::collections::BTreeMap;

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Picks in the log.
    pub picks: u64,
    /// Picks that came out the same.
    pub equal: u64,
    /// Steps of the rules of ejection in the log.
    pub steps: u64,
    /// Steps that came out the same.
    pub steps_equal: u64,
    /// The first pick that did not.
    pub first_mismatch: Option<Mismatch>,
}

impl Verdict {
    /// Whether everything came out the same.
    pub fn is_equal(&self) -> bool {
        self.equal == self.picks && self.steps_equal == self.steps
    }
}

/// A pick that came out differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Number of the event, from 1: the line of the log.
    pub line: u64,
    /// The request's id.
    pub request_id: String,
    /// The backend in the log; `None` if nothing was eligible.
    pub logged: Option<u32>,
    /// The backend picked now.
    pub replayed: Option<u32>,
    /// Of up to [`MAX_SHOWN`] members what was known, first of the two picked, then in position order.
    pub members: Vec<Shown>,
}

/// What the pick could go by, of one member.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Configured name.
    pub name: String,
    /// Its weight in the replay.
    pub weight: u32,
    /// In the replay: `up`, `draining`, `ejected`, `trial` or `tried`.
    pub state: &'static str,
    /// What the log has of it.
    pub logged: Option<Candidate>,
    /// What the replay came to; with the strategy's score, if it has one (`predicted_ms`).
    pub replayed: Candidate,
}

/// Members that are shown of a pick that came out differently.
pub const MAX_SHOWN: usize = 16;

/// Why a log cannot be replayed, with the line where that shows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The first line must be `start`, and only that one.
    #[error("line {0}: a log begins with one start line")]
    Start(u64),
    /// Another format.
    #[error("line 1: schema is \"{0}\", expected \"{SCHEMA}\"")]
    Schema(String),
    /// A strategy this version does not know.
    #[error("line {0}: {1}")]
    Strategy(u64, SpecError),
    /// A change of the pool that cannot be made.
    #[error("line {0}: {1}")]
    Pool(u64, PoolError),
    /// A call earlier than what came before it: line, its time and the latest before it, ns.
    #[error(
        "line {0}: time goes back to {1} ns, after {2} ns before it; times of a log never decrease"
    )]
    Order(u64, u64, u64),
    /// A response to a dispatch that is not open.
    #[error("line {0}: dispatch {1} is not open")]
    Dispatch(u64, u64),
    /// A class that no recorder gives: strategies keep tables by class.
    #[error("line {0}: class {1} is out of bounds (allowed: below {MAX_APIS})")]
    Class(u64, u32),
    /// Lines were lost while recording.
    #[error("line {0}: {1} lines were lost while recording; the log cannot be replayed past here")]
    Gap(u64, u64),
}

/// Replays a log; `models` are those it was recorded with.
///
/// # Errors
/// The log is not one, has a gap, or names what cannot be: see [`ReplayError`].
pub fn replay(
    events: impl IntoIterator<Item = Event>,
    models: &Models,
) -> Result<Verdict, ReplayError> {
    let mut events = events.into_iter();
    let first = events.next().ok_or(ReplayError::Start(1))?;
    let mut replay = Replay::start(first, models)?;
    for event in events {
        replay.take(event)?;
    }
    Ok(replay.verdict)
}

/// A replay under way, for logs that are read line by line.
#[derive(Debug)]
pub struct Replay {
    dispatcher: Dispatcher,
    /// Dispatch numbers of the log and of the replay.
    dispatches: BTreeMap<u64, u64>,
    /// Steps of ejection that no line was compared with yet.
    notes: Vec<Note>,
    line: u64,
    /// Latest time of a line so far.
    latest_ns: u64,
    verdict: Verdict,
    probes: Vec<BackendId>,
}

impl Replay {
    /// Begins with the first line; `models` are those the log was recorded with.
    ///
    /// # Errors
    /// It is no `start` of this format, or its pool or strategy cannot be built.
    pub fn start(first: Event, models: &Models) -> Result<Self, ReplayError> {
        let Event::Start {
            schema,
            strategy,
            seed,
            poll_interval_ns,
            mi_per_ms,
            slow_start_ns,
            rules,
            members,
            ..
        } = first
        else {
            return Err(ReplayError::Start(1));
        };
        if schema != SCHEMA {
            return Err(ReplayError::Schema(schema));
        }
        let spec: Spec = strategy.parse().map_err(|e| ReplayError::Strategy(1, e))?;
        let options = Options {
            seed,
            slow_start_ns,
            rules,
            context: Context {
                poll_interval_ns,
                mi_per_ms: mi_per_ms.unwrap_or(Context::default().mi_per_ms),
                models: models.clone(),
                ..Context::default()
            },
        };
        let dispatcher = Dispatcher::from_members(&spec, &members, options)
            .map_err(|e| ReplayError::Pool(1, e))?;
        Ok(Self {
            dispatcher,
            dispatches: BTreeMap::new(),
            notes: Vec::new(),
            line: 1,
            latest_ns: 0,
            verdict: Verdict::default(),
            probes: Vec::new(),
        })
    }

    /// What was found so far.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// As for [`replay`].
    pub fn take(&mut self, event: Event) -> Result<(), ReplayError> {
        self.line += 1;
        let line = self.line;
        // A step of the rules is told when somebody looks, with the time at which it was due.
        let is_call = !matches!(
            event,
            Event::Start { .. } | Event::Gap { .. } | Event::Ejection { .. }
        );
        let (t_ns, latest_ns) = (event.t_ns(), self.latest_ns);
        if is_call && t_ns < latest_ns {
            return Err(ReplayError::Order(line, t_ns, latest_ns));
        }
        self.latest_ns = latest_ns.max(t_ns);
        match event {
            Event::Start { .. } => return Err(ReplayError::Start(line)),
            Event::Gap { lost, .. } => return Err(ReplayError::Gap(line, lost)),
            Event::Unserved { .. } => {}
            Event::Ejection {
                t_ns,
                backend,
                step,
            } => self.step(Note {
                at: Time::from_nanos(t_ns),
                backend: BackendId(backend),
                step,
            }),
            Event::Pick { class, .. } if class as usize >= MAX_APIS => {
                return Err(ReplayError::Class(line, class));
            }
            pick @ Event::Pick { .. } => self.pick(&pick),
            response @ Event::Response { .. } => self.response(&response)?,
            Event::Stats {
                t_ns,
                backend,
                report,
            } => {
                let id = BackendId(backend);
                let mark = PollMark::of_logged(id, &report);
                self.dispatcher
                    .report(Time::from_nanos(t_ns), id, Some(mark), report)
                    .map_err(|e| ReplayError::Pool(line, e))?;
            }
            Event::Backends { t_ns, change } => self
                .change(Time::from_nanos(t_ns), change)
                .map_err(|e| ReplayError::Pool(line, e))?,
            Event::Strategy { t_ns, strategy } => {
                let spec: Spec = strategy
                    .parse()
                    .map_err(|e| ReplayError::Strategy(line, e))?;
                self.dispatcher
                    .set_strategy(Time::from_nanos(t_ns), &spec)
                    .map_err(|e| ReplayError::Pool(line, e))?;
            }
        }
        Ok(())
    }

    fn step(&mut self, logged: Note) {
        self.dispatcher.let_time_pass(logged.at);
        self.dispatcher.take_notes(&mut self.notes);
        self.verdict.steps += 1;
        if !self.notes.is_empty() && self.notes.remove(0) == logged {
            self.verdict.steps_equal += 1;
        }
    }

    fn pick(&mut self, event: &Event) {
        let Event::Pick {
            t_ns,
            dispatch,
            request_id,
            method,
            url,
            class,
            client,
            key_header,
            body_len,
            attempt,
            tried,
            cost_mi,
            backend: logged,
            candidates,
            ..
        } = event
        else {
            return;
        };
        let tried: Vec<BackendId> = tried.iter().copied().map(BackendId).collect();
        let request = Request {
            id: request_id,
            method,
            url,
            class: *class,
            client: client.as_ref().and_then(|c| c.parse().ok()),
            key_header: key_header.as_deref(),
            body_len: *body_len,
            attempt: *attempt,
            tried: &tried,
            cost_mi: *cost_mi,
        };
        let made = self.dispatcher.pick(Time::from_nanos(*t_ns), &request);
        // Their answers stand in the log.
        self.dispatcher.take_probes(&mut self.probes);
        self.probes.clear();
        let replayed = made.map(|d| d.backend.0);
        self.verdict.picks += 1;
        if replayed == *logged {
            self.verdict.equal += 1;
        } else if self.verdict.first_mismatch.is_none() {
            self.verdict.first_mismatch = Some(Mismatch {
                line: self.line,
                request_id: request_id.clone(),
                logged: *logged,
                replayed,
                members: self.shown(*logged, made.as_ref(), &tried, candidates),
            });
        }
        if let (Some(logged), Some(made)) = (dispatch, made) {
            self.dispatches.insert(*logged, made.id);
        }
    }

    fn shown(
        &self,
        logged: Option<u32>,
        made: Option<&Dispatch>,
        tried: &[BackendId],
        candidates: &[Candidate],
    ) -> Vec<Shown> {
        let replayed = made.map(|dispatch| dispatch.backend);
        let is_picked = |b: &&Backend| Some(b.id.0) == logged || Some(b.id) == replayed;
        let members = || self.dispatcher.backends().members();
        let picked = members().filter(is_picked);
        let rest = members().filter(|b| !is_picked(b));
        let shown = picked.chain(rest).take(MAX_SHOWN).map(|b| {
            let mut known = self.dispatcher.candidate(b);
            if let Some(dispatch) = made.filter(|dispatch| dispatch.backend == b.id) {
                known.in_flight = dispatch.in_flight_before;
            }
            Shown {
                name: b.name.to_string(),
                weight: b.weight,
                state: self.state(b, tried),
                logged: candidates.iter().find(|c| c.id == b.id.0).cloned(),
                replayed: known,
            }
        });
        shown.collect()
    }

    fn state(&self, backend: &Backend, tried: &[BackendId]) -> &'static str {
        match backend.ejected_until {
            _ if backend.draining => "draining",
            Some(until) if until > self.dispatcher.now() => "ejected",
            Some(_) => "trial",
            None if tried.contains(&backend.id) => "tried",
            None => "up",
        }
    }

    fn response(&mut self, event: &Event) -> Result<(), ReplayError> {
        let Event::Response {
            t_ns,
            dispatch,
            status,
            http_status,
            latency_ns,
            ttfb_ns,
            retry_after_ns,
            service_time_ns,
            ..
        } = event
        else {
            return Ok(());
        };
        let answer = Answer {
            status: *status,
            latency_ns: Some(*latency_ns),
            ttfb_ns: *ttfb_ns,
            http_status: *http_status,
            retry_after_ns: *retry_after_ns,
            service_time_ns: *service_time_ns,
        };
        let made = self.dispatches.remove(dispatch);
        made.and_then(|id| {
            self.dispatcher
                .respond(Time::from_nanos(*t_ns), id, &answer)
                .ok()
        })
        .map(|_| ())
        .ok_or(ReplayError::Dispatch(self.line, *dispatch))
    }

    fn change(&mut self, now: Time, change: PoolChange) -> Result<(), PoolError> {
        let dispatcher = &mut self.dispatcher;
        match change {
            PoolChange::Add(member) => {
                let logged = BackendId(member.id);
                let id = dispatcher.add(now, &new_backend(&member))?;
                if id == logged {
                    Ok(())
                } else {
                    Err(PoolError::BadId(logged))
                }
            }
            PoolChange::Remove { id } => dispatcher.remove(now, BackendId(id)),
            PoolChange::Weight { id, weight } => dispatcher.set_weight(now, BackendId(id), weight),
            PoolChange::Drain { id } => dispatcher.drain(now, BackendId(id)),
            PoolChange::Undrain { id } => dispatcher.undrain(now, BackendId(id)),
            PoolChange::Eject { id, until_ns } => {
                dispatcher.eject(now, BackendId(id), Time::from_nanos(until_ns))
            }
            PoolChange::Readmit { id } => dispatcher.readmit(now, BackendId(id)),
        }
    }
}

/// A logged member as an operator would name it.
pub(crate) fn new_backend(member: &Member) -> NewBackend {
    NewBackend {
        name: member.name.clone(),
        url: member.url.clone(),
        weight: member.weight,
        cores: member.cores,
        memory_mib: member.memory_mib,
    }
}
