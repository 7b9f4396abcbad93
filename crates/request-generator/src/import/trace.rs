//! The rows of a trace as they are collected, whatever its format.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use schema::problem::{Findings, MAX_FINDINGS, Problem, Problems};
use schema::workload::{MAX_APIS, MAX_URL_BYTES, Method, target_fault};

use super::MAX_ROWS;
use super::stamp::Stamp;
use crate::cli::Import;

/// What to do about rows that cannot be used.
const SKIP: &str = "correct it, or leave such rows out with --skip-bad-rows";

/// A value, or what is wrong with the row.
pub(super) type Found<T> = Result<T, Box<Problem>>;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) stamp: Stamp,
    /// Index into the targets.
    pub(super) api: u32,
    /// Its own size, where the trace has one.
    pub(super) task_size_mi: Option<f64>,
}

/// What a trace came to.
#[derive(Debug)]
pub(super) struct Rows {
    /// In the order of the trace; at least one.
    pub(super) rows: Vec<Row>,
    /// Method and target of each API, in the order of first calls.
    pub(super) targets: Vec<(Method, String)>,
    /// Bad rows left out.
    pub(super) skipped: u64,
    /// Sizes raised to the least that is allowed.
    pub(super) raised: u64,
}

/// A trace while it is read.
#[derive(Debug)]
pub(super) struct Trace<'a> {
    pub(super) source: &'a str,
    pub(super) text: &'a str,
    skip_bad: bool,
    keep_query: bool,
    limit: Option<u32>,
    findings: Findings,
    found: usize,
    known: BTreeMap<(Method, String), u32>,
    rows: Rows,
}

impl<'a> Trace<'a> {
    pub(super) fn new(source: &'a str, text: &'a str, arguments: &Import) -> Self {
        Self {
            source,
            // A mark that some editors put in front of a text.
            text: text.strip_prefix('\u{feff}').unwrap_or(text),
            skip_bad: arguments.skip_bad_rows,
            keep_query: arguments.keep_query,
            limit: arguments.limit,
            findings: Findings::default(),
            found: 0,
            known: BTreeMap::new(),
            rows: Rows {
                rows: Vec::new(),
                targets: Vec::new(),
                skipped: 0,
                raised: 0,
            },
        }
    }

    /// True when no further row is wanted: the limit is reached, or findings are more than enough.
    pub(super) fn is_full(&self) -> bool {
        let rows = self.rows.rows.len();
        self.limit.is_some_and(|limit| rows >= limit as usize) || self.found > MAX_FINDINGS
    }

    /// A finding that no skipping helps against.
    pub(super) fn refuse(&mut self, problem: Problem) {
        self.found += 1;
        self.findings.push(problem.in_source(self.source));
    }

    /// Keeps a row, or notes what is wrong with it.
    pub(super) fn keep(&mut self, row: Found<Row>) {
        match row {
            Ok(_) if self.rows.rows.len() == MAX_ROWS as usize => {
                let problem = Problem::new("", "", format!("more than {MAX_ROWS} requests"));
                self.refuse(problem.next(format!("import a part with --limit {MAX_ROWS}")));
                // One such finding is enough, and there is no use in reading on.
                self.found += MAX_FINDINGS;
            }
            Ok(row) => self.rows.rows.push(row),
            Err(_) if self.skip_bad => self.rows.skipped += 1,
            Err(mut problem) => {
                if problem.next_step.is_empty() {
                    problem.next_step = SKIP.into();
                }
                self.refuse(*problem);
            }
        }
    }

    /// Notes that a size was raised to the least that is allowed.
    pub(super) fn raised(&mut self) {
        self.rows.raised += 1;
    }

    /// The method a row names.
    pub(super) fn method(text: &str) -> Found<Method> {
        Method::from_str(text).map_err(|what| {
            let known = Method::ALL.map(Method::as_str);
            Problem::new("method", text, what)
                .allowed(known.join(", "))
                .into()
        })
    }

    /// The target of a URL: without scheme and host and, unless asked for, without its query.
    pub(super) fn target(&self, url: &str) -> Found<String> {
        let path = match url.split_once("://") {
            Some(("http" | "https", rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            _ => url,
        };
        let path = match path.split_once('?') {
            Some((path, _)) if !self.keep_query => path,
            _ => path,
        };
        match target_fault(path) {
            None => Ok(path.to_string()),
            Some(what) => Err(Problem::new("url", url, what)
                .allowed(format!(
                    "/path of printable ASCII, up to {MAX_URL_BYTES} bytes"
                ))
                .into()),
        }
    }

    /// The API of a method and target, a new one at its first call.
    pub(super) fn api(&mut self, method: Method, target: String) -> Found<u32> {
        let key = (method, target);
        if let Some(api) = self.known.get(&key) {
            return Ok(*api);
        }
        let api = self.rows.targets.len();
        if api == MAX_APIS {
            let what = format!("more than {MAX_APIS} different methods and URLs");
            let next = "import a part with --limit, or write ids in URLs as one word such as :id";
            return Err(Problem::new("url", &key.1, what).next(next).into());
        }
        self.rows.targets.push(key.clone());
        self.known.insert(key, api as u32);
        Ok(api as u32)
    }

    /// The rows, of which there is at least one.
    ///
    /// # Errors
    /// Every finding, or that there is no request.
    pub(super) fn finish(mut self) -> Result<Rows, Problems> {
        if self.rows.rows.is_empty() && self.findings.is_empty() {
            let what = match self.rows.skipped {
                0 => "no request".to_string(),
                skipped => format!("no request: all {skipped} rows are bad"),
            };
            self.refuse(Problem::new("", "", what));
        }
        self.findings.finish(self.rows)
    }
}
