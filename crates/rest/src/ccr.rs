//! `_ccr`: followers made, paused, resumed, let go, and shown.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::active::Active;
use super::answer::Reply;
use super::call::{Call, PATIENCE, object, refuse_unknown_keys};
use super::error::invalid;
use super::names::{called, is_pattern, no_such_index};
use super::recovery;
use super::spread::{on_shards, primaries, shards_json};
use engine::Node;
use engine::following::{self, FollowRequest};
use engine::settings::{FollowParameters, SettingScope, Update, parse_update};
use engine::state::{ClusterState, Event, FollowChange, FollowOrigin, IndexMeta};
use engine::transport::{
    Failure, FollowStats, RecoveryState, Result, ShardAction, ShardAnswer, unexpected,
};

/// Keys of the body of a follow, beside the parameters.
const KEYS: [&str; 3] = ["leader_index", "remote_cluster", "settings"];

/// The body of a follow.
#[derive(Debug, PartialEq)]
struct Body {
    remote_cluster: String,
    leader_index: String,
    settings: Update,
    parameters: FollowParameters,
}

impl Body {
    fn read(json: Value) -> Result<Body> {
        let (object, follower) = read_follower(json, "follow", "leader_index", &KEYS)?;
        let remote_cluster = text(&object, "remote_cluster")?;
        let leader_index = text(&object, "leader_index")?;
        let NewFollower { settings, parameters } = follower;
        Ok(Body { remote_cluster, leader_index, settings, parameters })
    }
}

/// What a follow and an auto-follow pattern say of followers.
pub(super) struct NewFollower {
    pub(super) settings: Update,
    pub(super) parameters: FollowParameters,
}

