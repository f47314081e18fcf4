//! What the field calls each request: the actions of its tasks.

use std::rc::Rc;

use engine::Node;
use engine::core::{NewTask, RunningTask};

/// The action that lists tasks.
pub(super) const LIST: &str = "cluster:monitor/tasks/lists";
/// The action of what has none of its own: tables, and what is known from the state.
pub(super) const STATE: &str = "cluster:monitor/state";
const SEARCH: &str = "indices:data/read/search";
/// Bytes of the body of a search that are shown.
const SOURCE_BYTES: usize = 1024;

/// The action of a route, by the names of its APIs.
pub(super) fn action(names: &str) -> &'static str {
    match names.split(' ').next().unwrap_or_default() {
        "info" => "cluster:monitor/main",
        "cluster.health" => "cluster:monitor/health",
        "cluster.put_settings" => "cluster:admin/settings/update",
        "cluster.stats" => "cluster:monitor/stats",
        "cluster.reroute" => "cluster:admin/reroute",
        "cluster.allocation_explain" => "cluster:monitor/allocation/explain",
        "cluster.remote_info" => "cluster:monitor/remote/info",
        "dangling_indices.list_dangling_indices" => "cluster:admin/indices/dangling/list",
        "dangling_indices.import_dangling_index" => "cluster:admin/indices/dangling/import",
        "dangling_indices.delete_dangling_index" => "cluster:admin/indices/dangling/delete",
        "nodes.info" => "cluster:monitor/nodes/info",
        "nodes.stats" => "cluster:monitor/nodes/stats",
        "tasks.list" => LIST,
        "tasks.get" => "cluster:monitor/task/get",
        "tasks.cancel" => "cluster:admin/tasks/cancel",
        "indices.create" => "indices:admin/create",
        "indices.get" | "indices.exists" => "indices:admin/get",
        "indices.delete" => "indices:admin/delete",
        "indices.close" => "indices:admin/close",
        "indices.open" => "indices:admin/open",
        "indices.get_mapping" => "indices:admin/mappings/get",
        "indices.put_mapping" => "indices:admin/mapping/put",
        "indices.get_settings" => "indices:monitor/settings/get",
        "indices.put_settings" => "indices:admin/settings/update",
        "indices.get_alias" => "indices:admin/aliases/get",
        "indices.update_aliases" | "indices.put_alias" | "indices.delete_alias" => {
            "indices:admin/aliases"
        }
        "indices.rollover" => "indices:admin/rollover",
        "indices.put_template" => "indices:admin/template/put",
        "indices.delete_template" => "indices:admin/template/delete",
        "indices.put_index_template" => "indices:admin/index_template/put",
        "indices.delete_index_template" => "indices:admin/index_template/delete",
        "cluster.put_component_template" => "cluster:admin/component_template/put",
        "cluster.delete_component_template" => "cluster:admin/component_template/delete",
        "indices.refresh" => "indices:admin/refresh",
        "indices.flush" => "indices:admin/flush",
        "indices.forcemerge" => "indices:admin/forcemerge",
        "indices.clear_cache" => "indices:admin/cache/clear",
        "indices.analyze" => "indices:admin/analyze",
        "indices.validate_query" => "indices:admin/validate/query",
        "indices.segments" => "indices:monitor/segments",
        "indices.stats" => "indices:monitor/stats",
        "indices.recovery" => "indices:monitor/recovery",
        "bulk" | "narrows.run" => "indices:data/write/bulk",
        "index" | "create" => "indices:data/write/index",
        "update" => "indices:data/write/update",
        "delete" => "indices:data/write/delete",
        "delete_by_query" => "indices:data/write/delete/byquery",
        "update_by_query" => "indices:data/write/update/byquery",
        "reindex" => "indices:data/write/reindex",
        "delete_by_query_rethrottle" => "cluster:admin/reindex/rethrottle",
        "get" | "get_source" => "indices:data/read/get",
        "mget" => "indices:data/read/mget",
        "search" | "count" => SEARCH,
        "msearch" => "indices:data/read/msearch",
        "scroll" => "indices:data/read/scroll",
        "clear_scroll" => "indices:data/read/scroll/clear",
        "create_pit" | "open_point_in_time" => "indices:data/read/point_in_time/create",
        "delete_pit" | "delete_all_pits" | "close_point_in_time" => {
            "indices:data/read/point_in_time/delete"
        }
        "field_caps" => "indices:data/read/field_caps",
        "terms_enum" => "indices:data/read/terms_enum",
        "ccr.follow" => "indices:admin/xpack/ccr/put_follow",
        "ccr.pause_follow" => "cluster:admin/xpack/ccr/pause_follow",
        "ccr.resume_follow" => "cluster:admin/xpack/ccr/resume_follow",
        "ccr.unfollow" => "indices:admin/xpack/ccr/unfollow",
        "ccr.forget_follower" => "indices:admin/xpack/ccr/forget_follower",
        "ccr.stats" => "cluster:monitor/ccr/stats",
        "ccr.put_auto_follow_pattern" => "cluster:admin/xpack/ccr/auto_follow_pattern/put",
        "ccr.delete_auto_follow_pattern" => "cluster:admin/xpack/ccr/auto_follow_pattern/delete",
        "ccr.pause_auto_follow_pattern" | "ccr.resume_auto_follow_pattern" => {
            "cluster:admin/xpack/ccr/auto_follow_pattern/activate"
        }
        "replication.start" => "indices:admin/plugins/replication/index/start",
        "replication.pause" => "indices:admin/plugins/replication/index/pause",
        "replication.resume" => "indices:admin/plugins/replication/index/resume",
        "replication.stop" => "indices:admin/plugins/replication/index/stop",
        _ => STATE,
    }
}

/// Whether it is given up where it is when it is cancelled, as when its client goes away.
pub(super) fn breaks_off(action: &str) -> bool {
    matches!(action, SEARCH | "indices:data/read/msearch" | "indices:data/read/scroll")
}

/// Whether it ends by itself once it is cancelled: between two pages.
fn ends(action: &str) -> bool {
    action.ends_with("/byquery") || action == "indices:data/write/reindex"
}

/// A request to the route of these names begins.
pub(super) fn begin(
    node: &Node,
    names: &str,
    index: Option<&str>,
    body: &[u8],
    opaque_id: Option<String>,
) -> Rc<RunningTask> {
    let action = action(names);
    let index = index.unwrap_or_default();
    let description = match action {
        SEARCH => {
            let source = String::from_utf8_lossy(&body[..body.len().min(SOURCE_BYTES)]);
            format!("indices[{index}], search_type[QUERY_THEN_FETCH], source[{source}]")
        }
        _ if index.is_empty() => String::new(),
        _ => format!("indices[{index}]"),
    };
    let cancellable = breaks_off(action) || ends(action);
    let new = NewTask { action, description, cancellable, opaque_id };
    node.core().task_manager.begin(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_break_off_and_pages_end() {
        let can = |names| (breaks_off(action(names)), ends(action(names)));
        for (names, expected) in [
            ("search", (true, false)),
            ("scroll", (true, false)),
            ("clear_scroll", (false, false)),
            ("reindex", (false, true)),
            ("delete_by_query", (false, true)),
            ("delete", (false, false)),
            ("get exists", (false, false)),
        ] {
            assert_eq!(can(names), expected, "{names}");
        }
        assert_eq!(action("get exists"), "indices:data/read/get");
    }
}
