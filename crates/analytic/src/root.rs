//! Bisection, the only root finder here: slow, and it cannot miss.

/// Enough halvings to reach neighboring floating-point numbers from any start used here.
const HALVINGS: usize = 200;

/// Where `is_above` turns from false (at `low`) to true (at `high`), to the last bit.
pub(crate) fn bisect(mut low: f64, mut high: f64, mut is_above: impl FnMut(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::midpoint(low, high)
}
