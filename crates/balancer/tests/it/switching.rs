//! Every strategy of the registry live, before real workers: changed under load, its shares, its log.

use crate::support::{Balancer, Worker, connect, fields, program, read_head, status};
use predictor::header::{R2, SCHEMA, Splits, TrainedOn, UNIT};
use predictor::{ApiName, Axis, Header, LatencyTable, Shape, Statistics};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use strategies::registry::{ENTRIES, Entry, Group, HonorsWeights};

/// Requests per strategy.
const REQUESTS: usize = 150;
const CLIENTS: usize = 3;
/// Workers and their cores, which are their weights too.
const WORKERS: [(&str, u32); 3] = [("a", 4), ("b", 3), ("c", 2)];

/// A made-up latency model in a file: longer with more others there and fewer cores.
fn model(folder: &Path, name: &str, statistics: Statistics) -> PathBuf {
    let features = match statistics {
        Statistics::Docker => ["cpu_percent", "memory_used_mib"],
        _ => ["active", "mean50"],
    };
    let borders = [vec![0.5, 1.5, 2.5, 3.5], vec![10.0]];
    let shape = |cores: u32| Shape {
        cores: f64::from(cores),
        memory_gb: 1.0,
    };
    let containers: Vec<Shape> = (2..=4).map(shape).collect();
    let unknown = |method: Option<&str>| ApiName {
        method: method.map(String::from),
        url: None,
    };
    let apis = vec![
        ApiName::new("GET", "/items/1"),
        unknown(Some("GET")),
        unknown(None),
    ];
    let mut cells = Vec::new();
    for api in 0..apis.len() {
        for shape in &containers {
            for active in 0..=borders[0].len() {
                for mean in 0..=borders[1].len() {
                    cells.push((5 + api + mean) as f64 * (active + 1) as f64 / shape.cores);
                }
            }
        }
    }
    let none = R2 {
        validation: None,
        test: None,
    };
    let axis = |i: usize| Axis {
        feature: features[i].into(),
        borders: borders[i].clone(),
    };
    let header = Header {
        schema: SCHEMA.into(),
        model_sha256: "0".repeat(64),
        catboost_version: "made up".into(),
        kept_trees: 1,
        cap_trees: 1,
        r2: Splits {
            random: none,
            blocked: none,
        },
        trained_on: TrainedOn {
            strategy: "round-robin".into(),
            load: vec![0.6],
            rows: 1,
            seed: 1,
            statistics,
        },
        unit: UNIT.into(),
        axes: [axis(0), axis(1)],
        containers,
        apis,
    };
    let table = LatencyTable::new(header, cells).expect("a good table");
    let path = folder.join(name);
    std::fs::write(&path, table.to_bytes().expect("bytes")).unwrap();
    path
}

struct Bed {
    balancer: Balancer,
    models: Vec<String>,
    _workers: [Worker; 3],
}

/// Three workers, weights and cores 4/3/2, and a balancer that logs.
fn bed(folder: &Path, strategy: &str) -> Bed {
    let workers = WORKERS.map(|(name, cores)| Worker::start(name, cores));
    let mut models = Vec::new();
    for (name, statistics) in [
        ("polled", Statistics::Polled),
        ("live", Statistics::Live),
        ("docker", Statistics::Docker),
    ] {
        let path = model(folder, &format!("{name}.plbtab"), statistics);
        models.push("--model".into());
        models.push(path.display().to_string());
    }
    let log = folder.join("first.jsonl").display().to_string();
    let mut flags = vec!["--strategy", strategy, "--event-log", &log];
    flags.extend(models.iter().map(String::as_str));
    let members: Vec<String> = WORKERS
        .iter()
        .zip(&workers)
        .map(|((name, cores), worker)| {
            let address = worker.address;
            format!("name={name},url=http://{address},weight={cores},cores={cores},memory-gb=1")
        })
        .collect();
    let balancer = Balancer::of_members(&members, &flags);
    Bed {
        balancer,
        models,
        _workers: workers,
    }
}

/// One kept connection: who answered, request by request.
struct Client(std::net::TcpStream, u32);

impl Client {
    fn new(address: SocketAddr) -> Self {
        Self(connect(address), 0)
    }

