//! Bodies in both directions: streamed, never collected, each with a limit on silence.

use super::answer::{BODY_IDLE, BODY_TRUNCATED};
use super::pool::{Pool, Sender};
use super::receipt::Receipt;
use crate::core::{Ticket, Told};
use crate::settings::{BODY_RATE_GRACE, MIN_BODY_BYTES_PER_S, Settings};
use bytes::Bytes;
use gate::Conn;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use strategies::{Answer, Status};
use tokio::time::{Instant, Sleep};

/// Runs while a body is silent.
struct Silence {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self { limit, timer: None }
    }

    /// Something came: the next silence starts anew.
    fn broken(&mut self) {
        self.timer = None;
    }

    /// Nothing came; ready once that has lasted too long.
    fn lasts(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        timer.as_mut().poll(cx)
    }
}

/// What went wrong with a request body on the client's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    /// Silent for too long, or below the slowest rate.
    Slow,
    Broken,
    /// The client closed its connection within the body.
    Gone,
}

/// How far a request's body came; shared with its exchange.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) fault: Cell<Option<BodyFault>>,
    /// It was handed over to its end, so the connection can carry another request.
    pub(crate) whole: Cell<bool>,
}

/// A client's body on its way to a backend.
pub(crate) struct RequestBody {
    incoming: Option<Incoming>,
    conn: Rc<Conn>,
    progress: Rc<Progress>,
    max_bytes: u64,
    taken: u64,
    idle: Duration,
    /// Time spent waiting for the client; when the backend takes no bytes that is not its fault.
    waited: Duration,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    /// Streams `incoming` within the limits; how far it came is noted in `progress`.
    pub(crate) fn new(
        incoming: Incoming,
        conn: Rc<Conn>,
        settings: &Settings,
        progress: Rc<Progress>,
    ) -> Self {
        let empty = incoming.is_end_stream();
        progress.whole.set(empty);
        Self {
            incoming: (!empty).then_some(incoming),
            conn,
            progress,
            max_bytes: settings.body_max_bytes,
            taken: 0,
            idle: settings.body_idle,
            waited: Duration::ZERO,
            waiting_since: None,
            timer: None,
        }
    }

    /// No body.
    pub(crate) fn empty() -> Self {
        Self {
            incoming: None,
            conn: Rc::default(),
            progress: Rc::default(),
            max_bytes: 0,
            taken: 0,
            idle: Duration::ZERO,
            waited: Duration::ZERO,
            waiting_since: None,
            timer: None,
        }
    }

    /// Without a body it can be sent twice.
    pub(crate) fn is_empty(&self) -> bool {
        self.incoming.is_none()
    }

    fn fail(&self, fault: BodyFault, what: &'static str) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.progress.fault.set(Some(fault));
        Poll::Ready(Some(Err(io::Error::other(what))))
    }