/// Reads it; the rest of the body comes with it.
pub(super) fn read_follower(
    json: Value,
    what: &str,
    needed: &str,
    known: &[&'static str],
) -> Result<(Map<String, Value>, NewFollower)> {
    let mut object = object(json, &format!(": {{\"remote_cluster\", \"{needed}\"}}"))?;
    let parameters = FollowParameters::take(&mut object)?;
    refuse_unknown_keys(&object, &with_parameters(known), &format!("for {what}"))?;
    let settings = settings(&object)?;
    Ok((object, NewFollower { settings, parameters }))
}

/// The settings that a follower gets beside its leader's.
pub(super) fn settings(object: &Map<String, Value>) -> Result<Update> {
    let given = object.get("settings").map(|given| parse_update(SettingScope::Index, given));
    Ok(given.transpose()?.unwrap_or_default())
}

/// These keys of a body, and the parameters of following.
fn with_parameters(keys: &[&'static str]) -> Vec<&'static str> {
    keys.iter().copied().chain(FollowParameters::names()).collect()
}

pub(super) fn text(object: &Map<String, Value>, key: &str) -> Result<String> {
    let value = object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    value.map(str::to_owned).ok_or_else(|| invalid(&format!("{key} is missing")))
}

/// `PUT /{index}/_ccr/follow`.
pub(super) async fn follow(call: Call) -> Result<Reply> {
    let active = Active::read(&call.query, 0)?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let Body { remote_cluster, leader_index, settings, parameters } =
        Body::read(call.needed_json()?)?;
    let follower = call.index().to_owned();
    let request =
        FollowRequest { follower, alias: remote_cluster, leader_index, settings, parameters };
    let env = &call.node.core().env;
    let give_up = env.now() + limit;
    let done = follow_within(&call, request).await?;
    let left = give_up - env.now();
    // Without waiting the field answers `false`, whatever the shards are.
    let waits = done && active != Active::Count(0);
    let acked = waits && active.wait_everywhere(&call.node, call.index(), left).await;
    Ok(json!({
        "follow_index_created": done,
        "follow_index_shards_acked": acked,
        "index_following_started": acked,
    })
    .into())
}

/// Makes a follower; whether that was done within the request's limits.
async fn follow_within(call: &Call, request: FollowRequest) -> Result<bool> {
    let service = call.node.following().clone();
    call.within_limits(
        "makes a follower",
        async move { following::follow(&service, request).await },
    )
    .await
}

/// `POST /{index}/_ccr/pause_follow`.
pub(super) async fn pause(call: Call) -> Result<Reply> {
    change(&call, &call.state(), FollowChange::Pause).await
}

/// `POST /{index}/_ccr/resume_follow`.
pub(super) async fn resume(call: Call) -> Result<Reply> {
    let mut object = object(call.json()?, " of parameters, or none")?;
    let parameters = FollowParameters::take(&mut object)?;
    refuse_unknown_keys(&object, &with_parameters(&[]), "for resume_follow")?;
    change(&call, &call.state(), FollowChange::Resume { parameters }).await
}

/// `POST /{index}/_ccr/unfollow`. The leader's leases go, too; where it does not answer, or a shard here, they expire,
/// and the answer says so, as in the field.
pub(super) async fn unfollow(call: Call) -> Result<Reply> {
    let state = call.state();
    let index = call.index();
    let origin = state.indices.get(index).and_then(|meta| meta.leader.clone());
    let lease = engine::replication::lease_of(&state, index);
    let (histories, all_known) = histories(&call.node, &state, index).await;
    let reply = change(&call, &state, FollowChange::Unfollow).await?;
    if let (Some(origin), Some(lease)) = (origin, lease) {
        let service = call.node.following();
        let dropped = following::drop_leases(service, &origin, &lease, histories).await;
        dropped.and(all_known).map_err(|failure| {
            let reason = format!(
                "[{index}] follows no more, but its retention leases on [{}] could not be removed: {}; they \
                 expire, or POST {}/_ccr/forget_follower there",
                origin.remote_cluster, failure.reason, origin.leader_index
            );
            Failure { reason, ..failure }
        })?;
    }
    Ok(reply)
}

/// The histories of an index's shards, by which the leader knows them. Fails where one does not answer.
async fn histories(
    node: &Node,
    state: &ClusterState,
    index: &str,
) -> (Vec<(u32, String)>, Result<()>) {
    let places = primaries(state, &[index.to_owned()]);
    let (mut known, mut all_known) = (Vec::new(), Ok(()));
    for (place, answer) in on_shards(node, places, &ShardAction::History, PATIENCE).await {
        match answer {
            Ok(ShardAnswer::History(uuid)) => known.push((place.shard, uuid)),
            Ok(_) => all_known = Err(unexpected()),
            Err(failure) => all_known = Err(failure),
        }
    }
    (known, all_known)
}

/// Changes how an index follows: the one that has the path's name in this state.
pub(super) async fn change(
    call: &Call,
    state: &ClusterState,
    change: FollowChange,
) -> Result<Reply> {
    let index = state.index(call.index()).ok_or_else(|| no_such_index(state, call.index()))?;
    call.acknowledged(vec![Event::SetFollowing { index, change }]).await
}

/// `POST /{leader}/_ccr/forget_follower`: on a leader whose follower is gone for good.
pub(super) async fn forget_follower(call: Call) -> Result<Reply> {
    const KEYS: [&str; 4] =
        ["follower_cluster", "follower_index", "follower_index_uuid", "leader_remote_cluster"];
    let object = object(call.needed_json()?, &format!(": {}", KEYS.join(", ")))?;
    refuse_unknown_keys(&object, &KEYS, "for forget_follower")?;
    let [cluster, index, uuid, alias] = KEYS;
    let state = call.state();
    let leader = call.index();
    let meta = state.indices.get(leader).ok_or_else(|| no_such_index(&state, leader))?;
    let origin = FollowOrigin {
        remote_cluster: text(&object, alias)?,
        leader_index: leader.to_owned(),
        leader_uuid: meta.uuid.clone(),
        following: Default::default(),
    };
    let follower = (text(&object, index)?, text(&object, uuid)?);
    let follower = (follower.0.as_str(), follower.1.as_str());
    let id = engine::replication::lease_id(&text(&object, cluster)?, follower, &origin);
    let places = primaries(&state, &[leader.to_owned()]);
    let total = places.len();
    let answers = on_shards(&call.node, places, &ShardAction::RemoveLease { id }, PATIENCE).await;
    Ok(json!({ "_shards": shards_json(total, &answers) }).into())
}

/// The followers that an expression names; 404 where a name without `*` is no follower.
fn followers(call: &Call) -> Result<Vec<(String, FollowOrigin)>> {
    let state = call.state();
    let wanted = call.indices().unwrap_or("_all");
    let found: Vec<(String, FollowOrigin)> = called(&state, wanted)
        .filter_map(|name| Some((name.clone(), state.indices.get(name)?.leader.clone()?)))
        .collect();
    if found.is_empty() && !is_pattern(wanted) {
        let reason = format!("No shard follow tasks for follower indices [{wanted}]");
        return Err(Failure::new(404, "resource_not_found_exception", reason));
    }
    Ok(found)
}

/// `GET /{index}/_ccr/info`.
pub(super) async fn info(call: Call) -> Result<Reply> {
    let shown: Vec<Value> = followers(&call)?
        .iter()
        .map(|(index, leader)| {
            let mut object = json!({
                "follower_index": index,
                "remote_cluster": leader.remote_cluster,
                "leader_index": leader.leader_index,
                "status": if leader.following.paused { "paused" } else { "active" },
            });
            if !leader.following.paused {
                object["parameters"] = leader.following.parameters.to_json();
            }
            object
        })
        .collect();
    Ok(json!({ "follower_indices": shown }).into())
}

/// `type` of the fatal exception of a shard that cannot begin to follow: the field's, of a copy whose recovery failed.
pub(super) const CANNOT_BEGIN: &str = "recovery_failed_exception";

/// The shards of a follower whose primaries were given up, each with the reason. All else of their statistics is empty:
/// nothing follows there.
fn cannot_begin(state: &ClusterState, index: &str) -> Vec<(u32, FollowStats)> {
    let shards = state.routing.get(index).into_iter().flat_map(|shards| shards.iter());
    let given_up = (0..).zip(shards).filter_map(|(number, shard)| {
        let failure = Failure::new(500, CANNOT_BEGIN, shard.primary().given_up()?);
        Some((number, FollowStats { fatal_exception: Some(failure), ..FollowStats::default() }))
    });
    given_up.collect()
}

/// The shards of these followers whose primaries could not begin to recover so far, by index. Their nodes go on trying,
/// so what failed stands where the field shows reads that are tried again.
async fn not_begun(
    call: &Call,
    state: &ClusterState,
    followers: &[(String, FollowOrigin)],
    limit: Duration,
) -> Vec<(String, u32, FollowStats)> {
    let shards = followers.iter().filter_map(|(index, _)| state.routing.get(index));
    let primaries = shards.flat_map(|shards| shards.iter()).map(|shard| shard.primary());
    let recovering = primaries.filter(|primary| !primary.is_started());
    let nodes: BTreeSet<String> = recovering.filter_map(|primary| primary.node.clone()).collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let is_asked =
        |one: &RecoveryState| one.primary && followers.iter().any(|(index, _)| *index == one.index);
    let stats = |one: RecoveryState| {
        let retries = u32::try_from(one.retries).unwrap_or(u32::MAX);
        let read_exceptions = vec![(0, retries, one.failure.unwrap_or_default())];
        (one.index, one.shard, FollowStats { read_exceptions, ..FollowStats::default() })
    };
    recovery::not_begun(call, nodes, limit).await.into_iter().filter(is_asked).map(stats).collect()
}

/// How long all that a request asks may take together.
pub(super) fn patience(call: &Call) -> Result<Duration> {
    call.query.duration("timeout", PATIENCE)
}

/// A follower, and what its shards say that answer. A shard answers once its primary is started; one whose primary was
/// given up stands with the others, and says why.
pub(super) struct Followed {
    pub(super) index: String,
    pub(super) leader: FollowOrigin,
    pub(super) shards: Vec<(u32, FollowStats)>,
}

/// The followers that an expression names, with their statistics, of the shards that answer within `limit`.
pub(super) async fn followed(call: &Call, limit: Duration) -> Result<Vec<Followed>> {
    let state = call.state();
    let followers = followers(call)?;
    let indices: Vec<String> = followers.iter().map(|(index, _)| index.clone()).collect();
    let mut places = primaries(&state, &indices);
    places.retain(|place| place.node.is_some());
    let answers = on_shards(&call.node, places, &ShardAction::Following, limit).await;
    let mut answers = answers.into_iter().peekable();
    let with_stats = |(index, leader): (String, FollowOrigin)| {
        let mut shards = Vec::new();
        while let Some((place, answer)) = answers.next_if(|(place, _)| place.index == index) {
            // A shard that has not begun to follow, or does not answer, has no statistics.
            let Ok(ShardAnswer::Following(stats)) = answer else { continue };
            shards.push((place.shard, stats.map(|stats| *stats).unwrap_or_default()));
        }
        shards.extend(cannot_begin(&state, &index));
        shards.sort_by_key(|(shard, _)| *shard);
        Followed { index, leader, shards }
    };
    Ok(followers.into_iter().map(with_stats).collect())
}

/// `GET /_ccr/stats`, `GET /{index}/_ccr/stats`.
pub(super) async fn stats(call: Call) -> Result<Reply> {
    let state = call.state();
    let env = &call.node.core().env;
    let give_up = env.now() + patience(&call)?;
    // First: without the manager there is no answer, without another node there is one.
    let auto_follow = match call.indices() {
        Some(_) => None,
        None => {
            let limit = give_up - env.now();
            let limit = call.manager_limit.map_or(limit, |given| given.min(limit));
            Some(call.node.auto_follow_stats(limit).await?)
        }
    };
    let mut shown = Vec::new();
    let (limit, asked) = (give_up - env.now(), followers(&call)?);
    // At once: a node that is silent uses up the limit.
    let (all, mut late) =
        tokio::join!(followed(&call, limit), not_begun(&call, &state, &asked, limit));
    for Followed { index, leader, mut shards } in all? {
        let is_of = |(of, shard, _): &mut (String, u32, FollowStats)| {
            *of == index && shards.iter().all(|(begun, _)| *begun != *shard)
        };
        let missing: Vec<_> = late.extract_if(.., is_of).collect();
        shards.extend(missing.into_iter().map(|(_, shard, stats)| (shard, stats)));
        shards.sort_by_key(|(shard, _)| *shard);
        let Some(meta) = state.indices.get(&index) else { continue };
        let lag: u64 = shards.iter().map(|(_, stats)| stats.lag()).sum();
        let shards: Vec<Value> = shards
            .iter()
            .map(|(shard, stats)| shard_json(&index, &leader, meta, *shard, stats))
            .collect();
        shown.push(json!({ "index": index, "total_global_checkpoint_lag": lag, "shards": shards }));
    }
    Ok(match auto_follow {
        None => json!({ "indices": shown }),
        Some(auto_follow) => {
            json!({ "auto_follow_stats": auto_follow, "follow_stats": { "indices": shown } })
        }
    }
    .into())
}

fn shard_json(
    index: &str,
    leader: &FollowOrigin,
    meta: &IndexMeta,
    shard: u32,
    stats: &FollowStats,
) -> Value {
    let mut object = stats.to_json();
    object["remote_cluster"] = json!(leader.remote_cluster);
    object["leader_index"] = json!(leader.leader_index);
    object["follower_index"] = json!(index);
    object["shard_id"] = json!(shard);
    if stats.follower_mapping_version == 0 {
        object["follower_mapping_version"] = json!(meta.mapping_version);
        object["follower_settings_version"] = json!(meta.settings_version);
        object["follower_aliases_version"] = json!(meta.aliases_version);
    }
    if let Some(why) = leader.following.fell_back.get(&shard) {
        object["narrows"]["recovered_from_remote_again"] = json!(why);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whom_to_follow_and_how() {
        let body = Body::read(json!({
            "remote_cluster": "eu", "leader_index": "l", "settings": {"number_of_replicas": 0},
            "max_read_request_size": "1mb",
        }))
        .unwrap();
        let settings =
            Update::from([("index.number_of_replicas".to_owned(), Some("0".to_owned()))]);
        assert_eq!((body.remote_cluster.as_str(), body.leader_index.as_str()), ("eu", "l"));
        assert_eq!(body.settings, settings);
        assert_eq!(body.parameters.limits().max_read_request_size, 1 << 20);
    }

    #[test]
    fn refuses_what_would_have_no_effect() {
        let said = |json: Value| Body::read(json).unwrap_err().reason;
        assert_eq!(
            said(json!({"leader_indx": "l"})),
            "unknown key [leader_indx] for follow; did you mean \"leader_index\"?"
        );
        assert!(said(json!({"max_read_request_sise": 1})).contains("\"max_read_request_size\""));
        assert_eq!(
            said(json!({"leader_index": "l"})),
            "Validation Failed: 1: remote_cluster is missing;"
        );
        assert!(said(json!([])).contains("JSON object"));
    }
}
