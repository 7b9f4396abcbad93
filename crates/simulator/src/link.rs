//! One keep-alive connection whose requests are written by the thread that sends them.
//!
//! An HTTP library usually hands a request to its connection task, which has to be woken first;
//! beside busy workers that wake-up alone can take longer than the lateness allowed. Here the
//! sending thread hands the request over and then drives the connection itself once, so that the
//! bytes are in the socket when [`Link::start`] returns; the connection's task only reads answers.
//! The socket wrapper stamps the first write and the first read of each exchange right at the
//! system calls.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::clock::Clock;

/// Longest answer head that is read.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Fields of an answer head that are read.
const MAX_HEADERS: usize = 128;

pub(crate) type Body = Full<Bytes>;
pub(crate) type SendResult = Result<Response<Incoming>, TrySendError<Request<Body>>>;
/// Resolves with the head of the answer.
pub(crate) type Answer = Pin<Box<dyn Future<Output = SendResult> + Send>>;

/// When the present exchange was first written and first read; raw clock ns, 0 = not yet.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    first_write_ns: AtomicU64,
    first_read_ns: AtomicU64,
}

impl Stamps {
    /// Forgets the previous exchange.
    fn reset(&self) {
        self.first_write_ns.store(0, Ordering::Release);
        self.first_read_ns.store(0, Ordering::Release);
    }

    /// The stamp of the first write, if there was one.
    pub(crate) fn first_write_ns(&self) -> Option<u64> {
        Some(self.first_write_ns.load(Ordering::Acquire)).filter(|ns| *ns > 0)
    }

    /// The stamp of the first byte of the answer, if there was one.
    pub(crate) fn first_read_ns(&self) -> Option<u64> {
        Some(self.first_read_ns.load(Ordering::Acquire)).filter(|ns| *ns > 0)
    }

    fn note_write(&self, clock: &Clock) {
        if self.first_write_ns.load(Ordering::Relaxed) == 0 {
            self.first_write_ns.store(clock.raw_ns(), Ordering::Release);
        }
    }

    fn note_read(&self, clock: &Clock) {
        if self.first_read_ns.load(Ordering::Relaxed) == 0
            && self.first_write_ns.load(Ordering::Relaxed) > 0
        {
            self.first_read_ns.store(clock.raw_ns(), Ordering::Release);
        }
    }
}

/// A socket that stamps.
struct Stamped {
    socket: TokioIo<TcpStream>,
    stamps: Arc<Stamps>,
    clock: Arc<Clock>,
}

impl Read for Stamped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.socket).poll_read(cx, buf);
        if matches!(result, Poll::Ready(Ok(()))) {
            self.stamps.note_read(&self.clock);
        }
        result
    }
}

impl Write for Stamped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stamps.note_write(&self.clock);
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stamps.note_write(&self.clock);
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The connection's state machine, driven by its task and, for a moment, by a sending thread.
struct Driven {
    /// `None` once it has ended.
    connection: Mutex<Option<Connection<Stamped, Body>>>,
    task: TaskWaker,
    closed: AtomicBool,
}

impl Driven {
    fn lock(&self) -> MutexGuard<'_, Option<Connection<Stamped, Body>>> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One step, whoever makes it; `waker` is always that of the connection's task.
    fn step(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.lock();
        let Some(connection) = &mut *state else {
            return Poll::Ready(());
        };
        // The exchange learns of errors through its own future.
        let ended = Pin::new(connection)
            .poll(&mut Context::from_waker(waker))
            .map(|_result| ());
        if ended.is_ready() {
            self.closed.store(true, Ordering::Release);
            *state = None;
        }
        ended
    }
}

/// Wakes the connection's task, except while a sending thread does the task's work.
///
/// Handing a request to the library wakes the task at once, and a wake-up of another thread costs
/// more than the write itself; so it is held back until the write is done, and dropped if nothing
/// else has happened.
#[derive(Default)]
struct TaskWaker {
    inner: Mutex<Option<Waker>>,
    state: AtomicU8,
}

