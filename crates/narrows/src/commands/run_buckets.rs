//! `narrows run` of a plan with a bucket.

use std::path::Path;

use anyhow::Context;
use lab::buckets;
use lab::plan::{Resolved, Variant};
use lab::runner::Journal;
use record::Writer;

use crate::exit::Usage;
use crate::interrupt::{Ended, until_told};
use crate::on::On;
use crate::progress::Progress;

/// The host of the virtual world between both servers.
const MANAGER: &str = "manager";

/// Runs every variant and lap where the command line says.
pub(super) fn run(plan: &Resolved, on: &On, writer: Writer) -> anyhow::Result<Ended> {
    match on {
        On::Embedded => on_threads(plan, writer),
        On::Virtual => in_virtual_time(plan, writer).map(|()| Ended::Complete),
        On::OpenSearch | On::Url(_) => Err(Usage(format!(
            "plan {} streams a bucket's documents; it runs with --on embedded or --on virtual. `narrows dcp drain` \
             measures a server of yours",
            plan.name
        ))
        .into()),
    }
}

fn laps(plan: &Resolved) -> impl Iterator<Item = (u32, &Variant)> {
    (1..=plan.laps).flat_map(|lap| plan.variants.iter().map(move |variant| (lap, variant)))
}

fn on_threads(plan: &Resolved, mut writer: Writer) -> anyhow::Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let progress = Progress::new();
        let working = async {
            let journal = Journal::new(&env, &mut writer);
            for (lap, variant) in laps(plan) {
                let dir = tempfile::tempdir().context("make a temporary directory")?;
                buckets::measure(&env, plan, variant, lap, dir.path(), &journal, &progress).await?;
            }
            Ok(())
        };
        let ended = until_told(working).await;
        progress.clear();
        ended
    })
}

/// Each variant in a world of its own: what one leaves behind takes no memory in the next.
fn in_virtual_time(plan: &Resolved, mut writer: Writer) -> anyhow::Result<()> {
    let mut before_ms = 0.0;
    for (lap, variant) in laps(plan) {
        let (plan, variant) = (plan.clone(), variant.clone());
        let seed = plan.seed;
        let (ended, _trace) = world::virtual_world::run_traced(seed, async move |env| {
            let env = env.host(MANAGER);
            let progress = Progress::new();
            let journal = Journal::going_on(&env, &mut writer, before_ms);
            let dir = Path::new("/buckets");
            let measured =
                buckets::measure(&env, &plan, &variant, lap, dir, &journal, &progress).await;
            progress.clear();
            let t_ms = journal.t_ms();
            drop(journal);
            measured.map(|_| (writer, t_ms))
        })?;
        (writer, before_ms) = ended?;
    }
    Ok(())
}
