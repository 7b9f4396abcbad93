//! `/api/backends` and `/api/reports`.

use super::{Refused, bad, read, read_list};
use crate::cli::Given;
use crate::core::{Core, State, usage};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use schema::report::{Report, Source};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strategies::ejection::{Phase, Standing};
use strategies::{Backend, BackendId, PoolError};

/// One backend as the API shows it.
#[derive(Serialize)]
pub(super) struct View {
    name: String,
    url: String,
    weight: u32,
    cores: f64,
    memory_gb: f64,
    state: &'static str,
    in_flight: u32,
    /// Fast failures that strategies still count as in flight.
    held: u32,
    active_requests: Option<u32>,
    mean_latency_ms_last_50: Option<f64>,
    stats_age_ms: Option<f64>,
    cpu_percent: Option<f64>,
    memory_mib: Option<f64>,
    picks: u64,
    /// Picks that tried it out after an ejection.
    trials: u64,
    ejections: u64,
    /// Since the run began, as in `t_ms`; past while it is on trial.
    ejected_until_ms: Option<f64>,
    ejected_seconds: f64,
    ok: u64,
    /// Answers of status 400 to 499 but 429; neither ok nor the backend's fault.
    client_errors: u64,
    errors: u64,
    cancelled: u64,
    /// Sum over all ok answers, so that two looks give the mean between them.
    latency_ms_sum: f64,
    utilization: Option<f64>,
    seen: bool,
    latency_ms_recent: Option<f64>,
    polls: u64,
    polls_failed: u64,
    /// Asked before picks; answered in time.
    questions: u64,
    questions_answered: u64,
    connections_opened: u64,
    connections_reused: u64,
}

/// The state's one word; more than one can apply, the operator's comes first.
pub(super) fn word(backend: &Backend, standing: &Standing) -> &'static str {
    match standing.phase {
        _ if backend.draining => "draining",
        _ if backend.ejected_until.is_none() => "up",
        Phase::Trial { .. } => "trial",
        Phase::Ejected { .. } | Phase::InService => "ejected",
    }
}

/// Every member, position order.
pub(super) fn views(state: &State) -> Vec<View> {
    let view = |b: &Backend| {
        let known = state.dispatcher.candidate(b);
        let counts = state.counts.peek(b.id);
        let usage = usage(b);
        let standing = state.dispatcher.standing(b.id);
        let tally = standing.tally;
        View {
            name: b.name.to_string(),
            url: b.url.to_string(),
            weight: b.weight,
            cores: b.cores,
            memory_gb: b.memory_mib / 1024.0,
            state: word(b, &standing),
            in_flight: b.unanswered(),
            held: b.held,
            active_requests: known.active,
            mean_latency_ms_last_50: known.mean_latency_50_ms,
            stats_age_ms: known.age_ns.map(|ns| ns as f64 / 1e6),
            cpu_percent: usage.and_then(|r| r.cpu_percent),
            memory_mib: usage.and_then(|r| r.memory_used_mib),
            picks: counts.picks,
            trials: tally.trials,
            ejections: tally.ejections.iter().sum(),
            ejected_until_ms: b.ejected_until.map(|t| t.as_nanos() as f64 / 1e6),
            ejected_seconds: tally.ejected_ns as f64 / 1e9,
            ok: counts.ok,
            client_errors: counts.client_error,
            errors: counts.errors(),
            cancelled: counts.cancelled,
            latency_ms_sum: counts.latency_sum_ms(),
            utilization: b.newest_stats().and_then(|r| r.utilization),
            seen: b.newest_stats().is_some() || counts.has_answered(),
            latency_ms_recent: counts.recent_mean_ms(),
            polls: counts.polls,
            polls_failed: counts.polls_failed,
            questions: counts.questions.all(),
            questions_answered: counts.questions.answered,
            connections_opened: counts.connections_opened,
            connections_reused: counts.connections_reused,
        }
    };
    state.dispatcher.backends().members().map(view).collect()
}

pub(super) async fn list(FromState(core): FromState<Arc<Core>>) -> Json<Vec<View>> {
    Json(views(&core.lock()))
}

