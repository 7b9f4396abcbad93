//! The signals that end a run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
}

impl StopSignal {
    /// Exit code after it: 128 and the signal's number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Listens from the moment it is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Caught so that a file at its size limit is a write error and not the end of the process.
    _file_size: Signal,
}

impl Signals {
    /// Starts to listen.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(libc::SIGXFSZ))?,
        })
    }

    /// The next request to stop.
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}
