//! Requests under way. A finished request's slot is used again.

use crate::station::Ticket;

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    /// At the balancer, not dispatched yet.
    #[default]
    Waiting,
    /// On its way to a worker.
    Sent,
    /// Held by a worker's station.
    Held,
    /// Read by a worker that will not answer.
    Hung,
    /// On its way back.
    Returning,
    /// Given up by the balancer; whatever is still on its way is dropped.
    GivenUp,
}

/// How it will end, known once the worker is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    #[default]
    Ok,
    /// An answer with this HTTP status.
    Status(u16),
    /// The connection broke.
    Broken,
    /// Nobody listens.
    Refused,
}

/// One request under way; what every request needs at its end first, in one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(super) struct Slot {
    pub(super) arrived: f64,
    pub(super) reached: f64,
    pub(super) work: f64,
    pub(super) seq: u64,
    pub(super) dispatch: u64,
    pub(super) worker: u32,
    pub(super) class: u32,
    pub(super) balancer: u32,
    pub(super) caller: u32,
    pub(super) ending: Ending,
    pub(super) stage: Stage,
    pub(super) left: f64,
    pub(super) started: f64,
    pub(super) ticket: Ticket,
    pub(super) held_before: u32,
    /// Backends asked before the pick that have not answered.
    pub(super) unanswered: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// A slot for a request that arrives; what earlier ones left in it is for the engine to set.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Slot::default());
            self.all.len() as u32 - 1
        })
    }

    #[inline]
    pub(super) fn give_back(&mut self, index: u32) {
        // No timer means this one any more.
        self.all[index as usize].seq = u64::MAX;
        self.free.push(index);
    }

    /// Visits every request whose outcome is not known yet.
    pub(super) fn each_open(&self, mut visit: impl FnMut(&Slot)) {
        let open = |s: &&Slot| s.seq != u64::MAX && s.stage != Stage::GivenUp;
        self.all.iter().filter(open).for_each(&mut visit);
    }
}

impl std::ops::Index<u32> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, index: u32) -> &Slot {
        &self.all[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Slots {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.all[index as usize]
    }
}
