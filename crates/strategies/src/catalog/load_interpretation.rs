//! What the two load interpretations share: the board of polled counts, and the rate of own picks.

use crate::backends::{Backend, Backends};
use crate::measure;
use crate::registry::{Context, Kind, Parameter, Spec};
use crate::strategy::Rng;
use crate::time::Time;
use crate::values::BackendId;
use schema::report::{Report, Source};
use schema::rng::unit;

/// Draws that may hit somebody left out before the board is made anew without them.
const MAX_REDRAWS: u32 = 8;

/// The parameter `rate-gain`.
pub(super) const RATE_GAIN: Parameter = Parameter {
    name: "rate-gain",
    kind: Kind::Decimal {
        min: 0.001,
        max: 1.0,
    },
    or: &[],
    default: "0.02",
    summary: "weight of the newest gap in the estimate of the arrival rate",
};

/// Rate of own picks, scaled to all balancers.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    gain: f64,
    balancers: f64,
    last: Option<Time>,
    gap_ns: Option<f64>,
    pub(super) poll_interval_ns: f64,
}

impl Rate {
    pub(super) fn of(spec: &Spec, context: &Context) -> Self {
        Self {
            gain: spec.decimal("rate-gain").unwrap_or(0.02),
            balancers: spec.integer("balancers").unwrap_or(1) as f64,
            last: None,
            gap_ns: None,
            poll_interval_ns: context.poll_interval_ns as f64,
        }
    }

    pub(super) fn count(&mut self, now: Time) {
        if let Some(last) = self.last {
            let gap_ns = now.since_ns(last) as f64;
            let known = self.gap_ns.unwrap_or(gap_ns);
            self.gap_ns = Some(known + self.gain * (gap_ns - known));
        }
        self.last = Some(now);
    }

    /// Arrivals to be expected in `span_ns`; bounded, since gaps may be 0.
    pub(super) fn expected(&self, span_ns: f64) -> f64 {
        self.gap_ns
            .map_or(0.0, |gap| self.balancers * span_ns / gap.max(1.0))
    }
}

/// One backend on the board.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    id: BackendId,
    active: f64,
    weight: f64,
}

impl Place {
    fn per_weight(&self) -> f64 {
        self.active / self.weight
    }

    /// Lowest active per weight first, then by position.
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let by_load = self.per_weight().total_cmp(&other.per_weight());
        by_load.then(self.id.cmp(&other.id))
    }
}

/// Active counts and weights added up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums {
    active: f64,
    weight: f64,
}

/// Polled counts of some backends, sorted, with the sums up to and including each place. Whole numbers
/// all, so sums are exact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    places: Vec<Place>,
    sums: Vec<Sums>,
    oldest_ns: u64,
    newest_ns: u64,
    /// Whether everybody has a usable count.
    is_complete: bool,
}