    fn end(&self) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.progress.whole.set(true);
        Poll::Ready(None)
    }

    /// Waiting for the client, until it is silent for too long or falls below the slowest rate.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            let earned = Duration::from_secs(self.taken / MIN_BODY_BYTES_PER_S);
            let left = earned.max(BODY_RATE_GRACE).saturating_sub(self.waited);
            let deadline = now + left.min(self.idle);
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(deadline),
                None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
            }
        }
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
        }
        self.fail(BodyFault::Slow, "the client's body stopped or is too slow")
    }

    fn take(&mut self, data: Bytes) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.taken += data.len() as u64;
        if self.taken > self.max_bytes {
            return self.fail(BodyFault::TooLarge, "the client's body is too large");
        }
        if self.incoming.as_ref().is_none_or(Body::is_end_stream) {
            self.progress.whole.set(true);
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(incoming) = &mut self.incoming else {
            return self.end();
        };
        let Poll::Ready(frame) = Pin::new(incoming).poll_frame(cx) else {
            return self.wait(cx);
        };
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        match frame {
            None => self.end(),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => self.take(data),
                // Trailers are the client's framing, not the request's content: dropped.
                Err(_) => self.end(),
            },
            Some(Err(_)) => {
                // The gate sees everything that is malformed; what is left is a closed connection.
                let fault = if self.conn.body_is_broken() {
                    BodyFault::Broken
                } else {
                    BodyFault::Gone
                };
                self.fail(fault, "the client's body broke off")
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// An answer's body on its way to the client.
pub(crate) enum ResponseBody {
    /// The balancer's own words; the receipt lives as long as they are sent.
    Own {
        text: Option<Bytes>,
        _receipt: Option<Receipt>,
    },
    /// A backend's answer.
    Streamed(Box<Streamed>),
}

/// A body of which what came with the head was looked at.
pub(crate) struct Begun {
    first: Option<Result<Frame<Bytes>, hyper::Error>>,
    incoming: Incoming,
    /// The head told its length.
    pub(crate) has_length: bool,
}

impl Begun {
    /// Looks at what of the body is there. `None` if it is malformed: such an answer is no answer, and
    /// nothing of it has reached the client yet.
    pub(crate) async fn look(mut incoming: Incoming) -> Option<Self> {
        let has_length = incoming.size_hint().exact().is_some();
        let there = poll_fn(|cx| Poll::Ready(Pin::new(&mut incoming).poll_frame(cx))).await;
        let first = match there {
            Poll::Ready(Some(Err(e))) if is_malformed(&e) => return None,
            Poll::Ready(first) => first,
            Poll::Pending => None,
        };
        Some(Self {
            first,
            incoming,
            has_length,
        })
    }
}

/// Whether a body breaks the rules of its framing, rather than breaking off.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|e| e.downcast_ref::<io::Error>());
    cause.is_some_and(|e| {
        matches!(
            e.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
        )
    })
}

/// A backend's answer under way: ends its dispatch exactly once, whatever happens to it.
pub(crate) struct Streamed {
    /// What came with the head.
    first: Option<Result<Frame<Bytes>, hyper::Error>>,
    incoming: Incoming,
    /// The backend broke it off.
    broken: bool,
    silence: Silence,
    open: Option<Open>,
}

/// What is settled when the last byte has passed.
pub(crate) struct Open {
    pub(crate) ticket: Ticket,
    pub(crate) receipt: Receipt,
    pub(crate) progress: Rc<Progress>,
    /// The client sees the end of the body only in the end of its connection.
    pub(crate) close_delimited: bool,
    pub(crate) answer: Answer,
    pub(crate) told: Told,
    pub(crate) sender: Sender,
    pub(crate) pool: Rc<Pool>,
}

impl ResponseBody {
    /// Streams a backend's answer.
    pub(crate) fn streamed(begun: Begun, silence: Duration, open: Open) -> Self {
        let mut streamed = Streamed {
            first: begun.first,
            incoming: begun.incoming,
            broken: false,
            silence: Silence::new(silence),
            open: Some(open),
        };
        // The server never polls a body that says it is over, so an empty one ends here.
        streamed.settle_if_over();
        Self::Streamed(Box::new(streamed))
    }
}

impl Streamed {
    fn size_hint(&self) -> SizeHint {
        let rest = self.incoming.size_hint();
        let first = match &self.first {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        };
        match rest.exact() {
            Some(rest) => SizeHint::with_exact(first + rest),
            None => rest,
        }
    }

    fn settle_if_over(&mut self) {
        if self.incoming.is_end_stream() {
            self.settle();
        }
    }

    /// The whole answer is here.
    fn settle(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let backend = open.ticket.backend();
        let mut receipt = open.receipt;
        receipt.end("backend", open.answer.http_status);
        open.ticket.finish(&open.answer, open.told);
        if open.progress.whole.get() {
            open.pool.keep(backend, open.sender);
        }
    }

    fn fail(&mut self, status: Status, reason: &'static str) -> io::Error {
        if let Some(open) = self.open.take() {
            let mut receipt = open.receipt;
            receipt.end(reason, None);
            if open.close_delimited {
                receipt.conn.abort();
            }
            let answer = Answer {
                status,
                ..open.answer
            };
            open.ticket.finish(&answer, Told::default());
        }
        io::Error::other(reason)
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut self.incoming).poll_frame(cx),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.broken {
            return Poll::Ready(Some(Err(self.fail(Status::Error, BODY_TRUNCATED))));
        }
        match self.poll_next(cx) {
            Poll::Pending => {
                ready!(self.silence.lasts(cx));
                Poll::Ready(Some(Err(self.fail(Status::Timeout, BODY_IDLE))))
            }
            Poll::Ready(Some(Err(_))) => {
                // The server drops what it has not sent when a body fails. It sends while a body is
                // silent, so the client gets the head and what came before.
                self.broken = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                self.settle_if_over();
                match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(_) => self.poll(cx),
                }
            }
            Poll::Ready(None) => {
                self.settle();
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // The server does not ask again once the stated length is reached.
        self.settle_if_over();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Own { text, .. } => Poll::Ready(text.take().map(|t| Ok(Frame::data(t)))),
            Self::Streamed(streamed) => streamed.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own { text, .. } => text.is_none(),
            Self::Streamed(streamed) => {
                streamed.open.is_none()
                    && streamed.first.is_none()
                    && streamed.incoming.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { text, .. } => {
                SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64))
            }
            Self::Streamed(streamed) => streamed.size_hint(),
        }
    }
}
