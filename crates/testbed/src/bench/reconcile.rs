//! Does everything add up? Exact equalities over one arm, by joining request ids.
//!
//! The client's rows, the balancer's event log and the workers' counters were written by three
//! programs; a request that one of them lost or counted twice shows here. A miss names both numbers
//! and up to ten ids.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use schema::event::{Event, Status};
use schema::row::Row;
use schema::stats::Stats;

use crate::figures::run::Outcome;

/// Ids named in a message.
const SHOWN_IDS: usize = 10;

/// What the three programs say about one arm.
pub(crate) struct Evidence<'a> {
    /// Requests of the schedule.
    pub(crate) scheduled: u64,
    pub(crate) rows: &'a [Row],
    pub(crate) events: &'a [Event],
    /// Workers after the arm; their counters began with it.
    pub(crate) stats: &'a [Stats],
    /// What was still in flight a second after the last outcome.
    pub(crate) busy: &'a [String],
}

/// One dispatch of the event log.
struct Dispatch<'a> {
    request_id: &'a str,
    backend: u32,
    attempt: u32,
    responses: usize,
    status: Option<Status>,
    http_status: Option<u16>,
}

/// The event log, read once.
#[derive(Default)]
struct Log<'a> {
    names: BTreeMap<u32, &'a str>,
    dispatches: HashMap<u64, Dispatch<'a>>,
    unserved: HashSet<&'a str>,
    lost_lines: u64,
    stray_responses: usize,
}

/// Every equality that does not hold; empty when all do.
pub(crate) fn mismatches(evidence: &Evidence<'_>) -> Vec<String> {
    let log = Log::read(evidence.events);
    let mut found = Vec::new();
    rows_are_the_schedule(evidence, &mut found);
    outcomes_add_up(evidence.rows, &mut found);
    if log.lost_lines > 0 {
        found.push(format!(
            "event log lost {} lines; R3 to R7 cannot be checked",
            log.lost_lines
        ));
    } else {
        sent_is_received(evidence.rows, &log, &mut found);
        every_dispatch_ends_once(&log, &mut found);
        workers_saw_the_dispatches(evidence, &log, &mut found);
    }
    found.extend(
        evidence
            .busy
            .iter()
            .map(|b| format!("R9: {b} one second after the end")),
    );
    found
}

/// True when every dispatch of the log has its response: the log is complete.
pub(crate) fn log_is_settled(events: &[Event]) -> bool {
    let log = Log::read(events);
    log.lost_lines > 0 || log.dispatches.values().all(|d| d.responses > 0)
}

impl<'a> Log<'a> {
    fn read(events: &'a [Event]) -> Self {
        let mut log = Self::default();
        for event in events {
            log.take(event);
        }
        log
    }

    fn take(&mut self, event: &'a Event) {
        match event {
            Event::Start { members, .. } => {
                self.names
                    .extend(members.iter().map(|m| (m.id, m.name.as_str())));
            }
            Event::Pick {
                dispatch: Some(dispatch),
                backend: Some(backend),
                request_id,
                attempt,
                ..
            } => {
                let new = Dispatch {
                    request_id,
                    backend: *backend,
                    attempt: *attempt,
                    responses: 0,
                    status: None,
                    http_status: None,
                };
                self.dispatches.insert(*dispatch, new);
            }
            Event::Response {
                dispatch,
                status,
                http_status,
                ..
            } => match self.dispatches.get_mut(dispatch) {
                Some(known) => {
                    known.responses += 1;
                    known.status = Some(*status);
                    known.http_status = *http_status;
                }
                None => self.stray_responses += 1,
            },
            Event::Unserved { request_id, .. } => {
                self.unserved.insert(request_id);
            }
            Event::Gap { lost, .. } => self.lost_lines += lost,
            _ => {}
        }
    }

    fn received(&self) -> HashSet<&'a str> {
        let dispatched = self.dispatches.values().map(|d| d.request_id);
        dispatched.chain(self.unserved.iter().copied()).collect()
    }
}

/// R1: one row for each place of the schedule.
fn rows_are_the_schedule(evidence: &Evidence<'_>, found: &mut Vec<String>) {
    let rows = evidence.rows.len() as u64;
    if rows != evidence.scheduled {
        found.push(format!("R1: {rows} rows, {} scheduled", evidence.scheduled));
    }
    let mut seen = HashSet::new();
    let wrong = evidence
        .rows
        .iter()
        .filter(|r| r.seq >= evidence.scheduled || !seen.insert(r.seq))
        .map(|r| r.seq.to_string());
    note(found, "R1", "rows with a repeated or unknown seq", wrong);
}

