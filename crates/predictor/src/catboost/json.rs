//! The export as it is written; names are the library's, its spelling included.

use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Export {
    pub(super) features_info: Features,
    #[serde(default)]
    pub(super) ctr_data: BTreeMap<String, CtrData>,
    pub(super) oblivious_trees: Option<Vec<Tree>>,
    pub(super) scale_and_bias: (f64, Vec<f64>),
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Features {
    #[serde(default)]
    pub(super) float_features: Vec<Float>,
    #[serde(default)]
    pub(super) categorical_features: Vec<Categorical>,
    #[serde(default)]
    pub(super) ctrs: Vec<Ctr>,
    #[serde(default)]
    pub(super) text_features: Vec<de::IgnoredAny>,
    #[serde(default)]
    pub(super) embedding_features: Vec<de::IgnoredAny>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Float {
    #[serde(default)]
    pub(super) feature_id: String,
    pub(super) feature_index: usize,
    pub(super) borders: Option<Vec<f64>>,
    #[serde(default)]
    pub(super) nan_value_treatment: String,
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Categorical {
    #[serde(default)]
    pub(super) feature_id: String,
    pub(super) feature_index: usize,
    pub(super) values: Option<Vec<i32>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Ctr {
    pub(super) identifier: String,
    pub(super) elements: Vec<Element>,
    pub(super) ctr_type: String,
    pub(super) prior_numerator: f64,
    #[serde(rename = "prior_denomerator")]
    pub(super) prior_denominator: f64,
    pub(super) shift: f64,
    pub(super) scale: f64,
    pub(super) borders: Vec<f64>,
    #[serde(default)]
    pub(super) target_border_idx: u32,
}

#[derive(Debug, serde::Deserialize)]
#[serde(tag = "combination_element")]
pub(super) enum Element {
    #[serde(rename = "cat_feature_value")]
    Category { cat_feature_index: usize },
    #[serde(rename = "float_feature")]
    Above {
        float_feature_index: usize,
        border: f64,
    },
    #[serde(rename = "cat_feature_exact_value")]
    Equal {
        cat_feature_index: usize,
        value: i32,
    },
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct CtrData {
    pub(super) hash_map: Vec<Entry>,
    pub(super) hash_stride: usize,
    #[serde(default)]
    pub(super) counter_denominator: u64,
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Tree {
    pub(super) splits: Option<Vec<Split>>,
    pub(super) leaf_values: Vec<f64>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Split {
    pub(super) split_index: usize,
}

/// One element of the flat hash map: a hash (a number as text) or a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entry {
    Hash(u64),
    Count(u64),
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HashOrCount;
        impl Visitor<'_> for HashOrCount {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a hash as text or a count")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Entry, E> {
                let hash = text
                    .parse()
                    .map_err(|_| E::custom(format!("hash {text:?} is no u64")))?;
                Ok(Entry::Hash(hash))
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Entry, E> {
                Ok(Entry::Count(count))
            }
        }
        deserializer.deserialize_any(HashOrCount)
    }
}

crate::objects::objects!(
    Export,
    Features,
    Float,
    Categorical,
    Ctr,
    CtrData,
    Tree,
    Split
);
