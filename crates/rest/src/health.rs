//! `_cluster/health`, and waiting for it.

use std::time::Duration;

use serde_json::{Value, json};

use super::active::Active;
use super::answer::{Reply, object_of};
use super::call::{Call, PATIENCE};
use super::cluster::by_number;
use super::error::bad_request;
use super::names::{Closed, indices_with};
use super::parameters::Query;
use engine::state::{self, ClusterState, Health, IndexShardRoutingTable, Status};
use engine::transport::Result;

/// Parameters of its own.
pub(super) const KNOWN: &[&str] = &[
    "level wait_for_active_shards wait_for_events wait_for_no_initializing_shards wait_for_no_relocating_shards \
     wait_for_nodes wait_for_status",
];

/// What `wait_for_events` may say: how urgent the events are that are waited for.
const PRIORITIES: [&str; 6] = ["immediate", "urgent", "high", "normal", "low", "languid"];

/// How long the manager is waited for at least.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// Asks the manager for what this node does not know, unless the request says `local`; waits no longer than `limit`, or
/// than the request may wait for the manager. In the field other nodes pass the question on to the master.
pub(super) async fn ask_manager(call: &Call, limit: Duration) -> Result<()> {
    let limit = call.manager_limit.map_or(limit, |given| given.min(limit));
    match call.query.flag("local", false)? {
        true => Ok(()),
        false => call.node.catch_up(limit).await,
    }
}

/// `GET /_cluster/health`: 200, or 408 if what is waited for or the manager's answer did not come in time; 503 where
/// the manager is lost, as what this node knows may no longer hold.
pub(super) async fn health(call: Call) -> Result<Reply> {
    let limit = call.query.duration("timeout", PATIENCE)?;
    let level = call.query.get("level").unwrap_or("cluster");
    if !["cluster", "indices", "shards"].contains(&level) {
        let reason = format!("unknown level [{level}]; write cluster, indices or shards");
        return Err(bad_request(reason));
    }
    let wanted = Wanted::read(&call.query)?;
    let scope = Scope::read(call.indices(), &call.query);
    let look = |state: &ClusterState| -> Result<Seen> {
        let mut seen = scope.look(state)?;
        if call.node.core().state_hides_loss() {
            seen.health.status = Status::Red;
        }
        Ok(seen)
    };
    // What is wrong with the request is said at once.
    look(&call.state())?;
    let env = &call.node.core().env;
    let give_up = env.now() + limit;
    let lost = || call.node.manager_missing();
    // The limit is that of the conditions: the question itself needs a moment even where they are not waited for.
    let asked = ask_manager(&call, limit.max(LEAST_PATIENCE)).await;
    let is_silent = asked.as_ref().is_err_and(|failure| failure.status == 503);
    let is_late = is_silent && lost().is_none() && env.now() >= give_up;
    if !is_late {
        asked?;
    }
    let left = give_up - env.now();
    let met = |state: &ClusterState| look(state).is_ok_and(|seen| wanted.met(&seen));
    let done = |state: &ClusterState| lost().is_some() || met(state);
    let mut known = KNOWN.iter().flat_map(|names| names.split(' '));
    let waits = known.any(|name| name.starts_with("wait_for_") && call.query.get(name).is_some());
    let met = match waits {
        _ if is_late => false,
        true => call.node.core().wait_for_published(left, done).await,
        false => call.node.core().wait_for_state(left, done).await,
    };
    if let Some(failure) = lost() {
        return Err(failure);
    }
    let state = call.state();
    let Seen { names, health, .. } = look(&state)?;
    let mut answer = health_json(&health);
    let now_ms = env.epoch_ms();
    answer["delayed_unassigned_shards"] = json!(state::delayed_copies(&state, now_ms));
    answer["timed_out"] = json!(!met);
    // The field has no place for them; who reads its own fields alone passes over this one.
    let dangling = state.dangling().len();
    if dangling > 0 {
        answer["dangling_indices"] = json!(dangling);
    }
    if level != "cluster" {
        let one =
            |name: &String| Some((name.clone(), index_json(&state, name, level == "shards")?));
        answer["indices"] = object_of(names.iter().filter_map(one));
    }
    Ok(Reply::with(if met { 200 } else { 408 }, answer))
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    status: Option<Status>,
    nodes: Option<Nodes>,
    active: Option<Active>,
    none_initializing: bool,
    none_relocating: bool,
}

