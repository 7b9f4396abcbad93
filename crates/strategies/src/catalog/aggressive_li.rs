//! Aggressive load interpretation: fill the emptiest first, as far as arrivals since the newest report go.
//!
//! While any report is missing or too old, a draw by weight. Cost O(n log n) per pick. Of all rules that
//! ignore own sends it is the best at every age of the reports. Source: Dahlin 2000, with capacities.

use super::c3::BALANCERS;
use super::load_interpretation::{self as interpretation, Place, RATE_GAIN, Rate};
use crate::backends::Backends;
use crate::choose;
use crate::measure;
use crate::registry::{Entry, Group, HonorsWeights, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[RATE_GAIN, BALANCERS, measure::MAX_AGE],
    reads: &[Read::Poll],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "aggressive-li",
        Group::ServerReported,
        "random among those that arrivals since the newest poll have filled up, emptiest first",
        |spec, context| {
            Box::new(AggressiveLi {
                rate: Rate::of(spec, context),
                board: Vec::new(),
                among: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct AggressiveLi {
    rate: Rate,
    board: Vec<Place>,
    among: Vec<BackendId>,
}

impl Strategy for AggressiveLi {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.rate.count(now);
        if !interpretation::fill(&mut self.board, backends, now, self.rate.max_age_ns) {
            return choose::weighted(backends, rng);
        }
        let stamps = backends.eligible().filter_map(|b| b.newest_stats());
        let newest_ns = stamps.map(|r| r.sampled_at_ns).max().unwrap_or(0);
        let since_ns = now.since_ns(Time::from_nanos(newest_ns)) as f64;
        let filled = interpretation::filled(&self.board, self.rate.expected(since_ns));
        self.among.clear();
        self.among.extend(self.board[..filled].iter().map(|p| p.id));
        choose::weighted_of(&self.among, backends, rng)
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.board.reserve(backends.ids_len());
        self.among.reserve(backends.ids_len());
    }
}
