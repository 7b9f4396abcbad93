//! Load interpretation: how to spread the arrivals of one poll interval over a board of old counts
//! (Dahlin 2000), with workers of unequal capacity.
//!
//! The board is sorted by b_i/c_i. Basic: one set of probabilities for the whole interval, so that all
//! end up level. Aggressive: the emptiest are filled first, one after the other.

use crate::bound::{OutOfBounds, require, require_positive};

/// Probability of each worker, in the order of the arguments, that levels the counts `board` out over
/// `arrivals` more requests: L = (K + sum b)/(sum c) over the used set, p_i = (c_i*L - b_i)/K, the largest
/// set with all p_i >= 0.
///
/// # Errors
/// No workers, lengths that differ, a count outside 0..=1e6, a capacity outside 1e-9..=1e9, `arrivals`
/// outside 0.001..=1e9.
pub fn basic(board: &[f64], capacities: &[f64], arrivals: f64) -> Result<Vec<f64>, OutOfBounds> {
    let is_met = (0.001..=1e9).contains(&arrivals);
    require(is_met, "arrivals", arrivals, "from 0.001 to 1e9")?;
    let used = &aggressive(board, capacities, arrivals)?;
    let held: f64 = used.iter().map(|&i| board[i]).sum();
    let capacity: f64 = used.iter().map(|&i| capacities[i]).sum();
    let level = (arrivals + held) / capacity;
    let mut shares = vec![0.0; board.len()];
    for &i in used {
        shares[i] = ((capacities[i] * level - board[i]) / arrivals).max(0.0);
    }
    // They add up to 1 but for rounding, which weighs where the counts are far above the arrivals.
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|p| *p /= sum);
    Ok(shares)
}

/// The workers, emptiest for their capacity first, each with the number of arrivals that bring all before
/// it up to its level: sum_{j<m} (c_j*b_m/c_m - b_j), which never falls with m. Aggressive interpretation
/// draws, by capacity, among those whose number is at most the arrivals since the sample.
///
/// # Errors
/// No workers, lengths that differ, a count outside 0..=1e6, a capacity outside 1e-9..=1e9.
pub fn fill_order(board: &[f64], capacities: &[f64]) -> Result<Vec<(usize, f64)>, OutOfBounds> {
    let (mut held, mut capacity) = (0.0, 0.0);
    let order = sorted(board, capacities)?.into_iter().map(|i| {
        let arrivals = capacity * board[i] / capacities[i] - held;
        held += board[i];
        capacity += capacities[i];
        (i, arrivals.max(0.0))
    });
    Ok(order.collect())
}

/// The workers among which aggressive interpretation draws once `arrivals` requests have come since the
/// sample; at the end of the interval the set of [`basic`].
///
/// # Errors
/// As [`fill_order`], and `arrivals` below 0.
pub fn aggressive(
    board: &[f64],
    capacities: &[f64],
    arrivals: f64,
) -> Result<Vec<usize>, OutOfBounds> {
    let is_met = arrivals >= 0.0 && arrivals.is_finite();
    require(is_met, "arrivals", arrivals, "0 or more")?;
    let order = fill_order(board, capacities)?.into_iter();
    Ok(order
        .take_while(|(_, a)| *a <= arrivals)
        .map(|(i, _)| i)
        .collect())
}