/// R2: never sent or exactly one outcome.
fn outcomes_add_up(rows: &[Row], found: &mut Vec<String>) {
    let wrong = rows
        .iter()
        .filter(|r| (Outcome::of(r) == Outcome::NeverSent) == r.sent_ns.is_some())
        .map(|r| r.seq.to_string());
    note(
        found,
        "R2",
        "rows whose outcome and sent_ns contradict each other",
        wrong,
    );
    let wrong = rows
        .iter()
        .filter(|r| {
            let answered = r.status.is_some_and(|s| (200..400).contains(&s));
            Outcome::of(r) == Outcome::Ok && !(answered && r.latency_ms.is_some())
        })
        .map(|r| r.seq.to_string());
    note(found, "R2", "ok rows without a good answer", wrong);
}

/// R3: what was sent was received, save for what failed on the way.
fn sent_is_received(rows: &[Row], log: &Log<'_>, found: &mut Vec<String>) {
    let received = log.received();
    let id = |row: &Row| format!("{}-{}", row.run_id, row.seq);
    let sent: HashSet<String> = rows
        .iter()
        .filter(|r| r.sent_ns.is_some())
        .map(id)
        .collect();
    let excused = |row: &&Row| {
        row.status.is_none()
            && (matches!(Outcome::of(row), Outcome::Timeout | Outcome::Cancelled)
                || ["error:refused", "error:reset"].contains(&row.error.as_str()))
    };
    let unseen = rows
        .iter()
        .filter(|r| r.sent_ns.is_some() && !excused(r))
        .map(id)
        .filter(|id| !received.contains(id.as_str()));
    note(
        found,
        "R3",
        "requests sent and not received by the balancer",
        unseen,
    );
    let foreign: BTreeSet<String> = received
        .iter()
        .filter(|id| !sent.contains(**id))
        .map(ToString::to_string)
        .collect();
    note(
        found,
        "R3",
        "requests received that the client did not send",
        foreign.into_iter(),
    );
}

/// R4 to R6: every dispatch ends once, no request ends both dispatched and unserved, first attempts
/// are counted once.
fn every_dispatch_ends_once(log: &Log<'_>, found: &mut Vec<String>) {
    let unended = log
        .dispatches
        .values()
        .filter(|d| d.responses != 1)
        .map(|d| format!("{} ({} responses)", d.request_id, d.responses));
    note(
        found,
        "R6",
        "dispatches that did not end exactly once",
        unended,
    );
    if log.stray_responses > 0 {
        found.push(format!(
            "R6: {} responses without a dispatch",
            log.stray_responses
        ));
    }
    let mut first = HashSet::new();
    let twice = log
        .dispatches
        .values()
        .filter(|d| d.attempt == 0 && !first.insert(d.request_id))
        .map(|d| d.request_id.to_string());
    note(found, "R5", "requests with two first attempts", twice);
    let both = log
        .unserved
        .iter()
        .filter(|id| first.contains(**id))
        .map(ToString::to_string);
    note(found, "R5", "requests both dispatched and unserved", both);
}

/// R7 and R10: workers counted what was dispatched to them, and the client got it.
fn workers_saw_the_dispatches(evidence: &Evidence<'_>, log: &Log<'_>, found: &mut Vec<String>) {
    for stats in evidence.stats {
        let name = stats.container.as_str();
        let own: Vec<&Dispatch<'_>> = log
            .dispatches
            .values()
            .filter(|d| log.names.get(&d.backend) == Some(&name))
            .collect();
        // A cut or lost attempt may or may not have reached the worker: no equality there.
        let uncertain = own
            .iter()
            .any(|d| d.http_status.is_none() && d.status != Some(Status::Refused));
        let reached = own
            .iter()
            .filter(|d| d.status != Some(Status::Refused))
            .count() as u64;
        let counted = stats.completed + stats.failed;
        if !uncertain && counted != reached {
            found.push(format!(
                "R7: worker {name} answered {counted}, the balancer dispatched {reached} to it"
            ));
        }
        let retried = log.dispatches.values().any(|d| d.attempt > 0);
        let ok_rows = evidence
            .rows
            .iter()
            .filter(|r| Outcome::of(r) == Outcome::Ok && r.container.as_deref() == Some(name))
            .count() as u64;
        if !uncertain && !retried && ok_rows != stats.completed {
            found.push(format!(
                "R10: worker {name} completed {}, the client has {ok_rows} good rows of it",
                stats.completed
            ));
        }
    }
}

fn note(found: &mut Vec<String>, rule: &str, what: &str, ids: impl Iterator<Item = String>) {
    let ids: Vec<String> = ids.collect();
    if ids.is_empty() {
        return;
    }
    let shown = ids
        .iter()
        .take(SHOWN_IDS)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    found.push(format!("{rule}: {} {what}: {shown}", ids.len()));
}

#[cfg(test)]
mod tests;
