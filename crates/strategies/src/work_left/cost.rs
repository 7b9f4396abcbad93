//! The price of one more request at a backend whose work left is known, no further arrivals.
//!
//! *Own* is how long the new request takes; *others* is how much longer all the present ones take
//! together because of it. Both are exact for the stated discipline, in ms at nominal speed.

/// What a placement costs, ms at nominal speed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Until the new request is done.
    pub own_ms: f64,
    /// Delay it adds to those already there, summed.
    pub others_ms: f64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.own_ms += other.own_ms;
        self.others_ms += other.others_ms;
    }
}

impl std::ops::Div<f64> for Cost {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self {
            own_ms: self.own_ms / by,
            others_ms: self.others_ms / by,
        }
    }
}

/// Processor sharing among requests of at most one core each.
///
/// While `x` of the present requests and the new one run on `c` cores, the new one's time passes at
/// `max(1, (x+1)/c)` per unit of its work and it delays the others by `x * (max(1, (x+1)/c) -
/// max(1, x/c))`. Both are straight lines in `x` from `x = c` on, so the integral over the new
/// request's work is a sum over all work left plus a correction for the `ceil(c)` largest: no sort.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharing {
    cores: f64,
    alone: f64,
    /// By rank from the largest work left: what the straight line counts too much.
    excess: Vec<Cost>,
    largest: Vec<f64>,
}

impl Sharing {
    /// A backend of `cores` cores, above 0.
    pub fn new(cores: f64) -> Self {
        let own = |x: f64| (x + 1.0).max(cores) / cores;
        let others = |x: f64| x * ((x + 1.0).max(cores) - x.max(cores)) / cores;
        let excess: Vec<Cost> = (1..=cores.ceil() as usize)
            .map(|rank| {
                let x = rank as f64;
                Cost {
                    own_ms: 1.0 / cores - (own(x) - own(x - 1.0)),
                    others_ms: 1.0 / cores - (others(x) - others(x - 1.0)),
                }
            })
            .collect();
        let negligible = |e: &Cost| e.own_ms.abs().max(e.others_ms.abs()) * cores < 1e-12;
        let kept = excess
            .iter()
            .rposition(|e| !negligible(e))
            .map_or(0, |at| at + 1);
        Self {
            cores,
            alone: own(0.0),
            largest: Vec::with_capacity(kept),
            excess: excess[..kept].to_vec(),
        }
    }

    /// The cores it was made for.
    pub fn cores(&self) -> f64 {
        self.cores
    }

    /// The price of a request of `size_ms` core-ms beside those with `left_ms` core-ms left.
    pub fn cost(&mut self, size_ms: f64, left_ms: impl Iterator<Item = f64>) -> Cost {
        let mut sum = 0.0;
        self.largest.clear();
        for left in left_ms {
            let shared = left.min(size_ms);
            sum += shared;
            keep_largest(&mut self.largest, shared, self.excess.len());
        }
        let mut cost = Cost {
            own_ms: self.alone * size_ms + sum / self.cores,
            others_ms: sum / self.cores,
        };
        for (left, excess) in self.largest.iter().zip(&self.excess) {
            cost.own_ms -= left * excess.own_ms;
            cost.others_ms -= left * excess.others_ms;
        }
        cost
    }
}

/// Keeps the `most` largest in descending order.
fn keep_largest(largest: &mut Vec<f64>, value: f64, most: usize) {
    if largest.len() == most {
        match largest.last() {
            Some(least) if *least < value => largest.truncate(most - 1),
            _ => return,
        }
    }
    let at = largest.partition_point(|other| *other >= value);
    largest.insert(at, value);
}

/// First come, first served by servers of equal speed: the new request waits for all before it and
/// delays nobody.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    cores: f64,
    servers: usize,
    speed: f64,
    free_at: Vec<f64>,
}

impl Queue {
    /// A backend of `cores` cores: `max(1, round(cores))` servers that share its speed.
    pub fn new(cores: f64) -> Self {
        let servers = servers(cores);
        Self {
            cores,
            servers,
            speed: cores / servers as f64,
            free_at: Vec::with_capacity(servers),
        }
    }

    /// The cores it was made for.
    pub fn cores(&self) -> f64 {
        self.cores
    }

    /// How many it serves at once.
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Until a request of `size_ms` core-ms is done that comes after those with `left_ms` core-ms
    /// left, in the order in which they are served.
    pub fn finish_ms(&mut self, size_ms: f64, left_ms: impl Iterator<Item = f64>) -> f64 {
        self.free_at.clear();
        let mut serve = |work: f64| {
            if self.free_at.len() < self.servers {
                self.free_at.push(work / self.speed);
                return work / self.speed;
            }
            let first = (0..self.servers)
                .min_by(|a, b| self.free_at[*a].total_cmp(&self.free_at[*b]))
                .unwrap_or(0);
            self.free_at[first] += work / self.speed;
            self.free_at[first]
        };
        left_ms.for_each(|work| {
            serve(work);
        });
        serve(size_ms)
    }
}

