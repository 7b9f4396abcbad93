//! Nothing this program starts outlives it, not even when it is killed.
//!
//! Children are started through this program itself: `testbed leash PARENT PROGRAM ARGS...` asks
//! the kernel for SIGTERM at the parent's death and then becomes the program. Every child leads
//! its own process group, so that a terminal's Ctrl-C reaches only the testbed, which passes it on
//! in order.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command as StdCommand;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::process::Command;

/// Hidden command line of the leash.
#[derive(Debug, Args)]
pub(crate) struct LeashArgs {
    /// Process whose death ends the program
    parent: i32,
    /// Program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// A command that runs `program` on a leash, in its own process group.
///
/// Must be spawned from the main thread: the kernel's death signal is that of the spawning thread.
pub(crate) fn command(program: &Path) -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let mut command = Command::new(own);
    command
        .arg("leash")
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(program)
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Becomes the program; returns only when it cannot.
pub(crate) fn run(arguments: &LeashArgs) -> anyhow::Result<()> {
    let Some((program, rest)) = arguments.command.split_first() else {
        bail!("no program");
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::TERM)).context("cannot set a death signal")?;
        // The parent may have died before the line above.
        if getppid().is_none_or(|p| p.as_raw_nonzero().get() != arguments.parent) {
            bail!("the testbed is gone");
        }
    }
    let error = StdCommand::new(program).args(rest).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
