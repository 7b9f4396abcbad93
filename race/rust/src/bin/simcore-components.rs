//! The model in SimCore as its documentation builds systems: a balancer and a component per station,
//! which know each other by events only, as machines on a network do.

use plumbline_race::{Pool, Started, arguments};
use serde::Serialize;
use simcore::{Event, EventHandler, Id, Simulation, SimulationContext, cast};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Clone, Serialize)]
struct Arrival;

#[derive(Clone, Serialize)]
struct Request {
    arrived: f64,
    size: f64,
}

#[derive(Clone, Serialize)]
struct Finished {
    arrived: f64,
}

#[derive(Clone, Serialize)]
struct Response {
    station: usize,
    arrived: f64,
}

struct Balancer {
    pool: Pool,
    stations: Vec<Id>,
    context: SimulationContext,
}

impl Balancer {
    fn next_arrival(&mut self) {
        if let Some(gap) = self.pool.gap() {
            self.context.emit_self(Arrival, gap);
        }
    }
}

impl EventHandler for Balancer {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Arrival {} => {
                let arrived = event.time;
                let (station, size) = self.pool.send();
                self.context
                    .emit(Request { arrived, size }, self.stations[station], 0.0);
                self.next_arrival();
            }
            Response { station, arrived } => {
                self.pool.receive(event.time, station, arrived);
            }
        })
    }
}

struct Station {
    number: usize,
    free: u32,
    waiting: VecDeque<(f64, f64)>,
    balancer: Id,
    context: SimulationContext,
}

impl Station {
    fn start(&mut self, s: Started) {
        self.context
            .emit_self(Finished { arrived: s.arrived }, s.after);
    }
}

impl EventHandler for Station {
    fn on(&mut self, event: Event) {
        let station = self.number;
        cast!(match event.data {
            Request { arrived, size } => {
                if self.free == 0 {
                    self.waiting.push_back((arrived, size));
                } else {
                    self.free -= 1;
                    self.start(Started {
                        station,
                        arrived,
                        after: size,
                    });
                }
            }
            Finished { arrived } => {
                self.context
                    .emit(Response { station, arrived }, self.balancer, 0.0);
                match self.waiting.pop_front() {
                    Some((arrived, after)) => self.start(Started {
                        station,
                        arrived,
                        after,
                    }),
                    None => self.free += 1,
                }
            }
        })
    }
}

fn main() {
    let (requests, load, seed) = arguments();
    let mut simulation = Simulation::new(seed);
    let context = simulation.create_context("balancer");
    let balancer = Rc::new(RefCell::new(Balancer {
        pool: Pool::new(requests, load, seed),
        stations: Vec::new(),
        context,
    }));
    let balancer_id = simulation.add_handler("balancer", balancer.clone());
    for (number, &free) in plumbline_race::SERVERS.iter().enumerate() {
        let name = format!("station {number}");
        let context = simulation.create_context(&name);
        let station = Station {
            number,
            free,
            waiting: VecDeque::new(),
            balancer: balancer_id,
            context,
        };
        let id = simulation.add_handler(&name, Rc::new(RefCell::new(station)));
        balancer.borrow_mut().stations.push(id);
    }
    balancer.borrow_mut().next_arrival();
    simulation.step_until_no_events();
    balancer.borrow().pool.print();
}
