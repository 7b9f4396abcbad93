//! What is wrong with an argument: which one, its value, the bound.

/// An argument outside its bound.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} must be {bound}, got {value}")]
pub struct OutOfBounds {
    /// The argument.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What is allowed, such as `above 0 and below 1`.
    pub bound: &'static str,
}

/// An error unless `is_met`; NaN meets no comparison, so it never passes.
pub(crate) fn require(
    is_met: bool,
    name: &'static str,
    value: f64,
    bound: &'static str,
) -> Result<(), OutOfBounds> {
    if is_met {
        return Ok(());
    }
    Err(OutOfBounds { name, value, bound })
}

/// A load of a system that must be stable.
pub(crate) fn require_load(load: f64) -> Result<(), OutOfBounds> {
    require(
        load > 0.0 && load < 1.0,
        "load",
        load,
        "above 0 and below 1",
    )
}

/// A share or probability.
pub(crate) fn require_share(name: &'static str, value: f64) -> Result<(), OutOfBounds> {
    require((0.0..=1.0).contains(&value), name, value, "from 0 to 1")
}

/// A speed, rate or number of a size that can be: beyond these bounds rounding would decide.
pub(crate) fn require_positive(name: &'static str, value: f64) -> Result<(), OutOfBounds> {
    require(
        (1e-9..=1e9).contains(&value),
        name,
        value,
        "from 1e-9 to 1e9",
    )
}

/// Least share of its capacity that a station of a split is asked about; below it the formulas' differences
/// are rounding.
pub(crate) const LEAST_LOAD: f64 = 1e-9;
