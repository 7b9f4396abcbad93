//! Rules that no proxy has and that only serve a comparison with theory: same trait, same dispatcher as
//! the strategies of the registry, but not in it. Each is exactly what the theory it is compared with
//! assumes (an arrival rate that is known, draws with replacement, an idle list without FIFO).

pub(super) mod board_choices;
pub(super) mod interpretation;
pub(super) mod listed_jiq;
pub(super) mod memory_jiq;
pub(super) mod optimal;
pub(super) mod zeroed_sends;

use schema::rng::below;
use strategies::registry::{Entry, Group, Read};
use strategies::strategy::Rng;
use strategies::{Backend, BackendId, Backends, Context, Spec, Strategy};

/// An entry without parameters.
const fn entry(
    name: &'static str,
    reads: &'static [Read],
    build: fn(&Spec, &Context) -> Box<dyn Strategy>,
) -> Entry {
    Entry {
        reads,
        randomized: |_| true,
        ..Entry::new(
            name,
            Group::InFlight,
            "a reference of the validation",
            build,
        )
    }
}

/// What the newest poll of the backend at this position shows.
fn shown(backends: &Backends, position: usize) -> u32 {
    let report = backends.eligible_at(position).newest_stats();
    report.and_then(|r| r.active).unwrap_or(0)
}

/// One of the eligible whose score is at most `slack` above the least, uniform.
fn least(
    backends: &Backends,
    rng: &mut Rng,
    slack: f64,
    score: impl Fn(&Backend) -> f64,
) -> Option<BackendId> {
    let scores = || backends.eligible().map(|b| (b.id, score(b)));
    let bound = scores().map(|(_, s)| s).fold(f64::INFINITY, f64::min) + slack;
    let tied = || scores().filter(|(_, s)| *s <= bound);
    let drawn = match tied().count() {
        0 | 1 => 0,
        n => below(rng, n as u64) as usize,
    };
    tied().nth(drawn).map(|(id, _)| id)
}