    fn get(&mut self) -> char {
        self.1 += 1;
        let path = format!("/items/{}", self.1);
        let head = format!("GET {path} HTTP/1.1\r\nHost: shop\r\nx-task-size-mi: 7.45\r\n\r\n");
        self.0.write_all(head.as_bytes()).unwrap();
        let answer = read_head(&mut self.0);
        assert_eq!(status(&answer), 200, "{answer}");
        let length = fields(&answer, "content-length")[0].parse().unwrap();
        self.0.read_exact(&mut vec![0; length]).unwrap();
        let name = fields(&answer, "x-container")[0];
        name.chars().next().unwrap()
    }
}

/// So many requests from a few clients at once; answers per worker.
fn load(address: SocketAddr) -> [usize; 3] {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::new(address);
                (0..REQUESTS / CLIENTS)
                    .map(|_| client.get())
                    .collect::<String>()
            })
        })
        .collect();
    let answers: String = clients.into_iter().map(|c| c.join().unwrap()).collect();
    ['a', 'b', 'c'].map(|name| answers.matches(name).count())
}

fn put(balancer: &Balancer, strategy: &str) {
    let order = format!("{{\"strategy\":\"{strategy}\"}}");
    let (code, text) = balancer.admin("PUT", "/api/strategy", &order);
    assert_eq!(code, 200, "{strategy}: {text}");
}

/// Replays logs in one process; every pick must be equal in each.
fn replays(bed: &Bed, logs: &[PathBuf], picks_at_least: u64) {
    let done = program()
        .args(["replay", "--json"])
        .args(&bed.models)
        .args(logs)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{text}{errors}");
    assert_eq!(text.lines().count(), logs.len());
    for line in text.lines() {
        let verdict: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(verdict["picks"], verdict["equal"], "{line}");
        assert!(verdict["picks"].as_u64() >= Some(picks_at_least), "{line}");
    }
}

#[test]
fn strategies_are_switched_under_load_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path(), "round-robin");
    let done = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (done, served) = (Arc::clone(&done), Arc::clone(&served));
            let address = bed.balancer.traffic;
            std::thread::spawn(move || {
                let mut client = Client::new(address);
                while !done.load(Ordering::SeqCst) {
                    client.get();
                    served.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for entry in ENTRIES {
        put(&bed.balancer, entry.name);
        let enough = served.load(Ordering::SeqCst) + REQUESTS as u64;
        bed.balancer
            .until(entry.name, |_| served.load(Ordering::SeqCst) >= enough);
    }
    done.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|c| c.join().unwrap());
    let state = bed.balancer.state();
    for backend in state["backends"].as_array().unwrap() {
        assert_eq!(backend["errors"], 0, "{state}");
        assert_eq!(backend["in_flight"], 0, "{state}");
    }
    bed.balancer.signal("-TERM");
    assert_eq!(bed.balancer.wait().code(), Some(0));
    let all = (ENTRIES.len() * REQUESTS) as u64;
    replays(&bed, &[folder.path().join("first.jsonl")], all);
}

/// What the shares of 150 requests may be.
#[derive(Debug)]
enum Shares {
    /// Exactly these.
    Exact([usize; 3]),
    /// Within five standard deviations of draws with these weights, each of which decides so many
    /// requests.
    Drawn([f64; 3], usize),
    /// Load decides: everybody is used, nobody for more than three quarters.
    Spread,
    /// What is predicted decides: the strongest gets no less than the weakest.
    Strongest,
    /// What was seen or told decides, and may always have favored the same one: a known flaw.
    Any,
}

impl Shares {
    fn allow(&self, counts: [usize; 3]) -> bool {
        let all = REQUESTS as f64;
        match self {
            Self::Exact(exact) => counts == *exact,
            Self::Drawn(weights, each) => {
                let sum: f64 = weights.iter().sum();
                counts.iter().zip(weights).all(|(count, weight)| {
                    let p = weight / sum;
                    let sigma = (all * *each as f64 * p * (1.0 - p)).sqrt();
                    (*count as f64 - all * p).abs() <= 5.0 * sigma
                })
            }
            Self::Spread => counts.iter().all(|c| *c > 0 && *c <= REQUESTS * 3 / 4),
            Self::Strongest => counts[0] >= counts[2],
            Self::Any => true,
        }
    }
}

fn shares_of(entry: &Entry) -> Shares {
    // 150 = 16 cycles of nine and six more: AAAABB in blocks, ABCABA or ABCACA spread out.
    match entry.name {
        "round-robin" => return Shares::Exact([50, 50, 50]),
        "weighted-round-robin" => return Shares::Exact([68, 50, 32]),
        "smooth-weighted-round-robin" | "edf-wrr" => return Shares::Exact([67, 50, 33]),
        "static-stride" => return Shares::Exact([67, 49, 34]),
        _ => {}
    }
    let by_weight = [4.0, 3.0, 2.0];
    let is_stuck = |flaw: &&str| ["T14", "T18"].contains(flaw);
    match entry.group {
        // Each client asks for the same keys.
        Group::KeyBased => Shares::Drawn(by_weight, CLIENTS),
        Group::LoadBlind if entry.honors_weights == HonorsWeights::Yes => {
            Shares::Drawn(by_weight, 1)
        }
        Group::LoadBlind => Shares::Drawn([1.0; 3], 1),
        _ if entry.known_flaws.iter().any(is_stuck) => Shares::Any,
        Group::Predictive | Group::Oracle => Shares::Strongest,
        _ => Shares::Spread,
    }
}

#[test]
fn every_strategy_serves_with_its_shares_and_a_log_that_replays() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path(), "random");
    let mut logs = Vec::new();
    for entry in ENTRIES {
        let log = format!("{}.jsonl", entry.name);
        let order = format!(
            "{{\"strategy\":\"{}\",\"seed\":9,\"event_log\":\"{log}\"}}",
            entry.name
        );
        bed.balancer.until("idle", |b| b.state()["in_flight"] == 0);
        let (code, text) = bed.balancer.admin("POST", "/api/reset", &order);
        assert_eq!(code, 200, "{}: {text}", entry.name);
        let counts = load(bed.balancer.traffic);
        assert_eq!(counts.iter().sum::<usize>(), REQUESTS, "{}", entry.name);
        let right = shares_of(entry);
        assert!(right.allow(counts), "{}: {counts:?}, {right:?}", entry.name);
        logs.push(folder.path().join(&log));
    }
    bed.balancer.signal("-TERM");
    assert_eq!(bed.balancer.wait().code(), Some(0));
    replays(&bed, &logs, REQUESTS as u64);
}

