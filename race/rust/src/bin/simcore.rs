//! The model in SimCore: one component, an event per arrival and one per departure.

use plumbline_race::{Pool, Started, arguments};
use serde::Serialize;
use simcore::{Event, EventHandler, Simulation, SimulationContext, cast};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Serialize)]
struct Arrival;

#[derive(Clone, Serialize)]
struct Departure {
    station: usize,
    arrived: f64,
}

struct Stations {
    pool: Pool,
    context: SimulationContext,
}

impl Stations {
    fn start(&self, started: Option<Started>) {
        if let Some(s) = started {
            let leaving = Departure {
                station: s.station,
                arrived: s.arrived,
            };
            self.context.emit_self(leaving, s.after);
        }
    }

    fn next_arrival(&mut self) {
        if let Some(gap) = self.pool.gap() {
            self.context.emit_self(Arrival, gap);
        }
    }
}

impl EventHandler for Stations {
    fn on(&mut self, event: Event) {
        let now = event.time;
        cast!(match event.data {
            Arrival {} => {
                let started = self.pool.arrive(now);
                self.start(started);
                self.next_arrival();
            }
            Departure { station, arrived } => {
                let started = self.pool.leave(now, station, arrived);
                self.start(started);
            }
        })
    }
}

fn main() {
    let (requests, load, seed) = arguments();
    let mut simulation = Simulation::new(seed);
    let stations = Rc::new(RefCell::new(Stations {
        pool: Pool::new(requests, load, seed),
        context: simulation.create_context("stations"),
    }));
    simulation.add_handler("stations", stations.clone());
    stations.borrow_mut().next_arrival();
    simulation.step_until_no_events();
    stations.borrow().pool.print();
}
