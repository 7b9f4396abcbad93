//! One request, from head to answer: read its size, hold it, run it, tell what happened.

use crate::app::App;
use crate::engine::Done;
use crate::listener::{Answer, error, json};
use crate::request_log::{Line, Outcome};
use bytes::Buf;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use schema::headers::{self, WorkerTiming};
use schema::problem::printable;
use schema::work_left;
use std::sync::Arc;
use std::time::Duration;

/// Task sizes taken, MI.
const TASK_SIZE_MI: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;
/// Memory up to this size is touched on the async thread; more would keep it from other answers.
const TOUCH_INLINE_BYTES: usize = 1 << 20;
/// A body may take this long, and a second more for each KiB received.
const BODY_GRACE: Duration = Duration::from_secs(5);
/// One byte per page makes the page resident.
const PAGE_BYTES: usize = 4096;

/// Why a request was not run.
struct Refusal {
    status: StatusCode,
    reason: &'static str,
    message: String,
    outcome: Outcome,
}

/// Runs a request of any method and path.
pub(crate) async fn run(app: Arc<App>, request: Request<Incoming>) -> Answer {
    let arrived_ns = app.clock.now_ns();
    let (parts, body) = request.into_parts();
    let request_id = request_id(&parts.headers).unwrap_or_else(|| app.new_request_id());
    let attempt = attempt(&parts.headers);
    let line = |mi: Option<f64>, outcome: Outcome| Line {
        request_id: request_id.clone(),
        attempt,
        boot_id: app.boot_id.clone(),
        arrival_unix_ns: app.clock.unix_ns(arrived_ns),
        start_unix_ns: None,
        end_unix_ns: app.clock.unix_ns(app.clock.now_ns()),
        mi,
        outcome,
    };
    let admitted = match admit(&app, &parts, body).await {
        Ok(mi) => Held::try_new(&app, line(Some(mi), Outcome::Aborted)).map(|held| (mi, held)),
        Err(refusal) => Err(refusal),
    };
    let answer = match admitted {
        Ok((mi, held)) => serve(&app, mi, held).await,
        Err(refusal) => {
            app.with_ledger(crate::ledger::Ledger::refuse);
            app.metrics.failed.inc();
            if let Some(log) = &app.log {
                log.write(line(None, refusal.outcome));
            }
            let mut answer = error(refusal.status, refusal.reason, &refusal.message);
            if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
                let headers = answer.headers_mut();
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            answer
        }
    };
    with_common_headers(&app, answer, &request_id)
}

/// The task size, once the whole request has been read and found good.
async fn admit(app: &App, parts: &Parts, body: Incoming) -> Result<f64, Refusal> {
    let mi = task_size_mi(&parts.headers, parts.uri.query()).map_err(|message| Refusal {
        status: StatusCode::BAD_REQUEST,
        reason: "task_size",
        message,
        outcome: Outcome::BadRequest,
    })?;
    read_body(body, app.config.max_body_bytes).await?;
    Ok(mi)
}

/// A request counted as held. If it is dropped before [`Held::complete`], its client has gone.
struct Held {
    app: Arc<App>,
    line: Line,
    held_on_arrival: u32,
    open: bool,
}

impl Held {
    fn try_new(app: &Arc<App>, line: Line) -> Result<Self, Refusal> {
        let most = app.config.max_active;
        let admitted = app.with_ledger(|l| (l.active() < most).then(|| l.arrive()));
        let held_on_arrival = admitted.ok_or_else(|| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason: "max_active",
            message: format!("{most} requests are held, the most allowed (--max-active)"),
            outcome: Outcome::MaxActive,
        })?;
        Ok(Self {
            app: Arc::clone(app),
            line,
            held_on_arrival,
            open: true,
        })
    }

    fn complete(mut self, done: &Done) {
        self.open = false;
        let app = &self.app;
        app.with_ledger(|ledger| ledger.complete(self.held_on_arrival, done));
        app.metrics.completed.inc();
        app.metrics
            .latency
            .observe((done.ended_ns - done.arrived_ns) * 1e-9);
        if done.late_burn {
            app.metrics.late_burns.inc();
        }
        if let Some(log) = &app.log {
            log.write(Line {
                arrival_unix_ns: app.clock.unix_ns(done.arrived_ns),
                start_unix_ns: Some(app.clock.unix_ns(done.started_ns)),
                end_unix_ns: app.clock.unix_ns(app.clock.now_ns()),
                outcome: Outcome::Ok,
                ..self.line.clone()
            });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        self.app.with_ledger(crate::ledger::Ledger::abort);
        self.app.metrics.aborted.inc();
        if let Some(log) = &self.app.log {
            log.write(Line {
                end_unix_ns: self.app.clock.unix_ns(self.app.clock.now_ns()),
                ..self.line.clone()
            });
        }
    }
}