#[test]
fn a_strategy_that_probes_gets_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let workers = WORKERS.map(|(name, cores)| Worker::start(name, cores));
    let addresses: Vec<_> = workers.iter().map(|w| w.address).collect();
    let log = path.display().to_string();
    let flags = ["--strategy", "prequal", "--event-log", &log];
    let mut balancer = Balancer::in_front_of(&addresses, &flags);
    // Three a request are asked for; a busy machine answers many of them too late.
    let answered = "plumbline_probes_total{backend=\"a\",result=\"ok\"}";
    balancer.until("probed", |b| {
        b.raw("GET /items/1?mi=7.45 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        b.metric(answered) >= 5
    });
    balancer.signal("-TERM");
    balancer.wait();
    let text = std::fs::read_to_string(&path).unwrap();
    let probed = text.matches("\"source\":\"probe\"").count();
    // Of two answers the later one may arrive first, and the other is dropped then.
    assert!(probed >= 3, "{probed} answers in the log");
    let replayed = program().arg("replay").arg(&path).output().unwrap();
    assert!(replayed.status.success(), "{replayed:?}");
}

#[test]
fn what_the_engine_tells_decides_once_it_is_there_and_possible() {
    let folder = tempfile::tempdir().unwrap();
    let bed = bed(folder.path(), "plb-docker:max-age=600s");
    let balancer = &bed.balancer;
    let mut client = Client::new(balancer.traffic);
    let stand_ins = || balancer.metric("plumbline_stand_ins_total");
    let tell = |cpu: [f64; 3]| {
        let report = |(name, cpu): (&str, f64)| serde_json::json!({"backend": name, "cpu_percent": cpu, "memory_used_bytes": 6 << 20});
        let reports: Vec<_> = ["a", "b", "c"].into_iter().zip(cpu).map(report).collect();
        let body = serde_json::Value::from(reports).to_string();
        let (code, text) = balancer.admin("POST", "/api/reports", &body);
        assert_eq!(code, 204, "{text}");
    };
    // Nothing is told yet: the fewest own requests for the cores.
    assert_eq!((client.get(), stand_ins()), ('a', 1));
    // Two cores cannot use 5,000 %.
    tell([400.0, 300.0, 5_000.0]);
    assert_eq!((client.get(), stand_ins()), ('a', 2));
    tell([400.0, 300.0, 0.0]);
    assert_eq!((client.get(), stand_ins()), ('c', 2));
}
