//! `_cat/health`, `_cat/nodes`, `_cat/recovery`, the manager and plugins.

use std::time::Duration;

use serde_json::Value;

use super::answer::Reply;
use super::call::Call;
use super::identity::{self, host, release};
use super::names::{Closed, indices_with};
use super::recovery::rows;
use super::spread::{PATIENCE, on_nodes};
use super::table::{Cell, Column, Table, numbers, words};
use super::time_text::{clock, moment};
use engine::state;
use engine::transport::{Request, Result};

/// `GET /_cat`.
pub(super) async fn list(_: Call) -> Result<Reply> {
    const NAMES: &str = "aliases allocation cluster_manager count health indices master nodes plugins recovery \
                         segments shards tasks templates thread_pool";
    Ok(Reply::text(NAMES.split(' ').map(|name| format!("/_cat/{name}\n")).collect()))
}

static HEALTH: [Column; 14] = [
    numbers("epoch", "t,time", "seconds since 1970"),
    words("timestamp", "ts,hms,hhmmss", "time of day, UTC"),
    words("cluster", "cl", "cluster name"),
    words("status", "st", "health status"),
    numbers("node.total", "nt,nodeTotal", "nodes"),
    numbers("node.data", "nd,nodeData", "nodes that hold data"),
    numbers("shards", "t,sh,shards.total,shardsTotal", "started copies"),
    numbers("pri", "p,shards.primary,shardsPrimary", "started primaries"),
    numbers("relo", "r,shards.relocating,shardsRelocating", "copies that move"),
    numbers("init", "i,shards.initializing,shardsInitializing", "copies that recover"),
    numbers("unassign", "u,shards.unassigned,shardsUnassigned", "copies on no node"),
    numbers("pending_tasks", "pt,pendingTasks", "tasks that wait for the manager"),
    words("max_task_wait_time", "mtwt,maxTaskWaitTime", "how long one waits"),
    numbers("active_shards_percent", "asp,activeShardsPercent", "started copies of all"),
];

/// `GET /_cat/health`.
pub(super) async fn health(call: Call) -> Result<Reply> {
    super::health::ask_manager(&call, Duration::MAX).await?;
    let mut health = state::health(&call.state());
    if call.node.core().state_hides_loss() {
        health.status = state::Status::Red;
    }
    let now_ms = call.node.core().env.epoch_ms();
    // Without the time its two columns are left out.
    let untimed = if call.query.flag("ts", true)? { 0 } else { 2 };
    let number = |count: u32| Cell::Number(u64::from(count));
    let mut table = Table::new(&HEALTH[untimed..]);
    let mut row = vec![
        Cell::Number(now_ms / 1000),
        clock(now_ms).into(),
        health.cluster_name.into(),
        health.status.name().into(),
        number(health.number_of_nodes),
        number(health.number_of_data_nodes),
        number(health.active_shards),
        number(health.active_primary_shards),
        number(health.relocating_shards),
        number(health.initializing_shards),
        number(health.unassigned_shards),
        Cell::Number(0),
        "-".into(),
        format!("{:.1}%", health.active_shards_percent_as_number).into(),
    ];
    table.push(row.split_off(untimed));
    table.answer(&call.query)
}

static NODES: [Column; 19] = [
    words("id", "nodeId", "node name").on_demand(),
    words("ip", "i", "host of the transport address"),
    words("port", "po", "port of the transport address").on_demand(),
    words("http_address", "http", "where REST is served").on_demand(),
    words("version", "v", "the version that clients are told").on_demand(),
    numbers("heap.percent", "hp,heapPercent", "not known: nothing here has a heap of its own"),
    numbers("ram.percent", "rp,ramPercent", "not known"),
    numbers("cpu", "", "not known: see process in _nodes/stats"),
    numbers("load_1m", "l", "not known"),
    numbers("load_5m", "", "not known"),
    numbers("load_15m", "", "not known"),
    words("node.role", "r,role,nodeRole", "d holds data, m may manage"),
    words("master", "m", "* manages the cluster"),
    words("name", "n", "node name"),
    words("uptime", "u", "since it was started").on_demand(),
    numbers("resident", "", "resident memory of its process").on_demand(),
    numbers("docs.count", "", "documents of its copies").on_demand(),
    numbers("store.size", "", "bytes of their segment files").on_demand(),
    numbers("segments.count", "sc,segmentsCount", "their segments").on_demand(),
];

