//! Asks every worker for its statistics, each by its own loop, so that a hanging one delays nobody.

use crate::core::Core;
use crate::questions::{self, Question};
use schema::report::Source;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use strategies::BackendId;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

/// A worker that does not answer is named in the log this often at most.
const NAME_UNREACHABLE_EVERY: Duration = Duration::from_secs(10);

/// How polls are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polling {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl Polling {
    /// Polls every `interval`; an answer later than four fifths of it is given up.
    pub(crate) fn every(interval: Duration) -> Self {
        Self {
            interval,
            timeout: interval.mul_f64(0.8),
        }
    }
}

/// A probe is given up after this long (Wydrowski et al. 2024).
const PROBE_TIMEOUT: Duration = Duration::from_millis(3);
/// Probes under way at once at most; the rest waits its turn.
const PROBES_AT_ONCE: usize = 64;

/// Asks for reports as the strategy wishes them. A probe that is late says nothing.
pub(crate) async fn probe(core: Arc<Core>) {
    let Some(mut asked) = core.take_probes() else {
        return;
    };
    let client = match questions::client(PROBE_TIMEOUT, PROBES_AT_ONCE) {
        Ok(client) => client,
        Err(e) => {
            tracing::error!("probes: {e:#}");
            return;
        }
    };
    let mut under_way = JoinSet::new();
    while let Some(id) = asked.recv().await {
        while under_way.try_join_next().is_some() {}
        if under_way.len() >= PROBES_AT_ONCE {
            under_way.join_next().await;
        }
        under_way.spawn(probe_once(Arc::clone(&core), client.clone(), id));
    }
}

async fn probe_once(core: Arc<Core>, client: reqwest::Client, id: BackendId) {
    let Some(question) = Question::leave(&core, id) else {
        return;
    };
    let answer = question.answer(&client).await;
    let mut state = core.lock();
    match answer {
        Ok(stats) => {
            state.counts.of(id).probes += 1;
            question.report(&mut state, &stats, Source::Probe);
        }
        Err(_) => state.counts.of(id).probes_failed += 1,
    }
}

/// Keeps one loop per member, following the pool as it changes.
pub(crate) async fn run(core: Arc<Core>, polling: Polling) {
    let mut loops: BTreeMap<BackendId, AbortHandle> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut look = tokio::time::interval(Duration::from_millis(100));
    loop {
        look.tick().await;
        let members: BTreeMap<BackendId, Arc<str>> = {
            let state = core.lock();
            state
                .dispatcher
                .backends()
                .members()
                .map(|b| (b.id, Arc::clone(&b.url)))
                .collect()
        };
        loops.retain(|id, handle| {
            let stays = members.contains_key(id);
            if !stays {
                handle.abort();
            }
            stays
        });
        for (id, url) in members {
            loops
                .entry(id)
                .or_insert_with(|| tasks.spawn(poll(Arc::clone(&core), id, url, polling)));
        }
        while tasks.try_join_next().is_some() {}
    }
}

async fn poll(core: Arc<Core>, id: BackendId, url: Arc<str>, polling: Polling) {
    let client = match questions::client(polling.timeout, 1) {
        Ok(client) => client,
        Err(e) => {
            tracing::error!("polls of {url}: {e:#}");
            return;
        }
    };
    let mut ticks = tokio::time::interval(polling.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut named: Option<tokio::time::Instant> = None;
    loop {
        ticks.tick().await;
        let Some(question) = Question::leave(&core, id) else {
            return;
        };
        match question.answer(&client).await {
            Ok(stats) => {
                let mut state = core.lock();
                state.counts.of(id).polls += 1;
                question.report(&mut state, &stats, Source::Poll);
                if named.take().is_some() {
                    tracing::info!("{url} answers its statistics page");
                }
            }
            Err(e) => {
                core.lock().counts.of(id).polls_failed += 1;
                if named.is_none_or(|at| at.elapsed() >= NAME_UNREACHABLE_EVERY) {
                    tracing::warn!("{} does not answer: {e:#}", question.page);
                    named = Some(tokio::time::Instant::now());
                }
            }
        }
    }
}
