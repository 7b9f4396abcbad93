//! Join the idle queue with m balancers, each with a list (Lu et al. 2011), as one dispatcher that plays
//! all of them: an arrival goes to a uniform balancer, which takes its oldest listed worker (even if that
//! is busy again), else a uniform worker; a worker that becomes idle reports to a list unless it is in
//! one. Lists start filled, worker i in list i mod m.
//!
//! Idle reports are drawn just before the next pick: nothing reads the lists in between.

use super::entry;
use schema::rng::below;
use std::collections::VecDeque;
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{BackendId, Backends, Outcome, Request, Strategy, Time, choose};

/// Balancers.
pub(in crate::validate) const BALANCERS: u32 = 50;

/// A report goes to a uniform list.
pub(in crate::validate) static RANDOM: Entry = entry("listed-jiq", &[Read::InFlight], |_, _| {
    Box::new(ListedJiq::new(1))
});
/// A report goes to the shorter of two uniform lists.
pub(in crate::validate) static SHORTER_OF_TWO: Entry =
    entry("listed-jiq-2", &[Read::InFlight], |_, _| {
        Box::new(ListedJiq::new(2))
    });

#[derive(Debug, Clone)]
struct ListedJiq {
    choices: u32,
    lists: Vec<VecDeque<BackendId>>,
    is_listed: Vec<bool>,
    /// Became idle since the last pick.
    idle: Vec<BackendId>,
}

impl ListedJiq {
    fn new(choices: u32) -> Self {
        Self {
            choices,
            lists: vec![VecDeque::new(); BALANCERS as usize],
            is_listed: Vec::new(),
            idle: Vec::new(),
        }
    }

    fn take_reports(&mut self, rng: &mut Rng) {
        for id in self.idle.drain(..) {
            if std::mem::replace(&mut self.is_listed[id.index()], true) {
                continue;
            }
            let drawn = (0..self.choices).map(|_| below(rng, u64::from(BALANCERS)) as usize);
            if let Some(list) = drawn.min_by_key(|&list| self.lists[list].len()) {
                self.lists[list].push_back(id);
            }
        }
    }
}

impl Strategy for ListedJiq {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.take_reports(rng);
        let list = below(rng, u64::from(BALANCERS)) as usize;
        let Some(id) = self.lists[list].pop_front() else {
            return choose::uniform(backends, rng);
        };
        self.is_listed[id.index()] = false;
        Some(id)
    }

    fn on_response(&mut self, _now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        if backends.get(id).is_some_and(|b| b.in_flight == 0) {
            self.idle.push(id);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.lists.iter_mut().for_each(VecDeque::clear);
        self.is_listed = vec![true; backends.ids_len()];
        for (i, backend) in backends.eligible().enumerate() {
            self.lists[i % BALANCERS as usize].push_back(backend.id);
        }
    }
}
