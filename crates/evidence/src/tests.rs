//! Known values, and the test walked by hand.

use super::{blocks_needed, holm, sign_flip};

fn close(got: f64, expected: f64) {
    assert!(
        (got - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        "got {got}, expected {expected}"
    );
}

#[test]
fn the_smallest_sign_flip_p_is_two_to_the_one_minus_m() {
    close(sign_flip(&[0.1, 0.2, 0.05, 0.3, 0.1, 0.2]), 1.0 / 32.0);
    close(sign_flip(&[1.0, -1.0]), 1.0);
    // Patterns of (1, 2, -0.5) reaching |2.5|: +++ would be 3.5, ++- 2.5, and their mirrors: 4 of 8.
    close(sign_flip(&[1.0, 2.0, -0.5]), 0.5);
    assert!(sign_flip(&[]).is_nan());
}

#[test]
fn more_than_sixteen_pairs_are_drawn_and_never_give_zero() {
    let p = sign_flip(&[1.0; 20]);
    assert!(p > 0.0 && p < 1e-3, "{p}");
    assert_eq!(p.to_bits(), sign_flip(&[1.0; 20]).to_bits());
}

#[test]
fn holm_steps_down_and_never_decreases() {
    let adjusted = holm(&[0.01, 0.04, 0.03, f64::NAN]);
    close(adjusted[0], 0.03);
    close(adjusted[2], 0.06);
    close(adjusted[1], 0.06);
    assert!(adjusted[3].is_nan());
    assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
}

#[test]
fn blocks_needed_grow_with_the_comparisons() {
    assert_eq!([1, 2, 4, 10].map(blocks_needed), [6, 7, 8, 9]);
}

#[test]
fn beyond_a_word_of_signs_every_pair_still_flips_by_itself() {
    // 60 of 100 equal differences positive: twice the upper tail of a fair coin, 0.0569.
    let values: Vec<f64> = (0..100).map(|i| if i < 60 { 1.0 } else { -1.0 }).collect();
    let p = sign_flip(&values);
    assert!((p - 0.0569).abs() < 0.003, "{p}");
}