async fn serve(app: &Arc<App>, mi: f64, held: Held) -> Answer {
    let ticket = app.engine.submit(mi, &held.line.request_id);
    let memory = Memory::touch(app.config.memory_per_request_bytes);
    let ended = ticket.ended().await;
    memory.release().await;
    let Some(done) = ended else {
        return error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "engine",
            "the engine has stopped",
        );
    };
    let request_id = held.line.request_id.clone();
    held.complete(&done);
    let timing = WorkerTiming {
        queue_wait_us: ((done.started_ns - done.arrived_ns) * 1e-3) as u64,
        service_time_us: ((done.ended_ns - done.started_ns) * 1e-3) as u64,
    };
    let load = app.load_report();
    let body = serde_json::json!({
        "container": app.config.name,
        "request_id": request_id,
        "task_size_mi": mi,
        "queue_wait_us": timing.queue_wait_us,
        "service_time_us": timing.service_time_us,
        "late_burn": done.late_burn,
        "burn_fraction": app.plan.shape.burn_fraction,
        "load": {
            "cpu_utilization": load.utilization,
            "rps_fractional": load.qps,
            "eps": load.eps,
            "active": load.active,
            "mean50": load.mean_latency_50_ms,
            "speed": load.speed,
            "sequence": load.sequence,
        },
    });
    let mut answer = json(StatusCode::OK, &body);
    set(&mut answer, headers::WORKER_TIMING, &timing.to_string());
    set(&mut answer, headers::LOAD_REPORT, &load.to_string());
    answer
}

fn with_common_headers(app: &App, mut answer: Answer, request_id: &str) -> Answer {
    set(&mut answer, headers::CONTAINER, &app.config.name);
    set(&mut answer, headers::REQUEST_ID, request_id);
    if app.config.tell_work_left
        && let Some(list) = work_left::to_header(&app.work_left())
    {
        set(&mut answer, headers::WORKER_WORK_LEFT, &list);
    }
    answer
}

fn set(answer: &mut Answer, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
}

/// The client's request id, if it is 1 to 128 plain characters.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(headers::REQUEST_ID)?.to_str().ok()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let good = (1..=128).contains(&text.len()) && text.bytes().all(plain);
    good.then(|| text.to_string())
}

/// The number after the last dash of the balancer's attempt header.
fn attempt(headers: &HeaderMap) -> Option<u32> {
    let text = headers.get(headers::ATTEMPT)?.to_str().ok()?;
    text.rsplit_once('-')?.1.parse().ok()
}

/// The task size from the header, else from the query; two of either could be read differently.
fn task_size_mi(headers: &HeaderMap, query: Option<&str>) -> Result<f64, String> {
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    let mut asked = pairs.filter_map(|pair| pair.strip_prefix("mi="));
    let mut told = headers.get_all(headers::TASK_SIZE_MI).iter();
    let (from_header, from_query) = (told.next(), asked.next());
    if told.next().is_some() || asked.next().is_some() {
        return Err(
            "the task size is given twice; give it once, as header x-task-size-mi or query mi"
                .into(),
        );
    }
    let text = match from_header {
        Some(value) => value.to_str().unwrap_or("(not text)").trim(),
        None => from_query.ok_or(
            "no task size: give it in millions of instructions as header x-task-size-mi or query \
             mi (1 to 100000)",
        )?,
    };
    match text.parse::<f64>() {
        Ok(mi) if TASK_SIZE_MI.contains(&mi) => Ok(mi),
        _ => Err(format!(
            "task size \"{}\" is not a number from 1 to 100000 (millions of instructions)",
            printable(text)
        )),
    }
}

