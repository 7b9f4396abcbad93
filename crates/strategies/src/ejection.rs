//! Who is barred after failing, for how long, and who is tried again.
//!
//! A backend is ejected after a number of failures in a row, or when it is much worse than the others
//! ([`compare`]). Its time grows with every ejection that follows within a minute of service. When it
//! is over the backend is on trial: the dispatcher, not the strategy, gives it one request at a time
//! until enough good ones readmit it or a failure ejects it again. A cap keeps a pool from emptying
//! itself.
//!
//! Failures are counted per backend, never per client: a false ejection then has probability e^T for
//! an error rate e and a threshold T. A result counts only for the time in service in which its attempt
//! began, so what was under way at an ejection does not prolong it. Cost O(1) per response; O(n) when
//! somebody is ejected or fails three times in ten. Source: Envoy outlier detection and Ribbon for the
//! counting and the growing times, the half-open state of circuit breakers for the trial.

pub(crate) mod compare;
mod lengths;
mod record;

pub use record::{Phase, Standing, Tally};

use crate::backends::{Backends, MAX_MEMBERS};
use crate::time::Time;
use crate::values::{BackendId, Request};
use compare::{Counts, is_much_worse};
use lengths::Lengths;
use record::Record;
use schema::event::Status;
use schema::protection::{self, Mode, Rule, Step};

/// A backend that was in service this long since its last ejection begins with the first length again.
const FORGIVEN_AFTER_NS: u64 = 60_000_000_000;
/// A backend on trial waits this long for a request that may be repeated; then it takes any.
const ANY_REQUEST_AFTER_NS: u64 = 2_000_000_000;
/// Notes kept for a driver that does not take them.
const MAX_NOTES: usize = MAX_MEMBERS;
/// Requests that may be sent twice without harm (RFC 9110, 9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// Something the rules did, for the driver's log and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Time,
    /// To whom.
    pub backend: BackendId,
    /// What.
    pub step: Step,
}

/// An attempt as the rules know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) dispatch: u64,
    pub(crate) backend: BackendId,
    /// The backend's time in service in which it began.
    pub(crate) spell: u32,
}

/// The rules with everything they remember. One per dispatcher.
#[derive(Debug, Clone)]
pub(crate) struct Ejections {
    rules: protection::Ejection,
    lengths: Lengths,
    /// By id; empty while the rules are off.
    records: Vec<Record>,
    /// Barred and not yet on trial.
    waiting: Vec<BackendId>,
    /// The first end among them; [`Time::MAX`] if there is none.
    next_end: Time,
    /// On trial, the longest first.
    on_trial: Vec<BackendId>,
    notes: Vec<Note>,
}

