//! One request: checked, placed, sent, answered.

use super::answer::{self, refuse};
use super::body::{BodyFault, Open, RequestBody, ResponseBody};
use super::framing::{self, Refusal};
use super::pool::{self, Pool, Sender, Use};
use super::{fields, fields::safe_request_id};
use crate::core::{Attempt, Core, Picked, Told};
use crate::settings::Settings;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode, Uri, Version, request};
use http_body::Body;
use hyper::body::Incoming;
use schema::headers;
use schema::headers::WorkerTiming;
use schema::load_report::LoadReport;
use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use strategies::{Answer, Status};
use tokio::time::Instant;

/// What all requests of one thread share.
pub(crate) struct Proxy {
    pub(crate) core: Arc<Core>,
    pub(crate) settings: Settings,
    pub(crate) pool: Rc<Pool>,
    pub(crate) ids: Arc<RequestIds>,
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

impl Proxy {
    /// Answers one request; never fails, since a failure is an answer too.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let id = safe_request_id(&head.headers).unwrap_or_else(|| self.ids.make());
        let mut response = match self.admit(&head) {
            Ok(()) => self.place(head, body, peer, &id).await,
            Err(refusal) => self.unserved(refusal, &id),
        };
        response.headers_mut().insert(headers::REQUEST_ID, id);
        response
    }

    fn admit(&self, head: &request::Parts) -> Result<(), Refusal> {
        let mut state = self.core.lock();
        state.counts.received += 1;
        let limit = self.settings.shed_max_in_flight;
        if limit > 0 && state.dispatcher.open_len() >= limit {
            return Err(answer::SHED);
        }
        drop(state);
        framing::check_request(head)
    }

    fn unserved(&self, refusal: Refusal, id: &HeaderValue) -> Response<ResponseBody> {
        let (status, reason) = refusal;
        let mut state = self.core.lock();
        state.unserved(
            id.to_str().unwrap_or_default(),
            reason,
            Some(status.as_u16()),
        );
        *state.counts.by_reason.entry(reason).or_default() += 1;
        drop(state);
        refuse(refusal, 0)
    }

