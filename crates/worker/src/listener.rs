//! HTTP/1.1 listeners on the async thread, each behind a gate, and the answers they give.

use bytes::Bytes;
use gate::{Clocks, Door, Ending, Exchange, Room, UntilSent, until_sent};
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A client that takes no bytes of its answer for this long is cut off.
const WRITE_IDLE: Duration = Duration::from_secs(10);

/// A whole answer.
pub(crate) type Answer = Response<Full<Bytes>>;

/// One listener's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Requests under way may take this long after a stop.
    pub(crate) grace: Duration,
}

/// Serves until `stop` turns true, then finishes what is under way.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    limits: Limits,
    stop: watch::Receiver<bool>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + 'static,
) -> Ending
where
    F: Future<Output = Answer> + 'static,
{
    let door = Door {
        listener,
        room: Room::new(limits.connections),
        clocks: Clocks {
            head: gate::HEAD_LIMIT,
            keep_alive: gate::CLIENT_IDLE,
            write_idle: WRITE_IDLE,
        },
        grace: limits.grace,
        stop,
    };
    let serving = door.serve(|conn, _| {
        let answer = answer.clone();
        service_fn(move |request| {
            let refused = conn.begin();
            let exchange = Exchange(conn.clone());
            let answering = refused.is_none().then(|| answer(request));
            async move {
                let whole = match (refused, answering) {
                    (None, Some(answering)) => answering.await,
                    (refused, _) => refuse(refused.unwrap_or(gate::refusal::BAD_REQUEST)),
                };
                Ok::<Response<UntilSent<Full<Bytes>>>, Infallible>(
                    whole.map(|body| until_sent(exchange, body)),
                )
            }
        })
    });
    serving.await
}

/// A head that was refused; what follows it cannot be told from the next one.
fn refuse((status, reason): gate::refusal::Refusal) -> Answer {
    let message = "the request's head is malformed, ambiguous, too large or too late";
    let mut answer = error(status, reason, message);
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    with_type(status, "application/json", bytes)
}

/// An answer of any content type.
pub(crate) fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An error answer: `{"error": REASON, "message": TEXT}`.
pub(crate) fn error(status: StatusCode, reason: &str, message: &str) -> Answer {
    json(
        status,
        &serde_json::json!({"error": reason, "message": message}),
    )
}
