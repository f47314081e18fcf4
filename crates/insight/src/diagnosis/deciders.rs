//! The deciders that keep copies from nodes, and what each asks for.

use record::observation::WaitingCopy;

/// The decider of copies that failed too often.
pub(crate) const MAX_RETRY: &str = "max_retry";
/// The decider of nodes that hold a copy of the shard.
pub(crate) const SAME_SHARD: &str = "same_shard";

/// The setting that turns allocation off, and its default.
pub(crate) const ENABLE: (&str, &str) = ("cluster.routing.allocation.enable", "all");

/// A decider of Elasticsearch that says no, and what it asks for.
pub(crate) struct Decider {
    pub(crate) name: &'static str,
    pub(crate) action: &'static str,
    /// The setting that it obeys, where it is one.
    pub(crate) setting: Option<&'static str>,
    /// Words by which it gives one of its reasons, and what that one asks for.
    narrower: &'static [(&'static str, &'static str)],
}

impl Decider {
    const fn new(
        name: &'static str,
        action: &'static str,
        setting: Option<&'static str>,
    ) -> Decider {
        Decider { name, action, setting, narrower: &[] }
    }

    /// The cluster's setting that it names of these copies, and its value: of several that it may obey, as the
    /// watermarks of a disk, it names one. The usual one counts where it is named of any node.
    pub(crate) fn cited<'c>(&self, copies: &[&'c WaitingCopy]) -> Option<(&'c str, &'c str)> {
        let named = || copies.iter().copied().flat_map(|copy| self.words(copy)).filter_map(cited);
        named().find(|(name, _)| Some(*name) == self.setting).or_else(|| named().next())
    }

    /// What it asks for, by what it says of these copies.
    pub(crate) fn action_for(&self, copies: &[&WaitingCopy]) -> &'static str {
        let said: Vec<&str> = copies.iter().flat_map(|copy| self.words(copy)).collect();
        let is_given = |(words, _): &&(&str, &str)| match self.name {
            // A node that holds a copy has no other reason to give.
            SAME_SHARD => said.iter().any(|one| one.contains(words)),
            _ => !said.is_empty() && said.iter().all(|one| one.contains(words)),
        };
        self.narrower.iter().find(is_given).map_or(self.action, |(_, action)| *action)
    }

    /// Its own words on a copy, or the cluster's where no decider is named.
    fn words<'c>(&self, copy: &'c WaitingCopy) -> Vec<&'c str> {
        let own = copy.decisions.iter().filter(|decision| decision.decider == self.name);
        let whole = copy.explanation.as_deref().filter(|_| copy.decisions.is_empty());
        own.map(|decision| decision.explanation.as_str()).chain(whole).collect()
    }
}

/// Deciders, most telling first: of several that keep a copy from nodes alike, the first of these names the block.
pub(crate) const DECIDERS: &[Decider] = &[
    Decider {
        narrower: &[
            (
                "Corrupt",
                "a file was corrupt when it failed last: look at the disk of the node that is named there; POST \
                 _cluster/reroute?retry_failed makes a replica anew of a primary that is sound, and a primary whose \
                 files are corrupt has to be restored from a snapshot",
            ),
            (
                "CircuitBreakingException",
                "a circuit breaker refused its last try: take off what fills the heap of the node that is named \
                 there, or give it more heap, then POST _cluster/reroute?retry_failed",
            ),
            (
                "ShardLockObtainFailedException",
                "a copy that was here before had not closed yet: POST _cluster/reroute?retry_failed; a node that \
                 never closes it has to be started again",
            ),
            (
                "No space left on device",
                "the disk was full when it failed last: make room, then POST _cluster/reroute?retry_failed",
            ),
            (
                "IOException while reading",
                "a file that the analysis of its index names cannot be read: put it on every node that may hold the \
                 index, then POST _cluster/reroute?retry_failed",
            ),
        ],
        ..Decider::new(
            MAX_RETRY,
            "it failed too often: see its last failure, then POST _cluster/reroute?retry_failed",
            None,
        )
    },
    Decider::new(
        "disk_threshold",
        "disks are past the watermark: make room, add a node, or let it keep less free while you do",
        Some("cluster.routing.allocation.disk.watermark.low"),
    ),
    Decider {
        narrower: &[(
            "are forbidden due to",
            "allocation is limited to primaries, or to those of new indices: turn it on for all",
        )],
        ..Decider::new("enable", "allocation is turned off: turn it on", Some(ENABLE.0))
    },
    Decider {
        narrower: &[(
            "that hold a copy of every shard",
            "it is made of another index's copies, and the node that had them all is not there: bring it back, or \
             delete this index and shrink, split or clone again",
        )],
        ..Decider::new(
            "filter",
            "allocation filters name no node that may hold it: look at index.routing.allocation.* and \
             cluster.routing.allocation.*",
            None,
        )
    },
    Decider {
        narrower: &[(
            "does not contain the awareness attribute",
            "the nodes lack the attribute that awareness goes by: start them with node.attr.*, or correct the setting",
        )],
        ..Decider::new(
            "awareness",
            "awareness wants it in a zone that has no room: add a node there, or take a zone that is no more out of \
             cluster.routing.allocation.awareness.force.*",
            Some("cluster.routing.allocation.awareness.attributes"),
        )
    },
    Decider::new(
        "data_tier",
        "no node has the tier that the index prefers: look at index.routing.allocation.include._tier_preference",
        None,
    ),
    Decider::new(
        "shards_limit",
        "nodes hold as many shards as total_shards_per_node allows: raise it, or add a node",
        Some("cluster.routing.allocation.total_shards_per_node"),
    ),
    Decider::new(
        "node_version",
        "the other nodes are older than the primary's: upgrade them",
        None,
    ),
    Decider::new("snapshot_in_progress", "a snapshot is being taken: wait for it", None),
    Decider::new(
        "restore_in_progress",
        "its restore failed, and no retry of copies restores it: see why, then close or delete the index, and restore \
         it again",
        None,
    ),
    Decider::new("node_shutdown", "nodes are being shut down: add one", None),
    Decider {
        narrower: &[(
            "stale or corrupt",
            "the copies that are here are stale or corrupt: bring back a node that holds a good one, or restore the \
             index from a snapshot; _cluster/reroute with allocate_stale_primary takes a stale one and loses what it \
             lacks",
        )],
        ..Decider::new(
            "in_sync_store",
            "no node that is here has a good copy: bring back the node that held one, with its disk, or restore the \
             index from a snapshot; _cluster/reroute with allocate_empty_primary begins with nothing, and what it held \
             is lost",
            None,
        )
    },
    Decider {
        narrower: &[(
            "same_shard.host",
            "the other nodes are on a host that holds a copy already: add a host, or set \
             cluster.routing.allocation.same_shard.host to false: a host that fails may then take two copies along",
        )],
        ..Decider::new(
            SAME_SHARD,
            "a node takes one copy of a shard: add a node, or lower index.number_of_replicas",
            None,
        )
    },
];

/// The cluster's setting that an answer of a decider names: of a disk it may be the low watermark, the high one, or
/// what bounds how much either keeps free (`max_headroom`, Elasticsearch since 8.5).
fn cited(explanation: &str) -> Option<(&str, &str)> {
    let (_, cited) = explanation.split_once("cluster setting [")?;
    cited.split_once(']')?.0.split_once('=')
}
