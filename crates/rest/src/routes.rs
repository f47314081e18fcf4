//! The table of routes.

use super::active::ACTIVE;
use super::answer::Reply;
use super::call::Call;
use super::document::{OP_TYPE, PIPELINE, REQUIRE_ALIAS, WRITE};
use super::names::EXPRESSION;
use super::parameters::Known;
use super::table::TABLE;
use super::uri_query::URI_QUERY;
use super::{
    alias, analyze, auto_follow, bulk, by_query, cat, cat_shards, cat_thread_pool, ccr, cluster,
    cluster_stats, dangling, digest, document, explain, field_caps, health, index, index_settings,
    maintenance, mget, msearch, nodes, open_close, point_in_time, recovery, remote, replication,
    reroute, rollover, scroll, search, segments, settings, stats, synthetic_batch, tasks,
    templates, terms_enum, update, validate,
};
use engine::state::{AutoFollowChange, TemplateKind};
use engine::transport::Result;
use world::LocalFuture;

pub(super) type Handler = fn(Call) -> LocalFuture<'static, Result<Reply>>;

/// A line of the table.
pub struct Route {
    /// The APIs of the field that it is, by the names that clients give them, with spaces in between.
    pub names: &'static str,
    /// The methods of its requests.
    pub methods: &'static [&'static str],
    /// Their paths, with the names of the parts in braces.
    pub paths: &'static [&'static str],
    /// The parameters that it knows, in groups; a text may name several, with spaces in between.
    pub known: Known,
}

/// The APIs that read a body.
const WITH_BODY: &str = "bulk cat.count ccr.follow ccr.forget_follower ccr.put_auto_follow_pattern \
                         ccr.resume_follow clear_scroll close_point_in_time cluster.allocation_explain \
                         cluster.put_component_template cluster.put_settings cluster.reroute count create \
                         delete_by_query delete_pit field_caps index indices.analyze indices.create \
                         indices.put_alias indices.put_index_template indices.put_mapping indices.put_settings \
                         indices.put_template indices.rollover indices.update_aliases indices.validate_query mget \
                         msearch reindex replication.pause replication.resume replication.start replication.stop \
                         scroll search terms_enum update update_by_query";

impl Route {
    /// Who answers its requests.
    pub(super) fn handler(&self) -> Handler {
        HANDLERS[ROUTES.element_offset(self).expect("routes are lines of the table")]
    }

    /// Whether a body is read. To any other API it is refused where it says something, which OpenSearch passes over.
    pub(super) fn reads_body(&self) -> bool {
        WITH_BODY.split(' ').any(|name| name == self.names)
    }
}

/// Declares the table: names, methods, paths, parameters, and who answers; in brackets behind that, its argument
/// beside the request. Who answers is apart, so that tests of paths and names do not compile all that is served.
macro_rules! routes {
    ($(
        $names:literal, $methods:expr, [$($path:literal),+], [$($known:expr),*], $($run:ident)::+ $(($argument:expr))?;
    )*) => {
        /// What is offered.
        pub static ROUTES: &[Route] = &[$(Route {
            names: $names,
            methods: $methods,
            paths: &[$($path),+],
            known: &[$($known),*],
        }),*];

        /// Who answers the requests of each line.
        static HANDLERS: &[Handler] = &[$(|call| Box::pin($($run)::+(call $(, $argument)?))),*];
    };
}

const GET: &[&str] = &["GET"];
const HEAD: &[&str] = &["HEAD"];
const READ: &[&str] = &["GET", "HEAD"];
const PUT: &[&str] = &["PUT"];
const POST: &[&str] = &["POST"];
const PUT_POST: &[&str] = &["PUT", "POST"];
const GET_POST: &[&str] = &["GET", "POST"];
const DELETE: &[&str] = &["DELETE"];

/// Parameters of requests that the cluster's manager handles in the field.
const MANAGER: &[&str] = &["cluster_manager_timeout", "master_timeout"];
/// The same, and how long the request may take.
const MANAGED: &[&str] = &["cluster_manager_timeout", "master_timeout", "timeout"];
/// Parameters of requests that read the state.
const LOCAL: &[&str] = &["cluster_manager_timeout", "local", "master_timeout"];
const SETTINGS: &[&str] = &["flat_settings", "include_defaults"];
const FLAT: &[&str] = &["flat_settings"];

