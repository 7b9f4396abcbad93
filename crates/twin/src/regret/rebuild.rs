//! What every worker still had to do when a pick was made, rebuilt from when requests came and went.
//!
//! A worker's records tell when each request reached it, when its service began and when it left, and
//! the rows tell its true work; no speed has to be believed. Under processor sharing all requests held
//! attain the same work meanwhile, so the clock of attained work follows from the numbers held; a
//! request's own stretch of that clock is scaled to its work: all is left when it arrives and nothing
//! when it leaves, whatever a busy host did in between. First come, first served the same holds of the
//! time since its service began. A request on its way to a worker, or waiting there, has all its work
//! left. One whose end the worker did not tell (it failed) attains at nominal speed until its outcome.
//!
//! Cost: a sort of the stays; then O(log n) per stay and O(requests held) per pick.

use strategies::work_left::cost::servers;

/// One worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) cores: f64,
    /// Speed of a core, 1 = nominal.
    pub(super) speed: f64,
}

/// How workers serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    /// All at once, at most one core each.
    Sharing,
    /// In order, by max(1, round(cores)) servers.
    InOrder,
}

/// One dispatch, times in ms of one clock: picked <= arrived <= started <= ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stay {
    pub(super) worker: usize,
    /// Core-ms at nominal speed.
    pub(super) work_ms: f64,
    pub(super) picked_ms: f64,
    /// At the worker.
    pub(super) arrived_ms: f64,
    pub(super) started_ms: f64,
    /// Left the worker.
    pub(super) ended_ms: f64,
    /// Whether the worker told of its end; if not, it did not get all its work.
    pub(super) told: bool,
    /// Whether its pick is judged: no warm-up, no second attempt.
    pub(super) judged: bool,
}

/// Work left at every worker at the moment of a pick, before the request that is placed counts.
#[derive(Debug)]
pub(super) struct World<'a> {
    stays: &'a [Stay],
    discipline: Discipline,
    now_ms: f64,
    workers: Vec<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Stays that have not ended, in service order.
    stays: Vec<usize>,
    clock: Clock,
}

/// Core-ms that a request held all along attained, by time: straight lines between points.
#[derive(Debug, Default)]
struct Clock {
    points: Vec<(f64, f64)>,
}

impl<'a> World<'a> {
    /// Before the first of `stays`, which are in the order of their picks.
    pub(super) fn new(workers: &[Worker], discipline: Discipline, stays: &'a [Stay]) -> Self {
        let held = |w: usize| Held {
            stays: Vec::new(),
            clock: match discipline {
                Discipline::Sharing => {
                    Clock::new(&workers[w], stays.iter().filter(|s| s.worker == w))
                }
                Discipline::InOrder => Clock::default(),
            },
        };
        Self {
            stays,
            discipline,
            now_ms: f64::NEG_INFINITY,
            workers: (0..workers.len()).map(held).collect(),
        }
    }

    /// Goes on to the pick of stay `next`; what ends at that very moment has left.
    pub(super) fn advance_to(&mut self, next: usize) {
        self.now_ms = self.stays[next].picked_ms;
        for held in &mut self.workers {
            held.stays.retain(|s| self.stays[*s].ended_ms > self.now_ms);
        }
    }

    /// Places stay `at`, the one advanced to.
    pub(super) fn place(&mut self, at: usize) {
        let order = |s: usize| (self.stays[s].started_ms, self.stays[s].arrived_ms);
        let held = &mut self.workers[self.stays[at].worker].stays;
        let place = held.partition_point(|s| order(*s) <= order(at));
        held.insert(place, at);
    }

    /// Core-ms at nominal speed that each request dispatched to `worker` and not gone from it
    /// still needs, in service order.
    pub(super) fn left_ms(&self, worker: usize) -> impl Iterator<Item = f64> {
        let held = &self.workers[worker];
        held.stays.iter().map(|s| self.left(held, &self.stays[*s]))
    }

    /// Work of a worker's requests over the work that its cores would have done meanwhile at the speed
    /// stated: 1 where cores and speed are those of the rows. `None` if its records tell nothing.
    pub(super) fn measured_speed(&self, worker: usize, stated: &Worker) -> Option<f64> {
        let clock = &self.workers[worker].clock;
        let server = stated.cores / servers(stated.cores) as f64 * stated.speed;
        let attained = |s: &Stay| match self.discipline {
            Discipline::Sharing => clock.at(s.ended_ms) - clock.at(s.arrived_ms),
            Discipline::InOrder => (s.ended_ms - s.started_ms) * server,
        };
        let (mut work, mut done) = (0.0, 0.0);
        for stay in self.stays.iter().filter(|s| s.worker == worker && s.told) {
            work += stay.work_ms;
            done += attained(stay);
        }
        (done > 0.0).then(|| work / done)
    }

    fn left(&self, held: &Held, stay: &Stay) -> f64 {
        let now_ms = self.now_ms;
        let part = match (self.discipline, stay.told) {
            _ if now_ms <= stay.arrived_ms => 1.0,
            (Discipline::Sharing, true) => {
                let end = held.clock.at(stay.ended_ms);
                let all = end - held.clock.at(stay.arrived_ms);
                (end - held.clock.at(now_ms)) / all
            }
            (Discipline::Sharing, false) => {
                let attained = held.clock.at(now_ms) - held.clock.at(stay.arrived_ms);
                1.0 - attained / stay.work_ms
            }
            (Discipline::InOrder, true) => {
                (stay.ended_ms - now_ms) / (stay.ended_ms - stay.started_ms)
            }
            // When its service began, if it did, nobody knows.
            (Discipline::InOrder, false) => 1.0,
        };
        // A stay of no length and a request of no work divide by zero: nothing is left of them.
        if part.is_nan() {
            0.0
        } else {
            stay.work_ms * part.clamp(0.0, 1.0)
        }
    }
}

impl Clock {
    fn new<'a>(worker: &Worker, stays: impl Iterator<Item = &'a Stay>) -> Self {
        let mut changes: Vec<(f64, f64)> = stays
            .flat_map(|s| [(s.arrived_ms, 1.0), (s.ended_ms, -1.0)])
            .collect();
        changes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(changes.len());
        let (mut n, mut v) = (0.0_f64, 0.0);
        let mut before_ms = f64::NEG_INFINITY;
        for (at_ms, change) in changes {
            if n > 0.0 {
                v += (at_ms - before_ms) * worker.speed * (worker.cores / n).min(1.0);
            }
            if at_ms > before_ms {
                points.push((at_ms, v));
            }
            before_ms = at_ms;
            n += change;
        }
        Self { points }
    }

    fn at(&self, t_ms: f64) -> f64 {
        let next = self.points.partition_point(|p| p.0 < t_ms);
        match (next.checked_sub(1), self.points.get(next)) {
            (Some(before), Some((to, high))) => {
                let (from, low) = self.points[before];
                low + (high - low) * ((t_ms - from) / (to - from))
            }
            (None, first) => first.map_or(0.0, |p| p.1),
            (Some(last), None) => self.points[last].1,
        }
    }
}
