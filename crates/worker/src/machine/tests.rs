use super::{Chunk, Departure, Machine, Shape};
use crate::model::{self, Arrival};
use proptest::prelude::*;
use schema::stats::Discipline;

const MS: f64 = 1e6;

fn shape(cores: f64, discipline: Discipline, burn_fraction: f64) -> Shape {
    // 1,000 MIPS: one MI is one millisecond of a core.
    Shape {
        cores,
        discipline,
        mips_per_core: 1000.0,
        burn_fraction,
    }
}

/// Departure time per request of a trace, driven through the machine event by event.
fn run(machine: &mut Machine, trace: &[Arrival]) -> Vec<f64> {
    let mut left = Vec::new();
    let mut give_ups: Vec<(f64, usize)> = trace
        .iter()
        .enumerate()
        .map(|(i, a)| (a.gives_up_ns, i))
        .filter(|(at, _)| at.is_finite())
        .collect();
    give_ups.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut give_ups = give_ups.into_iter().peekable();
    for arrival in trace {
        while let Some((at, i)) = give_ups.next_if(|(at, _)| *at <= arrival.at_ns) {
            machine.cancel(at, i as u64, &mut left);
        }
        machine.arrive(arrival.at_ns, arrival.mi, &mut left);
    }
    for (at, i) in give_ups {
        machine.cancel(at, i as u64, &mut left);
    }
    machine.advance(f64::MAX, &mut left);
    assert!(left.windows(2).all(|w| w[0].ended_ns <= w[1].ended_ns));
    let mut by_job = vec![f64::INFINITY; trace.len()];
    for departure in left {
        by_job[departure.job as usize] = departure.ended_ns;
    }
    by_job
}

fn traces() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0.0), 0.0..30.0_f64];
    let size = prop_oneof![Just(10.0), 1.0..80.0_f64];
    let patience = prop_oneof![4 => Just(f64::INFINITY), 1 => 0.1..100.0_f64];
    prop::collection::vec((gap, size, patience), 1..80).prop_map(|requests| {
        let mut at_ns = 0.0;
        let mut trace = Vec::new();
        for (gap_ms, mi, patience_ms) in requests {
            at_ns += gap_ms * MS;
            trace.push(Arrival {
                at_ns,
                mi,
                gives_up_ns: at_ns + patience_ms * MS,
            });
        }
        trace
    })
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    prop_oneof![Just(Discipline::Ps), Just(Discipline::Fcfs)]
}

fn assert_close(got: &[f64], expected: &[f64]) {
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        // A client that gives up within the rounding error of the departure may fall either way.
        let equal = got == expected || (got - expected).abs() < 0.01;
        assert!(equal, "request {i}: {got} instead of {expected}");
    }
}

proptest! {
    #[test]
    fn departures_equal_those_of_the_slow_machine(
        trace in traces(),
        cores in prop_oneof![Just(1.0), Just(2.0), Just(4.0), 0.1..5.0_f64],
        discipline in disciplines(),
    ) {
        let shape = shape(cores, discipline, 0.0);
        let got = run(&mut Machine::new(shape), &trace);
        assert_close(&got, &model::departures(&shape, &trace));
    }

    #[test]
    fn setting_the_clock_back_changes_nothing(trace in traces(), cores in 0.5..4.0_f64) {
        let shape = shape(cores, Discipline::Ps, 0.0);
        let mut machine = Machine::new(shape);
        machine.rebase_above_ns = 5.0 * MS;
        let got = run(&mut machine, &trace);
        assert_close(&got, &model::departures(&shape, &trace));
    }

    #[test]
    fn the_service_given_is_the_work_asked_for(trace in traces(), discipline in disciplines()) {
        let trace: Vec<_> = trace
            .into_iter()
            .map(|a| Arrival { gives_up_ns: f64::INFINITY, ..a })
            .collect();
        let mut machine = Machine::new(shape(2.0, discipline, 0.0));
        run(&mut machine, &trace);
        let work_ns: f64 = trace.iter().map(|a| a.mi * MS).sum();
        prop_assert!((machine.attained_core_ns() - work_ns).abs() < 1e-9 * work_ns);
        prop_assert!((machine.busy_core_ns() - work_ns).abs() < 1e-9 * work_ns);
        prop_assert_eq!(machine.jobs.len(), 0);
        prop_assert_eq!(machine.v, 0.0);
    }

    #[test]
    fn every_request_burns_its_share_once_and_one_chunk_at_a_time(
        trace in traces(),
        discipline in disciplines(),
        fraction in 0.05..1.0_f64,
    ) {
        let shape = Shape { mips_per_core: 10.0, ..shape(2.0, discipline, fraction) };
        let mut machine = Machine::new(shape);
        let mut left = Vec::new();
        let mut burned = vec![0.0; trace.len()];
        let mut running: Option<Chunk> = None;
        let mut now_ns = 0.0;
        let mut arrivals = trace.iter().peekable();
        // One lane whose chunks take 60 ms each, whatever their size: often late, always complete.
        while burned.iter().zip(&trace).any(|(b, a)| *b < a.mi * fraction * 0.999) {
            while let Some(a) = arrivals.next_if(|a| a.at_ns <= now_ns) {
                machine.arrive(a.at_ns, a.mi, &mut left);
            }
            if let Some(chunk) = running.take() {
                machine.finish_chunk(now_ns, chunk.job, &mut left);
            }
            machine.advance(now_ns, &mut left);
            running = machine.take_chunk();
            if let Some(chunk) = running {
                prop_assert!(chunk.mi <= 50.0);
                prop_assert!(left.iter().all(|d: &Departure| d.job != chunk.job));
                burned[chunk.job as usize] += chunk.mi;
            }
            now_ns += 60.0 * MS;
        }
        if let Some(chunk) = running {
            machine.finish_chunk(now_ns, chunk.job, &mut left);
        }
        machine.advance(f64::MAX, &mut left);
        prop_assert_eq!(left.len(), trace.len());
        for (b, a) in burned.iter().zip(&trace) {
            prop_assert!((b - a.mi * fraction).abs() < 1e-6 * a.mi);
        }
    }
}

