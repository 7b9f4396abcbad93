//! One request: checked, placed, sent, answered.

use super::answer;
use super::body::{Begun, BodyFault, Open, Progress, RequestBody, ResponseBody};
use super::fields::{self, Peer, safe_request_id};
use super::framing::{self, Refusal};
use super::pool::{self, Pool, Sender};
use super::receipt::Receipt;
use crate::ask_first::Asker;
use crate::core::{Attempt, Core, Picked, Ticket, Told};
use crate::settings::Settings;
use gate::Conn;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode, Uri, Version, request};
use http_body::Body;
use hyper::body::Incoming;
use schema::headers;
use schema::headers::WorkerTiming;
use schema::laws::sizes::TASK_SIZE_MI;
use schema::load_report::LoadReport;
use schema::work_left;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use strategies::{Answer, BackendId, Status};
use tokio::time::Instant;

/// Backends that a request has been sent to and may not go to again: an attempt is repeated only where a
/// kept connection was closed, which says nothing of the backend.
const TRIED: &[BackendId] = &[];

/// What all requests of one thread share.
pub(crate) struct Proxy {
    pub(crate) core: Arc<Core>,
    pub(crate) settings: Settings,
    pub(crate) pool: Rc<Pool>,
    /// Asks before picks, if that is wished for.
    pub(crate) asker: Option<Asker>,
    pub(crate) ids: Arc<RequestIds>,
    /// Peers whose `X-Forwarded-*` are believed.
    pub(crate) trusted_peers: Arc<[IpAddr]>,
}

/// Names for requests that come without one.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that start with `prefix`.
    pub(crate) fn new(prefix: String) -> Self {
        Self {
            prefix,
            next: AtomicU64::new(0),
        }
    }

    fn make(&self) -> HeaderValue {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{}-{n}", self.prefix))
            .unwrap_or(HeaderValue::from_static("unnamed"))
    }
}

/// What stays the same over the attempts of one request.
struct Job<'a> {
    began: Instant,
    /// The client's version.
    version: Version,
    body_len: u64,
    progress: &'a Rc<Progress>,
}

/// One attempt that brought no answer.
struct Missed {
    refusal: Refusal,
    /// The request, if it may be sent again: a kept connection was closed before it answered.
    again: Option<Box<request::Parts>>,
}

