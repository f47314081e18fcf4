//! What is done to every copy: `_refresh`, `_flush`, `_forcemerge`, `_cache/clear`; and `_count`, also as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use query::parse_count;
use serde_json::json;

use super::answer::{Body, Reply};
use super::call::Call;
use super::error::{bad_request, invalid, not_supported};
use super::names::indices;
use super::search::count_by;
use super::spread::{Answers, AskedCopy, coming_up, copies, on_shards, shards_json, started};
use super::table::{Cell, Column, Table, numbers, words};
use super::time_text::clock;
use super::uri_query::uri_query;
use engine::transport::{Failure, RefreshedCopy, Result, ShardAction, ShardAnswer};

const SHORT: Duration = Duration::from_secs(120);
/// A merge reads and writes all that a shard has.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// Parameters of `_count`. Some are known so that they are refused in words.
pub(super) const COUNT: &[&str] = &["min_score", "preference", "routing", "terminate_after"];

/// Parameters of `_cache/clear`. There is a cache of requests, and none of the others.
pub(super) const CLEARED: &[&str] = &["fielddata", "fields", "file", "index", "query", "request"];

/// `POST /{index}/_refresh`.
pub(super) async fn refresh(call: Call) -> Result<Reply> {
    everywhere(&call, &[(ShardAction::Refresh, SHORT)]).await
}

/// `POST /{index}/_flush`.
pub(super) async fn flush(call: Call) -> Result<Reply> {
    // A flush always waits for one that runs, and does nothing where nothing is new.
    let force = call.query.flag("force", false)?;
    if !call.query.flag("wait_if_ongoing", true)? && force {
        return Err(invalid("wait_if_ongoing must be true for a force flush"));
    }
    everywhere(&call, &[(ShardAction::Flush, SHORT)]).await
}

/// `POST /{index}/_forcemerge`.
pub(super) async fn force_merge(call: Call) -> Result<Reply> {
    let max_num_segments = call.query.number::<i64>("max_num_segments")?;
    let max_num_segments = match max_num_segments {
        // As many as there are: nothing has to be merged.
        None | Some(-1) => usize::MAX,
        Some(count) => usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
            bad_request(format!("max_num_segments [{count}] must be at least 1, or -1"))
        })?,
    };
    if call.query.flag("only_expunge_deletes", false)? {
        let instead = "send max_num_segments=1 to drop deleted documents";
        return Err(not_supported("only_expunge_deletes", instead));
    }
    let mut actions = vec![(ShardAction::ForceMerge { max_num_segments }, LONG)];
    if call.query.flag("flush", true)? {
        actions.push((ShardAction::Flush, SHORT));
    }
    let (which, most) = (call.indices().unwrap_or_default(), call.query.get("max_num_segments"));
    let most = most.unwrap_or("-1");
    call.task.describe(format!("Force-merge indices [{which}], maxSegments[{most}]"));
    // Copies go on to merge where the client goes away, and until they have it is a task.
    let (node, place) = (call.node.clone(), call.task.go_on_alone(0)?);
    let work = async move {
        let _place = place;
        everywhere(&call, &actions).await
    };
    node.core().run_to_end("merges", work).await
}

/// `POST /_cache/clear`, `POST /{index}/_cache/clear`: the caches that are named, or all.
pub(super) async fn clear_caches(mut call: Call) -> Result<Reply> {
    let flag = |cache| call.query.flag(cache, false);
    let (request, query, fielddata) = (flag("request")?, flag("query")?, flag("fielddata")?);
    // What the field keeps in files is another thing.
    flag("file")?;
    let is_named = request || query || fielddata || call.query.get("fields").is_some();
    // As in the field the path stands above it.
    if let Some(indices) = call.query.get("index").map(str::to_owned) {
        call.parts.entry("index".to_owned()).or_insert(indices);
    }
    let action = ShardAction::ClearCaches { requests: request || !is_named, others: !is_named };
    everywhere(&call, &[(action, SHORT)]).await
}

/// Has every started copy do these actions, one after another. A copy at which one fails is left out of the next.
async fn everywhere(call: &Call, actions: &[(ShardAction, Duration)]) -> Result<Reply> {
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    let mut places = started(&state, &names);
    let mut answers = Vec::new();
    for (action, limit) in actions {
        let counted = places.len();
        if *action == ShardAction::Refresh {
            places.extend(coming_up(&state, &names));
        }
        let mut done = on_shards(&call.node, std::mem::take(&mut places), action, *limit).await;
        // A copy that comes up may not be open yet.
        done.truncate(counted);
        let done = as_primaries_count(done);
        let (good, bad) = done.into_iter().partition::<Vec<_>, _>(|(_, answer)| answer.is_ok());
        places = good.into_iter().map(|(place, _)| place).collect();
        answers.extend(bad);
    }
    answers.extend(places.into_iter().map(|place| (place, Ok(ShardAnswer::Done))));
    let total = copies(&state, &names);
    Ok(json!({ "_shards": shards_json(total, &answers) }).into())
}

