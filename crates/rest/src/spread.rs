//! Questions to many shards or nodes at once.

use std::time::Duration;

use serde_json::{Value, json};
use store::ShardStats;

use super::error::cause_json;
use engine::Node;
use engine::state::{ClusterState, IndexShardRoutingTable, ShardCopy};
use engine::transport::unexpected;
use engine::transport::{Class, Failure, Request, Response, Result, ShardAction, ShardAnswer};

/// How long a node may take to answer where the request does not say.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A copy that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskedCopy {
    pub(super) index: String,
    pub(super) shard: u32,
    pub(super) primary: bool,
    /// Its node; none where the shard has no started copy of the kind that is asked.
    pub(super) node: Option<String>,
}

impl AskedCopy {
    pub(super) fn new(index: &str, shard: u32, primary: bool, node: Option<&str>) -> Self {
        Self { index: index.to_owned(), shard, primary, node: node.map(str::to_owned) }
    }
}

/// Every started copy.
pub(super) fn started(state: &ClusterState, indices: &[String]) -> Vec<AskedCopy> {
    assigned(state, indices, ShardCopy::is_started)
}

/// The copies that come up, also where others are moved to. They are sent writes, and may be searched elsewhere before
/// this node hears that they have started: a refresh is for them, too.
pub(super) fn coming_up(state: &ClusterState, indices: &[String]) -> Vec<AskedCopy> {
    assigned(state, indices, |copy| !copy.is_started())
}

/// Those of the copies on nodes, and of the targets of moves, that are `wanted`.
fn assigned(
    state: &ClusterState,
    indices: &[String],
    wanted: fn(&ShardCopy) -> bool,
) -> Vec<AskedCopy> {
    let mut found = Vec::new();
    for (index, shard, routing) in shards_of(state, indices) {
        let copies = routing.assigned().filter(|copy| wanted(copy));
        let asked =
            |copy: &ShardCopy| AskedCopy::new(index, shard, copy.primary, copy.node.as_deref());
        found.extend(copies.map(asked));
    }
    found
}

/// The primary of every shard, also of those that have none started.
pub(super) fn primaries(state: &ClusterState, indices: &[String]) -> Vec<AskedCopy> {
    shards_of(state, indices)
        .map(|(index, shard, routing)| {
            let node = routing.started_primary().and_then(|primary| primary.node.as_deref());
            AskedCopy::new(index, shard, true, node)
        })
        .collect()
}

/// The primaries of these indices that are on a node that is there, whether they are started or not.
pub(super) fn primaries_on_nodes(state: &ClusterState, indices: &[String]) -> Vec<AskedCopy> {
    let on_node = |(index, shard, routing): (&str, u32, &IndexShardRoutingTable)| {
        let node = routing.primary().node.as_ref().filter(|node| state.present.contains(*node))?;
        Some(AskedCopy::new(index, shard, true, Some(node)))
    };
    shards_of(state, indices).filter_map(on_node).collect()
}

/// Whether the primary of every shard is started, and with `replicas` every other copy that is on a node.
pub(super) fn are_started(state: &ClusterState, indices: &[String], replicas: bool) -> bool {
    shards_of(state, indices).all(|(_, _, routing)| {
        let has_primary = routing.started_primary().is_some();
        // What is only the target of a move is not counted: its source is there.
        let mut on_nodes = routing.copies.iter().filter(|copy| copy.is_assigned());
        has_primary && (!replicas || on_nodes.all(ShardCopy::is_started))
    })
}

/// Copies of every shard that there should be.
pub(super) fn copies(state: &ClusterState, indices: &[String]) -> usize {
    shards_of(state, indices).map(|(_, _, routing)| routing.copies.len()).sum()
}

/// The shards of these indices: index, number, shard.
fn shards_of<'a>(
    state: &'a ClusterState,
    indices: &'a [String],
) -> impl Iterator<Item = (&'a str, u32, &'a IndexShardRoutingTable)> {
    let known = indices.iter().filter_map(|index| state.routing.get_key_value(index));
    known.flat_map(|(index, shards)| {
        (0..).zip(shards.iter()).map(move |(number, shard)| (index.as_str(), number, shard))
    })
}

/// The answer of each copy, in the order in which they were asked.
pub(super) type Answers = Vec<(AskedCopy, Result<ShardAnswer>)>;

/// Asks every copy at once. The indices of `copies` come from [`super::names::indices`].
pub(super) async fn on_shards(
    node: &Node,
    copies: Vec<AskedCopy>,
    action: &ShardAction,
    limit: Duration,
) -> Answers {
    let work = copies.iter().map(|copy| {
        let (node, copy, action) = (node.clone(), copy.clone(), action.clone());
        async move { ask(&node, &copy, action, limit).await }
    });
    let answers = at_once(node, "asks a shard", work).await;
    copies.into_iter().zip(answers).collect()
}

/// The copies that answered with what they hold.
pub(super) fn stats_of(answers: &Answers) -> impl Iterator<Item = (&AskedCopy, &ShardStats)> {
    answers.iter().filter_map(|(copy, answer)| match answer {
        Ok(ShardAnswer::Stats(stats)) => Some((copy, &**stats)),
        _ => None,
    })
}

