//! Fixed shares: round robin, weighted random, the best random splits.

use super::Case;
use super::judge::{Line, Measured};
use super::scene::{measure, pool, spec};
use analytic::{Worker, rotation, split};

/// Weights are whole numbers up to 65,535; a share is met to a 50,000th.
const SUM_OF_WEIGHTS: f64 = 65_535.0;

/// The best split of 4/3/2 as published with the acceptance table: load, shares, mean.
const BEST: [(f64, Option<[f64; 3]>, f64); 5] = [
    (0.5, Some([0.4925, 0.3295, 0.1780]), 1.14801),
    (0.6, None, 1.28173),
    (0.7, Some([0.4673, 0.3319, 0.2008]), 1.52720),
    (0.8, None, 2.04768),
    (0.9, Some([0.4506, 0.3330, 0.2164]), 3.66032),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (load, tolerance) in [(0.5, 0.005), (0.8, 0.008), (0.9, 0.02)] {
        let title = format!("round robin, 3 single cores, load {load}");
        cases.push(Case::new("A5", title.clone(), 40_000_000, move |tier| {
            let setup = pool(&[1.0; 3], load, tier.requests(40_000_000));
            let got = measure(&setup, &spec("round-robin")?)?;
            let expected = rotation::mean_response(3, load)?;
            let line = Line::number("A5", &title, expected, got, tier.tolerance(tolerance));
            Ok(vec![line])
        }));
    }
    let title = "weighted random 4:3:2, load .8";
    cases.push(Case::new("A6", title, 100_000_000, move |tier| {
        let setup = pool(&[4.0, 3.0, 2.0], 0.8, tier.requests(100_000_000));
        let got = measure(&setup, &spec("weighted-random")?)?;
        let workers = workers(&[4.0, 3.0, 2.0])?;
        let shares = split::proportional(&workers);
        let expected = split::mean_response(&workers, &shares, 0.8 * 9.0)?;
        let line = Line::number("A6", title, expected, got, tier.tolerance(0.005));
        Ok(vec![line])
    }));
    for load in [0.5, 0.9] {
        let title = format!("best split of single cores of speed 4, 3, 2, load {load}");
        cases.push(Case::new("A19", title.clone(), 20_000_000, move |tier| {
            let speeds = [4.0, 3.0, 2.0];
            let best = split::bell_stidham(&speeds, load * 9.0)?;
            // The speeds sum to 9, the cores to 3: three times the load of the cores is offered.
            let mut setup = pool(&[1.0; 3], load * 3.0, tier.requests(20_000_000));
            for ((worker, speed), share) in setup.workers.iter_mut().zip(speeds).zip(&best.shares) {
                worker.speed = speed;
                worker.weight = weight(*share);
            }
            let got = measure(&setup, &spec("weighted-random")?)?;
            let line = Line::number("A19", &title, best.mean_response, got, tier.tolerance(0.01));
            Ok(vec![line])
        }));
    }
    cases.push(Case::new("A20", "best split of 4/3/2, solver", 0, |_| {
        let workers = workers(&[4.0, 3.0, 2.0])?;
        let exact = |mean| Measured {
            mean,
            standard_error: 0.0,
        };
        let mut lines = Vec::new();
        for (load, shares, mean) in BEST {
            let best = split::best(&workers, load * 9.0)?;
            let title = format!("best split of 4/3/2, load {load}, mean");
            lines.push(Line::number(
                "A20",
                title,
                mean,
                exact(best.mean_response),
                1e-4,
            ));
            for (w, share) in shares.into_iter().flatten().enumerate() {
                let title = format!("best split of 4/3/2, load {load}, share {w}");
                let got = exact(best.shares[w]);
                lines.push(Line::number_within("A20", title, share, got, 1e-4));
            }
        }
        Ok(lines)
    }));
    let title = "best split of 4/3/2, load .7, simulated";
    cases.push(Case::new("A20", title, 40_000_000, move |tier| {
        let workers = workers(&[4.0, 3.0, 2.0])?;
        let best = split::best(&workers, 0.7 * 9.0)?;
        let mut setup = pool(&[4.0, 3.0, 2.0], 0.7, tier.requests(40_000_000));
        for (worker, share) in setup.workers.iter_mut().zip(&best.shares) {
            worker.weight = weight(*share);
        }
        let got = measure(&setup, &spec("weighted-random")?)?;
        let line = Line::number("A20", title, best.mean_response, got, tier.tolerance(0.005));
        Ok(vec![line])
    }));
    cases
}

fn weight(share: f64) -> u32 {
    (share * SUM_OF_WEIGHTS).round() as u32
}

fn workers(cores: &[f64]) -> anyhow::Result<Vec<Worker>> {
    let workers = cores.iter().map(|c| Ok(Worker::try_new(*c, 1.0)?));
    workers.collect()
}
