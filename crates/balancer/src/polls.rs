//! Asks every worker for its statistics, each by its own loop, so that a hanging one delays nobody.

use crate::core::Core;
use schema::json::Fields;
use schema::report::Source;
use schema::stats::Stats;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use strategies::BackendId;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

/// Largest statistics page that is read, bytes.
const MAX_STATS_BYTES: usize = 1 << 20;
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
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PROBE_TIMEOUT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(PROBES_AT_ONCE)
        .build();
    let client = match client {
        Ok(client) => client,
        Err(e) => {
            tracing::error!("probes: {e}");
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
    let (epoch, mark, page) = {
        let mut state = core.lock();
        let backend = state.dispatcher.backends().get(id);
        let Some(page) = backend.map(|b| format!("{}/stats", b.url)) else {
            return;
        };
        let Some(mark) = state.mark_poll(id) else {
            return;
        };
        (state.epoch, mark, page)
    };
    let answer = fetch(&client, &page).await;
    let mut state = core.lock();
    match answer {
        Ok(stats) => {
            state.counts.of(id).probes += 1;
            if state.epoch == epoch {
                state.report(id, Some(mark), stats.to_report(Source::Probe, 0));
            }
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
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(polling.timeout)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(1)
        .build();
    let client = match client {
        Ok(client) => client,
        Err(e) => {
            tracing::error!("polls of {url}: {e}");
            return;
        }
    };
    let page = format!("{url}/stats");
    let mut ticks = tokio::time::interval(polling.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut named: Option<tokio::time::Instant> = None;
    loop {
        ticks.tick().await;
        let (epoch, mark) = {
            let mut state = core.lock();
            let Some(mark) = state.mark_poll(id) else {
                return;
            };
            (state.epoch, mark)
        };
        match fetch(&client, &page).await {
            Ok(stats) => {
                let mut state = core.lock();
                state.counts.of(id).polls += 1;
                // A poll that left before a reset knows nothing of the new run's counts.
                if state.epoch == epoch {
                    state.report(id, Some(mark), stats.to_report(Source::Poll, 0));
                }
                if named.take().is_some() {
                    tracing::info!("{url} answers its statistics page");
                }
            }
            Err(e) => {
                core.lock().counts.of(id).polls_failed += 1;
                if named.is_none_or(|at| at.elapsed() >= NAME_UNREACHABLE_EVERY) {
                    tracing::warn!("{page} does not answer: {e:#}");
                    named = Some(tokio::time::Instant::now());
                }
            }
        }
    }
}

async fn fetch(client: &reqwest::Client, page: &str) -> anyhow::Result<Stats> {
    let answer = client.get(page).send().await?.error_for_status()?;
    let bytes = read_at_most(answer, MAX_STATS_BYTES).await?;
    Ok(serde_json::from_slice::<Fields<Stats>>(&bytes)?.0)
}

/// The body of an answer, given up as soon as it is longer than `most` bytes, whatever length its
/// head tells.
pub(crate) async fn read_at_most(
    mut answer: reqwest::Response,
    most: usize,
) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await? {
        anyhow::ensure!(
            bytes.len() + part.len() <= most,
            "the answer is above {most} bytes"
        );
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}
