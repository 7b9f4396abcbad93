use super::{Board, Place, Sums};
use crate::values::BackendId;
use proptest::prelude::*;

fn board(counts: &[(f64, f64)]) -> Board {
    let places = counts.iter().enumerate();
    let mut board = Board {
        places: places
            .map(|(i, (active, weight))| Place {
                id: BackendId(i as u32),
                active: *active,
                weight: *weight,
            })
            .collect(),
        is_complete: true,
        ..Board::default()
    };
    board.places.sort_by(Place::compare);
    let mut sums = Sums::default();
    for place in &board.places {
        sums.active += place.active;
        sums.weight += place.weight;
        board.sums.push(sums);
    }
    board
}

/// The same board without some.
fn without(board: &Board, out: &[Place]) -> Board {
    let mut counts = vec![];
    let mut ids = vec![];
    for place in board.places.iter().filter(|p| !out.contains(p)) {
        counts.push((place.active, place.weight));
        ids.push(place.id);
    }
    let mut smaller = self::board(&counts);
    for place in &mut smaller.places {
        place.id = ids[place.id.index()];
    }
    smaller
}

/// Chances that level the board out, straight from the definition: for m = n, n - 1, ... the first m of
/// the sorted places, the largest m whose level reaches its last place.
fn level_out(board: &Board, arrivals: f64) -> Vec<(BackendId, f64)> {
    let places = &board.places;
    let level = |m: usize| {
        let active: f64 = places[..m].iter().map(|p| p.active).sum();
        let weight: f64 = places[..m].iter().map(|p| p.weight).sum();
        (arrivals + active) / weight
    };
    let reached = (1..=places.len())
        .rev()
        .find(|m| level(*m) >= places[m - 1].per_weight() - 1e-12)
        .unwrap();
    let missing = |p: &Place| (p.weight * level(reached) - p.active).max(0.0) / arrivals;
    places[..reached]
        .iter()
        .map(|p| (p.id, missing(p)))
        .collect()
}

/// Chances by the board's own sums.
fn chances(board: &Board, arrivals: f64, out: &[Place]) -> Vec<(BackendId, f64)> {
    let (covered, level) = board.level(arrivals, out);
    let mass = |i: usize| level * board.sums[i].weight - board.sums[i].active;
    let mut chances = vec![];
    for i in 0..covered {
        let before = if i == 0 { 0.0 } else { mass(i - 1) };
        if !out.contains(&board.places[i]) {
            chances.push((board.places[i].id, (mass(i) - before) / arrivals));
        }
    }
    chances
}

/// Active 8/1/1 at weights 4/3/2: order B, C, A.
const WORKED: [(f64, f64); 3] = [(8.0, 4.0), (1.0, 3.0), (1.0, 2.0)];

#[test]
fn the_worked_board_is_leveled_out() {
    let chances = chances(&board(&WORKED), 6.0, &[]);
    let rounded: Vec<_> = chances
        .iter()
        .map(|(id, p)| (id.0, (p * 1e4).round() / 1e4))
        .collect();
    assert_eq!(rounded, [(1, 0.6333), (2, 0.3667)]);
}

#[test]
fn the_emptiest_are_filled_first() {
    let board = board(&WORKED);
    for (arrivals, filled) in [(0.0, 1), (0.49, 1), (0.5, 2), (7.9, 2), (8.0, 3)] {
        assert_eq!(board.filled(arrivals, &[]), filled, "{arrivals}");
    }
}

proptest! {
    #[test]
    fn a_board_without_some_is_the_smaller_board(
        counts in prop::collection::vec((0_u32..20, 1_u32..9), 2..30),
        arrivals in 0.5..100.0_f64,
        outs in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let counts: Vec<_> = counts.iter().map(|(a, w)| (f64::from(*a), f64::from(*w))).collect();
        let board = board(&counts);
        let mut out: Vec<Place> = outs.iter().map(|i| *i.get(&board.places)).collect();
        out.sort_by(Place::compare);
        out.dedup();
        prop_assume!(out.len() < counts.len());
        let smaller = without(&board, &out);
        let (expected, got) = (level_out(&smaller, arrivals), chances(&board, arrivals, &out));
        let of = |list: &[(BackendId, f64)], id| {
            list.iter().find(|(i, _)| *i == id).map_or(0.0, |(_, p)| *p)
        };
        for place in &smaller.places {
            let (e, g) = (of(&expected, place.id), of(&got, place.id));
            prop_assert!((e - g).abs() < 1e-9, "{place:?}: {e} {g}");
        }
        let filled = |b: &Board, m: usize| b.places[..m].iter().map(|p| p.id).collect::<Vec<_>>();
        let mut kept = filled(&board, board.filled(arrivals, &out));
        kept.retain(|id| !out.iter().any(|o| o.id == *id));
        prop_assert_eq!(kept, filled(&smaller, smaller.filled(arrivals, &[])));
    }
}
