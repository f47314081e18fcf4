//! The table. Sources: the reference manuals of Elasticsearch (CCR settings, index recovery settings,
//! cluster-level shard allocation, networking, index modules) and, where it differs, OpenSearch;
//! `narrows.*` are our own.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use super::words::{
    AllocationEnable, AllocationWeights, AllowRebalance, CheckOnStartup, Compress,
    CompressionScheme, Durability, FollowPace, RebalanceEnable, RemoteMode, Scheduler, Selection,
};
use super::{Kind, SettingError, watermark};

/// What a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// The cluster: `PUT _cluster/settings`.
    Cluster,
    /// One index: `PUT {index}` and `PUT {index}/_settings`.
    Index,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Full name; one `*` stands for an alias.
    pub name: &'static str,
    /// What a value may be.
    pub kind: Kind,
    /// The value where none was given, as canonical text.
    pub default: &'static str,
    /// Whether it may change while the cluster, or the index, is in use.
    pub dynamic: bool,
    /// What it belongs to.
    pub scope: SettingScope,
    /// One line for people.
    pub doc: &'static str,
}

const fn cluster(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { name, kind, default, dynamic: true, scope: SettingScope::Cluster, doc }
}

const fn index(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { name, kind, default, dynamic: true, scope: SettingScope::Index, doc }
}

