//! Basic load interpretation: spread the arrivals of one poll interval so that all end up level.
//!
//! Probabilities are made when a report arrives and stay until the next. While any report is missing or
//! too old, a draw by weight. Cost O(n log n) per report, O(n) per pick. A rate wrong by a factor of two
//! costs about a tenth. Source: Dahlin 2000, with capacities.

use super::c3::BALANCERS;
use super::load_interpretation::{self as interpretation, Place, RATE_GAIN, Rate};
use crate::backends::Backends;
use crate::choose;
use crate::measure;
use crate::registry::{Entry, Group, HonorsWeights, Read};
use crate::strategy::{Rng, Strategy};
use crate::time::Time;
use crate::values::{BackendId, Request};
use schema::report::Report;
use schema::rng::unit;

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
                is_current: false,
                board: Vec::new(),
                chances: Vec::new(),
            })
        },
    )
};

#[derive(Debug, Clone)]
struct BasicLi {
    rate: Rate,
    /// Whether the chances are those of the newest reports.
    is_current: bool,
    board: Vec<Place>,
    chances: Vec<f64>,
}

impl BasicLi {
    fn renew(&mut self, now: Time, backends: &Backends) {
        if interpretation::fill(&mut self.board, backends, now, self.rate.max_age_ns) {
            let arrivals = self
                .rate
                .expected(self.rate.poll_interval_ns)
                .max(LEAST_ARRIVALS);
            interpretation::level_out(&self.board, arrivals, &mut self.chances);
        }
    }
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
        let max_age_ns = self.rate.max_age_ns;
        let is_known = |b| measure::fresh(b, now, max_age_ns).is_some();
        if !backends.eligible().all(is_known) {
            return choose::weighted(backends, rng);
        }
        let everyone = backends.nobody_left_out();
        if !self.is_current || !everyone {
            self.renew(now, backends);
            self.is_current = everyone;
        }
        let mut r = unit(rng);
        let mut last = None;
        for (place, chance) in self.board.iter().zip(&self.chances) {
            if *chance > 0.0 {
                last = Some(place.id);
                if r < *chance {
                    break;
                }
            }
            r -= chance;
        }
        last
    }

    fn on_stats(&mut self, _now: Time, _id: BackendId, _report: &Report, _backends: &Backends) {
        self.is_current = false;
    }

    fn on_backends_changed(&mut self, _now: Time, backends: &Backends) {
        self.is_current = false;
        self.board.reserve(backends.ids_len());
        self.chances.reserve(backends.ids_len());
    }
}