    async fn place(
        &self,
        mut head: request::Parts,
        body: Incoming,
        peer: IpAddr,
        id: &HeaderValue,
    ) -> Response<ResponseBody> {
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |p| p.as_str())
            .to_string();
        let attempt = Attempt {
            request_id: id.to_str().unwrap_or_default(),
            method: head.method.as_str(),
            url: &target,
            client: peer,
            headers: &head.headers,
            body_len: body.size_hint().lower(),
            number: 0,
            tried: &[],
            cost_mi: number(head.headers.get(headers::TASK_SIZE_MI)),
        };
        let Some(picked) = self.core.pick(&attempt) else {
            return self.unserved(answer::NO_BACKEND, id);
        };
        fields::for_backend(&mut head.headers, peer, id);
        if let Ok(attempt) = HeaderValue::try_from(format!("{}-0", id.to_str().unwrap_or_default()))
        {
            head.headers.insert(headers::ATTEMPT, attempt);
        }
        head.uri = Uri::try_from(target).unwrap_or_default();
        head.version = Version::HTTP_11;
        self.attempt(head, body, picked).await
    }

    /// Sends one attempt and turns what comes back into the client's answer.
    async fn attempt(
        &self,
        head: request::Parts,
        body: Incoming,
        picked: Picked,
    ) -> Response<ResponseBody> {
        let Picked {
            ticket,
            name,
            url,
            decision,
        } = picked;
        let started = Instant::now();
        let fault = Rc::new(Cell::new(None));
        let sent = self.send(head, body, &url, ticket.backend(), &fault).await;
        let (mut response, reason) = match sent {
            Ok((answer, sender)) => {
                let ttfb = started.elapsed();
                let (parts, incoming) = answer.into_parts();
                if framing::is_ambiguous(&parts.headers) {
                    ticket.fail(Status::Error);
                    (refuse(answer::BAD_RESPONSE, 1), answer::BAD_RESPONSE.1)
                } else {
                    let told = told(&parts.headers);
                    let outcome = outcome(&parts, ttfb.as_nanos() as u64);
                    let open = Open {
                        ticket,
                        answer: outcome,
                        told,
                        sender,
                        pool: Rc::clone(&self.pool),
                    };
                    let body = ResponseBody::streamed(incoming, self.settings.body_idle, open);
                    let mut response = Response::from_parts(parts, body);
                    *response.version_mut() = Version::HTTP_11;
                    fields::for_client(response.headers_mut());
                    (response, "backend")
                }
            }
            Err((status, refusal)) => {
                ticket.fail(status);
                (refuse(refusal, 1), refusal.1)
            }
        };
        *self.core.lock().counts.by_reason.entry(reason).or_default() += 1;
        let out = response.headers_mut();
        out.insert(headers::REASON, HeaderValue::from_static(reason));
        out.insert(headers::ATTEMPTS, HeaderValue::from(1));
        for (field, text) in [
            (headers::CONTAINER, name.to_string()),
            (headers::DECISION, decision.to_string()),
        ] {
            if let Ok(value) = HeaderValue::try_from(text) {
                out.insert(field, value);
            }
        }
        response
    }

    /// Sends the request; the head of the answer, or how the dispatch ended and what to tell the client.
    async fn send(
        &self,
        head: request::Parts,
        body: Incoming,
        url: &str,
        backend: strategies::BackendId,
        fault: &Rc<Cell<Option<BodyFault>>>,
    ) -> Result<(Response<Incoming>, Sender), (Status, Refusal)> {
        let authority = url.strip_prefix("http://").unwrap_or(url);
        let now = Instant::now();
        let total = now + self.settings.total;
        let per_try = self.settings.per_try.map(|d| now + d);
        let deadline = per_try.map_or(total, |p| p.min(total));
        let too_late = if deadline < total {
            answer::PER_TRY_TIMEOUT
        } else {
            answer::TOTAL_TIMEOUT
        };
        let exchange = self.exchange(head, body, authority, backend, fault);
        match tokio::time::timeout_at(deadline, exchange).await {
            Ok(result) => result,
            Err(_) => Err((Status::Timeout, too_late)),
        }
    }

    async fn exchange(
        &self,
        head: request::Parts,
        body: Incoming,
        authority: &str,
        backend: strategies::BackendId,
        fault: &Rc<Cell<Option<BodyFault>>>,
    ) -> Result<(Response<Incoming>, Sender), (Status, Refusal)> {
        // A kept connection may have been closed by the backend just now. Without a body and with an
        // idempotent method nothing is lost by asking once more on a fresh one.
        let again = (body.is_end_stream() && is_idempotent(&head.method)).then(|| head.clone());
        let body = if body.is_end_stream() {
            RequestBody::empty()
        } else {
            let s = &self.settings;
            RequestBody::new(body, s.body_max_bytes, s.body_idle, Rc::clone(fault))
        };
        let (mut sender, used) = self.connection(authority, backend).await?;
        match sender.send_request(Request::from_parts(head, body)).await {
            Ok(answer) => Ok((answer, sender)),
            Err(e) => match again.filter(|_| used == Use::Again && is_closed_unanswered(&e)) {
                Some(head) => {
                    let mut fresh = self.open(authority, backend).await?;
                    let request = Request::from_parts(head, RequestBody::empty());
                    match fresh.send_request(request).await {
                        Ok(answer) => Ok((answer, fresh)),
                        Err(e) => Err(broken(&e, None)),
                    }
                }
                None => Err(broken(&e, fault.get())),
            },
        }
    }

    async fn connection(
        &self,
        authority: &str,
        backend: strategies::BackendId,
    ) -> Result<(Sender, Use), (Status, Refusal)> {
        if let Some(sender) = self.pool.reuse(backend).await {
            self.core.lock().counts.of(backend).connections_reused += 1;
            return Ok((sender, Use::Again));
        }
        Ok((self.open(authority, backend).await?, Use::First))
    }

    async fn open(
        &self,
        authority: &str,
        backend: strategies::BackendId,
    ) -> Result<Sender, (Status, Refusal)> {
        let connecting = tokio::time::timeout(self.settings.connect, pool::connect(authority));
        match connecting.await {
            Ok(Ok(sender)) => {
                self.core.lock().counts.of(backend).connections_opened += 1;
                Ok(sender)
            }
            Ok(Err(e)) if e.kind() == io::ErrorKind::ConnectionRefused => {
                Err((Status::Refused, answer::CONNECT_REFUSED))
            }
            Ok(Err(_)) => Err((Status::Refused, answer::CONNECT_UNREACHABLE)),
            Err(_) => Err((Status::Timeout, answer::CONNECT_TIMEOUT)),
        }
    }
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

fn is_closed_unanswered(e: &hyper::Error) -> bool {
    e.is_canceled() || e.is_closed() || e.is_incomplete_message() || is_reset(e)
}

fn is_reset(e: &hyper::Error) -> bool {
    let source = std::error::Error::source(e).and_then(|s| s.downcast_ref::<io::Error>());
    source.is_some_and(|io| {
        matches!(
            io.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        )
    })
}

/// Who broke an exchange: the client's body (no fault of the backend), or the backend.
fn broken(e: &hyper::Error, fault: Option<BodyFault>) -> (Status, Refusal) {
    match fault {
        Some(BodyFault::TooLarge) => (Status::Cancelled, answer::BODY_TOO_LARGE),
        Some(BodyFault::Silent) => (Status::Cancelled, answer::BODY_TIMEOUT),
        Some(BodyFault::Broken) => (Status::Cancelled, answer::BAD_REQUEST),
        None if e.is_parse() => (Status::Error, answer::BAD_RESPONSE),
        None => (Status::Error, answer::BACKEND_RESET),
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
    let load = fields
        .get(headers::LOAD_REPORT)
        .and_then(|v| v.to_str().ok());
    Told {
        queue_wait_ns: timing(fields).map(|t| t.queue_wait_us * 1000),
        load: load.and_then(|text| LoadReport::parse(text).ok()),
    }
}

fn number(value: Option<&HeaderValue>) -> Option<f64> {
    value?
        .to_str()
        .ok()?
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite() && *v > 0.0)
}
