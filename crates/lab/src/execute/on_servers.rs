//! Executes a plan with a bucket: on servers that run on threads of this process, or on hosts of the virtual world.

use std::path::Path;

use clusters::TemporaryDir;
use record::Writer;

use super::options::Options;
use super::place::Place;
use super::working::{Ended, until_interrupted};
use crate::error::{Error, Result};
use crate::experiments::{Stage, StreamBuckets};
use crate::plan::Resolved;
use crate::runner::{Journal, Turn, VirtualTime, Watch};

/// The host of the virtual world between both servers.
const MANAGER: &str = "manager";
/// Where servers of the virtual world have their files.
const VIRTUAL_DIR: &str = "/buckets";

/// Runs every variant and lap.
pub(super) fn run(
    plan: &Resolved,
    place: &Place,
    options: &Options,
    writer: Writer,
) -> Result<Ended> {
    match place {
        Place::Embedded { .. } => on_threads(plan, options, writer),
        Place::Virtual { .. } => in_virtual_time(plan, options, writer),
        Place::OpenSearch(_) | Place::Live(_) => Err(Error::usage(format!(
            "plan {} streams a bucket's documents; it runs with --on embedded or --on virtual. `narrows dcp drain` \
             measures a server of yours",
            plan.name
        ))),
    }
}

fn on_threads(plan: &Resolved, options: &Options, mut writer: Writer) -> Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let watch = &*options.watch;
        let working = async {
            let journal = &Journal::new(&env, &mut writer);
            let at_least_s =
                plan.bucket.as_ref().map_or(0.0, |bucket| bucket.at_least.as_secs_f64());
            // Lap by lap, so that a machine that becomes slower does so for all variants alike.
            let (mut lap, mut took_s) = (0, vec![0.0; plan.variants.len()]);
            while lap < plan.laps || took_s.iter().any(|took_s| *took_s < at_least_s) {
                lap += 1;
                for (variant, took_s) in plan.variants.iter().zip(&mut took_s) {
                    if lap > plan.laps && *took_s >= at_least_s {
                        continue;
                    }
                    let dir = TemporaryDir::make()?;
                    let (turn, env, dir) = (&Turn::of(variant, lap), &env, dir.path());
                    let stage = Stage { env, plan, turn, dir, journal, watch };
                    *took_s += StreamBuckets::run(&stage).await?.seconds;
                }
            }
            Ok(())
        };
        let ended = until_interrupted(&options.interrupt, working).await;
        watch.clear();
        ended
    })
}

/// Each variant in a world of its own: what one leaves behind takes no memory in the next.
fn in_virtual_time(plan: &Resolved, options: &Options, mut writer: Writer) -> Result<Ended> {
    let mut before_ms = 0.0;
    let turns = (1..=plan.laps).flat_map(|lap| plan.variants.iter().map(move |one| (one, lap)));
    for (variant, lap) in turns {
        let (plan, variant) = (plan.clone(), variant.clone());
        let (watch, interrupt) = (options.watch.clone(), options.interrupt.clone());
        let (came, _trace) = world::virtual_world::run_traced(plan.seed, async move |env| {
            let env = &env.host(MANAGER);
            let watch = VirtualTime::new(env, watch);
            let journal = Journal::going_on(env, &mut writer, before_ms);
            let turn = &Turn::of(&variant, lap);
            let dir = Path::new(VIRTUAL_DIR);
            let stage = Stage { env, plan: &plan, turn, dir, journal: &journal, watch: &watch };
            let ended = until_interrupted(&interrupt, StreamBuckets::run(&stage)).await;
            watch.clear();
            let t_ms = journal.t_ms();
            drop(journal);
            ended.map(|ended| (ended, writer, t_ms))
        })?;
        let (ended, going_on, t_ms) = came?;
        (writer, before_ms) = (going_on, t_ms);
        if ended == Ended::Interrupted {
            return Ok(ended);
        }
    }
    Ok(Ended::Complete)
}
