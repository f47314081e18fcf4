//! `_cat/indices`, `_cat/shards` and `_cat/allocation`.

use std::collections::BTreeMap;

use serde_json::json;
use store::ShardStats;

use super::answer::Reply;
use super::call::Call;
use super::cluster::state_name;
use super::error::bad_request;
use super::identity::host;
use super::names::{Closed, indices_with};
use super::nodes::select;
use super::spread::{AskedCopy, PATIENCE, ask_nodes, on_shards, started};
use super::table::{Cell, Column, Table, numbers, words};
use super::time_text::moment;
use engine::state::{self, ClusterState, CopyState, DiskUsage, ShardCopy};
use engine::transport::{Request, Response, Result, ShardAction, ShardAnswer};

/// Stats of started copies, by index, shard and node. A node that does not answer has none.
type Stats = BTreeMap<(String, u32, String), ShardStats>;

async fn stats(call: &Call, state: &ClusterState, names: &[String]) -> Stats {
    let (asked, action) = (started(state, names), ShardAction::Stats { segments: false });
    let answers = on_shards(&call.node, asked, &action, PATIENCE).await;
    let one = |(copy, answer): (AskedCopy, Result<ShardAnswer>)| match answer {
        Ok(ShardAnswer::Stats(stats)) => Some(((copy.index, copy.shard, copy.node?), *stats)),
        _ => None,
    };
    answers.into_iter().filter_map(one).collect()
}

static INDICES: [Column; 13] = [
    words("health", "h", "green, yellow or red"),
    words("status", "s", "open, or close"),
    words("index", "i,idx", "index name"),
    words("uuid", "id,uuid", "index UUID"),
    numbers("pri", "p,shards.primary,shardsPrimary", "primary shards"),
    numbers("rep", "r,shards.replica,shardsReplica", "replicas of each"),
    numbers("docs.count", "dc,docsCount", "documents"),
    numbers(
        "docs.deleted",
        "dd,docsDeleted",
        "replaced and deleted documents that segments still hold",
    ),
    numbers("creation.date", "cd", "when it was made, in milliseconds since 1970").on_demand(),
    words("creation.date.string", "cds", "the same for people").on_demand(),
    numbers("store.size", "ss,storeSize", "bytes of the segment files of every copy"),
    numbers("pri.store.size", "", "bytes of the segment files of the primaries"),
    numbers("segments.count", "sc,segmentsCount", "segments of every copy").on_demand(),
];

/// `GET /_cat/indices`.
pub(super) async fn indices(call: Call) -> Result<Reply> {
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Expanded)?;
    let health = call.query.get("health").map(str::to_ascii_lowercase);
    let health = health.as_deref();
    if let Some(other) = health.filter(|name| !["green", "yellow", "red"].contains(name)) {
        return Err(bad_request(format!("unknown health [{other}]; write green, yellow or red")));
    }
    call.query.flag("include_unloaded_segments", false)?;
    let primaries_only = call.query.flag("pri", false)?;
    let stats = stats(&call, &state, &names).await;
    let mut table = Table::new(&INDICES);
    for name in &names {
        let (Some(meta), Some(found)) = (state.indices.get(name), state::health_of(&state, name))
        else {
            continue;
        };
        if health.is_some_and(|wanted| wanted != found.status.name()) {
            continue;
        }
        let copies = || stats.iter().filter(|((index, _, _), _)| index == name);
        let is_primary = |shard: u32, node: &str| {
            state.shard(name, shard).is_some_and(|routing| routing.primary().is_on(node))
        };
        let sum = |of: fn(&ShardStats) -> u64, primaries: bool| -> u64 {
            let wanted = copies().filter(|((_, n, node), _)| !primaries || is_primary(*n, node));
            wanted.map(|(_, stats)| of(stats)).sum()
        };
        let status = if meta.closed { "close" } else { "open" };
        table.push(vec![
            found.status.name().into(),
            status.into(),
            name.as_str().into(),
            meta.uuid.as_str().into(),
            Cell::Number(u64::from(meta.shards)),
            Cell::Number(u64::from(meta.replicas)),
            Cell::Number(sum(|stats| stats.documents, true)),
            Cell::Number(sum(|stats| stats.deleted, true)),
            Cell::Number(meta.created_ms),
            moment(meta.created_ms).into(),
            Cell::Size(sum(|stats| stats.store_bytes, primaries_only)),
            Cell::Size(sum(|stats| stats.store_bytes, true)),
            Cell::Number(sum(|stats| stats.segments, primaries_only)),
        ]);
    }
    table.answer(&call.query)
}

