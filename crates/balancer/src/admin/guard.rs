//! Who may use the admin listener.
//!
//! On loopback everybody on the machine, but no web page: a foreign `Origin`, or a `Host` that is a
//! name other than `localhost` (a name a page's owner could point at us), is refused. Beyond loopback
//! a token, unless the operator says otherwise.

use super::Refused;
use crate::cli::Serve;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schema::problem::{Problem, Problems};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Variable that may hold the token.
const TOKEN_VARIABLE: &str = "PLUMBLINE_ADMIN_TOKEN";
/// Shortest token.
const MIN_TOKEN_CHARS: usize = 32;
/// Wrong tokens per second before even right ones must wait.
const MAX_FAILURES_PER_S: u32 = 10;

/// The rule for one process.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Option<Secret>,
    /// Names in `Host` are trusted: the listener is meant to be reached by others.
    any_host: bool,
    failures: Mutex<(Instant, u32)>,
}

/// A token that is never printed.
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Takes as long for a wrong token as for the right one.
    fn is(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let mut difference = u8::from(own.len() != given.len());
        for (i, byte) in own.iter().enumerate() {
            difference |= byte ^ given.get(i).copied().unwrap_or(!byte);
        }
        difference == 0
    }
}

impl Guard {
    /// The rule that the flags ask for.
    ///
    /// # Errors
    /// An address beyond loopback without a token or `--admin-open`; a token that is too short.
    pub(crate) fn from_flags(serve: &Serve) -> Result<Self, Problems> {
        let token = read_token(serve)?;
        let beyond_loopback = !serve.admin.ip().is_loopback();
        if beyond_loopback && token.is_none() && !serve.admin_open {
            let problem = Problem::new(
                "--admin",
                serve.admin.to_string(),
                "is reachable by others and has no token",
            )
            .allowed("a loopback address")
            .next("pass --admin-token-file F, or --admin-open if the port is guarded otherwise");
            return Err(problem.into());
        }
        Ok(Self {
            token: token.map(Secret),
            any_host: beyond_loopback || serve.admin_open,
            failures: Mutex::new((Instant::now(), 0)),
        })
    }

    fn judge(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let text = |name| {
            headers
                .get(name)
                .and_then(|v: &axum::http::HeaderValue| v.to_str().ok())
        };
        let host = text(header::HOST).unwrap_or("");
        let any_host = self.any_host || self.token.is_some();
        if let Some(what) = schema::origin::refusal(host, text(header::ORIGIN), any_host) {
            return Err((StatusCode::FORBIDDEN, what));
        }
        let Some(token) = &self.token else {
            return Ok(());
        };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.0.elapsed() > Duration::from_secs(1) {
            *failures = (Instant::now(), 0);
        }
        if failures.1 >= MAX_FAILURES_PER_S {
            return Err((
                StatusCode::TOO_MANY_REQUESTS,
                "too many wrong tokens; wait a second",
            ));
        }
        let given = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
        if given.is_some_and(|given| token.is(given.as_bytes())) {
            return Ok(());
        }
        failures.1 += 1;
        Err((
            StatusCode::UNAUTHORIZED,
            "token is missing or wrong; send authorization: Bearer TOKEN",
        ))
    }
}

fn read_token(serve: &Serve) -> Result<Option<String>, Problems> {
    let (source, text) = match &serve.admin_token_file {
        Some(path) => {
            let text = input::read_text(path).map_err(|problem| *problem)?;
            (path.display().to_string(), text)
        }
        None => match std::env::var(TOKEN_VARIABLE) {
            Ok(text) => (TOKEN_VARIABLE.to_string(), text),
            Err(_) => return Ok(None),
        },
    };
    let token = text.trim().to_string();
    if token.chars().count() < MIN_TOKEN_CHARS || !token.bytes().all(|b| b.is_ascii_graphic()) {
        let what = "has no token of visible characters that is long enough";
        let problem = Problem::new("", "", what).in_source(source);
        return Err(problem
            .allowed(format!("at least {MIN_TOKEN_CHARS} characters"))
            .into());
    }
    Ok(Some(token))
}

/// Lets a request pass or answers it.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.judge(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, what)) => Refused(status, what.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Guard, Secret};
    use axum::http::{HeaderMap, StatusCode};
    use std::sync::Mutex;
    use std::time::Instant;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap()))
            .collect()
    }

    fn guard(token: Option<&str>) -> Guard {
        Guard {
            token: token.map(|t| Secret(t.to_string())),
            any_host: false,
            failures: Mutex::new((Instant::now(), 0)),
        }
    }

    #[test]
    fn web_pages_cannot_use_a_loopback_listener() {
        let judge = |lines: &[(&'static str, &str)]| guard(None).judge(&headers(lines)).is_ok();
        let host = ("host", "127.0.0.1:8081");
        assert!(judge(&[host]));
        assert!(!judge(&[host, ("origin", "http://evil.example")]));
        assert!(!judge(&[("host", "rebound.example:8081")]));
    }

    #[test]
    fn wrong_tokens_are_refused_and_soon_ignored() {
        let guard = guard(Some("0123456789abcdef0123456789abcdef"));
        let judge = |t: &str| guard.judge(&headers(&[("authorization", t)]));
        assert_eq!(judge("Bearer 0123456789abcdef0123456789abcdef"), Ok(()));
        for _ in 0..10 {
            assert_eq!(
                judge("Bearer nope").unwrap_err().0,
                StatusCode::UNAUTHORIZED
            );
        }
        let last = judge("Bearer 0123456789abcdef0123456789abcdef");
        assert_eq!(last.unwrap_err().0, StatusCode::TOO_MANY_REQUESTS);
    }
}
