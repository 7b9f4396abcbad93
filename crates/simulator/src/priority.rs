//! Asks the kernel to run a thread soon after it wakes.
//!
//! Two requests, both harmless when refused: timers fire without slack, and the thread asks for a
//! short scheduling slice, which on kernels with deadline-ordered fair scheduling (Linux 6.12 and
//! later) lets it run ahead of busy threads with the usual slice. Neither takes time from others
//! beyond the thread's fair share.

#![allow(unsafe_code)]

use std::num::NonZeroU64;
use std::time::Duration;

/// Shortest slice the kernel accepts.
const SLICE: Duration = Duration::from_micros(100);

/// `struct sched_attr` of the kernel in its first published size.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Makes the calling thread prompt; returns what was refused, for the log.
pub(crate) fn make_prompt() -> Vec<String> {
    let mut refused = Vec::new();
    if let Err(e) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        refused.push(format!("timer slack: {e}"));
    }
    if let Err(e) = set_slice(SLICE) {
        refused.push(format!("scheduling slice: {e}"));
    }
    refused
}

fn set_slice(slice: Duration) -> std::io::Result<()> {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        nice: own_nice(),
        runtime: slice.as_nanos() as u64,
        ..SchedAttr::default()
    };
    // SAFETY: the kernel reads `size` bytes from a valid, initialized struct of that size and
    // keeps no pointer to it; thread 0 means the calling thread; flags are 0.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// The nice value must be repeated, else the call would reset it.
fn own_nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}
