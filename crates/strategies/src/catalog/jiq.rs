//! Join the idle queue: free places of backends wait in line, a request takes the oldest.
//!
//! With `idle=core` a backend offers one place per whole core, with `idle=empty` one place while it
//! has nothing in flight. When nobody offers a place, a random draw decides. Cost O(1). Not at high
//! load, where the line is empty most of the time and this is the random draw. Source: Lu et al. 2011,
//! with one balancer.

use crate::backends::{Backend, Backends};
use crate::choose::{self, Credits, WeightTable};
use crate::registry::{Entry, Group, HonorsWeights, Kind, Parameter, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[
        Parameter {
            name: "idle",
            kind: Kind::Word(&["core", "empty"]),
            or: &[],
            default: "core",
            summary: "what counts as a free place: a core, or an empty backend",
        },
        Parameter {
            name: "fallback",
            kind: Kind::Word(&["weighted-random", "random"]),
            or: &[],
            default: "weighted-random",
            summary: "what decides when no place is free",
        },
    ],
    reads: &[Read::InFlight],
    randomized: |_| true,
    honors_weights: HonorsWeights::Ties,
    known_flaws: &["T13"],
    ..Entry::new(
        "jiq",
        Group::InFlight,
        "the place that has been free longest, at random when none is",
        |spec, _| {
            Box::new(JoinIdleQueue {
                per_core: spec.is("idle", "core"),
                by_weight: spec
                    .is("fallback", "weighted-random")
                    .then_some(WeightTable::ALIAS),
                line: VecDeque::new(),
                out: VecDeque::new(),
                in_line: Vec::new(),
                pushes: 0,
            })
        },
    )
};

/// A free place and when it was lined up.
type Place = (u64, BackendId);

#[derive(Debug, Clone)]
struct JoinIdleQueue {
    per_core: bool,
    by_weight: Option<WeightTable>,
    /// Free places of the available, the oldest first.
    line: VecDeque<Place>,
    /// Those of the others, who keep their age for when they come back.
    out: VecDeque<Place>,
    /// By id: free places.
    in_line: Vec<u32>,
    pushes: u64,
}

impl JoinIdleQueue {
    fn places(&self, backend: &Backend) -> u32 {
        if !backend.member {
            0
        } else if self.per_core {
            (backend.cores as u32).max(1)
        } else {
            1
        }
    }

    /// Brings the places in line to those that are free: pushes, or takes out the newest.
    fn settle(&mut self, backend: &Backend, backends: &Backends) {
        let free = self.places(backend).saturating_sub(backend.in_flight);
        let id = backend.id;
        if self.in_line[id.index()] == free {
            return;
        }
        let line = if backends.available_place(id).is_some() {
            &mut self.line
        } else {
            &mut self.out
        };
        while self.in_line[id.index()] < free {
            line.push_back((self.pushes, id));
            self.pushes += 1;
            self.in_line[id.index()] += 1;
        }
        while self.in_line[id.index()] > free {
            let newest = line.iter().rposition(|(_, other)| *other == id);
            line.remove(newest.expect("counted as in line"));
            self.in_line[id.index()] -= 1;
        }
    }

    /// Parts the places of the available from those of the others, the oldest first.
    fn part(&mut self, backends: &Backends) {
        let mut all: Vec<Place> = self.line.drain(..).chain(self.out.drain(..)).collect();
        all.sort_unstable();
        for place in all {
            let is_available = backends.available_place(place.1).is_some();
            let line = if is_available {
                &mut self.line
            } else {
                &mut self.out
            };
            line.push_back(place);
        }
    }

    /// The first line-up: smooth steps over the free places.
    fn line_up(&mut self, backends: &Backends) {
        let free = |b: &Backend| self.places(b).saturating_sub(b.in_flight);
        let most = backends.members().map(free).max().unwrap_or(0);
        let least = backends.members().map(free).min().unwrap_or(0);
        let mut ids = Vec::new();
        if most == least {
            // The smooth steps over equal counts are turns; stepping would be quadratic.
            for _ in 0..most {
                ids.extend(backends.members().map(|b| b.id));
            }
        } else {
            let total: u32 = backends.members().map(free).sum();
            let mut credits = Credits::default();
            for _ in 0..total {
                ids.extend(credits.step(backends.members().map(|b| (b.id, i64::from(free(b))))));
            }
        }
        for id in ids {
            self.in_line[id.index()] += 1;
            self.line.push_back((self.pushes, id));
            self.pushes += 1;
        }
    }
}

impl Strategy for JoinIdleQueue {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let mut places = self.line.iter();
        if let Some(at) = places.position(|(_, id)| backends.is_eligible(*id)) {
            let (_, id) = self.line.remove(at)?;
            self.in_line[id.index()] -= 1;
            return Some(id);
        }
        match &self.by_weight {
            Some(table) => table.draw_eligible(backends, rng),
            None => choose::uniform(backends, rng),
        }
    }

    fn on_dispatch(
        &mut self,
        _now: Time,
        id: BackendId,
        _request: &Request<'_>,
        backends: &Backends,
    ) {
        if let Some(backend) = backends.get(id) {
            self.settle(backend, backends);
        }
    }

    fn on_response(&mut self, _now: Time, id: BackendId, _outcome: &Outcome, backends: &Backends) {
        if let Some(backend) = backends.get(id) {
            self.settle(backend, backends);
        }
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        let is_first = self.in_line.is_empty();
        self.in_line.resize(backends.ids_len(), 0);
        if is_first {
            self.line_up(backends);
        }
        self.part(backends);
        for id in 0..backends.ids_len() as u32 {
            if let Some(backend) = backends.get(BackendId(id)) {
                self.settle(backend, backends);
            }
        }
        if let Some(table) = &mut self.by_weight {
            table.rebuild(backends);
        }
    }
}
