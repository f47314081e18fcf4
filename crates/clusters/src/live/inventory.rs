//! What a cluster consists of, in a few requests that only read.

use std::collections::BTreeMap;
use std::time::Duration;

use record::inventory::Inventory;
use record::observation::{Gap, Identity};
use serde_json::Value;
use world::Time;

use super::questions::{LEASES_FILTER, lost_without};
use super::{LiveClient, parse, round_trips};
use crate::{Error, Result};

const NODES: &str = "/_nodes/os?filter_path=nodes.*.name,nodes.*.host,nodes.*.ip,nodes.*.roles,nodes.*.attributes,\
    nodes.*.os.allocated_processors";
/// Both flavours know it by this name.
const MANAGER: &str = "/_nodes/_master/os?filter_path=nodes.*.name";
const COPIES: &str =
    "/_cat/shards?format=json&bytes=b&h=index,shard,prirep,state,docs,store,node,segments.count";
/// Where nodes are called alike, only their ids say which of them has a copy. Nearly nowhere they are, and ids are
/// long.
const IDS_TOO: &str = ",id";
const SEGMENTS: &str = "/_segments?filter_path=indices.*.shards.*.routing.primary,\
    indices.*.shards.*.segments.*.size_in_bytes,indices.*.shards.*.segments.*.committed";
/// Segments and leases are asked for where there are no more copies than this: each segment of each takes some hundred
/// bytes, and so does each lease.
const COPIES_MAX: usize = 4000;
const INDICES: &str = "/_settings?flat_settings=true&expand_wildcards=all";
/// Added to questions that cover visible indices alone otherwise, where the cluster has hidden ones: older releases do
/// not know it. Closed indices are left out, because these questions are refused for them.
const HIDDEN_TOO: &str = "&expand_wildcards=open,hidden";
/// `_cat/shards` has no sizes of closed indices, whose copies are made as those of others are.
const CLOSED: &str = "/_stats/store?level=shards&forbid_closed_indices=false&filter_path=\
    indices.*.shards.*.routing.primary,indices.*.shards.*.store.size_in_bytes&expand_wildcards=closed";
const COUNTERS: &str = "/_nodes/stats/fs,transport?filter_path=nodes.*.fs.timestamp,nodes.*.fs.total.total_in_bytes,\
    nodes.*.fs.total.available_in_bytes,nodes.*.fs.io_stats.total.*_kilobytes,nodes.*.transport.*x_size_in_bytes";
const INDEXED: &str = "/_stats/indexing?filter_path=indices.*.primaries.indexing.index_total";
/// All recoveries, those that have ended, too: asked for where there are no more copies than [`COPIES_MAX`].
const RECOVERED: &str = "/_recovery?filter_path=*.shards.type,*.shards.stage,*.shards.index.size,\
    *.shards.index.*time_in_millis";
/// What an inventory lacks if one of these questions is not answered; for all others [`lost_without`] says it.
const LOST: [(&str, &str); 4] = [
    ("/_stats/store", "how large closed indices are"),
    ("/_nodes/_master", "which node manages the cluster, from which new copies may take longer"),
    ("/_recovery", "what links and disks carried in earlier recoveries"),
    ("/_nodes/stats/", "how large disks are and how much is free, what links and disks carry now"),
];
/// Between two looks at what is indexed, sent and written. The field counts what its disks do once a second.
const BETWEEN: Duration = Duration::from_secs(2);