/// Wakes go through.
const OPEN: u8 = 0;
/// A sending thread is at work; wakes are held back.
const HELD: u8 = 1;
/// A wake was held back.
const HELD_WAKE: u8 = 2;

impl TaskWaker {
    /// Takes the waker of the task's present poll.
    fn set(&self, waker: &Waker) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *inner {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    fn hold(&self) {
        self.state.store(HELD, Ordering::SeqCst);
    }

    /// Forgets a wake whose cause the holder is about to deal with.
    fn forget(&self) {
        let _ = self
            .state
            .compare_exchange(HELD_WAKE, HELD, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn release(&self) {
        if self.state.swap(OPEN, Ordering::SeqCst) == HELD_WAKE {
            self.wake();
        }
    }

    fn wake(&self) {
        let held =
            self.state
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| match state {
                    HELD | HELD_WAKE => Some(HELD_WAKE),
                    _ => None,
                });
        if held.is_ok() {
            return;
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*inner {
            waker.wake_by_ref();
        }
    }
}

impl Wake for Driven {
    fn wake(self: Arc<Self>) {
        self.task.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.task.wake();
    }
}

/// One open connection; dropping it closes the socket.
pub(crate) struct Link {
    sender: SendRequest<Body>,
    driven: Arc<Driven>,
    /// Of the connection's task, for whoever drives the connection.
    waker: Waker,
    stamps: Arc<Stamps>,
    /// When it last became idle, raw clock ns.
    pub(crate) idle_since_ns: u64,
}

impl Link {
    /// Connects to `address`; must run on the runtime that will read the answers.
    ///
    /// # Errors
    /// What the operating system or the protocol handshake refused.
    pub(crate) async fn open(address: SocketAddr, clock: &Arc<Clock>) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let stamps = Arc::new(Stamps::default());
        let io = Stamped {
            socket: TokioIo::new(socket),
            stamps: Arc::clone(&stamps),
            clock: Arc::clone(clock),
        };
        let (sender, connection) = Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .handshake(io)
            .await
            .map_err(io::Error::other)?;
        let driven = Arc::new(Driven {
            connection: Mutex::new(Some(connection)),
            task: TaskWaker::default(),
            closed: AtomicBool::new(false),
        });
        let task = Arc::clone(&driven);
        let waker = Waker::from(Arc::clone(&driven));
        tokio::spawn(std::future::poll_fn(move |cx| {
            task.task.set(cx.waker());
            task.step(&waker)
        }));
        let mut link = Self {
            sender,
            waker: Waker::from(Arc::clone(&driven)),
            driven,
            stamps,
            idle_since_ns: clock.raw_ns(),
        };
        link.ready().await?;
        Ok(link)
    }

    /// Waits until the next request may be sent on it.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn ready(&mut self) -> io::Result<()> {
        self.sender.ready().await.map_err(io::Error::other)
    }

    /// True when a request may be sent now.
    pub(crate) fn is_usable(&self) -> bool {
        !self.driven.closed.load(Ordering::Acquire) && self.sender.is_ready()
    }

    /// Sends `request` from the calling thread; the answer's head is read by the runtime.
    pub(crate) fn start(&mut self, request: Request<Body>) -> Answer {
        self.stamps.reset();
        self.driven.task.hold();
        let answer = self.sender.try_send_request(request);
        self.driven.task.forget();
        let _ = self.driven.step(&self.waker);
        self.driven.task.release();
        Box::pin(answer)
    }

    /// The stamps of the present exchange.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// How long it has been idle at `now_ns`.
    pub(crate) fn idle_for(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.idle_since_ns))
    }
}

impl Drop for Link {
    /// Closes the socket at once, whatever is under way on it.
    fn drop(&mut self) {
        // Taken out first, so that the lock is free when the socket closes.
        let connection = self.driven.lock().take();
        drop(connection);
        self.driven.task.wake();
    }
}
