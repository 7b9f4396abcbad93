//! One request from its due time to its row.
//!
//! [`Exchanger::launch`] runs on the thread that sends: it takes an idle connection, writes the
//! request and leaves the rest (head, body, timeout) to a task of the runtime. `sent_ns` is the
//! moment the client began to send: the first write, or the connect when no connection was ready.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::link::{Answer, Body, Link};
use crate::outcome::{Fate, Head, Outcome, never_sent};
use crate::pool::Pool;
use crate::recorder::RowSender;

/// A request that is built and waits for its due time.
pub(crate) struct Prepared {
    pub(crate) seq: usize,
    pub(crate) intended_ns: u64,
    pub(crate) request: Request<Body>,
}

/// Bounds of every exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the send to the end of the answer.
    pub(crate) timeout: Duration,
    /// Requests sent and not yet ended.
    pub(crate) max_in_flight: usize,
}

/// Sends requests and turns their ends into rows.
pub(crate) struct Exchanger {
    pub(crate) clock: Arc<Clock>,
    pool: Arc<Pool>,
    runtime: Handle,
    rows: RowSender,
    timeout: Duration,
    max_in_flight: usize,
    in_flight: Arc<AtomicUsize>,
    /// Notified whenever nothing is in flight any more.
    idle: Notify,
    /// Cuts everything in flight.
    cut: CancellationToken,
}

/// A request whose sending has begun.
struct Begun {
    seq: usize,
    intended_ns: u64,
    /// When, raw clock ns.
    raw_ns: u64,
    deadline: Instant,
}

/// How a request ended on its connection.
struct Ending {
    head: Option<Box<Head>>,
    fate: Fate,
    /// The connection is at the end of a message and may be used again.
    is_whole: bool,
}

impl Exchanger {
    /// An exchanger over `pool`; `runtime` reads the answers.
    pub(crate) fn new(
        clock: Arc<Clock>,
        pool: Arc<Pool>,
        runtime: Handle,
        rows: RowSender,
        limits: Limits,
        in_flight: Arc<AtomicUsize>,
    ) -> Arc<Self> {
        Arc::new(Self {
            clock,
            pool,
            runtime,
            rows,
            timeout: limits.timeout,
            max_in_flight: limits.max_in_flight,
            in_flight,
            idle: Notify::new(),
            cut: CancellationToken::new(),
        })
    }

    /// Requests sent and not yet ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Sends a request now, from the calling thread. `on_end` hears whether it was good.
    pub(crate) fn launch(
        self: &Arc<Self>,
        prepared: Prepared,
        on_end: impl FnOnce(bool) + Send + 'static,
    ) {
        if self.in_flight() >= self.max_in_flight {
            self.refuse(
                prepared.seq,
                prepared.intended_ns,
                never_sent::MAX_IN_FLIGHT,
            );
            on_end(false);
            return;
        }
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        let Prepared {
            seq,
            intended_ns,
            request,
        } = prepared;
        let begun = Begun {
            seq,
            intended_ns,
            raw_ns: self.clock.raw_ns(),
            deadline: Instant::now() + self.timeout,
        };
        let this = Arc::clone(self);
        if let Some(mut link) = self.pool.take() {
            let answer = link.start(request);
            self.runtime.spawn(async move {
                let outcome = this.follow_or_retry(&begun, link, answer).await;
                this.finish(outcome, on_end);
            });
        } else {
            self.runtime.spawn(async move {
                let outcome = this.connect(&begun, request).await;
                this.finish(outcome, on_end);
            });
        }
        self.pool.top_up(&self.runtime);
    }

    /// Records a request that is not sent.
    pub(crate) fn refuse(&self, seq: usize, intended_ns: u64, why: &'static str) {
        self.rows.send(Outcome::never_sent(seq, intended_ns, why));
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn drained(&self) {
        while self.in_flight() > 0 {
            self.idle.notified().await;
        }
    }

    /// Ends everything in flight as cancelled.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    fn finish(&self, outcome: Outcome, on_end: impl FnOnce(bool)) {
        let good = outcome.fate == Fate::Ok;
        self.rows.send(outcome);
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        on_end(good);
        if self.in_flight() == 0 {
            self.idle.notify_one();
        }
    }

    /// Follows a request handed to an idle connection. If the connection closed before it took the
    /// request, nothing was sent and a new connection is opened for it.
    async fn follow_or_retry(&self, begun: &Begun, link: Link, answer: Answer) -> Outcome {
        match self.follow(begun, link, answer).await {
            Ok(outcome) => outcome,
            Err(unsent) => self.connect(begun, unsent).await,
        }
    }

