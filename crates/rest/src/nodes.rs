//! `_nodes` and `_nodes/stats`.

use std::collections::BTreeSet;

use record::names::did_you_mean;
use serde_json::{Map, Value, json};

use super::answer::{Reply, object_of};
use super::call::Call;
use super::error::{bad_request, not_supported};
use super::identity::{host, manager, release};
use super::names::matches;
use super::spread::{PATIENCE, nodes_json, on_nodes};
use engine::Node;
use engine::state::{self, ClusterState};
use engine::transport::{Failure, Request, Result};

/// Parameters of `_nodes`.
pub(super) const OF_INFO: &[&str] = &["flat_settings", "timeout"];
/// Parameters of `_nodes/stats`.
pub(super) const OF_STATS: &[&str] = &[
    "completion_fields fielddata_fields fields groups include_segment_file_sizes level timeout types",
];

/// The parts of `_nodes/stats` that the field has. Those that this engine does not keep are left out.
const STATS: [&str; 16] = [
    "adaptive_selection", "breaker", "discovery", "fs", "http", "indexing_pressure", "indices",
    "ingest", "jvm", "os", "process", "script", "script_cache", "thread_pool", "timestamp",
    "transport",
];
/// Parts that are refused where they are asked for by their names. `breaker` and `indexing_pressure` are not: monitors
/// ask for them together with others, `watch` among them, which looks at this engine, too.
const REFUSED_STATS: [&str; 4] = ["discovery", "http", "script", "script_cache"];
/// The parts of `indices` that are no sums over the node's copies.
const OF_THE_NODE: [&str; 2] = ["recovery", "search"];
/// The metrics of indices that the field has, by the names of the path. Those that this engine does not count are left
/// out of the answer.
pub(super) const INDEX_METRICS: [&str; 18] = [
    "bulk", "completion", "docs", "fielddata", "flush", "get", "indexing", "merge", "query_cache",
    "recovery", "refresh", "request_cache", "search", "segments", "store", "suggest", "translog",
    "warmer",
];

/// What a path calls a metric of an answer.
pub(super) fn in_path(metric: &str) -> &str {
    if metric == "merges" { "merge" } else { metric }
}

const INFO: [&str; 11] = [
    "aggregations", "http", "indices", "ingest", "jvm", "os", "plugins", "process", "settings",
    "thread_pool", "transport",
];

/// The present nodes that an expression names: `_all`, `_local`, `_master`, names and addresses with `*`, roles, and
/// attributes with their values. Each part adds nodes to those of the parts before it, `data:false` takes them away.
pub(super) fn select(
    node: &Node,
    state: &ClusterState,
    expression: Option<&str>,
) -> Result<Vec<String>> {
    let expression = expression.filter(|text| !text.is_empty()).unwrap_or("_all");
    let found = selected(state, expression, (node.name(), manager(node)))?;
    Ok(found.into_iter().map(str::to_owned).collect())
}

fn selected<'a>(
    state: &'a ClusterState,
    expression: &str,
    (local, manager): (&str, &str),
) -> Result<BTreeSet<&'a str>> {
    let mut found = BTreeSet::new();
    for part in expression.split(',') {
        let named = names_of(state, |member| match part {
            "_all" => true,
            "_local" => member.name == local,
            "_master" | "_cluster_manager" => member.name == manager,
            _ => matches(part, &member.name) || matches(part, host(&member.transport_address)),
        });
        match part.split_once(':').filter(|_| named.is_empty()) {
            None => found.extend(named),
            // Every node has both roles.
            Some(("data" | "master" | "cluster_manager", "true")) => {
                found.extend(names_of(state, |_| true))
            }
            Some(("data" | "master" | "cluster_manager", "false")) => found.clear(),
            Some((key, value)) => {
                let is_one = |member: &state::Node, value: &str| {
                    let mut all = member.attributes.iter();
                    all.any(|(name, of)| matches(key, name) && matches(value, of))
                };
                if names_of(state, |member| is_one(member, "*")).is_empty() {
                    return Err(bad_request(format!(
                        "nodes have no role and no attribute [{key}], which [{part}] asks for; every node is [data:true] \
                         and [master:true]"
                    )));
                }
                found.extend(names_of(state, |member| is_one(member, value)));
            }
        }
    }
    Ok(found)
}

fn names_of(state: &ClusterState, fits: impl Fn(&state::Node) -> bool) -> Vec<&str> {
    let fitting = state.present_nodes().filter(|member| fits(member));
    fitting.map(|member| member.name.as_str()).collect()
}

/// The parts that a request wants; none for all.
fn metrics<'a>(path: &str, asked: Option<&'a str>, known: &[&str]) -> Result<Option<Vec<&'a str>>> {
    let Some(asked) = asked.filter(|asked| asked.split(',').all(|name| name != "_all")) else {
        return Ok(None);
    };
    let asked: Vec<&str> = asked.split(',').collect();
    match asked.iter().find(|name| !known.contains(name)) {
        None => Ok(Some(asked)),
        Some(name) => Err(unrecognized(path, name, known)),
    }
}