routes! {
    "info ping", READ, ["/"], [], cluster::info;
    // Cluster.
    "cluster.health", GET, ["/_cluster/health", "/_cluster/health/{index}"],
        [health::KNOWN, MANAGED, LOCAL, EXPRESSION], health::health;
    "cluster.get_settings", GET, ["/_cluster/settings"], [SETTINGS, MANAGED, LOCAL], settings::get;
    "cluster.put_settings", PUT, ["/_cluster/settings"], [FLAT, MANAGED], settings::put;
    "cluster.state", GET, ["/_cluster/state", "/_cluster/state/{metric}", "/_cluster/state/{metric}/{index}"],
        [FLAT, LOCAL, EXPRESSION], cluster::state;
    "cluster.stats", GET, ["/_cluster/stats", "/_cluster/stats/nodes/{node}"],
        [FLAT, &["timeout"]], cluster_stats::stats;
    "cluster.reroute", POST, ["/_cluster/reroute"],
        [&["dry_run", "explain", "metric", "retry_failed"], MANAGED], reroute::reroute;
    "cluster.allocation_explain", GET_POST, ["/_cluster/allocation/explain"],
        [explain::KNOWN, LOCAL], explain::explain;
    "dangling_indices.list_dangling_indices", GET, ["/_dangling"], [MANAGER], dangling::list;
    "dangling_indices.import_dangling_index", POST, ["/_dangling/{uuid}"],
        [dangling::KNOWN, MANAGED], dangling::import;
    "dangling_indices.delete_dangling_index", DELETE, ["/_dangling/{uuid}"],
        [dangling::KNOWN, MANAGED], dangling::delete;
    // Nodes.
    "nodes.info", GET, ["/_nodes", "/_nodes/{node}", "/_nodes/{node}/{metric}"], [nodes::OF_INFO], nodes::info;
    "nodes.stats", GET,
        ["/_nodes/stats", "/_nodes/stats/{metric}", "/_nodes/stats/{metric}/{index_metric}",
         "/_nodes/{node}/stats", "/_nodes/{node}/stats/{metric}", "/_nodes/{node}/stats/{metric}/{index_metric}"],
        [nodes::OF_STATS], nodes::stats;
    "tasks.list", GET, ["/_tasks"],
        [tasks::WHICH, tasks::ONE, &["detailed", "group_by"]], tasks::list;
    "tasks.get", GET, ["/_tasks/{task_id}"], [tasks::ONE], tasks::get;
    "tasks.cancel", POST, ["/_tasks/_cancel", "/_tasks/{task_id}/_cancel"],
        [tasks::WHICH, &["group_by", "wait_for_completion"]], tasks::cancel;
    // Indices.
    "indices.create", PUT, ["/{index}"], [ACTIVE, MANAGED, &["include_type_name"]], index::create;
    "indices.get", GET, ["/{index}"], [SETTINGS, LOCAL, EXPRESSION, &["include_type_name"]], index::get;
    "indices.exists", HEAD, ["/{index}"], [SETTINGS, LOCAL, EXPRESSION, &["include_type_name"]], index::exists;
    "indices.delete", DELETE, ["/{index}"], [MANAGED, EXPRESSION], index::delete;
    "indices.close", POST, ["/{index}/_close"], [ACTIVE, MANAGED, EXPRESSION], open_close::close;
    "indices.open", POST, ["/{index}/_open"], [ACTIVE, MANAGED, EXPRESSION], open_close::open;
    "indices.get_mapping", GET, ["/_mapping", "/{index}/_mapping", "/_mappings", "/{index}/_mappings"],
        [LOCAL, EXPRESSION, &["include_type_name"]], index::get_mapping;
    "indices.put_mapping", PUT_POST, ["/{index}/_mapping", "/{index}/_mappings"],
        [MANAGED, EXPRESSION, &["include_type_name", "write_index_only"]], index::put_mapping;
    "indices.get_settings", GET,
        ["/_settings", "/_settings/{name}", "/{index}/_settings", "/{index}/_settings/{name}"],
        [SETTINGS, LOCAL, EXPRESSION], index_settings::get;
    "indices.put_settings", PUT, ["/_settings", "/{index}/_settings"],
        [FLAT, MANAGED, EXPRESSION, &["preserve_existing"]], index_settings::put;
    "indices.update_aliases", POST, ["/_aliases"], [MANAGED, EXPRESSION], alias::change;
    "indices.get_alias indices.exists_alias", READ,
        ["/_alias", "/_alias/{name}", "/{index}/_alias", "/{index}/_alias/{name}"],
        [LOCAL, EXPRESSION], alias::get;
    "indices.put_alias", PUT_POST, ["/{index}/_alias/{name}", "/{index}/_aliases/{name}"],
        [MANAGED, EXPRESSION], alias::put;
    "indices.delete_alias", DELETE, ["/{index}/_alias/{name}", "/{index}/_aliases/{name}"],
        [MANAGED, EXPRESSION], alias::delete;
    "indices.rollover", POST, ["/{index}/_rollover", "/{index}/_rollover/{new_index}"],
        [ACTIVE, MANAGED, &["dry_run"]], rollover::roll_over;
    "indices.put_template", PUT_POST, ["/_template/{name}"],
        [MANAGED, templates::PUT], templates::put(TemplateKind::Legacy);
    "indices.get_template indices.exists_template", READ, ["/_template", "/_template/{name}"],
        [LOCAL, FLAT, &["include_type_name"]], templates::get(TemplateKind::Legacy);
    "indices.delete_template", DELETE, ["/_template/{name}"],
        [MANAGED], templates::delete(TemplateKind::Legacy);
    "indices.put_index_template", PUT_POST, ["/_index_template/{name}"],
        [MANAGED, templates::PUT], templates::put(TemplateKind::Index);
    "indices.get_index_template indices.exists_index_template", READ, ["/_index_template", "/_index_template/{name}"],
        [LOCAL, FLAT], templates::get(TemplateKind::Index);
    "indices.delete_index_template", DELETE, ["/_index_template/{name}"],
        [MANAGED], templates::delete(TemplateKind::Index);
    "cluster.put_component_template", PUT_POST, ["/_component_template/{name}"],
        [MANAGED, templates::PUT], templates::put(TemplateKind::Component);
    "cluster.get_component_template cluster.exists_component_template", READ,
        ["/_component_template", "/_component_template/{name}"],
        [LOCAL, FLAT], templates::get(TemplateKind::Component);
    "cluster.delete_component_template", DELETE, ["/_component_template/{name}"],
        [MANAGED], templates::delete(TemplateKind::Component);
    "indices.get_data_stream", GET, ["/_data_stream", "/_data_stream/{name}"],
        [MANAGER, &["expand_wildcards", "include_defaults"]], index::get_data_streams;
    "indices.refresh", GET_POST, ["/_refresh", "/{index}/_refresh"], [EXPRESSION], maintenance::refresh;
    "indices.flush", GET_POST, ["/_flush", "/{index}/_flush"],
        [EXPRESSION, &["force", "wait_if_ongoing"]], maintenance::flush;
    "indices.forcemerge", POST, ["/_forcemerge", "/{index}/_forcemerge"],
        [EXPRESSION, &["flush", "max_num_segments", "only_expunge_deletes"]], maintenance::force_merge;
    "indices.clear_cache", POST, ["/_cache/clear", "/{index}/_cache/clear"],
        [EXPRESSION, maintenance::CLEARED], maintenance::clear_caches;
    "indices.segments", GET, ["/_segments", "/{index}/_segments"], [EXPRESSION, &["verbose"]], segments::segments;
    "indices.stats", GET, ["/_stats", "/_stats/{metric}", "/{index}/_stats", "/{index}/_stats/{metric}"],
        [stats::KNOWN, EXPRESSION], stats::stats;
    // Documents.
    "bulk", PUT_POST, ["/_bulk", "/{index}/_bulk"], [bulk::KNOWN, PIPELINE, REQUIRE_ALIAS, WRITE], bulk::bulk;
    "index", POST, ["/{index}/_doc"], [OP_TYPE, PIPELINE, REQUIRE_ALIAS, WRITE], document::index;
    "index", PUT_POST, ["/{index}/_doc/{id}"], [OP_TYPE, PIPELINE, REQUIRE_ALIAS, WRITE], document::index;
    "create", PUT_POST, ["/{index}/_create/{id}"], [OP_TYPE, PIPELINE, REQUIRE_ALIAS, WRITE], document::create;
    "update", POST, ["/{index}/_update/{id}"], [REQUIRE_ALIAS, WRITE, update::KNOWN], update::update;
    "get exists", READ, ["/{index}/_doc/{id}"], [document::READ, document::VERSION], document::get;
    "get_source exists_source", READ, ["/{index}/_source/{id}"], [document::READ], document::get_source;
    "mget", GET_POST, ["/_mget", "/{index}/_mget"], [document::READ, document::VERSION], mget::mget;
    "delete", DELETE, ["/{index}/_doc/{id}"], [WRITE], document::delete;
    "count", GET_POST, ["/_count", "/{index}/_count"],
        [maintenance::COUNT, URI_QUERY, EXPRESSION], maintenance::count;
    "indices.analyze", GET_POST, ["/_analyze", "/{index}/_analyze"], [], analyze::analyze;
    "indices.validate_query", GET_POST, ["/_validate/query", "/{index}/_validate/query"],
        [validate::KNOWN, URI_QUERY, EXPRESSION], validate::validate;
    "search", GET_POST, ["/_search", "/{index}/_search"],
        [search::SEARCH, URI_QUERY, EXPRESSION], scroll::search;
    "scroll", GET_POST, ["/_search/scroll", "/_search/scroll/{scroll_id}"], [scroll::KNOWN], scroll::next;
    "clear_scroll", DELETE, ["/_search/scroll", "/_search/scroll/{scroll_id}"],
        [scroll::CLEAR], scroll::clear;
    "create_pit", POST, ["/{index}/_search/point_in_time"],
        [point_in_time::CREATE, EXPRESSION], point_in_time::create;
    "delete_pit", DELETE, ["/_search/point_in_time"], [], point_in_time::delete;
    "get_all_pits", GET, ["/_search/point_in_time/_all"], [], point_in_time::list;
    "delete_all_pits", DELETE, ["/_search/point_in_time/_all"], [], point_in_time::delete_all;
    "open_point_in_time", POST, ["/{index}/_pit"], [point_in_time::OPEN, EXPRESSION], point_in_time::open;
    "close_point_in_time", DELETE, ["/_pit"], [], point_in_time::close;
    "msearch", GET_POST, ["/_msearch", "/{index}/_msearch"],
        [msearch::MSEARCH, EXPRESSION], msearch::search_many;
    "delete_by_query", POST, ["/{index}/_delete_by_query"],
        [by_query::KNOWN, by_query::SEARCHED, URI_QUERY, EXPRESSION], by_query::delete;
    "update_by_query", POST, ["/{index}/_update_by_query"],
        [by_query::KNOWN, by_query::SEARCHED, URI_QUERY, EXPRESSION], by_query::update;
    "reindex", POST, ["/_reindex"], [by_query::KNOWN], by_query::reindex;
    "delete_by_query_rethrottle reindex_rethrottle update_by_query_rethrottle", POST,
        ["/_delete_by_query/{task_id}/_rethrottle", "/_reindex/{task_id}/_rethrottle",
         "/_update_by_query/{task_id}/_rethrottle"],
        [&["group_by", "requests_per_second"]], tasks::rethrottle;
    "field_caps", GET_POST, ["/_field_caps", "/{index}/_field_caps"],
        [field_caps::KNOWN, EXPRESSION], field_caps::field_caps;
    "terms_enum", GET_POST, ["/{index}/_terms_enum"], [EXPRESSION], terms_enum::terms_enum;
    // Recovery and following.
    "indices.recovery", GET, ["/_recovery", "/{index}/_recovery"],
        [&["active_only", "detailed"], EXPRESSION], recovery::recovery;
    "cluster.remote_info", GET, ["/_remote/info"], [], remote::info;
    "ccr.follow", PUT, ["/{index}/_ccr/follow"], [ACTIVE, MANAGED], ccr::follow;
    "ccr.pause_follow", POST, ["/{index}/_ccr/pause_follow"], [MANAGER], ccr::pause;
    "ccr.resume_follow", POST, ["/{index}/_ccr/resume_follow"], [MANAGER], ccr::resume;
    "ccr.unfollow", POST, ["/{index}/_ccr/unfollow"], [MANAGER], ccr::unfollow;
    "ccr.forget_follower", POST, ["/{index}/_ccr/forget_follower"], [MANAGER], ccr::forget_follower;
    "ccr.follow_info", GET, ["/_ccr/info", "/{index}/_ccr/info"], [MANAGER], ccr::info;
    "ccr.stats ccr.follow_stats", GET, ["/_ccr/stats", "/{index}/_ccr/stats"], [MANAGED], ccr::stats;
    "ccr.get_auto_follow_pattern", GET, ["/_ccr/auto_follow", "/_ccr/auto_follow/{name}"],
        [MANAGER], auto_follow::get;
    "ccr.put_auto_follow_pattern", PUT, ["/_ccr/auto_follow/{name}"], [MANAGER], auto_follow::put;
    "ccr.delete_auto_follow_pattern", DELETE, ["/_ccr/auto_follow/{name}"],
        [MANAGER], auto_follow::change(AutoFollowChange::Delete);
    "ccr.pause_auto_follow_pattern", POST, ["/_ccr/auto_follow/{name}/pause"],
        [MANAGER], auto_follow::change(AutoFollowChange::SetActive(false));
    "ccr.resume_auto_follow_pattern", POST, ["/_ccr/auto_follow/{name}/resume"],
        [MANAGER], auto_follow::change(AutoFollowChange::SetActive(true));
    "replication.follower_stats", GET, ["/_plugins/_replication/follower_stats"],
        [], replication::follower_stats;
    "replication.start", PUT, ["/_plugins/_replication/{index}/_start"], [], replication::start;
    "replication.pause", POST, ["/_plugins/_replication/{index}/_pause"], [], replication::pause;
    "replication.resume", POST, ["/_plugins/_replication/{index}/_resume"], [], replication::resume;
    "replication.stop", POST, ["/_plugins/_replication/{index}/_stop"], [], replication::stop;
    "replication.status", GET, ["/_plugins/_replication/{index}/_status"], [], replication::status;
    "narrows.digest", GET, ["/_narrows/digest", "/{index}/_narrows/digest"],
        [&["replicas"], EXPRESSION], digest::digest;
    "narrows.copies", GET, ["/{index}/_narrows/copies"], [EXPRESSION], digest::copies;
    "narrows.run", POST, ["/{index}/_narrows/run"], [synthetic_batch::KNOWN], synthetic_batch::index;
    // For people.
    "cat.help", GET, ["/_cat"], [], cat::list;
    "cat.aliases", GET, ["/_cat/aliases", "/_cat/aliases/{name}"],
        [TABLE, LOCAL, EXPRESSION], alias::cat;
    "cat.health", GET, ["/_cat/health"], [TABLE, LOCAL, &["ts"]], cat::health;
    "cat.nodes", GET, ["/_cat/nodes"], [TABLE, LOCAL, &["full_id"]], cat::nodes;
    "cat.recovery", GET, ["/_cat/recovery", "/_cat/recovery/{index}"],
        [TABLE, EXPRESSION, &["active_only", "detailed"]], cat::recovery;
    "cat.indices", GET, ["/_cat/indices", "/_cat/indices/{index}"],
        [TABLE, LOCAL, EXPRESSION, &["health", "include_unloaded_segments", "pri"]], cat_shards::indices;
    "cat.thread_pool", GET, ["/_cat/thread_pool", "/_cat/thread_pool/{pools}"],
        [TABLE, LOCAL, &["size", "thread_pool_patterns"]], cat_thread_pool::thread_pool;
    "cat.allocation", GET, ["/_cat/allocation", "/_cat/allocation/{node}"],
        [TABLE, LOCAL], cat_shards::allocation;
    "cat.count", GET, ["/_cat/count", "/_cat/count/{index}"], [TABLE, LOCAL], maintenance::cat_count;
    "cat.master", GET, ["/_cat/master"], [TABLE, LOCAL], cat::manager;
    "cat.cluster_manager", GET, ["/_cat/cluster_manager"], [TABLE, LOCAL], cat::manager;
    "cat.plugins", GET, ["/_cat/plugins"], [TABLE, LOCAL], cat::plugins;
    "cat.tasks", GET, ["/_cat/tasks"], [TABLE, tasks::WHICH, &["detailed"]], tasks::cat;
    "cat.templates", GET, ["/_cat/templates", "/_cat/templates/{name}"], [TABLE, LOCAL], templates::cat;
    "cat.segments", GET, ["/_cat/segments", "/_cat/segments/{index}"], [TABLE, MANAGER], segments::cat;
    "cat.shards", GET, ["/_cat/shards", "/_cat/shards/{index}"], [TABLE, LOCAL], cat_shards::shards;
}
