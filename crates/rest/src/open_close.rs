//! `_close` and `_open`: the documents of a closed index are neither read nor written, and its copies are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use world::Time;

use super::active::Active;
use super::answer::Reply;
use super::call::{Call, PATIENCE};
use super::error::cause_json;
use super::names::{Closed, indices_with, with_uuids};
use super::spread::{Answers, on_shards, primaries_on_nodes};
use engine::state::{ClusterState, Event};
use engine::transport::{Result, ShardAction};

/// A primary itself waits for its writes, half as long at most.
const WRITES_END_WITHIN: Duration = Duration::from_secs(60);

/// `POST /{index}/_close`. It is acknowledged once the primaries have ended the writes that they had begun: no other is
/// done until the index is opened.
pub(super) async fn close(call: Call) -> Result<Reply> {
    let active = Active::read(&call.query, 0)?;
    call.refuse_patterns()?;
    let give_up = give_up(&call)?;
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Named)?;
    if !set_closed(&call, &state, &names, true).await? {
        return Ok(closed_json(false, false, Map::new()));
    }
    // A shard without a primary has no writes that run, and its next primary knows that the index is closed. One that
    // is not started may have been before, and not know of the close: it is asked, too.
    let places = primaries_on_nodes(&call.state(), &names);
    let answers = on_shards(&call.node, places, &ShardAction::EndWrites, WRITES_END_WITHIN).await;
    let indices = results(&names, answers);
    let done = indices.values().all(|result| result["closed"] == true);
    // As in the field, which waits for nothing where there is none.
    let enough = done && !names.is_empty() && are_enough(&call, &names, active, give_up).await;
    Ok(closed_json(done, enough, indices))
}

/// `POST /{index}/_open`.
pub(super) async fn open(call: Call) -> Result<Reply> {
    let active = Active::read(&call.query, 1)?;
    call.refuse_patterns()?;
    let give_up = give_up(&call)?;
    let state = call.state();
    let names = indices_with(&state, call.indices(), &call.query, Closed::Alone)?;
    let done = set_closed(&call, &state, &names, false).await?;
    let enough = done && are_enough(&call, &names, active, give_up).await;
    Ok(json!({ "acknowledged": done, "shards_acknowledged": enough }).into())
}

fn give_up(call: &Call) -> Result<Time> {
    Ok(call.node.core().env.now() + call.query.duration("timeout", PATIENCE)?)
}

async fn set_closed(
    call: &Call,
    state: &ClusterState,
    names: &[String],
    closed: bool,
) -> Result<bool> {
    let events = with_uuids(state, names).map(|index| Event::SetClosed { index, closed });
    call.submit(events.collect()).await
}

/// Whether each index has enough copies by then.
async fn are_enough(call: &Call, names: &[String], active: Active, give_up: Time) -> bool {
    for name in names {
        let left = give_up - call.node.core().env.now();
        if !active.wait(&call.node, name, left).await {
            return false;
        }
    }
    true
}

fn closed_json(done: bool, enough: bool, indices: Map<String, Value>) -> Reply {
    json!({ "acknowledged": done, "shards_acknowledged": enough, "indices": indices }).into()
}

/// What came of each index: a primary that does not say that its writes have ended may have some that run.
fn results(names: &[String], answers: Answers) -> Map<String, Value> {
    let mut failed: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (place, answer) in answers {
        let Err(failure) = answer else { continue };
        let why = json!({
            "node": place.node,
            "shard": place.shard,
            "index": place.index,
            "status": failure.status,
            "reason": cause_json(&failure),
        });
        let of_index = failed.entry(place.index).or_default();
        of_index.insert(place.shard.to_string(), json!({ "failures": [why] }));
    }
    let result = |name: &String| match failed.remove(name) {
        None => (name.clone(), json!({ "closed": true })),
        Some(shards) => (name.clone(), json!({ "closed": false, "failedShards": shards })),
    };
    names.iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::super::spread::AskedCopy;
    use super::*;
    use engine::transport::{Failure, ShardAnswer};

    #[test]
    fn an_index_is_closed_where_every_primary_says_so() {
        let of = |index, shard| AskedCopy::new(index, shard, true, Some("n"));
        let failure = Failure::unavailable("b", 1, "has writes that do not end; close it again");
        let answers = vec![
            (of("a", 0), Ok(ShardAnswer::Done)),
            (of("b", 0), Ok(ShardAnswer::Done)),
            (of("b", 1), Err(failure.clone())),
        ];
        let names = ["a", "b", "c"].map(str::to_owned);
        let why = json!({
            "node": "n", "shard": 1, "index": "b", "status": 503, "reason": cause_json(&failure),
        });
        let expected = json!({
            "a": { "closed": true },
            "b": { "closed": false, "failedShards": { "1": { "failures": [why] } } },
            // It has no primary.
            "c": { "closed": true },
        });
        assert_eq!(Value::Object(results(&names, answers)), expected);
    }
}
