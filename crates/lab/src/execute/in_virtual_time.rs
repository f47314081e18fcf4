//! On clusters in virtual time.

use clusters::VirtualClusters;
use record::Writer;
use world::{Env, Trace};

use super::options::Options;
use super::working::{Ended, until_interrupted, work};
use crate::error::Result;
use crate::plan::Resolved;
use crate::runner::{VirtualTime, Watch};

/// How it ended, and what happened in its world.
pub(super) fn run(
    plan: &Resolved,
    options: &Options,
    planted: &'static [&'static str],
    mut writer: Writer,
) -> Result<(Result<Ended>, Trace)> {
    let (plan, watch) = (plan.clone(), options.watch.clone());
    let interrupt = options.interrupt.clone();
    Ok(world::virtual_world::run_traced(plan.seed, async move |env: Env| {
        planted.iter().for_each(|fault| env.plant(fault));
        let mut clusters = VirtualClusters::boxed(&env);
        let watch = VirtualTime::new(&env, watch);
        let work = work(&env, &plan, &mut *clusters, &mut writer, &watch);
        let ended = until_interrupted(&interrupt, work).await;
        watch.clear();
        // Nodes that are told to stop end what they do; nobody waits for that in the middle of a run.
        if !matches!(ended, Ok(Ended::Interrupted)) {
            clusters.stop().await;
        }
        ended
    })?)
}
