//! A c-core machine as a pure value: who is in service, who leaves when, what to burn next.
//!
//! The machine keeps V, the service attained so far by any request in service (core-ns at nominal
//! speed). A request that starts at V with work w leaves when V reaches V + w, so a heap of those
//! keys gives the next departure exactly: `now + (key - V) / rate`, with rate min(1, c/n) under
//! processor sharing and c/servers under first come, first served (the same code with at most
//! `servers` requests in service). [`Machine::advance`] retires every departure at its nominal time,
//! however late it is called. O(log n) per event. The slow version that walks all requests is
//! [`crate::model`]; the tests run both in lockstep.
//!
//! Beside the clock stands the burn: the fraction f of each request's instructions, cut into chunks,
//! handed to lanes the chunk due first first, at most one at a time per request, and no further
//! ahead of what the request has attained than [`BURN_AHEAD_MI`] at the start of a chunk. A request
//! whose burn is not complete at its nominal departure stays until it is and counts as late.

use schema::stats::Discipline;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Largest piece of burn a lane takes at once, MI: a few milliseconds, short against a request.
const CHUNK_MI: f64 = 50.0;

/// How far ahead of its attained service a request's burn may be when a chunk starts, MI. With the
/// chunk itself this makes 50 to 100 MI, enough to outlast a lane's wait for the CPU.
const BURN_AHEAD_MI: f64 = 50.0;

/// V is set back when it passes this, so that a machine that never empties keeps its precision
/// (2^50 ns of attained service, nearly two weeks).
const REBASE_ABOVE_NS: f64 = (1_u64 << 50) as f64;

/// Number of a request, in the order of arrival; equal departures leave in this order.
pub(crate) type JobId = u64;

/// What the machine is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Cores, may be fractional.
    pub(crate) cores: f64,
    /// How they are shared.
    pub(crate) discipline: Discipline,
    /// Nominal speed of one core, MIPS.
    pub(crate) mips_per_core: f64,
    /// Share of the instructions that are really executed, 0..=1.
    pub(crate) burn_fraction: f64,
}

impl Shape {
    /// Requests that may be in service at once: all under processor sharing, else max(1, round(c)).
    pub(crate) fn servers(&self) -> usize {
        match self.discipline {
            Discipline::Ps => usize::MAX,
            Discipline::Fcfs => self.cores.round().max(1.0) as usize,
        }
    }

    /// Speed of each of `n` requests in service, as a share of one nominal core.
    pub(crate) fn rate(&self, n: usize) -> f64 {
        match self.discipline {
            Discipline::Ps => (self.cores / n as f64).min(1.0),
            Discipline::Fcfs => self.cores / self.servers() as f64,
        }
    }

    /// Time `mi` takes alone on one nominal core, ns.
    pub(crate) fn work_ns(&self, mi: f64) -> f64 {
        mi / self.mips_per_core * 1e9
    }
}

/// A request that has left: its nominal stamps, or the end of its burn when that was later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Departure {
    pub(crate) job: JobId,
    pub(crate) arrived_ns: f64,
    pub(crate) started_ns: f64,
    pub(crate) ended_ns: f64,
    /// True if the burn ended after the nominal departure.
    pub(crate) late_burn: bool,
}

/// A piece of burn for a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) job: JobId,
    pub(crate) mi: f64,
}

#[derive(Debug)]
struct Job {
    work_ns: f64,
    arrived_ns: f64,
    stage: Stage,
    chunks: u32,
    chunks_done: u32,
    chunk_running: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Queued,
    InService {
        started_ns: f64,
        start_v: f64,
    },
    /// Its nominal time is over, its burn is not.
    Overdue {
        started_ns: f64,
    },
}

/// A heap entry, smallest (key, job) on top.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: f64,
    job: JobId,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .key
            .total_cmp(&self.key)
            .then(other.job.cmp(&self.job))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// The state of the machine at its own time `now_ns`.
