//! The admin listener: what the balancer knows and what may be changed while it runs.

mod backends;
mod metrics;
mod strategy;

use crate::core::{Core, ResetError};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, patch, post};
use futures_util::Stream;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// The live page is told this often.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// Largest body of an admin request, bytes.
const MAX_BODY_BYTES: usize = 1 << 20;

/// A refused admin request: status and one line of text.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.1 });
        (self.0, axum::Json(body)).into_response()
    }
}

fn bad(text: impl std::fmt::Display) -> Refused {
    Refused(StatusCode::BAD_REQUEST, text.to_string())
}

impl From<ResetError> for Refused {
    fn from(e: ResetError) -> Self {
        let status = match &e {
            ResetError::Pool(strategies::PoolError::InFlight(_)) => StatusCode::CONFLICT,
            ResetError::Log(_) => StatusCode::INTERNAL_SERVER_ERROR,
            ResetError::Pool(_) | ResetError::NoLog => StatusCode::BAD_REQUEST,
        };
        Self(status, e.to_string())
    }
}

/// Reads a JSON body; what is wrong is said with line and column.
fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|e| bad(format!("body: {e}")))
}

/// Every admin route.
pub(crate) fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("admin/page.html")) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_page))
        .route("/api/backends", get(backends::list).post(backends::add))
        .route(
            "/api/backends/{name}",
            patch(backends::change).delete(backends::remove),
        )
        .route("/api/backends/{name}/drain", post(backends::drain))
        .route("/api/backends/{name}/undrain", post(backends::undrain))
        .route("/api/strategy", get(strategy::show).put(strategy::set))
        .route("/api/strategies", get(strategy::known))
        .route("/api/reports", post(backends::reports))
        .route("/api/reset", post(strategy::reset))
        .route("/api/events", get(events))
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(core)
}

/// Ready when every member has answered its statistics page or a request.
async fn ready(State(core): State<Arc<Core>>) -> Response {
    let missing = unseen(&core);
    if missing.is_empty() {
        return "ready\n".into_response();
    }
    let text = format!("not ready: no answer yet from {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Members that never answered, as `name (url)`.
pub(crate) fn unseen(core: &Core) -> Vec<String> {
    let state = core.lock();
    let members = state.dispatcher.backends().members();
    let silent = members.filter(|b| b.newest_stats().is_none() && state.counts.peek(b.id).ok == 0);
    silent.map(|b| format!("{} ({})", b.name, b.url)).collect()
}

async fn metrics_page(State(core): State<Arc<Core>>) -> Response {
    match metrics::render(&core) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(e) => Refused(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

#[derive(Serialize)]
struct Now {
    t_ms: f64,
    strategy: String,
    received: u64,
    in_flight: usize,
    pick_ns_mean: Option<f64>,
    backends: Vec<backends::View>,
}

fn now(core: &Core) -> Now {
    let state = core.lock();
    let picks = &state.counts.pick_time;
    Now {
        t_ms: state.clock.now().as_nanos() as f64 / 1e6,
        strategy: state.dispatcher.spec().to_string(),
        received: state.counts.received,
        in_flight: state.dispatcher.open_len(),
        pick_ns_mean: (picks.count > 0).then(|| picks.sum_ns as f64 / picks.count as f64),
        backends: backends::views(&state),
    }
}

async fn events(
    State(core): State<Arc<Core>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let ticks = tokio::time::interval(TELL_EVERY);
    let stream = futures_util::stream::unfold((core, ticks), |(core, mut ticks)| async move {
        ticks.tick().await;
        let text = serde_json::to_string(&now(&core)).unwrap_or_default();
        Some((Ok(Event::default().data(text)), (core, ticks)))
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}
