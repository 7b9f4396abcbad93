//! Named streams of one seed, so that the same seed means the same draws in every program.
//!
//! The generator is ChaCha8: key = the seed (little-endian, zero padded to 32 bytes), stream =
//! purpose and entity, word position = replication. Every consumer has its own stream, so a
//! strategy that draws more often does not shift anybody's arrivals.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// What a stream is drawn for. The numbers are part of every recorded seed's meaning: never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrivals = 0,
    /// Task sizes.
    Sizes = 1,
    /// Which API a request calls; also the shuffle of a schedule.
    ApiChoice = 2,
    /// Draws of a strategy.
    Strategy = 3,
    /// Which requests a fault hits.
    Faults = 4,
    /// Network delays and the balancer an arrival goes to.
    Network = 5,
    /// Whether a warming backend takes part in a pick.
    SlowStart = 6,
    /// Order of the arms within a block.
    BlockOrder = 7,
    /// Methods and URLs of generated APIs.
    ApiNames = 8,
    /// Jitter of timers.
    Jitter = 9,
    /// Which waiting caller of a closed loop calls next.
    Callers = 10,
}

/// The stream of `seed` for one purpose, entity (worker, balancer; 0 if there is one) and replication.
pub fn stream(seed: u64, purpose: Purpose, entity: u32, replication: u32) -> ChaCha8Rng {
    let mut key = [0_u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream((u64::from(purpose as u32) << 32) | u64::from(entity));
    rng.set_word_pos(u128::from(replication) << 36);
    rng
}

/// An unbiased draw from `0..n` (multiply-shift with rejection; Lemire 2019).
///
/// # Panics
/// If `n` is 0: there is nothing to draw.
#[inline]
pub fn below(rng: &mut dyn RngCore, n: u64) -> u64 {
    assert!(n > 0, "below(0): nothing to draw from");
    let mut product = u128::from(rng.next_u64()) * u128::from(n);
    if (product as u64) < n {
        let reject_below = n.wrapping_neg() % n;
        while (product as u64) < reject_below {
            product = u128::from(rng.next_u64()) * u128::from(n);
        }
    }
    (product >> 64) as u64
}

/// Two distinct draws from `0..n`, each ordered pair equally likely; needs `n >= 2`.
pub fn distinct_pair(rng: &mut dyn RngCore, n: u64) -> (u64, u64) {
    assert!(n >= 2, "distinct_pair needs two to draw from");
    let a = below(rng, n);
    let b = below(rng, n - 1);
    (a, if b >= a { b + 1 } else { b })
}

/// A uniform draw from [0, 1) with 53 random bits.
#[inline]
pub fn unit(rng: &mut dyn RngCore) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// An exponential draw of mean 1, by inversion with a portable logarithm.
#[inline]
pub fn exponential(rng: &mut dyn RngCore) -> f64 {
    -libm::log(1.0 - unit(rng))
}

/// A standard normal draw (Box-Muller, cosine branch, portable functions): two uniform draws each.
pub fn normal(rng: &mut dyn RngCore) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(rng));
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
}

/// Fisher-Yates shuffle in place.
pub fn shuffle<T>(rng: &mut dyn RngCore, items: &mut [T]) {
    for i in (1..items.len()).rev() {
        let j = below(rng, i as u64 + 1) as usize;
        items.swap(i, j);
    }
}

/// A seed as a command line gives it.
///
/// # Errors
/// Anything but a whole number of 64 bits, with the bound.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "not a seed (allowed: a whole number from 0 to {})",
            u64::MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Purpose, below, distinct_pair, exponential, normal, shuffle, stream, unit};
    use rand_core::RngCore;

    #[test]
    fn streams_repeat_and_differ_by_purpose_entity_and_replication() {
        let first = |s, p, e, r| stream(s, p, e, r).next_u64();
        let base = first(42, Purpose::Strategy, 0, 0);
        assert_eq!(base, first(42, Purpose::Strategy, 0, 0));
        assert_ne!(base, first(43, Purpose::Strategy, 0, 0));
        assert_ne!(base, first(42, Purpose::Sizes, 0, 0));
        assert_ne!(base, first(42, Purpose::Strategy, 1, 0));
        assert_ne!(base, first(42, Purpose::Strategy, 0, 1));
    }

    #[test]
    fn the_generator_is_chacha8() {
        // First block of ChaCha8 for an all-zero key and nonce (test vector of the eSTREAM set).
        let mut rng = stream(0, Purpose::Arrivals, 0, 0);
        assert_eq!(rng.next_u32().to_le_bytes(), [0x3e, 0x00, 0xef, 0x2f]);
        assert_eq!(rng.next_u32().to_le_bytes(), [0x89, 0x5f, 0x40, 0xd6]);
    }

    #[test]
    fn draws_below_n_are_uniform_within_four_sigma() {
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        let mut counts = [0_f64; 5];
        for _ in 0..100_000 {
            counts[below(&mut rng, 5) as usize] += 1.0;
        }
        let sigma = (100_000.0_f64 * 0.2 * 0.8).sqrt();
        assert!(
            counts.iter().all(|c| (c - 20_000.0).abs() < 4.0 * sigma),
            "{counts:?}"
        );
    }

    #[test]
    fn pairs_are_distinct_and_every_order_occurs() {
        let mut rng = stream(1, Purpose::Strategy, 0, 0);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let (a, b) = distinct_pair(&mut rng, 3);
            assert!(a != b && a < 3 && b < 3);
            seen.insert((a, b));
        }
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn moments_of_the_continuous_laws_are_right() {
        let mut rng = stream(7, Purpose::Sizes, 0, 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || unit(&mut rng)) - 0.5).abs() < 0.004);
        assert!((mean(&mut || exponential(&mut rng)) - 1.0).abs() < 0.012);
        assert!(mean(&mut || normal(&mut rng)).abs() < 0.012);
        assert!((mean(&mut || normal(&mut rng).powi(2)) - 1.0).abs() < 0.016);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut stream(3, Purpose::ApiChoice, 0, 0), &mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
