//! What failed backends do to user requests of several calls in a row.
//!
//! Model: a share p of m equal backends has failed; a failed one answers with an error after q normal
//! service times (q = timeout / normal time; below 1: it fails fast). A user request needs k calls in a
//! row to succeed. Rotation and random routing send a failed backend its share of calls; least-request
//! sends it a share in inverse proportion to the time it holds a call.

use crate::bound::{OutOfBounds, require_positive, require_share};

/// Share of calls that a healthy backend gets under least-request: q(1-p)/(q(1-p) + p).
///
/// # Errors
/// A share outside 0..=1, a `slowdown` q not above 0.
pub fn healthy_share(failed: f64, slowdown: f64) -> Result<f64, OutOfBounds> {
    require_share("failed share", failed)?;
    require_positive("slowdown", slowdown)?;
    if failed == 1.0 {
        return Ok(0.0);
    }
    let healthy = slowdown * (1.0 - failed);
    Ok(healthy / (healthy + failed))
}

/// Share of user requests that succeed under round robin or random routing: (1-p)^k.
///
/// # Errors
/// A share outside 0..=1.
pub fn rotation(failed: f64, calls: u32) -> Result<f64, OutOfBounds> {
    require_share("failed share", failed)?;
    Ok(libm::pow(1.0 - failed, f64::from(calls)))
}

/// Share of user requests that succeed under least-request: [`healthy_share`]^k.
///
/// # Errors
/// As [`healthy_share`].
pub fn least_request(failed: f64, slowdown: f64, calls: u32) -> Result<f64, OutOfBounds> {
    Ok(libm::pow(
        healthy_share(failed, slowdown)?,
        f64::from(calls),
    ))
}

/// Probability that `picks` picks in a row all go to a backend of this share of the picks.
///
/// # Errors
/// A share outside 0..=1.
pub fn streak(share: f64, picks: u32) -> Result<f64, OutOfBounds> {
    require_share("share", share)?;
    Ok(libm::pow(share, f64::from(picks)))
}

#[cfg(test)]
mod tests {
    use super::{healthy_share, least_request, rotation, streak};

    #[test]
    fn known_values_come_out() {
        assert!((rotation(0.2, 3).unwrap() - 0.512).abs() < 1e-12);
        for (failed, slowdown, expected) in [
            (0.2, 100.0, 0.99254),
            (0.2, 10.0, 0.9286),
            (0.1, 10.0, 0.9674),
            (0.4, 10.0, 0.8240),
            (0.1, 0.1, 0.1063),
            (0.2, 0.1, 0.0233),
        ] {
            let got = least_request(failed, slowdown, 3).unwrap();
            assert!((got - expected).abs() < 6e-5, "{failed} {slowdown}: {got}");
        }
        assert!((1.0 - healthy_share(0.2, 100.0).unwrap() - 1.0 / 401.0).abs() < 1e-12);
        let failed_share = 1.0 - healthy_share(0.2, 0.1).unwrap();
        assert!((failed_share - 5.0 / 7.0).abs() < 1e-12);
        assert!((streak(failed_share, 9).unwrap() - 0.048).abs() < 6e-4);
        assert!((streak(1.0 - failed_share, 9).unwrap() - 0.000_013).abs() < 6e-7);
    }

    #[test]
    fn failures_as_slow_as_successes_make_no_difference() {
        for failed in [0.0, 0.1, 0.5, 1.0] {
            for calls in [1, 3, 7] {
                let same = least_request(failed, 1.0, calls).unwrap();
                assert!((same - rotation(failed, calls).unwrap()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = least_request(1.2, 1.0, 3).unwrap_err().to_string();
        assert_eq!(said, "failed share must be from 0 to 1, got 1.2");
        assert!(healthy_share(0.2, 0.0).is_err());
    }
}