/// A backend to add, as the API takes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: Option<String>,
    url: String,
    weight: Option<u32>,
    cores: Option<f64>,
    memory_gb: Option<f64>,
}

impl New {
    /// Checked by the rules of the command line.
    fn check(&self) -> Result<strategies::NewBackend, String> {
        let text = |value: Option<f64>| value.map(|v| v.to_string());
        let weight = self.weight.map(|v| v.to_string());
        let (cores, memory_gb) = (text(self.cores), text(self.memory_gb));
        Given {
            name: self.name.as_deref(),
            url: &self.url,
            weight: weight.as_deref(),
            cores: cores.as_deref(),
            memory_gb: memory_gb.as_deref(),
        }
        .check()
    }
}

pub(super) async fn add(
    FromState(core): FromState<Arc<Core>>,
    body: Bytes,
) -> Result<(StatusCode, Json<Vec<View>>), Refused> {
    let new: New = read(&body)?;
    let new = new.check().map_err(bad)?;
    let mut state = core.lock();
    state.add(&new).map_err(refused)?;
    Ok((StatusCode::CREATED, Json(views(&state))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    weight: u32,
}

pub(super) async fn change(
    FromState(core): FromState<Arc<Core>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<Vec<View>>, Refused> {
    let change: Change = read(&body)?;
    with(&core, &name, |state, id| {
        state.set_weight(id, change.weight)
    })
}

pub(super) async fn remove(
    FromState(core): FromState<Arc<Core>>,
    Path(name): Path<String>,
) -> Result<Json<Vec<View>>, Refused> {
    with(&core, &name, State::remove)
}

pub(super) async fn drain(
    FromState(core): FromState<Arc<Core>>,
    Path(name): Path<String>,
) -> Result<Json<Vec<View>>, Refused> {
    with(&core, &name, State::drain)
}

pub(super) async fn undrain(
    FromState(core): FromState<Arc<Core>>,
    Path(name): Path<String>,
) -> Result<Json<Vec<View>>, Refused> {
    with(&core, &name, State::undrain)
}

/// One engine report: CPU and memory of a backend.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineReport {
    backend: String,
    cpu_percent: Option<f64>,
    memory_used_bytes: Option<u64>,
}

pub(super) async fn reports(
    FromState(core): FromState<Arc<Core>>,
    body: Bytes,
) -> Result<StatusCode, Refused> {
    let reports: Vec<EngineReport> = read_list(&body)?;
    let mut state = core.lock();
    // All or nothing: a report for an unknown backend takes none of the others in.
    let mut ids = Vec::with_capacity(reports.len());
    for (i, report) in reports.iter().enumerate() {
        if report
            .cpu_percent
            .is_some_and(|v| !v.is_finite() || v < 0.0)
        {
            return Err(bad(format!("[{i}].cpu_percent: must be 0 or more")));
        }
        ids.push(find(&state, &report.backend)?);
    }
    for (id, given) in ids.into_iter().zip(reports) {
        let report = Report {
            cpu_percent: given.cpu_percent,
            memory_used_mib: given.memory_used_bytes.map(|b| b as f64 / 1_048_576.0),
            ..Report::empty(Source::Docker, 0)
        };
        state.report(id, None, report);
    }
    Ok(StatusCode::NO_CONTENT)
}

fn with(
    core: &Core,
    name: &str,
    change: impl FnOnce(&mut State, BackendId) -> Result<(), PoolError>,
) -> Result<Json<Vec<View>>, Refused> {
    let mut state = core.lock();
    let id = find(&state, name)?;
    change(&mut state, id).map_err(refused)?;
    Ok(Json(views(&state)))
}

fn find(state: &State, name: &str) -> Result<BackendId, Refused> {
    state.named(name).map(|b| b.id).ok_or_else(|| {
        let known: Vec<_> = state
            .dispatcher
            .backends()
            .members()
            .map(|b| &*b.name)
            .collect();
        let text = format!(
            "no backend is called \"{}\"; known: {}",
            schema::problem::printable(name),
            known.join(", ")
        );
        Refused(StatusCode::NOT_FOUND, text)
    })
}

fn refused(e: PoolError) -> Refused {
    let status = match e {
        PoolError::DuplicateName(_) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    };
    Refused(status, e.to_string())
}
