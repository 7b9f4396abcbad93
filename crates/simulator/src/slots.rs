//! The closed loop: a fixed number of calls in flight, made by more callers than that.
//!
//! When a slot frees, the next call is drawn uniformly from the callers that wait, the one that
//! just ended included. A caller makes all calls of an action before it starts the next. The random
//! draw makes the calls of one action independent, which the closed forms of availability assume;
//! with as many callers as slots an action sticks to the backend that freed its slot instead.

use std::sync::{Arc, Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use schema::rng::{Purpose, below, stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::exchange::Exchanger;
use crate::requests::Requests;
use crate::tally::Actions;

/// A caller between two calls.
#[derive(Debug, Clone, Copy, Default)]
struct Caller {
    calls_made: usize,
    all_good: bool,
    /// The action began after the warm-up.
    counts: bool,
}

/// A run of the closed loop.
pub(crate) struct Slots {
    exchanger: Arc<Exchanger>,
    requests: Arc<Requests>,
    stop: CancellationToken,
    calls_per_action: usize,
    warmup: usize,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    waiting: Vec<Caller>,
    next_seq: usize,
    in_slots: usize,
    rng: ChaCha8Rng,
    actions: Actions,
}

impl Slots {
    /// A loop of `callers` callers.
    pub(crate) fn new(
        exchanger: Arc<Exchanger>,
        requests: Arc<Requests>,
        stop: CancellationToken,
        callers: usize,
        calls_per_action: usize,
        warmup: usize,
    ) -> Arc<Self> {
        let seed = requests.workload().seed;
        Arc::new(Self {
            exchanger,
            requests,
            stop,
            calls_per_action,
            warmup,
            state: Mutex::new(State {
                waiting: vec![Caller::default(); callers],
                next_seq: 0,
                in_slots: 0,
                rng: stream(seed, Purpose::Callers, 0, 0),
                actions: Actions {
                    calls_per_action,
                    ..Actions::default()
                },
            }),
            ended: Notify::new(),
        })
    }

    /// Fills `slots` slots and returns when every request has its row; `why` says why the rest was
    /// not sent if the run is stopped.
    pub(crate) async fn run(self: &Arc<Self>, slots: usize, why: impl Fn() -> &'static str) {
        for _ in 0..slots {
            self.start_next();
        }
        let ended = || self.with(|s| s.in_slots == 0);
        while !ended() {
            self.ended.notified().await;
        }
        let rest = self.with(|s| s.next_seq);
        for seq in rest..self.requests.len() {
            self.exchanger
                .refuse(seq, self.exchanger.clock.now_ns(), why());
        }
    }

    /// How the actions ended so far.
    pub(crate) fn actions(&self) -> Actions {
        self.with(|s| {
            let mut actions = s.actions.clone();
            actions.good_share =
                (actions.complete > 0).then(|| actions.good as f64 / actions.complete as f64);
            actions
        })
    }

    /// Takes a slot for the next call, if there is one.
    fn start_next(self: &Arc<Self>) {
        let next = self.with(|s| {
            if self.stop.is_cancelled() || s.next_seq == self.requests.len() {
                return None;
            }
            let drawn = below(&mut s.rng, s.waiting.len() as u64) as usize;
            let mut caller = s.waiting.swap_remove(drawn);
            let seq = s.next_seq;
            if caller.calls_made == 0 {
                caller.all_good = true;
                caller.counts = seq >= self.warmup;
            }
            s.next_seq += 1;
            s.in_slots += 1;
            Some((seq, caller))
        });
        let Some((seq, caller)) = next else { return };
        let prepared = self.requests.prepare(seq, self.exchanger.clock.now_ns());
        let this = Arc::clone(self);
        self.exchanger.launch(prepared, move |good| {
            this.with(|s| this.end_call(s, caller, good));
            this.start_next();
            this.ended.notify_one();
        });
    }

    fn end_call(&self, state: &mut State, mut caller: Caller, good: bool) {
        caller.calls_made += 1;
        caller.all_good &= good;
        if caller.calls_made == self.calls_per_action {
            if caller.counts {
                state.actions.complete += 1;
                state.actions.good += u64::from(caller.all_good);
            }
            caller = Caller::default();
        }
        state.waiting.push(caller);
        state.in_slots -= 1;
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
