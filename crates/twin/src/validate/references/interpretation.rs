//! Load interpretation over equal single-core workers whose arrival rate is **known exactly** (Dahlin
//! 2000): what `basic-li` and `aggressive-li` come to if their estimate of the rate is perfect.

use super::{entry, shown};
use analytic::interpretation::{basic, fill_order};
use schema::report::Report;
use schema::rng::{below, unit};
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{BackendId, Backends, Context, Request, Strategy, Time};

/// Load that the two are told, and mean work of a request, s.
pub(in crate::validate) const LOAD: f64 = 0.9;
const SERVICE_NS: f64 = 1e9;

/// One set of probabilities for the whole interval.
pub(in crate::validate) static BASIC: Entry =
    entry("basic-li-exact", &[Read::Poll], |_, context| {
        Box::new(Basic {
            interval: in_services(context),
            is_current: false,
            cumulative: Vec::new(),
        })
    });
/// The emptiest first.
pub(in crate::validate) static AGGRESSIVE: Entry =
    entry("aggressive-li-exact", &[Read::Poll], |_, _| {
        Box::new(Aggressive {
            is_current: false,
            sampled_at: Time::ZERO,
            order: Vec::new(),
            filled: 0,
        })
    });

fn in_services(context: &Context) -> f64 {
    context.poll_interval_ns as f64 / SERVICE_NS
}

fn board(backends: &Backends) -> (Vec<f64>, Vec<f64>) {
    let n = backends.eligible_len();
    let counts = (0..n).map(|at| f64::from(shown(backends, at)));
    (counts.collect(), vec![1.0; n])
}

#[derive(Debug, Clone)]
struct Basic {
    interval: f64,
    is_current: bool,
    /// Sums of the probabilities.
    cumulative: Vec<f64>,
}

impl Strategy for Basic {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len();
        if !self.is_current {
            let (counts, capacities) = board(backends);
            let arrivals = LOAD * n as f64 * self.interval;
            let shares = basic(&counts, &capacities, arrivals).ok()?;
            self.cumulative.clear();
            self.cumulative.extend(shares.iter().scan(0.0, |sum, p| {
                *sum += p;
                Some(*sum)
            }));
            self.is_current = true;
        }
        let r = unit(rng) * self.cumulative.last()?;
        let at = self.cumulative.partition_point(|sum| *sum <= r);
        Some(backends.eligible_at(at.min(n - 1)).id)
    }

    fn on_stats(&mut self, _now: Time, _id: BackendId, _report: &Report, _backends: &Backends) {
        self.is_current = false;
    }
}

#[derive(Debug, Clone)]
struct Aggressive {
    is_current: bool,
    sampled_at: Time,
    /// Positions, emptiest first, with the arrivals that fill all before them up to their level.
    order: Vec<(usize, f64)>,
    filled: usize,
}

impl Strategy for Aggressive {
    fn pick(
        &mut self,
        now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        if !self.is_current {
            let (counts, capacities) = board(backends);
            self.order = fill_order(&counts, &capacities).ok()?;
            self.filled = 0;
            self.is_current = true;
        }
        let age = now.since_ns(self.sampled_at) as f64 / SERVICE_NS;
        let arrivals = LOAD * self.order.len() as f64 * age;
        let more = self.order[self.filled..].iter();
        self.filled += more.take_while(|(_, needed)| *needed <= arrivals).count();
        let at = self.order[below(rng, self.filled as u64) as usize].0;
        Some(backends.eligible_at(at).id)
    }

    fn on_stats(&mut self, _now: Time, _id: BackendId, report: &Report, _backends: &Backends) {
        self.is_current = false;
        self.sampled_at = Time::from_nanos(report.sampled_at_ns);
    }
}