impl Board {
    /// Makes it anew; O(n log n).
    pub(crate) fn fill<'a>(&mut self, backends: impl Iterator<Item = &'a Backend>) {
        self.places.clear();
        self.sums.clear();
        (self.oldest_ns, self.newest_ns) = (u64::MAX, 0);
        self.is_complete = true;
        for backend in backends {
            let told = backend.newest_stats().and_then(|r| Some((r, r.active?)));
            let Some((report, active)) = told else {
                self.is_complete = false;
                return;
            };
            self.oldest_ns = self.oldest_ns.min(report.sampled_at_ns);
            self.newest_ns = self.newest_ns.max(report.sampled_at_ns);
            self.places.push(Place {
                id: backend.id,
                active: f64::from(active),
                weight: f64::from(backend.weight),
            });
        }
        self.places.sort_unstable_by(Place::compare);
        self.sums
            .extend(self.places.iter().scan(Sums::default(), |sums, place| {
                sums.active += place.active;
                sums.weight += place.weight;
                Some(*sums)
            }));
    }

    fn is_usable(&self, now: Time, max_age_ns: u64) -> bool {
        let oldest = Time::from_nanos(self.oldest_ns);
        self.is_complete && now.since_ns(oldest) <= max_age_ns
    }

    /// Sums over the first `m`, without those of `out`.
    fn sums_of(&self, m: usize, out: &[Place]) -> Sums {
        let last = &self.places[m - 1];
        let mut sums = self.sums[m - 1];
        for place in out.iter().filter(|p| p.compare(last).is_le()) {
            sums.active -= place.active;
            sums.weight -= place.weight;
        }
        sums
    }

    /// The largest number of first places for which `holds`, which holds up to some number; at least 1.
    fn most(&self, holds: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (1, self.places.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if holds(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// The level that `arrivals` more requests reach if they go to the emptiest: how many places it
    /// covers, and its height per weight.
    fn level(&self, arrivals: f64, out: &[Place]) -> (usize, f64) {
        let covered = self.most(|m| {
            let (sums, place) = (self.sums_of(m, out), &self.places[m - 1]);
            (arrivals + sums.active) * place.weight >= place.active * sums.weight
        });
        let sums = self.sums_of(covered, out);
        (covered, (arrivals + sums.active) / sums.weight)
    }

    /// How many places are filled up once `arrivals` requests went to the emptiest first; at least the
    /// first that is not out.
    fn filled(&self, arrivals: f64, out: &[Place]) -> usize {
        let filled = self.most(|m| {
            // Bringing all before it up to its level takes this many.
            let (sums, place) = (self.sums_of(m, out), &self.places[m - 1]);
            sums.weight * place.active <= (arrivals + sums.active) * place.weight
        });
        let is_out = |place: &Place| out.iter().any(|o| o.id == place.id);
        let first = self.places.iter().position(|p| !is_out(p));
        filled.max(first.map_or(0, |i| i + 1))
    }

    /// The first place at which some growing sum exceeds a uniform share of its end.
    fn draw(&self, until: usize, sum: impl Fn(&Sums) -> f64, rng: &mut Rng) -> BackendId {
        let r = unit(rng) * sum(&self.sums[until - 1]);
        let at = self.sums[..until].partition_point(|s| sum(s) <= r);
        self.places[at.min(until - 1)].id
    }
}

/// How a board is drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// So that all end up level after this many arrivals.
    LevelOut(f64),
    /// By weight among those that are full after this many arrivals, the emptiest first.
    FillUp(f64),
}

impl Board {
    /// A draw; `None` if it fell on somebody who is out.
    fn draw_by(&self, rule: Rule, out: &[Place], rng: &mut Rng) -> Option<BackendId> {
        let id = match rule {
            Rule::LevelOut(arrivals) => {
                let (covered, level) = self.level(arrivals, out);
                self.draw(covered, |s| level * s.weight - s.active, rng)
            }
            Rule::FillUp(arrivals) => {
                let filled = self.filled(arrivals, out);
                self.draw(filled, |s| s.weight, rng)
            }
        };
        let is_out = out.iter().any(|place| place.id == id);
        (!is_out).then_some(id)
    }
}

/// The board of all the available, made anew when a report came or the pool changed.
#[derive(Debug, Clone)]
pub(super) struct Boards {
    max_age_ns: u64,
    all: Board,
    is_current: bool,
    /// Of a single pick, from which somebody is left out.
    special: Board,
    out: Vec<Place>,
}

impl Boards {
    pub(super) fn of(spec: &Spec, context: &Context) -> Self {
        Self {
            max_age_ns: measure::max_age_ns(spec, context),
            all: Board::default(),
            is_current: false,
            special: Board::default(),
            out: Vec::new(),
        }
    }

    /// Takes notice of a report.
    pub(super) fn on_stats(&mut self, report: &Report) {
        if matches!(report.source, Source::Poll | Source::Probe) {
            self.is_current = false;
        }
    }

    /// Takes notice of a change of the pool.
    pub(super) fn on_backends_changed(&mut self) {
        self.is_current = false;
    }

    /// Makes the board of all anew if the counts changed. True if it did.
    pub(super) fn renew(&mut self, backends: &Backends) -> bool {
        if self.is_current {
            return false;
        }
        self.all.fill(backends.available());
        self.is_current = true;
        true
    }

    /// When the newest count of somebody eligible was true, ns.
    pub(super) fn newest_ns(&self, backends: &Backends) -> u64 {
        let sampled_ns = |b: &Backend| b.newest_stats().map_or(0, |r| r.sampled_at_ns);
        let mut out = backends.left_out().filter_map(|id| backends.get(id));
        if self.all.is_complete && out.all(|b| sampled_ns(b) < self.all.newest_ns) {
            return self.all.newest_ns;
        }
        if backends.nobody_left_out() {
            return 0;
        }
        backends.eligible().map(sampled_ns).max().unwrap_or(0)
    }

    /// A draw among the eligible; `None` if any of them has no fresh count.
    pub(super) fn draw(
        &mut self,
        now: Time,
        rule: Rule,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if backends.eligible_len() == 0 {
            return None;
        }
        if self.all.is_usable(now, self.max_age_ns) {
            let out = backends.left_out().filter_map(|id| backends.get(id));
            self.out.clear();
            self.out.extend(out.map(|b| {
                Place {
                    id: b.id,
                    active: b
                        .newest_stats()
                        .and_then(|r| r.active)
                        .map_or(0.0, f64::from),
                    weight: f64::from(b.weight),
                }
            }));
            for _ in 0..=MAX_REDRAWS {
                let drawn = self.all.draw_by(rule, &self.out, rng);
                if drawn.is_some() {
                    return drawn;
                }
            }
        } else if backends.nobody_left_out() {
            return None;
        }
        self.special.fill(backends.eligible());
        if !self.special.is_usable(now, self.max_age_ns) {
            return None;
        }
        self.special.draw_by(rule, &[], rng)
    }
}

#[cfg(test)]
mod tests;
