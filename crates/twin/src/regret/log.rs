//! When each request of a run was dispatched, where to, and when its outcome was known: the balancer's
//! own event log, which also knows of the attempts that a row does not tell of.

use super::refuse;
use schema::event::{Member, Status};
use schema::json::Fields;
use schema::problem::{Problem, Problems};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// Longest line of an event log, bytes: a pick lists every member.
const MAX_LINE_BYTES: usize = 1 << 20;

/// One dispatch; times on the balancer's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dispatch {
    /// Its request's place in the schedule.
    pub(super) seq: u64,
    pub(super) is_first: bool,
    pub(super) worker: usize,
    pub(super) picked_ns: u64,
    pub(super) done_ns: u64,
    pub(super) ok: bool,
}

/// The fields of a line that are looked at; reading all candidates of every pick takes far longer.
#[derive(Deserialize)]
struct Line {
    event: String,
    t_ns: Option<u64>,
    dispatch: Option<u64>,
    request_id: Option<String>,
    #[serde(default)]
    attempt: u32,
    backend: Option<u32>,
    status: Option<Status>,
    members: Option<Vec<Member>>,
}

/// The dispatches of `run_id` in the order of their picks, with workers by their place in `names`.
///
/// # Errors
/// A log that cannot be read, has lost lines, names other workers, or ends before its dispatches do.
pub(super) fn read(path: &Path, run_id: &str, names: &[&str]) -> Result<Vec<Dispatch>, Problems> {
    let lines = input::open_lines(path, MAX_LINE_BYTES).map_err(|problem| *problem)?;
    let mut log = Log {
        source: path.display().to_string(),
        run_id,
        names,
        ids: BTreeMap::new(),
        open: BTreeMap::new(),
        dispatches: Vec::new(),
    };
    for (line, at) in BufReader::new(lines).split(b'\n').zip(1..) {
        let line = line.map_err(|e| log.problem(at, format!("cannot read it: {e}")))?;
        let Fields(line) = serde_json::from_slice(&line)
            .map_err(|e| log.problem(at, format!("not an event: {e}")))?;
        log.take(at, line)?;
    }
    if let Some((dispatch, at)) = log.open.first_key_value() {
        let seq = log.dispatches[*at].seq;
        let what = format!("the log ends before the outcome of dispatch {dispatch}, request {seq}");
        return refuse(Problem::new("", "", what).in_source(log.source).next(AGAIN));
    }
    Ok(log.dispatches)
}

const AGAIN: &str = "bring the whole log back, or judge rows.csv by itself: --rows";

struct Log<'a> {
    source: String,
    run_id: &'a str,
    names: &'a [&'a str],
    /// Place in `names` of the dispatcher's ids.
    ids: BTreeMap<u32, usize>,
    /// Place in `dispatches` of those without an outcome.
    open: BTreeMap<u64, usize>,
    dispatches: Vec<Dispatch>,
}

impl Log<'_> {
    fn problem(&self, line: usize, what: String) -> Problem {
        let problem = Problem::new("", "", what).in_source(&self.source);
        problem.at(line, 1).next(AGAIN)
    }

    fn take(&mut self, at: usize, line: Line) -> Result<(), Problems> {
        match line.event.as_str() {
            "start" => {
                for member in line.members.unwrap_or_default() {
                    let Some(place) = self.names.iter().position(|n| *n == member.name) else {
                        let what = format!("no worker of this result: {}", member.name);
                        return refuse(self.problem(at, what));
                    };
                    self.ids.insert(member.id, place);
                }
            }
            "gap" => return refuse(self.problem(at, "lines were lost here".into())),
            "pick" => self.pick(at, &line)?,
            "response" => {
                let at = line.dispatch.and_then(|d| self.open.remove(&d));
                if let (Some(at), Some(t_ns)) = (at, line.t_ns) {
                    self.dispatches[at].done_ns = t_ns;
                    self.dispatches[at].ok = line.status == Some(Status::Ok);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn pick(&mut self, at: usize, line: &Line) -> Result<(), Problems> {
        let (Some(t_ns), Some(dispatch), Some(id)) = (line.t_ns, line.dispatch, line.backend)
        else {
            return Ok(());
        };
        let request = line.request_id.as_deref().unwrap_or_default();
        let place = request.strip_prefix(self.run_id);
        let seq = place.and_then(|p| p.strip_prefix('-')?.parse().ok());
        let Some(seq) = seq else {
            return Ok(());
        };
        let Some(worker) = self.ids.get(&id).copied() else {
            let what = format!("a pick of backend {id}, of which nothing was said before");
            return refuse(self.problem(at, what));
        };
        self.open.insert(dispatch, self.dispatches.len());
        self.dispatches.push(Dispatch {
            seq,
            is_first: line.attempt == 0,
            worker,
            picked_ns: t_ns,
            done_ns: t_ns,
            ok: false,
        });
        Ok(())
    }
}
