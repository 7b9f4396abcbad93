use super::{Done, Engine, start};
use crate::clock::Clock;
use crate::machine::Shape;
use schema::stats::Discipline;

fn shape(burn_fraction: f64, discipline: Discipline) -> Shape {
    Shape {
        cores: 2.0,
        discipline,
        mips_per_core: 1000.0,
        burn_fraction,
    }
}

fn run_together(engine: &Engine, sizes_mi: &[f64]) -> Vec<Done> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let tickets: Vec<_> = sizes_mi.iter().map(|mi| engine.submit(*mi, "r")).collect();
        let mut ends = Vec::new();
        for ticket in tickets {
            ends.push(ticket.ended().await.expect("the engine runs"));
        }
        ends
    })
}

#[test]
fn a_pinned_engine_gives_every_request_its_nominal_time_or_more() {
    for fraction in [0.0, 0.2] {
        let shape = shape(fraction, Discipline::Ps);
        let engine = start(shape, true, 2, Clock::start()).expect("threads");
        for done in run_together(&engine, &[5.0, 10.0, 15.0, 20.0]) {
            assert!(done.started_ns >= done.arrived_ns);
            assert!(done.ended_ns > done.started_ns);
        }
        let totals = engine.totals();
        assert!((totals.work_core_ns - 50e6).abs() < 1.0, "{totals:?}");
        assert!(totals.busy_core_ns >= totals.work_core_ns - 1.0);
    }
}

#[test]
fn a_native_engine_runs_every_instruction() {
    for discipline in [Discipline::Ps, Discipline::Fcfs] {
        let engine = start(shape(1.0, discipline), false, 2, Clock::start()).expect("threads");
        let ends = run_together(&engine, &[5.0, 10.0, 15.0]);
        assert!(ends.iter().all(|done| done.ended_ns > done.started_ns));
        assert!((engine.totals().work_core_ns - 30e6).abs() < 1.0);
    }
}

#[test]
fn a_dropped_ticket_takes_its_request_out() {
    for pinned in [true, false] {
        let shape = shape(if pinned { 0.1 } else { 1.0 }, Discipline::Ps);
        let engine = start(shape, pinned, 2, Clock::start()).expect("threads");
        let ticket = engine.submit(100_000.0, "gone");
        assert_eq!(engine.work_left()[0].0, "gone");
        drop(ticket);
        assert_eq!(engine.work_left(), []);
        assert_eq!(run_together(&engine, &[1.0]).len(), 1);
    }
}
