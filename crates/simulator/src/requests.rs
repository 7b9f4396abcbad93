//! Builds the requests of a schedule and the rows of their outcomes.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use schema::headers;
use schema::problem::{Findings, Problem, Problems};
use schema::row::Row;
use schema::schedule::{self, Due};
use schema::workload::Workload;

use crate::exchange::Prepared;
use crate::link::Body;
use crate::outcome::{Fate, Outcome};

/// Longest run id; the sequence number and the attempt are added to it.
const MAX_RUN_ID_BYTES: usize = 100;

/// What all requests and rows of a run share.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    pub(crate) run_id: String,
    pub(crate) strategy: Option<String>,
    pub(crate) block: Option<u32>,
    pub(crate) warmup: usize,
}

/// A workload ready to be sent.
#[derive(Debug)]
pub(crate) struct Requests {
    workload: Workload,
    schedule: Vec<Due>,
    targets: Vec<(Method, Uri)>,
    authority: HeaderValue,
    labels: Labels,
}

impl Requests {
    /// Expands `workload`, `speed` times as fast as it says.
    ///
    /// # Errors
    /// Request targets that no HTTP request can carry, or a run id that no header can.
    pub(crate) fn new(
        source: &str,
        workload: Workload,
        speed: f64,
        authority: HeaderValue,
        labels: Labels,
    ) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        check_run_id(&labels.run_id, &mut findings);
        let mut targets = Vec::with_capacity(workload.apis.len());
        for (i, api) in workload.apis.iter().enumerate() {
            match (api.method.as_str().parse(), api.url.parse()) {
                (Ok(method), Ok(uri)) => targets.push((method, uri)),
                _ => findings.push(
                    Problem::new(format!("apis[{i}].url"), &api.url, "not a request target")
                        .in_source(source),
                ),
            }
        }
        let mut schedule = schedule::expand(&workload);
        for due in &mut schedule {
            due.intended_ns = schedule::at_speed(due.intended_ns, speed);
        }
        findings.finish(Self {
            workload,
            schedule,
            targets,
            authority,
            labels,
        })
    }

    /// Requests of the schedule.
    pub(crate) fn len(&self) -> usize {
        self.schedule.len()
    }

    /// What all of them share.
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The workload they come from.
    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Mean gap between due times, ns; 0 for a single request.
    pub(crate) fn mean_gap_ns(&self) -> f64 {
        schedule::mean_gap_ns(&self.schedule).unwrap_or(0.0)
    }

    /// When request `seq` is due, ns after time 0.
    pub(crate) fn intended_ns(&self, seq: usize) -> u64 {
        self.schedule[seq].intended_ns
    }

    /// Request `seq`, due at `intended_ns`.
    pub(crate) fn prepare(&self, seq: usize, intended_ns: u64) -> Prepared {
        let due = &self.schedule[seq];
        let (method, uri) = &self.targets[due.api as usize];
        let api = &self.workload.apis[due.api as usize];
        let mut request: Request<Body> = Request::new(Full::default());
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri.clone();
        if api.method.has_body() {
            *request.body_mut() = body(&api.id, seq);
        }
        let fields = request.headers_mut();
        fields.insert(header::HOST, self.authority.clone());
        let id = format!("{}-{seq}", self.labels.run_id);
        fields.insert(HeaderName::from_static(headers::REQUEST_ID), text(&id));
        let size = text(&due.task_size_mi.to_string());
        fields.insert(HeaderName::from_static(headers::TASK_SIZE_MI), size);
        if api.method.has_body() {
            let json = HeaderValue::from_static("application/json");
            fields.insert(header::CONTENT_TYPE, json);
        }
        Prepared {
            seq,
            intended_ns,
            request,
        }
    }

    /// The row of an outcome.
    pub(crate) fn row(&self, outcome: &Outcome) -> Row {
        let due = &self.schedule[outcome.seq];
        let api = &self.workload.apis[due.api as usize];
        let mut row = Row {
            run_id: self.labels.run_id.clone(),
            block: self.labels.block,
            strategy: self.labels.strategy.clone().unwrap_or_default(),
            seq: outcome.seq as u64,
            api_id: api.id.clone(),
            method: api.method.as_str().into(),
            url: api.url.clone(),
            task_size_mi: due.task_size_mi,
            warmup: outcome.seq < self.labels.warmup,
            intended_ns: outcome.intended_ns,
            sent_ns: outcome.sent_ns,
            first_byte_ns: outcome.first_byte_ns,
            done_ns: outcome.done_ns,
            latency_ms: outcome
                .done_ns
                .map(|done_ns| Row::latency_ms(outcome.intended_ns, done_ns)),
            error: outcome.fate.column(),
            ..Row::default()
        };
        debug_assert!(!matches!(outcome.fate, Fate::NeverSent(_)) || row.sent_ns.is_none());
        if let Some(head) = &outcome.head {
            let known = &head.decision;
            if self.labels.strategy.is_none() {
                row.strategy = known.strategy.clone().unwrap_or_default();
            }
            row.status = Some(head.status);
            row.container = head.container.clone();
            row.attempts = head.attempts;
            row.pick_ns = known.pick_ns;
            row.in_flight = known.in_flight;
            row.active_requests = known.active_requests;
            row.mean_latency_ms_last_50 = known.mean_latency_ms_last_50;
            row.stats_age_ms = known.stats_age_ms;
            row.cores = known.cores;
            row.memory_gb = known.memory_gb;
            row.cpu_percent = known.cpu_percent;
            row.memory_mib = known.memory_mib;
            row.predicted_ms = known.predicted_ms;
            row.queue_wait_us = head.timing.map(|t| t.queue_wait_us);
            row.service_time_us = head.timing.map(|t| t.service_time_us);
        }
        row
    }
}

/// The body of a request that carries one: which API and which request it is.
fn body(api_id: &str, seq: usize) -> Body {
    let json = serde_json::json!({ "api": api_id, "seq": seq });
    Full::new(Bytes::from(json.to_string()))
}

/// A header value of text that was checked before.
fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).expect("run ids and numbers are printable ASCII")
}

fn check_run_id(run_id: &str, findings: &mut Findings) {
    let good = (1..=MAX_RUN_ID_BYTES).contains(&run_id.len())
        && run_id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !good {
        findings.push(
            Problem::new("--run-id", run_id, "not usable in a header").allowed(format!(
                "1 to {MAX_RUN_ID_BYTES} characters of A-Z a-z 0-9 . _ -"
            )),
        );
    }
}
