//! `wl-mc`, played on: the choice that costs least in worlds drawn from what the balancer knows.
//!
//! `wl-mc` counts what a request costs if nobody comes after it. This draws what the requests in flight may
//! still need and who comes next, plays every choice on with `wl-mc` placing those, and departs from
//! the choice of `wl-mc` only where another is better beyond the chance of the draws (a guarded
//! roll-out, Bertsekas and Tsitsiklis 1996, 6.1). Where it cannot know what it would play, it is `wl-mc`:
//! while other balancers' requests are more than a few, or a backend is believed to be slow. Cost: worlds
//! x backends x arrivals x O(in_flight), some hundred microseconds; use it where requests take longer than
//! that by far. Source: ours.

use super::wl_mc::{self, WlMc};
use crate::backends::Backends;
use crate::measure::Rank;
use crate::registry::{Context, Entry, Kind, Parameter, Spec};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Outcome, Request};
use crate::work_left::recent::Recent;
use crate::work_left::worlds::{Coming, Depth, Rule, Worlds};
use schema::report::Report;

/// In larger pools it is `wl-mc`: what a pick costs grows with the square of the pool.
const LARGEST_POOL: usize = 16;
/// Choices that are played: those which `wl-mc` likes best.
const CHOICES: usize = 4;

/// Its own parameters.
const OWN: &[Parameter] = &[
    Parameter {
        name: "worlds",
        kind: Kind::Integer { min: 1, max: 200 },
        or: &[],
        default: "40",
        summary: "draws of what requests need and of who comes next",
    },
    Parameter {
        name: "ahead",
        kind: Kind::Integer { min: 0, max: 20 },
        or: &[],
        default: "10",
        summary: "arrivals after the request that each of them is played on with",
    },
    Parameter {
        name: "errors",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
        },
        or: &[],
        default: "1",
        summary: "standard errors by which a choice must be better than that of `wl-mc`",
    },
];

/// Its own parameters, then those of `wl-mc`.
const PARAMETERS: [Parameter; OWN.len() + wl_mc::PARAMETERS.len()] = {
    let mut all = [OWN[0]; OWN.len() + wl_mc::PARAMETERS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OWN.len() {
            OWN[i]
        } else {
            wl_mc::PARAMETERS[i - OWN.len()]
        };
        i += 1;
    }
    all
};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "roll-out",
    summary: "the least added delay for all in worlds that are played on",
    parameters: &PARAMETERS,
    build: |spec, context| Box::new(RollOut::new(spec, context)),
    ..wl_mc::ENTRY
};

#[derive(Debug, Clone)]
struct RollOut {
    base: WlMc,
    recent: Recent,
    worlds: Worlds,
    /// The backends as `wl-mc` ranks them.
    order: Vec<(BackendId, Rank)>,
}

impl RollOut {
    fn new(spec: &Spec, context: &Context) -> Self {
        Self {
            base: WlMc::new(spec, context),
            recent: Recent::default(),
            worlds: Worlds::new(Depth {
                worlds: spec.integer("worlds").unwrap_or(40) as usize,
                ahead: spec.integer("ahead").unwrap_or(10) as usize,
                errors: spec.decimal("errors").unwrap_or(1.0),
            }),
            order: Vec::new(),
        }
    }
}

impl Strategy for RollOut {
    fn pick(
        &mut self,
        now: Time,
        request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let known = self.base.observe(now, backends);
        let usual = self.base.choose(known, request, backends, rng)?;
        let small = (2..=LARGEST_POOL).contains(&backends.eligible_len());
        let foreseen = self.recent.is_known() && self.base.knows_all(backends);
        let Some(known) = known.filter(|_| small && foreseen) else {
            return Some(usual);
        };
        self.order.clear();
        self.order.extend_from_slice(self.base.ranks());
        self.order.sort_unstable_by_key(|(id, rank)| (*rank, *id));
        self.worlds.clear();
        for backend in backends.eligible() {
            if let Some((place, price, lefts)) = self.base.station(backend, known) {
                self.worlds.add(backend.id, place, price, lefts);
            }
        }
        let demand = self.base.demand();
        let mean_ms = |class| demand.of(class).unwrap_or(known.needs.typical_ms);
        let recent = &self.recent;
        let next = |rng: &mut Rng| {
            let (gap_ms, class) = recent.one(rng);
            Coming {
                gap_ms,
                mean_ms: mean_ms(class),
            }
        };
        let rule = Rule {
            placing: self.base.placing(),
            needs: known.needs,
        };
        let mean_ms = mean_ms(request.class);
        let ids = self.order.iter().take(CHOICES).map(|(id, _)| *id);
        let rivals = ids.filter(|id| *id != usual);
        let worlds = &mut self.worlds;
        Some(worlds.choose(rule, usual, rivals, mean_ms, next, rng))
    }

    fn on_dispatch(
        &mut self,
        now: Time,
        id: BackendId,
        request: &Request<'_>,
        backends: &Backends,
    ) {
        self.recent.note(now, request.class);
        self.base.on_dispatch(now, id, request, backends);
    }

    fn on_response(&mut self, now: Time, id: BackendId, outcome: &Outcome, backends: &Backends) {
        self.base.on_response(now, id, outcome, backends);
    }

    fn on_stats(&mut self, now: Time, id: BackendId, report: &Report, backends: &Backends) {
        self.base.on_stats(now, id, report, backends);
    }

    fn on_backends_changed(&mut self, now: Time, backends: &Backends) {
        self.base.on_backends_changed(now, backends);
    }
}
