//! The Azure LLM inference traces of 2023: one row for each call of a language model.
//!
//! Columns `TIMESTAMP,ContextTokens,GeneratedTokens`; published with Patel et al., "Splitwise:
//! Efficient generative LLM inference using phase splitting", ISCA 2024. A token read costs less than
//! a token written, since those read are processed together: the defaults are 0.1 and 2 MI.

use schema::laws::sizes::{TASK_SIZE_MI, rounded_mi};
use schema::problem::Problem;
use schema::workload::Method;

use super::stamp;
use super::table::{self, Columns, Record};
use super::trace::{Found, Row, Trace};
use crate::cli::{Import, TimestampUnit};

const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
/// Most tokens of either kind in one request.
const MAX_TOKENS: u32 = 100_000_000;
/// The one API that every row calls.
const TARGET: &str = "/v1/completions";

/// Reads every record.
pub(super) fn read(trace: &mut Trace<'_>, arguments: &Import) {
    let is_data = |first: &str| stamp::parse(first, TimestampUnit::S).is_some();
    table::read(
        trace,
        &COLUMNS,
        COLUMNS.len(),
        is_data,
        |trace, columns, record| {
            let row = row(trace, arguments, columns, record);
            trace.keep(row);
        },
    );
}

fn row(
    trace: &mut Trace<'_>,
    arguments: &Import,
    columns: &Columns,
    record: &Record<'_>,
) -> Found<Row> {
    let text = |name| columns.text(record, name).unwrap_or_default();
    let at = |name: &'static str| move |problem| columns.place(record, name, problem);
    let stamp = stamp::parse(text("TIMESTAMP"), TimestampUnit::S).ok_or_else(|| {
        let problem = Problem::new("TIMESTAMP", text("TIMESTAMP"), "not a time");
        at("TIMESTAMP")(problem.allowed(stamp::FORMS).into())
    })?;
    let tokens = |name: &'static str| tokens(name, text(name)).map_err(at(name));
    let context = tokens("ContextTokens")?;
    let generated = tokens("GeneratedTokens")?;
    let exact_mi = arguments.mi_per_context_token * f64::from(context)
        + arguments.mi_per_generated_token * f64::from(generated);
    let size_mi = rounded_mi(exact_mi);
    if size_mi > *TASK_SIZE_MI.end() {
        let problem = Problem::new("task_size_mi", size_mi.to_string(), "too large")
            .allowed(format!("up to {}", TASK_SIZE_MI.end()))
            .next("lower --mi-per-context-token or --mi-per-generated-token");
        return Err(at("ContextTokens")(problem.into()));
    }
    let least_mi = *TASK_SIZE_MI.start();
    if size_mi < least_mi {
        trace.raised();
    }
    Ok(Row {
        stamp,
        api: trace.api(Method::Post, TARGET.to_string())?,
        task_size_mi: Some(size_mi.max(least_mi)),
    })
}

fn tokens(name: &'static str, text: &str) -> Found<u32> {
    match text.parse() {
        Ok(tokens) if tokens <= MAX_TOKENS => Ok(tokens),
        _ => Err(Problem::new(name, text, "not a count of tokens")
            .allowed(format!("0 to {MAX_TOKENS}"))
            .into()),
    }
}
