//! Keep-alive connections to the backends, one pool per thread, so that no lock is on the path.
//!
//! The HTTP library reads interim answers (1xx) for as long as they come and keeps none of them, so a
//! backend that sends nothing else would keep the thread busy until the request's time is over. Each
//! connection therefore bounds what may come before the head of an answer.

use super::body::RequestBody;
use crate::settings::{UPSTREAM_IDLE, UPSTREAM_IDLE_MAX};
use gate::MAX_HEAD_BYTES;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use strategies::BackendId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes before the end of an answer's head at most: the head itself, and as much again of interim
/// answers (some 2,500 of the shortest). A body may begin in them.
const MAX_BYTES_TO_HEAD: usize = 2 * MAX_HEAD_BYTES;

/// A connection that can carry a request.
pub(crate) struct Sender {
    requests: SendRequest<RequestBody>,
    head: Rc<HeadWait>,
}

impl Sender {
    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        self.head.left.set(Some(MAX_BYTES_TO_HEAD));
        let answer = self.requests.try_send_request(request).await;
        self.head.left.set(None);
        answer
    }

    /// Whether the backend sent too much before the head of its answer.
    pub(crate) fn sent_too_much(&self) -> bool {
        self.head.exceeded.get()
    }
}

/// What a connection may still read while the head of an answer is waited for.
#[derive(Debug, Default)]
struct HeadWait {
    /// `None`: nobody waits for a head.
    left: Cell<Option<usize>>,
    exceeded: Cell<bool>,
}

/// A connection to a backend that ends when too much comes before a head.
struct Upstream {
    stream: TcpStream,
    head: Rc<HeadWait>,
}

impl AsyncRead for Upstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, out))?;
        if let Some(left) = self.head.left.get() {
            let read = out.filled().len() - before;
            if read > left {
                self.head.exceeded.set(true);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            self.head.left.set(Some(left - read));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upstream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

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
            if sender.requests.is_closed() || since.elapsed() >= UPSTREAM_IDLE {
                of_backend.remove(at);
            } else if sender.requests.is_ready() {
                return of_backend.remove(at).map(|(sender, _)| sender);
            }
        }
        None
    }

    /// Closes what was idle for too long.
    pub(crate) fn sweep(&self) {
        for of_backend in self.idle.borrow_mut().values_mut() {
            of_backend
                .retain(|(s, since)| !s.requests.is_closed() && since.elapsed() < UPSTREAM_IDLE);
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn keep(&self, id: BackendId, sender: Sender) {
        if sender.requests.is_closed() {
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
    let head = Rc::new(HeadWait::default());
    let upstream = Upstream {
        stream,
        head: Rc::clone(&head),
    };
    let (requests, connection) = Builder::new()
        .max_header_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(upstream))
        .await
        .map_err(io::Error::other)?;
    tokio::task::spawn_local(async move {
        if let Err(e) = connection.await {
            tracing::trace!("upstream connection: {e}");
        }
    });
    Ok(Sender { requests, head })
}
