//! Predictions of a model.

use super::{Model, Nan, Row};

impl Model {
    /// The model's prediction for `row`, the library's own `f64`.
    ///
    /// # Panics
    /// If the row has not as many values as the model has inputs.
    pub fn evaluate(&self, row: &Row) -> f64 {
        assert_eq!(
            row.numbers.len(),
            self.numbers.len(),
            "a row has every number"
        );
        assert_eq!(
            row.categories.len(),
            self.categories.len(),
            "a row has every category"
        );
        let answers = self.answers(row);
        // In the order of the trees, as the library adds them.
        let sum: f64 = self
            .trees
            .iter()
            .map(|tree| {
                let bits = tree.splits.iter().enumerate();
                let leaf = bits.fold(0, |leaf, (bit, split)| {
                    leaf | usize::from(answers[*split]) << bit
                });
                tree.leaves[leaf]
            })
            .fold(0.0, |sum, leaf| sum + leaf);
        self.scale * sum + self.bias
    }

    /// Every binary feature of `row`, in the order in which splits number them.
    fn answers(&self, row: &Row) -> Vec<bool> {
        let mut answers = Vec::with_capacity(self.binary_features());
        for (number, x) in self.numbers.iter().zip(&row.numbers) {
            let nan_above = x.is_nan() && number.nan == Nan::Above;
            answers.extend(number.borders.iter().map(|border| x > border || nan_above));
        }
        for (category, hash) in self.categories.iter().zip(&row.categories) {
            answers.extend(category.values.iter().map(|value| hash == value));
        }
        for ctr in &self.ctrs {
            let x = ctr.value(row);
            answers.extend(ctr.borders.iter().map(|border| x > *border));
        }
        answers
    }

    /// Number of binary features.
    pub(super) fn binary_features(&self) -> usize {
        let numbers = self.numbers.iter().map(|number| number.borders.len());
        let categories = self.categories.iter().map(|category| category.values.len());
        let ctrs = self.ctrs.iter().map(|ctr| ctr.borders.len());
        numbers.chain(categories).chain(ctrs).sum()
    }
}
