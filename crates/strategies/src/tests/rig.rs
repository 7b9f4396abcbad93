//! A dispatcher in front of modeled workers: open loop, virtual time, every kind of report.

use super::models::options;
use super::pools::members;
use crate::{
    Answer, BackendId, Dispatch, Dispatcher, NewBackend, Options, Report, Request, Rules, Source,
    Spec, Status, Time,
};
use rand_chacha::ChaCha8Rng;
use schema::rng::{Purpose, exponential, stream};
use std::collections::{BTreeMap, VecDeque};

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;
const POLL_EVERY: u64 = 100 * MS;

/// What becomes of a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// It is served in so many ms of a core.
    Serve(f64),
    /// It ends so after so many ms, outside the cores.
    Fail(Status, f64),
}

#[derive(Debug, Clone, Copy)]
struct End {
    backend: BackendId,
    status: Status,
    work_ms: f64,
    latency_ms: f64,
}

#[derive(Debug, Clone, Default)]
struct Worker {
    /// First come, first served: when each core is free; `None`: as many cores as requests.
    cores: Option<Vec<Time>>,
    active: u32,
    last_50_ms: VecDeque<f64>,
    /// Ends of the last second.
    recent: VecDeque<(Time, End)>,
}

impl Worker {
    /// When work that comes now is done.
    fn serve(&mut self, now: Time, work_ms: f64) -> Time {
        let work_ns = (work_ms * 1e6) as u64;
        let Some(cores) = &mut self.cores else {
            return now.plus_ns(work_ns);
        };
        let first = cores.iter_mut().min().expect("a core");
        *first = now.max(*first).plus_ns(work_ns);
        *first
    }

    fn ended(&mut self, now: Time, end: End) {
        self.active -= 1;
        if self.last_50_ms.len() == 50 {
            self.last_50_ms.pop_front();
        }
        self.last_50_ms.push_back(end.latency_ms);
        self.recent.push_back((now, end));
    }

    fn report(&mut self, now: Time, cores: f64, source: Source) -> Report {
        while self
            .recent
            .front()
            .is_some_and(|(t, _)| now.since_ns(*t) > SECOND)
        {
            self.recent.pop_front();
        }
        let n = self.last_50_ms.len();
        let mean = (n > 0).then(|| self.last_50_ms.iter().sum::<f64>() / n as f64);
        let served = |(_, end): &&(Time, End)| end.status == Status::Ok;
        let busy_s: f64 = self
            .recent
            .iter()
            .filter(served)
            .map(|(_, end)| end.work_ms / 1e3)
            .sum();
        let failed = self.recent.iter().filter(|e| !served(e)).count();
        let utilization = (busy_s / cores).clamp(0.001, 1.0);
        Report {
            active: Some(self.active),
            mean_latency_50_ms: mean,
            rif_latency_ms: mean,
            utilization: Some(utilization),
            qps: Some(self.recent.len() as f64),
            eps: Some(failed as f64),
            cpu_percent: Some(100.0 * utilization * cores),
            memory_used_mib: Some(100.0),
            ..Report::empty(source, 0)
        }
    }
}

pub(super) struct Rig {
    pub(super) dispatcher: Dispatcher,
    pub(super) rng: ChaCha8Rng,
    workers: Vec<Worker>,
    sent: Vec<u64>,
    ends: BTreeMap<(Time, u64), End>,
    next_poll: Time,
    requests: u64,
}

impl Rig {
    /// Backends of these weights and as many cores.
    pub(super) fn new(text: &str, weights: &[u32], seed: u64) -> Self {
        Self::with(text, weights, Options { seed, ..options() })
    }

    pub(super) fn under(text: &str, weights: &[u32], seed: u64, rules: Rules) -> Self {
        let options = Options {
            seed,
            rules,
            ..options()
        };
        Self::with(text, weights, options)
    }

    pub(super) fn with(text: &str, weights: &[u32], options: Options) -> Self {
        let spec: Spec = super::pools::spec(text);
        let rng = stream(options.seed, Purpose::Sizes, 0, 0);
        Self {
            dispatcher: Dispatcher::new(&spec, &members(weights), options).expect("a pool"),
            rng,
            workers: vec![Worker::default(); weights.len()],
            sent: vec![0; weights.len()],
            ends: BTreeMap::new(),
            next_poll: Time::ZERO,
            requests: 0,
        }
    }

