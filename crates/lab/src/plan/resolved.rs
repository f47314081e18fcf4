//! A plan with everything in units: what a runner works through.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use clusters::FaultKind;

use super::action::Action;
use super::background::Background;
use super::fault::{Fault, LINK};
use super::rollover::Rollover;
use crate::Error;
use crate::corpus::Source;
use crate::load::{Arrival, Extent, Operation};
use crate::runner::{FOLLOWER, LEADER};

/// A corpus that is larger than this is not indexed document by document.
const REAL_BYTES_MAX: f64 = 200e9;
/// Of a document of a file, whose size is not known beforehand.
const FILE_DOCUMENT_BYTES: f64 = 1e3;

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
    /// What happens in a plan that follows, one after another, for each variant; empty in others.
    pub actions: Vec<Action>,
    /// Repetitions of every variant.
    pub laps: u32,
    /// Time between two samples; long recoveries are sampled less often as they go on.
    pub sample: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// What the documents were scaled by; 1 is the plan's own size.
    pub scale: f64,
    /// The cluster that holds the data.
    pub leader: Cluster,
    /// The cluster that recovers from it; none where nodes of one cluster recover from each other.
    pub follower: Option<Cluster>,
    /// Whether the follower's nodes are not a cluster of their own, but the leader's second site.
    pub joined: bool,
    /// The path between the two.
    pub link: Option<Link>,
    /// What is indexed; none where a bucket's documents are streamed.
    pub corpus: Option<CorpusUse>,
    /// What is streamed from a server to another, in place of indices.
    pub bucket: Option<BucketUse>,
    /// Where it is indexed, with names of their own; at least one where there is no bucket.
    pub indices: Vec<Index>,
    /// Settings that every node starts with, as in its configuration file.
    pub node_settings: BTreeMap<String, String>,
    /// Variants in the order of the plan; at least one.
    pub variants: Vec<Variant>,
}

impl Resolved {
    /// The step that each variant is measured in; none where the plan measures nothing.
    pub fn way(&self) -> Option<Step> {
        self.steps.iter().copied().find(|step| Step::MEASURED.contains(&step.name()))
    }

    /// Whether a node is cut off.
    pub fn cuts_nodes_off(&self) -> bool {
        self.faults().any(|fault| fault.kind == FaultKind::Cut && fault.node != LINK)
    }

    /// Has the follower restore a snapshot where the plan recovers through cross-cluster replication, with `variants`
    /// of such a restore: chunks and how many of them are in flight are no settings of it.
    pub fn restore_instead(&mut self, variants: Vec<Variant>) {
        for step in self.steps.iter_mut().filter(|step| **step == Step::Recover) {
            *step = Step::Restore;
        }
        self.about.push_str(
            " Through a snapshot that the follower restores from the leader's repository: the cluster has no \
             cross-cluster replication.",
        );
        self.variants = variants;
    }

    /// Calls the indices otherwise: an only one `name`, of several each `name-` and what it was called. Operations
    /// follow.
    pub fn name_indices(&mut self, name: &str) {
        let before = self.index_names();
        match self.indices.as_mut_slice() {
            [only] => only.name = name.to_owned(),
            several => {
                several.iter_mut().for_each(|index| index.name = format!("{name}-{}", index.name))
            }
        }
        let mut renamed: BTreeMap<String, String> = before
            .split(',')
            .map(str::to_owned)
            .zip(self.indices.iter().map(|i| i.name.clone()))
            .collect();
        renamed.insert(before, self.index_names());
        let loads = self.variants.iter_mut().filter_map(|variant| variant.load.as_mut());
        for load in loads {
            let operations = load.operations.iter_mut().chain(&mut load.full.operations);
            operations.for_each(|operation| operation.rename_index(&renamed));
        }
    }

    /// The names of the indices, as a path takes them: `leader1,leader2`.
    pub fn index_names(&self) -> String {
        let names: Vec<&str> = self.indices.iter().map(|index| index.name.as_str()).collect();
        names.join(",")
    }

    /// Primary shards of all indices.
    pub fn shards(&self) -> u32 {
        self.indices.iter().map(|index| index.shards).sum()
    }

