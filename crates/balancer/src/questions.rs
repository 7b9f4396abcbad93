//! One question to a worker: `GET /stats`, and what it says as a report that was true when it left (O6).

use crate::core::{Core, State};
use crate::settings::UPSTREAM_IDLE;
use anyhow::Context as _;
use schema::json::Fields;
use schema::report::Source;
use schema::stats::Stats;
use std::time::Duration;
use strategies::{BackendId, PollMark};

/// Largest statistics page that is read, bytes.
const MAX_STATS_BYTES: usize = 1 << 20;

/// A client that keeps up to `kept` idle connections to each worker and gives a question up after
/// `patience`. Connections run on the thread that asks.
///
/// # Errors
/// The HTTP library cannot be set up.
pub(crate) fn client(patience: Duration, kept: usize) -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(patience)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(kept)
        .pool_idle_timeout(UPSTREAM_IDLE)
        .build()
        .context("cannot set up the client that asks workers for their statistics")
}

/// A question that leaves now.
pub(crate) struct Question {
    pub(crate) page: String,
    id: BackendId,
    epoch: u64,
    mark: PollMark,
}

impl Question {
    /// Marks this moment; `None` if the backend is no member any more.
    pub(crate) fn leave(core: &Core, id: BackendId) -> Option<Self> {
        let mut state = core.lock();
        let url = &state.dispatcher.backends().get(id)?.url;
        let page = format!("{url}/stats");
        let mark = state.mark_poll(id)?;
        Some(Self {
            page,
            id,
            epoch: state.epoch,
            mark,
        })
    }

    /// Waits for the worker's statement.
    ///
    /// # Errors
    /// It does not come in the client's patience, is too long or no statement.
    pub(crate) async fn answer(&self, client: &reqwest::Client) -> anyhow::Result<Stats> {
        let answer = client.get(&self.page).send().await?.error_for_status()?;
        let bytes = read_at_most(answer, MAX_STATS_BYTES).await?;
        Ok(serde_json::from_slice::<Fields<Stats>>(&bytes)?.0)
    }

    /// Hands the statement to the dispatcher, which drops what is older than it has (O5). A question
    /// that left before a reset knows nothing of the new run's counts.
    pub(crate) fn report(self, state: &mut State, stats: &Stats, source: Source) {
        if state.epoch == self.epoch {
            state.report(self.id, Some(self.mark), stats.to_report(source, 0));
        }
    }
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