    /// Opens a connection for a request that found none ready, then sends it.
    async fn connect(&self, begun: &Begun, request: Request<Body>) -> Outcome {
        let opened = tokio::select! {
            biased;
            () = self.cut.cancelled() => Err(Fate::Cancelled),
            () = sleep_until(begun.deadline) => Err(Fate::Timeout),
            opened = self.pool.open() => opened.map_err(|e| connect_fate(&e)),
        };
        let sent_ns = Some(self.clock.since_zero(begun.raw_ns));
        let fate = match opened {
            Ok(mut link) => {
                let answer = link.start(request);
                match self.follow(begun, link, answer).await {
                    Ok(outcome) => return Outcome { sent_ns, ..outcome },
                    Err(_unsent) => Fate::Error(RESET.into()),
                }
            }
            Err(Fate::NeverSent(why)) => {
                return Outcome::never_sent(begun.seq, begun.intended_ns, why);
            }
            Err(fate) => fate,
        };
        Outcome {
            seq: begun.seq,
            intended_ns: begun.intended_ns,
            sent_ns,
            first_byte_ns: None,
            done_ns: Some(self.clock.now_ns()),
            head: None,
            fate,
        }
    }

    /// Waits for the end of a request that was handed to `link`; gives the request back if the
    /// connection closed before it took it.
    async fn follow(
        &self,
        begun: &Begun,
        mut link: Link,
        answer: Answer,
    ) -> Result<Outcome, Request<Body>> {
        let ending = tokio::select! {
            biased;
            ending = read_answer(answer) => ending?,
            () = self.cut.cancelled() => Ending::without_head(Fate::Cancelled),
            () = sleep_until(begun.deadline) => Ending::without_head(Fate::Timeout),
        };
        let done_ns = self.clock.now_ns();
        let stamps = link.stamps();
        let sent_raw_ns = stamps.first_write_ns().unwrap_or(begun.raw_ns);
        let outcome = Outcome {
            seq: begun.seq,
            intended_ns: begun.intended_ns,
            sent_ns: Some(self.clock.since_zero(sent_raw_ns)),
            first_byte_ns: stamps
                .first_read_ns()
                .filter(|_| ending.head.is_some())
                .map(|raw| self.clock.since_zero(raw)),
            done_ns: Some(done_ns),
            head: ending.head,
            fate: ending.fate,
        };
        if ending.is_whole && link.ready().await.is_ok() {
            self.pool.put(link);
        }
        Ok(outcome)
    }
}

impl Ending {
    fn without_head(fate: Fate) -> Self {
        Self {
            head: None,
            fate,
            is_whole: false,
        }
    }
}

/// Reads head and body to their end; gives a request back that was never begun to be written.
async fn read_answer(answer: Answer) -> Result<Ending, Request<Body>> {
    let response = match answer.await {
        Ok(response) => response,
        Err(mut e) => {
            return match e.take_message() {
                Some(unsent) => Err(unsent),
                None => {
                    let reason = reason_before_head(e.error());
                    Ok(Ending::without_head(Fate::Error(reason.into())))
                }
            };
        }
    };
    let head = Box::new(Head::read(response.status().as_u16(), response.headers()));
    let mut body = response.into_body();
    let mut fate = head.fate();
    let mut is_whole = true;
    while let Some(frame) = body.frame().await {
        if let Err(e) = frame {
            fate = Fate::Error(reason_in_body(&e).into());
            is_whole = false;
            break;
        }
    }
    Ok(Ending {
        head: Some(head),
        fate,
        is_whole,
    })
}

const TRUNCATED: &str = "truncated";
const MALFORMED: &str = "malformed";
const RESET: &str = "reset";

fn reason_before_head(error: &hyper::Error) -> &'static str {
    if error.is_parse() { MALFORMED } else { RESET }
}

fn reason_in_body(error: &hyper::Error) -> &'static str {
    if error.is_parse() {
        MALFORMED
    } else {
        TRUNCATED
    }
}

fn connect_fate(error: &io::Error) -> Fate {
    const OUT_OF_FILES: [i32; 2] = [libc::EMFILE, libc::ENFILE];
    if error
        .raw_os_error()
        .is_some_and(|e| OUT_OF_FILES.contains(&e) || e == libc::EADDRNOTAVAIL)
    {
        return Fate::NeverSent(never_sent::NO_SOCKET);
    }
    Fate::Error(
        match error.kind() {
            io::ErrorKind::ConnectionRefused => "refused",
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
            _ => RESET,
        }
        .into(),
    )
}
