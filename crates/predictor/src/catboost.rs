//! CatBoost models, read from their JSON export and evaluated to the last bit.
//!
//! An independent check of the library that trains: [`Model::from_json`] reads what
//! `save_model(format="json")` wrote, [`Model::evaluate`] gives the same `f64` as the library's
//! `predict`, and [`Model::table`] builds the table that the trainer builds with the library. It knows
//! symmetric trees over numbers and categories, with one output; everything else is refused.
//!
//! Cost: one evaluation computes every binary feature once, then walks the trees: microseconds for
//! tens of trees, a tenth of a millisecond for thousands. When not to use it: in a balancer, which
//! takes the table.
//!
//! Source: the export as version 1.2.10 writes it; the hash is CityHash64 1.0 (Pike and Alakuijala).

mod build;
mod ctr;
mod evaluate;
mod hash;
mod json;
mod load;

pub use hash::category_hash;

use ctr::Ctr;

/// Largest export, bytes; one of 2,250 trees with combinations takes about 50 MB.
pub const MAX_JSON_BYTES: usize = 512 * 1024 * 1024;
/// Most trees.
pub const MAX_TREES: usize = 100_000;
/// Deepest tree: the library's own bound.
pub const MAX_DEPTH: usize = 16;
/// Most binary features (borders of numbers, one-hot values, borders of counters).
pub const MAX_BINARY_FEATURES: usize = 10_000_000;

/// A whole model.
#[derive(Debug, Clone)]
pub struct Model {
    numbers: Vec<Number>,
    categories: Vec<Category>,
    ctrs: Vec<Ctr>,
    trees: Vec<Tree>,
    scale: f64,
    bias: f64,
}

/// One row to evaluate: values in the order of [`Model::number_names`] and, hashed by
/// [`category_hash`], of [`Model::category_names`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Numbers.
    pub numbers: Vec<f32>,
    /// Hashes of categories.
    pub categories: Vec<i32>,
}

/// An input that is a number; its binary features are "greater than this border".
#[derive(Debug, Clone)]
struct Number {
    name: String,
    borders: Vec<f32>,
    /// What NaN counts as.
    nan: Nan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nan {
    /// Not greater than any border.
    Below,
    /// Greater than every border.
    Above,
}

/// An input that is text; its binary features are "equal to this value".
#[derive(Debug, Clone)]
struct Category {
    name: String,
    values: Vec<i32>,
}

/// A symmetric tree: every level asks one binary feature; the answers are the bits of the leaf's
/// place, the first the lowest.
#[derive(Debug, Clone)]
struct Tree {
    splits: Vec<usize>,
    leaves: Vec<f64>,
}

impl Model {
    /// Names of the inputs that are numbers.
    pub fn number_names(&self) -> impl Iterator<Item = &str> {
        self.numbers.iter().map(|number| number.name.as_str())
    }

    /// Names of the inputs that are text.
    pub fn category_names(&self) -> impl Iterator<Item = &str> {
        self.categories
            .iter()
            .map(|category| category.name.as_str())
    }

    /// Number of trees.
    pub fn trees(&self) -> usize {
        self.trees.len()
    }
}