#[test]
fn equal_departures_leave_in_the_order_of_arrival() {
    let mut machine = Machine::new(shape(1.0, Discipline::Ps, 0.0));
    let mut left = Vec::new();
    for _ in 0..5 {
        machine.arrive(0.0, 10.0, &mut left);
    }
    machine.advance(60.0 * MS, &mut left);
    let order: Vec<_> = left.iter().map(|d| (d.job, d.ended_ns / MS)).collect();
    assert_eq!(order, [0, 1, 2, 3, 4].map(|job| (job, 50.0)));
}

#[test]
fn a_late_wake_up_moves_no_departure() {
    let mut machine = Machine::new(shape(1.0, Discipline::Fcfs, 0.0));
    let mut left = Vec::new();
    machine.arrive(0.0, 10.0, &mut left);
    machine.arrive(5.0 * MS, 10.0, &mut left);
    machine.advance(1000.0 * MS, &mut left);
    let stamps: Vec<_> = left
        .iter()
        .map(|d| (d.started_ns / MS, d.ended_ns / MS))
        .collect();
    assert_eq!(stamps, [(0.0, 10.0), (10.0, 20.0)]);
}

#[test]
fn a_request_waits_for_its_own_burn_and_counts_as_late() {
    let mut machine = Machine::new(shape(1.0, Discipline::Ps, 1.0));
    let mut left = Vec::new();
    let job = machine.arrive(0.0, 40.0, &mut left);
    assert_eq!(machine.take_chunk(), Some(Chunk { job, mi: 40.0 }));
    assert_eq!(machine.take_chunk(), None);
    machine.advance(50.0 * MS, &mut left);
    assert!(left.is_empty());
    machine.finish_chunk(55.0 * MS, job, &mut left);
    assert_eq!((left[0].ended_ns, left[0].late_burn), (55.0 * MS, true));
    // Busy for 55 ms, 40 ms of service given: this is what `speed` shows.
    assert_eq!(machine.busy_core_ns(), 55.0 * MS);
    assert_eq!(machine.attained_core_ns(), 40.0 * MS);
}

#[test]
fn the_burn_stays_at_most_a_hundred_mi_ahead() {
    let mut machine = Machine::new(shape(1.0, Discipline::Ps, 1.0));
    let mut left = Vec::new();
    let job = machine.arrive(0.0, 500.0, &mut left);
    for _ in 0..2 {
        assert!(machine.take_chunk().is_some());
        machine.finish_chunk(1.0 * MS, job, &mut left);
    }
    assert_eq!(machine.take_chunk(), None);
    assert_eq!(machine.next_event_ns(true), Some(50.0 * MS));
    machine.advance(50.0 * MS, &mut left);
    assert!(machine.has_chunk());
}

#[test]
fn the_chunk_due_first_is_burned_first() {
    let mut machine = Machine::new(shape(2.0, Discipline::Ps, 1.0));
    let mut left = Vec::new();
    machine.arrive(0.0, 45.0, &mut left);
    let short = machine.arrive(1.0 * MS, 5.0, &mut left);
    assert_eq!(machine.take_chunk().map(|c| c.job), Some(short));
}

#[test]
fn work_left_falls_with_the_service_attained() {
    let mut machine = Machine::new(shape(1.0, Discipline::Fcfs, 0.0));
    let mut left = Vec::new();
    machine.arrive(0.0, 10.0, &mut left);
    machine.arrive(0.0, 20.0, &mut left);
    machine.advance(4.0 * MS, &mut left);
    let work: Vec<_> = machine.work_left().collect();
    assert_eq!(work, [(0, 6.0 * MS), (1, 20.0 * MS)]);
}