static ALLOCATION: [Column; 9] = [
    numbers("shards", "s", "copies on the node"),
    numbers("disk.indices", "di,diskIndices", "bytes of their segment files"),
    numbers("disk.used", "du,diskUsed", "bytes of its disk in use"),
    numbers("disk.avail", "da,diskAvail", "bytes of it that are free"),
    numbers("disk.total", "dt,diskTotal", "bytes of it"),
    numbers("disk.percent", "dp,diskPercent", "of it in use"),
    words("host", "h", "host of its transport address"),
    words("ip", "", "the same"),
    words("node", "n", "node name"),
];

/// `GET /_cat/allocation`; copies on no node are in a row of their own.
pub(super) async fn allocation(call: Call) -> Result<Reply> {
    let state = call.state();
    let wanted = select(&call.node, &state, call.part("node"))?;
    let names: Vec<String> = state.indices.keys().cloned().collect();
    let stats = stats(&call, &state, &names).await;
    let disks = disks(&call, &state, &wanted).await;
    let mut table = Table::new(&ALLOCATION);
    let mut push = |copies: usize, bytes: Option<u64>, host: Option<&str>, node: &str| {
        let mut row = vec![Cell::Number(copies as u64), bytes.map(Cell::Size).into()];
        row.extend(disk_cells(disks.get(node)));
        row.extend([host.into(), host.into(), node.into()]);
        table.push(row);
    };
    for node in state.present_nodes().filter(|node| wanted.contains(&node.name)) {
        let of_node = stats.iter().filter(|((_, _, name), _)| *name == node.name);
        let bytes = of_node.map(|(_, stats)| stats.store_bytes).sum();
        let copies = state.copies_on(&node.name).count();
        push(copies, Some(bytes), Some(host(&node.transport_address)), &node.name);
    }
    let copies = state.shards().flat_map(|(_, _, shard)| &shard.copies);
    let unassigned = copies.filter(|copy| !copy.is_assigned()).count();
    if unassigned > 0 && call.part("node").is_none_or(|nodes| nodes == "_all") {
        push(unassigned, None, None, "UNASSIGNED");
    }
    table.answer(&call.query)
}

/// Bytes of the disks of the nodes that are wanted, and those of them that are free. The manager looks at disks where
/// copies are kept from full ones; else the nodes are asked.
async fn disks(
    call: &Call,
    state: &ClusterState,
    wanted: &[String],
) -> BTreeMap<String, (u64, u64)> {
    let known =
        |(name, disk): (&String, &DiskUsage)| (name.clone(), (disk.total_bytes, disk.free_bytes));
    let mut disks: BTreeMap<String, (u64, u64)> = state.info.disks.iter().map(known).collect();
    let unknown = wanted.iter().filter(|name| !disks.contains_key(*name)).cloned().collect();
    let asked = ask_nodes(&call.node, unknown, &Request::DiskLook, PATIENCE).await;
    disks.extend(asked.into_iter().filter_map(|(name, answer)| match answer {
        Ok(Response::DiskLook(look)) => Some((name, look.disk?)),
        _ => None,
    }));
    disks
}

/// How full a disk is.
fn disk_cells(disk: Option<&(u64, u64)>) -> [Cell; 4] {
    let Some(&(total_bytes, free_bytes)) = disk else {
        return std::array::from_fn(|_| Cell::Empty);
    };
    let used_bytes = total_bytes.saturating_sub(free_bytes);
    let percent = used_bytes as f64 / total_bytes.max(1) as f64 * 100.0;
    let [used, free, total] = [used_bytes, free_bytes, total_bytes].map(Cell::Size);
    [used, free, total, Cell::Number(percent.round() as u64)]
}