    /// What is indexed while the recovery goes on, if anything.
    pub fn background(&self) -> Option<Background> {
        self.steps.iter().find_map(|step| match step {
            Step::IndexInBackground(background) => Some(*background),
            _ => None,
        })
    }

    /// How copies of the same cluster come to recover from each other, if they do.
    pub fn peers(&self) -> Option<Peers> {
        self.steps.iter().find_map(|step| match step {
            Step::RecoverPeers(peers) => Some(*peers),
            _ => None,
        })
    }

    /// Whether a variant leaves the indices other than it found them, so that each needs them anew.
    pub fn spoils_indices(&self) -> bool {
        self.background().is_some()
            || self.way() == Some(Step::Follow)
            || matches!(self.peers(), Some(Peers::Restart { .. }))
    }

    /// Refuses a corpus that only the virtual world has room for. `target` is its name.
    pub fn check_size(&self, target: &'static str, is_virtual: bool) -> Result<(), Error> {
        let bytes = match (&self.corpus, &self.bucket) {
            (_, Some(bucket)) => (bucket.items * bucket.item_bytes) as f64,
            (Some(corpus), None) => corpus.documents as f64 * corpus.document_bytes(),
            (None, None) => 0.0,
        };
        let bytes = bytes + self.written_in_background(is_virtual);
        if (is_virtual && self.full_bytes().is_some()) || bytes <= REAL_BYTES_MAX {
            return Ok(());
        }
        // One digit is enough of advice: a GB or less.
        let scale = 10f64.powf((self.scale * 1e9 / bytes).log10().floor());
        Err(Error::TooLarge { plan: self.name.clone(), target, bytes: bytes as u64, scale })
    }

    /// Bytes of the documents that are waited for, where they are written one by one.
    fn written_in_background(&self, is_virtual: bool) -> f64 {
        let by_the_run = |action: &Action| matches!(action, Action::IndexInBackground(rate) if rate.full.is_some());
        if is_virtual && self.actions.iter().any(by_the_run) {
            return 0.0;
        }
        let written = self.actions.iter().map(|action| match action {
            Action::WaitForDocuments(written) => written.of(is_virtual),
            _ => 0,
        });
        let document_bytes = self.corpus.as_ref().map_or(0.0, CorpusUse::document_bytes);
        written.sum::<u64>() as f64 * document_bytes
    }

    /// Every fault, of variants and of steps.
    fn faults(&self) -> impl Iterator<Item = &Fault> {
        let of_variants = self.variants.iter().flat_map(|variant| &variant.faults);
        let of_steps = self.actions.iter().filter_map(|action| match action {
            Action::Fault { fault, .. } => Some(fault),
            _ => None,
        });
        of_variants.chain(of_steps)
    }

    /// Refuses faults that `target` does not have: only the virtual world moves clocks, and it and the embedded engine
    /// fill disks.
    pub fn check_faults(&self, target: &'static str, is_virtual: bool) -> Result<(), Error> {
        let what = self.faults().find_map(|fault| match fault.kind {
            FaultKind::FullDisk { .. } if target != "embedded" => Some("fill a disk"),
            FaultKind::Clock { .. } => Some("move a node's clock"),
            _ => None,
        });
        match what {
            Some(what) if !is_virtual => Err(clusters::Error::VirtualOnly { target, what }.into()),
            _ => Ok(()),
        }
    }

    /// The nodes whose disks are filled.
    pub fn full_disks(&self) -> BTreeSet<String> {
        let full = self.faults().filter(|fault| matches!(fault.kind, FaultKind::FullDisk { .. }));
        full.flat_map(|fault| self.nodes_called(&fault.node)).collect()
    }

    /// The nodes of a cluster, where a fault names one; the node otherwise.
    pub(crate) fn nodes_called(&self, name: &str) -> Vec<String> {
        let count = match name {
            LEADER => self.leader.nodes,
            FOLLOWER => self.follower.map_or(0, |follower| follower.nodes),
            node => return vec![node.to_owned()],
        };
        (0..count).map(|n| format!("{name}-{n}")).collect()
    }

    /// Bytes that the primaries hold in the published run; none where an index does not say it.
    pub fn full_bytes(&self) -> Option<u64> {
        self.indices.iter().map(|index| Some(index.full?.bytes)).sum()
    }
}

