//! Paths and filters of what is asked, what is unknown without an answer, and what has to be allowed for it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The fields of a recovery that the cluster is to send.
pub(super) const RECOVERY_FILTER: &str = "*.shards.id,*.shards.type,*.shards.stage,*.shards.primary,\
    *.shards.start_time_in_millis,*.shards.total_time_in_millis,*.shards.source.name,\
    *.shards.source.repository,*.shards.target.name,*.shards.index.size,\
    *.shards.index.files.total,*.shards.index.files.recovered,*.shards.index.*throttle_time_in_millis,\
    *.shards.translog.total,*.shards.translog.recovered,*.shards.narrows.failure,*.shards.narrows.charged_ns";
/// The state first: of a copy that is started and stays, nearly every one, nothing else is read.
pub(super) const SHARD_COLUMNS: &str = "state,index,shard,prirep,node,unassigned.reason";
/// Of a repository's settings the limits alone: others may hold credentials, such as those in an address.
pub(super) const REPOSITORY_FILTER: &str = "?filter_path=*.*.max_*_bytes_per_sec";
/// Parts of paths as they were asked for before, in recordings that are kept, and as they are today.
pub(super) const EARLIER: [(&str, &str); 13] = [
    ("?filter_path=*.settings", REPOSITORY_FILTER),
    ("index,shard,prirep,state,node,unassigned.reason", SHARD_COLUMNS),
    ("nodes.*.jvm.mem.heap_used_percent,", "nodes.*.jvm.mem.heap_used_*,"),
    (
        "io_stats.total.io_time_in_millis,nodes.*.jvm",
        "io_stats.total.io_time_in_millis,nodes.*.fs.io_stats.devices.io_time_in_millis,nodes.*.jvm",
    ),
    ("?filter_path=nodes.*.name,", "?timeout=3s&filter_path=_nodes.failed,nodes.*.name,"),
    (
        "nodes.*.name,nodes.*.timestamp,nodes.*.os.cpu.percent,",
        "nodes.*.name,nodes.*.roles,nodes.*.timestamp,nodes.*.os.cpu.percent,nodes.*.os.mem.total_in_bytes,",
    ),
    (
        "translog.recovered,*.shards.narrows.charged_ns",
        "translog.recovered,*.shards.narrows.failure,*.shards.narrows.charged_ns",
    ),
    (
        "number_of_pending_tasks&timeout",
        "number_of_pending_tasks,task_max_waiting_in_queue_millis&timeout",
    ),
    (
        "?filter_path=follow_stats",
        "?filter_path=auto_follow_stats.recent*.leader_index,auto_follow_stats.recent*.timestamp,\
         auto_follow_stats.recent*.*.reason,follow_stats",
    ),
    ("breaker,indices/", "breaker,thread_pool,indices/"),
    ("indexing_pressure,indices/", "indexing_pressure,thread_pool,indices/"),
    (
        "search.query_total,nodes.*.indices.merges",
        "search.query_total,nodes.*.thread_pool.search.rejected,nodes.*.indices.merges",
    ),
    (
        "follower_index,follower_indices.remote_cluster",
        "follower_index,follower_indices.parameters,follower_indices.remote_cluster",
    ),
];
pub(super) const HEALTH: &str = "/_cluster/health?filter_path=status,number_of_nodes,initializing_shards,\
    relocating_shards,unassigned_shards,delayed_unassigned_shards,number_of_pending_tasks,\
    task_max_waiting_in_queue_millis&timeout=5s";
pub(super) const REMOTES: &str = "/_remote/info";
pub(super) const NODES_STATS: &str = "/_nodes/stats";
/// What the questions below are called in gaps.
pub(super) const CCR_STATS: &str = "/_ccr/stats";
pub(super) const PLUGIN: &str = "/_plugins/_replication";
pub(super) const SNAPSHOT_STATUS: &str = "/_snapshot/_status";
/// Of up to 256 errors of auto-follow only what is read: each names its causes at length, and this is asked in every
/// look.
pub(super) const CCR: &str = "/_ccr/stats?filter_path=auto_follow_stats.recent*.leader_index,\
    auto_follow_stats.recent*.timestamp,auto_follow_stats.recent*.*.reason,follow_stats";
pub(super) const CCR_INFO: &str = "/_all/_ccr/info?filter_path=follower_indices.follower_index,\
    follower_indices.parameters,follower_indices.remote_cluster,follower_indices.status";
/// The flat name of a setting has dots, which a filter would take for levels.
pub(super) const REPLICATED_FILTER: &str = "*.settings.*leader_index";
pub(super) const REPLICATION: &str = "/_plugins/_replication/follower_stats";
/// As above: the allocation filters of indices, by the ends of their flat names.
pub(super) const FILTERS_FILTER: &str = "*.settings.*_name,*.settings.*_ip,*.settings.*_host";
pub(super) const LEASES_FILTER: &str = "indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no.max_seq_no,\
    indices.*.shards.*.retention_leases.leases";
pub(super) const SNAPSHOTS: &str = "/_snapshot/_status?filter_path=snapshots.snapshot,snapshots.repository,\
    snapshots.shards_stats,snapshots.stats,snapshots.indices.*.shards.*.stage,snapshots.indices.*.shards.*.node";
