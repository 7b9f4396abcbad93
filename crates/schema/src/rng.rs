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

/// Fills `out` with what as many calls of [`exponential`] give, bit for bit and in the same order; a few at
/// a time in the processor's wide registers, which is about three times as fast.
pub fn exponentials(rng: &mut ChaCha8Rng, out: &mut [f64]) {
    let mut bytes = [0_u8; 8 * AT_ONCE];
    for out in out.chunks_mut(AT_ONCE) {
        let bytes = &mut bytes[..8 * out.len()];
        rng.fill_bytes(bytes);
        let (bits, _) = bytes.as_chunks::<8>();
        for (draw, bits) in out.iter_mut().zip(bits) {
            let unit = (u64::from_le_bytes(*bits) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
            *draw = -log_of_normal(1.0 - unit);
        }
    }
}

/// Draws that [`exponentials`] makes at a time.
const AT_ONCE: usize = 64;

/// [`libm::log`] of a positive normal number, the same operations in the same order (FreeBSD's `e_log.c`),
/// but without a branch, so that a compiler may do several at once.
#[inline(always)]
fn log_of_normal(x: f64) -> f64 {
    const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const LG1: f64 = f64::from_bits(0x3fe5_5555_5555_5593);
    const LG2: f64 = f64::from_bits(0x3fd9_9999_9997_fa04);
    const LG3: f64 = f64::from_bits(0x3fd2_4924_9422_9359);
    const LG4: f64 = f64::from_bits(0x3fcc_71c5_1d8e_78af);
    const LG5: f64 = f64::from_bits(0x3fc7_4664_96cb_03de);
    const LG6: f64 = f64::from_bits(0x3fc3_9a09_d078_c69f);
    const LG7: f64 = f64::from_bits(0x3fc2_f112_df3e_5244);
    // x = 2^k * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
    const ROOT_HALF: u64 = 0x3fe6_a09e << 32;
    let bits = x.to_bits() + ((0x3ff0_0000 << 32) - ROOT_HALF);
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + ROOT_HALF) - 1.0;
    // k + 1023 in the lowest bits of 2^52, so that a subtraction makes a float of it.
    let k = f64::from_bits((bits >> 52) | (0x433 << 52)) - ((1_u64 << 52) + 1023) as f64;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (LG2 + w * (LG4 + w * LG6));
    let t2 = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)));
    let r = t2 + t1;
    s * (half_square + r) + k * LN2_LO - half_square + f + k * LN2_HI
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
    use super::{
        Purpose, below, distinct_pair, exponential, exponentials, log_of_normal, normal, shuffle,
        stream, unit,
    };
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
    fn many_exponential_draws_at_once_are_those_made_one_by_one() {
        let mut one_by_one = stream(5, Purpose::Sizes, 0, 0);
        let mut at_once = one_by_one.clone();
        for length in (0..200).chain([100_000]) {
            let mut draws = vec![0.0; length];
            exponentials(&mut at_once, &mut draws);
            for draw in draws {
                assert_eq!(draw.to_bits(), exponential(&mut one_by_one).to_bits());
            }
            // Whoever drew half a word before gets the same, too.
            if length % 3 == 0 {
                assert_eq!(at_once.next_u32(), one_by_one.next_u32());
            }
        }
    }

    #[test]
    fn the_logarithm_without_branches_is_the_portable_one() {
        let edges = [
            1.0_f64,
            0.5,
            0.25,
            2.0,
            std::f64::consts::SQRT_2,
            f64::MIN_POSITIVE,
            f64::MAX,
        ];
        // The smallest numbers that 1 minus a uniform draw can be, and the largest.
        let small = (1..100).map(|i| f64::from(i) / (1_u64 << 53) as f64);
        let large = (1..100).map(|i| 1.0 - f64::from(i) / (1_u64 << 53) as f64);
        let edges = edges
            .into_iter()
            .flat_map(|x| [x.next_down().max(f64::MIN_POSITIVE), x]);
        for x in edges.chain(small).chain(large) {
            assert_eq!(log_of_normal(x).to_bits(), libm::log(x).to_bits(), "{x:e}");
        }
        let mut rng = stream(6, Purpose::Sizes, 0, 0);
        for _ in 0..1_000_000 {
            // Every exponent alike.
            let x = f64::from_bits(rng.next_u64() >> 1);
            if x.is_normal() {
                assert_eq!(log_of_normal(x).to_bits(), libm::log(x).to_bits(), "{x:e}");
            }
        }
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
