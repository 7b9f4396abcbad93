//! The generic trace: `timestamp,method,url[,task_size_mi]`.

use schema::laws::sizes::TASK_SIZE_MI;
use schema::problem::Problem;

use super::stamp;
use super::table::{self, Columns, Record};
use super::trace::{Found, Row, Trace};
use crate::cli::TimestampUnit;

const COLUMNS: [&str; 4] = ["timestamp", "method", "url", "task_size_mi"];
const REQUIRED: usize = 3;

/// Reads every record.
pub(super) fn read(trace: &mut Trace<'_>, unit: TimestampUnit) {
    let is_data = |first: &str| stamp::parse(first, unit).is_some();
    table::read(
        trace,
        &COLUMNS,
        REQUIRED,
        is_data,
        |trace, columns, record| {
            let row = row(trace, unit, columns, record);
            trace.keep(row);
        },
    );
}

fn row(
    trace: &mut Trace<'_>,
    unit: TimestampUnit,
    columns: &Columns,
    record: &Record<'_>,
) -> Found<Row> {
    let text = |name| columns.text(record, name).unwrap_or_default();
    let at = |name: &'static str| move |problem| columns.place(record, name, problem);
    let stamp = stamp::parse(text("timestamp"), unit).ok_or_else(|| {
        let problem = Problem::new("timestamp", text("timestamp"), "not a time");
        at("timestamp")(problem.allowed(stamp::FORMS).into())
    })?;
    let method = Trace::method(text("method")).map_err(at("method"))?;
    let target = trace.target(text("url")).map_err(at("url"))?;
    let task_size_mi = match columns.text(record, "task_size_mi") {
        None => None,
        Some(text) => Some(size(text).map_err(at("task_size_mi"))?),
    };
    let api = trace.api(method, target).map_err(at("url"))?;
    Ok(Row {
        stamp,
        api,
        task_size_mi,
    })
}

fn size(text: &str) -> Found<f64> {
    let what = match text.parse() {
        Ok(size_mi) if TASK_SIZE_MI.contains(&size_mi) => return Ok(size_mi),
        Ok(_) => "out of range",
        Err(_) => "not a number",
    };
    let bounds = format!("{} to {}", TASK_SIZE_MI.start(), TASK_SIZE_MI.end());
    Err(Problem::new("task_size_mi", text, what)
        .allowed(bounds)
        .into())
}
