//! What a choice costs in worlds drawn from what a balancer knows: each is played on with the arrivals
//! that follow.
//!
//! A world is a draw of what the requests at every backend still need, of what the request to be placed
//! needs, and of some arrivals after it. In each world every choice is played with the same draws; the
//! later arrivals are placed by the rule of `wl-mc`, which knows of the draws what a balancer would:
//! means, and who is done. After the last of them all requests are served to their end. The cost is the
//! time that all of them spend there together.

use super::left::{Left, Needs};
use super::placing::{Place, Placing};
use super::possible::draw_ms;
use super::price::Price;
use crate::strategy::Rng;
use crate::values::BackendId;

/// Work that counts as done, core-ms.
const DONE_MS: f64 = 1e-9;
/// Worlds between two looks at whether a choice still may win.
const LOOK: usize = 10;
/// Standard errors by which a choice is worse than the usual one that is given up.
const HOPELESS: f64 = 2.0;

/// An arrival after the request that is to be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coming {
    /// Time after the one before it, ms.
    pub(crate) gap_ms: f64,
    /// Mean need of its class, core-ms.
    pub(crate) mean_ms: f64,
}

/// A request in a world.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// What it still needs, core-ms.
    left_ms: f64,
    /// What a balancer would expect, core-ms.
    expected: Left,
}

impl Piece {
    fn new(mean_ms: f64, need_ms: f64, spread: f64) -> Self {
        Self {
            left_ms: need_ms,
            expected: Left {
                expected_ms: mean_ms,
                floor_ms: spread * mean_ms,
                drawn: None,
            },
        }
    }
}

/// A backend in a world.
#[derive(Debug, Clone)]
pub(crate) struct Station {
    pub(crate) id: BackendId,
    price: Price,
    speed: f64,
    pressure: f64,
    /// What is known of the requests there.
    known: Vec<Left>,
    /// Those of this world before the choice.
    drawn: Vec<Piece>,
    /// Those there while a choice is played.
    held: Vec<Piece>,
}

impl Station {
    fn new(id: BackendId, price: &Price) -> Self {
        Self {
            id,
            price: price.clone(),
            speed: 1.0,
            pressure: 0.0,
            known: Vec::new(),
            drawn: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Lets `for_ms` pass; the time that the requests here spend together.
    fn pass(&mut self, for_ms: f64) -> f64 {
        let cores = self.price.cores();
        let discipline = self.price.discipline();
        let (mut rest_ms, mut spent_ms) = (for_ms, 0.0);
        while rest_ms > 0.0 && !self.held.is_empty() {
            let n = self.held.len();
            let running = discipline.running(n);
            let rate = discipline.rate(cores, n as f64) * self.speed;
            let least_ms = (self.held[..running].iter())
                .map(|piece| piece.left_ms)
                .fold(f64::INFINITY, f64::min);
            let step_ms = (least_ms / rate).min(rest_ms);
            let work_ms = step_ms * rate;
            for piece in &mut self.held[..running] {
                piece.left_ms -= work_ms;
                piece.expected.expected_ms -= work_ms;
            }
            spent_ms += n as f64 * step_ms;
            rest_ms -= step_ms;
            if work_ms >= least_ms - DONE_MS {
                self.held.retain(|piece| piece.left_ms > DONE_MS);
            }
        }
        spent_ms
    }

    /// What it would cost to place a request of this mean here, by the rule.
    fn cost_ms(&mut self, rule: Rule, mean_ms: f64) -> f64 {
        let place = Place {
            cores: self.price.cores(),
            speed: self.speed,
            present: self.held.len() as f64,
            pressure: self.pressure,
        };
        let left_ms = self.held.iter().map(|piece| piece.expected.ms());
        rule.placing
            .cost_ms(place, &mut self.price, rule.needs, mean_ms, left_ms)
    }
}

/// The rule by which arrivals are placed, and what is known of their needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) placing: Placing,
    pub(crate) needs: Needs,
}

/// How far it is looked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    /// Worlds drawn at most.
    pub(crate) worlds: usize,
    /// Arrivals in each after the request that is to be placed.
    pub(crate) ahead: usize,
    /// Standard errors by which a choice must be better than the usual one.
    pub(crate) errors: f64,
}

/// A choice beside the usual one, and how much more it cost.
#[derive(Debug, Clone, Copy)]
struct Rival {
    at: usize,
    sum_ms: f64,
    squares: f64,
}

impl Rival {
    fn note(&mut self, more_ms: f64) {
        self.sum_ms += more_ms;
        self.squares += more_ms * more_ms;
    }

    /// Mean and its standard error after `n` worlds.
    fn mean_ms(&self, n: usize) -> (f64, f64) {
        let n = n as f64;
        let mean = self.sum_ms / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        (mean, libm::sqrt(variance / (n - 1.0).max(1.0)))
    }
}

