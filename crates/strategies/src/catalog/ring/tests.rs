//! Ketama points as nginx makes them.

use super::Ring;
use crate::registry::Spec;
use crate::tests::pools::{dispatcher, spec};
use crate::values::BackendId;

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

#[test]
fn arcs_have_the_published_shares() {
    for (weights, expected) in [
        ([4, 3, 2], [0.4361, 0.3308, 0.2330]),
        ([1, 1, 1], [0.3558, 0.3067, 0.3376]),
    ] {
        let ring = ring(&weights);
        let mut arcs = [0.0; 3];
        let mut previous = i64::from(ring.points()[ring.points().len() - 1].0) - (1 << 32);
        for (hash, id) in ring.points() {
            arcs[id.index()] += (i64::from(*hash) - previous) as f64 / 4_294_967_296.0;
            previous = i64::from(*hash);
        }
        for (arc, share) in arcs.iter().zip(expected) {
            assert!((arc - share).abs() < 0.0001, "{arcs:?}");
        }
    }
}
