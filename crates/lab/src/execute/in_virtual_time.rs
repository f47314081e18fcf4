//! On clusters in virtual time.

use clusters::VirtualClusters;
use record::Writer;
use world::{Env, Trace};

use super::options::Options;
use super::working::{Ended, work};
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
    let (done, trace) = world::virtual_world::run_traced(plan.seed, async move |env: Env| {
        planted.iter().for_each(|fault| env.plant(fault));
        let mut clusters = VirtualClusters::boxed(&env);
        let watch = VirtualTime::new(&env, watch);
        let done = work(&env, &plan, &mut *clusters, &mut writer, &watch).await;
        watch.clear();
        clusters.stop().await;
        done
    })?;
    Ok((done.map(|_| Ended::Complete), trace))
}
