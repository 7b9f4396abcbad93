//! Asks the kernel to run a thread soon after it wakes.
//!
//! Both requests are best effort: a kernel or a sandbox that refuses them costs precision, never
//! correctness, and neither takes time from others beyond the thread's fair share. Whoever cares
//! logs the error. With the burn loop it is the only place of
//! the programs with `unsafe` in it (a benchmark counts allocations with a third).

use std::io;

/// Asks for a timer slack of 1 ns for this thread and those it starts later (default 50 us), which
/// halves the lateness of a sleep. A process calls it before it starts threads.
///
/// # Errors
/// The system refuses, or has no timer slack.
#[cfg(target_os = "linux")]
pub fn sharpen_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(
        std::num::NonZeroU64::new(1),
    )?)
}

/// Asks for the shortest slice the scheduler gives (0.1 ms) for the calling thread. With
/// deadline-ordered fair scheduling (Linux 6.12 and later) it then runs ahead of busy threads with
/// the usual slice when it wakes. Needs no privilege and keeps the thread's nice value.
///
/// # Errors
/// The system refuses, or has no such call.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn ask_short_slice() -> io::Result<()> {
    const SLICE_NS: u64 = 100_000;

    /// `struct sched_attr` of the kernel in its first published size.
    #[repr(C)]
    #[derive(Default)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }

    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        // It must be repeated, else the call would reset it.
        nice: rustix::process::getpriority_process(None).unwrap_or(0),
        runtime_ns: SLICE_NS,
        ..SchedAttr::default()
    };
    // SAFETY: the kernel reads `size` bytes from a valid, initialized struct of that size and
    // keeps no pointer to it; thread 0 means the calling thread; flags are 0.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Both of the above for the calling thread; what was refused, for the log.
pub fn make_prompt() -> Vec<String> {
    let refused = |what, answer: io::Result<()>| answer.err().map(|e| format!("{what}: {e}"));
    [
        refused("timer slack", sharpen_timers()),
        refused("scheduling slice", ask_short_slice()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Other systems have no timer slack to set.
///
/// # Errors
/// Always: unsupported.
#[cfg(not(target_os = "linux"))]
pub fn sharpen_timers() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Other systems have no slice to ask for.
///
/// # Errors
/// Always: unsupported.
#[cfg(not(target_os = "linux"))]
pub fn ask_short_slice() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_slack_is_the_one_asked_for() {
        super::sharpen_timers().expect("an unprivileged call");
        let slack_ns = rustix::thread::current_timer_slack().expect("readable");
        assert_eq!(slack_ns, 1);
    }

    #[test]
    fn asking_for_a_slice_keeps_the_nice_value() {
        let nice = || rustix::process::getpriority_process(None).expect("readable");
        let before = nice();
        // An old kernel may refuse; either way nothing else changes.
        let _ = super::ask_short_slice();
        assert_eq!(nice(), before);
    }
}