/// A metric that there is none of at a path.
pub(super) fn unrecognized(path: &str, name: &str, known: &[&str]) -> Failure {
    let near = did_you_mean(name, known.iter().copied());
    bad_request(format!("request [{path}] contains unrecognized metric: [{name}]{near}"))
}

/// `GET /_nodes`: who is there. Known from the state, so nobody is asked.
pub(super) async fn info(call: Call) -> Result<Reply> {
    let state = call.state();
    // `_nodes/http` names parts, `_nodes/n1` nodes.
    let (mut node, mut metric) = (call.part("node"), call.part("metric"));
    if metric.is_none() && node.is_some_and(|node| node.split(',').all(|name| INFO.contains(&name)))
    {
        metric = node.take();
    }
    let wanted = metrics("/_nodes", metric, &INFO)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    // Nobody is asked, so that nothing is waited for.
    call.query.duration("timeout", PATIENCE)?;
    let names = select(&call.node, &state, node)?;
    let count = names.len();
    let nodes = object_of(names.into_iter().filter_map(|name| {
        let member = state.members.get(&name)?;
        let object = info_json(&call.node, member, wanted.as_deref(), flat_settings);
        Some((name, object))
    }));
    Ok(json!({
        "_nodes": { "total": count, "successful": count, "failed": 0 },
        "cluster_name": state.cluster_name,
        "nodes": nodes,
    })
    .into())
}

fn info_json(
    node: &Node,
    member: &state::Node,
    wanted: Option<&[&str]>,
    flat_settings: bool,
) -> Value {
    let mut object = json!({
        "name": member.name,
        "transport_address": member.transport_address,
        "host": host(&member.transport_address),
        "ip": host(&member.transport_address),
        "version": release(node).number,
        "roles": ["data", "master"],
        "attributes": member.attributes,
    });
    release(node).add_build(&mut object);
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.contains(&name));
    let bound = |address: &str| json!({ "bound_address": [address], "publish_address": address });
    if is_wanted("http") {
        object["http"] = bound(&member.http_address);
    }
    if is_wanted("transport") {
        object["transport"] = bound(&member.transport_address);
    }
    // A simulated host has cores of its own; a process shares those of its machine with the other nodes.
    if is_wanted("os")
        && let Some(host) = node.core().env.host(&member.name).virtual_host_model()
    {
        object["os"] = json!({ "allocated_processors": host.cores });
    }
    if is_wanted("settings") {
        let (name, cluster) = (&member.name, &node.core().config.cluster);
        let is_manager = name == manager(node);
        object["settings"] = match flat_settings {
            true => json!({
                "node.name": name, "node.master": is_manager, "cluster.name": cluster,
            }),
            false => json!({
                "node": { "name": name, "master": is_manager },
                "cluster": { "name": cluster },
            }),
        };
    }
    object
}

/// Refuses what a node does not tell of its indices.
fn check_level(text: Option<&str>) -> Result<()> {
    match text {
        None | Some("node") => Ok(()),
        Some("indices" | "shards") => {
            let instead = "GET /_stats?level=shards says of each copy on which node it is";
            Err(not_supported("another level of _nodes/stats than [node]", instead))
        }
        Some(other) => Err(bad_request(format!(
            "level parameter must be one of [indices] or [node] or [shards] but was [{other}]"
        ))),
    }
}

/// Refuses parts that this engine does not keep.
fn refuse_parts(wanted: &[&str]) -> Result<()> {
    match wanted.iter().find(|name| REFUSED_STATS.contains(*name)) {
        None => Ok(()),
        Some(name) => {
            let instead = "leave it out; without names all parts that there are are told";
            Err(not_supported(&format!("the part [{name}] of _nodes/stats"), instead))
        }
    }
}

/// `GET /_nodes/stats`.
pub(super) async fn stats(call: Call) -> Result<Reply> {
    check_level(call.query.get("level"))?;
    let state = call.state();
    let limit = call.query.duration("timeout", PATIENCE)?;
    let wanted = metrics("/_nodes/stats", call.part("metric"), &STATS)?;
    refuse_parts(wanted.as_deref().unwrap_or_default())?;
    let names = select(&call.node, &state, call.part("node"))?;
    let within = metrics("/_nodes/stats", call.part("index_metric"), &INDEX_METRICS)?;
    let has_indices = wanted.as_ref().is_none_or(|wanted| wanted.contains(&"indices"));
    let is_of_copies = |part: &&str| !OF_THE_NODE.contains(part);
    let counts_copies = within.as_ref().is_none_or(|parts| parts.iter().any(is_of_copies));
    // The space on a disk is told with what its copies take: to add that up is too much for each look at traffic.
    let is_of_disks = wanted.as_deref() == Some(&["fs"][..]);
    let copies = (has_indices && counts_copies) || is_of_disks;
    let answers = on_nodes(&call.node, names, &Request::NodeStats { copies }, limit).await;
    let counts = nodes_json(&answers);
    let mut nodes = Map::new();
    for (name, answer) in answers {
        if let Ok(stats) = answer {
            nodes.insert(name, stats_json(stats, wanted.as_deref(), within.as_deref()));
        }
    }
    Ok(json!({ "_nodes": counts, "cluster_name": state.cluster_name, "nodes": nodes }).into())
}

