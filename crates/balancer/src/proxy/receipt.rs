//! Counts every request once: received, and ended for exactly one reason.

use super::answer::CLIENT_GONE;
use crate::core::Core;
use gate::Conn;
use http::HeaderValue;
use std::rc::Rc;
use std::sync::Arc;

/// One request under way. Dropped without an end, its client has gone.
pub(crate) struct Receipt {
    core: Arc<Core>,
    pub(crate) conn: Rc<Conn>,
    pub(crate) id: HeaderValue,
    /// Whether it was dispatched at least once.
    pub(crate) dispatched: bool,
    ended: bool,
}

impl Receipt {
    /// Counts a request in; also how many are held with it.
    pub(crate) fn begin(core: &Arc<Core>, conn: &Rc<Conn>, id: HeaderValue) -> (Self, usize) {
        let held = {
            let mut state = core.lock();
            state.counts.received += 1;
            state.counts.held += 1;
            state.counts.held
        };
        let receipt = Self {
            core: Arc::clone(core),
            conn: Rc::clone(conn),
            id,
            dispatched: false,
            ended: false,
        };
        (receipt, held)
    }

    /// The id as text.
    pub(crate) fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    /// Counts the reason it ended for; later calls do nothing.
    pub(crate) fn end(&mut self, reason: &'static str, status: Option<u16>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let mut state = self.core.lock();
        *state.counts.by_reason.entry(reason).or_default() += 1;
        if !self.dispatched {
            state.unserved(self.id(), reason, status);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.end(CLIENT_GONE, None);
        self.core.lock().counts.held -= 1;
        self.conn.end();
    }
}
