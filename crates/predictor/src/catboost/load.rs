//! From the export to a model that can be evaluated without further checks.

use super::ctr::{Counts, Ctr, Element};
use super::json::{self, Entry, Export};
use super::{Category, MAX_BINARY_FEATURES, MAX_DEPTH, MAX_JSON_BYTES, MAX_TREES};
use super::{Model, Nan, Number, Tree};
use crate::refusal::Refusal;

/// The hash that marks an empty bucket; its counts mean nothing.
const EMPTY_BUCKET: u64 = u64::MAX;

impl Model {
    /// Reads a JSON export.
    ///
    /// # Errors
    /// A text that is no export, a kind of model or statistic that this reader does not know, and
    /// numbers out of range.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        if text.len() > MAX_JSON_BYTES {
            return Err(Refusal::new("", "the export is too large")
                .value(format!("{} bytes", text.len()))
                .allowed(format!("at most {MAX_JSON_BYTES}")));
        }
        let export: Export = serde_json::from_slice(text).map_err(|e| {
            Refusal::new("", format!("no JSON export of a model: {e}"))
                .next("write it with save_model(format=\"json\")")
        })?;
        let features = &export.features_info;
        if !features.text_features.is_empty() || !features.embedding_features.is_empty() {
            return Err(
                Refusal::new("features_info", "has text or embedding features")
                    .allowed("numbers and categories"),
            );
        }
        let [bias] = export.scale_and_bias.1[..] else {
            return Err(Refusal::new("scale_and_bias", "must have one output")
                .value(export.scale_and_bias.1.len()));
        };
        let mut model = Self {
            numbers: numbers(&features.float_features)?,
            categories: categories(&features.categorical_features)?,
            ctrs: Vec::new(),
            trees: Vec::new(),
            scale: finite("scale_and_bias[0]", export.scale_and_bias.0)?,
            bias: finite("scale_and_bias[1]", bias)?,
        };
        for (i, ctr) in features.ctrs.iter().enumerate() {
            let ctr = model.ctr(&format!("features_info.ctrs[{i}]"), ctr, &export)?;
            model.ctrs.push(ctr);
        }
        let count = model.binary_features();
        if count > MAX_BINARY_FEATURES {
            return Err(Refusal::new("features_info", "has too many borders")
                .value(count)
                .allowed(format!("at most {MAX_BINARY_FEATURES}")));
        }
        model.trees = trees(export.oblivious_trees, count)?;
        Ok(model)
    }

    fn ctr(&self, place: &str, ctr: &json::Ctr, export: &Export) -> Result<Ctr, Refusal> {
        if ctr.target_border_idx != 0 {
            return Err(
                Refusal::new(format!("{place}.target_border_idx"), "is not known")
                    .value(ctr.target_border_idx)
                    .allowed("0"),
            );
        }
        let data = export.ctr_data.get(&ctr.identifier).ok_or_else(|| {
            Refusal::new(format!("{place}.identifier"), "has no entry in ctr_data")
                .value(&ctr.identifier)
        })?;
        let elements = ctr.elements.iter().enumerate();
        let elements: Result<_, _> = elements
            .map(|(i, e)| self.element(&format!("{place}.elements[{i}]"), e))
            .collect();
        Ok(Ctr {
            elements: elements?,
            counts: counts(place, &ctr.ctr_type, data)?,
            prior_numerator: narrow(&format!("{place}.prior_numerator"), ctr.prior_numerator)?,
            prior_denominator: narrow(
                &format!("{place}.prior_denomerator"),
                ctr.prior_denominator,
            )?,
            shift: narrow(&format!("{place}.shift"), ctr.shift)?,
            scale: narrow(&format!("{place}.scale"), ctr.scale)?,
            borders: borders(place, &ctr.borders)?,
        })
    }

    fn element(&self, place: &str, element: &json::Element) -> Result<Element, Refusal> {
        let within = |index: usize, count: usize| {
            if index < count {
                return Ok(index);
            }
            Err(Refusal::new(place, "names an input that is not there")
                .value(index)
                .allowed(format!("below {count}")))
        };
        Ok(match *element {
            json::Element::Category { cat_feature_index } => {
                Element::Category(within(cat_feature_index, self.categories.len())?)
            }
            json::Element::Equal {
                cat_feature_index,
                value,
            } => Element::Equal {
                category: within(cat_feature_index, self.categories.len())?,
                value,
            },
            json::Element::Above {
                float_feature_index,
                border,
            } => Element::Above {
                number: within(float_feature_index, self.numbers.len())?,
                border: narrow(place, border)?,
            },
        })
    }
}

fn numbers(floats: &[json::Float]) -> Result<Vec<Number>, Refusal> {
    let number = |(i, float): (usize, &json::Float)| {
        let place = format!("features_info.float_features[{i}]");
        in_order(&place, i, float.feature_index)?;
        let nan = match float.nan_value_treatment.as_str() {
            "" | "AsIs" | "AsFalse" => Nan::Below,
            "AsTrue" => Nan::Above,
            other => {
                return Err(
                    Refusal::new(format!("{place}.nan_value_treatment"), "is not known")
                        .value(other)
                        .allowed("AsIs, AsFalse, AsTrue"),
                );
            }
        };
        let borders = borders(&place, float.borders.as_deref().unwrap_or_default())?;
        Ok(Number {
            name: float.feature_id.clone(),
            borders,
            nan,
        })
    };
    floats.iter().enumerate().map(number).collect()
}

