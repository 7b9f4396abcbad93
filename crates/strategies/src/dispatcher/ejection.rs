//! Who is barred until when. The rules that decide on an ejection (consecutive failures, comparison
//! with the others, trials) stand before this and call [`Dispatcher::eject`]; here is only the state.

use super::{Dispatcher, PoolError};
use crate::time::Time;
use crate::values::BackendId;

/// Ejections under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Ejections {
    ends: Vec<(Time, BackendId)>,
}

impl Ejections {
    /// When the first of them is over.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.ends.iter().map(|(end, _)| *end).min()
    }

    pub(super) fn forget(&mut self, id: BackendId) {
        self.ends.retain(|(_, other)| *other != id);
    }
}

impl Dispatcher {
    /// Bars a member from picks until a time because it failed; a later end replaces an earlier one.
    ///
    /// # Errors
    /// No member has this id.
    pub fn eject(&mut self, now: Time, id: BackendId, until: Time) -> Result<(), PoolError> {
        let now = self.advance(now);
        self.member(id)?.ejected_until = Some(until);
        self.ejections.forget(id);
        self.ejections.ends.push((until, id));
        self.changed(now);
        Ok(())
    }

    /// Ends an ejection before its time. No effect on a member that is not ejected.
    ///
    /// # Errors
    /// No member has this id.
    pub fn readmit(&mut self, now: Time, id: BackendId) -> Result<(), PoolError> {
        let now = self.advance(now);
        if self.member(id)?.ejected_until.is_some() {
            self.let_back_in(id, now);
            self.changed(now);
        }
        Ok(())
    }

    /// Readmits everyone whose time is over.
    pub(super) fn end_ejections(&mut self) {
        let now = self.now;
        let mut over: Vec<_> = self.ejections.ends.clone();
        over.retain(|(end, _)| *end <= now);
        over.sort_unstable();
        for (_, id) in over {
            self.let_back_in(id, now);
        }
        self.changed(now);
    }

    fn let_back_in(&mut self, id: BackendId, now: Time) {
        self.ejections.forget(id);
        if let Some(backend) = self.backends.get_mut(id) {
            backend.ejected_until = None;
        }
        self.warm_up(id, now);
    }
}
