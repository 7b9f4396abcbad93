//! The work left as rebuilt from a run's rows is what the engine's workers had left at every pick, as it
//! told the oracle that knows the world; and that oracle regrets nothing.

use super::super::judge::judge;
use super::super::rebuild::{Discipline, Worker, World};
use super::super::rows::Runs;
use super::super::stays;
use super::sorted;
use crate::build::Plan;
use crate::engine;
use crate::files::{Files, Wanted};
use schema::event::Event;
use schema::scenario::Scenario;
use strategies::registry::Models;

/// Rows have whole nanoseconds, some ten of which meet in one figure; when service began, which only a
/// queue needs, is told in whole microseconds.
fn tolerance_ms(discipline: Discipline) -> f64 {
    match discipline {
        Discipline::Sharing => 2e-5,
        Discipline::InOrder => 1e-3,
    }
}

fn check(fields: &[(&str, &str)], discipline: Discipline) {
    let mut scenario = Scenario::default();
    let tolerance_ms = tolerance_ms(discipline);
    let always = [("load", "0.8"), ("requests", "3000"), ("seed", "4")];
    for (field, text) in always.iter().chain(fields) {
        scenario.set(field, field, text).expect("a good field");
    }
    let plan = Plan::new(&scenario, None, Models::default()).expect("a plan");
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, log) = (folder.path().join("r.csv"), folder.path().join("e.jsonl"));
    let label = plan.spec.to_string();
    let wanted = Wanted {
        rows: Some(&rows),
        log: Some(&log),
        candidates: None,
    };
    let mut files = Files::create(&plan.setup, label, wanted).expect("files");
    engine::run(&plan.setup, &plan.spec, &mut files).expect("a run");
    files.finish().expect("written");

    let members = plan.setup.workers.iter();
    let workers: Vec<Worker> = members
        .map(|w| Worker {
            name: w.name.clone(),
            cores: w.cores,
            speed: w.speed,
        })
        .collect();
    let named = workers.iter().map(|w| (w.name.as_str(), w.cores)).collect();
    let mut runs = Runs::open(&rows, named).expect("rows");
    let run = runs.next_run().expect("whole").expect("one run");
    let stays = stays::from_rows(&run, plan.setup.mips_per_core / 1e3).expect("stays");
    let mut world = World::new(&workers, discipline, &stays);
    let text = std::fs::read_to_string(&log).expect("a log");
    let mut told: Vec<Vec<f64>> = vec![Vec::new(); workers.len()];
    let mut picks = 0;
    for line in text.lines() {
        match serde_json::from_str(line).expect("an event") {
            Event::Stats {
                backend, report, ..
            } => {
                if let Some(left) = report.work_left {
                    told[backend as usize] = left.iter().map(|job| job.core_ms).collect();
                }
            }
            Event::Pick { .. } => {
                world.advance_to(picks);
                for (w, told) in told.iter().enumerate() {
                    // Who leaves at this very nanosecond may have left.
                    let some = |left: f64| left > tolerance_ms;
                    let rebuilt = sorted(world.left_ms(w).filter(|l| some(*l)).collect());
                    let told = sorted(told.iter().copied().filter(|l| some(*l)).collect());
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() < tolerance_ms;
                    assert!(
                        rebuilt.len() == told.len() && rebuilt.iter().zip(&told).all(near),
                        "pick {picks}: {rebuilt:?} and {told:?}"
                    );
                }
                world.place(picks);
                picks += 1;
            }
            _ => {}
        }
    }
    assert_eq!(picks, 3000);
    let verdict = judge(&workers, discipline, &stays).expect("picks");
    // Between equal costs the oracle prefers fewer requests per core, by a thousandth of a ms.
    assert!(verdict.regret_mc_ms.mean < 1e-3, "{verdict:?}");
    assert!(verdict.hit_mc > 0.999, "{verdict:?}");
}

#[test]
fn shared_cores_are_rebuilt_from_rows() {
    let world = ("strategy", "oracle-marginal:truth=world");
    check(&[world], Discipline::Sharing);
    check(&[world, ("cores", "0.8,0.6,0.4")], Discipline::Sharing);
    let speeds = ("speeds", "0.5,1.5,1,0.7");
    check(
        &[world, ("cores", "2,1.5,0.3,1"), speeds],
        Discipline::Sharing,
    );
}

#[test]
fn queues_are_rebuilt_from_rows() {
    let world = ("strategy", "oracle-marginal:truth=world,discipline=fcfs");
    check(&[world, ("discipline", "fcfs")], Discipline::InOrder);
    let cores = ("cores", "2.4,1.5,0.3");
    check(&[world, ("discipline", "fcfs"), cores], Discipline::InOrder);
}
