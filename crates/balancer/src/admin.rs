//! The admin listener: what the balancer knows and what may be changed while it runs.

mod backends;
mod guard;
mod listener;
mod metrics;
mod strategy;
mod stream;

pub(crate) use guard::Guard;
pub(crate) use listener::serve;

use crate::core::{Core, ResetError};
use crate::event_log;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, patch, post};
use schema::json::Fields;
use schema::problem::escaped;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Longest piece of what is wrong with a body, which may repeat words of it, in characters.
const MAX_TEXT_CHARS: usize = 400;
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
            ResetError::Log(event_log::Refusal::Exists(_)) => StatusCode::CONFLICT,
            ResetError::Log(event_log::Refusal::System(..)) => StatusCode::INTERNAL_SERVER_ERROR,
            ResetError::Log(event_log::Refusal::NoFile(_))
            | ResetError::Pool(_)
            | ResetError::NoLog => StatusCode::BAD_REQUEST,
        };
        Self(status, e.to_string())
    }
}

/// Reads a JSON object; what is wrong is said with line and column.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    parse(body).map(|Fields(object)| object)
}

/// Reads a JSON list of objects.
fn read_list<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Refused> {
    let list: Vec<Fields<T>> = parse(body)?;
    Ok(list.into_iter().map(|Fields(object)| object).collect())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body)
        .map_err(|e| bad(format!("body: {}", escaped(&e.to_string(), MAX_TEXT_CHARS))))
}

/// Every admin route. Only the two health pages answer whoever asks.
fn router(core: Arc<Core>, guard: Guard) -> Router {
    let guarded = Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics_page))
        .route("/api/state", get(state))
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
        .route("/api/events", get(stream::events))
        .layer(from_fn_with_state(Arc::new(guard), guard::check));
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(guarded)
        .fallback(|uri: Uri| async move {
            Refused(
                StatusCode::NOT_FOUND,
                format!("nothing is at {}", escaped(uri.path(), MAX_TEXT_CHARS)),
            )
        })
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(core)
}

/// The live page: one file, which asks nobody but us.
async fn page() -> Response {
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                  connect-src 'self'; img-src data:; frame-ancestors 'none'";
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Html(include_str!("admin/page.html"))).into_response()
}

async fn state(State(core): State<Arc<Core>>) -> axum::Json<Now> {
    axum::Json(now(&core))
}

/// Ready when there are members that take requests, and every member has answered its statistics page or
/// a request.
async fn ready(State(core): State<Arc<Core>>) -> Response {
    let missing = unseen(&core);
    let text = if nobody_serves(&core) {
        "not ready: no backend takes requests; add one, or end a drain\n".to_string()
    } else if missing.is_empty() {
        return "ready\n".into_response();
    } else {
        format!("not ready: no answer yet from {}\n", missing.join(", "))
    };
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Whether no request can be placed, whatever the backends answer.
fn nobody_serves(core: &Core) -> bool {
    let state = core.lock();
    state.dispatcher.backends().members().all(|b| b.draining)
}

/// Members that never answered, as `name (url)`.
pub(crate) fn unseen(core: &Core) -> Vec<String> {
    let state = core.lock();
    let members = state.dispatcher.backends().members();
    let silent =
        members.filter(|b| b.newest_stats().is_none() && !state.counts.peek(b.id).has_answered());
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

/// The state as pages and streams show it.
#[derive(Serialize)]
struct Now {
    t_ms: f64,
    strategy: String,
    seed: u64,
    protection: &'static str,
    /// Longest wait for answers before a pick; null: nobody is asked.
    ask_first_ms: Option<f64>,
    /// Whether the present strategy has picks that wait.
    asks_first: bool,
    ask_ms_mean: Option<f64>,
    received: u64,
    /// Requests that ended without a dispatch.
    unserved: u64,
    in_flight: usize,
    /// Too few backends are up, so ejections are ignored.
    panic: bool,
    pick_ns_mean: Option<f64>,
    event_log: Option<String>,
    event_log_lines_lost: u64,
    backends: Vec<backends::View>,
    /// Names of the last picks, oldest first.
    last_picks: Vec<String>,
}

fn now(core: &Core) -> Now {
    let state = core.lock();
    let counts = &state.counts;
    let (picks, asks) = (&counts.pick_time, &counts.ask_time);
    let backends = state.dispatcher.backends();
    let name = |id: &strategies::BackendId| Some(backends.get(*id)?.name.to_string());
    Now {
        t_ms: state.clock.now().as_nanos() as f64 / 1e6,
        strategy: state.dispatcher.spec().to_string(),
        seed: state.dispatcher.options().seed,
        protection: state.protection(),
        ask_first_ms: state.asking.wait().map(|d| d.as_secs_f64() * 1e3),
        asks_first: state.asking.applies_to(state.dispatcher.spec()),
        ask_ms_mean: (asks.count > 0).then(|| asks.sum_ns as f64 / asks.count as f64 / 1e6),
        received: counts.received,
        unserved: counts.unserved,
        in_flight: state.dispatcher.open_len(),
        panic: backends.in_panic(),
        pick_ns_mean: (picks.count > 0).then(|| picks.sum_ns as f64 / picks.count as f64),
        event_log: state.log_name().map(str::to_string),
        event_log_lines_lost: state.log_lines_lost(),
        backends: backends::views(&state),
        last_picks: counts.last_picks.iter().filter_map(name).collect(),
    }
}