const fn fixed(setting: Setting) -> Setting {
    Setting { dynamic: false, ..setting }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn limit(max: u64) -> Kind {
    Kind::Limit { max }
}

const fn at_least_ms(min_ms: u64) -> Kind {
    Kind::Duration { min: Duration::from_millis(min_ms), may_be_off: false }
}

/// The most that `index.number_of_shards` can be.
pub(crate) const SHARDS_MAX: u64 = 1024;

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;

/// Every setting, those of a subject together.
#[rustfmt::skip]
pub static TABLE: &[Setting] = &[
    cluster("action.destructive_requires_name", Kind::Bool, "false",
        "Whether indices are deleted by their names alone, and not by patterns or _all."),
    cluster("ccr.indices.recovery.chunk_size", size(KB, GB), "1mb",
        "Bytes asked for at once when a follower fetches files from its leader."),
    cluster("ccr.indices.recovery.internal_action_timeout", at_least_ms(1), "60s",
        "How long a request of a recovery from remote may take."),
    cluster("ccr.indices.recovery.max_bytes_per_sec", Kind::Throttle, "40mb",
        "Rate of all recoveries from remote of a node, on the leader and on the follower."),
    cluster("ccr.indices.recovery.max_concurrent_file_chunks", count(1, 10), "5",
        "Chunks in flight for one recovery from remote."),
    cluster("ccr.indices.recovery.recovery_activity_timeout", at_least_ms(1), "60s",
        "How long a leader keeps a session that asks for nothing."),
    cluster("cluster.info.update.interval", at_least_ms(10_000), "30s",
        "How often it is looked at how full disks are, and copies are tried again that were given up for want of \
         room."),
    cluster("cluster.max_shards_per_node", count(1, 1 << 30), "1000",
        "Copies of shards that the cluster may have for each node that is there; what would make more is refused."),
    cluster("cluster.metadata.*", Kind::Text { chars_max: 1024 }, "",
        "Anything that whoever runs the cluster wants to note there; no node obeys it."),
    cluster("cluster.remote.*.mode", Kind::Word(RemoteMode::WORDS), "sniff",
        "How a remote cluster is reached: at its nodes, which the seeds lead to, or through one proxy_address alone."),
    cluster("cluster.remote.*.proxy_address", Kind::Address, "",
        "With mode proxy, the one transport address to which all connections go; the node there passes on what is for \
         others."),
    cluster("cluster.remote.*.proxy_socket_connections", count(1, 1000), "18",
        "With mode proxy, connections that each node opens to that address."),
    cluster("cluster.remote.*.seeds", Kind::Addresses, "",
        "Transport addresses through which a remote cluster is reached."),
    cluster("cluster.remote.*.server_name", Kind::Text { chars_max: 1024 }, "",
        "With mode proxy, the name that TLS asks for; kept and shown, but connections here have no TLS."),
    cluster("cluster.remote.*.transport.compress", Kind::Word(Compress::WORDS), "false",
        "Whether bytes from this remote cluster are compressed (auto: while that makes the link carry more); unset, \
         transport.compress decides."),
    cluster("cluster.routing.allocation.allow_rebalance", Kind::Word(AllowRebalance::WORDS), "indices_all_active",
        "When copies may be moved so that nodes hold as many as each other."),
    cluster("cluster.routing.allocation.awareness.attributes", Kind::Names, "",
        "Attributes of nodes over whose values the copies of a shard are spread."),
    cluster("cluster.routing.allocation.awareness.force.*.values", Kind::Names, "",
        "Values of such an attribute that count although no node has them now."),
    cluster("cluster.routing.allocation.balance.index", Kind::Decimal, "0.55",
        "How much the copies of one index count for the balance of nodes."),
    cluster("cluster.routing.allocation.balance.shard", Kind::Decimal, "0.45",
        "How much the copies of all indices count for the balance of nodes."),
    cluster("cluster.routing.allocation.balance.threshold", Kind::Decimal, "1",
        "How much two nodes may differ before a copy is moved."),
    cluster("cluster.routing.allocation.cluster_concurrent_rebalance", limit(10_000), "2",
        "Copies that may be on their way at once before another is moved for the balance; -1 is no limit."),
    cluster("cluster.routing.allocation.disk.threshold_enabled", Kind::Bool, "false",
        "Whether copies are kept from disks that are full; true in the field, here only where it is asked for."),
    cluster(watermark::HIGH, Kind::Watermark, "90%",
        "How full a disk may be before copies are moved away from its node."),
    cluster(watermark::LOW, Kind::Watermark, "85%",
        "How full a disk may be before its node is given no more copies."),
    cluster("cluster.routing.allocation.enable", Kind::Word(AllocationEnable::WORDS), "all",
        "Which shard copies may be placed."),
    cluster("cluster.routing.allocation.exclude._host", Kind::Names, "",
        "Nodes on which no copy may be, by patterns of hosts; those that are there are moved away."),
    cluster("cluster.routing.allocation.exclude._ip", Kind::Names, "",
        "Nodes on which no copy may be, by patterns of addresses; those that are there are moved away."),
    cluster("cluster.routing.allocation.exclude._name", Kind::Names, "",
        "Nodes on which no copy may be, by names or patterns; those that are there are moved away."),
    cluster("cluster.routing.allocation.include._host", Kind::Names, "",
        "Nodes on one of which, of all that include names, copies have to be, by patterns of hosts; others are moved \
         there."),
    cluster("cluster.routing.allocation.include._ip", Kind::Names, "",
        "Nodes on one of which, of all that include names, copies have to be, by patterns of addresses; others are \
         moved there."),
    cluster("cluster.routing.allocation.include._name", Kind::Names, "",
        "Nodes on one of which, of all that include names, copies have to be, by names or patterns; others are moved \
         there."),
    cluster("cluster.routing.allocation.require._host", Kind::Names, "",
        "Nodes on which copies have to be, by patterns of hosts that all fit; others are moved there."),
    cluster("cluster.routing.allocation.require._ip", Kind::Names, "",
        "Nodes on which copies have to be, by patterns of addresses; others are moved there."),
    cluster("cluster.routing.allocation.require._name", Kind::Names, "",
        "Nodes on which copies have to be, by names or patterns that all fit; others are moved there."),
    cluster("cluster.routing.allocation.node_concurrent_incoming_recoveries", limit(i32::MAX as u64), "-1",
        "Peer recoveries that a node may receive at once; with -1 as many as node_concurrent_recoveries says."),
    cluster("cluster.routing.allocation.node_concurrent_outgoing_recoveries", limit(i32::MAX as u64), "-1",
        "Peer recoveries that a node may send at once; with -1 as many as node_concurrent_recoveries says."),
    cluster("cluster.routing.allocation.node_concurrent_recoveries", count(0, 10_000), "2",
        "Peer recoveries that a node may receive at once, and as many that it may send."),
    cluster("cluster.routing.allocation.node_initial_primaries_recoveries", count(0, 10_000), "4",
        "Primaries that a node may bring up at once from its disk, from nothing or from remote."),
    cluster("cluster.routing.allocation.total_shards_per_node", limit(i32::MAX as u64), "-1",
        "Copies that a node may hold of all indices; further ones are moved away. -1 and 0 are no limit."),
    cluster("cluster.routing.rebalance.enable", Kind::Word(RebalanceEnable::WORDS), "none",
        "Which copies are moved so that nodes hold as many as each other; all in the field, here only where it is \
         asked for."),
    cluster("cluster.routing.use_adaptive_replica_selection", Kind::Bool, "true",
        "Whether the copy that answers a search is chosen by how its node does, or in turn."),
    cluster("indices.recovery.chunk_size", size(1, 100 * MB), "512kb", "Bytes of a file chunk of a peer recovery."),
    cluster("indices.recovery.internal_action_timeout", at_least_ms(1), "15m",
        "How long a request of a peer recovery may take."),
    cluster("indices.recovery.max_bytes_per_sec", Kind::Throttle, "40mb",
        "Rate of all peer recoveries of a node, in and out."),
    cluster("indices.recovery.max_concurrent_file_chunks", count(1, 8), "2",
        "File chunks in flight for one peer recovery."),
    cluster("indices.recovery.max_concurrent_operations", count(1, 1), "1",
        "Batches of operations in flight for one peer recovery: here one after another, so that nothing but 1 is \
         accepted."),
    cluster("indices.recovery.retry_delay_network", at_least_ms(0), "5s",
        "Pause before a recovery is tried again after the network failed."),
    cluster("indices.recovery.retry_delay_state_sync", at_least_ms(0), "500ms",
        "Pause before a recovery is tried again while the source does not know of it yet."),
    cluster("narrows.allocation.field_order", Kind::Bool, "false",
        "Whether, as in the field, of started replicas the one on the first node by name becomes primary, and of an \
         index the highest shard is moved first for the balance; not the replica on the emptiest node, and the lowest \
         shard."),
    cluster("narrows.allocation.replica_ring", Kind::Bool, "false",
        "Whether a replica goes, of the nodes that hold as few copies, to the one whose highest primary of the index \
         has the next number, as in the field, and not to the next by name, from another one on for each index."),
    cluster("narrows.allocation.return_to_files", Kind::Bool, "false",
        "Whether a replica that is being made is given up, as in the field, when a node comes whose copy lacks \
         nothing."),
    cluster("narrows.allocation.uncounted", Kind::Names, "",
        "Names of nodes that hold no copies and do not count where it is said from which node on replicas of an index \
         are placed, nor in cluster.max_shards_per_node: in a twin the one that manages its cluster."),
    cluster("narrows.allocation.weights", Kind::Word(AllocationWeights::WORDS), "copies",
        "What says how full a node is for a replica, and for a copy that has to move: the number of its copies, or as \
         in the field also its copies of the index, by cluster.routing.allocation.balance.*; with opensearch a node \
         with its share of the index comes last for a replica."),
    cluster("narrows.fault_detection.on_disconnect", Kind::Bool, "false",
        "Whether nodes are looked for as soon as one closes a connection, as in the field, and not at the next \
         check."),
    cluster("narrows.following.memory_max", size(MB, 64 * GB), "256mb",
        "Bytes that all following shards of a node hold at the adaptive pace."),
    cluster("narrows.following.pace", Kind::Word(FollowPace::WORDS), "adaptive",
        "How much a follower reads and writes at once where it was given no parameter of its own."),
    cluster("narrows.recovery.connections_max", count(1, 1000), "128",
        "Connections to each other node that carry adaptive recoveries where a path loses segments, at most; fewer \
         than transport.connections_per_node.recovery are as many."),
    cluster("narrows.recovery.hears_last._name", Kind::Names, "",
        "Names of nodes that apply each cluster state last, as the manager of the field does: in a twin, a copy \
         without files that recovers from one of them waits for recovery.unlisted_copy."),
    cluster("narrows.recovery.memory_max", size(64 * KB, 64 * GB), "64mb",
        "Bytes in flight over all adaptive recoveries of a node."),
    fixed(cluster("narrows.recovery.read_ahead", size(MB, 64 * GB), "32mb",
        "Bytes that a node reads for recoveries and has not sent yet.")),
    cluster("narrows.recovery.scheduler", Kind::Word(Scheduler::WORDS), "file_window",
        "Which chunk of which file a recovery fetches next."),
    cluster("narrows.recovery.smallest_first", Kind::Bool, "false",
        "Whether a peer recovery fetches the smallest files first, as in the field, and not files by their names."),
    cluster("narrows.recovery.step_by_step", Kind::Bool, "false",
        "Whether a peer recovery goes to its source for each step of the field's: its list of files, a retention lease \
         that other copies hear of, the end of files, operations also where there are none. No chunk is asked for \
         before files are known."),
    fixed(cluster("cluster.fault_detection.follower_check.interval", at_least_ms(100), "1s",
        "How often the cluster manager looks for nodes that are gone.")),
    fixed(cluster("cluster.fault_detection.leader_check.interval", at_least_ms(100), "1s",
        "How often a node asks whether the cluster manager is there and knows it.")),
    cluster("narrows.search.selection", Kind::Word(Selection::WORDS), "field",
        "Which copy of a shard answers a search; field leaves it to the field's own setting, ars_6_1, ars_7_13 and \
         ars_9_5 are its ranks by release, ars_6_1_b4 the first with the fourth power of the queue."),
    cluster("point_in_time.max_keep_alive", at_least_ms(1), "24h",
        "How long a point in time may be kept for its next search."),
    cluster("search.default_allow_partial_results", Kind::Bool, "true",
        "Whether a search answers with what it has where a shard failed."),
    cluster("search.default_keep_alive", at_least_ms(1), "5m",
        "How long a scroll is kept for its next page where a request for a page does not say."),
    cluster("search.default_search_timeout", Kind::Duration { min: Duration::ZERO, may_be_off: true }, "-1",
        "How long a shard may take for a search that does not say; what it has by then counts."),
    cluster("search.max_keep_alive", at_least_ms(1), "24h", "How long a scroll may be kept for its next page."),
    cluster("search.max_open_pit_context", count(0, 1_000_000), "300",
        "Views of shards that a node holds for points in time; more are refused."),
    cluster("search.max_open_scroll_context", count(0, 1_000_000), "500",
        "Views of shards that a node holds for scrolls; more are refused."),
    cluster("search.max_buckets", count(1, 1 << 30), "65536", "Buckets that the answer to a search may have."),
    fixed(cluster("thread_pool.search.queue_size", count(0, 1_000_000), "1000",
        "Searches that wait on a node; more are refused.")),
    fixed(cluster("thread_pool.search.size", count(0, 10_000), "0",
        "Searches that a node runs at once; 0 is one more than half as many again as it has cores.")),
    cluster("transport.compress", Kind::Word(Compress::WORDS), "false",
        "Whether bytes between nodes are compressed; auto: while that makes the link carry more. Static and without \
         auto in the field, here from the next message."),
    cluster("transport.compression_scheme", Kind::Word(CompressionScheme::WORDS), "lz4",
        "How messages are compressed. Static in the field, here from the next message."),
    fixed(cluster("transport.connections_per_node.recovery", count(1, 100), "2",
        "Connections to each other node that carry recoveries.")),
    fixed(index("index.merge.policy", Kind::Word(&["log_byte_size", "tiered"]), "log_byte_size",
        "How segments to merge are chosen in the field; here always by size. It changes speed alone.")),
    fixed(index("index.queries.cache.enabled", Kind::Word(&["false"]), "false",
        "Whether a node keeps which documents a filter matches; here it never does.")),
    fixed(index("index.query.default_field", Kind::Names, "*",
        "The fields that query_string, simple_query_string and multi_match ask where they name none, by names or \
         patterns, each with or without a boost as in title^2. Dynamic in the field.")),
    fixed(index("index.store.type", Kind::Word(&["fs", "hybridfs", "mmapfs", "niofs"]), "fs",
        "How files are read in the field; here always mapped into memory. It changes speed alone.")),
    fixed(index("index.codec", Kind::Word(&["default", "best_compression"]), "default",
        "How stored documents are compressed in the field; here always as with default. It changes their size alone.")),
    index("index.default_pipeline", Kind::Word(&["_none"]), "_none",
        "The ingest pipeline of documents whose request names none; here there are none."),
    index("index.final_pipeline", Kind::Word(&["_none"]), "_none",
        "The ingest pipeline that documents go through last; here there are none."),
    index("index.mapping.total_fields.limit", count(1, 1_000_000), "1000",
        "Fields and objects that the mappings may have."),
    index("index.max_result_window", count(1, 2_000_000_000), "10000",
        "Hits that from and size of a search may reach."),
    index("index.auto_expand_replicas", Kind::Expansion { max: 10 }, "false",
        "The least and the most replicas of an index that has as many as there are nodes for; with false \
         index.number_of_replicas says how many."),
    index("index.number_of_replicas", count(0, 10), "1", "Copies of each shard besides the primary."),
    fixed(index("index.number_of_routing_shards", count(1, 1 << 20), "1024",
        "Numbers that ids and routings are hashed to, a multiple of the shards, as in an index that is to be split; by \
         default the shards, doubled while there are at most 1024.")),
    fixed(index("index.number_of_shards", count(1, SHARDS_MAX), "1", "Shards of the index.")),
    index("index.priority", count(0, i32::MAX as u64), "1",
        "Indices of higher priority are placed and recovered first, then newer ones."),
    index("index.refresh_interval", Kind::Duration { min: Duration::ZERO, may_be_off: true }, "1s",
        "How often new documents become visible to searches."),
    index("index.requests.cache.enable", Kind::Bool, "true",
        "Whether copies keep their answers to searches without hits, until a refresh brings something new."),
    index("index.routing.allocation.exclude._host", Kind::Names, "",
        "Nodes on which no copy of the index may be, by patterns of hosts."),
    index("index.routing.allocation.exclude._ip", Kind::Names, "",
        "Nodes on which no copy of the index may be, by patterns of addresses."),
    index("index.routing.allocation.exclude._name", Kind::Names, "",
        "Nodes on which no copy of the index may be, by names or patterns."),
    index("index.routing.allocation.include._host", Kind::Names, "",
        "Nodes on one of which copies of the index have to be, by patterns of hosts."),
    index("index.routing.allocation.include._ip", Kind::Names, "",
        "Nodes on one of which copies of the index have to be, by patterns of addresses."),
    index("index.routing.allocation.include._name", Kind::Names, "",
        "Nodes on one of which copies of the index have to be, by names or patterns."),
    index("index.routing.allocation.require._host", Kind::Names, "",
        "Nodes on which copies of the index have to be, by patterns of hosts that all fit."),
    index("index.routing.allocation.require._ip", Kind::Names, "",
        "Nodes on which copies of the index have to be, by patterns of addresses."),
    index("index.routing.allocation.require._name", Kind::Names, "",
        "Nodes on which copies of the index have to be, by names or patterns that all fit."),
    index("index.routing.allocation.total_shards_per_node", limit(i32::MAX as u64), "-1",
        "Copies of the index that a node may hold; further ones are moved away. -1 and 0 are no limit."),
    index("index.shard.check_on_startup", Kind::Word(CheckOnStartup::WORDS), "checksum",
        "Whether a copy's files are read and compared with their hashes before it is opened; false in the field."),
    fixed(index("index.soft_deletes.enabled", Kind::Word(&["true"]), "true",
        "Whether operations are kept for copies and followers that lack them; here they always are.")),
    index("index.soft_deletes.retention_lease.period", at_least_ms(0), "12h",
        "How long operations are kept for a follower that is not heard of."),
    index("index.translog.durability", Kind::Word(Durability::WORDS), "request",
        "Whether a write is on disk before it is acknowledged."),
    index("index.translog.flush_threshold_size", size(1, u64::MAX >> 1), "512mb",
        "Size of the operation log at which a commit is made."),
    index("index.translog.sync_interval", at_least_ms(100), "5s",
        "How often the operation log reaches the disk with durability async."),
    index("index.unassigned.node_left.delayed_timeout", at_least_ms(0), "0s",
        "How long a replica whose node left waits for it to come back; 1m in the field."),
];

impl Setting {
    /// The alias in `name`, if this is a pattern and `name` fits it: `eu` for `cluster.remote.eu.seeds`.
    pub fn alias<'a>(&self, name: &'a str) -> Option<&'a str> {
        let (before, after) = self.name.split_once('*')?;
        let alias = name.strip_prefix(before)?.strip_suffix(after)?;
        (!alias.is_empty() && !alias.contains(['.', '*'])).then_some(alias)
    }

    /// Whether `name` is this setting, or fits its pattern.
    pub fn is(&self, name: &str) -> bool {
        if self.is_pattern() { self.alias(name).is_some() } else { self.name == name }
    }

    /// Whether the name holds a `*`.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('*')
    }
}

