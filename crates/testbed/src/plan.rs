//! What a bench will do, decided before anything starts. Pure: presets, strategy lists, the order
//! of the arms, the burn fraction, thresholds.

pub(crate) mod burn;
pub(crate) mod order;
pub(crate) mod preset;
pub(crate) mod strategies;
pub(crate) mod threshold;