/// What is done, in the words of the progress display and the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Start the clusters.
    Start,
    /// Index the corpus on the leader, then stop.
    Index,
    /// Go on indexing on the leader while the follower recovers.
    IndexInBackground(Background),
    /// Recover the indices on the follower, for each variant.
    Recover,
    /// Recover copies from copies of the same cluster, for each variant.
    RecoverPeers(Peers),
    /// Add a copy of the indices on the second site, for each variant.
    AddReplica,
    /// Restore a snapshot of the indices on the follower, for each variant.
    Restore,
    /// Send a load to the leader and measure it, for each variant.
    Load,
    /// Have the follower follow the leader while what the plan says happens, for each variant.
    Follow,
    /// Fill the source's bucket.
    Fill,
    /// Stream the bucket's documents to the other server, for each variant.
    Move,
    /// Compare both sides.
    Verify,
}

impl Step {
    /// The name of every step.
    pub const NAMES: [&str; 12] = [
        "start",
        "index",
        "index_in_background",
        "recover",
        "recover_peers",
        "add_replica",
        "restore",
        "load",
        "follow",
        "fill",
        "move",
        "verify",
    ];
    /// The steps that variants are measured in; a plan has one of them at most.
    pub const MEASURED: [&str; 7] =
        ["recover", "recover_peers", "add_replica", "restore", "load", "follow", "move"];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Step::Start => Step::NAMES[0],
            Step::Index => Step::NAMES[1],
            Step::IndexInBackground(_) => Step::NAMES[2],
            Step::Recover => Step::NAMES[3],
            Step::RecoverPeers(_) => Step::NAMES[4],
            Step::AddReplica => Step::NAMES[5],
            Step::Restore => Step::NAMES[6],
            Step::Load => Step::NAMES[7],
            Step::Follow => Step::NAMES[8],
            Step::Fill => Step::NAMES[9],
            Step::Move => Step::NAMES[10],
            Step::Verify => Step::NAMES[11],
        }
    }
}

/// How copies of one cluster come to recover from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peers {
    /// The indices get one replica more.
    Replicas,
    /// So many nodes restart one after another, each with an empty disk. The first node manages and stays up.
    Restart {
        /// How many.
        nodes: u32,
    },
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

/// A bucket's documents, as many as the target can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUse {
    /// How many vbuckets.
    pub vbuckets: u16,
    /// Documents, scaled, at least one.
    pub items: u64,
    /// Bytes of a document's value.
    pub item_bytes: u64,
    /// The memory of a server's bucket.
    pub quota_bytes: u64,
    /// Documents and memory at the published size, scaled; none where it is the plan's own.
    pub full: Option<(u64, u64)>,
}

impl BucketUse {
    /// The same at the published size.
    #[must_use]
    pub fn at_full_size(&self) -> BucketUse {
        match self.full {
            Some((items, quota_bytes)) => BucketUse { items, quota_bytes, ..self.clone() },
            None => self.clone(),
        }
    }
}

impl CorpusUse {
    /// Mean bytes of a document's source.
    pub fn document_bytes(&self) -> f64 {
        match &self.source {
            Source::Generated(corpus) => corpus.mean_bytes(),
            Source::File(_) => FILE_DOCUMENT_BYTES,
        }
    }
}

/// An index on the leader.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Primary shards.
    pub shards: u32,
    /// Copies of each beside the primary.
    pub replicas: u32,
    /// Which documents of the corpus it gets, counted from 0.
    pub documents: Range<u64>,
    /// Its size in the published run, scaled: what a virtual target loads.
    pub full: Option<Full>,
    /// Where it is an alias, and a new index takes its writes once the one before is large or old enough.
    pub rollover: Option<Rollover>,
    /// Its settings, but for the numbers of shards and replicas.
    pub settings: BTreeMap<String, String>,
}

impl Index {
    /// The name of the first index on the leader: where it rolls over, its own name is that of the alias.
    pub fn first_name(&self) -> String {
        match self.rollover {
            Some(_) => format!("{}-000001", self.name),
            None => self.name.clone(),
        }
    }

