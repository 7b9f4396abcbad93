//! Requests to the kernel's scheduler that keep the timing exact. All are best effort: a kernel or
//! a sandbox that refuses them costs precision, never correctness.
//!
//! The burn threads keep their normal priority: lowering it was measured to make errors ten times
//! larger, because a preempted burn then misses the end of its request.
#![allow(unsafe_code)]

/// Asks for a timer slack of 1 ns for this thread and those it starts (default 50 us), which halves
/// the lateness of a sleep. Call it once, before any other thread exists.
#[cfg(target_os = "linux")]
pub(crate) fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and changes only the calling thread's slack.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64);
    }
}

/// Asks for the shortest scheduler slice (0.1 ms; Linux 6.12 and later, no privilege needed) for the
/// calling thread, so that it runs soon after it wakes. True if the kernel took it.
#[cfg(target_os = "linux")]
pub(crate) fn ask_short_slice() -> bool {
    const SLICE_NS: u64 = 100_000;

    /// The kernel's `struct sched_attr` of 48 bytes (SCHED_ATTR_SIZE_VER0).
    #[repr(C)]
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
        flags: 0,
        nice: 0,
        priority: 0,
        runtime_ns: SLICE_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the kernel reads `size` bytes from `attr`, which lives across the call and has exactly
    // that size and layout; pid 0 is the calling thread; flags must be 0.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            0_i32,
            std::ptr::from_ref(&attr),
            0_u32,
        )
    };
    answer == 0
}

/// Other systems have no timer slack to set.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sharpen_timers() {}

/// Other systems have no slice to ask for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_short_slice() -> bool {
    false
}
