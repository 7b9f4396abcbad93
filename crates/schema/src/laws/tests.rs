//! Draws against the laws they claim, by distribution functions of an independent library.
//!
//! A draw is compared by the largest distance between its empirical distribution function and the
//! law's: by Massart's inequality it exceeds `sqrt(ln(2 / a) / 2n)` with probability at most `a`, for
//! any n and any law. `a` is one in a million for each comparison; means are held to five standard
//! errors, which is about the same.

mod arrivals;
mod sizes;
mod spelling;

const FALSE_ALARM: f64 = 1e-6;

/// Panics if `sample` is not of the law with distribution function `cdf`.
fn assert_law(name: &str, mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0.0_f64, |most, (i, x)| {
        let expected = cdf(*x);
        let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
        most.max(expected - below).max(above - expected)
    });
    let bound = ((2.0 / FALSE_ALARM).ln() / (2.0 * n)).sqrt();
    assert!(
        distance <= bound,
        "{name}: distance {distance}, bound {bound}"
    );
}

fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

#[test]
#[should_panic(expected = "wrong: distance")]
fn a_wrong_law_is_noticed() {
    let sample = (0..2000).map(|i| f64::from(i) / 2000.0).collect();
    assert_law("wrong", sample, |x| x * x);
}