#[derive(Debug)]
pub(crate) struct Machine {
    shape: Shape,
    now_ns: f64,
    v: f64,
    rebase_above_ns: f64,
    next_job: JobId,
    jobs: BTreeMap<JobId, Job>,
    in_service: usize,
    overdue_count: usize,
    departures: BinaryHeap<Entry>,
    queue: VecDeque<JobId>,
    /// Chunks that may not start yet, by the attained service at which they may.
    pending: BinaryHeap<Entry>,
    /// Chunks that may start, by the attained service at which they should be done.
    ready: BinaryHeap<Entry>,
    overdue: VecDeque<JobId>,
    busy_core_ns: f64,
    attained_core_ns: f64,
}

impl Machine {
    /// An empty machine at time 0.
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            now_ns: 0.0,
            v: 0.0,
            rebase_above_ns: REBASE_ABOVE_NS,
            next_job: 0,
            jobs: BTreeMap::new(),
            in_service: 0,
            overdue_count: 0,
            departures: BinaryHeap::new(),
            queue: VecDeque::new(),
            pending: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            overdue: VecDeque::new(),
            busy_core_ns: 0.0,
            attained_core_ns: 0.0,
        }
    }

    /// Brings the machine to `now_ns`, retiring every departure on the way at its nominal time. A
    /// time before the machine's own is taken as its own.
    pub(crate) fn advance(&mut self, now_ns: f64, left: &mut Vec<Departure>) {
        while let Some((at_ns, entry)) = self.next_departure() {
            if at_ns > now_ns {
                break;
            }
            self.accrue(at_ns);
            self.v = entry.key;
            self.departures.pop();
            self.depart(entry.job, at_ns, left);
        }
        self.accrue(now_ns);
        self.rebase();
    }

    /// Takes a request of `mi` million instructions at `now_ns`; it starts at once if it may.
    pub(crate) fn arrive(&mut self, now_ns: f64, mi: f64, left: &mut Vec<Departure>) -> JobId {
        self.advance(now_ns, left);
        let id = self.next_job;
        self.next_job += 1;
        let burn_mi = mi * self.shape.burn_fraction;
        self.jobs.insert(
            id,
            Job {
                work_ns: self.shape.work_ns(mi),
                arrived_ns: self.now_ns,
                stage: Stage::Queued,
                chunks: (burn_mi / CHUNK_MI).ceil() as u32,
                chunks_done: 0,
                chunk_running: false,
            },
        );
        self.queue.push_back(id);
        self.start_queued(self.now_ns);
        id
    }

    /// Forgets a request whose client has gone; the others speed up at once.
    pub(crate) fn cancel(&mut self, now_ns: f64, id: JobId, left: &mut Vec<Departure>) {
        self.advance(now_ns, left);
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        match job.stage {
            Stage::Queued => self.queue.retain(|queued| *queued != id),
            Stage::InService { .. } => self.leave_service(self.now_ns),
            Stage::Overdue { .. } => self.overdue_count -= 1,
        }
        if self.departures.len() > 2 * self.in_service + 16 {
            let jobs = &self.jobs;
            self.departures
                .retain(|entry| is_in_service(jobs, entry.job));
        }
    }

    /// When something happens next by itself: a departure or, if `lane_idle`, the release of a chunk.
    pub(crate) fn next_event_ns(&mut self, lane_idle: bool) -> Option<f64> {
        let departure = self.next_departure().map(|(at_ns, _)| at_ns);
        if !lane_idle || self.in_service == 0 {
            return departure;
        }
        drop_dead(&mut self.pending, &self.jobs);
        let release = self.pending.peek().map(|entry| self.reaches(entry.key));
        match (departure, release) {
            (Some(d), Some(r)) => Some(d.min(r)),
            (d, r) => d.or(r),
        }
    }

    /// The chunk a lane should burn now, if any may start.
    pub(crate) fn take_chunk(&mut self) -> Option<Chunk> {
        let job = match self.next_overdue() {
            Some(job) => job,
            None => self.next_ready()?,
        };
        let state = self.jobs.get_mut(&job)?;
        state.chunk_running = true;
        let burn_mi = state.work_ns * 1e-9 * self.shape.mips_per_core * self.shape.burn_fraction;
        Some(Chunk {
            job,
            mi: burn_mi / f64::from(state.chunks),
        })
    }

    /// True if [`Machine::take_chunk`] would give one.
    pub(crate) fn has_chunk(&mut self) -> bool {
        self.release_pending();
        drop_dead(&mut self.ready, &self.jobs);
        !self.ready.is_empty() || !self.overdue.is_empty()
    }

    /// Notes that a lane has burned a chunk of `id`; the request's next chunk becomes available.
    pub(crate) fn finish_chunk(&mut self, now_ns: f64, id: JobId, left: &mut Vec<Departure>) {
        self.advance(now_ns, left);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.chunk_running = false;
        job.chunks_done += 1;
        let burned = job.chunks_done == job.chunks;
        match job.stage {
            Stage::Overdue { started_ns } if burned => {
                let departure = Departure {
                    job: id,
                    arrived_ns: job.arrived_ns,
                    started_ns,
                    ended_ns: self.now_ns,
                    late_burn: true,
                };
                self.jobs.remove(&id);
                self.overdue_count -= 1;
                left.push(departure);
            }
            Stage::Overdue { .. } => self.overdue.push_back(id),
            _ if burned => {}
            _ => self.offer_chunk(id),
        }
    }

    /// Core-ns of use since the start: the integral of min(n, c), overdue requests included.
    pub(crate) fn busy_core_ns(&self) -> f64 {
        self.busy_core_ns
    }

    /// Core-ns of nominal service given since the start.
    pub(crate) fn attained_core_ns(&self) -> f64 {
        self.attained_core_ns
    }

    /// Work left of every request held, core-ns at nominal speed, in the order of arrival.
    pub(crate) fn work_left(&self) -> impl Iterator<Item = (JobId, f64)> {
        self.jobs.iter().map(|(id, job)| match job.stage {
            Stage::Queued => (*id, job.work_ns),
            Stage::InService { start_v, .. } => (*id, (start_v + job.work_ns - self.v).max(0.0)),
            Stage::Overdue { .. } => (*id, 0.0),
        })
    }

    fn rate(&self) -> f64 {
        self.shape.rate(self.in_service)
    }

    /// When V reaches `key` if nothing else happens.
    fn reaches(&self, key: f64) -> f64 {
        self.now_ns + (key - self.v).max(0.0) / self.rate()
    }

    fn next_departure(&mut self) -> Option<(f64, Entry)> {
        drop_dead(&mut self.departures, &self.jobs);
        let entry = *self.departures.peek()?;
        Some((self.reaches(entry.key), entry))
    }

    /// Lets time pass with nobody leaving.
    fn accrue(&mut self, to_ns: f64) {
        let dt_ns = to_ns - self.now_ns;
        if dt_ns <= 0.0 {
            return;
        }
        self.now_ns = to_ns;
        let held = self.in_service + self.overdue_count;
        self.busy_core_ns += dt_ns * (held as f64).min(self.shape.cores);
        if self.in_service > 0 {
            let dv = dt_ns * self.rate();
            self.v += dv;
            self.attained_core_ns += dv * self.in_service as f64;
        }
    }

    fn depart(&mut self, id: JobId, at_ns: f64, left: &mut Vec<Departure>) {
        let job = self
            .jobs
            .get_mut(&id)
            .expect("a departure is of a job held");
        let Stage::InService { started_ns, .. } = job.stage else {
            unreachable!("only a request in service departs");
        };
        if job.chunks_done < job.chunks {
            job.stage = Stage::Overdue { started_ns };
            self.overdue_count += 1;
            if !job.chunk_running {
                self.overdue.push_back(id);
            }
        } else {
            left.push(Departure {
                job: id,
                arrived_ns: job.arrived_ns,
                started_ns,
                ended_ns: at_ns,
                late_burn: false,
            });
            self.jobs.remove(&id);
        }
        self.leave_service(at_ns);
    }

    fn leave_service(&mut self, at_ns: f64) {
        self.in_service -= 1;
        if self.in_service == 0 && self.queue.is_empty() {
            self.v = 0.0;
            // Whatever is left in these is of requests that are gone or overdue.
            self.departures.clear();
            self.pending.clear();
            self.ready.clear();
        }
        self.start_queued(at_ns);
    }

    fn start_queued(&mut self, at_ns: f64) {
        while self.in_service < self.shape.servers() {
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            let start_v = self.v;
            let job = self.jobs.get_mut(&id).expect("a queued job is held");
            job.stage = Stage::InService {
                started_ns: at_ns,
                start_v,
            };
            let key = start_v + job.work_ns;
            let burns = job.chunks > 0;
            self.departures.push(Entry { key, job: id });
            self.in_service += 1;
            if burns {
                self.offer_chunk(id);
            }
        }
    }

    /// Queues the next chunk of a request in service.
    fn offer_chunk(&mut self, id: JobId) {
        let job = &self.jobs[&id];
        let Stage::InService { start_v, .. } = job.stage else {
            return;
        };
        let chunk_ns = job.work_ns / f64::from(job.chunks);
        let ahead_ns = self.shape.work_ns(BURN_AHEAD_MI) / self.shape.burn_fraction;
        let key = start_v + f64::from(job.chunks_done) * chunk_ns - ahead_ns;
        self.pending.push(Entry { key, job: id });
    }

    fn release_pending(&mut self) {
        while let Some(entry) = self.pending.peek().copied() {
            if entry.key > self.v {
                return;
            }
            self.pending.pop();
            if let Some(due) = self.chunk_due(entry.job) {
                self.ready.push(Entry {
                    key: due,
                    job: entry.job,
                });
            }
        }
    }

    /// The attained service at which the next chunk of a request in service should be done.
    fn chunk_due(&self, id: JobId) -> Option<f64> {
        let job = self.jobs.get(&id)?;
        let Stage::InService { start_v, .. } = job.stage else {
            return None;
        };
        let share = f64::from(job.chunks_done + 1) / f64::from(job.chunks);
        Some(start_v + share * job.work_ns)
    }

    fn next_overdue(&mut self) -> Option<JobId> {
        while let Some(id) = self.overdue.pop_front() {
            if self.jobs.contains_key(&id) {
                return Some(id);
            }
        }
        None
    }

    fn next_ready(&mut self) -> Option<JobId> {
        self.release_pending();
        drop_dead(&mut self.ready, &self.jobs);
        self.ready.pop().map(|entry| entry.job)
    }

    fn rebase(&mut self) {
        if self.v <= self.rebase_above_ns {
            return;
        }
        let base = self.v;
        self.v = 0.0;
        for heap in [&mut self.departures, &mut self.pending, &mut self.ready] {
            let moved = heap.drain().map(|entry| Entry {
                key: entry.key - base,
                ..entry
            });
            *heap = moved.collect::<Vec<_>>().into();
        }
        for job in self.jobs.values_mut() {
            if let Stage::InService { start_v, .. } = &mut job.stage {
                *start_v -= base;
            }
        }
    }
}

fn is_in_service(jobs: &BTreeMap<JobId, Job>, id: JobId) -> bool {
    matches!(
        jobs.get(&id).map(|job| job.stage),
        Some(Stage::InService { .. })
    )
}

/// Pops entries of requests that are gone (canceled) or overdue off the top of a heap.
fn drop_dead(heap: &mut BinaryHeap<Entry>, jobs: &BTreeMap<JobId, Job>) {
    while let Some(entry) = heap.peek() {
        if is_in_service(jobs, entry.job) {
            return;
        }
        heap.pop();
    }
}

#[cfg(test)]
mod tests;
