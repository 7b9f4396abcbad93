//! From a model to the table of its predictions.

use super::ctr::Element;
use super::{Model, Nan, Row, category_hash};
use crate::header::{ApiName, Axis, Header, Shape};
use crate::refusal::Refusal;
use crate::table::{LatencyTable, MAX_FILE_BYTES};

/// Names of the inputs that do not vary while a container serves an API.
const METHOD: &str = "method";
const URL: &str = "url";
const CORES: &str = "cores";
const MEMORY: &str = "memory_gb";

impl Model {
    /// The table of every prediction for `about.containers` and `about.apis`. Borders and the number
    /// of trees in `about` are replaced by the model's; the names of the axes say which inputs vary.
    ///
    /// A bin is asked at its upper border, the last one an `f32` above its lower: a split is
    /// "greater than the border", so every value of a bin gets the same answers.
    ///
    /// # Errors
    /// An input of the model that a table does not have, and what [`LatencyTable::new`] refuses.
    pub fn table(&self, mut about: Header) -> Result<LatencyTable, Refusal> {
        about.kept_trees = self.trees.len() as u32;
        for axis in &mut about.axes {
            axis.borders = self.borders_of(&axis.feature)?;
        }
        let count = about.check()?;
        if count > MAX_FILE_BYTES / size_of::<f64>() {
            return Err(Refusal::new("cells", "are too many for a table")
                .value(count)
                .allowed(format!("at most {}", MAX_FILE_BYTES / size_of::<f64>()))
                .next("train with a smaller border_count, such as 128"));
        }
        let numbers: Vec<Source> = self
            .number_names()
            .map(|name| number_source(name, &about.axes))
            .collect::<Result<_, _>>()?;
        let unseen = [
            unseen(about.apis.iter().map(|a| &a.method)),
            unseen(about.apis.iter().map(|a| &a.url)),
        ];
        let values = [
            about.axes[0].representatives(),
            about.axes[1].representatives(),
        ];
        let mut cells = Vec::with_capacity(count);
        for api in &about.apis {
            let categories = self.hashes(api, &unseen)?;
            for shape in &about.containers {
                let mut row = Row {
                    numbers: vec![0.0; numbers.len()],
                    categories: categories.clone(),
                };
                for first in &values[0] {
                    for second in &values[1] {
                        for (x, source) in row.numbers.iter_mut().zip(&numbers) {
                            *x = source.value(shape, *first, *second);
                        }
                        cells.push(self.evaluate(&row));
                    }
                }
            }
        }
        LatencyTable::new(about, cells)
    }

    /// Every value at which an answer about this input changes, ascending.
    fn borders_of(&self, name: &str) -> Result<Vec<f32>, Refusal> {
        let Some(place) = self.numbers.iter().position(|number| number.name == name) else {
            return Ok(Vec::new());
        };
        let number = &self.numbers[place];
        if number.nan == Nan::Above {
            return Err(Refusal::new(name, "was missing in some training rows")
                .next("train with missing statistics read as 0"));
        }
        let mut borders = number.borders.clone();
        for element in self.ctrs.iter().flat_map(|ctr| &ctr.elements) {
            if let Element::Above { number, border } = element
                && *number == place
            {
                borders.push(*border);
            }
        }
        borders.sort_by(f32::total_cmp);
        borders.dedup();
        Ok(borders)
    }

    /// The row's categories for `api`, in the model's order.
    fn hashes(&self, api: &ApiName, unseen: &[String; 2]) -> Result<Vec<i32>, Refusal> {
        self.category_names()
            .map(|name| {
                let text = match name {
                    METHOD => api.method.as_ref().unwrap_or(&unseen[0]),
                    URL => api.url.as_ref().unwrap_or(&unseen[1]),
                    other => return Err(foreign(other)),
                };
                Ok(category_hash(text))
            })
            .collect()
    }
}

/// Where the value of one of the model's numbers comes from.
enum Source {
    Cores,
    Memory,
    First,
    Second,
}

impl Source {
    fn value(&self, shape: &Shape, first: f32, second: f32) -> f32 {
        match self {
            Self::Cores => shape.cores as f32,
            Self::Memory => shape.memory_gb as f32,
            Self::First => first,
            Self::Second => second,
        }
    }
}

fn number_source(name: &str, axes: &[Axis; 2]) -> Result<Source, Refusal> {
    match name {
        CORES => Ok(Source::Cores),
        MEMORY => Ok(Source::Memory),
        _ if name == axes[0].feature => Ok(Source::First),
        _ if name == axes[1].feature => Ok(Source::Second),
        other => Err(foreign(other)),
    }
}

fn foreign(name: &str) -> Refusal {
    Refusal::new("features_info", "has an input that a table does not know")
        .value(name)
        .allowed(format!(
            "{METHOD}, {URL}, {CORES}, {MEMORY} and the two axes"
        ))
}

/// A text whose hash no known one has: what the model sees of a request it was not trained on.
fn unseen<'a>(known: impl Iterator<Item = &'a Option<String>>) -> String {
    let known: Vec<i32> = known.flatten().map(|text| category_hash(text)).collect();
    let mut text = String::from("(unseen)");
    while known.contains(&category_hash(&text)) {
        text.push('.');
    }
    text
}
