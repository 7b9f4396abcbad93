//! Aggressive load interpretation: fill the emptiest first, as far as arrivals since the newest report go.
//!
//! While any report is missing or too old, a draw by weight. Cost O(n log n) per report, O(log n) per pick. Of all rules that
//! ignore own sends it is the best at every age of the reports. Source: Dahlin 2000, with capacities.

use super::c3::BALANCERS;
use super::load_interpretation::{Boards, RATE_GAIN, Rate, Rule};
use crate::backends::Backends;
use crate::choose::WeightTable;
use crate::measure;
use crate::registry::{Entry, Group, HonorsWeights, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::Report;

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
                boards: Boards::of(spec, context),
                by_weight: WeightTable::ALIAS,
            })
        },
    )
};

#[derive(Debug, Clone)]
struct AggressiveLi {
    rate: Rate,
    boards: Boards,
    by_weight: WeightTable,
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
        self.boards.renew(backends);
        let newest = Time::from_nanos(self.boards.newest_ns(backends));
        let rule = Rule::FillUp(self.rate.expected(now.since_ns(newest) as f64));
        let drawn = self.boards.draw(now, rule, backends, rng);
        drawn.or_else(|| self.by_weight.draw_eligible(backends, rng))
    }

    fn on_stats(&mut self, _now: Time, _id: BackendId, report: &Report, _backends: &Backends) {
        self.boards.on_stats(report);
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.boards.on_backends_changed();
        self.by_weight.rebuild(backends);
    }
}
