//! Keep-alive connections to the backends, one pool per thread, so that no lock is on the path.

use super::body::RequestBody;
use crate::settings::{MAX_HEAD_BYTES, UPSTREAM_IDLE, UPSTREAM_IDLE_MAX};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Instant;
use strategies::BackendId;
use tokio::net::TcpStream;

/// A connection that can carry a request.
pub(crate) type Sender = SendRequest<RequestBody>;

/// Idle connections of one thread.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<BTreeMap<BackendId, VecDeque<(Sender, Instant)>>>,
}

impl Pool {
    /// The most recently used idle connection to a backend that is ready for a request.
    pub(crate) fn reuse(&self, id: BackendId) -> Option<Sender> {
        let mut idle = self.idle.borrow_mut();
        let of_backend = idle.get_mut(&id)?;
        for at in (0..of_backend.len()).rev() {
            let (sender, since) = &of_backend[at];
            if sender.is_closed() || since.elapsed() >= UPSTREAM_IDLE {
                of_backend.remove(at);
            } else if sender.is_ready() {
                return of_backend.remove(at).map(|(sender, _)| sender);
            }
        }
        None
    }

    /// Closes what was idle for too long.
    pub(crate) fn sweep(&self) {
        for of_backend in self.idle.borrow_mut().values_mut() {
            of_backend.retain(|(s, since)| !s.is_closed() && since.elapsed() < UPSTREAM_IDLE);
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn keep(&self, id: BackendId, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let of_backend = idle.entry(id).or_default();
        if of_backend.len() < UPSTREAM_IDLE_MAX {
            of_backend.push_back((sender, Instant::now()));
        }
    }
}

/// Opens a connection; its driver runs on this thread until either side closes.
pub(crate) async fn connect(authority: &str) -> io::Result<Sender> {
    // A name is resolved at every connect, so a worker that comes back elsewhere is found.
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = Builder::new()
        .max_header_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::task::spawn_local(async move {
        if let Err(e) = connection.await {
            tracing::trace!("upstream connection: {e}");
        }
    });
    Ok(sender)
}
