//! Ejections as the dispatcher sees them: those of the rules, and those it is told of.
//!
//! The rules ([`crate::ejection`]) say who is barred and who is tried; here their word is put on the
//! members, the strategy is told, and time is let pass. An ejection told from outside ([`Dispatcher::eject`])
//! ends by itself at its time, without a trial, whatever the rules say.

use super::{Dispatcher, PoolError};
use crate::ejection::{Attempt, Note, Standing};
use crate::fail_hold::FailHold;
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use schema::protection::Mark;

/// Ejections told from outside that are under way.
#[derive(Debug, Clone)]
pub(super) struct Told {
    ends: Vec<(Time, BackendId)>,
    /// The first of them; [`Time::MAX`] if there is none.
    next_end: Time,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            ends: Vec::new(),
            next_end: Time::MAX,
        }
    }
}

impl Told {
    fn until(&self, id: BackendId) -> Option<Time> {
        self.ends
            .iter()
            .find(|(_, other)| *other == id)
            .map(|(end, _)| *end)
    }

    fn set(&mut self, id: BackendId, until: Time) {
        self.forget(id);
        self.ends.push((until, id));
        self.find_next_end();
    }

    pub(super) fn forget(&mut self, id: BackendId) {
        self.ends.retain(|(_, other)| *other != id);
        self.find_next_end();
    }

    fn find_next_end(&mut self) {
        let ends = self.ends.iter().map(|(end, _)| *end);
        self.next_end = ends.min().unwrap_or(Time::MAX);
    }
}

impl Dispatcher {
    /// Bars a member from picks until a time, whatever the rules say; a later call replaces an earlier
    /// one.
    ///
    /// # Errors
    /// No member has this id.
    pub fn eject(&mut self, now: Time, id: BackendId, until: Time) -> Result<(), PoolError> {
        let now = self.advance(now);
        self.member(id)?;
        self.told.set(id, until);
        self.mark(id);
        self.changed(now);
        Ok(())
    }

    /// Ends every ejection of a member before its time. No effect on a member that is not ejected.
    ///
    /// # Errors
    /// No member has this id.
    pub fn readmit(&mut self, now: Time, id: BackendId) -> Result<(), PoolError> {
        let now = self.advance(now);
        if self.member(id)?.ejected_until.is_some() {
            self.told.forget(id);
            self.ejections.end(now, id);
            self.mark(id);
            self.changed(now);
        }
        Ok(())
    }

    /// How a backend stands with the rules of ejection.
    pub fn standing(&self, id: BackendId) -> Standing {
        self.ejections.standing(self.now, id)
    }

    /// Hands over what the rules of ejection did since the last call, for the driver's log.
    pub fn take_notes(&mut self, out: &mut Vec<Note>) {
        self.ejections.take_notes(out);
    }

    /// Lets time pass without any call; what is due by then is done.
    pub fn let_time_pass(&mut self, now: Time) {
        self.advance(now);
    }

    /// Lets time pass up to `now`, never back. What is due on the way is done at its own time, so it
    /// does not matter how often anybody looked.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) -> Time {
        let now = self.now.max(now);
        if self.is_anything_due(now) {
            self.catch_up(now);
        }
        self.now = now;
        now
    }

    /// The common answer is no, with three looks.
    #[inline]
    fn is_anything_due(&self, now: Time) -> bool {
        self.told.next_end <= now
            || self.ejections.next_end() <= now
            || (self.fail_hold.as_ref()).is_some_and(|hold| hold.next_end() <= now)
    }

    #[cold]
    fn catch_up(&mut self, now: Time) {
        loop {
            let due = self.next_due();
            if due > now || due == Time::MAX {
                break;
            }
            self.now = self.now.max(due);
            self.do_what_is_due();
        }
    }

    fn next_due(&self) -> Time {
        let held = self
            .fail_hold
            .as_ref()
            .map_or(Time::MAX, FailHold::next_end);
        held.min(self.told.next_end).min(self.ejections.next_end())
    }

    fn do_what_is_due(&mut self) {
        let now = self.now;
        if let Some(hold) = &mut self.fail_hold
            && hold.next_end() <= now
        {
            if let Some(held) = hold.pop() {
                self.release(held.backend, &held.outcome);
            }
            return;
        }
        // A trial changes nothing that a strategy can see: its backend stays barred.
        self.ejections.begin_trials(now);
        if self.told.next_end <= now {
            let mut over = self.told.ends.clone();
            over.retain(|(end, _)| *end <= now);
            over.sort_unstable();
            for (_, id) in over {
                self.told.forget(id);
                self.mark(id);
            }
            self.changed(now);
        }
    }

    /// A failed attempt that was held ends for the strategy.
    fn release(&mut self, id: BackendId, outcome: &Outcome) {
        if let Some(backend) = self.backends.get_mut(id) {
            backend.in_flight -= 1;
            backend.held -= 1;
        }
        self.strategy
            .on_response(self.now, id, outcome, &self.backends);
    }

    /// The backend on trial that a request goes to, if there is one for it.
    #[inline]
    pub(super) fn trial_for(&self, now: Time, request: &Request<'_>) -> Option<BackendId> {
        if self.ejections.nobody_on_trial() {
            return None;
        }
        self.ejections.trial_for(now, request, |id| {
            let may = |b: &crate::Backend| b.member && !b.draining;
            self.backends.get(id).is_some_and(may)
                && self.told.until(id).is_none()
                && !request.tried.contains(&id)
        })
    }

    /// Whom a pick's choice is owed to, if not to the strategy alone.
    pub(super) fn mark_of_picks(&self) -> Option<Mark> {
        self.backends.in_panic().then_some(Mark::Panic)
    }

    /// Gives the rules the result of an attempt, and does what they say.
    pub(super) fn judge(&mut self, attempt: Attempt, outcome: &Outcome) {
        let now = self.now;
        let changes = self
            .ejections
            .on_outcome(now, attempt, outcome.status, &self.backends);
        if changes {
            self.mark(attempt.backend);
            self.changed(now);
        }
    }

    /// A pool that became smaller may hold fewer ejected ones.
    pub(super) fn keep_the_cap(&mut self) {
        let members = self.backends.members().filter(|b| b.member).count();
        while let Some(id) = self.ejections.over_the_cap(members) {
            self.ejections.end(self.now, id);
            self.mark(id);
        }
    }

    /// Writes on a member until when it is barred; one that comes back warms up.
    fn mark(&mut self, id: BackendId) {
        let until = self.ejections.barred_until(id).max(self.told.until(id));
        let now = self.now;
        let Some(backend) = self.backends.get_mut(id) else {
            return;
        };
        let comes_back = backend.ejected_until.is_some() && until.is_none();
        backend.ejected_until = until;
        if comes_back {
            self.warm_up(id, now);
        }
    }
}