impl Proxy {
    /// Answers one request; never fails, since a failure is an answer too. `refused` says what the
    /// gate found wrong with its head.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        conn: Rc<Conn>,
        refused: Option<Refusal>,
    ) -> Response<ResponseBody> {
        if let Some(refusal) = refused {
            let mut state = self.core.lock();
            *state.counts.head_rejected.entry(refusal.1).or_default() += 1;
            drop(state);
            let mut response = answer::refuse(refusal, 0, None);
            response
                .headers_mut()
                .insert(headers::REQUEST_ID, self.ids.make());
            return response;
        }
        let (head, body) = request.into_parts();
        let id = safe_request_id(&head.headers).unwrap_or_else(|| self.ids.make());
        let (receipt, held) = Receipt::begin(&self.core, &conn, id.clone());
        let mut response = match self.admit(&head, &body, held) {
            Ok(()) => self.place(head, body, peer, receipt).await,
            Err(refusal) => refuse(refusal, 0, receipt),
        };
        response.headers_mut().insert(headers::REQUEST_ID, id);
        response
    }

    fn admit(&self, head: &request::Parts, body: &Incoming, held: usize) -> Result<(), Refusal> {
        let limit = self.settings.shed_max_in_flight;
        if limit > 0 && held > limit {
            return Err(answer::SHED);
        }
        framing::check_request(head)?;
        if body.size_hint().lower() > self.settings.body_max_bytes {
            return Err(answer::BODY_TOO_LARGE);
        }
        Ok(())
    }

    async fn place(
        &self,
        mut head: request::Parts,
        body: Incoming,
        peer: IpAddr,
        mut receipt: Receipt,
    ) -> Response<ResponseBody> {
        let is_chunked = !body.is_end_stream() && body.size_hint().exact().is_none();
        let progress = Rc::new(Progress::default());
        let job = Job {
            began: Instant::now(),
            version: head.version,
            body_len: body.size_hint().exact().unwrap_or(0),
            progress: &progress,
        };
        let who = Peer {
            address: peer,
            version: head.version,
            trusted: &self.trusted_peers,
        };
        fields::for_backend(&mut head.headers, &who, &receipt.id, is_chunked);
        // The path and query of a valid target are valid themselves.
        let target = head.uri.path_and_query().cloned();
        head.uri = target.map_or_else(Uri::default, Uri::from);
        head.version = Version::HTTP_11;
        let conn = Rc::clone(&receipt.conn);
        let mut body = RequestBody::new(body, conn, &self.settings, Rc::clone(&progress));
        let mut number = 0;
        loop {
            if let Some(asker) = &self.asker {
                asker.ask(TRIED, job.began + self.settings.total).await;
            }
            let Some(picked) = self.pick(&head, peer, number, &job, receipt.id()) else {
                return refuse(answer::NO_BACKEND, number, receipt);
            };
            receipt.dispatched = true;
            if let Ok(attempt) = HeaderValue::try_from(format!("{}-{number}", receipt.id())) {
                head.headers.insert(headers::ATTEMPT, attempt);
            }
            let Picked {
                ticket,
                name,
                url,
                decision,
            } = picked;
            let decision = decision.to_string();
            let backend = ticket.backend();
            let owed = Owed {
                ticket: Some(ticket),
                progress: Rc::clone(&progress),
            };
            let sent = self.attempt(head, body, &url, backend, number, &job).await;
            let ticket = owed.came();
            let (mut response, reason) = match sent {
                Ok((answer, sender)) => {
                    let response = self.relay(answer, sender, ticket, receipt, &job);
                    (response, "backend")
                }
                Err(Missed { refusal, again }) => {
                    ticket.fail(outcome_of(refusal));
                    if let Some(parts) = again {
                        (head, body) = (*parts, RequestBody::empty());
                        number += 1;
                        self.core.lock().counts.stale_retries += 1;
                        continue;
                    }
                    (refuse(refusal, number + 1, receipt), refusal.1)
                }
            };
            describe(response.headers_mut(), reason, number + 1, &name, decision);
            return response;
        }
    }

    fn pick(
        &self,
        head: &request::Parts,
        client: IpAddr,
        number: u32,
        job: &Job<'_>,
        request_id: &str,
    ) -> Option<Picked> {
        self.core.pick(&Attempt {
            request_id,
            method: head.method.as_str(),
            url: head.uri.path_and_query().map_or("/", |p| p.as_str()),
            client,
            headers: &head.headers,
            body_len: job.body_len,
            number,
            tried: TRIED,
            cost_mi: number_of(head.headers.get(headers::TASK_SIZE_MI)),
        })
    }

    /// Sends one attempt; the answer's head is good.
    async fn attempt(
        &self,
        head: request::Parts,
        body: RequestBody,
        url: &str,
        backend: BackendId,
        number: u32,
        job: &Job<'_>,
    ) -> Result<(Response<Begun>, Sender), Missed> {
        let total = job.began + self.settings.total;
        let per_try = self.settings.per_try.map(|d| Instant::now() + d);
        let deadline = per_try.map_or(total, |p| p.min(total));
        let too_late = if deadline < total {
            answer::PER_TRY_TIMEOUT
        } else {
            answer::TOTAL_TIMEOUT
        };
        let mut again = None;
        let repeatable = number == 0
            && self.settings.retry_stale
            && body.is_empty()
            && is_idempotent(&head.method);
        let copy = repeatable.then_some(&mut again);
        let authority = url.strip_prefix("http://").unwrap_or(url);
        let request = Request::from_parts(head, body);
        let exchange = self.exchange(request, authority, backend, job.progress, copy);
        let refusal = match tokio::time::timeout_at(deadline, exchange).await {
            Ok(Ok((answer, sender))) => {
                let (head, body) = answer.into_parts();
                if framing::check_answer(&head)
                    && let Some(begun) = Begun::look(body).await
                {
                    return Ok((Response::from_parts(head, begun), sender));
                }
                answer::BAD_RESPONSE
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => too_late,
        };
        Err(Missed {
            refusal,
            again: again.filter(|_| refusal == answer::BACKEND_RESET),
        })
    }

    /// Sends over a kept connection, else over a new one. A request of which nothing was written,
    /// because the kept connection closed meanwhile, simply takes the next connection.
    async fn exchange(
        &self,
        mut request: Request<RequestBody>,
        authority: &str,
        backend: BackendId,
        progress: &Progress,
        mut copy: Option<&mut Option<Box<request::Parts>>>,
    ) -> Result<(Response<Incoming>, Sender), Refusal> {
        loop {
            let kept = self.pool.reuse(backend);
            let reused = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => self.open(authority, backend).await?,
            };
            if let Some(copy) = &mut copy {
                **copy = reused.then(|| Box::new(copy_of(&request)));
            }
            match sender.send(request).await {
                Ok(answer) => {
                    if reused {
                        self.core.lock().counts.of(backend).connections_reused += 1;
                    }
                    return Ok((answer, sender));
                }
                Err(mut e) => match e.take_message() {
                    Some(unsent) if reused => request = unsent,
                    _ if sender.sent_too_much() => return Err(answer::BAD_RESPONSE),
                    _ => return Err(broken(e.error(), progress)),
                },
            }
        }
    }

    async fn open(&self, authority: &str, backend: BackendId) -> Result<Sender, Refusal> {
        let connecting = tokio::time::timeout(self.settings.connect, pool::connect(authority));
        match connecting.await {
            Ok(Ok(sender)) => {
                self.core.lock().counts.of(backend).connections_opened += 1;
                Ok(sender)
            }
            Ok(Err(e)) if e.kind() == io::ErrorKind::ConnectionRefused => {
                Err(answer::CONNECT_REFUSED)
            }
            Ok(Err(_)) => Err(answer::CONNECT_UNREACHABLE),
            Err(_) => Err(answer::CONNECT_TIMEOUT),
        }
    }

    /// Turns a backend's answer into the client's; its body settles the dispatch.
    fn relay(
        &self,
        answer: Response<Begun>,
        sender: Sender,
        ticket: Ticket,
        receipt: Receipt,
        job: &Job<'_>,
    ) -> Response<ResponseBody> {
        let (mut head, begun) = answer.into_parts();
        let open = Open {
            answer: outcome(&head, ticket.elapsed_ns()),
            told: told(&head.headers),
            ticket,
            receipt,
            progress: Rc::clone(job.progress),
            close_delimited: job.version == Version::HTTP_10 && !begun.has_length,
            sender,
            pool: Rc::clone(&self.pool),
        };
        let body = ResponseBody::streamed(begun, self.settings.body_idle, open);
        head.version = Version::HTTP_11;
        fields::for_client(&mut head.headers);
        Response::from_parts(head, body)
    }
}

