//! Removes a bench's containers when the testbed is killed and cannot do it itself.
//!
//! A small process of this program waits at the end of a pipe. The kernel closes the pipe when the
//! testbed dies, however it dies; unless it was dismissed before, the janitor then removes every
//! container of the project and its network.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use clap::Args;

use crate::bed::engine::Engine;

/// Written into the pipe when there is nothing left to clean.
const DISMISSED: &[u8] = b"dismissed";

/// Hidden command line of the janitor.
#[derive(Debug, Args)]
pub(crate) struct JanitorArgs {
    /// Compose project to remove
    project: String,
}

/// The testbed's end.
pub(crate) struct Janitor {
    child: Child,
}

impl Janitor {
    /// Starts a janitor for a project.
    pub(crate) fn start(project: &str) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot tell where this program is")?;
        let child = Command::new(own)
            .args(["janitor", project])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start the janitor")?;
        Ok(Self { child })
    }

    /// Everything is removed already; waits for the janitor's end.
    pub(crate) fn dismiss(&mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // A janitor that is gone needs no message.
            let _ = pipe.write_all(DISMISSED);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Janitor {
    /// Not dismissed: lets it clean now, and waits until it has.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits for the end of the pipe and cleans unless dismissed.
pub(crate) async fn run(arguments: &JanitorArgs) -> anyhow::Result<()> {
    let mut message = Vec::new();
    std::io::stdin().lock().read_to_end(&mut message)?;
    if message == DISMISSED {
        return Ok(());
    }
    Engine::connect()
        .await?
        .remove_project(&arguments.project)
        .await
}
