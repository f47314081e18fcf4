//! Two data nodes of a cluster between which copies are made.

use clusters::live::LiveClient;
use record::roles::holds_new_indices;
use record::units::{counted, show_bytes};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

const NODES: &str = "/_nodes/os,jvm?filter_path=nodes.*.name,nodes.*.roles,nodes.*.attributes,nodes.*.os.pretty_name,\
    nodes.*.os.name,nodes.*.os.arch,nodes.*.os.allocated_processors,nodes.*.jvm.mem.heap_max_in_bytes";
const MANAGER: &str = "/_nodes/_master/os?filter_path=nodes.*.name";
const HEALTH: &str = "/_cluster/health?filter_path=initializing_shards,relocating_shards";
const AWARENESS: &str =
    "/_cluster/settings?include_defaults=true&filter_path=*.cluster.routing.allocation.awareness";

/// Two nodes, and what they tell of what they run on: no names, no addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoNodes {
    names: [String; 2],
    machines: [Value; 2],
    data_nodes: usize,
    is_field: bool,
}

impl TwoNodes {
    /// Finds two nodes on which the copies of a shard may be. `is_field` says that they are not those of the embedded
    /// engine. Fails if there are no two such nodes, or copies are on their way: they would be measured, too.
    pub async fn find(client: &LiveClient, is_field: bool) -> Result<TwoNodes> {
        let health = client.get(HEALTH).await?;
        let moving = ["initializing_shards", "relocating_shards"];
        let moving: u64 = moving.iter().filter_map(|state| health[*state].as_u64()).sum();
        if moving > 0 {
            let copies = counted(moving, "copy is", "copies are");
            return Err(Error::usage(format!(
                "{copies} on the way in that cluster, and would be measured, too; nothing was changed: try again once \
                 nothing moves"
            )));
        }
        let awareness = awareness(&client.get(AWARENESS).await?);
        let found = TwoNodes::of(&client.get(NODES).await?, &awareness, is_field)?;
        Ok(found.with_manager_last(&client.get(MANAGER).await?))
    }

    /// The same with the manager as the one that copies go to: those that recover from it may have to wait, which twins
    /// know by themselves.
    fn with_manager_last(mut self, manager: &Value) -> TwoNodes {
        let mut managers = manager["nodes"].as_object().into_iter().flat_map(Map::values);
        if managers.any(|node| node["name"] == self.names[0]) {
            self.names.swap(0, 1);
            self.machines.swap(0, 1);
        }
        self
    }

    fn of(answer: &Value, awareness: &[String], is_field: bool) -> Result<TwoNodes> {
        let nodes = answer["nodes"].as_object().into_iter().flat_map(Map::values);
        let named = nodes.filter(|node| holds_ours(node));
        let mut all: Vec<(&str, &Value)> =
            named.filter_map(|node| Some((node["name"].as_str()?, node))).collect();
        all.sort_by_key(|(name, _)| *name);
        let data_nodes = all.len();
        if data_nodes < 2 {
            return Err(clusters::Error::TooFewNodes { data: data_nodes, needed: 2 }.into());
        }
        // A filter takes a name with one of these for several.
        let is_one = |name: &str| {
            !name.contains(['*', ','])
                && all.iter().filter(|(other, _)| *other == name).count() == 1
        };
        let fit: Vec<&(&str, &Value)> = all.iter().filter(|(name, _)| is_one(name)).collect();
        let pair = fit.iter().enumerate().find_map(|(at, one)| {
            let other = fit[at + 1..].iter().find(|other| are_apart(one.1, other.1, awareness))?;
            Some([**one, **other])
        });
        let Some(pair) = pair else {
            let apart = match awareness.is_empty() {
                true => String::new(),
                false => format!(", and in different places ({})", awareness.join(", ")),
            };
            return Err(Error::usage(format!(
                "no two of the {data_nodes} data nodes can be told to hold the copies of a shard: each has to have a \
                 name of its own without * and commas{apart}; nothing was changed"
            )));
        };
        Ok(TwoNodes {
            names: pair.map(|(name, _)| name.to_owned()),
            machines: pair.map(|(_, node)| machine(node)),
            data_nodes,
            is_field,
        })
    }

    /// The node that has the primaries.
    pub(super) fn source(&self) -> &str {
        &self.names[0]
    }

    /// Both, as a filter has them.
    pub(super) fn both(&self) -> String {
        self.names.join(",")
    }

    pub(super) fn is_field(&self) -> bool {
        self.is_field
    }

    /// What the two run on, each as far as it tells.
    pub fn machines(&self) -> &[Value] {
        &self.machines
    }

    /// The same in words, without names.
    pub fn text(&self) -> String {
        let [one, other] = self.machines.each_ref().map(in_words);
        let each = match one == other {
            true => format!("{one} each"),
            false => format!("{one}; {other}"),
        };
        format!("two of {} data nodes ({each})", self.data_nodes)
    }
}

/// Whether a node takes the copies of our index.
fn holds_ours(node: &Value) -> bool {
    let holds = |role: &Value| role.as_str().is_some_and(holds_new_indices);
    node["roles"].as_array().is_none_or(|roles| roles.iter().any(holds))
}