/// Asks what a cluster consists of. Fails where it does not tell its nodes or its copies; what else it does not tell is
/// a gap.
pub async fn inventory(client: &LiveClient, identity: &Identity) -> Result<Inventory> {
    let mut gaps = Vec::new();
    let mut nodes = parse::inventory_nodes(&client.get(NODES).await?);
    let are_alike = parse::tell_apart(&mut nodes);
    let before = (client.now(), ask(client, COUNTERS, &mut gaps).await?);
    let disks = before.1.as_ref().map(parse::disks).unwrap_or_default();
    nodes.iter_mut().for_each(|node| node.disk_bytes = disks.get(&node.id).copied());
    if identity.flavour != "narrows"
        && let Some(answer) = ask(client, MANAGER, &mut gaps).await?
    {
        let managers = parse::inventory_nodes(&answer);
        nodes
            .iter_mut()
            .for_each(|node| node.manages = managers.iter().any(|one| one.id == node.id));
    }
    let more = if are_alike { IDS_TOO } else { "" };
    let copies = client.get(&format!("{COPIES}{more}")).await?;
    let mut copies = parse::inventory_copies(&copies, &nodes);
    let indices = ask(client, INDICES, &mut gaps).await?;
    let indices = indices.as_ref().map(parse::index_settings).unwrap_or_default();
    let is_hidden = |own: &BTreeMap<String, String>| {
        own.get("index.hidden").is_some_and(|hidden| hidden == "true")
    };
    let wildcards = if indices.values().any(is_hidden) { HIDDEN_TOO } else { "" };
    if copies.iter().any(|copy| copy.primary && copy.node.is_some() && copy.bytes.is_none()) {
        let hidden = if wildcards.is_empty() { "" } else { ",hidden" };
        let closed = ask(client, &format!("{CLOSED}{hidden}"), &mut gaps).await?;
        let sizes = closed.as_ref().map(parse::store_sizes).unwrap_or_default();
        for copy in copies.iter_mut().filter(|copy| copy.primary && copy.bytes.is_none()) {
            copy.bytes = sizes.get(&(copy.index.clone(), copy.shard)).copied();
        }
    }
    let indexed_before = ask_indexed(client, wildcards, &mut gaps).await?;
    let mut seen_rates = Vec::new();
    if copies.len() <= COPIES_MAX {
        if let Some(answer) = ask(client, RECOVERED, &mut gaps).await? {
            seen_rates = parse::rates_of_recoveries(&answer);
        }
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
        "/_cluster/settings?include_defaults=true&flat_settings=true&filter_path={},{}",
        parse::SETTINGS_FILTER,
        parse::TLS_FILTER
    );
    let settings = ask(client, &settings, &mut gaps).await?;
    let data = nodes.iter().filter(|node| node.holds_data.unwrap_or(true));
    let data: Vec<(&str, &str)> = data.map(|node| (node.id.as_str(), node.name.as_str())).collect();
    let round_trips_ms = round_trips::to_nodes(client, &data).await;
    let from = indexed_before.as_ref().map_or(before.0, |(at, _)| before.0.max(*at));
    client.sleep_until(from + BETWEEN).await;
    if let Some(then) = &before.1
        && let Some(now) = ask(client, COUNTERS, &mut gaps).await?
    {
        seen_rates.extend(parse::rates_between(then, &now, client.now() - before.0));
    }
    let documents_per_s = match indexed_before {
        Some(then) => {
            let now = ask_indexed(client, wildcards, &mut gaps).await?;
            now.map(|now| documents_per_s(&then, &now))
        }
        None => None,
    };
    gaps.dedup();
    Ok(Inventory {
        cluster: identity.clone(),
        nodes,
        names_are_hashed: false,
        copies,
        settings: settings.as_ref().map(parse::settings),
        encrypts: settings.as_ref().and_then(parse::encrypts),
        indices,
        round_trips_ms,
        documents_per_s,
        seen_rates: parse::highest(seen_rates),
        gaps,
    })
}

/// Documents that were indexed by a moment, by index.
type Indexed = (Time, BTreeMap<String, u64>);

async fn ask_indexed(
    client: &LiveClient,
    wildcards: &str,
    gaps: &mut Vec<Gap>,
) -> Result<Option<Indexed>> {
    let answer = ask(client, &format!("{INDEXED}{wildcards}"), gaps).await?;
    Ok(answer.map(|answer| (client.now(), parse::indexed_documents(&answer))))
}

/// Documents that were indexed a second between two moments, by index. New indices are left out, and those that counted
/// less the second time: their primary restarted, or is another copy now.
fn documents_per_s(before: &Indexed, after: &Indexed) -> BTreeMap<String, f64> {
    let elapsed_s = (after.0 - before.0).as_secs_f64().max(1e-3);
    let of = |(index, now): (&String, &u64)| {
        let more = now.checked_sub(*before.1.get(index)?)?;
        Some((index.clone(), more as f64 / elapsed_s))
    };
    after.1.iter().filter_map(of).collect()
}

/// An answer; none where the cluster refuses it or takes too long, which is a gap.
async fn ask(client: &LiveClient, path: &str, gaps: &mut Vec<Gap>) -> Result<Option<Value>> {
    match client.get(path).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_gap(&error) => {
            let short = path.split('?').next().unwrap_or(path).to_owned();
            let own =
                LOST.iter().find_map(|(known, lost)| short.starts_with(known).then_some(*lost));
            let lost = own.unwrap_or_else(|| lost_without(&short)).to_owned();
            gaps.push(Gap { path: short, found: error.to_string(), lost });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether the cluster is there, and refuses this question alone or is too slow. Of several hosts one such is enough.
fn is_gap(error: &Error) -> bool {
    match error {
        Error::Forbidden { .. }
        | Error::Refused { .. }
        | Error::TooLarge { .. }
        | Error::Timeout { .. } => true,
        Error::NoHost { tried } => tried.iter().any(is_gap),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_whose_primary_counts_anew_is_not_known() {
        let of = |indices: &[(&str, u64)]| -> BTreeMap<String, u64> {
            indices.iter().map(|(index, count)| ((*index).to_owned(), *count)).collect()
        };
        let before = (Time(0), of(&[("grows", 10), ("rests", 5), ("restarted", 900)]));
        let after =
            (Time(2_000_000_000), of(&[("grows", 40), ("rests", 5), ("restarted", 7), ("new", 3)]));
        let found = documents_per_s(&before, &after);
        let expected = [("grows", 15.0), ("rests", 0.0)];
        let expected = expected.map(|(index, rate): (&str, f64)| (index.to_owned(), rate));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn what_takes_too_long_is_a_gap_and_what_is_not_there_is_none() {
        let late = || Error::Timeout {
            address: "a:9200".to_owned(),
            method: "GET".to_owned(),
            path: "/_recovery".to_owned(),
            limit: Duration::from_secs(5),
        };
        let gone = || Error::Connection {
            address: "b:9200".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert!(is_gap(&late()) && is_gap(&Error::NoHost { tried: vec![gone(), late()] }));
        assert!(!is_gap(&gone()) && !is_gap(&Error::NoHost { tried: vec![gone(), gone()] }));
    }
}