    /// Requests beyond a worker's cores wait for their turn.
    pub(super) fn queueing(mut self) -> Self {
        for (worker, backend) in self
            .workers
            .iter_mut()
            .zip(self.dispatcher.backends().members())
        {
            worker.cores = Some(vec![Time::ZERO; backend.cores as usize]);
        }
        self
    }

    /// Adds a backend; it serves as the others do.
    pub(super) fn add(&mut self, new: &NewBackend) -> BackendId {
        let now = self.dispatcher.now();
        let id = self.dispatcher.add(now, new).expect("a new name");
        let queueing = self.workers.iter().any(|w| w.cores.is_some());
        self.workers.push(Worker {
            cores: queueing.then(|| vec![Time::ZERO; new.cores as usize]),
            ..Worker::default()
        });
        self.sent.push(0);
        id
    }

    /// An exponential draw of this mean, ms.
    pub(super) fn exponential(&mut self, mean_ms: f64) -> f64 {
        mean_ms * exponential(&mut self.rng)
    }

    /// One request after `gap_ns`; `fate` is told where it went and how many went there before.
    pub(super) fn ask(
        &mut self,
        gap_ns: u64,
        size_ms: f64,
        fate: impl FnOnce(BackendId, u64) -> Fate,
    ) -> Dispatch {
        let now = self.dispatcher.now().plus_ns(gap_ns);
        self.pass(now);
        self.requests += 1;
        let url = format!("/items/{}", self.requests);
        let request = Request {
            method: "GET",
            url: &url,
            class: (self.requests % 10) as u32,
            cost_mi: Some(size_ms * 7.45),
            ..Request::default()
        };
        let made = self
            .dispatcher
            .pick(now, &request)
            .expect("somebody is eligible");
        let worker = &mut self.workers[made.backend.index()];
        worker.active += 1;
        let before = self.sent[made.backend.index()];
        self.sent[made.backend.index()] += 1;
        let (at, status, work_ms) = match fate(made.backend, before) {
            Fate::Serve(work_ms) => (worker.serve(now, work_ms), Status::Ok, work_ms),
            Fate::Fail(status, ms) => (now.plus_ns((ms * 1e6) as u64), status, 0.0),
        };
        let end = End {
            backend: made.backend,
            status,
            work_ms,
            latency_ms: at.since_ns(now) as f64 / 1e6,
        };
        self.ends.insert((at, made.id), end);
        self.answer_probes();
        made
    }

    /// Requests sent to each so far, by id.
    pub(super) fn sent(&self) -> &[u64] {
        &self.sent
    }

    /// Lets ends and polls happen up to `now`.
    pub(super) fn pass(&mut self, now: Time) {
        loop {
            let end = self.ends.first_key_value().map(|((at, _), _)| *at);
            let next = end.map_or(self.next_poll, |at| at.min(self.next_poll));
            if next > now {
                break;
            }
            if end == Some(next) {
                let ((at, dispatch), end) = self.ends.pop_first().expect("there is one");
                self.end(at, dispatch, end);
            } else {
                self.poll(next);
                self.next_poll = next.plus_ns(POLL_EVERY);
            }
        }
        self.dispatcher.let_time_pass(now);
    }

    fn end(&mut self, now: Time, dispatch: u64, end: End) {
        let answer = Answer {
            service_time_ns: (end.status == Status::Ok).then_some((end.work_ms * 1e6) as u64),
            ..Answer::new(end.status)
        };
        self.dispatcher
            .respond(now, dispatch, &answer)
            .expect("it is open");
        self.workers[end.backend.index()].ended(now, end);
        if end.status != Status::Refused {
            self.report(now, end.backend, Source::Piggyback);
        }
    }

    fn poll(&mut self, now: Time) {
        for id in (0..self.workers.len() as u32).map(BackendId) {
            self.report(now, id, Source::Poll);
            self.report(now, id, Source::Docker);
        }
    }

    fn answer_probes(&mut self) {
        let mut probes = Vec::new();
        self.dispatcher.take_probes(&mut probes);
        for id in probes {
            self.report(self.dispatcher.now(), id, Source::Probe);
        }
    }

    fn report(&mut self, now: Time, id: BackendId, source: Source) {
        let Some(mark) = self.dispatcher.mark_poll(now, id) else {
            return;
        };
        let cores = self.dispatcher.backends().get(id).map_or(1.0, |b| b.cores);
        let report = self.workers[id.index()].report(now, cores, source);
        self.dispatcher
            .report(now, id, Some(mark), report)
            .expect("a member");
    }
}
