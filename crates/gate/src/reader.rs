//! The checking reader in front of the HTTP library, one per client connection.
//!
//! It holds a head back until it is whole, judges it ([`crate::head`]), and only then passes the bytes
//! on; bodies pass untouched, followed to their end so that the next head is found. A head that is
//! refused is replaced by a harmless one of our own, and [`Conn`] says why: the service then answers
//! with the reason like any other request, and nothing of the refused bytes is ever parsed twice.
//! One empty line before a head is dropped (RFC 9112 section 2.2: some clients end a body with it); it
//! belongs to no head and moves no clock of one. A second one is refused.
//! The gate also keeps the clocks that only a connection can keep: head, idle, stalled writes.
//!
//! Cost: one copy of each head and one pass over it; a timer that is moved only when it fires.

use crate::chunks::Chunks;
use crate::head::{self, Framing, Scan};
use crate::refusal::{BAD_REQUEST, HEAD_TIMEOUT, Refusal};
use bytes::{Buf, BytesMut};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// Stands in for a refused head; the service never looks at it.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\n\r\n";
/// What may come once before a head.
const EMPTY_LINE: &[u8] = b"\r\n";
/// Bytes asked of the socket at once while a head is read.
const READ_BYTES: usize = 4096;
/// Bytes of a body passed on at once: the library's buffers grow, and their tails must be zeroed.
const MAX_STEP_BYTES: usize = 64 * 1024;
/// After a refused request, unread bytes are taken for this long, so that the answer is not lost to
/// a reset.
const LINGER: Duration = Duration::from_millis(500);
/// And at most this many.
const LINGER_BYTES: usize = 1 << 20;

/// Clocks of a client connection.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// First byte of a head (or the accept) to its last.
    pub head: Duration,
    /// Between requests.
    pub keep_alive: Duration,
    /// A write that makes no progress.
    pub write_idle: Duration,
}

/// What the gate and the service of one connection tell each other.
#[derive(Debug, Default)]
pub struct Conn {
    /// Heads passed on, refused ones included.
    heads_passed: Cell<u64>,
    /// Requests the service has begun.
    begun: Cell<u64>,
    /// The head with this number was refused.
    refused: Cell<Option<(u64, Refusal)>>,
    /// The body that is being read is broken.
    body_broken: Cell<bool>,
    /// An exchange is under way, so nobody waits for a head.
    busy: Cell<bool>,
    /// When the last answer ended, if there was one.
    ended_at: Cell<Option<Instant>>,
    /// Some bytes of a head are here and its end is not.
    within_head: Cell<bool>,
    /// The connection must end in a reset, because a clean end would look like a whole answer.
    abort: Cell<bool>,
    /// Unread request bytes may be left when the connection ends.
    linger: Cell<bool>,
    /// No more requests after the present one.
    closing: Cell<bool>,
    /// Told to whoever serves the connection.
    retire: Notify,
}

impl Conn {
    /// Begins a request; says why if its head was refused.
    pub fn begin(&self) -> Option<Refusal> {
        self.busy.set(true);
        self.body_broken.set(false);
        let number = self.begun.get() + 1;
        self.begun.set(number);
        let (_, reason) = self.refused.get().filter(|(n, _)| *n == number)?;
        Some(reason)
    }

    /// Since when nothing is under way on it, not even a head; `None` if something is.
    pub(crate) fn idle_since(&self, accepted: Instant) -> Option<Instant> {
        let idle = !self.busy.get() && !self.within_head.get();
        idle.then(|| self.ended_at.get().unwrap_or(accepted))
    }

    /// Ends a request: the answer is whole or given up.
    pub fn end(&self) {
        self.busy.set(false);
        self.ended_at.set(Some(Instant::now()));
    }

    /// Ends the connection after the request under way, at once if there is none.
    pub fn retire(&self) {
        self.retire.notify_one();
    }

    /// Waits until the connection is to end.
    pub(crate) async fn retired(&self) {
        self.retire.notified().await;
    }

    /// Whether the request body turned out broken.
    pub fn body_is_broken(&self) -> bool {
        self.body_broken.get()
    }

    /// Makes the connection end in a reset.
    pub fn abort(&self) {
        self.abort.set(true);
    }

    /// Leaves time for an answer sent before the request was read to its end.
    pub fn linger(&self) {
        self.linger.set(true);
    }
}

#[derive(Debug)]
enum State {
    /// Waiting for a head or within one; `seen` bytes were looked at.
    Head {
        seen: usize,
    },
    /// This many bytes of a judged head are still to be passed on, then a body comes.
    Pass {
        left: usize,
        then: Framing,
    },
    Length(u64),
    Chunked(Chunks),
    /// Nothing more is passed on.
    Closed,
}