    /// Copies of each shard beside the primary, under a variant.
    pub fn replicas_of(&self, variant: &Variant) -> u32 {
        variant.replicas.unwrap_or(self.replicas)
    }
}

/// An index by its size alone; without replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// Documents.
    pub documents: u64,
    /// Bytes of segment files.
    pub bytes: u64,
    /// Segments over all shards.
    pub segments: u32,
    /// How large each of a shard's segments is beside the one before; 1 where all are equal.
    pub segment_ratio: f64,
}

/// A parameter of the virtual world, as a plan sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Which hosts it is for.
    pub scope: Scope,
    /// Its name in [`world::model::parameters`].
    pub name: String,
    /// Its value, as written.
    pub value: String,
    /// Where the value comes from.
    pub source: String,
    /// The published rows that it was fitted to, where it was.
    pub calibrated_on: Option<String>,
}

/// Which hosts a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All, and the link.
    Everywhere,
    /// Those of the leader.
    Leader,
    /// Those of the follower.
    Follower,
}

impl Scope {
    /// The name in records: `all`, `leader`, `follower`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Everywhere => "all",
            Scope::Leader => "leader",
            Scope::Follower => "follower",
        }
    }
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name, unique in the plan.
    pub name: String,
    /// Settings by their names: the plan's own and, before those, the variant's.
    pub settings: BTreeMap<String, String>,
    /// Parameters of the virtual world: the plan's, then its clusters', then the variant's. The last one counts.
    pub parameters: Vec<Parameter>,
    /// Names of the parameters that are this variant's own.
    pub own_parameters: Vec<String>,
    /// The published row that it stands beside.
    pub published: Option<Published>,
    /// The variant that it is compared with; none is the first.
    pub beside: Option<String>,
    /// Replicas of every index, in place of what the index says.
    pub replicas: Option<u32>,
    /// The load that is sent, where the plan sends one.
    pub load: Option<LoadUse>,
    /// What befalls nodes while it is sent.
    pub faults: Vec<Fault>,
}

/// A load as a variant sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadUse {
    /// What is sent, one after another; at least one.
    pub operations: Vec<Operation>,
    /// What is sent in its place where indices are loaded by their sizes.
    pub full: FullLoad,
    /// Clients.
    pub clients: u32,
    /// When requests start.
    pub arrival: Arrival,
    /// What each operation sends before it is measured.
    pub warm_up: Extent,
    /// What is measured of each.
    pub measured: Extent,
    /// An answer that takes longer is given up.
    pub timeout: Duration,
    /// Throughput is counted in windows of this length.
    pub window: Duration,
    /// The nodes that are asked, in turn; all of the leader's where none is named.
    pub nodes: Vec<String>,
    /// Threads of the driver, in the real world.
    pub threads: u32,
}

/// A load at the size of the published run, on indices that have sizes and no documents.
#[derive(Clone, Debug, PartialEq)]
pub struct FullLoad {
    /// Repetitions, where there are others than the plan's.
    pub laps: Option<u32>,
    /// The operations, as searches that cost and count.
    pub operations: Vec<Operation>,
    /// What each sends before it is measured.
    pub warm_up: Extent,
    /// What is measured of each.
    pub measured: Extent,
}

/// A published row.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The file and the column of the figure: `remote-recovery, recovery_seconds`.
    pub figure: String,
    /// The columns that it was found by: `track = geopoint, chunk_size = 1mb`.
    pub row: String,
    /// The figure as it is printed.
    pub text: String,
    /// Seconds that the recovery took, where that is the figure.
    pub seconds: Option<f64>,
    /// Bytes a second of a node, where that is the figure; from a column in units of 10^6.
    pub node_bytes_per_s: Option<f64>,
    /// Figures of a load by their names, where those are published: `Median Throughput`, `50th percentile latency`, ...
    pub load: BTreeMap<String, f64>,
    /// Bytes that it moved: those of the primaries, from a column in units of 2^30, as Elasticsearch prints.
    pub bytes: Option<u64>,
    /// Whether parameters of the virtual world were fitted to this row. All others are predicted.
    pub calibrated: bool,
    /// What the document says beside the figure.
    pub note: Option<String>,
}