fn categories(categories: &[json::Categorical]) -> Result<Vec<Category>, Refusal> {
    let category = |(i, category): (usize, &json::Categorical)| {
        in_order(
            &format!("features_info.categorical_features[{i}]"),
            i,
            category.feature_index,
        )?;
        let values = category.values.clone().unwrap_or_default();
        Ok(Category {
            name: category.feature_id.clone(),
            values,
        })
    };
    categories.iter().enumerate().map(category).collect()
}

/// Combinations name inputs by `feature_index`, rows by place: they must be the same.
fn in_order(place: &str, expected: usize, got: usize) -> Result<(), Refusal> {
    if got == expected {
        return Ok(());
    }
    Err(
        Refusal::new(format!("{place}.feature_index"), "is out of order")
            .value(got)
            .allowed(expected.to_string()),
    )
}

fn counts(place: &str, kind: &str, data: &json::CtrData) -> Result<Counts, Refusal> {
    match (kind, data.hash_stride) {
        ("Borders", 3) => {
            let mut counts = buckets(place, data, |counts: [u64; 2]| counts)?;
            counts.sort_unstable();
            Ok(Counts::Borders(counts))
        }
        ("Counter", 2) => {
            let mut counts = buckets(place, data, |[count]: [u64; 1]| count)?;
            counts.sort_unstable();
            Ok(Counts::Counter(
                counts,
                bounded(place, data.counter_denominator)?,
            ))
        }
        (kind, stride) => Err(Refusal::new(format!("{place}.ctr_type"), "is not known")
            .value(format!("{kind} with hash_stride {stride}"))
            .allowed("Borders with 3, Counter with 2")
            .next("train with the default simple_ctr and combinations_ctr")),
    }
}

/// The hash map's buckets, the empty ones left out.
fn buckets<const N: usize, T>(
    place: &str,
    data: &json::CtrData,
    make: impl Fn([u64; N]) -> T,
) -> Result<Vec<(u64, T)>, Refusal> {
    let damaged = || Refusal::new(place, "the hash map is not hashes, each with its counts");
    let chunks = data.hash_map.chunks_exact(N + 1);
    if !chunks.remainder().is_empty() {
        return Err(damaged());
    }
    let mut out = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let Entry::Hash(hash) = chunk[0] else {
            return Err(damaged());
        };
        let mut counts = [0; N];
        for (count, entry) in counts.iter_mut().zip(&chunk[1..]) {
            let Entry::Count(n) = *entry else {
                return Err(damaged());
            };
            *count = bounded(place, n)?;
        }
        if hash != EMPTY_BUCKET {
            out.push((hash, make(counts)));
        }
    }
    Ok(out)
}

/// Counts are 32-bit in the library, so that no sum of two can overflow here.
fn bounded(place: &str, count: u64) -> Result<u64, Refusal> {
    if count <= i32::MAX as u64 {
        return Ok(count);
    }
    Err(Refusal::new(place, "a count is out of range")
        .value(count)
        .allowed(format!("at most {}", i32::MAX)))
}

fn trees(trees: Option<Vec<json::Tree>>, features: usize) -> Result<Vec<Tree>, Refusal> {
    let trees = trees.ok_or_else(|| {
        Refusal::new("oblivious_trees", "is missing")
            .next("train with grow_policy=\"SymmetricTree\", the default")
    })?;
    if trees.len() > MAX_TREES {
        return Err(Refusal::new("oblivious_trees", "has too many trees")
            .value(trees.len())
            .allowed(format!("at most {MAX_TREES}")));
    }
    trees
        .into_iter()
        .enumerate()
        .map(|(i, t)| tree(i, t, features))
        .collect()
}

fn tree(place: usize, tree: json::Tree, features: usize) -> Result<Tree, Refusal> {
    let place = format!("oblivious_trees[{place}]");
    let splits: Vec<usize> = tree
        .splits
        .unwrap_or_default()
        .iter()
        .map(|split| split.split_index)
        .collect();
    if splits.len() > MAX_DEPTH {
        return Err(Refusal::new(place, "is too deep")
            .value(splits.len())
            .allowed(format!("at most {MAX_DEPTH}")));
    }
    if let Some(split) = splits.iter().find(|split| **split >= features) {
        return Err(Refusal::new(place, "splits at a border that is not there")
            .value(split)
            .allowed(format!("below {features}")));
    }
    if tree.leaf_values.len() != 1 << splits.len() {
        return Err(Refusal::new(place, "has a wrong number of leaf values")
            .value(tree.leaf_values.len())
            .allowed(format!("{} for one output", 1 << splits.len())));
    }
    for leaf in &tree.leaf_values {
        finite(&place, *leaf)?;
    }
    Ok(Tree {
        splits,
        leaves: tree.leaf_values,
    })
}

fn borders(place: &str, borders: &[f64]) -> Result<Vec<f32>, Refusal> {
    borders
        .iter()
        .map(|border| narrow(place, *border))
        .collect()
}

/// The library computes in `f32` here; the export prints such a number with the digits of an `f64`.
fn narrow(place: &str, x: f64) -> Result<f32, Refusal> {
    finite(place, x)?;
    finite(place, f64::from(x as f32)).map(|_| x as f32)
}

fn finite(place: &str, x: f64) -> Result<f64, Refusal> {
    if x.is_finite() {
        return Ok(x);
    }
    Err(Refusal::new(place, "a number is out of range")
        .value(x)
        .allowed("finite"))
}
