//! The state as server-sent events, for the live page and for scripts.

use super::{Refused, bad, now};
use crate::core::Core;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Streams open at once in this process.
const MAX_STREAMS: usize = 64;
const DEFAULT_INTERVAL: Duration = Duration::from_millis(250);
const MIN_INTERVAL: Duration = Duration::from_millis(50);
const MAX_INTERVAL: Duration = Duration::from_secs(60);

static STREAMS: AtomicUsize = AtomicUsize::new(0);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    interval: Option<String>,
}

/// One open stream; gives its place back when it ends.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let before = STREAMS.fetch_add(1, Ordering::Relaxed);
        let place = Self;
        (before < MAX_STREAMS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The JSON of `/api/state` every `?interval=250ms`.
pub(super) async fn events(
    State(core): State<Arc<Core>>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Refused> {
    let parsed = wanted.interval.as_deref().map(schema::duration::parse);
    let every = parsed
        .transpose()
        .map_err(|e| bad(format!("interval: {e}")))?
        .unwrap_or(DEFAULT_INTERVAL);
    if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&every) {
        return Err(bad("interval: must be between 50ms and 60s"));
    }
    let place = Place::take().ok_or_else(|| {
        let text = format!("{MAX_STREAMS} event streams are open already; close one");
        Refused(StatusCode::SERVICE_UNAVAILABLE, text)
    })?;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let stream = unfold((core, ticks, place), next);
    Ok(Sse::new(stream)
        .keep_alive(KeepAlive::default())
        .into_response())
}

type Streaming = (Arc<Core>, Interval, Place);

async fn next(
    (core, mut ticks, place): Streaming,
) -> Option<(Result<Event, Infallible>, Streaming)> {
    ticks.tick().await;
    let event = Event::default().json_data(now(&core)).ok()?;
    Some((Ok(event), (core, ticks, place)))
}