/// A client connection whose reads are checked.
#[derive(Debug)]
pub(crate) struct Gate {
    stream: TcpStream,
    conn: Rc<Conn>,
    clocks: Clocks,
    state: State,
    held: BytesMut,
    /// Whether an empty line came before the present head.
    after_empty_line: bool,
    /// When the first byte of the present head came; of the first one: the accept.
    head_since: Instant,
    /// Moved only when it fires, and for a head that does not come whole.
    read_timer: Pin<Box<Sleep>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Gate {
    /// Guards `stream`; the head clock runs from `now`.
    pub(crate) fn new(stream: TcpStream, conn: Rc<Conn>, clocks: Clocks, now: Instant) -> Self {
        Self {
            stream,
            conn,
            clocks,
            state: State::Head { seen: 0 },
            held: BytesMut::new(),
            after_empty_line: false,
            head_since: now,
            read_timer: Box::pin(tokio::time::sleep_until(now + clocks.head)),
            write_timer: None,
            lingering: None,
        }
    }

    /// Waits for a whole head. `Ready(false)` at the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>, mut seen: usize) -> Poll<io::Result<bool>> {
        loop {
            if self.held.starts_with(EMPTY_LINE) {
                if std::mem::replace(&mut self.after_empty_line, true) {
                    self.refuse(BAD_REQUEST);
                    return Poll::Ready(Ok(true));
                }
                self.held.advance(EMPTY_LINE.len());
                seen = 0;
                continue;
            }
            match head::find_end(&self.held, seen) {
                Ok(Scan::Complete(length)) => {
                    self.judge(length);
                    return Poll::Ready(Ok(true));
                }
                Ok(Scan::Partial) => {}
                Err(reason) => {
                    self.refuse(reason);
                    return Poll::Ready(Ok(true));
                }
            }
            seen = self.held.len();
            self.state = State::Head { seen };
            // On a new connection the clock has run since the empty line, which gains no time.
            let lone = self.after_empty_line && self.conn.heads_passed.get() == 0;
            let first = seen == 0 && !lone;
            match self.poll_more(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Ok(_)) if first => self.head_since = Instant::now(),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_clock(cx),
            }
        }
    }

    /// Reads into the held bytes.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.held.reserve(READ_BYTES);
        let mut bytes = [0_u8; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        self.held.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// When the wait for the end of a head is over.
    fn read_deadline(&self) -> Instant {
        if self.conn.busy.get() {
            // Nobody waits for a head while an answer is under way.
            return Instant::now() + self.clocks.head.min(self.clocks.keep_alive);
        }
        match self.conn.ended_at.get() {
            Some(ended) if self.held.is_empty() => ended + self.clocks.keep_alive,
            // One that came while the answer before it was under way begins after it.
            ended => ended.map_or(self.head_since, |e| e.max(self.head_since)) + self.clocks.head,
        }
    }

    /// The head or idle clock.
    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let within_head = !self.held.is_empty();
        self.conn.within_head.set(within_head);
        if within_head && self.read_timer.deadline() > self.read_deadline() {
            let deadline = self.read_deadline();
            self.read_timer.as_mut().reset(deadline);
        }
        while self.read_timer.as_mut().poll(cx).is_ready() {
            let deadline = self.read_deadline();
            if Instant::now() >= deadline {
                if !within_head && self.conn.heads_passed.get() > 0 {
                    return Poll::Ready(Ok(false));
                }
                self.refuse(HEAD_TIMEOUT);
                return Poll::Ready(Ok(true));
            }
            self.read_timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn judge(&mut self, length: usize) {
        self.conn.within_head.set(false);
        match head::check(&self.held[..length]) {
            Ok(then) => {
                self.conn.heads_passed.set(self.conn.heads_passed.get() + 1);
                self.state = State::Pass { left: length, then };
            }
            Err(reason) => self.refuse(reason),
        }
    }

    fn refuse(&mut self, reason: Refusal) {
        let number = self.conn.heads_passed.get() + 1;
        self.conn.heads_passed.set(number);
        self.conn.refused.set(Some((number, reason)));
        self.conn.closing.set(true);
        self.conn.linger();
        self.held.clear();
        self.held.extend_from_slice(STAND_IN);
        self.state = State::Pass {
            left: STAND_IN.len(),
            then: Framing::None,
        };
    }

    /// Hands held bytes over, up to `limit`.
    fn hand_over(&mut self, out: &mut ReadBuf<'_>, limit: usize) -> usize {
        let step = limit.min(out.remaining()).min(self.held.len());
        out.put_slice(&self.held[..step]);
        self.held.advance(step);
        step
    }

    /// The state after a message: the next head, unless this one was the last.
    fn next_head(&mut self) -> State {
        if self.conn.closing.get() {
            return State::Closed;
        }
        self.head_since = Instant::now();
        self.after_empty_line = false;
        State::Head { seen: 0 }
    }

    /// Passes body bytes on, held ones first, then straight from the socket.
    fn poll_body_bytes(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.held.is_empty() {
            return Poll::Ready(Ok(self.hand_over(out, limit)));
        }
        let room = out.remaining().min(limit).min(MAX_STEP_BYTES);
        let mut part = ReadBuf::new(out.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let step = part.filled().len();
        out.advance(step);
        Poll::Ready(Ok(step))
    }

    fn poll_chunked(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        mut chunks: Chunks,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let step = match self.poll_body_bytes(cx, out, usize::MAX) {
            Poll::Ready(step) => step?,
            Poll::Pending => {
                self.state = State::Chunked(chunks);
                return Poll::Pending;
            }
        };
        match chunks.advance(&out.filled()[before..]) {
            Ok(used) if chunks.is_done() => {
                // What follows the body is the next head: take it back.
                let mut rest = BytesMut::from(&out.filled()[before + used..]);
                rest.unsplit(std::mem::take(&mut self.held));
                self.held = rest;
                out.set_filled(before + used);
                self.state = self.next_head();
            }
            Ok(_) => {
                self.state = if step == 0 {
                    State::Closed
                } else {
                    State::Chunked(chunks)
                };
            }
            Err(_) => {
                self.conn.body_broken.set(true);
                self.conn.closing.set(true);
                self.conn.linger();
                out.set_filled(before);
                self.state = State::Closed;
                // The library takes it as it takes broken chunks that it finds itself.
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Gate {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        loop {
            match std::mem::replace(&mut gate.state, State::Closed) {
                State::Head { seen } => {
                    gate.state = State::Head { seen };
                    if !ready!(gate.poll_head(cx, seen))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Pass { left, then } => {
                    let left = left - gate.hand_over(out, left);
                    gate.state = if left > 0 {
                        State::Pass { left, then }
                    } else {
                        match then {
                            Framing::None => gate.next_head(),
                            Framing::Length(n) => State::Length(n),
                            Framing::Chunked => State::Chunked(Chunks::default()),
                        }
                    };
                    return Poll::Ready(Ok(()));
                }
                State::Length(left) => {
                    gate.state = State::Length(left);
                    let limit = usize::try_from(left).unwrap_or(usize::MAX);
                    let step = ready!(gate.poll_body_bytes(cx, out, limit))?;
                    let left = left - step as u64;
                    gate.state = if left == 0 {
                        gate.next_head()
                    } else {
                        State::Length(left)
                    };
                    return Poll::Ready(Ok(()));
                }
                State::Chunked(chunks) => return gate.poll_chunked(cx, out, chunks),
                State::Closed => return gate.poll_closed(cx),
            }
        }
    }
}

impl Gate {
    /// After the last request only the end of the stream is of interest.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0_u8; READ_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ends a stalled write.
    fn poll_write_clock(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let idle = self.clocks.write_idle;
        let timer = self
            .write_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        ready!(timer.as_mut().poll(cx));
        self.conn.abort();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Gate {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        match Pin::new(&mut gate.stream).poll_write(cx, bytes) {
            Poll::Ready(result) => {
                gate.write_timer = None;
                Poll::Ready(result)
            }
            Poll::Pending => gate.poll_write_clock(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        match Pin::new(&mut gate.stream).poll_write_vectored(cx, slices) {
            Poll::Ready(result) => {
                gate.write_timer = None;
                Poll::Ready(result)
            }
            Poll::Pending => gate.poll_write_clock(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        if gate.conn.abort.get() {
            return Poll::Ready(Ok(()));
        }
        if gate.lingering.is_none() {
            ready!(Pin::new(&mut gate.stream).poll_shutdown(cx))?;
            if !gate.conn.linger.get() {
                return Poll::Ready(Ok(()));
            }
        }
        let (timer, taken) = gate
            .lingering
            .get_or_insert_with(|| (Box::pin(tokio::time::sleep(LINGER)), 0));
        let mut bytes = [0_u8; READ_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut gate.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && *taken < LINGER_BYTES => {
                    *taken += buffer.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return timer.as_mut().poll(cx).map(Ok),
            }
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.conn.abort.get() {
            // A failure leaves the ordinary close, which ends the connection as well.
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}
