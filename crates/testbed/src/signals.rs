//! Ctrl-C and SIGTERM: the first asks everything to stop, the second makes it stop at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the signals asked for so far.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    /// Cancelled by the first signal.
    pub(crate) asked: CancellationToken,
    /// Cancelled by the second.
    pub(crate) at_once: CancellationToken,
    exit_code: Arc<AtomicU8>,
}

impl Stop {
    /// Listens from now on, within a runtime.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stop = Self {
            asked: CancellationToken::new(),
            at_once: CancellationToken::new(),
            exit_code: Arc::new(AtomicU8::new(0)),
        };
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let told = stop.clone();
        tokio::spawn(async move {
            loop {
                let code = tokio::select! {
                    _ = interrupt.recv() => 130,
                    _ = terminate.recv() => 143,
                };
                if told.asked.is_cancelled() {
                    told.at_once.cancel();
                } else {
                    told.exit_code.store(code, Ordering::Release);
                    told.asked.cancel();
                }
            }
        });
        Ok(stop)
    }

    /// 130 or 143 once a signal came.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        Some(self.exit_code.load(Ordering::Acquire)).filter(|&code| code != 0)
    }
}
