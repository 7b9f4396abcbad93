//! Bodies in both directions: streamed, never collected, each with a limit on silence.

use super::pool::{Pool, Sender};
use crate::core::{Ticket, Told};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::cell::Cell;
use std::future::Future;
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
    Silent,
    Broken,
}

/// A client's body on its way to a backend.
pub(crate) struct RequestBody {
    incoming: Option<Incoming>,
    left: u64,
    silence: Silence,
    fault: Rc<Cell<Option<BodyFault>>>,
}

impl RequestBody {
    /// Streams `incoming` up to `max_bytes`; what goes wrong is noted in `fault`.
    pub(crate) fn new(
        incoming: Incoming,
        max_bytes: u64,
        silence: Duration,
        fault: Rc<Cell<Option<BodyFault>>>,
    ) -> Self {
        Self {
            incoming: Some(incoming),
            left: max_bytes,
            silence: Silence::new(silence),
            fault,
        }
    }

    /// No body.
    pub(crate) fn empty() -> Self {
        let silence = Silence::new(Duration::ZERO);
        Self {
            incoming: None,
            left: 0,
            silence,
            fault: Rc::default(),
        }
    }

    fn fail(&self, fault: BodyFault, what: &'static str) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.fault.set(Some(fault));
        Poll::Ready(Some(Err(io::Error::other(what))))
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
            return Poll::Ready(None);
        };
        match Pin::new(incoming).poll_frame(cx) {
            Poll::Pending => match self.silence.lasts(cx) {
                Poll::Ready(()) => self.fail(BodyFault::Silent, "the client's body stopped"),
                Poll::Pending => Poll::Pending,
            },
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(_))) => {
                self.fail(BodyFault::Broken, "the client's body broke off")
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                // Trailers are the client's framing, not the request's content: dropped.
                let Ok(data) = frame.into_data() else {
                    return Poll::Ready(None);
                };
                match self.left.checked_sub(data.len() as u64) {
                    Some(left) => {
                        self.left = left;
                        Poll::Ready(Some(Ok(Frame::data(data))))
                    }
                    None => self.fail(BodyFault::TooLarge, "the client's body is too large"),
                }
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
    /// The balancer's own words.
    Own(Option<Bytes>),
    /// A backend's answer.
    Streamed(Box<Streamed>),
}

/// A backend's answer under way: ends its dispatch exactly once, whatever happens to it.
pub(crate) struct Streamed {
    incoming: Incoming,
    silence: Silence,
    open: Option<Open>,
}

/// What is settled when the last byte has passed.
pub(crate) struct Open {
    pub(crate) ticket: Ticket,
    pub(crate) answer: Answer,
    pub(crate) told: Told,
    pub(crate) sender: Sender,
    pub(crate) pool: Rc<Pool>,
}

impl ResponseBody {
    /// Streams a backend's answer.
    pub(crate) fn streamed(incoming: Incoming, silence: Duration, open: Open) -> Self {
        let mut streamed = Streamed {
            incoming,
            silence: Silence::new(silence),
            open: Some(open),
        };
        // The server never polls a body that says it is over, so an empty one ends here.
        streamed.settle_if_over();
        Self::Streamed(Box::new(streamed))
    }
}

impl Streamed {
    fn settle_if_over(&mut self) {
        if self.incoming.is_end_stream()
            && let Some(open) = self.open.take()
        {
            let backend = open.ticket.backend();
            open.ticket.finish(&open.answer, &open.told);
            open.pool.keep(backend, open.sender);
        }
    }

    fn fail(&mut self, status: Status, what: &'static str) -> io::Error {
        if let Some(open) = self.open.take() {
            open.ticket.finish(
                &Answer {
                    status,
                    ..open.answer
                },
                &Told::default(),
            );
        }
        io::Error::other(what)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Pending => {
                ready!(self.silence.lasts(cx));
                let e = self.fail(Status::Timeout, "body_idle: the backend's body stopped");
                Poll::Ready(Some(Err(e)))
            }
            Poll::Ready(Some(Err(_))) => {
                let e = self.fail(
                    Status::Error,
                    "body_truncated: the backend's body broke off",
                );
                Poll::Ready(Some(Err(e)))
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
                self.settle_if_over();
                Poll::Ready(None)
            }
        }
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
            Self::Own(text) => Poll::Ready(text.take().map(|t| Ok(Frame::data(t)))),
            Self::Streamed(streamed) => streamed.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Streamed(streamed) => streamed.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64)),
            Self::Streamed(streamed) => streamed.incoming.size_hint(),
        }
    }
}
