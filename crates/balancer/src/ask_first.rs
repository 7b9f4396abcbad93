//! Asks every eligible backend for a report before a pick, and waits for the answers.
//!
//! Counts that a balancer keeps itself know nothing of what other balancers sent, and reports that it
//! polls are as old as the interval; a question of half a millisecond is fresh. All of them leave at
//! once, each on a kept connection of the thread that asks. The pick waits until all have ended, well
//! or badly, or until the wait is over, and takes what is known then.
//!
//! An answer that comes after its pick is no less true: it is taken in as a report of the time its
//! question left, for the picks to come, and dropped if something newer is known (O5). So a slow worker
//! keeps its connections, and a hanging one holds [`QUESTIONS_AT_ONCE`] of them at most. Who finds all
//! of these taken waits his turn until his own wait is over.
//!
//! Cost: one question per eligible backend and request. Not for strategies that read no reports: they
//! are never asked for, whatever the flag says.

use crate::core::Core;
use crate::questions::{self, Question};
use schema::report::Source;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use strategies::registry::Read;
use strategies::{BackendId, Dispatcher, Spec};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};

/// Questions to one worker under way at most, over all threads.
const QUESTIONS_AT_ONCE: usize = 64;
/// A question without an answer is given up after this long: the longest wait that may be asked for, so
/// that no pick waits for a question that is already given up.
const GIVEN_UP_AFTER: Duration = schema::ask_first::MOST;

/// The wait, and the turns at each worker. Part of what the dispatcher's lock guards.
pub(crate) struct Asking {
    wait: Option<Duration>,
    /// By base URL, since that is who answers: a reset and a backend that joins again change nothing of
    /// what is under way there. Those of workers that have left go when their last question ends.
    turns: BTreeMap<Arc<str>, Arc<Semaphore>>,
}

/// Whom to ask, with their turns.
type Round = Vec<(BackendId, Arc<Semaphore>)>;

impl Asking {
    /// Before each pick with this wait; `None`: never.
    pub(crate) fn new(wait: Option<Duration>) -> Self {
        Self {
            wait,
            turns: BTreeMap::new(),
        }
    }

    /// The longest wait before a pick, whether the present strategy has one or not.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Whether picks of this strategy wait for answers.
    pub(crate) fn applies_to(&self, spec: &Spec) -> bool {
        let entry = spec.entry();
        self.wait.is_some() && (entry.reads(Read::Poll) || entry.reads(Read::Probe))
    }

    /// Everybody whom the present strategy could pick now.
    pub(crate) fn round(&mut self, dispatcher: &Dispatcher, tried: &[BackendId]) -> Round {
        if !self.applies_to(dispatcher.spec()) {
            return Vec::new();
        }
        let backends = dispatcher.backends();
        let eligible = backends.available_ids().iter();
        let eligible = eligible.filter(|id| !tried.contains(id));
        let eligible = eligible.filter_map(|id| backends.get(*id));
        let round = eligible
            .map(|backend| {
                let turns = self
                    .turns
                    .entry(Arc::clone(&backend.url))
                    .or_insert_with(|| Arc::new(Semaphore::new(QUESTIONS_AT_ONCE)));
                (backend.id, Arc::clone(turns))
            })
            .collect();
        if self.turns.len() > backends.members().count() {
            self.turns.retain(|url, turns| {
                Arc::strong_count(turns) > 1 || backends.members().any(|b| b.url == *url)
            });
        }
        round
    }
}

/// What one thread asks with.
pub(crate) struct Asker {
    core: Arc<Core>,
    client: reqwest::Client,
    wait: Duration,
}

