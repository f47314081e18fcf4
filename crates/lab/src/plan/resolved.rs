//! A plan with everything in units: what a runner works through.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::corpus::Source;

/// A plan, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Name of the plan.
    pub name: String,
    /// One sentence of the plan about itself.
    pub about: String,
    /// Which published experiment it repeats.
    pub source: Option<String>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Repetitions of every variant.
    pub laps: u32,
    /// Time between two samples.
    pub sample: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// What the corpus was scaled by; 1 is the plan's own size.
    pub scale: f64,
    /// The cluster that holds the data.
    pub leader: Cluster,
    /// The cluster that recovers from it.
    pub follower: Cluster,
    /// Whether the follower's nodes are not a cluster of their own, but the leader's second site.
    pub joined: bool,
    /// The path between the two.
    pub link: Link,
    /// What is indexed.
    pub corpus: CorpusUse,
    /// Where it is indexed.
    pub index: Index,
    /// Variants in the order of the plan; at least one.
    pub variants: Vec<Variant>,
}

impl Resolved {
    /// The step that each variant is measured in; none where the plan measures nothing.
    pub fn way(&self) -> Option<Step> {
        let measured = [Step::Recover, Step::AddReplica, Step::Restore];
        self.steps.iter().copied().find(|step| measured.contains(step))
    }
}

/// What is done, in the words of the progress display and the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Start the clusters.
    Start,
    /// Index the corpus on the leader, then stop.
    Index,
    /// Recover the index on the follower, for each variant.
    Recover,
    /// Add a copy of the index on the second site, for each variant.
    AddReplica,
    /// Restore a snapshot of the index on the follower, for each variant.
    Restore,
    /// Compare both sides.
    Verify,
}

impl Step {
    /// Every step.
    pub const ALL: [Step; 6] =
        [Step::Start, Step::Index, Step::Recover, Step::AddReplica, Step::Restore, Step::Verify];

    /// The name in plans: `start`, `index`, `recover`, `add_replica`, `restore`, `verify`.
    pub fn name(self) -> &'static str {
        match self {
            Step::Start => "start",
            Step::Index => "index",
            Step::Recover => "recover",
            Step::AddReplica => "add_replica",
            Step::Restore => "restore",
            Step::Verify => "verify",
        }
    }
}

/// A cluster to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Nodes, at least one.
    pub nodes: u32,
}

/// The path between leader and follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Round-trip time.
    pub rtt: Duration,
    /// Rate in each direction.
    pub rate_bytes_per_s: u64,
    /// Window of one connection; none where it is not bounded.
    pub window_bytes: Option<u64>,
}

/// What is indexed and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusUse {
    /// Generated or a file.
    pub source: Source,
    /// Documents, scaled, at least one. A file may hold fewer.
    pub documents: u64,
    /// Documents in a bulk request.
    pub bulk_documents: u64,
    /// Clients that index at the same time.
    pub clients: u32,
}

/// The index on the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Primary shards.
    pub shards: u32,
    /// Copies of each beside the primary.
    pub replicas: u32,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name, unique in the plan.
    pub name: String,
    /// Settings by their names: the plan's own and, before those, the variant's.
    pub settings: BTreeMap<String, String>,
    /// The published row that it stands beside.
    pub published: Option<Published>,
}

/// A published row.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Seconds that the recovery took.
    pub seconds: f64,
    /// Bytes that it moved: those of the primaries, from a column in units of 10^9.
    pub bytes: u64,
    /// What the document says beside the figure.
    pub note: Option<String>,
}
