//! The threads around a machine: one keeps time, the lanes burn, the caller waits for a message.
//!
//! Two kinds. [`emulated`] holds a pinned speed: one timing thread sleeps to the exact next
//! departure of a [`crate::machine::Machine`] while lanes burn the chosen fraction of the
//! instructions beside it. [`native`] runs every instruction flat out on lanes that share a queue.

pub(crate) mod emulated;
pub(crate) mod native;

use crate::clock::Clock;
use crate::machine::{JobId, Shape};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The end of a request, in stamps of the worker's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Done {
    /// When the engine took it, ns.
    pub(crate) arrived_ns: f64,
    /// When its first instruction was due to run, ns.
    pub(crate) started_ns: f64,
    /// When its work was complete: the nominal time, or the end of its burn if that was later, ns.
    pub(crate) ended_ns: f64,
    /// True if the burn ended after the nominal time.
    pub(crate) late_burn: bool,
}

/// Running totals since the start of the engine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Core time in use, core-ns: the integral of min(requests held, cores).
    pub(crate) busy_core_ns: f64,
    /// Nominal work done, core-ns at nominal speed.
    pub(crate) work_core_ns: f64,
}

/// A running engine; clones share it.
#[derive(Debug, Clone)]
pub(crate) enum Engine {
    Emulated(Arc<emulated::Emulated>),
    Native(Arc<native::Native>),
}

/// A request in the engine. Dropping it before the end takes the request out.
#[derive(Debug)]
pub(crate) struct Ticket {
    engine: Engine,
    job: JobId,
    ended: oneshot::Receiver<Done>,
    open: bool,
}

impl Engine {
    /// Hands over a request of `mi` million instructions; it may run at once.
    pub(crate) fn submit(&self, mi: f64, request_id: &str) -> Ticket {
        let (sender, ended) = oneshot::channel();
        let job = match self {
            Self::Emulated(engine) => engine.submit(mi, request_id, sender),
            Self::Native(engine) => engine.submit(mi, request_id, sender),
        };
        Ticket {
            engine: self.clone(),
            job,
            ended,
            open: true,
        }
    }

    /// Totals up to now.
    pub(crate) fn totals(&self) -> Totals {
        match self {
            Self::Emulated(engine) => engine.totals(),
            Self::Native(engine) => engine.totals(),
        }
    }

    /// Request id and work left (core-ms at nominal speed) of every request held, oldest first.
    pub(crate) fn work_left(&self) -> Vec<(String, f64)> {
        match self {
            Self::Emulated(engine) => engine.work_left(),
            Self::Native(engine) => engine.work_left(),
        }
    }

    fn cancel(&self, job: JobId) {
        match self {
            Self::Emulated(engine) => engine.cancel(job),
            Self::Native(engine) => engine.cancel(job),
        }
    }
}

impl Ticket {
    /// Waits for the end of the work. `None` only if the engine has stopped.
    pub(crate) async fn ended(mut self) -> Option<Done> {
        let done = (&mut self.ended).await.ok();
        self.open = false;
        done
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.engine.cancel(self.job);
        }
    }
}

/// Starts the engine for `shape`; `lanes` burn threads, native or pinned as `pinned` says.
///
/// # Errors
/// When the system refuses a thread.
pub(crate) fn start(
    shape: Shape,
    pinned: bool,
    lanes: usize,
    clock: Clock,
) -> std::io::Result<Engine> {
    if pinned {
        emulated::Emulated::start(shape, lanes, clock).map(Engine::Emulated)
    } else {
        native::Native::start(shape, lanes, clock).map(Engine::Native)
    }
}

#[cfg(test)]
mod tests;
