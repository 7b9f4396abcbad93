//! One line of rows.csv: what became of one scheduled request.
//!
//! The columns, their order and their units are a contract with every script that reads them. A
//! value that is unknown is an empty field, never a zero.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The columns of rows.csv, in order.
pub const COLUMNS: [&str; 30] = [
    "run_id",
    "block",
    "strategy",
    "seq",
    "api_id",
    "method",
    "url",
    "task_size_mi",
    "warmup",
    "intended_ns",
    "sent_ns",
    "first_byte_ns",
    "done_ns",
    "latency_ms",
    "status",
    "error",
    "container",
    "attempts",
    "pick_ns",
    "in_flight",
    "active_requests",
    "mean_latency_ms_last_50",
    "stats_age_ms",
    "cores",
    "memory_gb",
    "cpu_percent",
    "memory_mib",
    "predicted_ms",
    "queue_wait_us",
    "service_time_us",
];

/// One row; the fields are the columns. All `*_ns` count from the run's time 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Row {
    /// Name of one replay of one strategy.
    pub run_id: String,
    /// Block of the experiment.
    pub block: Option<u32>,
    /// Label of the strategy.
    pub strategy: String,
    /// Place in the schedule, from 0.
    pub seq: u64,
    /// Which API was called.
    pub api_id: String,
    /// HTTP method.
    pub method: String,
    /// Request target.
    pub url: String,
    /// Work, in millions of instructions.
    pub task_size_mi: f64,
    /// Left out of statistics.
    pub warmup: bool,
    /// When it was due.
    pub intended_ns: u64,
    /// When the client began to send it.
    pub sent_ns: Option<u64>,
    /// When the first byte of the answer arrived.
    pub first_byte_ns: Option<u64>,
    /// When its outcome was known.
    pub done_ns: Option<u64>,
    /// `done_ns - intended_ns`, in milliseconds.
    pub latency_ms: Option<f64>,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Empty = ok; else `error:REASON`, `timeout`, `cancelled` or `never_sent:WHY`.
    pub error: String,
    /// Name of the worker that answered.
    pub container: Option<String>,
    /// Attempts the balancer made.
    pub attempts: Option<u32>,
    /// How long the pick took.
    pub pick_ns: Option<u64>,
    /// The balancer's requests in flight on the chosen backend, this one not counted.
    pub in_flight: Option<u32>,
    /// Requests the worker said it held.
    pub active_requests: Option<u32>,
    /// Mean latency of the worker's last 50 answers, in milliseconds.
    pub mean_latency_ms_last_50: Option<f64>,
    /// Age of the worker's statement, in milliseconds.
    pub stats_age_ms: Option<f64>,
    /// Configured cores.
    pub cores: Option<f64>,
    /// Configured memory, GB of 2^30 bytes.
    pub memory_gb: Option<f64>,
    /// CPU use, 100 = one core.
    pub cpu_percent: Option<f64>,
    /// Memory in use, MiB.
    pub memory_mib: Option<f64>,
    /// Predicted latency, in milliseconds.
    pub predicted_ms: Option<f64>,
    /// Waiting part of the time at the worker, in microseconds.
    pub queue_wait_us: Option<u64>,
    /// Running part of the time at the worker, in microseconds.
    pub service_time_us: Option<u64>,
}

impl Row {
    /// Milliseconds from the due time to the end, as the `latency_ms` column holds them.
    pub fn latency_ms(intended_ns: u64, done_ns: u64) -> f64 {
        done_ns.saturating_sub(intended_ns) as f64 / 1e6
    }
}

/// Appends the header line, newline included.
///
/// # Errors
/// Those of the writer.
pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))
}

/// Appends `row` as one line, newline included; numbers are printed so that they read back exactly.
///
/// # Errors
/// Those of the writer.
pub fn write_line(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    fn text(out: &mut dyn Write, value: &str) -> io::Result<()> {
        if value.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", value.replace('"', "\"\""))
        } else {
            out.write_all(value.as_bytes())
        }
    }
    fn known<T: std::fmt::Display>(out: &mut dyn Write, value: Option<T>) -> io::Result<()> {
        value.map_or(Ok(()), |v| write!(out, "{v}"))
    }
    macro_rules! fields {
        ($($kind:ident $value:expr),* $(,)?) => {
            let mut _first = true;
            $(
                if !_first { out.write_all(b",")?; }
                _first = false;
                $kind(out, $value)?;
            )*
        };
    }
    fields!(
        text & row.run_id,
        known row.block,
        text & row.strategy,
        known Some(row.seq),
        text & row.api_id,
        text & row.method,
        text & row.url,
        known Some(row.task_size_mi),
        known Some(row.warmup),
        known Some(row.intended_ns),
        known row.sent_ns,
        known row.first_byte_ns,
        known row.done_ns,
        known row.latency_ms,
        known row.status,
        text & row.error,
        text row.container.as_deref().unwrap_or_default(),
        known row.attempts,
        known row.pick_ns,
        known row.in_flight,
        known row.active_requests,
        known row.mean_latency_ms_last_50,
        known row.stats_age_ms,
        known row.cores,
        known row.memory_gb,
        known row.cpu_percent,
        known row.memory_mib,
        known row.predicted_ms,
        known row.queue_wait_us,
        known row.service_time_us,
    );
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Row, write_header, write_line};

    #[test]
    fn a_line_has_the_stable_columns_and_unknown_ones_are_empty() {
        let mut out = Vec::new();
        write_header(&mut out).expect("memory");
        let row = Row {
            run_id: "r1".into(),
            strategy: "weighted-least-request:offset=0,ties=smooth".into(),
            seq: 7,
            api_id: "api-001".into(),
            method: "GET".into(),
            url: "/users/orders".into(),
            task_size_mi: 412.25,
            intended_ns: 70_000_000,
            done_ns: Some(120_500_000),
            latency_ms: Some(Row::latency_ms(70_000_000, 120_500_000)),
            ..Row::default()
        };
        write_line(&row, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "run_id,block,strategy,seq,api_id,method,url,task_size_mi,warmup,intended_ns,sent_ns,\
             first_byte_ns,done_ns,latency_ms,status,error,container,attempts,pick_ns,in_flight,\
             active_requests,mean_latency_ms_last_50,stats_age_ms,cores,memory_gb,cpu_percent,\
             memory_mib,predicted_ms,queue_wait_us,service_time_us\n\
             r1,,\"weighted-least-request:offset=0,ties=smooth\",7,api-001,GET,/users/orders,412.25,\
             false,70000000,,,120500000,50.5,,,,,,,,,,,,,,,,\n"
        );
    }

    #[test]
    fn the_fields_are_the_columns() {
        let value = serde_json::to_value(Row::default()).expect("plain data");
        let mut fields: Vec<&str> = value
            .as_object()
            .expect("struct")
            .keys()
            .map(String::as_str)
            .collect();
        let mut columns = COLUMNS.to_vec();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }
}
