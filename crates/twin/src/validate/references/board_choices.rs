//! The best of d by the board: d draws **with replacement** among equal workers, the lowest count that
//! the newest poll shows, ties to the first drawn (Mitzenmacher 2000).

use super::{entry, shown};
use schema::rng::below;
use strategies::registry::{Entry, Read};
use strategies::strategy::Rng;
use strategies::{BackendId, Backends, Request, Strategy, Time};

/// Two draws.
pub(in crate::validate) static TWO: Entry = entry("board-choices-2", &[Read::Poll], |_, _| {
    Box::new(BoardChoices::<2>)
});
/// Three.
pub(in crate::validate) static THREE: Entry = entry("board-choices-3", &[Read::Poll], |_, _| {
    Box::new(BoardChoices::<3>)
});

#[derive(Debug, Clone)]
struct BoardChoices<const D: u32>;

impl<const D: u32> Strategy for BoardChoices<D> {
    fn pick(
        &mut self,
        _now: Time,
        _request: &Request<'_>,
        backends: &Backends,
        rng: &mut Rng,
    ) -> Option<BackendId> {
        let n = backends.eligible_len() as u64;
        if n == 0 {
            return None;
        }
        let drawn = (0..D).map(|_| below(rng, n) as usize);
        let best = drawn.min_by_key(|&at| shown(backends, at))?;
        Some(backends.eligible_at(best).id)
    }
}
