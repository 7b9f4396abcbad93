//! The order of the arms: blocks interleaved, each shuffled from the bench's seed.

use rand_core::RngCore as _;
use schema::manifest::{Arm, ArmState};
use schema::rng::{Purpose, shuffle, stream};

use crate::figures::comparison::AA_PREFIX;

/// Seeds are kept below 2^32 so that every JSON reader keeps them exact.
const SEED_BITS: u32 = 32;

/// Seed of the schedule that all arms of `block` (from 1) replay.
pub(crate) fn schedule_seed(seed: u64, block: u32) -> u64 {
    block_seeds(seed, block).0
}

/// (schedule seed, dispatcher seed) of a block: the same for all its arms.
fn block_seeds(seed: u64, block: u32) -> (u64, u64) {
    let mut rng = stream(seed, Purpose::BlockOrder, 1, block);
    let mut draw = || rng.next_u64() >> (64 - SEED_BITS);
    (draw(), draw())
}

/// File stem of an arm: `b01-a2`.
pub(crate) fn stem(arm: &Arm) -> String {
    format!("b{:02}-a{}", arm.block, arm.position)
}

/// Workload file of a block, relative to the result folder.
pub(crate) fn schedule_file(block: u32) -> String {
    format!("schedules/b{block:02}.json")
}

/// Every arm of the bench in running order. `bench` names the bench in run ids; the baseline (the
/// first strategy) appears a second time in each block.
pub(crate) fn arms(bench: &str, strategies: &[String], blocks: u32, seed: u64) -> Vec<Arm> {
    (1..=blocks)
        .flat_map(|block| block_arms(bench, strategies, block, seed))
        .collect()
}

fn block_arms(bench: &str, strategies: &[String], block: u32, seed: u64) -> Vec<Arm> {
    let mut order: Vec<(String, String)> =
        strategies.iter().map(|s| (s.clone(), s.clone())).collect();
    if let Some(baseline) = strategies.first() {
        order.push((format!("{AA_PREFIX}{baseline}"), baseline.clone()));
    }
    shuffle(&mut stream(seed, Purpose::BlockOrder, 0, block), &mut order);
    let (_, dispatcher_seed) = block_seeds(seed, block);
    order
        .into_iter()
        .zip(1..)
        .map(|((label, strategy), position)| {
            let mut arm = Arm {
                run_id: String::new(),
                block,
                position,
                label,
                strategy,
                seed: dispatcher_seed,
                state: ArmState::Planned,
                started_unix_ns: None,
                rows: None,
                rows_sha256: None,
                schedule: Some(schedule_file(block)),
                events: None,
                lateness_p50_us: None,
                lateness_p99_us: None,
                late_burn_share: None,
                flags: Vec::new(),
                mismatches: Vec::new(),
            };
            arm.run_id = format!("{bench}-{}", stem(&arm));
            arm.events = Some(format!("events/{}.jsonl", stem(&arm)));
            arm
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{arms, schedule_seed};
    use std::collections::BTreeSet;

    fn strategies() -> Vec<String> {
        ["round-robin", "random", "least-request"]
            .map(String::from)
            .into()
    }

    #[test]
    fn each_block_holds_every_strategy_once_and_the_baseline_twice() {
        let arms = arms("t", &strategies(), 7, 1);
        assert_eq!(arms.len(), 28);
        for block in 1..=7 {
            let labels: BTreeSet<&str> = arms
                .iter()
                .filter(|a| a.block == block)
                .map(|a| a.label.as_str())
                .collect();
            let expected = ["aa:round-robin", "least-request", "random", "round-robin"];
            assert_eq!(labels, BTreeSet::from(expected));
        }
        let ids: BTreeSet<&str> = arms.iter().map(|a| a.run_id.as_str()).collect();
        assert_eq!(ids.len(), 28);
        assert_eq!(arms[5].run_id, "t-b02-a2");
    }

    #[test]
    fn the_order_differs_between_blocks_and_repeats_with_the_seed() {
        let order = |seed| -> Vec<String> {
            let arms = arms("t", &strategies(), 8, seed);
            arms.into_iter().map(|a| a.label).collect()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let one = order(1);
        let blocks: BTreeSet<&[String]> = one.chunks(4).collect();
        assert!(blocks.len() > 3, "{blocks:?}");
    }

    #[test]
    fn all_arms_of_a_block_share_their_seeds_and_blocks_do_not() {
        let arms = arms("t", &strategies(), 3, 9);
        assert!(arms[..4].iter().all(|a| a.seed == arms[0].seed));
        assert_ne!(arms[0].seed, arms[4].seed);
        assert_ne!(schedule_seed(9, 1), schedule_seed(9, 2));
        assert_ne!(schedule_seed(9, 1), arms[0].seed);
        assert_eq!(schedule_seed(9, 1), schedule_seed(9, 1));
    }
}
