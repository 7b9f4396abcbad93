//! Pick, dispatch and response allocate nothing once warm: a request's path stays free of the
//! allocator's locks and of its surprises.

#![allow(unsafe_code)]

extern crate plumbline_strategies as strategies;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use strategies::registry::ENTRIES;
use strategies::{Answer, Dispatcher, NewBackend, Request, Spec, Status, Time};

#[path = "../src/tests/models.rs"]
#[allow(unreachable_pub, dead_code)]
mod models;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system allocator; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the system allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn requests(dispatcher: &mut Dispatcher, rounds: u64, urls: &[String]) {
    for _ in 0..rounds {
        let now = dispatcher.now().plus_ns(1_000_000);
        let mut open = [0; 8];
        for (i, id) in open.iter_mut().enumerate() {
            let request = Request {
                url: &urls[(now.as_nanos() as usize / 1_000_000 + i) % urls.len()],
                ..Request::default()
            };
            *id = dispatcher.pick(now, &request).expect("eligible").id;
        }
        for (i, id) in open.into_iter().enumerate() {
            let status = if i == 3 { Status::Error } else { Status::Ok };
            let later = now.plus_ns(200_000);
            dispatcher
                .respond(later, id, &Answer::new(status))
                .expect("open");
        }
    }
}

#[test]
fn a_warm_dispatcher_allocates_nothing_per_request() {
    let urls: Vec<String> = (0..100).map(|i| format!("/items/{i}")).collect();
    let members: Vec<NewBackend> = [4, 3, 2]
        .into_iter()
        .map(|weight| NewBackend {
            name: format!("worker-{weight}:8080"),
            url: String::new(),
            weight,
            cores: f64::from(weight),
            memory_mib: 1024.0,
        })
        .collect();
    for entry in ENTRIES {
        let spec = Spec::of(entry);
        let mut dispatcher = Dispatcher::new(&spec, &members, models::options()).expect("a pool");
        requests(&mut dispatcher, 3000, &urls);
        let before = ALLOCATIONS.get();
        requests(&mut dispatcher, 500, &urls);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{spec} allocates");
        assert!(dispatcher.now() > Time::ZERO);
    }
}