/// Does all of this at once. What came of each, in their order.
pub(super) async fn at_once<T: 'static>(
    node: &Node,
    name: &'static str,
    work: impl Iterator<Item = impl Future<Output = Result<T>> + 'static>,
) -> Vec<Result<T>> {
    let tasks: Vec<_> = work.map(|one| node.core().env.spawn(name, one)).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap_or_else(|_| Err(unexpected())));
    }
    results
}

/// Asks one copy; it fails where the node of that leaves, however long `limit` is.
pub(super) async fn ask(
    node: &Node,
    copy: &AskedCopy,
    action: ShardAction,
    limit: Duration,
) -> Result<ShardAnswer> {
    let core = node.core();
    let named = copy.node.as_deref().and_then(|name| Some((name, core.address_of(name)?)));
    let (name, address) = named.ok_or_else(|| {
        let why = "has no started primary; see _cluster/allocation/explain";
        Failure::unavailable(&copy.index, copy.shard, why)
    })?;
    let request = Request::Shard(copy.index.clone(), copy.shard, action);
    let answer = tokio::select! {
        biased;
        answer = core.call(&address, Class::Control, request, limit) => answer?,
        // A node that has left does not answer any more, and may not have closed its connections.
        () = core.has_left(name) => return Err(Failure::node_left(name)),
    };
    match answer {
        Response::Shard(answer) => Ok(answer),
        _ => Err(unexpected()),
    }
}

/// `_shards` of an answer: of `total` copies, those that were asked and answered.
pub(super) fn shards_json(total: usize, answers: &Answers) -> Value {
    let failures: Vec<Value> = answers
        .iter()
        .filter_map(|(copy, answer)| {
            let failure = answer.as_ref().err()?;
            Some(json!({
                "index": copy.index,
                "shard": copy.shard,
                "node": copy.node,
                "status": failure.status,
                "reason": cause_json(failure),
            }))
        })
        .collect();
    counts_json(total, answers.len() - failures.len(), failures)
}

fn counts_json(total: usize, successful: usize, failures: Vec<Value>) -> Value {
    let mut counts = json!({ "total": total, "successful": successful, "failed": failures.len() });
    if !failures.is_empty() {
        counts["failures"] = Value::Array(failures);
    }
    counts
}

/// Asks the nodes of these names at once, each for JSON. In the order of the names.
pub(super) async fn on_nodes(
    node: &Node,
    names: Vec<String>,
    request: &Request,
    limit: Duration,
) -> Vec<(String, Result<Value>)> {
    let json = |answer| match answer {
        Response::Json(text) => serde_json::from_str(&text).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    };
    let answers = ask_nodes(node, names, request, limit).await.into_iter();
    answers.map(|(name, answer)| (name, answer.and_then(json))).collect()
}

/// Asks the nodes of these names at once. In the order of the names.
pub(super) async fn ask_nodes(
    node: &Node,
    names: Vec<String>,
    request: &Request,
    limit: Duration,
) -> Vec<(String, Result<Response>)> {
    let work = names.iter().map(|name| {
        let (node, name, request) = (node.clone(), name.clone(), request.clone());
        async move {
            let address = node.core().address_of(&name).ok_or_else(|| Failure::node_left(&name))?;
            Ok(node.core().call(&address, Class::Control, request, limit).await?)
        }
    });
    let answers = at_once(node, "asks a node", work).await;
    names.into_iter().zip(answers).collect()
}

/// `_nodes` of an answer: of the nodes that were asked, those that answered.
pub(super) fn nodes_json<T>(answers: &[(String, Result<T>)]) -> Value {
    let failures: Vec<Value> = answers
        .iter()
        .filter_map(|(name, answer)| {
            let failure = answer.as_ref().err()?;
            Some(json!({
                "type": "failed_node_exception",
                "reason": format!("Failed node [{name}]"),
                "node_id": name,
                "caused_by": cause_json(failure),
            }))
        })
        .collect();
    counts_json(answers.len(), answers.len() - failures.len(), failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_failed() {
        let copy = |shard| AskedCopy::new("a", shard, true, None);
        let failure = Failure::unavailable("a", 1, "has no started primary");
        let answers = vec![(copy(0), Ok(ShardAnswer::Done)), (copy(1), Err(failure))];
        let shards = shards_json(4, &answers);
        assert_eq!((&shards["total"], &shards["successful"]), (&json!(4), &json!(1)));
        assert_eq!(shards["failures"][0]["shard"], 1);
        assert_eq!(shards["failures"][0]["reason"]["type"], "unavailable_shards_exception");
        assert_eq!(shards_json(1, &vec![(copy(0), Ok(ShardAnswer::Done))]).get("failures"), None);
        let nodes =
            nodes_json(&[("a".to_owned(), Ok(())), ("b".to_owned(), Err(Failure::node_left("b")))]);
        assert_eq!((&nodes["total"], &nodes["successful"]), (&json!(2), &json!(1)));
        assert_eq!(nodes["failures"][0]["node_id"], "b");
    }
}
