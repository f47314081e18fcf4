//! Someone who says stop: Ctrl-C, SIGTERM, a terminal that is closed, and what else would end the process at once.

use std::future::poll_fn;
use std::io;
use std::sync::LazyLock;
use std::task::Poll;
use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use clusters::SENT_TWICE;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use world::{Env, virtual_world};

/// Whether someone has said stop to what goes on in virtual time. Its threads have no event loop that could hear of a
/// signal, so a thread of its own listens, from the first look at this on.
static IN_VIRTUAL_TIME: LazyLock<io::Result<watch::Receiver<bool>>> = LazyLock::new(hear);

/// How work ended, short of a failure.
pub(crate) enum Ended {
    /// It was done.
    Complete,
    /// Someone said stop.
    Interrupted,
}

/// Works until it is done, or until someone says stop. A panic is an error: the caller may have something to put back.
pub(crate) async fn until_told(
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Ended> {
    let stop = listen()?;
    tokio::select! {
        biased;
        result = lab::caught(work) => result?.map(|()| Ended::Complete),
        () = stop => Ok(Ended::Interrupted),
    }
}

/// Waits until someone says stop. In virtual time whoever said so before is heard, too.
pub(crate) async fn told_to_stop() -> io::Result<()> {
    if Handle::try_current().is_ok() {
        listen()?.await;
        return Ok(());
    }
    let mut heard = match &*IN_VIRTUAL_TIME {
        Ok(heard) => heard.clone(),
        Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
    };
    heard.wait_for(|told| *told).await.map(drop).map_err(io::Error::other)
}

/// Whether someone has said stop to what goes on in virtual time.
pub(crate) fn is_told() -> bool {
    matches!(&*IN_VIRTUAL_TIME, Ok(heard) if *heard.borrow())
}

/// Works in a virtual world of its own until it is done; an error if someone says stop.
pub(crate) fn in_virtual_time<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> anyhow::Result<T> {
    virtual_world::run(seed, |env| {
        let work = main(env);
        async move {
            tokio::select! {
                biased;
                result = work => result,
                told = told_to_stop() => Err(told.map_or_else(anyhow::Error::from, |()| anyhow!("interrupted"))),
            }
        }
    })
}

fn hear() -> io::Result<watch::Receiver<bool>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let stop = {
        let _entered = runtime.enter();
        listen()?
    };
    let (tell, heard) = watch::channel(false);
    let body = move || {
        runtime.block_on(async {
            stop.await;
            tell.send_replace(true);
            let first = Instant::now();
            while let Ok(again) = listen() {
                again.await;
                // Whoever says stop once more does not wait for an event of a virtual world that takes long.
                if first.elapsed() > SENT_TWICE {
                    std::process::exit(1);
                }
            }
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(body)?;
    Ok(heard)
}

/// Listens from now on: whoever says stop before this is awaited is heard, too.
pub(crate) fn listen() -> io::Result<impl Future<Output = ()>> {
    let said = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let ends = [SignalKind::alarm(), SignalKind::user_defined1(), SignalKind::user_defined2()];
    let kinds = said.into_iter().chain(ends);
    let mut signals = kinds.map(signal).collect::<io::Result<Vec<Signal>>>()?;
    Ok(poll_fn(move |cx| {
        let heard = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if heard { Poll::Ready(()) } else { Poll::Pending }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn breaks() -> anyhow::Result<()> {
        panic!("as a bug does");
    }

    #[test]
    fn work_that_panics_has_failed_and_its_caller_goes_on() {
        let ended = world::real_world::run(1, async |_| until_told(breaks()).await);
        let said = ended.err().unwrap().to_string();
        assert!(said.contains("a bug of narrows"), "{said}");
    }
}
