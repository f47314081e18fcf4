//! `_cluster/reroute`: copies moved, placed and given up by hand.

use serde_json::{Map, Value, json};

use super::answer::Reply;
use super::call::{Call, object, refuse_unknown_keys, small_number, truth};
use super::cluster::routing_json;
use super::error::{bad_body, bad_request, not_supported};
use engine::state::{self, ClusterState, Event, RerouteAction, RerouteCommand};
use engine::transport::{Failure, Result};

/// `POST /_cluster/reroute`: commands, all or none of them, and with `retry_failed` what was given up once more. With
/// `dry_run` it is tried on this node's view of the cluster, and changes nothing.
pub(super) async fn reroute(call: Call) -> Result<Reply> {
    let commands = commands(call.json()?)?;
    if call.query.flag("explain", false)? {
        let instead = "a command that cannot be done says why by itself; \
                       GET _cluster/allocation/explain says it of a copy";
        return Err(not_supported("explain of _cluster/reroute", instead));
    }
    let retries = call.query.flag("retry_failed", false)?;
    let is_dry = call.query.flag("dry_run", false)?;
    let commands = (!commands.is_empty()).then_some(Event::Reroute { commands });
    let events: Vec<Event> =
        retries.then_some(Event::RetryFailed).into_iter().chain(commands).collect();
    let core = call.node.core();
    let (done, state) = match is_dry {
        true => {
            let mut tried = ClusterState::clone(&call.state());
            for event in events {
                state::apply(&mut tried, core.env.epoch_ms(), event)
                    .map_err(|e| Failure::from(&e))?;
            }
            (true, tried)
        }
        false => (call.submit(events).await?, ClusterState::clone(&call.state())),
    };
    Ok(json!({ "acknowledged": done, "state": state_json(&call, &state)? }).into())
}

/// The parts of the state that `metric` names: none by itself, but the routing of a dry run.
fn state_json(call: &Call, state: &ClusterState) -> Result<Value> {
    let is_dry = call.query.flag("dry_run", false)?;
    let metrics = call.query.get("metric").unwrap_or(if is_dry { "routing_table" } else { "none" });
    let mut shown = Map::new();
    for metric in metrics.split(',') {
        match metric {
            "none" => {}
            "version" => _ = shown.insert("version".to_owned(), json!(state.version)),
            "routing_table" | "_all" => {
                let names: Vec<String> = state.indices.keys().cloned().collect();
                shown.insert("routing_table".to_owned(), routing_json(state, &names));
            }
            other => {
                let reason = format!(
                    "unknown metric [{other}] of _cluster/reroute; there are routing_table, version and none"
                );
                return Err(bad_request(reason));
            }
        }
    }
    Ok(Value::Object(shown))
}

fn commands(body: Value) -> Result<Vec<RerouteCommand>> {
    let body = object(body, ": {\"commands\"}")?;
    refuse_unknown_keys(&body, &["commands"], "of a reroute")?;
    match body.get("commands") {
        None => Ok(Vec::new()),
        Some(Value::Array(commands)) => commands.iter().map(command).collect(),
        Some(_) => Err(bad_body("[commands] of a reroute is a list of commands".to_owned())),
    }
}

/// The commands of the field that are not here, and what does instead.
const REFUSED: [(&str, &str); 2] = [
    ("allocate_stale_primary", "bring back a node with a copy in sync, or delete the index"),
    ("allocate_empty_primary", "delete the index and make it anew"),
];
const KNOWN: &str = "move, cancel and allocate_replica";

fn command(command: &Value) -> Result<RerouteCommand> {
    let entry = command.as_object().filter(|command| command.len() == 1);
    let Some((name, Value::Object(of))) = entry.and_then(|entry| entry.iter().next()) else {
        let reason = format!("a command of a reroute is an object with one member, of {KNOWN}");
        return Err(bad_body(reason));
    };
    if let Some((name, instead)) = REFUSED.iter().find(|(refused, _)| refused == name) {
        return Err(not_supported(&format!("the command {name} of _cluster/reroute"), instead));
    }
    let read = Parameters { command: name, of };
    let check = |known: &[&str]| refuse_unknown_keys(of, known, &format!("of [{name}]"));
    let (action, node) = match name.as_str() {
        "move" => {
            check(&["index", "shard", "from_node", "to_node"])?;
            (RerouteAction::Move { to_node: read.text("to_node")? }, read.text("from_node")?)
        }
        "cancel" => {
            check(&["index", "shard", "node", "allow_primary"])?;
            (
                RerouteAction::Cancel { allow_primary: read.flag("allow_primary")? },
                read.text("node")?,
            )
        }
        "allocate_replica" => {
            check(&["index", "shard", "node"])?;
            (RerouteAction::AllocateReplica, read.text("node")?)
        }
        other => {
            return Err(bad_body(format!(
                "unknown command [{other}] of a reroute; there are {KNOWN}"
            )));
        }
    };
    Ok(RerouteCommand { action, index: read.text("index")?, shard: read.number("shard")?, node })
}

/// The parameters of a command.
struct Parameters<'a> {
    command: &'a str,
    of: &'a Map<String, Value>,
}

impl Parameters<'_> {
    fn wrong(&self, name: &str, what: &str) -> Failure {
        bad_body(format!("[{}] needs [{name}], {what}", self.command))
    }

    fn text(&self, name: &str) -> Result<String> {
        let text = self.of.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| self.wrong(name, "a name"))
    }

    fn number(&self, name: &str) -> Result<u32> {
        self.of.get(name).and_then(small_number).ok_or_else(|| self.wrong(name, "a number"))
    }

    fn flag(&self, name: &str) -> Result<bool> {
        let given = self.of.get(name).map_or(Some(false), truth);
        given.ok_or_else(|| self.wrong(name, "true or false"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_others_are_refused_by_name() {
        let body = json!({ "commands": [
            { "move": { "index": "a", "shard": 1, "from_node": "n1", "to_node": "n2" } },
            { "cancel": { "index": "a", "shard": "2", "node": "n3", "allow_primary": true } },
            { "allocate_replica": { "index": "b", "shard": 0, "node": "n4" } },
        ] });
        let read = commands(body).unwrap();
        let to_node = "n2".to_owned();
        assert_eq!((&read[0].action, &*read[0].node), (&RerouteAction::Move { to_node }, "n1"));
        let cancel = RerouteAction::Cancel { allow_primary: true };
        assert_eq!((&read[1].action, read[1].shard), (&cancel, 2));
        assert_eq!((&read[2].action, &*read[2].index), (&RerouteAction::AllocateReplica, "b"));
        for (body, said) in [
            (json!({ "commands": [{ "allocate_empty_primary": {} }] }), "allocate_empty_primary"),
            (json!({ "commands": [{ "mvoe": {} }] }), "unknown command [mvoe]"),
            (json!({ "commands": [{ "move": { "index": "a", "shard": 0 } }] }), "[to_node]"),
            (json!({ "commands": [{ "cancel": { "node": "n", "force": true } }] }), "[force]"),
            (json!({ "commands": { "move": {} } }), "a list"),
            (json!({ "command": [] }), "unknown key [command]"),
            (json!([]), "a JSON object"),
        ] {
            let refused = commands(body).unwrap_err();
            assert!(refused.reason.contains(said), "{}", refused.reason);
        }
    }
}
