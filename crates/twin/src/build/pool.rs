//! The workers of a scenario: names, weights, memory where nothing is said of them.

use super::refuse;
use crate::engine::WorkerSetup;
use schema::problem::{Problem, Problems};
use schema::scenario::{Scenario, WEIGHT};

/// Workers if nothing says otherwise.
const CORES: [f64; 3] = [4.0, 3.0, 2.0];
const MEMORY_GB_PER_CORE: f64 = 3.0;
const MAX_WEIGHT: f64 = *WEIGHT.end();

/// In position order.
pub(crate) fn workers(scenario: &Scenario) -> Result<Vec<WorkerSetup>, Problems> {
    let cores = scenario.cores.clone().unwrap_or(CORES.to_vec());
    let n = cores.len();
    let speeds = each(&scenario.speeds, n, "speeds")?.unwrap_or(vec![1.0; n]);
    let memory = each(&scenario.memory_gb, n, "memory_gb")?;
    let weights = match each(&scenario.weights, n, "weights")? {
        // Whole numbers within bounds, as the scenario's reader takes them.
        Some(weights) => weights.iter().map(|w| *w as u32).collect(),
        None => {
            let capacities: Vec<f64> = cores.iter().zip(&speeds).map(|(c, s)| c * s).collect();
            smallest_integers(&capacities)
        }
    };
    let worker = |w: usize| WorkerSetup {
        name: name(w, n),
        cores: cores[w],
        speed: speeds[w],
        weight: weights[w],
        memory_gb: memory
            .as_ref()
            .map_or(MEMORY_GB_PER_CORE * cores[w], |m| m[w]),
    };
    Ok((0..n).map(worker).collect())
}

/// One value for all, or one for each.
fn each(list: &Option<Vec<f64>>, n: usize, field: &str) -> Result<Option<Vec<f64>>, Problems> {
    match list {
        None => Ok(None),
        Some(one) if one.len() == 1 => Ok(Some(vec![one[0]; n])),
        Some(many) if many.len() == n => Ok(Some(many.clone())),
        Some(many) => {
            let what = format!("{} values for {n} workers", many.len());
            refuse(Problem::new(field, "", what).allowed(format!("1 or {n}")))
        }
    }
}

/// The smallest integers in the same proportion; rounded to the largest weight if there are none.
fn smallest_integers(values: &[f64]) -> Vec<u32> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let near = |x: f64| (x - x.round()).abs() < 1e-9 * x.max(1.0);
    for k in 1..=1000_u32 {
        let scale = f64::from(k) / least;
        if most * scale > MAX_WEIGHT {
            break;
        }
        if values.iter().all(|v| near(v * scale)) {
            return values.iter().map(|v| (v * scale).round() as u32).collect();
        }
    }
    let scale = MAX_WEIGHT / most;
    values
        .iter()
        .map(|v| (v * scale).round().max(1.0) as u32)
        .collect()
}

/// a, b, c .. up to 26 workers; w0, w1 .. beyond.
pub(crate) fn name(w: usize, n: usize) -> String {
    if n <= 26 {
        char::from(b'a' + w as u8).to_string()
    } else {
        format!("w{w}")
    }
}

#[cfg(test)]
mod tests {
    use super::{name, smallest_integers};

    #[test]
    fn weights_are_the_smallest_integers_in_proportion() {
        assert_eq!(smallest_integers(&[4.0, 3.0, 2.0]), [4, 3, 2]);
        assert_eq!(smallest_integers(&[0.8, 0.6, 0.4]), [4, 3, 2]);
        assert_eq!(smallest_integers(&[4.0, 3.0 * 0.5, 2.0]), [8, 3, 4]);
        assert_eq!(smallest_integers(&[6.0; 5]), [1; 5]);
        assert_eq!(
            smallest_integers(&[1.0, std::f64::consts::SQRT_2]),
            [46_340, 65_535]
        );
        assert_eq!(smallest_integers(&[1e-3, 1e6]), [1, 65_535]);
    }

    #[test]
    fn few_workers_have_letters_and_many_have_numbers() {
        assert_eq!((name(25, 26).as_str(), name(0, 27).as_str()), ("z", "w0"));
    }
}
