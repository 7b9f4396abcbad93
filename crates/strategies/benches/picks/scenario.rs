//! A warm dispatcher and the calls that are measured.

use crate::models;
use std::collections::VecDeque;
use std::hint::black_box;
use strategies::{Answer, Dispatcher, NewBackend, Report, Request};
use strategies::{Source, Spec, Status, Time};

/// Requests in flight: two per backend, so that loads differ, but no more than this.
const MOST_OPEN: usize = 2_000;
/// Distance of two requests, ns.
const GAP_NS: u64 = 1_000;
/// Warm after so many requests per backend, at least [`LEAST_WARM`].
const WARM_PER_BACKEND: usize = 2;
const LEAST_WARM: usize = 3_000;

fn pool(n: usize, cores: [f64; 3]) -> Vec<NewBackend> {
    (0..n)
        .map(|i| NewBackend {
            name: format!("worker-{i}:8080"),
            url: String::new(),
            weight: [4, 3, 2][i % 3],
            cores: cores[i % 3],
            memory_mib: 1024.0,
        })
        .collect()
}

/// A dispatcher in the middle of its work.
pub(crate) struct Scenario {
    pub(crate) dispatcher: Dispatcher,
    open: VecDeque<u64>,
    most_open: usize,
    urls: Vec<String>,
    now: Time,
    made: usize,
}

impl Scenario {
    /// Every backend has reported and some requests are in flight. `None` if the strategy
    /// refuses a pool of this size.
    pub(crate) fn new(spec: &Spec, n: usize) -> Option<Self> {
        Self::open(spec, n, [4.0, 3.0, 2.0], (2 * n).min(MOST_OPEN))
    }

    /// The same with other cores (of the first three, and so on) and so many requests in flight.
    pub(crate) fn open(spec: &Spec, n: usize, cores: [f64; 3], most_open: usize) -> Option<Self> {
        let dispatcher = Dispatcher::new(spec, &pool(n, cores), models::options()).ok()?;
        let ids = dispatcher.backends().available_ids().to_vec();
        let mut scenario = Self {
            dispatcher,
            open: VecDeque::with_capacity(most_open + 1),
            most_open,
            urls: (0..64).map(|i| format!("/items/{i}")).collect(),
            now: Time::ZERO,
            made: 0,
        };
        for id in ids {
            for source in [Source::Poll, Source::Piggyback, Source::Probe] {
                let report = Report {
                    active: Some(id.0 % 5),
                    qps: Some(10.0),
                    utilization: Some(0.5),
                    rif_latency_ms: Some(20.0),
                    ..Report::empty(source, 0)
                };
                let now = scenario.now;
                scenario.dispatcher.report(now, id, None, report).ok()?;
            }
        }
        scenario.steps((WARM_PER_BACKEND * n).max(LEAST_WARM));
        Some(scenario)
    }

    fn respond(&mut self, dispatch: u64) {
        let answer = Answer::new(Status::Ok);
        let outcome = self.dispatcher.respond(self.now, dispatch, &answer);
        black_box(outcome.expect("it is open"));
    }

    fn next_request(urls: &[String], made: usize) -> Request<'_> {
        Request {
            url: &urls[made % urls.len()],
            cost_mi: Some(200.0 + (made % 7) as f64 * 50.0),
            ..Request::default()
        }
    }

    /// Picks, each with its dispatch and the response of an older one.
    #[inline(never)]
    pub(crate) fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.now = self.now.plus_ns(GAP_NS);
            self.made += 1;
            let request = Self::next_request(&self.urls, self.made);
            let made = self.dispatcher.pick(self.now, &request).expect("eligible");
            self.open.push_back(made.id);
            if self.open.len() > self.most_open {
                let oldest = self.open.pop_front().expect("one is open");
                self.respond(oldest);
            }
        }
    }

    /// Picks that are not dispatched.
    #[inline(never)]
    pub(crate) fn picks(&mut self, count: usize) {
        for _ in 0..count {
            self.now = self.now.plus_ns(GAP_NS);
            self.made += 1;
            let request = Self::next_request(&self.urls, self.made);
            black_box(self.dispatcher.pick_only(self.now, &request));
        }
    }
}
