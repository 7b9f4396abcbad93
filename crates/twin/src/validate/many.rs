//! Many equal single-core workers with live counts: the best of d, join the idle queue.

use super::Case;
use super::judge::Line;
use super::references::{listed_jiq, memory_jiq};
use super::scene::{measure, pool, reference, spec};
use analytic::choices;
use analytic::idle::{self, IdleReport};

const LOAD: f64 = 0.9;
/// The best of two **distinct** of 100 workers at .9; a reference run, there is no closed form.
const DISTINCT_TWO_OF_100: f64 = 2.6454;
/// Memory without a limit.
const UNLIMITED: u32 = u32::MAX - 1;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (load, tolerance) in [(0.7, 0.005), (0.9, 0.008), (0.95, 0.015)] {
        let title = format!("best of 2 of 10 with replacement, load {load}");
        cases.push(Case::new("A8", title.clone(), 40_000_000, move |tier| {
            let setup = pool(&[1.0; 10], load, tier.requests(40_000_000));
            let got = measure(&setup, &spec("d-choices:d=2,replacement=on")?)?;
            let expected = choices::finite_pool_of_two(10, load)?;
            let line = Line::number("A8", &title, expected, got, tier.tolerance(tolerance));
            Ok(vec![line])
        }));
    }
    for (name, strategy) in [
        ("with replacement", "d-choices:d=2,replacement=on"),
        ("distinct", "d-choices:d=2"),
    ] {
        let title = format!("best of 2 of 100, {name}, load .9");
        cases.push(Case::new("A9", title.clone(), 40_000_000, move |tier| {
            let setup = pool(&[1.0; 100], LOAD, tier.requests(40_000_000));
            let got = measure(&setup, &spec(strategy)?)?;
            let expected = match name {
                "distinct" => DISTINCT_TWO_OF_100,
                _ => choices::finite_pool_of_two(100, LOAD)?,
            };
            let line = Line::number("A9", &title, expected, got, tier.tolerance(0.007));
            Ok(vec![line])
        }));
    }
    let title = "JIQ, 1,000 workers, load .9, remembers all";
    cases.push(Case::new("A11", title, 20_000_000, move |tier| {
        let setup = pool(&[1.0; 1000], LOAD, tier.requests(20_000_000));
        let got = measure(&setup, &spec("jiq:idle=empty,fallback=random")?)?;
        let expected = idle::with_memory(UNLIMITED, LOAD)?;
        let line = Line::number("A11", title, expected, got, tier.tolerance(0.01));
        Ok(vec![line])
    }));
    for (memory, entry) in &memory_jiq::ENTRIES {
        let title = format!("JIQ, 1,000 workers, load .9, remembers {memory}");
        cases.push(Case::new("A11", title.clone(), 20_000_000, move |tier| {
            let setup = pool(&[1.0; 1000], LOAD, tier.requests(20_000_000));
            let got = measure(&setup, &reference(entry))?;
            let expected = idle::with_memory(*memory, LOAD)?;
            let line = Line::number("A11", &title, expected, got, tier.tolerance(0.01));
            Ok(vec![line])
        }));
    }
    for (name, report, entry) in [
        ("random report", IdleReport::Random, &listed_jiq::RANDOM),
        (
            "report to the shorter of 2",
            IdleReport::ShorterOfTwo,
            &listed_jiq::SHORTER_OF_TWO,
        ),
    ] {
        let title = format!("JIQ, 50 balancers, 500 workers, load .9, {name}");
        cases.push(Case::new("A12", title.clone(), 20_000_000, move |tier| {
            let setup = pool(&[1.0; 500], LOAD, tier.requests(20_000_000));
            let got = measure(&setup, &reference(entry))?;
            let each = 500.0 / f64::from(listed_jiq::BALANCERS);
            let expected = idle::with_lists(report, each, LOAD)?;
            let line = Line::number("A12", &title, expected, got, tier.tolerance(0.04));
            Ok(vec![line])
        }));
    }
    cases
}
