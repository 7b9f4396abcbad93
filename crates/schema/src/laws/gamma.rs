//! Gamma draws by the squeeze of Marsaglia and Tsang.
//!
//! Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Transactions on
//! Mathematical Software 26 (2000) 363-372. A shape below one takes a draw of shape plus one times
//! `U^(1/shape)`, as their section 6 says; the power is an exponential draw over the shape here, which
//! keeps the left tail exact down to the smallest number. The cheap first squeeze is left out: the
//! second test alone decides the same.

use rand_core::RngCore;

use crate::rng::{exponential, normal};

/// A gamma draw of mean one; its squared coefficient of variation is `1 / shape`.
pub(super) fn mean_one(rng: &mut dyn RngCore, shape: f64) -> f64 {
    if shape < 1.0 {
        let above_one = standard(rng, shape + 1.0);
        return above_one * libm::exp(-exponential(rng) / shape) / shape;
    }
    standard(rng, shape) / shape
}

/// A draw of the gamma law with scale one, for a shape of at least one.
fn standard(rng: &mut dyn RngCore, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        // ln(U) < x^2/2 + d (1 - v + ln v), with -ln(U) an exponential draw.
        if exponential(rng) > -(0.5 * x * x + d * (1.0 - v + libm::log(v))) {
            return d * v;
        }
    }
}