/// Servers of a first-come-first-served backend: whole, at least one.
pub fn servers(cores: f64) -> usize {
    libm::round(cores).max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::{Cost, Queue, Sharing};
    use proptest::prelude::*;

    /// Walks the levels from 0 to the size, as the rule is written.
    fn walk(cores: f64, size: f64, left: &[f64]) -> Cost {
        let mut levels: Vec<f64> = left.iter().copied().filter(|r| *r < size).collect();
        levels.push(size);
        levels.sort_by(f64::total_cmp);
        let (mut from, mut cost) = (0.0, Cost::default());
        for to in levels {
            let x = left.iter().filter(|r| **r >= to).count() as f64;
            let with = ((x + 1.0) / cores).max(1.0);
            cost.own_ms += (to - from) * with;
            cost.others_ms += x * (to - from) * (with - (x / cores).max(1.0));
            from = to;
        }
        // Speed below one core: alone it already takes 1/c.
        cost
    }

    /// Runs all requests to their end, a small step at a time, with and without the new one.
    fn run(cores: f64, size: Option<f64>, left: &[f64]) -> (f64, f64) {
        let mut work: Vec<f64> = left.iter().copied().chain(size).collect();
        let (mut now, mut own, mut others) = (0.0, 0.0, 0.0);
        while work.iter().any(|w| *w > 0.0) {
            let n = work.iter().filter(|w| **w > 0.0).count() as f64;
            let rate = (cores / n).min(1.0);
            let least = work
                .iter()
                .copied()
                .filter(|w| *w > 0.0)
                .fold(f64::INFINITY, f64::min);
            now += least / rate;
            for (i, w) in work.iter_mut().enumerate().filter(|(_, w)| **w > 0.0) {
                *w = if *w - least < 1e-9 { 0.0 } else { *w - least };
                if *w == 0.0 {
                    *(if i == left.len() {
                        &mut own
                    } else {
                        &mut others
                    }) += now;
                }
            }
        }
        (own, others)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn worked_values() {
        let cost = |cores, size, left: &[f64]| Sharing::new(cores).cost(size, left.iter().copied());
        let both = |own_ms, others_ms| Cost { own_ms, others_ms };
        assert_eq!(cost(2.0, 20.0, &[10.0, 30.0]), both(25.0, 10.0));
        assert_eq!(cost(0.8, 100.0, &[50.0]), both(187.5, 62.5));
        let mut queue = Queue::new(2.0);
        assert_eq!(queue.finish_ms(5.0, [10.0, 30.0, 20.0].into_iter()), 35.0);
    }

    proptest! {
        #[test]
        fn the_price_of_sharing_is_what_running_it_shows(
            cores in prop::sample::select(vec![0.2, 0.4, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.3]),
            size in 0.1..200.0f64,
            left in prop::collection::vec(0.1..200.0f64, 0..24),
        ) {
            let mut sharing = Sharing::new(cores);
            let cost = sharing.cost(size, left.iter().copied());
            let walked = walk(cores, size, &left);
            prop_assert!(close(cost.own_ms, walked.own_ms) && close(cost.others_ms, walked.others_ms), "{cost:?} {walked:?}");
            let (own, others) = run(cores, Some(size), &left);
            let (_, without) = run(cores, None, &left);
            prop_assert!((cost.own_ms - own).abs() <= 1e-6 * own, "{} {own}", cost.own_ms);
            prop_assert!((cost.others_ms - (others - without)).abs() <= 1e-6 * (1.0 + others));
        }

        #[test]
        fn a_queue_serves_in_order(
            servers in 1..5usize,
            work in prop::collection::vec(0.1..50.0f64, 0..20),
            size in 0.1..50.0f64,
        ) {
            // Oracle: step through time, giving each free server the next in line.
            let mut queue = Queue::new(servers as f64);
            let mut busy: Vec<f64> = Vec::new();
            let mut now = 0.0;
            let mut done = 0.0;
            for w in work.iter().copied().chain([size]) {
                if busy.len() == servers {
                    busy.sort_by(f64::total_cmp);
                    now = busy.remove(0);
                }
                done = now + w;
                busy.push(done);
            }
            prop_assert!(close(queue.finish_ms(size, work.iter().copied()), done));
        }
    }
}