/// The line of the table for a full name; patterns match.
pub fn find(name: &str) -> Option<&'static Setting> {
    static PATTERNS: LazyLock<Vec<&Setting>> =
        LazyLock::new(|| TABLE.iter().filter(|setting| setting.is_pattern()).collect());
    static PLAIN: LazyLock<BTreeMap<&str, &Setting>> = LazyLock::new(|| {
        let plain = TABLE.iter().filter(|setting| !setting.is_pattern());
        plain.map(|setting| (setting.name, setting)).collect()
    });
    let pattern = || PATTERNS.iter().find(|setting| setting.is(name));
    PLAIN.get(name).or_else(pattern).copied()
}

/// Checks a value and answers with its canonical text.
///
/// Fails if the name is unknown (the nearest are offered) or the value is not accepted (what is
/// accepted is said).
pub fn check(name: &str, value: &str) -> Result<String, SettingError> {
    let setting = find(name).ok_or_else(|| unknown(name))?;
    setting.kind.canonical(value).map_err(|why| SettingError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        why,
    })
}

/// Settings of the field that are refused, by the beginnings of their names, with what to do instead.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("index.analysis.",
        "texts are read by the analyzers standard, simple, whitespace, keyword and english, which a field names"),
    ("index.blocks. index.verified_before_close", "an index is open, or closed by POST /{index}/_close"),
    ("index.search.default_pipeline", "there are no search pipelines; leave it out"),
    ("index.hidden", "leave it out: a pattern of names means every index that fits it"),
    ("index.lifecycle.", "roll over by POST /{alias}/_rollover, and delete indices that are old"),
    ("index.search.idle. index.max_refresh_listeners",
        "index.refresh_interval says how often copies are refreshed, also those that nobody searches"),
    ("index.max_adjacency_matrix_filters index.max_docvalue_fields_search index.max_inner_result_window \
      index.max_ngram_diff index.max_regex_length index.max_rescore_window index.max_script_fields \
      index.max_shingle_diff index.max_slices_per_ index.max_terms_count index.analyze.max_token_count \
      index.highlight.max_analyzed_offset index.query.max_nested_depth",
        "leave it out: the bounds of searches are the same for all indices"),
    ("index.mapper.dynamic", "set \"dynamic\" in the mappings"),
    ("index.mapping.coerce index.mapping.ignore_malformed", "set it for each field in the mappings"),
    ("index.mapping.depth. index.mapping.field_name_length.", "index.mapping.total_fields.limit bounds the mappings"),
    ("index.mapping.nested_", "leave it out: objects are flattened, and no field is nested"),
    ("index.mapping.source. index.mode", "leave it out: documents are kept as they were sent"),
    ("index.query_string.lenient", "send [lenient] in the query"),
    ("index.query.derived_field. index.query.parse.", "map the fields that queries name"),
    ("index.routing_partition_size", "leave it out: all documents of a routing are in one shard"),
    ("index.routing.allocation.enable", "set cluster.routing.allocation.enable, for all indices"),
    ("index.routing.rebalance.", "set cluster.routing.rebalance.enable, for all indices"),
    ("index.routing.allocation.include._tier index.routing.allocation.require._tier \
      index.routing.allocation.exclude._tier",
        "nodes have no tiers; index.routing.allocation.include._name says which nodes"),
    ("index.allocation.", "leave it out: POST /_cluster/reroute?retry_failed=true tries copies again"),
    ("index.write.wait_for_active_shards", "send wait_for_active_shards with the requests that write"),
    ("index.gc_deletes", "leave it out: versions of deleted documents are known for a minute"),
    ("index.append_only.", "leave it out: documents of every index can be changed"),
    ("index.similarity.", "leave it out: texts are scored by BM25, with k1 = 1.2 and b = 0.75"),
    ("index.soft_deletes.retention.operations index.translog.retention.",
        "index.soft_deletes.retention_lease.period says how long operations are kept"),
    ("index.replication.", "leave it out: replicas are sent documents, and no segments"),
    ("index.data_path index.recovery.type index.remote_store. index.searchable_snapshot. index.store.fs. \
      index.store.snapshot. index.store.stats_refresh_interval",
        "leave it out: the files of an index are below the directory of each node"),
    ("index.context. index.creation_date index.format index.history. index.provided_name index.uuid index.version.",
        "leave it out: it is written for every index that is made"),
    ("action.auto_create_index", "leave it out: the first write to a name makes its index"),
    ("cluster.blocks.", "an index takes writes, or is closed by POST /{index}/_close"),
    ("indices.query.bool.max_clause_count", "leave it out: the bound of clauses is the same for all searches"),
    ("logger.", "leave it out: there are no loggers whose levels could be set"),
    ("script.", "leave it out: there are no scripts"),
    ("index.knn index.plugins. index.opendistro. index.xpack.", "this engine has no plugins; leave it out"),
];

