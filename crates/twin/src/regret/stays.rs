//! From what was recorded of a run to the stays at its workers.
//!
//! The time between pick and outcome that a request did not spend at its worker is taken as half on the
//! way there, half on the way back. The worker tells whole microseconds: a difference within their
//! rounding is none.

use super::log::Dispatch;
use super::rebuild::Stay;
use super::refuse;
use super::rows::{Request, Run};
use schema::problem::{Problem, Problems};

/// Two times cut off at whole microseconds.
const ROUNDING_NS: f64 = 2000.0;
const NS_PER_MS: f64 = 1e6;

/// By the balancer's log. `mi_per_ms` is the nominal speed of a core.
///
/// # Errors
/// An answered request that the log does not have, a dispatch of a request that the rows do not have.
pub(super) fn from_log(
    run: &Run,
    dispatches: &[Dispatch],
    mi_per_ms: f64,
) -> Result<Vec<Stay>, Problems> {
    let mut answered = vec![false; run.requests.len()];
    let mut stays = Vec::with_capacity(dispatches.len());
    for dispatch in dispatches {
        let Some(request) = run.requests.get(dispatch.seq as usize) else {
            let what = "the log has a request that the rows do not have";
            return refuse(problem(run, dispatch.seq, what));
        };
        answered[dispatch.seq as usize] |= dispatch.ok;
        let told = request.at_worker_ns.filter(|_| dispatch.ok);
        let judged = dispatch.is_first && !request.warmup;
        let span = (dispatch.picked_ns, dispatch.done_ns);
        stays.push(stay(
            request,
            dispatch.worker,
            span,
            told,
            judged,
            mi_per_ms,
        ));
    }
    let unseen = run
        .requests
        .iter()
        .find(|r| r.ok && !answered[r.seq as usize]);
    if let Some(request) = unseen {
        let what = "was answered, but the log has no answer to it";
        return refuse(problem(run, request.seq, what));
    }
    Ok(in_order(stays))
}

/// By the rows alone: a request is picked when it is sent.
///
/// # Errors
/// A request that failed at a worker nobody knows, or was tried at several.
pub(super) fn from_rows(run: &Run, mi_per_ms: f64) -> Result<Vec<Stay>, Problems> {
    let mut stays = Vec::with_capacity(run.requests.len());
    for request in &run.requests {
        let Some(span) = request.sent_done_ns else {
            continue;
        };
        if request.attempts.is_some_and(|n| n > 1) {
            return refuse(problem(run, request.seq, "was tried at several workers"));
        }
        match request.worker {
            Some(worker) => {
                let told = request.at_worker_ns.filter(|_| request.ok);
                stays.push(stay(
                    request,
                    worker,
                    span,
                    told,
                    !request.warmup,
                    mi_per_ms,
                ));
            }
            None if request.unserved => {}
            None => return refuse(problem(run, request.seq, "failed at a worker nobody knows")),
        }
    }
    Ok(in_order(stays))
}

fn problem(run: &Run, seq: u64, what: &str) -> Problem {
    let field = format!("request {seq} of run {}", run.run_id);
    Problem::new(field, "", what).next("name a result folder that has its event logs")
}

fn in_order(mut stays: Vec<Stay>) -> Vec<Stay> {
    // Stable: of equal times the order of the log, or of the schedule.
    stays.sort_by(|a, b| a.picked_ms.total_cmp(&b.picked_ms));
    stays
}

fn stay(
    request: &Request,
    worker: usize,
    (picked_ns, done_ns): (u64, u64),
    told: Option<(u64, u64)>,
    judged: bool,
    mi_per_ms: f64,
) -> Stay {
    let (picked, done) = (picked_ns as f64, done_ns as f64);
    let (arrived, started, ended) = match told {
        None => (picked, picked, done),
        Some((wait_ns, service_ns)) => {
            let away = done - picked - (wait_ns + service_ns) as f64;
            let way = if away < ROUNDING_NS { 0.0 } else { away / 2.0 };
            let started = picked + way + wait_ns as f64;
            (picked + way, started, (done - way).max(started))
        }
    };
    Stay {
        worker,
        work_ms: request.size_mi / mi_per_ms,
        picked_ms: picked / NS_PER_MS,
        arrived_ms: arrived / NS_PER_MS,
        started_ms: started / NS_PER_MS,
        ended_ms: ended / NS_PER_MS,
        told: told.is_some(),
        judged,
    }
}