/// What the question below is called in gaps.
pub(super) const STATE: &str = "/_cluster/state";
/// Of the whole state, the blocks alone: no index without one is in the answer.
pub(super) const BLOCKS: &str = "/_cluster/state/blocks?filter_path=blocks.indices.*.*.description";
/// Which searches nodes cancelled by search backpressure, and the release of OpenSearch that has it first.
pub(super) const CANCELLED: &str = "/_nodes/stats/search_backpressure?timeout=3s&filter_path=\
    nodes.*.search_backpressure.mode,nodes.*.search_backpressure.*.resource_tracker_stats.*.cancellation_count";
pub(super) const CANCELLED_FROM: (u32, u32) = (2, 4);
/// How indices are stored, where it is not as usual.
pub(super) const STORES: &str =
    "/_all/_settings/index.store.type?flat_settings=true&expand_wildcards=all";
pub(super) const CORES: &str = "/_nodes/os?filter_path=nodes.*.os.allocated_processors";

/// What an observation lacks without an answer, by path.
pub(super) const LOST: [(&str, &str); 16] = [
    (NODES_STATS, "throttle, disk, network, CPU and memory of nodes"),
    ("/_cluster/health", "whether copies wait"),
    ("/_recovery", "recoveries themselves"),
    ("/_cluster/settings", "today's settings; defaults are assumed"),
    (STATE, "which indices are blocked"),
    ("/_cat/shards", "which copies wait"),
    ("/_cluster/allocation/explain", "why copies wait"),
    ("/_nodes/hot_threads", "what threads do"),
    (
        "/_segments",
        "what is committed of each shard; the size of its directory is taken, which may be larger",
    ),
    ("/_stats/indexing", "how much is indexed now"),
    (
        "/_stats",
        "whether a node that restarts would take back its copies by operations or by files",
    ),
    ("/_settings", "settings of indices; those of the field are assumed"),
    (REMOTES, "which other clusters there are"),
    (CCR_STATS, "how far followers are behind"),
    (PLUGIN, "how far followers are behind"),
    (SNAPSHOT_STATUS, "which snapshots are being taken"),
];

/// What is unknown without an answer; nothing in words where nobody says it.
pub(super) fn lost_without(path: &str) -> &'static str {
    LOST.iter().find(|(known, _)| path.starts_with(known)).map_or("", |(_, lost)| lost)
}

/// What has to be allowed for a request, by the begin of its method and a part of its path; the first line that fits.
/// OpenSearch's permissions are the names of actions, and `cluster:monitor/*` is its group `cluster_monitor`
/// ("Permissions" and "Default action groups" of its documentation).
const ALLOWED_BY: [(&str, &str, &str); 7] = [
    (
        "PUT",
        "/_cluster/settings",
        "the cluster privilege \"manage\" of Elasticsearch allows it, the permission cluster:admin/settings/update of \
         OpenSearch",
    ),
    (
        "POST",
        "/_cluster/reroute",
        "the cluster privilege \"manage\" of Elasticsearch allows it, the permission cluster:admin/reroute of \
         OpenSearch",
    ),
    (
        "GET",
        "/_snapshot",
        "the cluster privilege \"monitor_snapshot\" of Elasticsearch allows it, the permissions \
         cluster:admin/snapshot/status and cluster:admin/repository/get of OpenSearch",
    ),
    ("", PLUGIN, "the permissions indices:admin/plugins/replication/* of OpenSearch allow it"),
    (
        "GET",
        "",
        "the privilege \"monitor\" of the cluster and of all indices allows what narrows reads in Elasticsearch, the \
         permissions cluster:monitor/* and indices:monitor/* in OpenSearch",
    ),
    (
        "",
        "/_ccr/",
        "the cluster privilege \"manage_ccr\" of Elasticsearch allows it, with \"all\" of the indices narrows-*",
    ),
    (
        "",
        "",
        "\"all\" of the indices narrows-* allows what a run changes there in Elasticsearch, the permissions indices:* \
         in OpenSearch",
    ),
];

/// What has to be allowed for a request that was forbidden, in words.
pub(super) fn allowed_by(method: &str, path: &str) -> &'static str {
    let path = path.split('?').next().unwrap_or(path);
    let fits = |of: &str, part: &str| method.starts_with(of) && path.contains(part);
    ALLOWED_BY.iter().find(|(of, part, _)| fits(of, part)).map_or("", |(_, _, words)| words)
}

/// The name of an index in a path. Names of indices hold no slash, but the field's date math in names holds `<`.
pub(super) fn escape(name: &str) -> String {
    const UNRESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(name, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forbidden_is_allowed_by_a_name_of_each_product() {
        for (method, path, elasticsearch, opensearch) in [
            ("GET", HEALTH, "\"monitor\"", "cluster:monitor/*"),
            ("GET", "/logs/_recovery?active_only=true", "\"monitor\"", "indices:monitor/*"),
            ("GET", SNAPSHOTS, "\"monitor_snapshot\"", "cluster:admin/snapshot/status"),
            ("GET", "/_cluster/settings?flat_settings=true", "\"monitor\"", "cluster:monitor/*"),
            ("PUT", "/_cluster/settings", "\"manage\"", "cluster:admin/settings/update"),
            ("POST", "/_cluster/reroute", "\"manage\"", "cluster:admin/reroute"),
            ("DELETE", "/narrows-1", "\"all\"", "indices:*"),
            ("PUT", "/narrows-1/_ccr/follow", "\"manage_ccr\"", ""),
            ("GET", REPLICATION, "", "indices:admin/plugins/replication/*"),
        ] {
            let words = allowed_by(method, path);
            assert!(words.contains(elasticsearch) && words.contains(opensearch), "{path}: {words}");
        }
    }
}
