//! `_cat/thread_pool`. The one pool that bounds what it takes is that of searches.

use serde_json::Value;

use super::answer::Reply;
use super::call::Call;
use super::identity::host;
use super::names::matches_any;
use super::spread::{PATIENCE, on_nodes};
use super::table::{Cell, Column, Table, numbers, words};
use engine::transport::{Request, Result};

static POOLS: [Column; 12] = [
    words("node_name", "nn", "node name"),
    words("node_id", "id", "node name").on_demand(),
    words("host", "h", "host of the transport address").on_demand(),
    words("name", "n", "name of the pool"),
    words("type", "t", "fixed: so many threads").on_demand(),
    numbers("active", "a", "tasks that run"),
    numbers("pool_size", "psz", "threads").on_demand(),
    numbers("queue", "q", "tasks that wait"),
    numbers("queue_size", "qs", "tasks that may wait").on_demand(),
    numbers("rejected", "r", "tasks that were refused"),
    numbers("largest", "l", "tasks that ran at once, at most").on_demand(),
    numbers("completed", "c", "tasks that ended").on_demand(),
];

/// `GET /_cat/thread_pool`.
pub(super) async fn thread_pool(call: Call) -> Result<Reply> {
    let state = call.state();
    let given = call.query.get("thread_pool_patterns");
    let wanted = call.part("pools").or(given).filter(|text| !text.is_empty()).unwrap_or("*");
    let names = state.present.iter().cloned().collect();
    let mut table = Table::new(&POOLS);
    for (name, stats) in
        on_nodes(&call.node, names, &Request::NodeStats { copies: false }, PATIENCE).await
    {
        let stats = stats.unwrap_or(Value::Null);
        let Some(pools) = stats["thread_pool"].as_object() else { continue };
        let address = stats["transport_address"].as_str().unwrap_or_default();
        for (pool, numbers) in pools.iter().filter(|(pool, _)| matches_any(wanted, pool)) {
            let number = |part: &str| Cell::from(numbers[part].as_u64().map(Cell::Number));
            table.push(vec![
                name.as_str().into(),
                name.as_str().into(),
                host(address).into(),
                pool.as_str().into(),
                "fixed".into(),
                number("active"),
                number("threads"),
                number("queue"),
                number("queue_size"),
                number("rejected"),
                number("largest"),
                number("completed"),
            ]);
        }
    }
    table.answer(&call.query)
}
