//! Cost of a look-up and of choosing among three containers, on a table of the usual size
//! (12 APIs x 3 containers x 15 x 255 bins, 1.1 MB).
//!
//! `cargo bench -p plumbline-predictor` prints the median ns of several rounds, since a shared host
//! disturbs single ones. `-- --count CASE N` makes N of one case and nothing else: run it twice under
//! `valgrind --tool=callgrind` with different N, and the difference of the counts over the difference
//! of N is instructions per call.

#![allow(clippy::print_stdout, clippy::print_stderr)]
// A benchmark is its own driver: it reads the clock and prints.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use plumbline_predictor::header::{R2, SCHEMA, Shape, Splits, TrainedOn, UNIT};
use plumbline_predictor::{Api, ApiName, Axis, Bin, Candidate, Container, Header};
use plumbline_predictor::{LatencyTable, Statistics};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 15;
const CALLS: usize = 1_000_000;
type Case = fn(&World, usize) -> f64;
const CASES: [(&str, Case); 4] = [
    ("predict, both bins known", predict),
    ("argmin of 3, mean bins known", argmin),
    ("argmin of 3, mean bins searched", argmin_searching),
    ("argmin of 3, API by name as well", argmin_by_name),
];

struct World {
    table: LatencyTable,
    apis: Vec<Api>,
    containers: [Container; 3],
    /// Means and counts as if drawn: a fixed scramble, larger than the branch predictor's memory.
    means: Vec<f32>,
    mean_bins: Vec<Bin>,
    counts: Vec<u32>,
}

fn world() -> World {
    let mut apis: Vec<ApiName> = (0..10)
        .map(|i| ApiName::new("GET", &format!("/orders/{i}")))
        .collect();
    apis.push(ApiName {
        method: Some("GET".into()),
        url: None,
    });
    apis.push(ApiName {
        method: None,
        url: None,
    });
    let r2 = R2 {
        validation: None,
        test: None,
    };
    let header = Header {
        schema: SCHEMA.into(),
        model_sha256: "0".repeat(64),
        catboost_version: String::new(),
        kept_trees: 0,
        cap_trees: 0,
        r2: Splits {
            random: r2,
            blocked: r2,
        },
        trained_on: TrainedOn {
            strategy: String::new(),
            load: Vec::new(),
            rows: 0,
            seed: 0,
            statistics: Statistics::Live,
        },
        unit: UNIT.into(),
        axes: [
            Axis {
                feature: "active".into(),
                borders: (0..14).map(|i| i as f32 + 0.5).collect(),
            },
            Axis {
                feature: "mean50".into(),
                borders: (0..254).map(|i| 40.0 + i as f32).collect(),
            },
        ],
        containers: [4.0, 3.0, 2.0]
            .map(|c| Shape {
                cores: c,
                memory_gb: 3.0 * c,
            })
            .to_vec(),
        apis,
    };
    let cells = (0..12 * 3 * 15 * 255).map(|i| f64::from(scramble(i) % 1000));
    let table = LatencyTable::new(header, cells.collect()).expect("a whole table");
    let means: Vec<f32> = (0..4096)
        .map(|i| 30.0 + (scramble(i) % 300) as f32)
        .collect();
    World {
        apis: (0..10)
            .map(|i| table.api("GET", &format!("/orders/{i}")))
            .collect(),
        containers: [4.0, 3.0, 2.0].map(|c| table.container(c, 3.0 * c)),
        mean_bins: means.iter().map(|x| table.second_bin(*x)).collect(),
        counts: (0..4096).map(|i| scramble(i + 9999) % 16).collect(),
        means,
        table,
    }
}

fn scramble(i: u32) -> u32 {
    i.wrapping_mul(2_654_435_761) >> 7
}

fn predict(w: &World, i: usize) -> f64 {
    let first = w.table.count_bin(w.counts[i % 4096]);
    w.table.predict(
        w.apis[i % 10],
        w.containers[i % 3],
        first,
        w.mean_bins[i % 4096],
    )
}

fn candidates(w: &World, i: usize, bin: impl Fn(usize) -> Bin) -> [Candidate; 3] {
    std::array::from_fn(|k| Candidate {
        container: w.containers[k],
        active: w.counts[(i + k) % 4096],
        mean50: bin((i + k) % 4096),
    })
}

fn argmin(w: &World, i: usize) -> f64 {
    best(w, w.apis[i % 10], &candidates(w, i, |k| w.mean_bins[k]))
}

fn argmin_searching(w: &World, i: usize) -> f64 {
    best(
        w,
        w.apis[i % 10],
        &candidates(w, i, |k| w.table.second_bin(w.means[k])),
    )
}

fn argmin_by_name(w: &World, i: usize) -> f64 {
    let urls = ["/orders/0", "/orders/7", "/orders/3", "/none"];
    best(
        w,
        w.table.api("GET", urls[i % 4]),
        &candidates(w, i, |k| w.mean_bins[k]),
    )
}

fn best(w: &World, api: Api, candidates: &[Candidate]) -> f64 {
    let (place, ms) = w.table.argmin(api, candidates).expect("three candidates");
    place as f64 + ms
}

fn run(case: Case, world: &World, calls: usize) {
    for i in 0..calls {
        black_box(case(black_box(world), i));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let world = world();
    if let [flag, case, calls] = &arguments[..]
        && flag == "--count"
    {
        let (case, calls) = (case.parse::<usize>(), calls.parse::<usize>());
        run(
            CASES[case.expect("a case, from 0")].1,
            &world,
            calls.expect("a number of calls"),
        );
        return;
    }
    for (name, case) in CASES {
        let mut ns: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begin = Instant::now();
                run(case, &world, CALLS);
                begin.elapsed().as_nanos() as f64 / CALLS as f64
            })
            .collect();
        ns.sort_by(f64::total_cmp);
        println!(
            "{name:34} median {:5.1} ns, best {:5.1} ns",
            ns[ROUNDS / 2],
            ns[0]
        );
    }
}
