//! Ketama points as nginx makes them.

use super::Ring;
use crate::registry::Spec;
use crate::tests::pools::{dispatcher, members, spec};
use crate::values::BackendId;
use crate::{Dispatcher, Options};
use rand_core::RngCore as _;
use schema::rng::{Purpose, stream};

fn ring(weights: &[u32]) -> Ring {
    let consistent: Spec = spec("consistent-hash");
    let mut ring = Ring::of(&consistent);
    ring.on_backends_changed(dispatcher(&consistent, weights, 1).backends());
    ring
}

#[test]
fn points_are_those_of_ketama() {
    let ring = ring(&[4, 3, 2]);
    let points = ring.points();
    assert_eq!(points.len(), 1440);
    assert_eq!(points[0], (1_422_737, BackendId(1)));
    assert_eq!(points[1439], (4_292_040_329, BackendId(0)));
    for (hash, id) in [
        (1_218_346_405, 0),
        (4_190_568_871, 0),
        (3_644_472_607, 0),
        (2_745_812_646, 1),
        (1_855_037_311, 1),
        (1_282_125_208, 2),
        (475_796_791, 2),
    ] {
        assert!(points.contains(&(hash, BackendId(id))), "{hash}");
    }
}

/// Share of the circle per id.
fn arcs(ring: &Ring, n: usize) -> Vec<f64> {
    let mut arcs = vec![0.0; n];
    let mut previous = i64::from(ring.points()[ring.points().len() - 1].0) - (1 << 32);
    for (hash, id) in ring.points() {
        arcs[id.index()] += (i64::from(*hash) - previous) as f64 / 4_294_967_296.0;
        previous = i64::from(*hash);
    }
    arcs
}

#[test]
fn arcs_have_the_published_shares() {
    for (weights, expected) in [
        ([4, 3, 2], [0.4361, 0.3308, 0.2330]),
        ([1, 1, 1], [0.3558, 0.3067, 0.3376]),
    ] {
        let arcs = arcs(&ring(&weights), 3);
        for (arc, share) in arcs.iter().zip(expected) {
            assert!((arc - share).abs() < 0.0001, "{arcs:?}");
        }
    }
}

/// Largest over mean share of `n` equal backends with names drawn at random, over 200 rings: median and
/// 95th percentile.
fn skew(n: usize, points: u32) -> (f64, f64) {
    let text = spec(&format!("consistent-hash:points={points}"));
    let mut rng = stream(4, Purpose::ApiNames, points, n as u32);
    let mut skews: Vec<f64> = (0..200)
        .map(|_| {
            let mut pool = members(&vec![1; n]);
            for backend in &mut pool {
                backend.name = format!("{:016x}:8080", rng.next_u64());
            }
            let d = Dispatcher::new(&spec("random"), &pool, Options::default()).unwrap();
            let mut ring = Ring::of(&text);
            ring.on_backends_changed(d.backends());
            n as f64 * arcs(&ring, n).into_iter().fold(0.0, f64::max)
        })
        .collect();
    skews.sort_by(f64::total_cmp);
    ((skews[99] + skews[100]) / 2.0, skews[189])
}

/// Published medians and 95th percentiles. Two hundred rings tell a median to 0.03 and a 95th percentile
/// to 0.05, with a single point per backend to ten times that. Names that differ in a digit only are
/// worse off with one point: CRC-32 puts them close together.
#[test]
fn rings_are_as_uneven_as_published() {
    for (n, points, median, high) in [
        (3, 1, 1.76, 2.54),
        (3, 16, 1.20, 1.47),
        (3, 20, 1.19, 1.41),
        (3, 100, 1.08, 1.17),
        (3, 160, 1.06, 1.15),
        (3, 341, 1.04, 1.10),
        (3, 1365, 1.02, 1.05),
        (10, 20, 1.36, 1.63),
        (10, 160, 1.12, 1.21),
    ] {
        let wide = if points == 1 { 10.0 } else { 1.0 };
        let got = skew(n, points);
        assert!(
            (got.0 - median).abs() < 0.03 * wide,
            "{n} {points}: {got:?}"
        );
        assert!((got.1 - high).abs() < 0.05 * wide, "{n} {points}: {got:?}");
    }
}
