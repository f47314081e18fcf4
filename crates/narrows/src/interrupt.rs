//! Someone who says stop: Ctrl-C, SIGTERM, a terminal that is closed.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// How work ended, short of a failure.
pub(crate) enum Ended {
    /// It was done.
    Complete,
    /// Someone said stop.
    Interrupted,
}

/// Works until it is done, or until someone says stop.
pub(crate) async fn until_told(
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Ended> {
    tokio::select! {
        biased;
        result = work => result.map(|()| Ended::Complete),
        heard = told() => Ok(heard.map(|()| Ended::Interrupted)?),
    }
}

/// Waits until someone says stop.
pub(crate) async fn told() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}
