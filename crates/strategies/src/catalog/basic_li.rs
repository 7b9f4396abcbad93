//! Basic load interpretation: spread the arrivals of one poll interval so that all end up level.
//!
//! Probabilities are made when a report arrives and stay until the next. While any report is missing or
//! too old, a draw by weight. Cost O(n log n) per report, O(log n) per pick. A rate
//! taken for twice what it is (`balancers=2` of a lone one) cost 1 to 4 % on 4/3/2 cores and 3 to 8 % on ten
//! single ones, at loads .7 and .9 and polls every 1, 2 and 10 mean service times (`twin run`, seed 42, a
//! million requests). Source: Dahlin 2000, with capacities.

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

/// Fewest arrivals that are spread.
const LEAST_ARRIVALS: f64 = 0.5;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    parameters: &[RATE_GAIN, BALANCERS, measure::MAX_AGE],
    reads: &[Read::Poll],
    randomized: |_| true,
    honors_weights: HonorsWeights::Yes,
    known_flaws: &["T13"],
    ..Entry::new(
        "basic-li",
        Group::ServerReported,
        "random so that the polled counts level out by the next poll",
        |spec, context| {
            Box::new(BasicLi {
                rate: Rate::of(spec, context),
                boards: Boards::of(spec, context),
                arrivals: LEAST_ARRIVALS,
                by_weight: WeightTable::ALIAS,
            })
        },
    )
};

#[derive(Debug, Clone)]
struct BasicLi {
    rate: Rate,
    boards: Boards,
    /// Arrivals of one poll interval, as expected when the newest report came.
    arrivals: f64,
    by_weight: WeightTable,
}

impl Strategy for BasicLi {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        self.rate.count(now);
        if self.boards.renew(backends) {
            let expected = self.rate.expected(self.rate.poll_interval_ns);
            self.arrivals = expected.max(LEAST_ARRIVALS);
        }
        let rule = Rule::LevelOut(self.arrivals);
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