/// Those of them without which an index answers the same.
#[rustfmt::skip]
const NEEDLESS: &[(&str, &str)] = &[
    ("index.indexing.slowlog. index.search.slowlog.",
        "there is no log of slow requests; GET _tasks?detailed=true shows requests while they run"),
    ("index.merge.policy. index.merge.scheduler. index.merge.log_byte_size_policy. index.merge_on_flush. \
      index.compound_format index.use_compound_file",
        "leave it out: it would change only how fast merges are"),
    ("index.flush_after_merge index.check_pending_flush. index.translog.generation_threshold_size \
      index.optimize_auto_generated_id index.optimize_doc_id_lookup. index.unreferenced_file_cleanup. \
      index.codec.compression_level",
        "leave it out: it would change only how fast writes are, and how large files"),
    ("index.fielddata.cache index.load_fixed_bitset_filters_eagerly index.force_memory_term_dictionary \
      index.search.concurrent index.search.throttled index.store.preload index.store.hybrid. index.warmer. \
      index.composite_index",
        "leave it out: it would change only how fast searches are"),
    ("index.resize.", "leave it out: an index is not split"),
    ("index.sort.", "leave it out: hits have an order where the search says [sort]"),
];

fn refused() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    REFUSED.iter().chain(NEEDLESS)
}