/// The head of an answer that a backend owes. Dropped before it came, the client has gone.
struct Owed {
    ticket: Option<Ticket>,
    progress: Rc<Progress>,
}

impl Owed {
    /// The wait is over, whatever came.
    fn came(mut self) -> Ticket {
        self.ticket.take().expect("only this takes it")
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        // As long as the request is not whole it is the client that is waited for.
        if let Some(ticket) = self.ticket.take()
            && self.progress.whole.get()
        {
            ticket.give_up();
        }
    }
}

/// An answer of our own for a request that was received.
fn refuse(refusal: Refusal, attempts: u32, mut receipt: Receipt) -> Response<ResponseBody> {
    // The rest of the request may still be under way.
    receipt.conn.linger();
    receipt.end(refusal.1, Some(refusal.0.as_u16()));
    answer::refuse(refusal, attempts, Some(receipt))
}

/// Sets the fields that say what the balancer did.
fn describe(
    fields: &mut http::HeaderMap,
    reason: &'static str,
    attempts: u32,
    name: &str,
    decision: String,
) {
    fields.insert(headers::REASON, HeaderValue::from_static(reason));
    fields.insert(headers::ATTEMPTS, HeaderValue::from(attempts));
    // Names are checked when a backend is added, so both are visible ASCII.
    if let Ok(name) = HeaderValue::from_str(name) {
        fields.insert(headers::CONTAINER, name);
    }
    if let Ok(decision) = HeaderValue::try_from(decision) {
        fields.insert(headers::DECISION, decision);
    }
}

