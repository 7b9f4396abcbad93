//! Keep-alive connections to the backends, one pool per thread, so that no lock is on the path.

use super::body::RequestBody;
use crate::settings::{UPSTREAM_IDLE, UPSTREAM_IDLE_MAX};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Instant;
use strategies::BackendId;
use tokio::net::TcpStream;

/// A connection that can carry a request.
pub(crate) type Sender = SendRequest<RequestBody>;

/// Whether a connection carried a request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    First,
    Again,
}

/// Idle connections of one thread.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<BTreeMap<BackendId, VecDeque<(Sender, Instant)>>>,
}

impl Pool {
    /// The most recently used idle connection to a backend that is still open.
    pub(crate) async fn reuse(&self, id: BackendId) -> Option<Sender> {
        loop {
            let (mut sender, since) = self.idle.borrow_mut().get_mut(&id)?.pop_back()?;
            if since.elapsed() < UPSTREAM_IDLE && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn keep(&self, id: BackendId, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let of_backend = idle.entry(id).or_default();
        while of_backend
            .front()
            .is_some_and(|(_, since)| since.elapsed() >= UPSTREAM_IDLE)
        {
            of_backend.pop_front();
        }
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
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::task::spawn_local(async move {
        if let Err(e) = connection.await {
            tracing::trace!("upstream connection: {e}");
        }
    });
    Ok(sender)
}
