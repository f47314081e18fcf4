//! What a twin is asked, in words.

use record::TwinQuestion;
use toml::Value;

use super::TwinPlan;

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

fn sentence(plan: &TwinPlan) -> (String, &'static str) {
    let twin = plan.get("twin");
    let names = |key: &str| {
        let names = twin.and_then(|twin| twin.get(key)).and_then(Value::as_array)?;
        Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
    };
    let joining = twin.and_then(|twin| twin.get("add")).and_then(Value::as_array);
    match (names("lose"), names("restart"), names("drain"), joining.map(Vec::len)) {
        (Some(lost), ..) => (format!("{lost} lost for good"), "green"),
        (_, Some(nodes), ..) if nodes.split(", ").count() == node_names(plan).len() => {
            ("all nodes restart, one after another".to_owned(), "green")
        }
        (_, Some(node), ..) if node_names(plan).contains(&node.as_str()) => {
            (format!("{node} restarts"), "green")
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
