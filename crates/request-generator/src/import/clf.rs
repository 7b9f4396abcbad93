//! The common log format of web servers; what the combined format adds after it is not looked at.
//!
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /index.html HTTP/1.0" 200 2326`

use schema::problem::Problem;

use super::stamp;
use super::trace::{Row, Trace};

const FORM: &str = "host ident user [10/Oct/2000:13:55:36 -0700] \"GET /path HTTP/1.1\" 200 2326";

/// Reads every line; empty ones are nothing.
pub(super) fn read(trace: &mut Trace<'_>) {
    let text = trace.text;
    for (line, number) in text.lines().zip(1..) {
        if trace.is_full() {
            return;
        }
        if !line.trim().is_empty() {
            let row = row(trace, line).map_err(|(mut problem, at)| {
                problem.place.position = Some((number, line[..at].chars().count() + 1));
                problem
            });
            trace.keep(row);
        }
    }
}

/// The row of a line, or what is wrong at which byte.
fn row(trace: &mut Trace<'_>, line: &str) -> Result<Row, (Box<Problem>, usize)> {
    let shape = |what: &str| (Problem::new("", "", what).allowed(FORM).into(), 0);
    let (before, rest) = line.split_once(" [").ok_or_else(|| shape("no [time]"))?;
    let stamp_at = before.len() + 2;
    let (stamp_text, rest) = rest.split_once(']').ok_or_else(|| shape("no [time]"))?;
    let stamp = stamp::parse_log(stamp_text).ok_or_else(|| {
        let problem = Problem::new("time", stamp_text, "not a time");
        (
            problem.allowed("such as 10/Oct/2000:13:55:36 -0700").into(),
            stamp_at,
        )
    })?;
    let (gap, rest) = rest
        .split_once('"')
        .ok_or_else(|| shape("no \"request\""))?;
    let request_at = stamp_at + stamp_text.len() + 1 + gap.len() + 1;
    let request = quoted(rest).ok_or_else(|| shape("the request has no closing quote"))?;
    let mut words = request.split_whitespace();
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        let problem = Problem::new("request", request, "no method and URL");
        return Err((problem.allowed("\"GET /path HTTP/1.1\"").into(), request_at));
    };
    let offset = |word: &str| request_at + (word.as_ptr() as usize - request.as_ptr() as usize);
    let (method_at, url_at) = (offset(method), offset(url));
    let method = Trace::method(method).map_err(|problem| (problem, method_at))?;
    let target = trace.target(url).map_err(|problem| (problem, url_at))?;
    let api = trace
        .api(method, target)
        .map_err(|problem| (problem, url_at))?;
    Ok(Row {
        stamp,
        api,
        task_size_mi: None,
    })
}

/// The text up to the closing quote; a quote within it has a backslash before it.
fn quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return Some(&text[..at]),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}
