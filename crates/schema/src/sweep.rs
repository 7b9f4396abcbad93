//! The sweep: many scenarios as a grid, in one file.
//!
//! ```json
//! {"schema": "plumbline.sweep/1", "name": "loads", "seeds": 8,
//!  "base": {"requests": 22000, "warmup": 2000},
//!  "grids": [{"base": {"sizes": "exp"},
//!             "axes": [{"field": "load", "values": [0.3, 0.6]},
//!                      {"name": "pool", "cases": {"W": {"cores": [4, 3, 2]}, "S": {"cores": [0.8, 0.6, 0.4]}}},
//!                      {"field": "strategy", "values": ["p2c", "peak-ewma:decay=5s"]}]}]}
//! ```
//!
//! A grid is the product of its axes over `base` (the file's, then the grid's); a file is its grids one
//! after another. An axis is either a field of the scenario with its values, or a name with cases, each
//! of which says any fields. Later axes go over earlier ones. Every cell runs under `seeds` seeds from
//! its scenario's `seed` (1) on. Runs are numbered in the order of the file, the first axis slowest, the
//! seed fastest; nothing of a run is kept but its number, so a file of many runs takes no memory.

mod read;

use crate::problem::{Problem, Problems};
use crate::scenario::Scenario;

/// Value of the `schema` field.
pub const SCHEMA: &str = "plumbline.sweep/1";
/// Longest sweep file, bytes.
pub const MAX_BYTES: usize = 8 << 20;
/// Most runs of a sweep.
pub const MAX_RUNS: u64 = 200_000;
/// Most grids of a sweep.
pub const MAX_GRIDS: usize = 100;
/// Most axes of a grid.
pub const MAX_AXES: usize = 16;
/// Most values of an axis.
pub const MAX_VALUES: usize = 1000;
/// Most seeds of a cell.
pub const MAX_SEEDS: u32 = 10_000;
/// Longest name of an axis and label of a case, bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// A sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// What it is called.
    pub name: String,
    /// Runs of each cell, under seeds one after another.
    pub seeds: u32,
    /// Its grids.
    pub grids: Vec<Grid>,
}

/// A product of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What all its cells share.
    pub base: Scenario,
    /// Its axes, the slowest first.
    pub axes: Vec<Axis>,
}

/// One dimension of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The scenario's field, or a name of its own.
    pub name: String,
    /// Its values.
    pub values: Vec<Value>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// What it is called in results.
    pub label: String,
    /// What it says.
    pub over: Scenario,
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<'a> {
    /// Axis and label, in the grid's order.
    pub labels: Vec<(&'a str, &'a str)>,
    /// What is run, its seed included.
    pub scenario: Scenario,
}

impl Grid {
    fn cells(&self) -> u64 {
        let sizes = self.axes.iter().map(|axis| axis.values.len() as u64);
        sizes.fold(1, u64::saturating_mul)
    }
}

impl Sweep {
    /// How many runs there are.
    pub fn runs(&self) -> u64 {
        let cells = self.grids.iter().map(Grid::cells);
        let cells = cells.fold(0, u64::saturating_add);
        cells.saturating_mul(u64::from(self.seeds))
    }

    /// The names of all axes, in the order in which the file first says them.
    pub fn axes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for axis in self.grids.iter().flat_map(|grid| &grid.axes) {
            if !names.contains(&axis.name.as_str()) {
                names.push(&axis.name);
            }
        }
        names
    }

    /// Run number `index`.
    ///
    /// # Errors
    /// Its seed would be beyond the largest one.
    ///
    /// # Panics
    /// If there is no such run: a mistake of the caller.
    pub fn run(&self, index: u64) -> Result<Run<'_>, Problems> {
        let (mut cell, step) = (index / u64::from(self.seeds), index % u64::from(self.seeds));
        let grid = self.grids.iter().find(|grid| {
            let is_in = cell < grid.cells();
            if !is_in {
                cell -= grid.cells();
            }
            is_in
        });
        let grid = grid.expect("a run of the sweep");
        let mut chosen: Vec<(&Axis, &Value)> = Vec::with_capacity(grid.axes.len());
        for axis in grid.axes.iter().rev() {
            let n = axis.values.len() as u64;
            chosen.push((axis, &axis.values[(cell % n) as usize]));
            cell /= n;
        }
        chosen.reverse();
        let mut scenario = grid.base.clone();
        for (_, value) in &chosen {
            scenario = scenario.overridden_by(value.over.clone());
        }
        let first = scenario.seed.unwrap_or(1);
        let seed = first.checked_add(step).ok_or_else(|| {
            let most = u64::MAX - u64::from(self.seeds) + 1;
            Problem::new("seed", first.to_string(), "no room for the seeds after it")
                .allowed(format!("0 to {most}"))
        })?;
        scenario.seed = Some(seed);
        let labels = chosen.iter();
        Ok(Run {
            labels: labels
                .map(|(axis, value)| (axis.name.as_str(), value.label.as_str()))
                .collect(),
            scenario,
        })
    }
}

#[cfg(test)]
mod tests;
