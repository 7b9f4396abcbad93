//! Cost of every strategy, as a table over the registry: ns per pick alone, and per pick with its
//! dispatch and response, at growing pools.
//!
//! `cargo bench -p plumbline-strategies` prints it; `-- NAME` only what contains NAME. The median of
//! several rounds is shown, since a shared host disturbs single ones. `-- --count NAME N PICKS` makes
//! so many picks and nothing else: run it twice under callgrind with different PICKS, and the
//! difference of the two counts over the difference of PICKS is instructions per pick.

// A benchmark is its own driver: it reads the clock and prints.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use plumbline_strategies::registry::ENTRIES;
use plumbline_strategies::{Answer, Dispatcher, NewBackend, Options, Report, Request};
use plumbline_strategies::{Source, Spec, Status, Time};
use std::hint::black_box;
use std::time::Instant;

const POOLS: [usize; 5] = [3, 10, 100, 1_000, 10_000];
const ROUNDS: usize = 7;
/// Longest time a round may take, ns.
const ROUND_NS: u128 = 20_000_000;
/// Requests kept in flight per pool, at most, so that loads differ.
const OPEN: usize = 64;

fn pool(n: usize) -> Vec<NewBackend> {
    (0..n)
        .map(|i| NewBackend {
            name: format!("worker-{i}:8080"),
            url: String::new(),
            weight: [4, 3, 2][i % 3],
            cores: [4.0, 3.0, 2.0][i % 3],
            memory_mib: 1024.0,
        })
        .collect()
}

struct Bench {
    dispatcher: Dispatcher,
    open: std::collections::VecDeque<u64>,
    urls: Vec<String>,
    now: Time,
    made: usize,
}

impl Bench {
    /// A warm dispatcher: every backend has reported and some requests are in flight.
    fn new(spec: &Spec, n: usize) -> Option<Self> {
        let dispatcher = Dispatcher::new(spec, &pool(n), Options::default()).ok()?;
        let mut bench = Self {
            dispatcher,
            open: std::collections::VecDeque::with_capacity(OPEN + 1),
            urls: (0..64).map(|i| format!("/items/{i}")).collect(),
            now: Time::ZERO,
            made: 0,
        };
        let ids: Vec<_> = bench.dispatcher.backends().available_ids().to_vec();
        for (i, id) in ids.into_iter().enumerate() {
            for source in [Source::Poll, Source::Piggyback, Source::Probe] {
                let report = Report {
                    active: Some(i as u32 % 5),
                    qps: Some(10.0),
                    utilization: Some(0.5),
                    rif_latency_ms: Some(20.0),
                    ..Report::empty(source, 0)
                };
                bench.dispatcher.report(Time::ZERO, id, None, report).ok()?;
            }
        }
        bench.steps(200);
        Some(bench)
    }

    /// Picks, each with its dispatch and the response of an older one.
    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.now = self.now.plus_ns(1_000);
            self.made += 1;
            let request = Request {
                url: &self.urls[self.made % self.urls.len()],
                ..Request::default()
            };
            let made = self.dispatcher.pick(self.now, &request).expect("eligible");
            self.open.push_back(made.id);
            if self.open.len() > OPEN {
                let oldest = self.open.pop_front().expect("one is open");
                let answer = Answer::new(Status::Ok);
                black_box(
                    self.dispatcher
                        .respond(self.now, oldest, &answer)
                        .expect("open"),
                );
            }
        }
    }

    /// Picks that are not dispatched.
    fn picks(&mut self, count: usize) {
        for _ in 0..count {
            self.now = self.now.plus_ns(1_000);
            self.made += 1;
            let request = Request {
                url: &self.urls[self.made % self.urls.len()],
                ..Request::default()
            };
            black_box(self.dispatcher.pick_only(self.now, &request));
        }
    }
}

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

fn table(filter: &str) {
    print!("{:<32}", "ns: pick / with response");
    for n in POOLS {
        print!("{:>17}", format!("n = {n}"));
    }
    println!();
    for entry in ENTRIES.iter().filter(|e| e.name.contains(filter)) {
        print!("{:<32}", entry.name);
        for n in POOLS {
            let cell = Bench::new(&Spec::of(entry), n).map(|mut bench| {
                let pick = median_ns(|count| bench.picks(count));
                let whole = median_ns(|count| bench.steps(count));
                format!("{pick:.0} / {whole:.0}")
            });
            print!("{:>17}", cell.unwrap_or_else(|| "refused".into()));
        }
        println!();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match arguments.as_slice() {
        [flag, name, n, picks] if flag == "--count" => {
            let spec: Spec = name.parse().expect("a strategy");
            let mut bench = Bench::new(&spec, n.parse().expect("a pool size")).expect("a pool");
            bench.picks(picks.parse().expect("a number of picks"));
        }
        [filter] => table(filter),
        _ => table(""),
    }
}