fn begins_with_one(name: &str, begins: &str) -> bool {
    begins.split(' ').any(|begin| name.starts_with(begin))
}

/// What to do in place of a setting of the field that is refused.
pub(super) fn instead_of(name: &str) -> Option<&'static str> {
    refused().find(|(begins, _)| begins_with_one(name, begins)).map(|(_, instead)| *instead)
}

/// Why an index answers the same without a setting of the field that is refused; none of another setting.
pub fn needless(name: &str) -> Option<&'static str> {
    let (_, instead) = NEEDLESS.iter().find(|(begins, _)| begins_with_one(name, begins))?;
    Some(instead.strip_prefix("leave it out: ").unwrap_or(instead))
}

/// Whether settings of the field that are refused have names that begin so.
pub(super) fn is_refused_below(prefix: &str) -> bool {
    let mut begins = refused().flat_map(|(begins, _)| begins.split(' '));
    begins.any(|begin| begin.starts_with(prefix) || prefix.starts_with(begin))
}

/// The error for a name that is not in the table.
pub(super) fn unknown(name: &str) -> SettingError {
    if let Some(instead) = instead_of(name) {
        return SettingError::Refused { name: name.to_owned(), instead };
    }
    let known: Vec<String> = TABLE.iter().map(|setting| offer(setting, name)).collect();
    let hint = record::names::did_you_mean(name, known.iter().map(String::as_str));
    SettingError::Unknown { name: name.to_owned(), hint }
}

