//! Dynamic strategies whose mean is known exactly: 4/3/2 cores, two single cores.

use super::judge::{Line, Measured};
use super::references::optimal;
use super::scene::{by_seed, measure, over_seeds, pool, reference, spec};
use super::{Case, Tier};
use crate::output::Paired;
use analytic::Worker;
use analytic::chain::{Chain, Rule};
use schema::laws::sizes::SizeLaw;
use strategies::Spec;

/// Independent runs that share a row's requests, paired between strategies.
const SEEDS: u64 = 8;
const REQUESTS: u64 = 10_000_000;

/// What value iteration gives where the default tier does not repeat it: (n+1)/c, n/c, n.
const STORED: [(f64, [f64; 3]); 2] = [
    (0.8, [1.26879, 1.27381, 1.39625]),
    (0.9, [1.80502, 1.81007, 1.96167]),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (load, tolerance) in [(0.5, 0.005), (0.7, 0.005), (0.8, 0.005), (0.9, 0.02)] {
        let title = format!("4/3/2, load {load}");
        cases.push(Case::new("A7", title.clone(), 4 * REQUESTS, move |tier| {
            heterogeneous(&title, load, tier, tolerance)
        }));
    }
    let singles = |load: f64| -> anyhow::Result<f64> {
        let one = Worker::try_new(1.0, 1.0)?;
        let chain = Chain::try_new(&[one, one], 2.0 * load)?;
        Ok(chain.solve(&Rule::Shortest)?.mean_response)
    };
    for (name, law, load, tolerance) in [
        ("exp", SizeLaw::Exponential, 0.5, 0.01),
        ("exp", SizeLaw::Exponential, 0.8, 0.01),
        ("exp", SizeLaw::Exponential, 0.9, 0.01),
        ("det", SizeLaw::Constant, 0.8, 0.02),
        ("H2(10)", SizeLaw::hyperexponential(10.0), 0.8, 0.02),
    ] {
        let title = format!("JSQ, 2 single cores, {name}, load {load}");
        cases.push(Case::new("A13", title.clone(), 40_000_000, move |tier| {
            let mut setup = pool(&[1.0; 2], load, tier.requests(40_000_000));
            setup.sizes = law;
            let got = measure(&setup, &spec("least-request:ties=random")?)?;
            let tolerance = tier.tolerance(tolerance);
            Ok(vec![Line::number(
                "A13",
                &title,
                singles(load)?,
                got,
                tolerance,
            )])
        }));
    }
    cases
}

/// Four strategies under the same requests, against the exact means and against each other.
fn heterogeneous(title: &str, load: f64, tier: Tier, tolerance: f64) -> anyhow::Result<Vec<Line>> {
    let setup = pool(&[4.0, 3.0, 2.0], load, tier.requests(REQUESTS));
    let strategies: [(&str, Spec); 4] = [
        ("optimal", reference(optimal::entry_at(load)?)),
        ("(n+1)/c", spec("weighted-least-request")?),
        ("n/c", spec("weighted-least-request:offset=0")?),
        ("n", spec("least-request:ties=random")?),
    ];
    let tolerance = tier.tolerance(tolerance);
    let mut lines = Vec::new();
    let mut means = Vec::new();
    for ((name, spec), expected) in strategies.iter().zip(exact_means(load, tier)?) {
        let by_seed = by_seed(&setup, spec, SEEDS)?;
        let (case, got) = (format!("{title}, {name}"), over_seeds(&by_seed));
        lines.push(Line::number("A7", case, expected, got, tolerance));
        means.push(by_seed);
    }
    let [optimal, sed, per_core, shortest] = [0, 1, 2, 3].map(|i| &means[i]);
    for (case, better, worse) in [
        ("n/c minus (n+1)/c", sed, per_core),
        ("n minus n/c", per_core, shortest),
    ] {
        let (case, loss) = (format!("{title}, {case}"), difference(better, worse));
        lines.push(Line::holds(
            "A7 order",
            case,
            "above 0",
            shown(loss),
            loss.mean > 0.0,
        ));
    }
    let loss = difference(optimal, sed);
    let holds = loss.mean >= -3.0 * loss.standard_error;
    let case = format!("{title}, (n+1)/c minus optimal");
    lines.push(Line::holds(
        "A7 order",
        case,
        "at least -3 s.e.",
        shown(loss),
        holds,
    ));
    Ok(lines)
}

/// The exact means of the four: optimum, (n+1)/c, n/c, n.
fn exact_means(load: f64, tier: Tier) -> anyhow::Result<[f64; 4]> {
    let optimum = optimal::solution(load)?.mean_response;
    let stored = STORED.iter().find(|(l, _)| *l == load);
    if let (Tier::Default, Some((_, [sed, per_core, shortest]))) = (tier, stored) {
        return Ok([optimum, *sed, *per_core, *shortest]);
    }
    let chain = optimal::chain(load)?;
    let mean = |rule| Ok::<_, anyhow::Error>(chain.solve(&rule)?.mean_response);
    Ok([
        optimum,
        mean(Rule::ExpectedDelay)?,
        mean(Rule::PerCapacity)?,
        mean(Rule::Shortest)?,
    ])
}

/// The second minus the first, paired by seed.
pub(super) fn difference(first: &[f64], second: &[f64]) -> Measured {
    let mut paired = Paired::default();
    for (a, b) in first.iter().zip(second) {
        paired.add(*a, *b);
    }
    let interval = paired.difference();
    Measured {
        mean: interval.map_or(f64::NAN, |i| i.mean),
        standard_error: interval.map_or(f64::NAN, |i| i.standard_error),
    }
}

fn shown(difference: Measured) -> String {
    format!("{:.5} +- {:.5}", difference.mean, difference.standard_error)
}
