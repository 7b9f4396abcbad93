//! Join the idle queue with one balancer that remembers at most A idle workers (Gamarnik, Tsitsiklis and
//! Zubeldia 2018): a worker that becomes idle is remembered if fewer than A are, else forgotten; an
//! arrival takes the newest remembered one, else a uniform worker. At the start none is remembered.

use super::entry;
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{BackendId, Backends, Outcome, Request, Strategy, Time, choose};

/// By how many it remembers.
pub(in crate::validate) static ENTRIES: [(u32, Entry); 3] = [
    (1, of::<1>("memory-jiq-1")),
    (2, of::<2>("memory-jiq-2")),
    (5, of::<5>("memory-jiq-5")),
];

const fn of<const A: usize>(name: &'static str) -> Entry {
    entry(name, &[Read::InFlight], |_, _| {
        Box::new(MemoryJiq::<A> { idle: Vec::new() })
    })
}

#[derive(Debug, Clone)]
struct MemoryJiq<const A: usize> {
    /// Newest last.
    idle: Vec<BackendId>,
}

impl<const A: usize> Strategy for MemoryJiq<A> {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.idle.pop().or_else(|| choose::uniform(backends, rng))
    }

    fn on_response(&mut self, _now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        let is_idle = backends.get(id).is_some_and(|b| b.in_flight == 0);
        if is_idle && self.idle.len() < A {
            self.idle.push(id);
        }
    }
}