impl Ejections {
    pub(crate) fn new(rules: protection::Ejection, seed: u64) -> Self {
        Self {
            rules,
            lengths: Lengths::new(&rules, seed),
            records: Vec::new(),
            waiting: Vec::new(),
            next_end: Time::MAX,
            on_trial: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// When the next trial begins; [`Time::MAX`] if none will.
    #[inline]
    pub(crate) fn next_end(&self) -> Time {
        self.next_end
    }

    /// Whether the rules say anything at all.
    #[inline]
    pub(crate) fn has_rules(&self) -> bool {
        self.rules.mode != Mode::Off
    }

    /// The number of the backend's present spell: in service or out of it.
    #[inline]
    pub(crate) fn spell(&self, id: BackendId) -> u32 {
        self.records.get(id.index()).map_or(0, |r| r.spell)
    }

    /// How one backend stands.
    pub(crate) fn standing(&self, now: Time, id: BackendId) -> Standing {
        let record = self.records.get(id.index());
        record.map_or_else(Standing::default, |r| r.standing(now))
    }

    /// Until when the rules bar it: in the past once it is on trial.
    pub(crate) fn barred_until(&self, id: BackendId) -> Option<Time> {
        self.records.get(id.index())?.barred_until()
    }

    /// How many are barred, on trial included.
    pub(crate) fn barred_len(&self) -> usize {
        self.waiting.len() + self.on_trial.len()
    }

    /// Hands over what was done since the last call.
    pub(crate) fn take_notes(&mut self, out: &mut Vec<Note>) {
        out.append(&mut self.notes);
    }

    /// Puts everyone on trial whose time is over.
    pub(crate) fn begin_trials(&mut self, now: Time) {
        let over = |record: &Record| record.barred_until().is_some_and(|end| end <= now);
        let records = &mut self.records;
        let mut begun: Vec<(Time, BackendId)> = Vec::new();
        self.waiting.retain(|id| {
            let is_over = over(&records[id.index()]);
            if is_over {
                begun.extend(records[id.index()].begin_trial().map(|end| (end, *id)));
            }
            !is_over
        });
        begun.sort_unstable();
        for (end, id) in begun {
            self.on_trial.push(id);
            self.note(end, id, Step::Trial);
        }
        self.find_next_end();
    }

    /// Whether no request can be a trial.
    #[inline]
    pub(crate) fn nobody_on_trial(&self) -> bool {
        self.on_trial.is_empty()
    }

    /// The backend on trial that this request goes to, whatever the strategy says: a first attempt
    /// that may be repeated; after a while without one, any. `may_take` says whom it may go to.
    pub(crate) fn trial_for(
        &self,
        now: Time,
        request: &Request<'_>,
        may_take: impl Fn(BackendId) -> bool,
    ) -> Option<BackendId> {
        let harmless = request.attempt == 0 && IDEMPOTENT.contains(&request.method);
        self.on_trial.iter().copied().find(|id| {
            let idle_since = self.records[id.index()].trial_idle_since();
            let takes_any = |t: Time| now.since_ns(t) >= ANY_REQUEST_AFTER_NS;
            idle_since.is_some_and(|t| harmless || takes_any(t)) && may_take(*id)
        })
    }

    /// The trial of this backend is dispatched.
    pub(crate) fn trial_began(&mut self, id: BackendId, dispatch: u64) {
        self.records[id.index()].trial_began(dispatch);
    }

    /// Takes the result of an attempt; says whether its backend is now barred or back in service.
    pub(crate) fn on_outcome(
        &mut self,
        now: Time,
        attempt: Attempt,
        status: Status,
        backends: &Backends,
    ) -> bool {
        if self.rules.mode == Mode::Off {
            return false;
        }
        let id = attempt.backend;
        let record = self.record(id);
        if record.is_trial(attempt.dispatch) {
            return self.trial_ended(now, id, status);
        }
        if status == Status::Cancelled || !record.counts(attempt.spell) {
            return false;
        }
        let failed = status.is_failure();
        record.add(now, failed);
        match self.verdict(now, id, failed, backends) {
            Some(rule) => self.bar(now, id, rule, backends),
            None => false,
        }
    }

    /// Ends an ejection from outside; false if there was none.
    pub(crate) fn end(&mut self, now: Time, id: BackendId) -> bool {
        if self.barred_until(id).is_none() {
            return false;
        }
        self.readmit(now, id);
        true
    }

    /// Forgets a backend that was removed; its late results count for nothing.
    pub(crate) fn forget(&mut self, now: Time, id: BackendId) {
        if let Some(record) = self.records.get_mut(id.index()) {
            record.readmit(now);
            self.leave_lists(id);
        }
    }

    /// Who must come back because the pool has become too small for so many; the first to end.
    pub(crate) fn over_the_cap(&self, members: usize) -> Option<BackendId> {
        if self.barred_len() <= self.cap(members) {
            return None;
        }
        let barred = self.on_trial.iter().chain(&self.waiting).copied();
        barred.min_by_key(|id| (self.barred_until(*id), *id))
    }

    /// Most that may be barred among so many members.
    fn cap(&self, members: usize) -> usize {
        let share = members * self.rules.max_percent as usize / 100;
        let least = usize::from(self.rules.at_least_one);
        share.max(least).min(members.saturating_sub(1))
    }

    fn record(&mut self, id: BackendId) -> &mut Record {
        if self.records.len() <= id.index() {
            self.records.resize_with(id.index() + 1, Record::default);
        }
        &mut self.records[id.index()]
    }

    fn verdict(&self, now: Time, id: BackendId, failed: bool, backends: &Backends) -> Option<Rule> {
        let record = &self.records[id.index()];
        let after = self.rules.after;
        if failed && after > 0 && record.failures_in_a_row() >= after {
            return Some(Rule::Consecutive);
        }
        let own = record.counts_now(now);
        // The scan of the others is for the rare backend that could be far above any of them.
        if !self.rules.compare || !own.could_be_much_worse() {
            return None;
        }
        let others = backends.members().filter(|b| b.id != id && b.is_up());
        let others: Counts = others
            .filter_map(|b| self.records.get(b.id.index()))
            .map(|r| r.counts_now(now))
            .sum();
        is_much_worse(own, others).then_some(Rule::Compare)
    }

    fn bar(&mut self, now: Time, id: BackendId, rule: Rule, backends: &Backends) -> bool {
        let record = self.record(id);
        record.clear_counts();
        if self.rules.mode == Mode::Observe {
            self.record(id).tally.observed += 1;
            self.note(now, id, Step::Observed { rule });
            return false;
        }
        let others_up = backends.members().any(|b| b.id != id && b.is_up());
        if self.barred_len() + 1 > self.cap(backends.members().len()) || !others_up {
            self.record(id).tally.refused += 1;
            self.note(now, id, Step::Refused { rule });
            return false;
        }
        if self.record(id).was_in_service_for(now) >= FORGIVEN_AFTER_NS {
            self.record(id).number = 0;
        }
        self.eject(now, id, rule)
    }

    fn eject(&mut self, now: Time, id: BackendId, rule: Rule) -> bool {
        let number = self.record(id).number + 1;
        let until = now.plus_ns(self.lengths.draw_ns(number));
        self.record(id).eject(now, until, rule);
        self.leave_lists(id);
        self.waiting.push(id);
        self.find_next_end();
        let until_ns = until.as_nanos();
        self.note(
            now,
            id,
            Step::Ejected {
                rule,
                until_ns,
                number,
            },
        );
        true
    }

    fn trial_ended(&mut self, now: Time, id: BackendId, status: Status) -> bool {
        let wanted = self.rules.trial;
        let good = self.record(id).trial_ended(now, status);
        match status {
            Status::Cancelled => false,
            Status::Ok if good >= wanted => {
                self.readmit(now, id);
                true
            }
            Status::Ok => false,
            Status::Error | Status::Timeout | Status::Refused => self.eject(now, id, Rule::Trial),
        }
    }

    fn readmit(&mut self, now: Time, id: BackendId) {
        self.record(id).readmit(now);
        self.leave_lists(id);
        self.note(now, id, Step::Readmitted);
    }

    fn leave_lists(&mut self, id: BackendId) {
        self.on_trial.retain(|other| *other != id);
        self.waiting.retain(|other| *other != id);
        self.find_next_end();
    }

    fn find_next_end(&mut self) {
        let ends = self.waiting.iter().map(|id| self.barred_until(*id));
        self.next_end = ends.flatten().min().unwrap_or(Time::MAX);
    }

    fn note(&mut self, at: Time, backend: BackendId, step: Step) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Note { at, backend, step });
        }
    }
}
