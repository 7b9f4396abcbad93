//! Client connections: how many there may be, and which one goes when there is no room for another.
//!
//! A new client is worth more than one that is silent: at the limit the connection on which nothing
//! has been under way for the longest is closed, as nginx does. Where every one is at work the new
//! client waits. Each thread keeps the list of its own connections, so that no lock is on the path.

use crate::reader::{Clocks, Conn, Gate};
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A client without room looks again after this, since another connection may be idle by then.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Wait after a failed accept (out of descriptors, most likely): running requests free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Full rooms are told in the log this often at most.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Whether every request was finished when a listener stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every request was finished.
    Finished,
    /// Some were not.
    Cut,
}

/// Room for connections, shared by the threads of a listener.
#[derive(Debug)]
pub struct Room {
    permits: Arc<Semaphore>,
    most: usize,
    /// Somebody waits: every thread closes its longest idle connection.
    crowded: Notify,
    /// When it was told last, ms since `began`, plus one.
    told_ms: AtomicU64,
    began: Instant,
}

impl Room {
    /// Room for `most` connections.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(most)),
            most,
            crowded: Notify::new(),
            told_ms: AtomicU64::new(0),
            began: Instant::now(),
        })
    }

    /// Waits for room and makes some.
    async fn enter(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
                return permit;
            }
            self.tell();
            self.crowded.notify_waiters();
            let entered = Arc::clone(&self.permits).acquire_owned();
            if let Ok(Ok(permit)) = tokio::time::timeout(LOOK_AGAIN, entered).await {
                return permit;
            }
        }
    }

    fn tell(&self) {
        let now_ms = self.began.elapsed().as_millis() as u64 + 1;
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        if told_ms == 0 || now_ms - told_ms.min(now_ms) >= TELL_EVERY.as_millis() as u64 {
            self.told_ms.store(now_ms, Ordering::Relaxed);
            let most = self.most;
            tracing::warn!("{most} connections are open, the most allowed: idle ones are closed");
        }
    }
}

/// What one thread needs to serve a listener.
pub struct Door {
    /// Bound and not blocking.
    pub listener: TcpListener,
    /// Shared by all threads of the listener.
    pub room: Arc<Room>,
    /// Of every connection.
    pub clocks: Clocks,
    /// Running requests may take this long after a stop.
    pub grace: Duration,
    /// Ends it when it turns true.
    pub stop: watch::Receiver<bool>,
}

impl Door {
    /// Serves until the stop, each connection with what `service` makes for it.
    pub async fn serve<S, B>(mut self, service: impl Fn(Rc<Conn>, IpAddr) -> S) -> Ending
    where
        S: Service<http::Request<Incoming>, Response = http::Response<B>, Error = Infallible>
            + 'static,
        B: http_body::Body + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let open = Rc::new(Open::default());
        let closing = tokio::task::spawn_local(close_idle(Arc::clone(&self.room), open.clone()));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(e) => {
                    tracing::warn!("cannot accept: {e}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let permit = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => break,
                permit = self.room.enter() => permit,
            };
            // Without it an answer may wait for the client's delayed acknowledgment.
            let _ = stream.set_nodelay(true);
            let conn = Rc::new(Conn::default());
            let listed = open.add(Rc::clone(&conn));
            let service = service(Rc::clone(&conn), peer.ip().to_canonical());
            let clocks = self.clocks;
            connections.spawn_local(async move {
                serve_one(stream, conn, clocks, service).await;
                drop((listed, permit));
            });
        }
        drop(self.listener);
        closing.abort();
        open.retire_all();
        let all_done = async { while connections.join_next().await.is_some() {} };
        match tokio::time::timeout(self.grace, all_done).await {
            Ok(()) => Ending::Finished,
            Err(_) => Ending::Cut,
        }
    }
}

async fn serve_one<S, B>(stream: TcpStream, conn: Rc<Conn>, clocks: Clocks, service: S)
where
    S: Service<http::Request<Incoming>, Response = http::Response<B>, Error = Infallible>,
    B: http_body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let gate = Gate::new(stream, Rc::clone(&conn), clocks, Instant::now());
    let mut http = http1::Builder::new();
    // The gate keeps this clock, and bounds heads, with answers of its own.
    http.header_read_timeout(None);
    let service = service_fn(|request: http::Request<Incoming>| {
        let is_old = request.version() == http::Version::HTTP_10;
        let answering = service.call(request);
        async move {
            let mut answer = answering.await?;
            if is_old && answer.body().size_hint().exact().is_none() {
                // Only the end of the connection ends such a body, also where the client would keep it;
                // the library offers to keep what is not of the old version itself.
                *answer.version_mut() = http::Version::HTTP_10;
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let serving = http.serve_connection(TokioIo::new(gate), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = conn.retired() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = ended {
        // What became of its requests is counted by their receipts.
        tracing::debug!("client connection: {e}");
    }
}

async fn close_idle(room: Arc<Room>, open: Rc<Open>) {
    loop {
        room.crowded.notified().await;
        open.retire_longest_idle();
    }
}

/// The open connections of one thread, with when each was accepted.
#[derive(Default)]
struct Open {
    list: RefCell<BTreeMap<u64, (Rc<Conn>, Instant)>>,
    next: Cell<u64>,
}

/// A place on the list; dropped, it is given up.
struct Listed {
    open: Rc<Open>,
    number: u64,
}

impl Open {
    fn add(self: &Rc<Self>, conn: Rc<Conn>) -> Listed {
        let number = self.next.get();
        self.next.set(number + 1);
        let entry = (conn, Instant::now());
        self.list.borrow_mut().insert(number, entry);
        Listed {
            open: Rc::clone(self),
            number,
        }
    }

    fn retire_longest_idle(&self) {
        let list = self.list.borrow();
        let idle = list.values().filter_map(|(conn, accepted)| {
            let since = conn.idle_since(*accepted)?;
            Some((since, conn))
        });
        if let Some((_, conn)) = idle.min_by_key(|(since, _)| *since) {
            conn.retire();
        }
    }

    fn retire_all(&self) {
        self.list.borrow().values().for_each(|(c, _)| c.retire());
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.list.borrow_mut().remove(&self.number);
    }
}

/// Ends an exchange when its answer is over or given up.
pub struct Exchange(pub Rc<Conn>);

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Keeps a connection busy for as long as an answer's body lives.
pub fn until_sent<B: http_body::Body>(exchange: Exchange, body: B) -> UntilSent<B> {
    UntilSent {
        body,
        _exchange: exchange,
    }
}

/// See [`until_sent`].
pub struct UntilSent<B> {
    body: B,
    _exchange: Exchange,
}

impl<B: http_body::Body + Unpin> http_body::Body for UntilSent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<B::Data>, B::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Pending connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;

/// Binds a listening socket, for [`TcpListener::from_std`].
///
/// # Errors
/// The port is in use or not allowed.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    // Lets a restart take the port while old connections fade; never shares it with a live process.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Runs `work` on this thread with tasks that stay on it.
pub fn block_on_one_thread<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(tokio::task::LocalSet::new().block_on(&runtime, work))
}
