//! Dispatches that are not answered yet, by their running number.

use crate::time::Time;
use crate::values::BackendId;
// Never iterated, so its order cannot reach a decision; a tree would allocate per dispatch.
#[allow(clippy::disallowed_types)]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is remembered of a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) backend: BackendId,
    pub(super) class: u32,
    pub(super) at: Time,
    /// The backend's in_flight just after.
    pub(super) in_flight: u32,
    /// The backend's time in or out of service in which it began.
    pub(super) spell: u32,
}

/// The open dispatches.
#[derive(Debug, Clone, Default)]
#[allow(clippy::disallowed_types)]
pub(super) struct OpenDispatches(HashMap<u64, Open, BuildHasherDefault<NumberHasher>>);

impl OpenDispatches {
    pub(super) fn insert(&mut self, dispatch: u64, open: Open) {
        self.0.insert(dispatch, open);
    }

    pub(super) fn remove(&mut self, dispatch: u64) -> Option<Open> {
        self.0.remove(&dispatch)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Running numbers need no mixing beyond one multiplication.
#[derive(Debug, Clone, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
