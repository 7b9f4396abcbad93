//! The model of the race: Poisson arrivals, exponential sizes of mean 1, stations of 4, 3 and 2 servers
//! with one first-come-first-served queue each; a request joins the station of least (n + 1)/servers,
//! ties by lot. It is kept apart from the simulators so that each of them only brings its clock, its
//! event queue and its way of calling a component.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Servers of each station.
pub const SERVERS: [u32; 3] = [4, 3, 2];

/// A request that has begun to be served: it leaves `after` from now.
pub struct Started {
    pub station: usize,
    pub arrived: f64,
    pub after: f64,
}

/// Stations and what is measured of them.
#[derive(Serialize, Deserialize)]
pub struct Pool {
    #[serde(skip)]
    rng: fastrand::Rng,
    rate: f64,
    present: [u32; 3],
    waiting: [VecDeque<(f64, f64)>; 3],
    requests: u64,
    arrived: u64,
    left_out: u64,
    departed: u64,
    measured: u64,
    total: f64,
}

impl Pool {
    /// `requests` at `load` of the capacity; the first tenth that leaves is not measured.
    pub fn new(requests: u64, load: f64, seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            rate: load * f64::from(SERVERS.iter().sum::<u32>()),
            present: [0; 3],
            waiting: Default::default(),
            requests,
            arrived: 0,
            left_out: requests / 10,
            departed: 0,
            measured: 0,
            total: 0.0,
        }
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.rng.f64()).ln() * mean
    }

    /// Time to the next arrival; none after the last.
    pub fn gap(&mut self) -> Option<f64> {
        (self.arrived < self.requests).then(|| self.exponential(1.0 / self.rate))
    }

    /// A request is sent: its station and size.
    pub fn send(&mut self) -> (usize, f64) {
        self.arrived += 1;
        let station = self.pick();
        self.present[station] += 1;
        (station, self.exponential(1.0))
    }

    /// The answer of a request is here `now`.
    pub fn receive(&mut self, now: f64, station: usize, arrived: f64) {
        self.present[station] -= 1;
        self.departed += 1;
        if self.departed > self.left_out {
            self.measured += 1;
            self.total += now - arrived;
        }
    }

    /// A request arrives `now`; what begins to be served, if a server is free.
    pub fn arrive(&mut self, now: f64) -> Option<Started> {
        let (station, size) = self.send();
        if self.present[station] > SERVERS[station] {
            self.waiting[station].push_back((now, size));
            return None;
        }
        Some(Started {
            station,
            arrived: now,
            after: size,
        })
    }

    /// A request leaves `station` `now`; what begins to be served in its place.
    pub fn leave(&mut self, now: f64, station: usize, arrived: f64) -> Option<Started> {
        self.receive(now, station, arrived);
        let (arrived, after) = self.waiting[station].pop_front()?;
        Some(Started {
            station,
            arrived,
            after,
        })
    }

    fn pick(&mut self) -> usize {
        let (mut best, mut tied) = (0, 1);
        for (i, servers) in SERVERS.iter().enumerate().skip(1) {
            let ours = (self.present[i] + 1) * SERVERS[best];
            let theirs = (self.present[best] + 1) * servers;
            match ours.cmp(&theirs) {
                std::cmp::Ordering::Less => (best, tied) = (i, 1),
                std::cmp::Ordering::Equal => {
                    tied += 1;
                    if self.rng.u32(0..tied) == 0 {
                        best = i;
                    }
                }
                std::cmp::Ordering::Greater => {}
            }
        }
        best
    }

    /// Every request has come and gone.
    pub fn finished(&self) -> bool {
        self.departed == self.requests
    }

    /// Prints what the race compares.
    pub fn print(&self) {
        println!(
            "{{\"requests\": {}, \"mean\": {}}}",
            self.departed,
            self.total / self.measured as f64
        );
    }
}

/// Requests, load and seed from the command line.
pub fn arguments() -> (u64, f64, u64) {
    let mut given = std::env::args().skip(1);
    let mut next = |what: &str| {
        given
            .next()
            .unwrap_or_else(|| panic!("usage: REQUESTS LOAD SEED ({what} is missing)"))
    };
    (
        next("REQUESTS")
            .parse()
            .expect("REQUESTS is a whole number"),
        next("LOAD").parse().expect("LOAD is a number"),
        next("SEED").parse().expect("SEED is a whole number"),
    )
}
