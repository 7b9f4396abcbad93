//! A law broken on purpose ends the run, with the law's name and the seed.

use super::{setup, spec};
use crate::engine::{Engine, RunError, Watch, run};
use crate::station::Station;
use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Spoil {
    Arrivals,
    Time,
    Work,
    Attained,
}

thread_local! {
    static SPOIL: Cell<Option<Spoil>> = const { Cell::new(None) };
}

/// Falsifies a book once, if a test asked for it.
pub(in crate::engine) fn spoil<S: Station, W: Watch>(engine: &mut Engine<'_, S, W>) {
    let Some(what) = SPOIL.get() else { return };
    if engine.now < 10.0 {
        return;
    }
    SPOIL.set(None);
    let flow = &mut engine.workers[1].flow;
    match what {
        Spoil::Arrivals => flow.arrived += 1,
        Spoil::Time => flow.time += 1e-3,
        Spoil::Work => flow.routed += 1e-3,
        Spoil::Attained => {
            flow.routed += 1e-3;
            flow.done += 1e-3;
        }
    }
}

#[test]
fn a_falsified_book_is_noticed() {
    let cases = [
        (Spoil::Arrivals, "flow: "),
        (Spoil::Time, "Little's law: "),
        (Spoil::Work, "work: "),
        (Spoil::Attained, "utilization: "),
    ];
    for (what, law) in cases {
        SPOIL.set(Some(what));
        let error = run(&setup(0.8, 10_000), &spec("p2c"), &mut ()).expect_err("broken");
        let RunError::Broken(broken) = &error else {
            panic!("{error}");
        };
        assert!(broken.law.starts_with(law), "{broken}");
        assert!(
            broken.law.ends_with("(worker b)") && broken.seed == 7,
            "{broken}"
        );
    }
    run(&setup(0.8, 10_000), &spec("p2c"), &mut ()).expect("whole again");
}