/// The setting's name, a pattern with the alias that was probably meant.
fn offer(setting: &Setting, given: &str) -> String {
    let alias = setting.name.split_once('*').and_then(|(before, _)| {
        let alias = given.strip_prefix(before)?.split('.').next()?;
        (!alias.is_empty()).then_some(alias)
    });
    setting.name.replace('*', alias.unwrap_or("*"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut names = BTreeSet::new();
        for setting in TABLE {
            assert!(names.insert(setting.name), "{} stands twice", setting.name);
            let concrete = setting.name.replace('*', "eu");
            let canonical = check(&concrete, setting.default);
            assert_eq!(canonical.as_deref(), Ok(setting.default), "{}", setting.name);
            assert_eq!(setting.name.starts_with("index."), setting.scope == SettingScope::Index);
            assert!(setting.doc.ends_with('.'), "{}", setting.name);
        }
        // Nested rendering needs that no name is the beginning of another.
        for a in &names {
            assert!(!names.iter().any(|b| b.starts_with(&format!("{a}."))), "{a}");
        }
    }

    #[test]
    fn patterns_fit_one_alias() {
        let seeds = find("cluster.remote.eu-west.seeds").unwrap();
        assert_eq!(seeds.alias("cluster.remote.eu-west.seeds"), Some("eu-west"));
        assert!(find("cluster.remote..seeds").is_none());
        assert!(find("cluster.remote.a.b.seeds").is_none());
        assert!(find("cluster.remote.*.seeds").is_none());
    }

    #[test]
    fn offers_the_nearest_names() {
        let said = |name: &str| check(name, "1").unwrap_err().to_string();
        let near = said("cluster.remote.eu.seed");
        let nearest = "unknown setting [cluster.remote.eu.seed]; did you mean \"cluster.remote.eu.seeds\" or ";
        assert!(near.starts_with(nearest), "{near}");
        let near = said("indices.recovery.max_byte_per_sec");
        assert!(near.contains("did you mean \"indices.recovery.max_bytes_per_sec\""), "{near}");
        let listed = "\"Settings\" in docs/reference.md lists those that there are";
        assert_eq!(said("zzz"), format!("unknown setting [zzz]; {listed}"));
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_to_do() {
        for (name, instead) in [
            ("index.analysis.analyzer.own.type", "the analyzers standard"),
            ("index.blocks.read_only_allow_delete", "/_close"),
            ("index.merge.policy.segments_per_tier", "how fast merges are"),
            ("index.search.slowlog.threshold.query.warn", "GET _tasks"),
            ("index.lifecycle.name", "/_rollover"),
            ("index.sort.field", "says [sort]"),
            ("index.max_terms_count", "the same for all indices"),
            ("index.merge_on_flush.enabled", "how fast merges are"),
            ("index.routing.allocation.include._tier_preference", "no tiers"),
            ("index.write.wait_for_active_shards", "with the requests that write"),
            ("action.auto_create_index", "the first write"),
            ("cluster.blocks.read_only", "/_close"),
            ("indices.query.bool.max_clause_count", "the same for all searches"),
            ("logger.org.opensearch", "no loggers"),
            ("script.max_compilations_rate", "no scripts"),
        ] {
            let said = check(name, "1").unwrap_err().to_string();
            let begin = format!("setting [{name}] is not supported by this engine; ");
            assert!(said.starts_with(&begin) && said.contains(instead), "{said}");
        }
        for begin in refused().flat_map(|(begins, _)| begins.split(' ')) {
            assert!(!TABLE.iter().any(|setting| setting.name.starts_with(begin)), "{begin}");
        }
    }

    #[test]
    fn an_index_answers_the_same_without_what_is_needless_alone() {
        let fast = "it would change only how fast merges are";
        for (name, why) in [
            ("index.merge.policy", None),
            ("index.merge.policy.max_merged_segment", Some(fast)),
            ("index.sort.field", Some("hits have an order where the search says [sort]")),
            ("index.default_pipeline", None),
            ("index.mapping.coerce", None),
            ("index.number_of_shards", None),
        ] {
            assert_eq!(needless(name), why, "{name}");
        }
    }

    #[test]
    fn says_the_bounds() {
        assert_eq!(
            check("ccr.indices.recovery.max_concurrent_file_chunks", "11").unwrap_err().to_string(),
            "setting [ccr.indices.recovery.max_concurrent_file_chunks] cannot be [11]: \
             write a whole number from 1 to 10"
        );
        assert!(check("indices.recovery.chunk_size", "101mb").is_err());
        assert_eq!(check("ccr.indices.recovery.chunk_size", "1GB").as_deref(), Ok("1gb"));
        for name in ["index.default_pipeline", "index.final_pipeline"] {
            assert_eq!(check(name, "_none").as_deref(), Ok("_none"));
            let said = check(name, "geo").unwrap_err().to_string();
            assert!(said.ends_with("cannot be [geo]: leave it out, or write _none"), "{said}");
        }
    }
}
