//! The workers of a scenario: names, weights, memory where nothing is said of them.

use super::refuse;
use crate::engine::WorkerSetup;
use schema::problem::{Problem, Problems};
use schema::scenario::Scenario;
use schema::weights::smallest_integers;

/// Workers if nothing says otherwise.
const CORES: [f64; 3] = [4.0, 3.0, 2.0];
const MEMORY_GB_PER_CORE: f64 = 3.0;

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
    use super::name;

    #[test]
    fn few_workers_have_letters_and_many_have_numbers() {
        assert_eq!((name(25, 26).as_str(), name(0, 27).as_str()), ("z", "w0"));
    }
}