/// `GET /_cat/nodes`.
pub(super) async fn nodes(call: Call) -> Result<Reply> {
    let state = call.state();
    let names = state.present.iter().cloned().collect();
    let mut table = Table::new(&NODES);
    let asked = Request::NodeStats { copies: true };
    for (name, stats) in on_nodes(&call.node, names, &asked, PATIENCE).await {
        let Some(member) = state.members.get(&name) else { continue };
        let stats = stats.unwrap_or(Value::Null);
        let number = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64);
        let address = &member.transport_address;
        table.push(vec![
            name.as_str().into(),
            host(address).into(),
            address.rsplit_once(':').map(|(_, port)| port).into(),
            member.http_address.as_str().into(),
            release(&call.node).number.into(),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            "dm".into(),
            if name == identity::manager(&call.node) { "*" } else { "-" }.into(),
            name.as_str().into(),
            number("/jvm/uptime_in_millis").map(Cell::Millis).into(),
            number("/process/mem/resident_in_bytes").map(Cell::Size).into(),
            number("/indices/docs/count").map(Cell::Number).into(),
            number("/indices/store/size_in_bytes").map(Cell::Size).into(),
            number("/indices/segments/count").map(Cell::Number).into(),
        ]);
    }
    table.answer(&call.query)
}

static MANAGER: [Column; 4] = [
    words("id", "", "node name"),
    words("host", "h", "host of the transport address"),
    words("ip", "", "the same"),
    words("node", "n", "node name"),
];

/// `GET /_cat/master`, `GET /_cat/cluster_manager`.
pub(super) async fn manager(call: Call) -> Result<Reply> {
    let name = identity::manager(&call.node);
    let state = call.state();
    let host = state.members.get(name).map(|node| host(&node.transport_address));
    let mut table = Table::new(&MANAGER);
    table.push(vec![name.into(), host.into(), host.into(), name.into()]);
    table.answer(&call.query)
}

static PLUGINS: [Column; 3] = [
    words("name", "n", "node name"),
    words("component", "c", "name of the plugin"),
    words("version", "v", "its version"),
];

/// `GET /_cat/plugins`: there are none.
pub(super) async fn plugins(call: Call) -> Result<Reply> {
    Table::new(&PLUGINS).answer(&call.query)
}

static RECOVERY: [Column; 26] = [
    words("index", "i,idx", "index name"),
    numbers("shard", "s,sh", "shard number"),
    words("start_time", "start", "when it began").on_demand(),
    numbers("start_time_millis", "start_millis", "the same in milliseconds since 1970").on_demand(),
    words("stop_time", "stop", "when it ended").on_demand(),
    numbers("stop_time_millis", "stop_millis", "the same in milliseconds since 1970").on_demand(),
    words("time", "t,ti", "how long it takes, or took"),
    words("type", "ty", "from where"),
    words("stage", "st", "its stage"),
    words("source_host", "shost", "host that is read"),
    words("source_node", "snode", "node that is read"),
    words("target_host", "thost", "host that recovers"),
    words("target_node", "tnode", "node that recovers"),
    words("repository", "rep", "remote cluster"),
    words("snapshot", "snap", "always the latest of it"),
    numbers("files", "f", "files to recover"),
    numbers("files_recovered", "fr", "files recovered"),
    numbers("files_percent", "fp", "files recovered of those to recover"),
    numbers("files_total", "tf", "all files"),
    numbers("bytes", "b", "bytes to recover"),
    numbers("bytes_recovered", "br", "bytes recovered"),
    numbers("bytes_percent", "bp", "bytes recovered of those to recover"),
    numbers("bytes_total", "tb", "all bytes"),
    numbers("translog_ops", "to", "operations to replay"),
    numbers("translog_ops_recovered", "tor", "operations replayed"),
    numbers("translog_ops_percent", "top", "operations replayed of those to replay"),
];

