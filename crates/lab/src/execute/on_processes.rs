//! On clusters of processes that are started for the run.

use clusters::{Clusters, measure_ceiling};
use record::{Manifest, Writer};
use world::Env;

use super::options::Options;
use super::working::{Ended, stopped_unless_told, until_interrupted, work};
use crate::error::{Error, Result};
use crate::plan::Resolved;

pub(super) fn run(
    plan: &Resolved,
    options: &Options,
    writer: &mut Writer,
    manifest: &mut Manifest,
    clusters: impl FnOnce(&Env) -> Box<dyn Clusters>,
) -> Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let ceiling = measure_ceiling().map_err(|source| Error::Ceiling { source })?;
        if let Some(link) = &mut manifest.link {
            link.ceiling_bytes_per_s = Some(ceiling);
        }
        writer.manifest(manifest)?;
        let mut clusters = clusters(&env);
        let node_ended = clusters.node_ended();
        let watch = &*options.watch;
        let work = work(&env, plan, &mut *clusters, writer, watch);
        let ended = tokio::select! {
            biased;
            ended = until_interrupted(&options.interrupt, work) => ended,
            () = node_ended => Err(Error::NodeEnded),
        };
        watch.clear();
        // The error may only be how others saw a node end; then the end of that node is the error.
        let ended = match ended {
            Err(error) => Err(clusters.failed_node().await.map_or(error, Into::into)),
            ended => ended,
        };
        stopped_unless_told(&env, clusters.stop(), (options.interrupt)()).await;
        ended
    })
}
