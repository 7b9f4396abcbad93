//! Statistics of categories (CTRs): what the target was for rows of the same combination of inputs.

use super::Row;
use super::hash::extend;

/// One statistic with its borders.
#[derive(Debug, Clone)]
pub(super) struct Ctr {
    /// The combination, in the order in which it is hashed.
    pub(super) elements: Vec<Element>,
    pub(super) counts: Counts,
    pub(super) prior_numerator: f32,
    pub(super) prior_denominator: f32,
    pub(super) shift: f32,
    pub(super) scale: f32,
    pub(super) borders: Vec<f32>,
}

/// One part of a combination; places are those within numbers and within categories.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Element {
    /// The category itself.
    Category(usize),
    /// Whether the number is greater than the border.
    Above { number: usize, border: f32 },
    /// Whether the category has this hash.
    Equal { category: usize, value: i32 },
}

/// What was counted in training, by the hash of the combination, ascending.
#[derive(Debug, Clone)]
pub(super) enum Counts {
    /// Rows with a target below and above the middle.
    Borders(Vec<(u64, [u64; 2])>),
    /// Rows at all, and the denominator.
    Counter(Vec<(u64, u64)>, u64),
}

impl Ctr {
    /// The statistic for `row`; a combination that training never saw counts as 0 rows.
    pub(super) fn value(&self, row: &Row) -> f32 {
        let hash = self
            .elements
            .iter()
            .fold(0, |hash, element| extend(hash, element.bits(row)));
        // Counts are narrowed after they are added, as the library does.
        let (hits, total) = match &self.counts {
            Counts::Borders(counts) => {
                let [below, above] = find(counts, hash).unwrap_or_default();
                (above as f32, (below + above) as f32)
            }
            Counts::Counter(counts, denominator) => (
                find(counts, hash).unwrap_or_default() as f32,
                *denominator as f32,
            ),
        };
        let share = (hits + self.prior_numerator) / (total + self.prior_denominator);
        (share + self.shift) * self.scale
    }
}

impl Element {
    fn bits(&self, row: &Row) -> u64 {
        match *self {
            // The sign is extended: negative hashes fill the upper half with ones.
            Self::Category(category) => i64::from(row.categories[category]) as u64,
            Self::Above { number, border } => u64::from(row.numbers[number] > border),
            Self::Equal { category, value } => u64::from(row.categories[category] == value),
        }
    }
}

fn find<T: Copy>(counts: &[(u64, T)], hash: u64) -> Option<T> {
    let place = counts.binary_search_by_key(&hash, |(hash, _)| *hash).ok()?;
    Some(counts[place].1)
}
