//! Someone who says stop: Ctrl-C, SIGTERM, a terminal that is closed.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

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
    let told = listen()?;
    tokio::select! {
        biased;
        result = work => result.map(|()| Ended::Complete),
        () = told => Ok(Ended::Interrupted),
    }
}

/// Waits until someone says stop.
pub(crate) async fn told() -> io::Result<()> {
    listen()?.await;
    Ok(())
}

/// Listens from now on: whoever says stop before this is awaited is heard, too.
pub(crate) fn listen() -> io::Result<impl Future<Output = ()>> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals = kinds.map(signal).into_iter().collect::<io::Result<Vec<Signal>>>()?;
    Ok(poll_fn(move |cx| {
        let heard = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if heard { Poll::Ready(()) } else { Poll::Pending }
    }))
}