impl Wanted {
    fn read(query: &Query) -> Result<Wanted> {
        let status = match query.get("wait_for_status").map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("green") => Some(Status::Green),
            Some("yellow") => Some(Status::Yellow),
            Some("red") => Some(Status::Red),
            Some(other) => {
                let reason =
                    format!("unknown wait_for_status [{other}]; write green, yellow or red");
                return Err(bad_request(reason));
            }
        };
        let active = query.get("wait_for_active_shards");
        // The manager handles its events one after another, whatever their priority: who waits for any waits for all.
        let events = query.get("wait_for_events").map(str::to_ascii_lowercase);
        if let Some(other) = events.filter(|name| !PRIORITIES.contains(&name.as_str())) {
            let known = PRIORITIES.join(", ");
            let reason = format!("unknown wait_for_events [{other}]; there are {known}");
            return Err(bad_request(reason));
        }
        Ok(Wanted {
            status,
            nodes: query.get("wait_for_nodes").map(Nodes::read).transpose()?,
            active: active.map(|_| Active::read(query, 0)).transpose()?,
            none_initializing: query.flag("wait_for_no_initializing_shards", false)?,
            none_relocating: query.flag("wait_for_no_relocating_shards", false)?,
        })
    }

    /// As in the field, an index that is named must be there, whatever else is waited for.
    fn met(&self, Seen { health, all_there, .. }: &Seen) -> bool {
        let enough = |active: Active| match active {
            Active::All => health.initializing_shards + health.unassigned_shards == 0,
            Active::Count(count) => health.active_shards as usize >= count,
        };
        *all_there
            && self.status.is_none_or(|status| health.status <= status)
            && self.nodes.as_ref().is_none_or(|nodes| nodes.hold(health.number_of_nodes))
            && self.active.is_none_or(enough)
            && !(self.none_initializing && health.initializing_shards > 0)
            && !(self.none_relocating && health.relocating_shards > 0)
    }
}

/// `wait_for_nodes`: `3`, `>=3`, `ge(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nodes {
    relation: &'static str,
    count: u32,
}

impl Nodes {
    fn read(text: &str) -> Result<Nodes> {
        const RELATIONS: [(&str, &str); 4] = [("ge", ">="), ("le", "<="), ("gt", ">"), ("lt", "<")];
        let bad = || {
            bad_request(format!(
                "cannot parse wait_for_nodes [{text}]; write a number, >=3 or ge(3)"
            ))
        };
        let (relation, number) = RELATIONS
            .into_iter()
            .find_map(|(word, sign)| {
                let in_brackets = || text.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')');
                Some((sign, text.strip_prefix(sign).or_else(in_brackets)?))
            })
            .unwrap_or(("=", text));
        Ok(Nodes { relation, count: number.trim().parse().map_err(|_| bad())? })
    }

    fn hold(self, nodes: u32) -> bool {
        match self.relation {
            ">=" => nodes >= self.count,
            "<=" => nodes <= self.count,
            ">" => nodes > self.count,
            "<" => nodes < self.count,
            _ => nodes == self.count,
        }
    }
}

/// Which indices a request is about.
struct Scope<'a> {
    expression: Option<&'a str>,
    query: Query,
}

/// What there is of them at a moment.
struct Seen {
    names: Vec<String>,
    health: Health,
    /// Whether each index that is named without `*` is there.
    all_there: bool,
}