impl Asker {
    /// One whose questions keep a pick waiting for `wait` at most.
    ///
    /// # Errors
    /// The HTTP library cannot be set up.
    pub(crate) fn new(core: Arc<Core>, wait: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            core,
            client: questions::client(GIVEN_UP_AFTER, QUESTIONS_AT_ONCE)?,
            wait,
        })
    }

    /// Asks before a pick and returns when all have answered or nothing more is waited for, `at_most`
    /// at the latest. Timers count whole milliseconds, so the wait may end one late.
    pub(crate) async fn ask(&self, tried: &[BackendId], at_most: Instant) {
        let round = self.core.lock().whom_to_ask(tried);
        if round.is_empty() {
            return;
        }
        let asked_at = Instant::now();
        let until = at_most.min(asked_at + self.wait);
        // Nothing is ever sent: it closes when the last question has ended.
        let (open, mut all_ended) = mpsc::channel::<Infallible>(1);
        for (id, turns) in round {
            let (core, client) = (Arc::clone(&self.core), self.client.clone());
            let open = open.clone();
            // On its own, so that it reaches its end though the client or the pick does not wait.
            tokio::spawn(async move {
                question(&core, &client, id, turns, until).await;
                drop(open);
            });
        }
        drop(open);
        // Either end will do.
        let _ = timeout_at(until, all_ended.recv()).await;
        let waited_ns = asked_at.elapsed().as_nanos() as u64;
        self.core.lock().counts.ask_time.record(waited_ns);
    }
}

async fn question(
    core: &Core,
    client: &reqwest::Client,
    id: BackendId,
    turns: Arc<Semaphore>,
    until: Instant,
) {
    let Ok(Ok(_turn)) = timeout_at(until, turns.acquire_owned()).await else {
        core.lock().counts.of(id).questions.unsent += 1;
        return;
    };
    let Some(question) = Question::leave(core, id) else {
        return;
    };
    let answer = question.answer(client).await;
    let mut state = core.lock();
    let counts = &mut state.counts.of(id).questions;
    match answer {
        Ok(stats) => {
            if Instant::now() <= until {
                counts.answered += 1;
            } else {
                counts.late += 1;
            }
            question.report(&mut state, &stats, Source::Probe);
        }
        Err(_) => counts.failed += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Asking, QUESTIONS_AT_ONCE};
    use std::sync::Arc;
    use std::time::Duration;
    use strategies::{BackendId, Dispatcher, NewBackend, Options, Time};

    fn member(name: &str) -> NewBackend {
        NewBackend {
            name: name.to_string(),
            url: format!("http://{name}:9"),
            weight: 1,
            cores: 1.0,
            memory_mib: 1024.0,
        }
    }

    fn pool(strategy: &str) -> Dispatcher {
        let members = ["a", "b", "c"].map(member);
        Dispatcher::new(&strategy.parse().unwrap(), &members, Options::default()).unwrap()
    }

    #[test]
    fn all_rounds_share_the_turns_of_a_worker_and_leave_out_who_cannot_be_picked() {
        let mut pool = pool("polled-own-sends");
        let mut asking = Asking::new(Some(Duration::from_millis(3)));
        let first = asking.round(&pool, &[]);
        assert_eq!(first.len(), 3);
        let _taken = first[0]
            .1
            .try_acquire_many(QUESTIONS_AT_ONCE as u32)
            .unwrap();
        pool.drain(Time::from_nanos(1), BackendId(1)).unwrap();
        let second = asking.round(&pool, &[BackendId(2)]);
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].0, BackendId(0));
        assert!(
            second[0].1.try_acquire().is_err(),
            "another round has them all"
        );
    }

    #[test]
    fn nobody_is_asked_without_a_wait_or_by_a_strategy_that_reads_no_reports() {
        let wait = Some(Duration::from_millis(3));
        for (strategy, wait, asked) in [
            ("prequal", wait, 3),
            ("wl-mc:reports=work", wait, 3),
            ("wl-mc:reports=work", None, 0),
            ("round-robin", wait, 0),
            ("weighted-least-request", wait, 0),
            // Reads latencies alone.
            ("peak-ewma", wait, 0),
        ] {
            let round = Asking::new(wait).round(&pool(strategy), &[]);
            assert_eq!(round.len(), asked, "{strategy}");
        }
    }

    #[test]
    fn the_turns_of_workers_that_have_left_are_kept_until_their_last_question_ends() {
        let mut pool = pool("polled-own-sends");
        let mut asking = Asking::new(Some(Duration::from_millis(3)));
        let under_way = Arc::clone(&asking.round(&pool, &[])[0].1);
        for (at, id) in [(1, 0), (2, 1)] {
            pool.remove(Time::from_nanos(at), BackendId(id)).unwrap();
        }
        assert_eq!(asking.round(&pool, &[]).len(), 1);
        assert_eq!(asking.turns.len(), 2);
        drop(under_way);
        asking.round(&pool, &[]);
        assert_eq!(asking.turns.len(), 1);
    }
}
