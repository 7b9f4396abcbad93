//! What a choice costs in worlds drawn from what a balancer knows: each is played on with the arrivals
//! that follow.
//!
//! A world is a draw of what the requests at every backend still need, of what the request to be placed
//! needs, and of some arrivals after it. In each world every choice is played with the same draws; the
//! later arrivals are placed by the rule of `wl-mc`, which knows of the draws what a balancer would:
//! means, and who is done. After the last of them all requests are served to their end. The cost is the
//! time that all of them spend there together.

use super::jobs::Discipline;
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
    /// Lets `for_ms` pass; the time that the requests here spend together.
    fn pass(&mut self, for_ms: f64) -> f64 {
        let cores = self.price.cores();
        let discipline = self.price.discipline();
        let (mut rest_ms, mut spent_ms) = (for_ms, 0.0);
        while rest_ms > 0.0 && !self.held.is_empty() {
            let n = self.held.len();
            let (running, rate) = match discipline {
                Discipline::Sharing => (n, (cores / n as f64).min(1.0)),
                Discipline::Queue(servers) => (n.min(servers), cores / servers as f64),
            };
            let rate = rate.min(cores) * self.speed;
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
    stations: Vec<Station>,
    /// Stations of earlier picks, kept for their room.
    spare: Vec<Station>,
    coming: Vec<(Coming, f64)>,
    rivals: Vec<Rival>,
}

impl Worlds {
    /// Looks so far.
    pub(crate) fn new(depth: Depth) -> Self {
        Self {
            depth,
            stations: Vec::new(),
            spare: Vec::new(),
            coming: Vec::new(),
            rivals: Vec::new(),
        }
    }

    /// Forgets the backends of the pick before.
    pub(crate) fn clear(&mut self) {
        self.spare.append(&mut self.stations);
    }

    /// Adds a backend with what is known of the requests there.
    pub(crate) fn add(
        &mut self,
        id: BackendId,
        place: Place,
        price: &Price,
        known: impl Iterator<Item = Left>,
    ) {
        let mut station = match self.spare.iter().position(|s| s.id == id) {
            Some(at) => self.spare.swap_remove(at),
            None => Station {
                id,
                price: price.clone(),
                speed: 1.0,
                pressure: 0.0,
                known: Vec::new(),
                drawn: Vec::new(),
                held: Vec::new(),
            },
        };
        if station.price.cores() != price.cores() {
            station.price = price.clone();
        }
        station.speed = place.speed;
        station.pressure = place.pressure;
        station.known.clear();
        station.known.extend(known);
        self.stations.push(station);
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
        let Some(usual_at) = self.stations.iter().position(|s| s.id == usual) else {
            return usual;
        };
        let stations = &self.stations;
        let places = rivals.filter_map(|id| stations.iter().position(|s| s.id == id));
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
        for station in &mut self.stations {
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
        for station in &mut self.stations {
            station.held.clone_from(&station.drawn);
        }
        self.stations[choice].held.push(piece);
        let mut spent_ms = 0.0;
        for i in 0..self.coming.len() {
            let (Coming { gap_ms, mean_ms }, need_ms) = self.coming[i];
            let (mut best, mut least_ms) = (0, f64::INFINITY);
            for (at, station) in self.stations.iter_mut().enumerate() {
                spent_ms += station.pass(gap_ms);
                let cost_ms = station.cost_ms(rule, mean_ms);
                if cost_ms < least_ms {
                    (best, least_ms) = (at, cost_ms);
                }
            }
            let piece = Piece::new(mean_ms, need_ms, rule.needs.spread);
            self.stations[best].held.push(piece);
        }
        for station in &mut self.stations {
            spent_ms += station.pass(f64::INFINITY);
        }
        spent_ms
    }
}

#[cfg(test)]
mod tests {
    use super::{Coming, Depth, Needs, Placing, Rule, Worlds};
    use crate::registry::Spec;
    use crate::values::BackendId;
    use crate::work_left::left::Left;
    use crate::work_left::placing::Place;
    use crate::work_left::price::Price;
    use proptest::prelude::*;
    use schema::rng::{Purpose, stream};

    const FOREVER: f64 = f64::INFINITY;

    fn rule(spec: &str, spread: f64) -> Rule {
        let spec: Spec = spec.parse().unwrap();
        let needs = Needs {
            typical_ms: 10.0,
            spread,
        };
        Rule {
            placing: Placing::new(&spec),
            needs,
        }
    }

    fn told(expected_ms: f64) -> Left {
        Left {
            expected_ms,
            floor_ms: 0.0,
            drawn: None,
        }
    }

    fn worlds(worlds: usize, ahead: usize, errors: f64) -> Worlds {
        Worlds::new(Depth {
            worlds,
            ahead,
            errors,
        })
    }

    fn add(worlds: &mut Worlds, price: &Price, speed: f64, left_ms: &[f64]) {
        let id = BackendId(worlds.stations.len() as u32);
        let place = Place {
            cores: price.cores(),
            speed,
            present: left_ms.len() as f64,
            pressure: 0.0,
        };
        worlds.add(id, place, price, left_ms.iter().map(|ms| told(*ms)));
    }

    /// The time that requests spend at one backend, one after the other in order of their ends, by stepping
    /// from event to event: `(arrives, needs)`, in order of arrival.
    fn stepped(cores: f64, in_order: bool, speed: f64, requests: &[(f64, f64)]) -> f64 {
        let mut left: Vec<f64> = requests.iter().map(|(_, need)| *need).collect();
        let (mut now, mut spent) = (0.0, 0.0);
        let done = |left: f64| left < 1e-9;
        while !left.iter().all(|l| done(*l)) {
            let present: Vec<usize> = (0..left.len())
                .filter(|i| requests[*i].0 <= now && !done(left[*i]))
                .collect();
            let servers = if in_order {
                cores.round().max(1.0)
            } else {
                FOREVER
            };
            let running = present.len().min(servers as usize);
            let share = if in_order {
                servers
            } else {
                running.max(1) as f64
            };
            let rate = speed * (cores / share).min(1.0);
            let arrival = requests.iter().map(|(at, _)| *at).filter(|at| *at > now);
            let arrival = arrival.fold(FOREVER, f64::min);
            let running = &present[..running];
            let least = running.iter().map(|i| left[*i]).fold(FOREVER, f64::min);
            let step = (least / rate).min(arrival - now);
            for i in running {
                left[*i] -= step * rate;
            }
            spent += step * present.len() as f64;
            now += step;
        }
        spent
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
    }

    proptest! {
        /// With nobody to come, a choice costs what the exact price says.
        #[test]
        fn without_arrivals_it_is_the_price(
            cores in prop::sample::select(vec![0.4, 0.8, 1.0, 2.0, 2.5, 4.0]),
            in_order in any::<bool>(),
            speed in 0.2..1.0_f64,
            size in 0.1..50.0_f64,
            left in prop::collection::vec(0.1..50.0_f64, 0..9),
            other in prop::collection::vec(0.1..50.0_f64, 0..9),
        ) {
            let price = Price::new(cores, in_order);
            let mut worlds = worlds(1, 0, 0.0);
            add(&mut worlds, &price, speed, &left);
            add(&mut worlds, &Price::new(1.5, in_order), 1.0, &other);
            let rule = rule("wl-mc", 0.0);
            let mut rng = stream(1, Purpose::Strategy, 0, 0);
            worlds.draw(0, 0.0, &|_| unreachable!(), &mut rng);
            let with = worlds.play(0, super::Piece::new(size, size, 0.0), rule);
            let alone = |cores, speed, left: &[f64]| {
                let requests: Vec<_> = left.iter().map(|ms| (0.0, *ms)).collect();
                stepped(cores, in_order, speed, &requests)
            };
            let without = alone(cores, speed, &left) + alone(1.5, 1.0, &other);
            let cost = price.clone().cost(size, left.iter().copied());
            let wanted = (cost.own_ms + cost.others_ms) / speed;
            prop_assert!(close(with - without, wanted), "{} {wanted}", with - without);
        }

        /// One backend, so that every arrival goes there: what is played is what steps of time show.
        #[test]
        fn a_world_is_played_as_steps_of_time_show(
            cores in prop::sample::select(vec![0.4, 1.0, 2.0, 4.0]),
            in_order in any::<bool>(),
            speed in 0.2..1.0_f64,
            left in prop::collection::vec(0.1..50.0_f64, 0..6),
            size in 0.1..50.0_f64,
            coming in prop::collection::vec((0.01..40.0_f64, 0.1..50.0_f64), 0..12),
        ) {
            let mut worlds = worlds(1, coming.len(), 0.0);
            add(&mut worlds, &Price::new(cores, in_order), speed, &left);
            let rule = rule("wl-mc", 0.0);
            let mut rng = stream(1, Purpose::Strategy, 0, 0);
            let turn = std::cell::Cell::new(0);
            let next = |_: &mut crate::strategy::Rng| {
                let (gap_ms, mean_ms) = coming[turn.replace(turn.get() + 1)];
                Coming { gap_ms, mean_ms }
            };
            worlds.draw(coming.len(), 0.0, &next, &mut rng);
            let played = worlds.play(0, super::Piece::new(size, size, 0.0), rule);
            let mut requests: Vec<(f64, f64)> = left.iter().map(|ms| (0.0, *ms)).collect();
            requests.push((0.0, size));
            let mut at = 0.0;
            for (gap, need) in &coming {
                at += gap;
                requests.push((at, *need));
            }
            let wanted = stepped(cores, in_order, speed, &requests);
            prop_assert!(close(played, wanted), "{played} {wanted}");
        }
    }

    /// A core and half a core, both idle; a request of 1 core-ms, and right behind it one of 10. The rule
    /// gives the first the whole core, where the other then shares it: 2 + 11 ms. Half a core would take 2
    /// and leave the whole one to the other: 2 + 10.
    fn small_before_large(errors: f64, ahead: usize) -> BackendId {
        let mut worlds = worlds(20, ahead, errors);
        add(&mut worlds, &Price::new(1.0, false), 1.0, &[]);
        add(&mut worlds, &Price::new(0.5, false), 1.0, &[]);
        let large = |_: &mut crate::strategy::Rng| Coming {
            gap_ms: 0.0,
            mean_ms: 10.0,
        };
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        let rivals = std::iter::once(BackendId(1));
        worlds.choose(
            rule("wl-mc", 0.0),
            BackendId(0),
            rivals,
            1.0,
            large,
            &mut rng,
        )
    }

    #[test]
    fn a_small_request_makes_room_for_a_large_one_to_come() {
        assert_eq!(small_before_large(2.0, 1), BackendId(1));
        assert_eq!(small_before_large(2.0, 0), BackendId(0));
    }

    /// Two equal backends: which is better is chance alone, and the usual choice stands.
    #[test]
    fn chance_does_not_move_it() {
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        let next = |rng: &mut crate::strategy::Rng| Coming {
            gap_ms: 10.0 * schema::rng::exponential(rng),
            mean_ms: 10.0,
        };
        let mut moved = 0;
        for _ in 0..200 {
            let mut worlds = worlds(40, 6, 3.0);
            add(&mut worlds, &Price::new(1.0, false), 1.0, &[4.0]);
            add(&mut worlds, &Price::new(1.0, false), 1.0, &[4.0]);
            let (rule, rivals) = (rule("wl-mc", 0.5), std::iter::once(BackendId(1)));
            let chosen = worlds.choose(rule, BackendId(0), rivals, 10.0, next, &mut rng);
            moved += u32::from(chosen != BackendId(0));
        }
        // One in 740 beyond three standard errors on one side.
        assert!(moved <= 4, "{moved}");
    }
}
