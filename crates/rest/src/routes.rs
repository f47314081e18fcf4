//! The table of routes.

use std::future::Future;
use std::pin::Pin;

use super::active::ACTIVE;
use super::answer::Reply;
use super::call::Call;
use super::document::WRITE;
use super::names::EXPRESSION;
use super::parameters::Known;
use super::table::TABLE;
use super::uri_query::URI_QUERY;
use super::{
    alias, auto_follow, bulk, by_query, cat, cat_shards, cat_thread_pool, ccr, cluster, dangling,
    digest, document, explain, field_caps, health, index, index_settings, maintenance, mget, nodes,
    point_in_time, recovery, remote, replication, reroute, rollover, scroll, search, settings,
    stats, synthetic_batch, templates, update,
};
use engine::state::TemplateKind;
use engine::transport::Result;

type Answer = Pin<Box<dyn Future<Output = Result<Reply>>>>;
pub(super) type Handler = fn(Call) -> Answer;

/// A line of the table.
pub(super) struct Route {
    /// The APIs of the field that it is, by the names that clients give them.
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/rest.md is made of them"))]
    pub(super) names: &'static str,
    pub(super) methods: &'static [&'static str],
    pub(super) paths: &'static [&'static str],
    pub(super) known: Known,
    pub(super) run: Handler,
}

const fn route(
    names: &'static str,
    methods: &'static [&'static str],
    paths: &'static [&'static str],
    known: Known,
    run: Handler,
) -> Route {
    Route { names, methods, paths, known, run }
}

const GET: &[&str] = &["GET"];
const READ: &[&str] = &["GET", "HEAD"];
const PUT: &[&str] = &["PUT"];
const POST: &[&str] = &["POST"];
const PUT_POST: &[&str] = &["PUT", "POST"];
const GET_POST: &[&str] = &["GET", "POST"];
const DELETE: &[&str] = &["DELETE"];

/// Parameters of requests that the cluster's manager handles.
const MANAGED: &[&str] = &["cluster_manager_timeout", "master_timeout", "timeout"];
/// Parameters of requests that read the state.
const LOCAL: &[&str] = &["cluster_manager_timeout", "local", "master_timeout"];
const SETTINGS: &[&str] = &["flat_settings", "include_defaults"];

