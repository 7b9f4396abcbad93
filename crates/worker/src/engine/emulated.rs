//! The pinned engine: a [`Machine`] behind one short mutex, a timing thread and burn lanes.
//!
//! The timing thread sleeps until the next departure, or the next release of a chunk while a lane
//! is idle. It is woken early only when the next event comes sooner than the one it sleeps to; when
//! an arrival slows the others down it wakes at the old time, finds nothing due and sleeps again.
//! Whoever takes the lock first retires what is due, so no departure depends on one thread alone.

use super::{Done, Totals};
use crate::burn::burn;
use crate::clock::Clock;
use crate::machine::{Departure, JobId, Machine, Shape};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest sleep of the timing thread when nothing is due: it is woken when something comes.
const IDLE_SLEEP: Duration = Duration::from_secs(3600);

/// The engine; see the module.
#[derive(Debug)]
pub(crate) struct Emulated {
    clock: Clock,
    state: Mutex<State>,
    timing: Condvar,
    lanes: Condvar,
}

#[derive(Debug)]
struct State {
    machine: Machine,
    waiting: HashMap<JobId, Waiting>,
    /// What the timing thread sleeps to, ns; infinity while it has nothing to wait for.
    wakes_at_ns: f64,
    idle_lanes: usize,
    left: Vec<Departure>,
}

#[derive(Debug)]
struct Waiting {
    request_id: String,
    sender: oneshot::Sender<Done>,
}

impl Emulated {
    /// Starts the timing thread and `lanes` burn threads, which live as long as the process.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start(shape: Shape, lanes: usize, clock: Clock) -> std::io::Result<Arc<Self>> {
        let engine = Arc::new(Self {
            clock,
            state: Mutex::new(State {
                machine: Machine::new(shape),
                waiting: HashMap::new(),
                wakes_at_ns: f64::INFINITY,
                idle_lanes: 0,
                left: Vec::new(),
            }),
            timing: Condvar::new(),
            lanes: Condvar::new(),
        });
        let timing = Arc::clone(&engine);
        thread::Builder::new()
            .name("timing".into())
            .spawn(move || timing.keep_time())?;
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
        let now_ns = self.clock.now_ns();
        let State { machine, left, .. } = &mut *state;
        let job = machine.arrive(now_ns, mi, left);
        state.waiting.insert(
            job,
            Waiting {
                request_id: request_id.into(),
                sender,
            },
        );
        self.after_change(state);
        job
    }

    /// Takes a request out whose client has gone.
    pub(crate) fn cancel(&self, job: JobId) {
        let mut state = self.lock();
        let now_ns = self.clock.now_ns();
        let State { machine, left, .. } = &mut *state;
        machine.cancel(now_ns, job, left);
        state.waiting.remove(&job);
        self.after_change(state);
    }

    /// Totals up to now.
    pub(crate) fn totals(&self) -> Totals {
        let mut state = self.lock();
        let now_ns = self.clock.now_ns();
        let State { machine, left, .. } = &mut *state;
        machine.advance(now_ns, left);
        let totals = Totals {
            busy_core_ns: machine.busy_core_ns(),
            work_core_ns: machine.attained_core_ns(),
        };
        self.after_change(state);
        totals
    }

    /// Request id and work left in core-ms, oldest first.
    pub(crate) fn work_left(&self) -> Vec<(String, f64)> {
        let mut state = self.lock();
        let now_ns = self.clock.now_ns();
        let State {
            machine,
            left,
            waiting,
            ..
        } = &mut *state;
        machine.advance(now_ns, left);
        let list = machine
            .work_left()
            .filter_map(|(job, ns)| Some((waiting.get(&job)?.request_id.clone(), ns * 1e-6)))
            .collect();
        self.after_change(state);
        list
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whom the change concerns and, after letting go of the lock, tells those who left.
    fn after_change(&self, mut state: MutexGuard<'_, State>) {
        let lane_idle = state.idle_lanes > 0;
        if lane_idle && state.machine.has_chunk() {
            self.lanes.notify_one();
        }
        let next_ns = state.machine.next_event_ns(lane_idle);
        if next_ns.is_some_and(|at_ns| at_ns < state.wakes_at_ns) {
            self.timing.notify_one();
        }
        let told = take_left(&mut state);
        drop(state);
        tell(told);
    }

    fn keep_time(&self) {
        // The burn threads keep their normal priority: lowering it was measured to make errors ten
        // times larger, because a preempted burn then misses the end of its request.
        scheduling::ask_short_slice().ok();
        let mut state = self.lock();
        loop {
            let State { machine, left, .. } = &mut *state;
            machine.advance(self.clock.now_ns(), left);
            let lane_idle = state.idle_lanes > 0;
            if lane_idle && state.machine.has_chunk() {
                self.lanes.notify_one();
            }
            if !state.left.is_empty() {
                let told = take_left(&mut state);
                // While it tells, nobody needs to wake this thread: it looks again before it sleeps.
                state.wakes_at_ns = 0.0;
                drop(state);
                tell(told);
                state = self.lock();
                continue;
            }
            let next_ns = state.machine.next_event_ns(lane_idle);
            state.wakes_at_ns = next_ns.unwrap_or(f64::INFINITY);
            let sleep = next_ns.map_or(IDLE_SLEEP, |at_ns| self.until(at_ns));
            if !sleep.is_zero() {
                let woken = self.timing.wait_timeout(state, sleep);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Time from now to a stamp, rounded up so that the event is due when the sleep is over.
    fn until(&self, at_ns: f64) -> Duration {
        Duration::from_nanos((at_ns - self.clock.now_ns()).max(0.0).ceil() as u64).min(IDLE_SLEEP)
    }

    fn run_lane(&self) {
        let mut state = self.lock();
        loop {
            let State { machine, left, .. } = &mut *state;
            machine.advance(self.clock.now_ns(), left);
            if let Some(chunk) = state.machine.take_chunk() {
                self.after_change(state);
                burn(chunk.mi);
                state = self.lock();
                let State { machine, left, .. } = &mut *state;
                machine.finish_chunk(self.clock.now_ns(), chunk.job, left);
            } else if state.left.is_empty() {
                state = self.wait_for_chunk(state);
            } else {
                self.after_change(state);
                state = self.lock();
            }
        }
    }

    fn wait_for_chunk<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.idle_lanes += 1;
        // From now on the timing thread must also wake for the release of a chunk.
        let next_ns = state.machine.next_event_ns(true);
        if next_ns.is_some_and(|at_ns| at_ns < state.wakes_at_ns) {
            self.timing.notify_one();
        }
        let woken = self.lanes.wait(state);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner);
        state.idle_lanes -= 1;
        state
    }
}

/// Those who left and are waited for, with the message for each.
fn take_left(state: &mut State) -> Vec<(oneshot::Sender<Done>, Done)> {
    let State { left, waiting, .. } = state;
    left.drain(..)
        .filter_map(|departure| {
            let waiting = waiting.remove(&departure.job)?;
            Some((waiting.sender, done(&departure)))
        })
        .collect()
}

fn done(departure: &Departure) -> Done {
    Done {
        arrived_ns: departure.arrived_ns,
        started_ns: departure.started_ns,
        ended_ns: departure.ended_ns,
        late_burn: departure.late_burn,
    }
}

/// A receiver that has gone needs no message.
fn tell(told: Vec<(oneshot::Sender<Done>, Done)>) {
    for (sender, done) in told {
        let _ = sender.send(done);
    }
}
