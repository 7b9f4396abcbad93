//! The model in NeXosim: one model, an event per arrival and one per departure, on one thread.

use nexosim::model::{Context, Model, schedulable};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use plumbline_race::{Pool, Started, arguments};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Stations {
    pool: Pool,
}

#[Model]
impl Stations {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>) {
        self.next_arrival(context);
    }

    #[nexosim(schedulable)]
    fn arrive(&mut self, _: (), context: &Context<Self>) {
        let started = self.pool.arrive(now(context));
        self.start(started, context);
        self.next_arrival(context);
    }

    #[nexosim(schedulable)]
    fn leave(&mut self, (station, arrived): (usize, f64), context: &Context<Self>) {
        let started = self.pool.leave(now(context), station, arrived);
        self.start(started, context);
        if self.pool.finished() {
            self.pool.print();
        }
    }

    fn start(&self, started: Option<Started>, context: &Context<Self>) {
        if let Some(s) = started {
            context
                .schedule_event(
                    later(s.after),
                    schedulable!(Self::leave),
                    (s.station, s.arrived),
                )
                .expect("a departure lies ahead");
        }
    }

    fn next_arrival(&mut self, context: &Context<Self>) {
        if let Some(gap) = self.pool.gap() {
            context
                .schedule_event(later(gap), schedulable!(Self::arrive), ())
                .expect("an arrival lies ahead");
        }
    }
}

/// Its clock has whole nanoseconds and takes no event at the present one: a mean size is a second.
fn later(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds).max(Duration::from_nanos(1))
}

fn now(context: &Context<Stations>) -> f64 {
    context
        .time()
        .duration_since(MonotonicTime::EPOCH)
        .as_secs_f64()
}

fn main() -> Result<(), nexosim::simulation::SimulationError> {
    let (requests, load, seed) = arguments();
    let stations = Stations {
        pool: Pool::new(requests, load, seed),
    };
    SimInit::with_num_threads(1)
        .add_model(stations, Mailbox::new(), "stations")
        .init(MonotonicTime::EPOCH)?
        .run()?;
    Ok(())
}
