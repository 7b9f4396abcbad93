//! `/api/strategy`, `/api/strategies` and `/api/reset`.

use super::{Refused, bad, now, read};
use crate::core::Core;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strategies::Spec;

/// The strategy now in force.
#[derive(Serialize)]
pub(super) struct Current {
    strategy: String,
    name: &'static str,
    summary: &'static str,
    seed: u64,
}

pub(super) async fn show(State(core): State<Arc<Core>>) -> Json<Current> {
    let state = core.lock();
    let spec = state.dispatcher.spec();
    Json(Current {
        strategy: spec.to_string(),
        name: spec.entry().name,
        summary: spec.entry().summary,
        seed: state.dispatcher.options().seed,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    strategy: String,
}

pub(super) async fn set(
    State(core): State<Arc<Core>>,
    body: Bytes,
) -> Result<Json<Current>, Refused> {
    let wanted: Wanted = read(&body)?;
    let spec = Spec::parse_live(&wanted.strategy).map_err(bad)?;
    core.lock().set_strategy(&spec).map_err(bad)?;
    tracing::info!("strategy is now {spec}");
    Ok(show(State(core)).await)
}

pub(super) async fn known() -> Json<Vec<strategies::registry::Description>> {
    Json(strategies::registry::describe())
}

/// A new run. Everything left out stays as it is.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Reset {
    strategy: Option<String>,
    seed: Option<u64>,
    event_log: Option<String>,
}

pub(super) async fn reset(
    State(core): State<Arc<Core>>,
    body: Bytes,
) -> Result<Json<serde_json::Value>, Refused> {
    let reset: Reset = if body.iter().all(u8::is_ascii_whitespace) {
        Reset::default()
    } else {
        read(&body)?
    };
    let spec = reset
        .strategy
        .map(|s| Spec::parse_live(&s).map_err(bad))
        .transpose()?;
    if let Some(name) = &reset.event_log
        && !is_plain_file_name(name)
    {
        let name = schema::problem::printable(name);
        return Err(bad(format!(
            "event_log: \"{name}\" is no plain file name (allowed: 1 to 128 of letters, digits, . _ -)"
        )));
    }
    let file = reset.event_log.as_deref();
    let old_log = core.lock().reset(spec.as_ref(), reset.seed, file)?;
    if let Some(complete) = old_log {
        let heard = tokio::task::spawn_blocking(move || complete.recv()).await;
        let trouble = match heard {
            Ok(Ok(loss)) => loss.map(|loss| loss.to_string()),
            _ => Some("the writer of the event log is gone".into()),
        };
        if let Some(trouble) = trouble {
            let text = format!("{trouble}; the new run has begun");
            return Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, text));
        }
    }
    let view = serde_json::to_value(now(&core)).map_err(bad)?;
    Ok(Json(view))
}

/// A file beside the event log, never a path.
fn is_plain_file_name(name: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=128).contains(&name.len()) && name.bytes().all(fine) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::is_plain_file_name;

    #[test]
    fn a_log_name_never_leaves_its_folder() {
        assert!(is_plain_file_name("b01-a1.jsonl"));
        for bad in [
            "",
            "..",
            "../x",
            "a/b",
            "/etc/passwd",
            ".hidden",
            "a b",
            &"x".repeat(129),
        ] {
            assert!(!is_plain_file_name(bad), "{bad}");
        }
    }
}