pub(super) static ROUTES: &[Route] = &[
    route("info ping", READ, &["/"], &[], |c| Box::pin(cluster::info(c))),
    // Cluster.
    route(
        "cluster.health",
        GET,
        &["/_cluster/health", "/_cluster/health/{index}"],
        &[health::KNOWN, MANAGED, LOCAL, EXPRESSION],
        |c| Box::pin(health::health(c)),
    ),
    route("cluster.get_settings", GET, &["/_cluster/settings"], &[SETTINGS, MANAGED, LOCAL], |c| {
        Box::pin(settings::get(c))
    }),
    route("cluster.put_settings", PUT, &["/_cluster/settings"], &[SETTINGS, MANAGED], |c| {
        Box::pin(settings::put(c))
    }),
    route(
        "cluster.state",
        GET,
        &["/_cluster/state", "/_cluster/state/{metric}", "/_cluster/state/{metric}/{index}"],
        &[SETTINGS, MANAGED, LOCAL, EXPRESSION],
        |c| Box::pin(cluster::state(c)),
    ),
    route(
        "cluster.reroute",
        POST,
        &["/_cluster/reroute"],
        &[&["dry_run", "explain", "metric", "retry_failed"], MANAGED],
        |c| Box::pin(reroute::reroute(c)),
    ),
    route(
        "cluster.allocation_explain",
        GET_POST,
        &["/_cluster/allocation/explain"],
        &[&["include_disk_info", "include_yes_decisions"], LOCAL],
        |c| Box::pin(explain::explain(c)),
    ),
    route("dangling_indices.list_dangling_indices", GET, &["/_dangling"], &[MANAGED], |c| {
        Box::pin(dangling::list(c))
    }),
    route(
        "dangling_indices.import_dangling_index",
        POST,
        &["/_dangling/{uuid}"],
        &[dangling::KNOWN, MANAGED],
        |c| Box::pin(dangling::import(c)),
    ),
    route(
        "dangling_indices.delete_dangling_index",
        DELETE,
        &["/_dangling/{uuid}"],
        &[dangling::KNOWN, MANAGED],
        |c| Box::pin(dangling::delete(c)),
    ),
    // Nodes.
    route(
        "nodes.info",
        GET,
        &["/_nodes", "/_nodes/{node}", "/_nodes/{node}/{metric}"],
        &[nodes::KNOWN],
        |c| Box::pin(nodes::info(c)),
    ),
    route(
        "nodes.stats",
        GET,
        &[
            "/_nodes/stats",
            "/_nodes/stats/{metric}",
            "/_nodes/stats/{metric}/{index_metric}",
            "/_nodes/{node}/stats",
            "/_nodes/{node}/stats/{metric}",
            "/_nodes/{node}/stats/{metric}/{index_metric}",
        ],
        &[nodes::KNOWN],
        |c| Box::pin(nodes::stats(c)),
    ),
    // Indices.
    route("indices.create", PUT, &["/{index}"], &[ACTIVE, MANAGED, &["include_type_name"]], |c| {
        Box::pin(index::create(c))
    }),
    route(
        "indices.get indices.exists",
        READ,
        &["/{index}"],
        &[SETTINGS, LOCAL, EXPRESSION, &["include_type_name"]],
        |c| Box::pin(index::get(c)),
    ),
    route("indices.delete", DELETE, &["/{index}"], &[MANAGED, EXPRESSION], |c| {
        Box::pin(index::delete(c))
    }),
    route(
        "indices.get_mapping",
        GET,
        &["/_mapping", "/{index}/_mapping", "/_mappings", "/{index}/_mappings"],
        &[LOCAL, EXPRESSION, &["include_type_name"]],
        |c| Box::pin(index::get_mapping(c)),
    ),
    route(
        "indices.put_mapping",
        PUT_POST,
        &["/{index}/_mapping", "/{index}/_mappings"],
        &[MANAGED, EXPRESSION, &["include_type_name", "write_index_only"]],
        |c| Box::pin(index::put_mapping(c)),
    ),
    route(
        "indices.get_settings",
        GET,
        &["/_settings", "/_settings/{name}", "/{index}/_settings", "/{index}/_settings/{name}"],
        &[SETTINGS, LOCAL, EXPRESSION],
        |c| Box::pin(index_settings::get(c)),
    ),
    route(
        "indices.put_settings",
        PUT,
        &["/_settings", "/{index}/_settings"],
        &[SETTINGS, MANAGED, EXPRESSION, &["preserve_existing"]],
        |c| Box::pin(index_settings::put(c)),
    ),
    route("indices.update_aliases", POST, &["/_aliases"], &[MANAGED, EXPRESSION], |c| {
        Box::pin(alias::change(c))
    }),
    route(
        "indices.get_alias indices.exists_alias",
        READ,
        &["/_alias", "/_alias/{name}", "/{index}/_alias", "/{index}/_alias/{name}"],
        &[LOCAL, EXPRESSION],
        |c| Box::pin(alias::get(c)),
    ),
    route(
        "indices.put_alias",
        PUT_POST,
        &["/{index}/_alias/{name}", "/{index}/_aliases/{name}"],
        &[MANAGED, EXPRESSION],
        |c| Box::pin(alias::put(c)),
    ),
    route(
        "indices.delete_alias",
        DELETE,
        &["/{index}/_alias/{name}", "/{index}/_aliases/{name}"],
        &[MANAGED, EXPRESSION],
        |c| Box::pin(alias::delete(c)),
    ),
    route(
        "indices.rollover",
        POST,
        &["/{index}/_rollover", "/{index}/_rollover/{new_index}"],
        &[ACTIVE, MANAGED, &["dry_run"]],
        |c| Box::pin(rollover::roll_over(c)),
    ),
    route(
        "indices.put_template",
        PUT_POST,
        &["/_template/{name}"],
        &[MANAGED, templates::PUT],
        |c| Box::pin(templates::put(c, TemplateKind::Legacy)),
    ),
    route(
        "indices.get_template indices.exists_template",
        READ,
        &["/_template", "/_template/{name}"],
        &[LOCAL, SETTINGS, &["include_type_name"]],
        |c| Box::pin(templates::get(c, TemplateKind::Legacy)),
    ),
    route("indices.delete_template", DELETE, &["/_template/{name}"], &[MANAGED], |c| {
        Box::pin(templates::delete(c, TemplateKind::Legacy))
    }),
    route(
        "indices.put_index_template",
        PUT_POST,
        &["/_index_template/{name}"],
        &[MANAGED, templates::PUT],
        |c| Box::pin(templates::put(c, TemplateKind::Index)),
    ),
    route(
        "indices.get_index_template indices.exists_index_template",
        READ,
        &["/_index_template", "/_index_template/{name}"],
        &[LOCAL, SETTINGS],
        |c| Box::pin(templates::get(c, TemplateKind::Index)),
    ),
    route("indices.delete_index_template", DELETE, &["/_index_template/{name}"], &[MANAGED], |c| {
        Box::pin(templates::delete(c, TemplateKind::Index))
    }),
    route(
        "cluster.put_component_template",
        PUT_POST,
        &["/_component_template/{name}"],
        &[MANAGED, templates::PUT],
        |c| Box::pin(templates::put(c, TemplateKind::Component)),
    ),
    route(
        "cluster.get_component_template cluster.exists_component_template",
        READ,
        &["/_component_template", "/_component_template/{name}"],
        &[LOCAL, SETTINGS],
        |c| Box::pin(templates::get(c, TemplateKind::Component)),
    ),
    route(
        "cluster.delete_component_template",
        DELETE,
        &["/_component_template/{name}"],
        &[MANAGED],
        |c| Box::pin(templates::delete(c, TemplateKind::Component)),
    ),
    route(
        "indices.get_data_stream",
        GET,
        &["/_data_stream", "/_data_stream/{name}"],
        &[MANAGED, &["expand_wildcards", "include_defaults"]],
        |c| Box::pin(index::get_data_streams(c)),
    ),
    route("indices.refresh", GET_POST, &["/_refresh", "/{index}/_refresh"], &[EXPRESSION], |c| {
        Box::pin(maintenance::refresh(c))
    }),
    route(
        "indices.flush",
        GET_POST,
        &["/_flush", "/{index}/_flush"],
        &[EXPRESSION, &["force", "wait_if_ongoing"]],
        |c| Box::pin(maintenance::flush(c)),
    ),
    route(
        "indices.forcemerge",
        POST,
        &["/_forcemerge", "/{index}/_forcemerge"],
        &[EXPRESSION, &["flush", "max_num_segments", "only_expunge_deletes"]],
        |c| Box::pin(maintenance::force_merge(c)),
    ),
    route(
        "indices.stats",
        GET,
        &["/_stats", "/_stats/{metric}", "/{index}/_stats", "/{index}/_stats/{metric}"],
        &[stats::KNOWN, EXPRESSION],
        |c| Box::pin(stats::stats(c)),
    ),
    // Documents.
    route("bulk", PUT_POST, &["/_bulk", "/{index}/_bulk"], &[bulk::KNOWN, WRITE], |c| {
        Box::pin(bulk::bulk(c))
    }),
    route("index", POST, &["/{index}/_doc"], &[WRITE], |c| Box::pin(document::index(c))),
    route("index", PUT_POST, &["/{index}/_doc/{id}"], &[WRITE], |c| Box::pin(document::index(c))),
    route("create", PUT_POST, &["/{index}/_create/{id}"], &[WRITE], |c| {
        Box::pin(document::create(c))
    }),
    route("update", POST, &["/{index}/_update/{id}"], &[WRITE, update::KNOWN], |c| {
        Box::pin(update::update(c))
    }),
    route("get exists", READ, &["/{index}/_doc/{id}"], &[document::READ], |c| {
        Box::pin(document::get(c))
    }),
    route("get_source exists_source", READ, &["/{index}/_source/{id}"], &[document::READ], |c| {
        Box::pin(document::get_source(c))
    }),
    route("mget", GET_POST, &["/_mget", "/{index}/_mget"], &[document::READ], |c| {
        Box::pin(mget::mget(c))
    }),
    route("delete", DELETE, &["/{index}/_doc/{id}"], &[WRITE], |c| Box::pin(document::delete(c))),
    route(
        "count",
        GET_POST,
        &["/_count", "/{index}/_count"],
        &[maintenance::COUNT, URI_QUERY, EXPRESSION],
        |c| Box::pin(maintenance::count(c)),
    ),
    route(
        "search",
        GET_POST,
        &["/_search", "/{index}/_search"],
        &[search::SEARCH, URI_QUERY, EXPRESSION],
        |c| Box::pin(scroll::search(c)),
    ),
    route(
        "scroll",
        GET_POST,
        &["/_search/scroll", "/_search/scroll/{scroll_id}"],
        &[scroll::KNOWN],
        |c| Box::pin(scroll::next(c)),
    ),
    route(
        "clear_scroll",
        DELETE,
        &["/_search/scroll", "/_search/scroll/{scroll_id}"],
        &[scroll::CLEAR],
        |c| Box::pin(scroll::clear(c)),
    ),
    route(
        "create_pit",
        POST,
        &["/{index}/_search/point_in_time"],
        &[point_in_time::CREATE, EXPRESSION],
        |c| Box::pin(point_in_time::create(c)),
    ),
    route("delete_pit", DELETE, &["/_search/point_in_time"], &[], |c| {
        Box::pin(point_in_time::delete(c))
    }),
    route("get_all_pits", GET, &["/_search/point_in_time/_all"], &[], |c| {
        Box::pin(point_in_time::list(c))
    }),
    route("delete_all_pits", DELETE, &["/_search/point_in_time/_all"], &[], |c| {
        Box::pin(point_in_time::delete_all(c))
    }),
    route(
        "open_point_in_time",
        POST,
        &["/{index}/_pit"],
        &[point_in_time::OPEN, EXPRESSION],
        |c| Box::pin(point_in_time::open(c)),
    ),
    route("close_point_in_time", DELETE, &["/_pit"], &[], |c| Box::pin(point_in_time::close(c))),
    route(
        "msearch",
        GET_POST,
        &["/_msearch", "/{index}/_msearch"],
        &[search::MSEARCH, EXPRESSION],
        |c| Box::pin(search::search_many(c)),
    ),
    route(
        "delete_by_query",
        POST,
        &["/{index}/_delete_by_query"],
        &[by_query::KNOWN, by_query::SEARCHED, URI_QUERY, EXPRESSION],
        |c| Box::pin(by_query::delete(c)),
    ),
    route(
        "update_by_query",
        POST,
        &["/{index}/_update_by_query"],
        &[by_query::KNOWN, by_query::SEARCHED, URI_QUERY, EXPRESSION],
        |c| Box::pin(by_query::update(c)),
    ),
    route("reindex", POST, &["/_reindex"], &[by_query::KNOWN], |c| Box::pin(by_query::reindex(c))),
    route(
        "field_caps",
        GET_POST,
        &["/_field_caps", "/{index}/_field_caps"],
        &[field_caps::KNOWN, EXPRESSION],
        |c| Box::pin(field_caps::field_caps(c)),
    ),
    // Recovery and following.
    route(
        "indices.recovery",
        GET,
        &["/_recovery", "/{index}/_recovery"],
        &[&["active_only", "detailed"], EXPRESSION],
        |c| Box::pin(recovery::recovery(c)),
    ),
    route("cluster.remote_info", GET, &["/_remote/info"], &[], |c| Box::pin(remote::info(c))),
    route("ccr.follow", PUT, &["/{index}/_ccr/follow"], &[ACTIVE, MANAGED], |c| {
        Box::pin(ccr::follow(c))
    }),
    route("ccr.pause_follow", POST, &["/{index}/_ccr/pause_follow"], &[MANAGED], |c| {
        Box::pin(ccr::pause(c))
    }),
    route("ccr.resume_follow", POST, &["/{index}/_ccr/resume_follow"], &[MANAGED], |c| {
        Box::pin(ccr::resume(c))
    }),
    route("ccr.unfollow", POST, &["/{index}/_ccr/unfollow"], &[MANAGED], |c| {
        Box::pin(ccr::unfollow(c))
    }),
    route("ccr.forget_follower", POST, &["/{index}/_ccr/forget_follower"], &[MANAGED], |c| {
        Box::pin(ccr::forget_follower(c))
    }),
    route("ccr.follow_info", GET, &["/_ccr/info", "/{index}/_ccr/info"], &[MANAGED], |c| {
        Box::pin(ccr::info(c))
    }),
    route(
        "ccr.stats ccr.follow_stats",
        GET,
        &["/_ccr/stats", "/{index}/_ccr/stats"],
        &[MANAGED],
        |c| Box::pin(ccr::stats(c)),
    ),
    route(
        "ccr.get_auto_follow_pattern",
        GET,
        &["/_ccr/auto_follow", "/_ccr/auto_follow/{name}"],
        &[MANAGED],
        |c| Box::pin(auto_follow::get(c)),
    ),
    route("ccr.put_auto_follow_pattern", PUT, &["/_ccr/auto_follow/{name}"], &[MANAGED], |c| {
        Box::pin(auto_follow::put(c))
    }),
    route(
        "ccr.delete_auto_follow_pattern",
        DELETE,
        &["/_ccr/auto_follow/{name}"],
        &[MANAGED],
        |c| Box::pin(auto_follow::delete(c)),
    ),
    route(
        "ccr.pause_auto_follow_pattern",
        POST,
        &["/_ccr/auto_follow/{name}/pause"],
        &[MANAGED],
        |c| Box::pin(auto_follow::pause(c)),
    ),
    route(
        "ccr.resume_auto_follow_pattern",
        POST,
        &["/_ccr/auto_follow/{name}/resume"],
        &[MANAGED],
        |c| Box::pin(auto_follow::resume(c)),
    ),
    route(
        "replication.follower_stats",
        GET,
        &["/_plugins/_replication/follower_stats"],
        &[],
        |c| Box::pin(replication::follower_stats(c)),
    ),
    route("replication.start", PUT, &["/_plugins/_replication/{index}/_start"], &[], |c| {
        Box::pin(replication::start(c))
    }),
    route("replication.pause", POST, &["/_plugins/_replication/{index}/_pause"], &[], |c| {
        Box::pin(replication::pause(c))
    }),
    route("replication.resume", POST, &["/_plugins/_replication/{index}/_resume"], &[], |c| {
        Box::pin(replication::resume(c))
    }),
    route("replication.stop", POST, &["/_plugins/_replication/{index}/_stop"], &[], |c| {
        Box::pin(replication::stop(c))
    }),
    route("replication.status", GET, &["/_plugins/_replication/{index}/_status"], &[], |c| {
        Box::pin(replication::status(c))
    }),
    route(
        "narrows.digest",
        GET,
        &["/_narrows/digest", "/{index}/_narrows/digest"],
        &[&["replicas"], EXPRESSION],
        |c| Box::pin(digest::digest(c)),
    ),
    route("narrows.copies", GET, &["/{index}/_narrows/copies"], &[EXPRESSION], |c| {
        Box::pin(digest::copies(c))
    }),
    route("narrows.run", POST, &["/{index}/_narrows/run"], &[synthetic_batch::KNOWN], |c| {
        Box::pin(synthetic_batch::index(c))
    }),
    // For people.
    route("cat.help", GET, &["/_cat"], &[], |c| Box::pin(cat::list(c))),
    route(
        "cat.aliases",
        GET,
        &["/_cat/aliases", "/_cat/aliases/{name}"],
        &[TABLE, LOCAL, &["expand_wildcards"]],
        |c| Box::pin(alias::cat(c)),
    ),
    route("cat.health", GET, &["/_cat/health"], &[TABLE, LOCAL, &["ts"]], |c| {
        Box::pin(cat::health(c))
    }),
    route("cat.nodes", GET, &["/_cat/nodes"], &[TABLE, LOCAL, &["full_id"]], |c| {
        Box::pin(cat::nodes(c))
    }),
    route(
        "cat.recovery",
        GET,
        &["/_cat/recovery", "/_cat/recovery/{index}"],
        &[TABLE, &["active_only", "detailed"]],
        |c| Box::pin(cat::recovery(c)),
    ),
    route(
        "cat.indices",
        GET,
        &["/_cat/indices", "/_cat/indices/{index}"],
        &[TABLE, LOCAL, EXPRESSION, &["health", "include_unloaded_segments", "pri"]],
        |c| Box::pin(cat_shards::indices(c)),
    ),
    route(
        "cat.thread_pool",
        GET,
        &["/_cat/thread_pool", "/_cat/thread_pool/{pools}"],
        &[TABLE, LOCAL, &["size", "thread_pool_patterns"]],
        |c| Box::pin(cat_thread_pool::thread_pool(c)),
    ),
    route(
        "cat.allocation",
        GET,
        &["/_cat/allocation", "/_cat/allocation/{node}"],
        &[TABLE, LOCAL],
        |c| Box::pin(cat_shards::allocation(c)),
    ),
    route("cat.count", GET, &["/_cat/count", "/_cat/count/{index}"], &[TABLE, LOCAL], |c| {
        Box::pin(maintenance::cat_count(c))
    }),
    route("cat.master", GET, &["/_cat/master"], &[TABLE, LOCAL], |c| Box::pin(cat::manager(c))),
    route("cat.cluster_manager", GET, &["/_cat/cluster_manager"], &[TABLE, LOCAL], |c| {
        Box::pin(cat::manager(c))
    }),
    route("cat.plugins", GET, &["/_cat/plugins"], &[TABLE, LOCAL], |c| Box::pin(cat::plugins(c))),
    route(
        "cat.templates",
        GET,
        &["/_cat/templates", "/_cat/templates/{name}"],
        &[TABLE, LOCAL],
        |c| Box::pin(templates::cat(c)),
    ),
    route("cat.shards", GET, &["/_cat/shards", "/_cat/shards/{index}"], &[TABLE, LOCAL], |c| {
        Box::pin(cat_shards::shards(c))
    }),
];
