//! Pools and short runs that tests share.

use super::models::options;
use crate::registry::ENTRIES;
use crate::registry::{Entry, Kind, Parameter};
use crate::{Answer, BackendId, Dispatcher, NewBackend, Options, Request, Spec, Status, Time};

/// The spelled-out strategy.
pub(crate) fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Members named `worker-a:8080`, `worker-b:8080`, ... with these weights; cores equal the weight.
pub(crate) fn members(weights: &[u32]) -> Vec<NewBackend> {
    let name = |i: usize| match i {
        0..26 => format!("worker-{}:8080", (b'a' + i as u8) as char),
        _ => format!("worker-{i}:8080"),
    };
    weights
        .iter()
        .enumerate()
        .map(|(i, weight)| NewBackend {
            name: name(i),
            url: String::new(),
            weight: *weight,
            cores: f64::from(*weight),
            memory_mib: 1024.0,
        })
        .collect()
}

pub(crate) fn dispatcher(spec: &Spec, weights: &[u32], seed: u64) -> Dispatcher {
    let options = Options { seed, ..options() };
    Dispatcher::new(spec, &members(weights), options).expect("a good pool")
}

/// Picks at equal distances of 1 ms that are answered at once; letters are positions.
pub(crate) fn sequence(dispatcher: &mut Dispatcher, picks: usize) -> String {
    (0..picks)
        .map(|_| letter(answered_pick(dispatcher, &Request::default())))
        .collect()
}

pub(crate) fn letter(id: BackendId) -> char {
    (b'A' + id.0 as u8) as char
}

/// One pick that is answered at once.
pub(crate) fn answered_pick(dispatcher: &mut Dispatcher, request: &Request<'_>) -> BackendId {
    let now = dispatcher.now().plus_ns(1_000_000);
    let made = dispatcher.pick(now, request).expect("somebody is eligible");
    let answer = Answer::new(Status::Ok);
    dispatcher
        .respond(now, made.id, &answer)
        .expect("it is open");
    made.backend
}

/// Picks per id over a run of picks answered at once, each with its own URL.
pub(crate) fn shares(dispatcher: &mut Dispatcher, picks: usize) -> Vec<u64> {
    let mut counts = vec![0; dispatcher.backends().ids_len()];
    for i in 0..picks {
        let url = format!("/items/{i}");
        let request = Request {
            url: &url,
            ..Request::default()
        };
        counts[answered_pick(dispatcher, &request).index()] += 1;
    }
    counts
}

/// Shares of the counts, rounded to two decimals.
pub(crate) fn to_two_decimals(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>() as f64;
    let share = |count: &u64| (*count as f64 * 100.0 / total).round() / 100.0;
    counts.iter().map(share).collect()
}

/// `picks` requests, one each `gap_ns`, each answered `service_ns` later; picks per id.
pub(crate) fn open_loop(
    dispatcher: &mut Dispatcher,
    picks: u64,
    gap_ns: u64,
    service_ns: impl Fn(BackendId) -> u64,
) -> Vec<u64> {
    let mut counts = vec![0; dispatcher.backends().ids_len()];
    let mut due: std::collections::BTreeSet<(Time, u64)> = std::collections::BTreeSet::new();
    let begin = dispatcher.now();
    for i in 1..=picks {
        let now = begin.plus_ns(i * gap_ns);
        while let Some((at, id)) = due.first().copied().filter(|(at, _)| *at <= now) {
            due.pop_first();
            dispatcher
                .respond(at, id, &Answer::new(Status::Ok))
                .expect("open");
        }
        let url = format!("/items/{i}");
        let request = Request {
            url: &url,
            ..Request::default()
        };
        let made = dispatcher
            .pick(now, &request)
            .expect("somebody is eligible");
        counts[made.backend.index()] += 1;
        due.insert((now.plus_ns(service_ns(made.backend)), made.id));
    }
    for (at, id) in due {
        dispatcher
            .respond(at, id, &Answer::new(Status::Ok))
            .expect("open");
    }
    counts
}

/// Every entry at its defaults, and once with each parameter at each word and bound that is not its
/// default.
pub(crate) fn cases() -> Vec<Spec> {
    let mut cases = Vec::new();
    for entry in ENTRIES {
        cases.push(Spec::of(entry));
        for parameter in entry.parameters {
            for value in values(entry, parameter) {
                let mut case = format!("{}:{}={value}", entry.name, parameter.name);
                // Few worlds run the same lines as many.
                if parameter.name != "worlds" && entry.parameters.iter().any(|p| p.name == "worlds")
                {
                    case += ",worlds=2";
                }
                let case = spec(&case);
                if !cases.contains(&case) {
                    cases.push(case);
                }
            }
        }
    }
    cases
}

fn values(entry: &Entry, parameter: &Parameter) -> Vec<String> {
    let span = |ns| schema::duration::format(std::time::Duration::from_nanos(ns));
    let mut values: Vec<String> = match parameter.kind {
        Kind::Integer { min, max } => vec![min.to_string(), max.min(400).to_string()],
        Kind::Prime { min, .. } => vec![min.to_string(), "1009".into()],
        Kind::Decimal { min, max } => vec![min.to_string(), max.to_string()],
        Kind::Duration { min_ns, max_ns } => vec![span(min_ns), span(max_ns)],
        Kind::Word(words) => words.iter().map(|w| (*w).to_string()).collect(),
        // A model with other inputs is refused.
        Kind::ModelName => match entry.model.map(|m| m.features) {
            Some(predictor::Features::CpuMemory) => vec!["docker".into()],
            _ => vec!["live".into()],
        },
        Kind::Key => ["path", "client-ip", "client-net", "header:x-user"]
            .map(String::from)
            .to_vec(),
    };
    values.extend(parameter.or.iter().map(|w| (*w).to_string()));
    values
}