fn sorted(board: &[f64], capacities: &[f64]) -> Result<Vec<usize>, OutOfBounds> {
    let number = board.len() as f64;
    require(!board.is_empty(), "workers", number, "at least 1")?;
    let is_met = capacities.len() == board.len();
    let given = capacities.len() as f64;
    require(is_met, "capacities", given, "as many as workers")?;
    for (&count, &capacity) in board.iter().zip(capacities) {
        let is_met = (0.0..=1e6).contains(&count);
        require(is_met, "count on the board", count, "from 0 to 1e6")?;
        require_positive("capacity", capacity)?;
    }
    let mut order: Vec<usize> = (0..board.len()).collect();
    order.sort_by(|&a, &b| (board[a] / capacities[a]).total_cmp(&(board[b] / capacities[b])));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::{aggressive, basic};
    use proptest::prelude::*;

    #[test]
    fn the_worked_board_comes_out() {
        let (board, capacities) = ([8.0, 1.0, 1.0], [4.0, 3.0, 2.0]);
        let p = basic(&board, &capacities, 6.0).unwrap();
        assert_eq!(p[0], 0.0);
        assert!((p[1] - 0.6333).abs() < 6e-5 && (p[2] - 0.3667).abs() < 6e-5);
        let among = |arrivals| aggressive(&board, &capacities, arrivals).unwrap();
        assert_eq!(among(0.0), [1]);
        assert_eq!(among(0.49), [1]);
        assert_eq!(among(0.5), [1, 2]);
        assert_eq!(among(7.9), [1, 2]);
        assert_eq!(among(8.0), [1, 2, 0]);
    }

    #[test]
    fn equal_capacities_follow_the_unweighted_rule() {
        // L = (6 + 0 + 1 + 2)/3 = 3; the fourth, at 5, is above it.
        let p = basic(&[5.0, 2.0, 0.0, 1.0], &[1.0; 4], 6.0).unwrap();
        for (got, expected) in p.iter().zip([0.0, 1.0 / 6.0, 3.0 / 6.0, 2.0 / 6.0]) {
            assert!((got - expected).abs() < 1e-12, "{p:?}");
        }
    }

    #[test]
    fn arguments_outside_their_bounds_are_named() {
        let said = |e: crate::OutOfBounds| e.to_string();
        assert!(said(basic(&[], &[], 1.0).unwrap_err()).contains("workers"));
        assert!(said(basic(&[1.0], &[1.0, 2.0], 1.0).unwrap_err()).contains("as many as"));
        assert!(said(basic(&[1.0], &[1.0], 0.0).unwrap_err()).contains("arrivals"));
        assert!(said(aggressive(&[-1.0], &[1.0], 1.0).unwrap_err()).contains("count"));
        assert!(said(aggressive(&[1.0], &[0.0], 1.0).unwrap_err()).contains("capacity"));
    }

    /// Pours the arrivals in small drops, each to the worker that is then the least full.
    fn poured(board: &[f64], capacities: &[f64], arrivals: f64) -> Vec<f64> {
        let drops = 4000;
        let mut level = board.to_vec();
        for _ in 0..drops {
            let emptiest = (0..board.len())
                .min_by(|&a, &b| (level[a] / capacities[a]).total_cmp(&(level[b] / capacities[b])))
                .unwrap();
            level[emptiest] += arrivals / f64::from(drops);
        }
        let got = |(after, before): (&f64, &f64)| (after - before) / arrivals;
        level.iter().zip(board).map(got).collect()
    }

    proptest! {
        #[test]
        fn probabilities_sum_to_one_and_are_what_pouring_gives(
            workers in prop::collection::vec((0_u32..12, 1_u32..5), 1..8),
            arrivals in 0.1_f64..40.0,
        ) {
            let board: Vec<f64> = workers.iter().map(|w| f64::from(w.0)).collect();
            let capacities: Vec<f64> = workers.iter().map(|w| f64::from(w.1)).collect();
            let p = basic(&board, &capacities, arrivals).unwrap();
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(p.iter().all(|p| *p >= 0.0));
            for (a, b) in p.iter().zip(poured(&board, &capacities, arrivals)) {
                prop_assert!((a - b).abs() < 0.01, "{:?} {}", p, b);
            }
            let filled = aggressive(&board, &capacities, arrivals).unwrap();
            let positive = (0..p.len()).filter(|&i| p[i] > 1e-9).all(|i| filled.contains(&i));
            prop_assert!(positive, "{:?} {:?}", p, filled);
        }
    }
}
