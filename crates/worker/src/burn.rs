//! The instruction loop: work whose instruction count is known by construction.
//!
//! Sixteen instructions per turn: fourteen independent adds and exclusive-ors over seven registers,
//! one decrement, one branch. One million instructions are exactly 62,500 turns, so N MI retire
//! N * 10^6 instructions up to the few of the call itself and at most eight more or less by
//! rounding to whole turns (an error below 10^-4 from 1 MI on; callgrind checks it in the tests). It touches no memory, so
//! its speed does not depend on the neighbors' caches.
//!
//! It is the fastest of the plain loops tried (one dependency chain runs at a third of its speed).
//! The same work takes a different time with another loop, so [`LOOP_NAME`] and the speed measured
//! at boot stand in every result. The aarch64 form has the same count by construction; it has not been run.
#![allow(unsafe_code)]

/// Name of the loop, as it stands in `/stats` and in every result.
pub(crate) const LOOP_NAME: &str = "add-xor-7x2";

/// Instructions of one turn of the loop.
const INSTRUCTIONS_PER_TURN: f64 = 16.0;

/// Instructions in one MI.
const INSTRUCTIONS_PER_MI: f64 = 1e6;

/// Executes `mi` million instructions on the calling thread; nothing for less than one turn.
#[inline(never)]
pub(crate) fn burn(mi: f64) {
    let turns = (mi * INSTRUCTIONS_PER_MI / INSTRUCTIONS_PER_TURN).round() as u64;
    if turns > 0 {
        run_turns(turns);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn run_turns(turns: u64) {
    // SAFETY: the block reads and writes only the registers it declares, touches no memory and no
    // stack, and ends: `turns` is at least 1 and falls by one each turn. The flags are clobbered,
    // which is the default for a block without `preserves_flags`.
    unsafe {
        std::arch::asm!(
            ".p2align 5",
            "2:",
            "add {a}, 1", "add {b}, 3", "add {c}, 5", "add {d}, 7",
            "add {e}, 9", "add {f}, 11", "add {g}, 13",
            "xor {a}, 21", "xor {b}, 23", "xor {c}, 25", "xor {d}, 27",
            "xor {e}, 29", "xor {f}, 31", "xor {g}, 33",
            "dec {n}",
            "jnz 2b",
            n = inout(reg) turns => _,
            a = inout(reg) 1_u64 => _,
            b = inout(reg) 2_u64 => _,
            c = inout(reg) 3_u64 => _,
            d = inout(reg) 4_u64 => _,
            e = inout(reg) 5_u64 => _,
            f = inout(reg) 6_u64 => _,
            g = inout(reg) 7_u64 => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
fn run_turns(turns: u64) {
    // SAFETY: as above: declared registers only, no memory, no stack, ends because `turns` is at
    // least 1 and falls by one each turn; the flags are clobbered by default. The immediates of
    // `eor` are runs of ones, the only kind that instruction encodes.
    unsafe {
        std::arch::asm!(
            ".p2align 5",
            "2:",
            "add {a}, {a}, #1", "add {b}, {b}, #3", "add {c}, {c}, #5", "add {d}, {d}, #7",
            "add {e}, {e}, #9", "add {f}, {f}, #11", "add {g}, {g}, #13",
            "eor {a}, {a}, #1", "eor {b}, {b}, #3", "eor {c}, {c}, #7", "eor {d}, {d}, #15",
            "eor {e}, {e}, #31", "eor {f}, {f}, #63", "eor {g}, {g}, #127",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            n = inout(reg) turns => _,
            a = inout(reg) 1_u64 => _,
            b = inout(reg) 2_u64 => _,
            c = inout(reg) 3_u64 => _,
            d = inout(reg) 4_u64 => _,
            e = inout(reg) 5_u64 => _,
            f = inout(reg) 6_u64 => _,
            g = inout(reg) 7_u64 => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "the burn loop counts its instructions by construction: write it for this processor"
);