/// A copy that was refreshed counts where its primary says that it has what is acknowledged, as in the field, where a
/// refresh goes through the primary: the node that was asked may have an older state. Where two copies take themselves
/// for the primary, both have to say so.
fn as_primaries_count(answers: Answers) -> Answers {
    let mut counted: BTreeMap<(String, u32), Vec<String>> = BTreeMap::new();
    for (copy, answer) in &answers {
        if let Ok(ShardAnswer::Refreshed(RefreshedCopy { counted: Some(ids), .. })) = answer {
            let known = counted.entry((copy.index.clone(), copy.shard));
            known
                .and_modify(|known| known.retain(|id| ids.contains(id)))
                .or_insert_with(|| ids.clone());
        }
    }
    let judged = |(copy, answer): (AskedCopy, Result<ShardAnswer>)| match answer {
        Ok(ShardAnswer::Refreshed(RefreshedCopy { allocation_id, .. })) => {
            let Some(ids) = counted.get(&(copy.index.clone(), copy.shard)) else {
                let why = "was refreshed, and its primary did not say that it counts; try again";
                let failure = Failure::unavailable(&copy.index, copy.shard, why);
                return Some((copy, Err(failure)));
            };
            ids.contains(&allocation_id).then_some((copy, Ok(ShardAnswer::Done)))
        }
        answer => Some((copy, answer)),
    };
    answers.into_iter().filter_map(judged).collect()
}

/// `GET /{index}/_count`: a search that wants no hits.
pub(super) async fn count(call: Call) -> Result<Reply> {
    counted(&call).await
}

static COUNTED: [Column; 3] = [
    numbers("epoch", "t,time", "seconds since 1970"),
    words("timestamp", "ts,hms,hhmmss", "time of day, UTC"),
    numbers("count", "dc,docs.count,docsCount", "documents"),
];

/// `GET /_cat/count`.
pub(super) async fn cat_count(call: Call) -> Result<Reply> {
    let count = match counted(&call).await? {
        Reply { body: Body::Json(answer), status: 200, .. } => answer["count"].as_u64(),
        failed => return Ok(failed),
    };
    let now_ms = call.node.core().env.epoch_ms();
    let mut table = Table::new(&COUNTED);
    let count = count.map(Cell::Number).into();
    table.push(vec![Cell::Number(now_ms / 1000), clock(now_ms).into(), count]);
    table.answer(&call.query)
}

async fn counted(call: &Call) -> Result<Reply> {
    if let Some(name) =
        ["min_score", "terminate_after"].iter().find(|of| call.query.get(of).is_some())
    {
        let instead = format!("send _search with [{name}] and [size] 0");
        return Err(not_supported(&format!("counting with [{name}]"), &instead));
    }
    count_by(call, query_alone(call)?).await
}

/// The query of a request that has nothing else in its body.
pub(super) fn query_alone(call: &Call) -> Result<query::Query> {
    match uri_query(&call.query)? {
        None => Ok(parse_count(&call.body)?),
        Some(asked) if call.body.is_empty() => Ok(asked),
        Some(_) => Err(bad_request("[q] and a body are two queries; send one of them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_its_primary_does_not_count_was_not_refreshed() {
        let refreshed = |shard: u32, id: &str, counted: Option<&[&str]>| {
            let copy = AskedCopy::new("a", shard, counted.is_some(), Some(id));
            let counted = counted.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect());
            (
                copy,
                Ok(ShardAnswer::Refreshed(RefreshedCopy { allocation_id: id.to_owned(), counted })),
            )
        };
        let (both, alone) = (Some(&["p", "r"][..]), Some(&["p"][..]));
        let good = |answers: Answers| -> Vec<bool> {
            as_primaries_count(answers).iter().map(|(_, answer)| answer.is_ok()).collect()
        };
        let old_and_new = || vec![refreshed(0, "p", both), refreshed(0, "r", Some(&["r"]))];
        assert_eq!(good(vec![refreshed(0, "r", None), refreshed(0, "p", both)]), [true, true]);
        // The node that was asked takes a copy for a started one that was given up.
        assert_eq!(good(vec![refreshed(0, "r", None), refreshed(0, "p", alone)]), [true]);
        assert_eq!(good(old_and_new()), [true]);
        assert_eq!(good(old_and_new().into_iter().rev().collect()), [true]);
        // Of another shard, and of one whose primary is silent.
        assert_eq!(good(vec![refreshed(1, "r", None), refreshed(0, "p", both)]), [false, true]);
        let flushed = (refreshed(0, "r", None).0, Ok(ShardAnswer::Done));
        assert_eq!(good(vec![flushed]), [true]);
    }
}