static SHARDS: [Column; 18] = [
    words("index", "i,idx", "index name"),
    numbers("shard", "s,sh", "shard number"),
    words("prirep", "p,pr,primaryOrReplica", "p primary, r replica"),
    words("state", "st", "what the copy does"),
    numbers("docs", "d,dc", "documents"),
    numbers("store", "sto", "bytes of its segment files"),
    words("ip", "", "host of its node"),
    words("node", "n", "name of its node"),
    words("id", "", "name of its node").on_demand(),
    words("recoverysource.type", "rs", "from where it recovers").on_demand(),
    words("unassigned.at", "ua", "since when it is on no node").on_demand(),
    words("unassigned.reason", "ur", "why it is on no node").on_demand(),
    words("unassigned.details", "ud", "why it failed last").on_demand(),
    numbers("seq_no.max", "sqm", "highest sequence number").on_demand(),
    numbers("seq_no.local_checkpoint", "sql", "local checkpoint").on_demand(),
    numbers("seq_no.global_checkpoint", "sqg", "global checkpoint").on_demand(),
    numbers("segments.count", "sc", "segments").on_demand(),
    numbers("translog.ops", "", "operations in its log").on_demand(),
];

/// `GET /_cat/shards`.
pub(super) async fn shards(call: Call) -> Result<Reply> {
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Expanded)?;
    let stats = stats(&call, &state, &names).await;
    let mut table = Table::new(&SHARDS);
    for (index, shard, routing) in state.shards().filter(|row| names.iter().any(|n| n == row.0)) {
        let mut copies: Vec<&ShardCopy> = routing.copies.iter().collect();
        copies.sort_by_key(|copy| (!copy.primary, copy.node.is_none(), copy.node.as_deref()));
        for copy in copies {
            let key = copy.node.as_ref().map(|node| (index.to_owned(), shard, node.clone()));
            let stats = key.and_then(|key| stats.get(&key));
            table.push(shard_row(&state, (index, shard), copy, stats));
        }
    }
    table.answer(&call.query)
}

fn shard_row(
    state: &ClusterState,
    (index, shard): (&str, u32),
    copy: &ShardCopy,
    stats: Option<&ShardStats>,
) -> Vec<Cell> {
    let node = copy.node.as_deref();
    let address = |node: Option<&str>| Some(state.members.get(node?)?.transport_address.as_str());
    // As the field writes it: the node, and to where it moves.
    let shown_node = node.map(|node| match copy.relocating_node() {
        Some(to) => {
            let ip = address(Some(to)).map(host).unwrap_or_default();
            format!("{node} -> {ip} {to} {to}")
        }
        None => node.to_owned(),
    });
    let unassigned = match copy.state {
        CopyState::Unassigned { reason, at_ms } => Some((json!(reason), moment(at_ms))),
        _ => None,
    };
    let number =
        |of: fn(&ShardStats) -> Option<u64>| Cell::from(stats.and_then(of).map(Cell::Number));
    vec![
        index.into(),
        Cell::Number(u64::from(shard)),
        if copy.primary { "p" } else { "r" }.into(),
        state_name(copy).into(),
        number(|stats| Some(stats.documents)),
        stats.map(|stats| Cell::Size(stats.store_bytes)).into(),
        address(node).map(host).into(),
        shown_node.into(),
        node.into(),
        copy.recovery().map(|from| from.kind().to_ascii_lowercase()).into(),
        unassigned.as_ref().map(|(_, at)| at.as_str()).into(),
        unassigned.as_ref().and_then(|(reason, _)| reason.as_str()).into(),
        copy.last_failure.as_deref().into(),
        number(|stats| stats.max_seq_no),
        number(|stats| stats.local_checkpoint),
        number(|stats| stats.global_checkpoint),
        number(|stats| Some(stats.segments)),
        number(|stats| Some(stats.log_ops)),
    ]
}