/// `GET /_cat/recovery`.
pub(super) async fn recovery(call: Call) -> Result<Reply> {
    let active_only = call.query.flag("active_only", false)?;
    // Files are never listed in a table.
    call.query.flag("detailed", false)?;
    let names = indices_with(&call.state(), call.indices(), &call.query, Closed::Expanded)?;
    let mut table = Table::new(&RECOVERY);
    for (index, shard) in rows(&call, &names, active_only, false).await {
        table.push(recovery_row(index, &shard));
    }
    table.answer(&call.query)
}

fn recovery_row(index: String, shard: &Value) -> Vec<Cell> {
    let text = |pointer: &str| shard.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let or_na = |pointer: &str| Cell::Text(text(pointer).unwrap_or_else(|| "n/a".to_owned()));
    let at = |pointer: &str| shard.pointer(pointer).and_then(Value::as_u64);
    let number = |pointer: &str| Cell::from(at(pointer).map(Cell::Number));
    let bytes = |pointer: &str| Cell::from(at(pointer).map(Cell::Size));
    let without = |whole: &str, reused: &str| Some(at(whole)?.saturating_sub(at(reused)?));
    let (start, stop) = (at("/start_time_in_millis"), at("/stop_time_in_millis"));
    vec![
        index.into(),
        number("/id"),
        start.map(moment).into(),
        start.map(Cell::Number).into(),
        stop.map(moment).into(),
        stop.map(Cell::Number).into(),
        at("/total_time_in_millis").map(Cell::Millis).into(),
        text("/type").map(|kind| kind.to_ascii_lowercase()).into(),
        text("/stage").map(|stage| stage.to_ascii_lowercase()).into(),
        or_na("/source/host"),
        or_na("/source/name"),
        or_na("/target/host"),
        or_na("/target/name"),
        or_na("/source/repository"),
        or_na("/source/snapshot"),
        without("/index/files/total", "/index/files/reused").map(Cell::Number).into(),
        number("/index/files/recovered"),
        text("/index/files/percent").into(),
        number("/index/files/total"),
        without("/index/size/total_in_bytes", "/index/size/reused_in_bytes").map(Cell::Size).into(),
        bytes("/index/size/recovered_in_bytes"),
        text("/index/size/percent").into(),
        bytes("/index/size/total_in_bytes"),
        number("/translog/total"),
        number("/translog/recovered"),
        text("/translog/percent").into(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recovery_fills_its_row() {
        let row = recovery_row(
            "a".to_owned(),
            &json!({
                "id": 3, "type": "PEER", "stage": "INDEX", "total_time_in_millis": 1500,
                "start_time_in_millis": 0,
                "source": {"name": "n1", "host": "h1"}, "target": {"name": "n2", "host": "h2"},
                "index": {
                    "files": {"total": 5, "reused": 2, "recovered": 1, "percent": "33.3%"},
                    "size": {
                        "total_in_bytes": 100, "reused_in_bytes": 40, "recovered_in_bytes": 6,
                        "percent": "10.0%",
                    },
                },
                "translog": {"total": 7, "recovered": 0, "percent": "0.0%"},
            }),
        );
        let mut table = Table::new(&RECOVERY);
        table.push(row.clone());
        let cell = |name: &str| {
            let at = RECOVERY.iter().position(|column| column.name == name).unwrap();
            row[at].clone()
        };
        assert_eq!(cell("start_time"), "1970-01-01T00:00:00.000Z".into());
        assert_eq!(cell("stop_time"), Cell::Empty);
        assert_eq!(cell("type"), "peer".into());
        assert_eq!(cell("files"), Cell::Number(3));
        assert_eq!(cell("bytes"), Cell::Size(60));
        assert_eq!(cell("source_node"), "n1".into());
        assert_eq!(cell("repository"), "n/a".into());
        assert_eq!(cell("translog_ops"), Cell::Number(7));
    }
}
