//! Cost of every strategy, as a table over the registry, at growing pools.
//!
//! `cargo bench -p plumbline-strategies` prints it in Markdown; `-- NAME` only what contains NAME, `-- NAME:k=v` that
//! one. Per pool size: median ns of a pick alone and of a pick with its dispatch and a response, and the
//! instructions of both where callgrind is installed. The median of several rounds is shown, since a
//! shared host disturbs single ones; instructions do not depend on the host's load. It ends with picks at
//! growing numbers in flight (`-- --depths`) and with what all cores reach on one lock (`-- --hot-lock`). Allocations per warm pick at three backends are asserted to be none.

#![allow(clippy::print_stdout, clippy::print_stderr)]
// A benchmark is its own driver: it reads the clock and prints.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

extern crate plumbline_strategies as strategies;

mod contention;
mod counts;
mod scenario;

#[path = "../../src/tests/models.rs"]
#[allow(unreachable_pub, dead_code)]
mod models;

use counts::What;
use scenario::Scenario;
use std::time::Instant;
use strategies::Spec;
use strategies::registry::ENTRIES;

const POOLS: [usize; 5] = [3, 10, 100, 1_000, 10_000];
const ROUNDS: usize = 7;
/// Longest time a round may take, ns.
const ROUND_NS: u128 = 10_000_000;
/// A pick longer than this is not counted: callgrind is fifty times slower, and a scan's instructions
/// at a thousand backends tell those at ten thousand.
const LONG_NS: f64 = 5_000.0;

/// Median over rounds of ns per call.
fn median_ns(mut run: impl FnMut(usize)) -> f64 {
    let begin = Instant::now();
    run(8);
    let each_ns = (begin.elapsed().as_nanos() / 8).max(1);
    let count = (ROUND_NS / each_ns).clamp(8, 200_000) as usize;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            run(count);
            begin.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn assert_no_allocation(spec: &Spec) {
    let mut scenario = Scenario::new(spec, 3).expect("every strategy serves three");
    let made = counts::allocations(|| scenario.steps(2_000));
    assert_eq!(made, 0, "{spec}: allocations in 2,000 warm picks");
}

fn cell(spec: &Spec, n: usize, with_instructions: bool) -> String {
    let Some(mut scenario) = Scenario::new(spec, n) else {
        return "refused".into();
    };
    let whole = median_ns(|count| scenario.steps(count));
    let alone = median_ns(|count| scenario.picks(count));
    if !with_instructions || alone > LONG_NS {
        return format!("{alone:.0} / {whole:.0}");
    }
    let counted = |what| match counts::instructions(spec, n, what) {
        Some(instructions) => format!("{instructions:.0}"),
        None => "?".into(),
    };
    let (picks, steps) = (counted(What::Picks), counted(What::Steps));
    format!("{alone:.0} / {whole:.0} ({picks} / {steps})")
}

fn table(specs: &[Spec], with_instructions: bool) {
    let unit = if with_instructions {
        "ns (instructions)"
    } else {
        "ns"
    };
    println!("| pick / with response, {unit} | n = 3 | 10 | 100 | 1,000 | 10,000 |");
    println!("|---|{}", "---:|".repeat(POOLS.len()));
    for spec in specs {
        assert_no_allocation(spec);
        print!("| `{spec}` |");
        for n in POOLS {
            print!(" {} |", cell(spec, n, with_instructions));
        }
        println!();
    }
}

/// Picks of three whose cost grows with what is in flight; `wl-mc` also without its speed estimate.
fn depths() {
    println!("\n| pick, ns, at so many in flight per backend | 1 | 5 | 10 | 20 |");
    println!("|---|---:|---:|---:|---:|");
    let names = ["wl-mc:speed=off", "wl-mc", "oracle-own", "oracle-marginal"];
    for (pool, cores) in [("4/3/2", [4.0, 3.0, 2.0]), ("0.8/0.6/0.4", [0.8, 0.6, 0.4])] {
        for name in names {
            let spec: Spec = name.parse().expect("a strategy");
            print!("| `{name}`, {pool} cores |");
            for depth in [1, 5, 10, 20] {
                let mut scenario = Scenario::open(&spec, 3, cores, 3 * depth).expect("a pool");
                print!(" {:.0} |", median_ns(|count| scenario.picks(count)));
            }
            println!();
        }
    }
}

/// What all cores reach together on one lock.
fn hot_lock() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("\none lock, {threads} threads, ns per pick with response in total throughput:");
    for name in [
        "least-request",
        "least-request:ties=random",
        "weighted-least-request",
    ] {
        let spec: Spec = name.parse().expect("a strategy");
        print!("{name:<36}");
        for n in [3, 1_000] {
            let scenario = Scenario::new(&spec, n).expect("a pool");
            let ns = contention::ns_per_pick(&spec, scenario.dispatcher, threads);
            print!("{:>22}", format!("n = {n}: {ns:.0}"));
        }
        println!();
    }
}

fn specs(filter: &str) -> Vec<Spec> {
    if let Ok(one) = filter.parse() {
        return vec![one];
    }
    let wanted = ENTRIES.iter().filter(|e| e.name.contains(filter));
    wanted.map(Spec::of).collect()
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let arguments: Vec<String> = arguments.collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--count", what, name, n, count] => {
            let spec: Spec = name.parse().expect("a strategy");
            let n = n.parse().expect("a pool size");
            let mut scenario = Scenario::new(&spec, n).expect("a pool");
            let count = count.parse().expect("a number of calls");
            counts::counted(&mut scenario, What::parse(what), count);
        }
        ["--depths"] => depths(),
        ["--hot-lock"] => hot_lock(),
        [] => {
            table(&specs(""), counts::callgrind_is_here());
            depths();
            hot_lock();
        }
        words => {
            let (options, names): (Vec<&str>, Vec<&str>) =
                words.iter().partition(|word| word.starts_with('-'));
            let specs = specs(names.first().unwrap_or(&""));
            if names.len() > 1 || options.iter().any(|o| *o != "--ns") || specs.is_empty() {
                eprintln!(
                    "cargo bench ... -- [--ns] [part of a strategy's name] | --depths | --hot-lock"
                );
                std::process::exit(2);
            }
            table(&specs, options.is_empty() && counts::callgrind_is_here());
        }
    }
}
