//! What a twin is asked, in words.

use std::collections::BTreeSet;

use record::TwinQuestion;
use toml::Value;

use super::TwinPlan;
use crate::plan::TwinNode;

/// What a plan asks of its twin, for a headline, and the word for what is waited for.
pub fn in_words(plan: &TwinPlan) -> TwinQuestion {
    let (asked, until) = sentence(plan);
    TwinQuestion { asked, until: until.to_owned() }
}

/// The names of its nodes.
pub fn node_names(plan: &TwinPlan) -> Vec<&str> {
    let nodes = plan.get("twin").and_then(|twin| twin.get("node")).and_then(Value::as_array);
    nodes.into_iter().flatten().filter_map(|row| row.get("name")?.as_str()).collect()
}

/// The node as which others pass filters that join while nobody says which one they are like; none where indices have
/// no filters.
pub fn joins_like(plan: &TwinPlan) -> Option<&str> {
    let indices = plan.get("twin")?.get("index")?.as_array()?.iter();
    let settings = indices.filter_map(|index| index.get("settings")?.as_table());
    let is_filtered = settings.flatten().any(|(name, _)| name.ends_with("._name"));
    node_names(plan).first().copied().filter(|_| is_filtered)
}

/// The names of the nodes that are to be lost: of a zone or an attribute that is named, all.
pub fn lost(plan: &TwinPlan) -> Vec<String> {
    let rows = |key: &str| {
        let rows = plan.get("twin").and_then(|twin| twin.get(key)?.as_array());
        rows.into_iter().flatten()
    };
    let nodes: Vec<TwinNode> = rows("node").map(node).collect();
    let named = rows("lose").filter_map(Value::as_str);
    let lost: BTreeSet<usize> = named.flat_map(|text| TwinNode::called(&nodes, text)).collect();
    lost.into_iter().map(|at| nodes[at].name.clone()).collect()
}

/// A node by what it may be called.
fn node(row: &Value) -> TwinNode {
    let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = row.get("attributes").and_then(Value::as_table).into_iter().flatten();
    let own = own.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    TwinNode {
        name: text("name").unwrap_or_default(),
        id: text("id"),
        zone: text("zone"),
        attributes: own.collect(),
        disk: None,
    }
}

fn sentence(plan: &TwinPlan) -> (String, &'static str) {
    let twin = plan.get("twin");
    let names = |key: &str| {
        let names = twin.and_then(|twin| twin.get(key)).and_then(Value::as_array)?;
        Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
    };
    let joining = twin.and_then(|twin| twin.get("add")).and_then(Value::as_array);
    match (names("lose"), names("restart"), names("drain"), joining.map(Vec::len)) {
        (Some(lost), ..) => (format!("{lost} lost for good"), "green"),
        (_, Some(node), ..) if node_names(plan).contains(&node.as_str()) => {
            (format!("{node} restarts"), "green")
        }
        (_, Some(nodes), ..) if nodes.split(", ").count() == node_names(plan).len() => {
            ("all nodes restart, one after another".to_owned(), "green")
        }
        (_, Some(nodes), ..) => (format!("{nodes} restart one after another"), "green"),
        (_, _, Some(drained), _) => (format!("everything is moved away from {drained}"), "empty"),
        (.., Some(1)) => ("an empty node joins".to_owned(), "balanced"),
        (.., Some(count)) => (format!("{count} empty nodes join"), "balanced"),
        _ => (replicas(plan), "green"),
    }
}

/// How many replicas indices have from now on.
fn replicas(plan: &TwinPlan) -> String {
    let asked = plan.get("twin").and_then(|twin| twin.get("replicas")?.as_table());
    let one = |(index, number): (&String, &Value)| match number.as_integer() {
        Some(1) => format!("{index} with 1 replica"),
        _ => format!("{index} with {number} replicas"),
    };
    asked.into_iter().flatten().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::{Asked, ask};

    #[test]
    fn nodes_join_like_the_first_where_that_says_what_they_hold() {
        let like = |setting: &str| {
            let plan = format!(
                "[twin]\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[twin.index]]\nsettings = {{ {setting} }}\n"
            );
            joins_like(&plan.parse().unwrap()).map(str::to_owned)
        };
        let filter = "\"index.routing.allocation.include._name\" = \"b\"";
        assert_eq!(
            (like(filter).as_deref(), like("\"index.priority\" = \"1\"")),
            (Some("a"), None)
        );
    }

    #[test]
    fn an_only_node_restarts_after_no_other() {
        let said = |nodes: &str| {
            let mut plan: TwinPlan = format!("[twin]\nnode = [{nodes}]\n").parse().unwrap();
            ask(&mut plan, &Asked::Restart { nodes: Vec::new(), down: None, flush: false });
            in_words(&plan).asked
        };
        assert_eq!(said("{ name = \"a\" }"), "a restarts");
        let two = said("{ name = \"a\" }, { name = \"b\" }");
        assert_eq!(two, "all nodes restart, one after another");
    }
}