/// What a node told, of it the parts that are wanted, and of `indices` those `within`.
fn stats_json(mut stats: Value, wanted: Option<&[&str]>, within: Option<&[&str]>) -> Value {
    if let Some(object) = stats.as_object_mut() {
        let address = object.get("transport_address").and_then(Value::as_str).unwrap_or_default();
        let host = json!(host(address));
        object.insert("host".to_owned(), host.clone());
        object.insert("ip".to_owned(), host);
        if let Some(wanted) = wanted {
            let is_part = |name: &str| STATS.contains(&name) && name != "timestamp";
            object.retain(|name, _| !is_part(name) || wanted.contains(&name.as_str()));
        }
        if let (Some(within), Some(Value::Object(indices))) = (within, object.get_mut("indices")) {
            indices.retain(|name, _| within.contains(&in_path(name)));
        }
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_nodes_as_the_field_does() {
        let nodes = [("n1", "10.0.0.1:9300", "a"), ("n2", "10.0.0.2:9300", "b")];
        let member = |(name, address, zone): (&str, &str, &str)| state::Node {
            name: name.to_owned(),
            transport_address: address.to_owned(),
            http_address: String::new(),
            attributes: [("zone".to_owned(), zone.to_owned())].into(),
        };
        let mut state = ClusterState::new("c", nodes.map(member), || 1);
        state.present =
            nodes.map(|node| node.0.to_owned()).into_iter().collect::<BTreeSet<_>>().into();
        let of = |expression: &str| {
            let found = selected(&state, expression, ("n2", "n1"));
            found.map(Vec::from_iter).map_err(|failure| failure.reason)
        };
        for all in ["_all", "data:true", "master:true", "n*", "10.*", "zone:*", "z*:a,zone:b"] {
            assert_eq!(of(all).unwrap(), ["n1", "n2"], "{all}");
        }
        for (expression, name) in [
            ("_local", "n2"),
            ("_master", "n1"),
            ("10.0.0.2", "n2"),
            ("zone:a", "n1"),
            ("data:true,data:false,n1", "n1"),
        ] {
            assert_eq!(of(expression).unwrap(), [name], "{expression}");
        }
        for nobody in ["gone", "master:false", "zone:c"] {
            assert_eq!(of(nobody).unwrap(), Vec::<&str>::new(), "{nobody}");
        }
        for unknown in ["ingest:true", "data:yes", "rack:a", "n1,10.0.0.1:9300"] {
            let said = of(unknown).unwrap_err();
            assert!(said.starts_with("nodes have no role and no attribute ["), "{unknown}: {said}");
        }
    }

    #[test]
    fn no_level_but_that_of_nodes() {
        assert_eq!((check_level(None), check_level(Some("node"))), (Ok(()), Ok(())));
        let said = |level| check_level(Some(level)).unwrap_err().reason;
        assert!(said("shards").contains("/_stats?level=shards"), "{}", said("shards"));
        assert!(said("shard").ends_with("but was [shard]"), "{}", said("shard"));
    }

    #[test]
    fn parts_that_are_not_kept_are_refused_by_name() {
        assert_eq!(refuse_parts(&["jvm", "breaker", "indexing_pressure"]), Ok(()));
        for name in REFUSED_STATS {
            assert!(STATS.contains(&name), "{name}");
            let said = refuse_parts(&["jvm", name]).unwrap_err();
            let named = said.reason.contains(&format!("[{name}] of _nodes/stats is not supported"));
            assert!(said.status == 400 && named, "{}", said.reason);
        }
    }

    #[test]
    fn keeps_the_parts_that_are_asked_for() {
        let whole = json!({
            "name": "n1", "transport_address": "n1:1", "timestamp": 1, "jvm": {},
            "indices": { "docs": 1, "recovery": 2, "merges": 3 },
        });
        let within = stats_json(whole.clone(), None, Some(&["recovery", "merge"]));
        assert_eq!(within["indices"], json!({ "recovery": 2, "merges": 3 }));
        let wanted = metrics("/", Some("jvm,os"), &STATS).unwrap();
        let part = stats_json(whole.clone(), wanted.as_deref(), None);
        assert_eq!(part.get("indices"), None);
        assert_eq!((&part["host"], &part["timestamp"]), (&json!("n1"), &json!(1)));
        assert!(part.get("jvm").is_some());
        assert_eq!(metrics("/", Some("jvm,_all"), &STATS), Ok(None));
        let said = metrics("/_nodes/stats", Some("jvn"), &STATS).unwrap_err().reason;
        assert_eq!(
            said,
            "request [/_nodes/stats] contains unrecognized metric: [jvn]; did you mean \"jvm\"?"
        );
    }
}
