//! Processor sharing the slow and obvious way: at each event the work left of every request falls.

/// Departures in order, of requests that arrive at these times with this work.
pub(super) fn walk(arrivals: &[(f64, f64)], cores: f64) -> Vec<(u64, f64)> {
    let mut held: Vec<(u64, f64)> = Vec::new();
    let mut departures = Vec::with_capacity(arrivals.len());
    let (mut now, mut next) = (0.0, 0);
    while next < arrivals.len() || !held.is_empty() {
        let rate = (cores / held.len() as f64).min(1.0);
        let least = held
            .iter()
            .map(|(_, left)| *left)
            .fold(f64::INFINITY, f64::min);
        let departure = now + least / rate;
        let arrival = arrivals.get(next).map_or(f64::INFINITY, |a| a.0);
        let until = departure.min(arrival);
        for (_, left) in &mut held {
            *left -= (until - now) * rate;
        }
        now = until;
        if departure <= arrival {
            let first = held
                .iter()
                .enumerate()
                .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
            if let Some(at) = first.map(|(at, _)| at) {
                departures.push((held.remove(at).0, now));
            }
        } else {
            held.push((next as u64, arrivals[next].1));
            next += 1;
        }
    }
    departures
}

#[cfg(test)]
mod tests {
    use super::walk;

    #[test]
    fn the_walk_is_processor_sharing() {
        // Two of size 1 on one core: at half speed from 0.5 on.
        let done = walk(&[(0.0, 1.0), (0.5, 1.0)], 1.0);
        assert_eq!(done, [(0, 1.5), (1, 2.0)]);
        // On two cores each at full speed.
        assert_eq!(walk(&[(0.0, 1.0), (0.5, 1.0)], 2.0), [(0, 1.0), (1, 1.5)]);
        assert_eq!(walk(&[(0.0, 1.0)], 0.5), [(0, 2.0)]);
    }
}