/// Reads the body to its end and forgets it.
async fn read_body(mut body: Incoming, max_bytes: usize) -> Result<(), Refusal> {
    if body.is_end_stream() {
        return Ok(());
    }
    let refusal = |status, reason, message: String| Refusal {
        status,
        reason,
        message,
        outcome: Outcome::BadBody,
    };
    let too_large = || {
        let message = format!("request body above {max_bytes} bytes");
        refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    };
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    let start = tokio::time::Instant::now();
    let mut received = 0_usize;
    loop {
        let deadline = start + BODY_GRACE + Duration::from_secs(received as u64 / 1024);
        let frame = tokio::time::timeout_at(deadline, body.frame()).await;
        match frame {
            Err(_) => {
                let message = "request body slower than 1 KiB/s".to_string();
                return Err(refusal(
                    StatusCode::REQUEST_TIMEOUT,
                    "body_timeout",
                    message,
                ));
            }
            Ok(None) => return Ok(()),
            Ok(Some(Err(e))) => {
                let message = format!("request body broken: {e}");
                return Err(refusal(StatusCode::BAD_REQUEST, "bad_request", message));
            }
            Ok(Some(Ok(frame))) => received += frame.data_ref().map_or(0, Buf::remaining),
        }
        if received > max_bytes {
            return Err(too_large());
        }
    }
}

/// Memory that a request holds; every page of it has been written.
enum Memory {
    Here(Vec<u8>),
    Elsewhere(tokio::task::JoinHandle<Vec<u8>>),
}

impl Memory {
    fn touch(bytes: usize) -> Self {
        if bytes <= TOUCH_INLINE_BYTES {
            Self::Here(touched(bytes))
        } else {
            Self::Elsewhere(tokio::task::spawn_blocking(move || touched(bytes)))
        }
    }

    /// Gives the memory back, once it has all been touched.
    async fn release(self) {
        match self {
            Self::Here(memory) => drop(memory),
            Self::Elsewhere(touching) => drop(touching.await),
        }
    }
}

fn touched(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0_u8; bytes];
    for page in memory.chunks_mut(PAGE_BYTES) {
        page[0] = 1;
    }
    std::hint::black_box(memory)
}

#[cfg(test)]
mod tests {
    use super::{attempt, request_id, task_size_mi};
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let pair = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        HeaderMap::from_iter([pair])
    }

    #[test]
    fn the_task_size_comes_from_the_header_or_else_the_query() {
        let with = |value| headers("x-task-size-mi", value);
        assert_eq!(task_size_mi(&with("400"), None), Ok(400.0));
        assert_eq!(task_size_mi(&with("400.25"), Some("mi=7")), Ok(400.25));
        let none = HeaderMap::new();
        assert_eq!(task_size_mi(&none, Some("x=1&mi=7")), Ok(7.0));
        assert!(
            task_size_mi(&none, Some("min=7"))
                .unwrap_err()
                .contains("no task size")
        );
        let mut twice = with("400");
        twice.append("x-task-size-mi", HeaderValue::from_static("400"));
        for (headers, query) in [
            (&twice, None),
            (&none, Some("mi=7&mi=8")),
            (&none, Some("mi=7&x=1&mi=7")),
        ] {
            let error = task_size_mi(headers, query).unwrap_err();
            assert!(error.contains("given twice"), "{error}");
        }
        for bad in ["0.99", "100001", "-5", "NaN", "inf", "", "1e999", "12 3"] {
            assert!(task_size_mi(&with(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_plain_request_ids_are_kept() {
        let with = |value| headers("x-request-id", value);
        assert_eq!(request_id(&with("b-1.2_x")), Some("b-1.2_x".into()));
        for bad in ["", "a b", "a/b", "a,b", "a=b"] {
            assert_eq!(request_id(&with(bad)), None, "{bad}");
        }
    }

    #[test]
    fn the_attempt_is_the_number_after_the_last_dash() {
        let with = |value| headers("x-plumbline-attempt", value);
        assert_eq!(attempt(&with("q-0-12-2")), Some(2));
        assert_eq!(attempt(&with("q")), None);
    }
}
