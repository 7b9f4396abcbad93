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

/// One row; the fields are the columns, their docs the table of docs/rows.md. All `*_ns` but `pick_ns`
/// count from the run's time 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Row {
    /// Name of one replay of one strategy.
    pub run_id: String,
    /// Block of the bench it belongs to. Empty: replayed outside a bench.
    pub block: Option<u32>,
    /// Label of the strategy; `aa:` before it marks the second run of the baseline.
    /// Empty: neither the client nor an answer named one.
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
    /// When the client began to send it. Empty: never sent.
    pub sent_ns: Option<u64>,
    /// When the first byte of the answer arrived. Empty: no answer began, or the client gave it up.
    pub first_byte_ns: Option<u64>,
    /// When its outcome was known. Empty: never sent.
    pub done_ns: Option<u64>,
    /// `done_ns - intended_ns`, in milliseconds. Empty: never sent.
    pub latency_ms: Option<f64>,
    /// Status of the answer. Empty: as for `first_byte_ns`.
    pub status: Option<u16>,
    /// How it failed: `error:REASON`, `timeout`, `cancelled` or `never_sent:WHY`.
    /// Empty: ok, a complete answer of status 200 to 399.
    pub error: String,
    /// Name of the worker that answered. Empty: not told.
    pub container: Option<String>,
    /// Attempts the balancer made. Empty: not told.
    pub attempts: Option<u32>,
    /// How long the pick took. Empty: not told; always in rows of the twin.
    pub pick_ns: Option<u64>,
    /// The balancer's requests in flight on the chosen worker, this one not counted. Empty: not told.
    pub in_flight: Option<u32>,
    /// Requests the worker said it held. Empty: not told, or the worker had said nothing yet.
    pub active_requests: Option<u32>,
    /// Mean latency of the worker's last 50 answers, in milliseconds.
    /// Empty: as for `active_requests`, or it had not answered any request yet.
    pub mean_latency_ms_last_50: Option<f64>,
    /// Age of the worker's statement at the pick, in milliseconds. Empty: as for `active_requests`.
    pub stats_age_ms: Option<f64>,
    /// Configured cores of the worker. Empty: not told.
    pub cores: Option<f64>,
    /// Configured memory of the worker, GB of 2^30 bytes. Empty: not told.
    pub memory_gb: Option<f64>,
    /// CPU use of the worker, 100 = one core; of an emulated one as if it executed everything.
    /// Empty: not told, or not reported yet.
    pub cpu_percent: Option<f64>,
    /// Memory the worker had in use, MiB. Empty: as for `cpu_percent`.
    pub memory_mib: Option<f64>,
    /// Latency that a predictive strategy expected, in milliseconds.
    /// Empty: not told, another strategy, or a row of the twin.
    pub predicted_ms: Option<f64>,
    /// Waiting part of the time at the worker, in microseconds. Empty: the worker did not answer.
    pub queue_wait_us: Option<u64>,
    /// Running part of the time at the worker, in microseconds. Empty: as for `queue_wait_us`.
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

    /// The columns as a Markdown table, from the fields of [`Row`] and their docs.
    fn table() -> String {
        let source = include_str!("row.rs");
        let (_, fields) = source.split_once("pub struct Row {\n").expect("the row");
        let (fields, _) = fields.split_once("\n}").expect("its end");
        let mut text =
            "| column | kind | unit | meaning | empty |\n|---|---|---|---|---|\n".to_string();
        let mut docs = Vec::new();
        for line in fields.lines().map(str::trim) {
            if let Some(doc) = line.strip_prefix("/// ") {
                docs.push(doc);
                continue;
            }
            let field = line.trim_start_matches("pub ").trim_end_matches(',');
            let (name, kind) = field.split_once(": ").expect("a field");
            let doc = std::mem::take(&mut docs).join(" ");
            let (meaning, empty) = doc.split_once(" Empty: ").unwrap_or((&doc, "never."));
            assert!(
                kind.starts_with("Option") == (empty != "never.") || kind == "String",
                "{name}: say when it is empty"
            );
            let cells = [
                &format!("`{name}`"),
                words(kind),
                unit(name),
                meaning,
                empty,
            ];
            let cells = cells.map(|c| c.trim_end_matches('.'));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text
    }

    fn words(kind: &str) -> &'static str {
        match kind.trim_start_matches("Option<").trim_end_matches('>') {
            "String" => "text",
            "bool" => "`true`, `false`",
            "f64" => "number",
            _ => "whole number",
        }
    }

    fn unit(column: &str) -> &'static str {
        match column.trim_end_matches("_last_50").rsplit('_').next() {
            Some("ns") => "ns",
            Some("us") => "µs",
            Some("ms") => "ms",
            Some("mi") => "MI",
            Some("gb") => "GB",
            Some("mib") => "MiB",
            Some("percent") => "%",
            _ => "",
        }
    }

    #[test]
    fn the_documented_columns_are_these() {
        let page = include_str!("../../../docs/rows.md");
        let (_, rest) = page
            .split_once("<!-- columns: begin -->\n")
            .expect("a begin mark");
        let (committed, _) = rest
            .split_once("<!-- columns: end -->")
            .expect("an end mark");
        assert!(
            committed == table(),
            "the table in docs/rows.md is out of date; replace it with:\n{}",
            table()
        );
        let listed = committed.lines().skip(2).map(|l| l.split('`').nth(1));
        assert!(listed.eq(COLUMNS.map(Some)), "the order is that of COLUMNS");
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
