//! The latency models that predictive strategies read. They open no file: the driver loads them.

use super::Spec;
use predictor::{Features, LatencyTable, Statistics};
use std::sync::Arc;

/// Models loaded at most.
pub const MAX_MODELS: usize = 16;

/// One loaded model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The name the driver gave it.
    pub name: String,
    /// The model.
    pub table: Arc<LatencyTable>,
}

/// The loaded models, in the order given.
#[derive(Debug, Clone, Default)]
pub struct Models(Vec<Model>);

/// Which model a strategy needs.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The pair of inputs.
    pub features: Features,
    /// How they were observed in training; any of these, unless a model is named.
    pub statistics: &'static [Statistics],
}

impl Models {
    /// Adds a model.
    ///
    /// # Errors
    /// The name is taken or no plain name; there are [`MAX_MODELS`] already.
    pub fn add(&mut self, name: &str, table: Arc<LatencyTable>) -> Result<(), String> {
        let printable = schema::problem::printable(name);
        if !is_name(name) {
            return Err(format!(
                "model name \"{printable}\": allowed are 1 to 64 letters, digits, dots, dashes and underscores"
            ));
        }
        if self.get(name).is_some() {
            return Err(format!("model \"{printable}\" is given twice"));
        }
        if self.0.len() == MAX_MODELS {
            return Err(format!("more than {MAX_MODELS} models"));
        }
        self.0.push(Model {
            name: name.to_string(),
            table,
        });
        Ok(())
    }

    /// The models, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.0.iter()
    }

    fn get(&self, name: &str) -> Option<&Model> {
        self.0.iter().find(|m| m.name == name)
    }

    /// The model of a spec: the one it names, else the first whose inputs and their observation are
    /// those the strategy reads.
    ///
    /// # Errors
    /// No such model; the named one has other inputs.
    pub fn find(&self, spec: &Spec, wanted: &Wanted) -> Result<&Model, String> {
        let features = wanted.features.names().join(" and ");
        let known: Vec<&str> = self.0.iter().map(|m| m.name.as_str()).collect();
        let known = if known.is_empty() {
            "none".to_string()
        } else {
            known.join(", ")
        };
        if let Some(super::Value::Word(name)) = spec.value("model")
            && name != super::model::FIRST_FITTING
        {
            let model = self.get(&name).ok_or_else(|| {
                format!("{spec}: no model \"{name}\" is loaded; loaded: {known}; add --model {name}=FILE")
            })?;
            if model.table.features() != wanted.features {
                let has = model.table.features().names().join(" and ");
                return Err(format!(
                    "{spec}: model \"{name}\" predicts from {has}, the strategy reads {features}"
                ));
            }
            return Ok(model);
        }
        let fits = |m: &&Model| {
            m.table.features() == wanted.features
                && wanted.statistics.contains(&m.table.statistics())
        };
        self.0.iter().find(fits).ok_or_else(|| {
            let kinds: Vec<String> = wanted
                .statistics
                .iter()
                .map(|s| format!("{s:?}").to_lowercase())
                .collect();
            let kinds = kinds.join(" or ");
            format!(
                "{spec}: needs a latency model trained on {kinds} {features}; loaded: {known}; \
                 add --model FILE (make train makes one)"
            )
        })
    }
}

impl PartialEq for Models {
    /// The same names for the same predictions.
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Model, b: &Model| {
            a.name == b.name
                && (Arc::ptr_eq(&a.table, &b.table)
                    || (a.table.header() == b.table.header() && a.table.cells() == b.table.cells()))
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| same(a, b))
    }
}

/// The default of a `model` parameter, in words.
pub(crate) const FIRST_FITTING: &str = "the first that fits";

/// A model's name: letters, digits, dots, dashes and underscores.
pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
