//! The native engine: every instruction is run, flat out, on lanes that share a ready queue.
//!
//! Under processor sharing a lane takes the oldest ready request, burns one quantum of about a
//! millisecond and puts it back at the end; under first come, first served it burns it to the end.
//! With fractional cores the lanes rest after each quantum so that together they use c cores.
//! Nothing is timed, so the machine is as fast as the host lets it be: it needs as many idle cores
//! as it has lanes, and has not been validated on a host with fewer.

use super::{Done, Totals};
use crate::burn::burn;
use crate::clock::Clock;
use crate::machine::{JobId, Shape};
use schema::stats::Discipline;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Length of a quantum at native speed, s.
const QUANTUM_S: f64 = 1e-3;

/// The engine; see the module.
#[derive(Debug)]
pub(crate) struct Native {
    shape: Shape,
    clock: Clock,
    state: Mutex<State>,
    lanes: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_job: JobId,
    jobs: BTreeMap<JobId, Job>,
    ready: VecDeque<JobId>,
    burning: usize,
    busy_core_ns: f64,
    work_core_ns: f64,
}

#[derive(Debug)]
struct Job {
    request_id: String,
    sender: oneshot::Sender<Done>,
    mi_left: f64,
    arrived_ns: f64,
    started_ns: Option<f64>,
}

impl Native {
    /// Starts `lanes` threads, which live as long as the process.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start(shape: Shape, lanes: usize, clock: Clock) -> std::io::Result<Arc<Self>> {
        let engine = Arc::new(Self {
            shape,
            clock,
            state: Mutex::default(),
            lanes: Condvar::new(),
        });
        for lane in 0..lanes {
            let engine = Arc::clone(&engine);
            thread::Builder::new()
                .name(format!("lane-{lane}"))
                .spawn(move || engine.run_lane())?;
        }
        Ok(engine)
    }

    /// Takes a request; `sender` hears of its end.
    pub(crate) fn submit(&self, mi: f64, request_id: &str, sender: oneshot::Sender<Done>) -> JobId {
        let mut state = self.lock();
        let job = state.next_job;
        state.next_job += 1;
        state.jobs.insert(
            job,
            Job {
                request_id: request_id.into(),
                sender,
                mi_left: mi,
                arrived_ns: self.clock.now_ns(),
                started_ns: None,
            },
        );
        state.ready.push_back(job);
        self.lanes.notify_one();
        job
    }

    /// Takes a request out whose client has gone; a quantum under way is finished first.
    pub(crate) fn cancel(&self, job: JobId) {
        let mut state = self.lock();
        state.jobs.remove(&job);
        state.ready.retain(|ready| *ready != job);
    }

    /// Totals up to the last finished quantum of each lane.
    pub(crate) fn totals(&self) -> Totals {
        let state = self.lock();
        Totals {
            busy_core_ns: state.busy_core_ns,
            work_core_ns: state.work_core_ns,
        }
    }

    /// Request id and work left in core-ms, oldest first.
    pub(crate) fn work_left(&self) -> Vec<(String, f64)> {
        let state = self.lock();
        let left = |job: &Job| {
            (
                job.request_id.clone(),
                self.shape.work_ns(job.mi_left) * 1e-6,
            )
        };
        state.jobs.values().map(left).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_lane(&self) {
        let quantum_mi = self.shape.mips_per_core * QUANTUM_S;
        let mut state = self.lock();
        loop {
            let Some(id) = state.ready.pop_front() else {
                let woken = self.lanes.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let start_ns = self.clock.now_ns();
            let Some(job) = state.jobs.get_mut(&id) else {
                continue;
            };
            job.started_ns.get_or_insert(start_ns);
            let mi = job.mi_left.min(quantum_mi);
            state.burning += 1;
            let rest = self.rest_per_quantum(state.burning);
            drop(state);

            burn(mi);
            let burned_ns = self.clock.now_ns() - start_ns;
            if rest > 0.0 {
                thread::sleep(Duration::from_nanos((burned_ns * rest) as u64));
            }

            state = self.lock();
            state.burning -= 1;
            state.busy_core_ns += burned_ns;
            state.work_core_ns += self.shape.work_ns(mi);
            self.put_back(&mut state, id, mi);
        }
    }

    /// Rest after a quantum, as a multiple of it, so that `burning` lanes use their share of c cores.
    fn rest_per_quantum(&self, burning: usize) -> f64 {
        let rate = match self.shape.discipline {
            Discipline::Ps => self.shape.rate(burning),
            Discipline::Fcfs => self.shape.rate(burning).min(1.0),
        };
        1.0 / rate - 1.0
    }

    fn put_back(&self, state: &mut State, id: JobId, burned_mi: f64) {
        let Some(job) = state.jobs.get_mut(&id) else {
            return;
        };
        job.mi_left -= burned_mi;
        if job.mi_left > 0.0 {
            match self.shape.discipline {
                Discipline::Ps => state.ready.push_back(id),
                Discipline::Fcfs => state.ready.push_front(id),
            }
            return;
        }
        let job = state.jobs.remove(&id).expect("it was there");
        let done = Done {
            arrived_ns: job.arrived_ns,
            started_ns: job.started_ns.unwrap_or(job.arrived_ns),
            ended_ns: self.clock.now_ns(),
            late_burn: false,
        };
        // A receiver that has gone needs no message.
        let _ = job.sender.send(done);
    }
}
