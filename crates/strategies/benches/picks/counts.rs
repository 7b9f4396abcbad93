//! What is counted instead of timed: allocations, and instructions under callgrind. Both are the same
//! on a busy host as on a quiet one.

#![allow(unsafe_code)]

use crate::scenario::Scenario;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command;
use strategies::Spec;

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

/// Allocations of this thread while `run` runs.
pub(crate) fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// What is repeated under callgrind: `picks` or `steps`. The names are those of the functions whose
/// instructions are collected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Picks,
    Steps,
}

impl What {
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "picks" => Self::Picks,
            "steps" => Self::Steps,
            other => panic!("count what? picks or steps, got {other:?}"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Picks => "picks",
            Self::Steps => "steps",
        }
    }
}

/// Makes so many calls and nothing else: what runs under callgrind.
#[inline(never)]
pub(crate) fn counted(scenario: &mut Scenario, what: What, count: usize) {
    match what {
        What::Picks => scenario.picks(count),
        What::Steps => scenario.steps(count),
    }
}

/// Whether callgrind is there.
pub(crate) fn callgrind_is_here() -> bool {
    let asked = Command::new("valgrind").arg("--version").output();
    asked.is_ok_and(|output| output.status.success())
}

/// Instructions per call; `None` if callgrind does not say.
pub(crate) fn instructions(spec: &Spec, n: usize, what: What) -> Option<f64> {
    let count = 10_000_000 / n.clamp(1_000, 5_000);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*counts*counted*")
        .arg(std::env::current_exe().ok()?)
        .args(["--count", what.word(), &spec.to_string()])
        .args([n.to_string(), count.to_string()])
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1))?;
    let total: f64 = collected.trim().parse().ok()?;
    Some(total / count as f64)
}
