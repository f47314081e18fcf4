//! The work of a run on clusters, wherever they are, and how it ends.

use std::panic::AssertUnwindSafe;

use clusters::{Clusters, SENT_TWICE};
use futures_util::FutureExt;
use record::{Row, Writer};
use world::Env;

use super::options::Interrupt;
use crate::error::{Error, Result};
use crate::experiments::of_plan;
use crate::plan::Resolved;
use crate::runner::{Runner, Watch, topology};

/// How a run ended, short of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done.
    Complete,
    /// Somebody wanted it to end.
    Interrupted,
}

/// Starts the clusters, and works through the plan on them.
pub(super) async fn work(
    env: &Env,
    plan: &Resolved,
    clusters: &mut dyn Clusters,
    writer: &mut Writer,
    watch: &dyn Watch,
) -> Result<Vec<Row>> {
    let topology = topology(plan);
    let nodes: usize = topology.clusters.iter().map(|cluster| cluster.nodes).sum();
    if let Some(sentence) = clusters.prepares() {
        watch.note(&sentence);
    }
    watch.begin("start", None, None, "");
    clusters.start(&topology).await.map_err(|source| Error::Start { nodes, source })?;
    watch.end();
    Runner::new(env, plan, clusters, writer, watch).run(of_plan(plan)).await
}

/// Works until it is done, or until somebody wants it to end.
pub(super) async fn until_interrupted<T>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T>>,
) -> Result<Ended> {
    tokio::select! {
        biased;
        done = work => done.map(|_| Ended::Complete),
        told = interrupt() => match told {
            Ok(()) => Ok(Ended::Interrupted),
            Err(source) => Err(Error::Signals { source }),
        },
    }
}

/// What comes of `work`. A panic in it is an error, so that whoever has changed somebody's cluster goes on and puts it
/// back.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| Error::Panicked)
}

/// Waits until what was started has stopped, or until somebody says stop once more: then nobody waits for what hangs,
/// which is killed where it is dropped.
pub async fn stopped_unless_told(
    env: &Env,
    stops: impl Future<Output = ()>,
    told: impl Future<Output = std::io::Result<()>>,
) {
    let told_again = async {
        env.sleep(SENT_TWICE).await;
        if told.await.is_err() {
            // Nobody can be heard.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = stops => {}
        () = told_again => {}
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use super::*;

    #[test]
    fn whoever_says_stop_once_more_waits_for_nothing_that_hangs() {
        world::virtual_world::run(1, async |env| {
            let began = env.now();
            stopped_unless_told(&env, pending(), ready(Ok(()))).await;
            assert_eq!(env.now() - began, SENT_TWICE);
            let takes_its_time = env.sleep(Duration::from_secs(10));
            stopped_unless_told(&env, takes_its_time, pending()).await;
            assert_eq!(env.now() - began, SENT_TWICE + Duration::from_secs(10));
        });
    }
}