fn copy_of(request: &Request<RequestBody>) -> request::Parts {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy.into_parts().0
}

/// Methods that may be sent twice without harm (RFC 9110, 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::TRACE,
        Method::PUT,
        Method::DELETE,
    ]
    .contains(method)
}

/// How an attempt without an answer counts for its backend.
fn outcome_of(refusal: Refusal) -> Status {
    match refusal {
        answer::CONNECT_REFUSED | answer::CONNECT_UNREACHABLE => Status::Refused,
        answer::CONNECT_TIMEOUT | answer::PER_TRY_TIMEOUT | answer::TOTAL_TIMEOUT => {
            Status::Timeout
        }
        answer::BACKEND_RESET | answer::BAD_RESPONSE => Status::Error,
        // The client's own doing says nothing about the backend.
        _ => Status::Cancelled,
    }
}

/// Who broke an exchange: the client's body, or the backend.
fn broken(e: &hyper::Error, progress: &Progress) -> Refusal {
    match progress.fault.get() {
        Some(BodyFault::TooLarge) => answer::BODY_TOO_LARGE,
        Some(BodyFault::Slow) => answer::BODY_TIMEOUT,
        Some(BodyFault::Broken) => answer::BAD_REQUEST,
        Some(BodyFault::Gone) => answer::GONE,
        None if e.is_parse() => answer::BAD_RESPONSE,
        None => answer::BACKEND_RESET,
    }
}

fn outcome(head: &http::response::Parts, ttfb_ns: u64) -> Answer {
    let failed = head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS;
    let retry_after_s: Option<u64> = head
        .headers
        .get(RETRY_AFTER)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse().ok());
    Answer {
        ttfb_ns: Some(ttfb_ns),
        http_status: Some(head.status.as_u16()),
        retry_after_ns: retry_after_s.map(|s| s.saturating_mul(1_000_000_000)),
        service_time_ns: timing(&head.headers).map(|t| t.service_time_us * 1000),
        ..Answer::new(if failed { Status::Error } else { Status::Ok })
    }
}

fn timing(fields: &http::HeaderMap) -> Option<WorkerTiming> {
    fields
        .get(headers::WORKER_TIMING)?
        .to_str()
        .ok()
        .and_then(WorkerTiming::parse)
}

fn told(fields: &http::HeaderMap) -> Told {
    let text = |name| fields.get(name).and_then(|v| v.to_str().ok());
    Told {
        queue_wait_ns: timing(fields).map(|t| t.queue_wait_us * 1000),
        load: text(headers::LOAD_REPORT).and_then(|text| LoadReport::parse(text).ok()),
        work_left: text(headers::WORKER_WORK_LEFT).and_then(work_left::parse),
    }
}

fn number_of(value: Option<&HeaderValue>) -> Option<f64> {
    value?
        .to_str()
        .ok()?
        .parse()
        .ok()
        .filter(|v| TASK_SIZE_MI.contains(v))
}
