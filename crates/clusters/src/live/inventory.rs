//! What a cluster consists of, in a few requests that only read.

use std::collections::BTreeMap;
use std::time::Duration;

use record::inventory::Inventory;
use record::observation::{Gap, Identity};
use serde_json::Value;

use super::questions::{LEASES_FILTER, lost_without};
use super::{LiveClient, parse, round_trips};
use crate::{Error, Result};

const NODES: &str = "/_nodes/os?filter_path=nodes.*.name,nodes.*.roles,nodes.*.attributes,nodes.*.os.allocated_processors";
const COPIES: &str =
    "/_cat/shards?format=json&bytes=b&h=index,shard,prirep,state,docs,store,node,segments.count";
const SEGMENTS: &str = "/_segments?filter_path=indices.*.shards.*.routing.primary,\
    indices.*.shards.*.segments.*.size_in_bytes,indices.*.shards.*.segments.*.committed";
/// Segments and leases are asked for where there are no more copies than this: each segment of each takes some hundred
/// bytes, and so does each lease.
const COPIES_MAX: usize = 4000;
const INDICES: &str = "/_settings?flat_settings=true&expand_wildcards=all";
/// For what expands to visible indices alone otherwise. Releases without hidden indices do not know it, and closed ones
/// would be refused.
const HIDDEN_TOO: &str = "&expand_wildcards=open,hidden";
const INDEXED: &str = "/_nodes/stats/indices,fs/indexing?filter_path=nodes.*.indices.indexing.index_total,\
    nodes.*.fs.total.total_in_bytes,nodes.*.fs.total.available_in_bytes";
/// Between two looks at what was indexed.
const BETWEEN: Duration = Duration::from_secs(1);

/// Asks what a cluster consists of. Fails where it does not tell its nodes or its copies; what else it does not tell is
/// a gap.
pub async fn inventory(client: &LiveClient, identity: &Identity) -> Result<Inventory> {
    let mut gaps = Vec::new();
    let mut nodes = parse::inventory_nodes(&client.get(NODES).await?);
    let before = (ask(client, INDEXED, &mut gaps).await?, client.now());
    let disks = before.0.as_ref().map(parse::disks).unwrap_or_default();
    nodes.iter_mut().for_each(|node| node.disk_bytes = disks.get(&node.id).copied());
    let mut copies = parse::inventory_copies(&client.get(COPIES).await?);
    let indices = ask(client, INDICES, &mut gaps).await?;
    let indices = indices.as_ref().map(parse::index_settings).unwrap_or_default();
    let is_hidden = |own: &BTreeMap<String, String>| {
        own.get("index.hidden").is_some_and(|hidden| hidden == "true")
    };
    let wildcards = if indices.values().any(is_hidden) { HIDDEN_TOO } else { "" };
    if copies.len() <= COPIES_MAX {
        let segments = ask(client, &format!("{SEGMENTS}{wildcards}"), &mut gaps).await?;
        let committed = segments.as_ref().map(parse::committed).unwrap_or_default();
        for copy in copies.iter_mut().filter(|copy| copy.primary) {
            if let Some((bytes, segments)) = committed.get(&(copy.index.clone(), copy.shard)) {
                (copy.bytes, copy.segments) = (Some(*bytes), Some(*segments));
            }
        }
        let leases = format!("/_stats/docs?level=shards&filter_path={LEASES_FILTER}{wildcards}");
        let leases = ask(client, &leases, &mut gaps).await?;
        let lags = leases.as_ref().map(parse::lease_lags).unwrap_or_default();
        let ids: BTreeMap<&str, &str> =
            nodes.iter().map(|node| (node.name.as_str(), node.id.as_str())).collect();
        for copy in &mut copies {
            let id = copy.node.as_deref().and_then(|name| ids.get(name));
            let lag =
                id.and_then(|id| lags.get(&(copy.index.clone(), copy.shard, (*id).to_owned())));
            copy.lease_lag = lag.copied();
        }
    }
    let settings = format!(
        "/_cluster/settings?include_defaults=true&flat_settings=true&filter_path={}",
        parse::SETTINGS_FILTER
    );
    let settings = ask(client, &settings, &mut gaps).await?;
    let data = nodes.iter().filter(|node| node.holds_data.unwrap_or(true));
    let data: Vec<(&str, &str)> = data.map(|node| (node.id.as_str(), node.name.as_str())).collect();
    let round_trips_ms = round_trips::to_nodes(client, &data).await;
    client.sleep_until(before.1 + BETWEEN).await;
    let after = (ask(client, INDEXED, &mut gaps).await?, client.now());
    let indexed = |answer: &Option<Value>| answer.as_ref().and_then(parse::indexed);
    let elapsed_s = (after.1 - before.1).as_secs_f64();
    let indexed_per_s = match (indexed(&before.0), indexed(&after.0)) {
        (Some(before), Some(after)) if elapsed_s > 0.0 => {
            Some(after.saturating_sub(before) as f64 / elapsed_s)
        }
        _ => None,
    };
    gaps.dedup();
    Ok(Inventory {
        cluster: identity.clone(),
        nodes,
        copies,
        settings: settings.as_ref().map(parse::settings),
        indices,
        round_trips_ms,
        indexed_per_s,
        gaps,
    })
}

/// An answer; none where the cluster refuses it, which is a gap.
async fn ask(client: &LiveClient, path: &str, gaps: &mut Vec<Gap>) -> Result<Option<Value>> {
    match client.get(path).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ (Error::Forbidden { .. } | Error::Refused { .. } | Error::TooLarge { .. })) => {
            let short = path.split('?').next().unwrap_or(path).to_owned();
            let lost = lost_without(&short).to_owned();
            gaps.push(Gap { path: short, found: error.to_string(), lost });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