impl<'a> Scope<'a> {
    /// As in the field, an index that is missing is left out of the sums where the request does not say otherwise.
    fn read(expression: Option<&'a str>, query: &Query) -> Scope<'a> {
        let mut query = query.clone();
        if query.get("ignore_unavailable").is_none() {
            query.set("ignore_unavailable", "true");
        }
        Scope { expression, query }
    }

    /// As in the field, the health is red where an index that is named is missing, whatever the parameters say of that,
    /// and where the parameters do not allow what is found. Fails only where a parameter cannot be read.
    fn look(&self, state: &ClusterState) -> Result<Seen> {
        let closed = Closed::Expanded;
        let is_there =
            |text: &str| indices_with(state, Some(text), &Query::default(), closed).is_ok();
        let all_there = self.expression.is_none_or(is_there);
        let (names, allowed) = match indices_with(state, self.expression, &self.query, closed) {
            Ok(names) => (names, true),
            Err(failure) if failure.status == 404 => (Vec::new(), false),
            Err(failure) => return Err(failure),
        };
        let mut health = total(state, &names);
        if !(all_there && allowed) {
            health.status = Status::Red;
        }
        Ok(Seen { names, health, all_there })
    }
}

/// The health of some indices together.
fn total(state: &ClusterState, names: &[String]) -> Health {
    if names.len() == state.indices.len() {
        return state::health(state);
    }
    state::health_of_some(state, names)
}

fn health_json(health: &Health) -> Value {
    let mut answer = serde_json::to_value(health).expect("counts are plain data");
    for name in [
        "delayed_unassigned_shards",
        "number_of_in_flight_fetch",
        "number_of_pending_tasks",
        "task_max_waiting_in_queue_millis",
    ] {
        // Events are handled one after another; what waits for a node to come back is counted by who knows the time.
        answer[name] = json!(0);
    }
    answer
}

fn index_json(state: &ClusterState, index: &str, with_shards: bool) -> Option<Value> {
    let meta = state.indices.get(index)?;
    let health = state::health_of(state, index)?;
    let mut object = json!({
        "status": health.status,
        "number_of_shards": meta.shards,
        "number_of_replicas": meta.replicas,
        "active_primary_shards": health.active_primary_shards,
        "active_shards": health.active_shards,
        "relocating_shards": health.relocating_shards,
        "initializing_shards": health.initializing_shards,
        "unassigned_shards": health.unassigned_shards,
    });
    if with_shards {
        object["shards"] = by_number(state.routing.get(index)?, &|_, shard| shard_json(shard));
    }
    Some(object)
}

fn shard_json(shard: &IndexShardRoutingTable) -> Value {
    let started = shard.copies.iter().filter(|copy| copy.is_started()).count();
    let assigned = shard.copies.iter().filter(|copy| copy.is_assigned()).count();
    let relocating = shard.copies.iter().filter(|copy| copy.is_relocating()).count();
    let primary_active = shard.started_primary().is_some();
    let status = if started == shard.copies.len() {
        Status::Green
    } else if primary_active {
        Status::Yellow
    } else {
        Status::Red
    };
    json!({
        "status": status,
        "primary_active": primary_active,
        "active_shards": started,
        "relocating_shards": relocating,
        "initializing_shards": assigned - started,
        "unassigned_shards": shard.copies.len() - assigned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::settings::Update;
    use engine::state::{Event, Made, Node, apply};

    fn state() -> ClusterState {
        let node = |name: &str| Node {
            name: name.to_owned(),
            transport_address: format!("{name}:1"),
            http_address: format!("{name}:2"),
            attributes: Default::default(),
        };
        let mut state = ClusterState::new("c", [node("n1"), node("n2")], || 1);
        let node = node("n1");
        apply(&mut state, 0, Event::NodeJoined { node, found: Vec::new() }).unwrap();
        for index in ["a", "b"] {
            let settings = Update::from([("index.number_of_shards".into(), Some("2".into()))]);
            let made = Made { settings, ..Made::default() };
            let event = Event::CreateIndex { index: index.into(), made };
            apply(&mut state, 0, event).unwrap();
        }
        let copies: Vec<(u32, String)> = state
            .copies_on("n1")
            .filter(|(index, _, _)| *index == "a")
            .map(|(_, shard, copy)| (shard, copy.allocation_id.clone()))
            .collect();
        for (shard, allocation_id) in copies {
            let event = Event::ShardStarted { index: "a".into(), shard, allocation_id };
            apply(&mut state, 0, event).unwrap();
        }
        state
    }

    fn met(query: &str, expression: Option<&str>) -> bool {
        let query = Query::parse(query).unwrap();
        let seen = Scope::read(expression, &query).look(&state()).unwrap();
        Wanted::read(&query).unwrap().met(&seen)
    }

    #[test]
    fn waits_for_what_is_asked() {
        for (query, expression, is_met) in [
            ("", None, true),
            ("", Some("gone"), false),
            ("", Some("g*"), true),
            ("wait_for_status=red", None, true),
            ("wait_for_status=yellow", None, false),
            ("wait_for_status=yellow", Some("a"), true),
            ("wait_for_status=green", Some("a"), false),
            ("wait_for_no_initializing_shards", Some("a"), true),
            ("wait_for_no_initializing_shards=true", None, false),
            ("wait_for_no_relocating_shards", None, true),
            ("wait_for_nodes=1", None, true),
            ("wait_for_nodes=%3E%3D2", None, false),
            ("wait_for_nodes=le(1)", None, true),
            ("wait_for_nodes=<1", None, false),
            ("wait_for_active_shards=2", None, true),
            ("wait_for_active_shards=all", Some("a"), false),
            ("wait_for_events=languid", None, true),
        ] {
            assert_eq!(met(query, expression), is_met, "{query} {expression:?}");
        }
        for bad in [
            "wait_for_status=blue", "wait_for_nodes=ge3", "wait_for_active_shards=x",
            "wait_for_events=soon",
        ] {
            assert!(Wanted::read(&Query::parse(bad).unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_indices_that_are_summed_up_are_those_that_the_parameters_allow() {
        let (green, yellow, red) = (Status::Green, Status::Yellow, Status::Red);
        for (query, expression, status, names, all_there) in [
            ("", Some("a*"), yellow, vec!["a"], true),
            ("", Some("*,-b"), yellow, vec!["a"], true),
            ("expand_wildcards=closed", Some("a*"), green, vec![], true),
            ("expand_wildcards=none", None, green, vec![], true),
            ("expand_wildcards=none", Some("a"), yellow, vec!["a"], true),
            ("expand_wildcards=none&allow_no_indices=false", Some("a*"), red, vec![], true),
            ("", Some("zzz*"), green, vec![], true),
            ("allow_no_indices=false", Some("zzz*"), red, vec![], true),
            ("", Some("a,gone"), red, vec!["a"], false),
            ("ignore_unavailable=true", Some("a,gone"), red, vec!["a"], false),
            ("ignore_unavailable=false", Some("a,gone"), red, vec![], false),
        ] {
            let scope = Scope::read(expression, &Query::parse(query).unwrap());
            let seen = scope.look(&state()).unwrap();
            let found = (seen.health.status, seen.names, seen.all_there);
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(found, (status, names, all_there), "{query} {expression:?}");
        }
        let wrong = Query::parse("expand_wildcards=opened").unwrap();
        assert_eq!(Scope::read(None, &wrong).look(&state()).err().unwrap().status, 400);
    }

    #[test]
    fn sums_some_indices() {
        let state = state();
        let sum = total(&state, &["a".to_owned()]);
        assert_eq!((sum.status, sum.active_shards, sum.unassigned_shards), (Status::Yellow, 2, 2));
        assert_eq!((sum.active_shards_percent_as_number, sum.number_of_nodes), (50.0, 1));
        assert_eq!(total(&state, &[]).active_shards_percent_as_number, 100.0);
        let json = index_json(&state, "b", true).unwrap();
        assert_eq!(json["status"], "red");
        assert_eq!(json["shards"]["1"]["status"], "red");
        assert_eq!(json["shards"]["0"]["initializing_shards"], 1);
        assert_eq!(health_json(&sum)["number_of_pending_tasks"], 0);
    }
}
