//! A ketama ring: points of every member on a circle of 32-bit hashes.

use super::key::crc32;
use crate::backends::Backends;
use crate::choose::weight_sum;
use crate::registry::{Kind, Parameter, Spec};
use crate::values::BackendId;

/// Points of a ring at most.
const MAX_POINTS: u64 = 8_388_608;

/// The parameter `points`.
pub(super) const PARAMETER: Parameter = Parameter {
    name: "points",
    kind: Kind::Integer { min: 1, max: 4096 },
    or: &[],
    default: "160",
    summary: "points on the ring per unit of weight; more are more even and larger",
};

/// Refuses a pool whose ring would be too large.
pub(super) fn check(spec: &Spec, backends: &Backends) -> Result<(), String> {
    let points = spec.integer("points").unwrap_or(160) * weight_sum(backends.members());
    if points > MAX_POINTS {
        return Err(format!(
            "{}: the ring would have {points} points (allowed: at most {MAX_POINTS}); use fewer \
             points or smaller weights",
            spec.name()
        ));
    }
    Ok(())
}

/// The ring, sorted by hash; of equal hashes the earlier position only.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    points_per_weight: u64,
    points: Vec<(u32, BackendId)>,
    /// Whom the points were made for.
    made_for: Vec<(BackendId, u32)>,
}

impl Ring {
    pub(super) fn of(spec: &Spec) -> Self {
        Self {
            points_per_weight: spec.integer("points").unwrap_or(160),
            points: Vec::new(),
            made_for: Vec::new(),
        }
    }

    /// Owners from the key's point on, once around.
    pub(super) fn walk(&self, key: &[u8]) -> impl Iterator<Item = BackendId> + '_ {
        let hash = crc32(&[key]);
        let at = self.points.partition_point(|(point, _)| *point < hash);
        let (before, after) = self.points.split_at(at);
        after.iter().chain(before).map(|(_, id)| *id)
    }

    /// Makes the points anew if members or weights changed; a drain or ejection only walks on.
    pub(super) fn on_backends_changed(&mut self, backends: &Backends) {
        let members = || backends.members().map(|b| (b.id, b.weight));
        if members().eq(self.made_for.iter().copied()) {
            return;
        }
        self.made_for = members().collect();
        self.points.clear();
        for backend in backends.members() {
            let count = self.points_per_weight * u64::from(backend.weight);
            let (host, port) = host_and_port(&backend.name);
            let base = crc_state(host, port);
            let mut previous = [0; 4];
            for _ in 0..count {
                let mut hasher = base.clone();
                hasher.update(&previous);
                let hash = hasher.finalize();
                self.points.push((hash, backend.id));
                previous = hash.to_le_bytes();
            }
        }
        // Ids grow with the position, so sorting by both keeps the earlier position first.
        self.points.sort_unstable();
        self.points.dedup_by_key(|(hash, _)| *hash);
    }

    #[cfg(test)]
    pub(crate) fn points(&self) -> &[(u32, BackendId)] {
        &self.points
    }
}

fn crc_state(host: &str, port: &str) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(host.as_bytes());
    hasher.update(&[0]);
    hasher.update(port.as_bytes());
    hasher
}

/// Splits off the text after the last colon if it is all digits.
fn host_and_port(name: &str) -> (&str, &str) {
    match name.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, port)
        }
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests;