/// The attributes over whose values the copies of a shard are spread.
fn awareness(settings: &Value) -> Vec<String> {
    let path = "/cluster/routing/allocation/awareness/attributes";
    let of = |rank: &str| settings[rank].pointer(path);
    let attributes = ["transient", "persistent", "defaults"].into_iter().find_map(of);
    let text = match attributes {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        other => other.and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn are_apart(one: &Value, other: &Value, awareness: &[String]) -> bool {
    let value = |node: &Value, name: &String| node["attributes"][name.as_str()].clone();
    awareness.iter().all(|name| {
        let (one, other) = (value(one, name), value(other, name));
        !one.is_null() && !other.is_null() && one != other
    })
}

fn machine(node: &Value) -> Value {
    let os = &node["os"];
    let name = if os["pretty_name"].is_null() { &os["name"] } else { &os["pretty_name"] };
    json!({
        "os": name,
        "arch": os["arch"],
        "cores": os["allocated_processors"],
        "heap_bytes": node["jvm"]["mem"]["heap_max_in_bytes"],
    })
}

fn in_words(machine: &Value) -> String {
    let cores = machine["cores"].as_u64().map(|cores| counted(cores, "core", "cores"));
    let heap =
        machine["heap_bytes"].as_u64().map(|bytes| format!("a heap of {}", show_bytes(bytes)));
    let text = |key: &str| machine[key].as_str().map(str::to_owned);
    let parts: Vec<String> =
        [cores, heap, text("os"), text("arch")].into_iter().flatten().collect();
    if parts.is_empty() { "of a machine that is not told".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(rows: &[(&str, &str, &str)]) -> Value {
        let row = |(at, (name, role, zone)): (usize, &(&str, &str, &str))| {
            let node = json!({
                "name": name, "roles": [role], "attributes": { "zone": zone },
                "os": { "pretty_name": "Debian 12", "arch": "amd64", "allocated_processors": 8 },
                "jvm": { "mem": { "heap_max_in_bytes": 1_000_000_000 } },
            });
            (at.to_string(), node)
        };
        json!({ "nodes": rows.iter().enumerate().map(row).collect::<Map<_, _>>() })
    }

    fn found(rows: &[(&str, &str, &str)], awareness: &[&str]) -> Result<String, String> {
        let awareness: Vec<String> = awareness.iter().map(|name| (*name).to_owned()).collect();
        let found = TwoNodes::of(&nodes(rows), &awareness, true);
        found.map(|nodes| nodes.both()).map_err(|error| error.to_string())
    }

    #[test]
    fn two_nodes_are_those_that_may_hold_a_copy_each() {
        let rows = [
            ("m", "master", "x"),
            ("cold", "data_cold", "x"),
            ("c", "data", "y"),
            ("b", "data_content", "x"),
            ("a", "data", "x"),
        ];
        assert_eq!(found(&rows, &[]), Ok("a,b".to_owned()));
        assert_eq!(found(&rows, &["zone"]), Ok("a,c".to_owned()));
        assert!(found(&rows, &["rack"]).unwrap_err().contains("places (rack)"));
        assert!(found(&rows[..3], &[]).unwrap_err().contains("has 1 data nodes"));
        let twice =
            [("a", "data", "x"), ("a", "data", "y"), ("b*", "data", "x"), ("c", "data", "x")];
        assert!(found(&twice, &[]).unwrap_err().contains("a name of its own"));
    }

    #[test]
    fn copies_do_not_recover_from_the_manager() {
        let rows = [("a", "data", "x"), ("b", "data", "x"), ("c", "data", "x")];
        let source = |manager: &str| {
            let manager = json!({ "nodes": { "id": { "name": manager } } });
            let found = TwoNodes::of(&nodes(&rows), &[], true).unwrap();
            found.with_manager_last(&manager).source().to_owned()
        };
        assert_eq!(["a", "b", "c"].map(source), ["b", "a", "a"]);
    }

    #[test]
    fn machines_are_told_without_names() {
        let both =
            TwoNodes::of(&nodes(&[("a", "data", "x"), ("b", "data", "x")]), &[], true).unwrap();
        assert_eq!(
            both.text(),
            "two of 2 data nodes (8 cores, a heap of 1.00 GB, Debian 12, amd64 each)"
        );
        let untold = json!({ "nodes": { "1": { "name": "a" }, "2": { "name": "b" } } });
        let said = TwoNodes::of(&untold, &[], false).unwrap().text();
        assert!(said.contains("not told"), "{said}");
    }

    #[test]
    fn awareness_is_read_in_the_order_in_which_settings_count() {
        let at = |value: Value| {
            let awareness = json!({ "awareness": { "attributes": value } });
            json!({ "cluster": { "routing": { "allocation": awareness } } })
        };
        let settings = json!({ "defaults": at(json!([])), "persistent": at(json!("zone, rack")) });
        assert_eq!(awareness(&settings), ["zone", "rack"]);
        assert_eq!(awareness(&json!({ "defaults": at(json!(["a", "b"])) })), ["a", "b"]);
        assert_eq!(awareness(&json!({ "defaults": at(json!("")) })), Vec::<String>::new());
    }
}
