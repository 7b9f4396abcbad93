//! The admin listener: `POST /api/reset`, and the read-only pages of the traffic listener. Web pages of
//! other sites are refused ([`schema::origin`]), as at the balancer's.

use crate::app::App;
use crate::ledger::Ledger;
use crate::listener::{Answer, error, json};
use crate::serve::pages;
use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use std::sync::{Arc, Mutex, PoisonError};

/// Wrong tokens answered per second before the rest is told to wait.
const MAX_FAILURES_PER_SECOND: u32 = 10;

/// Who may use the admin listener.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    token: Option<String>,
    /// Names in `Host` are trusted.
    any_host: bool,
    /// The second it counts, and wrong tokens in it.
    failures: Mutex<(u64, u32)>,
}

impl Gate {
    /// Everybody without a token, else those who bring it; `any_host`: the listener is meant to be
    /// reached by others.
    pub(crate) fn new(token: Option<String>, any_host: bool) -> Self {
        Self {
            any_host: any_host || token.is_some(),
            token,
            failures: Mutex::default(),
        }
    }

    /// The refusal, unless the request may pass.
    fn refusal(&self, request: &Request<Incoming>, now_s: u64) -> Option<Answer> {
        let text = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok());
        let host = text(HOST).unwrap_or("");
        if let Some(what) = schema::origin::refusal(host, text(ORIGIN), self.any_host) {
            return Some(error(StatusCode::FORBIDDEN, "foreign_site", what));
        }
        let token = self.token.as_ref()?;
        let brought = request.headers().get(AUTHORIZATION);
        let brought = brought.and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
        if self.too_many_failures(now_s) {
            let message = "too many wrong tokens; wait a second";
            return Some(error(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_failures",
                message,
            ));
        }
        if brought.is_some_and(|brought| equal_in_constant_time(brought, token.as_bytes())) {
            return None;
        }
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1 += 1;
        let message = "this listener needs the header `authorization: Bearer TOKEN`";
        Some(error(StatusCode::UNAUTHORIZED, "unauthorized", message))
    }

    fn too_many_failures(&self, now_s: u64) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.0 != now_s {
            *failures = (now_s, 0);
        }
        failures.1 >= MAX_FAILURES_PER_SECOND
    }
}

/// Answers one admin request.
pub(crate) async fn answer(app: Arc<App>, gate: Arc<Gate>, request: Request<Incoming>) -> Answer {
    if let Some(refused) = gate.refusal(&request, (app.clock.now_ns() * 1e-9) as u64) {
        return refused;
    }
    if let Some(page) = pages(&app, &request) {
        return page;
    }
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/api/reset") => {
            app.with_ledger(Ledger::reset);
            json(StatusCode::OK, &app.stats())
        }
        (_, "/api/reset") => error(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "use POST /api/reset",
        ),
        _ => error(
            StatusCode::NOT_FOUND,
            "not_found",
            "known: POST /api/reset, GET /stats, /healthz, /metrics",
        ),
    }
}

/// Compares without telling by its duration where the two differ.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::{Gate, equal_in_constant_time};

    #[test]
    fn tokens_are_equal_only_whole() {
        assert!(equal_in_constant_time(b"abc", b"abc"));
        assert!(!equal_in_constant_time(b"abc", b"abd"));
        assert!(!equal_in_constant_time(b"ab", b"abc"));
    }

    #[test]
    fn failures_are_counted_by_the_second() {
        let gate = Gate::new(Some("x".repeat(32)), false);
        assert!(!gate.too_many_failures(7));
        gate.failures.lock().unwrap().1 = 10;
        assert!(gate.too_many_failures(7));
        assert!(!gate.too_many_failures(8));
    }
}