/// The backends of a pick and the worlds drawn for it.
#[derive(Debug, Clone)]
pub(crate) struct Worlds {
    depth: Depth,
    /// Those of this pick first; behind them some of earlier ones, kept for their room.
    stations: Vec<Station>,
    /// How many are of this pick.
    count: usize,
    coming: Vec<(Coming, f64)>,
    rivals: Vec<Rival>,
}

impl Worlds {
    /// Looks so far.
    pub(crate) fn new(depth: Depth) -> Self {
        Self {
            depth,
            stations: Vec::new(),
            count: 0,
            coming: Vec::new(),
            rivals: Vec::new(),
        }
    }

    /// Forgets the backends of the pick before.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a backend with what is known of the requests there.
    pub(crate) fn add(
        &mut self,
        id: BackendId,
        place: Place,
        price: &Price,
        known: impl Iterator<Item = Left>,
    ) {
        if self.count == self.stations.len() {
            self.stations.push(Station::new(id, price));
        }
        let station = &mut self.stations[self.count];
        self.count += 1;
        station.id = id;
        if station.price.cores() != price.cores() {
            station.price = price.clone();
        }
        station.speed = place.speed;
        station.pressure = place.pressure;
        station.known.clear();
        station.known.extend(known);
    }

    /// The rival of the least mean cost, if that is less than the usual choice's by more than the asked
    /// standard errors; else the usual choice. `mean_ms` is the mean need of the request's class, `next`
    /// draws an arrival.
    pub(crate) fn choose(
        &mut self,
        rule: Rule,
        usual: BackendId,
        rivals: impl Iterator<Item = BackendId>,
        mean_ms: f64,
        next: impl Fn(&mut Rng) -> Coming,
        rng: &mut Rng,
    ) -> BackendId {
        let stations = &self.stations[..self.count];
        let place = |id| stations.iter().position(|s| s.id == id);
        let Some(usual_at) = place(usual) else {
            return usual;
        };
        let places = rivals.filter_map(place);
        self.rivals.clear();
        self.rivals.extend(places.map(|at| Rival {
            at,
            sum_ms: 0.0,
            squares: 0.0,
        }));
        let (depth, spread) = (self.depth, rule.needs.spread);
        for world in 1..=depth.worlds {
            self.draw(depth.ahead, spread, &next, rng);
            let piece = Piece::new(mean_ms, draw_ms(mean_ms, spread, rng), spread);
            let usual_ms = self.play(usual_at, piece, rule);
            for i in 0..self.rivals.len() {
                let more_ms = self.play(self.rivals[i].at, piece, rule) - usual_ms;
                self.rivals[i].note(more_ms);
            }
            if world % LOOK == 0 {
                self.rivals.retain(|rival| {
                    let (mean_ms, error_ms) = rival.mean_ms(world);
                    mean_ms < depth.errors.max(HOPELESS) * error_ms
                });
                if self.rivals.is_empty() {
                    return usual;
                }
            }
        }
        let means = self.rivals.iter().map(|r| (r.at, r.mean_ms(depth.worlds)));
        means
            .filter(|(_, (mean_ms, error_ms))| *mean_ms < -depth.errors * error_ms)
            .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
            .map_or(usual, |(at, _)| self.stations[at].id)
    }

    /// Draws a world.
    fn draw(
        &mut self,
        ahead: usize,
        spread: f64,
        next: &impl Fn(&mut Rng) -> Coming,
        rng: &mut Rng,
    ) {
        for station in &mut self.stations[..self.count] {
            station.held.reserve(station.known.len() + 1 + ahead);
            station.drawn.clear();
            let known = station.known.iter();
            station.drawn.extend(known.map(|left| Piece {
                left_ms: left.draw_ms(spread, rng),
                expected: *left,
            }));
        }
        self.coming.clear();
        for _ in 0..ahead {
            let coming = next(rng);
            let need_ms = draw_ms(coming.mean_ms, spread, rng);
            self.coming.push((coming, need_ms));
        }
    }

    /// The time that all requests of this world spend together if `piece` is placed at `choice`.
    fn play(&mut self, choice: usize, piece: Piece, rule: Rule) -> f64 {
        for station in &mut self.stations[..self.count] {
            station.held.clone_from(&station.drawn);
        }
        self.stations[choice].held.push(piece);
        let mut spent_ms = 0.0;
        for i in 0..self.coming.len() {
            let (Coming { gap_ms, mean_ms }, need_ms) = self.coming[i];
            let (mut best, mut least_ms) = (0, f64::INFINITY);
            for (at, station) in self.stations[..self.count].iter_mut().enumerate() {
                spent_ms += station.pass(gap_ms);
                let cost_ms = station.cost_ms(rule, mean_ms);
                if cost_ms < least_ms {
                    (best, least_ms) = (at, cost_ms);
                }
            }
            let piece = Piece::new(mean_ms, need_ms, rule.needs.spread);
            self.stations[best].held.push(piece);
        }
        for station in &mut self.stations[..self.count] {
            spent_ms += station.pass(f64::INFINITY);
        }
        spent_ms
    }
}

#[cfg(test)]
mod tests;
