//! All cores on one dispatcher behind one lock: what a hot lock costs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use strategies::{Answer, Dispatcher, Request, Spec, Status, Time};

/// How long all cores pick.
const SPAN: Duration = Duration::from_secs(1);

/// Wall ns per pick with its response, over all threads together.
pub(crate) fn ns_per_pick(spec: &Spec, dispatcher: Dispatcher, threads: usize) -> f64 {
    let dispatcher = Mutex::new(dispatcher);
    let made = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                while !is_over.load(Ordering::Relaxed) {
                    pick_and_respond(&dispatcher, begin);
                    mine += 1;
                }
                made.fetch_add(mine, Ordering::Relaxed);
            });
        }
        std::thread::sleep(SPAN);
        is_over.store(true, Ordering::Relaxed);
    });
    let picks = made.into_inner();
    assert!(picks > 0, "{spec}: nothing was picked");
    begin.elapsed().as_nanos() as f64 / picks as f64
}

/// As the balancer does it: one lock for the pick, another for the response.
fn pick_and_respond(dispatcher: &Mutex<Dispatcher>, begin: Instant) {
    let now = || Time::from_nanos(begin.elapsed().as_nanos() as u64);
    let request = Request {
        url: "/items/1",
        ..Request::default()
    };
    let made = dispatcher
        .lock()
        .expect("no thread panics")
        .pick(now(), &request);
    let made = made.expect("somebody is eligible");
    let answer = Answer::new(Status::Ok);
    let mut dispatcher = dispatcher.lock().expect("no thread panics");
    dispatcher
        .respond(now(), made.id, &answer)
        .expect("it is open");
}
