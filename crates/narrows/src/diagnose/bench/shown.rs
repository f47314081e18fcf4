//! A case of each kind that nobody draws: what `narrows diagnose` shows without `--bench`.
//!
//! A verdict is right if its first finding is of a class that the injection is one of; of a healthy recovery, if
//! nothing is found.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::Clusters;
use insight::diagnosis::{Class, Diagnosis, diagnose};

use super::cause::Cause;
use super::conditions::{Conditions, EXCLUDE, Engine, SLOTS};
use super::place::Processes;
use super::stage::Stage;
use super::trial::{INTERVAL, LOOK_FOR, look};
use crate::diagnose::LIMIT;
use crate::diagnose::bed::FAR;
use crate::live::{ConnectArgs, Looking, Probing, connect, probe, title};

/// Round trip of the cases that have one.
const RTT: Duration = Duration::from_millis(100);
/// So much that the looks end before the recovery does, where anything holds it.
const SHARD_BYTES: u64 = 80_000_000;
/// Over in a moment, where nothing holds it.
const QUICK_BYTES: u64 = 8_000_000;
/// Shards of the case of slots, and bytes of each.
const SPLIT: (u32, u64) = (12, 3_300_000);
/// The rate of which a starved node has an eighth left: 5 MB/s.
const STARVED_BYTES_PER_S: f64 = 40e6;
const SEVERE: usize = 3;

/// One injected cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedCase {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What is injected, in words.
    pub(crate) injected: &'static str,
    /// The classes that are right; empty where nothing is to be found.
    pub(crate) expected: &'static [Class],
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Throttle,
    Link,
    Cpu,
    Slots,
    Block,
    Healthy,
}

#[rustfmt::skip]
pub(crate) const CASES: [NamedCase; 6] = [
    NamedCase { name: "throttle", kind: Kind::Throttle, expected: &[Class::RateLimit],
                injected: "indices.recovery.max_bytes_per_sec = 4mb" },
    NamedCase { name: "link", kind: Kind::Link, expected: &[Class::Latency],
                injected: "a round trip of 100 ms between the nodes, settings as they come" },
    NamedCase { name: "cpu", kind: Kind::Cpu, expected: &[Class::CpuQuota],
                injected: "the target's control group has a tenth of a core or less, no limit on the rate" },
    NamedCase { name: "slots", kind: Kind::Slots, expected: &[Class::AllocationSlots],
                injected: "12 shards, node_concurrent_recoveries = 1, a round trip of 100 ms" },
    NamedCase { name: "block", kind: Kind::Block, expected: &[Class::AllocationBlock],
                injected: "a replica that no node may hold" },
    NamedCase { name: "healthy", kind: Kind::Healthy, expected: &[],
                injected: "nothing: near nodes, no limit on the rate" },
];

/// What is seen of a case.
pub(crate) struct Shown {
    pub(crate) cluster: String,
    pub(crate) passive: Diagnosis,
    /// With probes, where they were wanted and there is something that one could change.
    pub(crate) probed: Option<Diagnosis>,
}

impl NamedCase {
    /// Why it cannot be injected on this machine.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let obstacle = "no control group with a quota can be made here (root on Linux can)";
        (self.kind == Kind::Cpu && machine::CONTROL_GROUPS.look().is_err()).then_some(obstacle)
    }

    /// Injects it into two nodes that run, and looks; then with probes, whose records are kept in `runs`.
    pub(crate) async fn shown<C: Clusters>(
        &self,
        place: &Processes<'_, C>,
        runs: Option<&Path>,
    ) -> anyhow::Result<Shown> {
        let can_be_probed = !matches!(self.kind, Kind::Block | Kind::Healthy);
        let runs = runs.filter(|_| can_be_probed).map(Path::to_owned);
        let act = async move |stage: &Stage<'_>| look(stage, false, explain(stage, runs)).await;
        place.act_under(&self.conditions(place.engine()), act).await
    }

    fn conditions(&self, engine: Engine) -> Conditions {
        let mut conditions = Conditions {
            engine,
            shards: 1,
            shard_bytes: SHARD_BYTES,
            segments: 1,
            recovers: true,
            is_flushed: true,
            ..Conditions::default()
        };
        match self.kind {
            Kind::Throttle => conditions.set(LIMIT, "4mb"),
            Kind::Link => conditions.link.rtt = RTT,
            Kind::Cpu => {
                conditions.set(LIMIT, "-1");
                conditions.inject(Cause::Quota, SEVERE, false, STARVED_BYTES_PER_S);
            }
            Kind::Slots => {
                (conditions.shards, conditions.shard_bytes) = SPLIT;
                conditions.set(SLOTS, 1);
                conditions.link.rtt = RTT;
            }
            Kind::Block => conditions.set(EXCLUDE, format!("{FAR}-0")),
            Kind::Healthy => {
                conditions.shard_bytes = QUICK_BYTES;
                conditions.set(LIMIT, "-1");
            }
        }
        conditions
    }
}

/// As `narrows explain`, first without and then with `--probe`.
async fn explain(stage: &Stage<'_>, runs: Option<PathBuf>) -> anyhow::Result<Shown> {
    let (env, urls, args) = (&stage.env, stage.urls(), ConnectArgs::default());
    let sampler = connect(env, &urls, &args).await?;
    let cluster = match sampler.identity() {
        ours if ours.flavour == "narrows" => "the embedded engine".to_owned(),
        other => title(other),
    };
    let mut looking = Looking::new(sampler, INTERVAL);
    looking.look_for(LOOK_FOR).await?;
    let passive = diagnose(&looking.series());
    let mut probed = None;
    if let Some(runs) = &runs {
        let probing = Probing { runs, urls: &urls, connect: &args, aloud: false };
        probe(env, &mut looking, probed.insert(passive.clone()), &probing).await?;
    }
    Ok(Shown { cluster, passive, probed })
}
