//! A program that runs beside the testbed: its ready line, its log, its end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A start takes longer than this only when something is wrong.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Lines of the log shown when a program ends by surprise.
const SHOWN_LINES: usize = 5;

/// A running program.
pub(crate) struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

/// URLs of a ready line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    pub(crate) url: String,
    pub(crate) admin: Option<String>,
}

impl Running {
    /// Starts `command` with its standard error in `log` and its output piped.
    pub(crate) fn start(name: &str, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_string(),
            child,
            log: log.to_path_buf(),
        })
    }

    /// Waits for the line that says where the program listens.
    pub(crate) async fn listening(&mut self) -> anyhow::Result<Listening> {
        let output = self
            .child
            .stdout
            .take()
            .context("output was taken before")?;
        let mut lines = BufReader::new(output).lines();
        let found = tokio::time::timeout(READY_LIMIT, async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(listening) = parse_ready(&line) {
                    return Some(listening);
                }
            }
            None
        })
        .await;
        match found {
            Ok(Some(listening)) => {
                // The pipe stays open and drained, or the program would fail to write to it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                Ok(listening)
            }
            Ok(None) => {
                let status = self.child.wait().await?;
                bail!(
                    "{} ended at its start: {status}{}",
                    self.name,
                    self.last_words()
                )
            }
            Err(_) => bail!(
                "{} did not say that it listens within {} s{}",
                self.name,
                READY_LIMIT.as_secs(),
                self.last_words()
            ),
        }
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// An error when the program has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended by itself: {status}{}",
                self.name,
                self.last_words()
            ),
        }
    }

    /// Waits for the program's own end and returns what it printed.
    pub(crate) async fn output(&mut self) -> anyhow::Result<(ExitStatus, String)> {
        use tokio::io::AsyncReadExt as _;
        let mut text = String::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_string(&mut text).await?;
        }
        Ok((self.child.wait().await?, text))
    }

    /// Sends a signal; a program that has ended already gets none.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            // It may end between the two lines; then there is nobody to tell.
            let _ = kill_process(pid, signal);
        }
    }

    /// Asks the program to end and makes it end after `grace`.
    pub(crate) async fn stop(&mut self, grace: Duration) -> anyhow::Result<()> {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.child.wait())
            .await
            .is_err()
        {
            tracing::warn!(program = %self.name, "did not end in time, killed");
            self.child.kill().await?;
        }
        Ok(())
    }

    /// The end of the log, ready to be put behind a message.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        if shown.is_empty() {
            return String::new();
        }
        format!("; its last words: {}", shown.join(" | "))
    }
}

/// Reads `NAME listening on http://A (admin http://B)`.
fn parse_ready(line: &str) -> Option<Listening> {
    let (_, rest) = line.split_once(" listening on ")?;
    let (url, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let admin = rest
        .split_once("(admin ")
        .and_then(|(_, admin)| admin.split_once(')'))
        .map(|(admin, _)| admin.to_string());
    url.starts_with("http://").then(|| Listening {
        url: url.to_string(),
        admin,
    })
}

#[cfg(test)]
mod tests {
    use super::{Listening, parse_ready};

    #[test]
    fn a_ready_line_tells_both_addresses() {
        let line = "worker a listening on http://127.0.0.1:4001 (admin http://127.0.0.1:4002)";
        assert_eq!(
            parse_ready(line),
            Some(Listening {
                url: "http://127.0.0.1:4001".into(),
                admin: Some("http://127.0.0.1:4002".into()),
            })
        );
        let line = "worker a listening on http://127.0.0.1:4001";
        assert_eq!(parse_ready(line).and_then(|l| l.admin), None);
        assert_eq!(parse_ready("calibrating"), None);
        assert_eq!(parse_ready("x listening on port 80"), None);
    }
}
