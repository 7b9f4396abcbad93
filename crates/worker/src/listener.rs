//! HTTP/1.1 listeners on the async thread: bounded connections, keep-alive, graceful stop.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// An idle connection, or one whose request head does not arrive, is closed after this long. The
/// HTTP library has one limit for both.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest request head, bytes, and its most fields.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_FIELDS: usize = 100;
/// Wait after a failed accept (out of file descriptors), so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 4096;

/// A whole answer.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Binds `address`, with the address reused at once after a restart.
///
/// # Errors
/// When the port is in use or not allowed.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Serves until `stop` turns true, then finishes what is under way.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    max_connections: usize,
    mut stop: watch::Receiver<bool>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(max_connections));
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (answer, stop) = (answer.clone(), stop.clone());
                tokio::spawn(async move {
                    serve_connection(stream, stop, answer).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    // Every connection gives its permit back when it is closed.
    let _ = room.acquire_many(max_connections as u32).await;
}

async fn serve_connection<F>(
    stream: TcpStream,
    mut stop: watch::Receiver<bool>,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync,
) where
    F: Future<Output = Answer>,
{
    // Without it an answer may wait for the client's delayed acknowledgment.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let answer = answer(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// Waits until the listener is told to stop, or nobody is left to tell it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
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
