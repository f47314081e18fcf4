//! `_cat/shards` and `_cluster/allocation/explain`.

use record::observation::{Decision, WaitingCopy};
use serde_json::Value;

use super::{count, elements, text_at};

/// The copies of `_cat/shards?format=json` that are not started.
pub(crate) fn waiting(answer: &Value) -> Vec<WaitingCopy> {
    let mut all: Vec<WaitingCopy> = elements(Some(answer)).filter_map(copy).collect();
    all.sort_by(|a, b| (&a.index, a.shard, !a.primary).cmp(&(&b.index, b.shard, !b.primary)));
    all
}

fn copy(row: &Value) -> Option<WaitingCopy> {
    let state = text_at(row, "/state")?;
    if state != "UNASSIGNED" && state != "INITIALIZING" {
        return None;
    }
    Some(WaitingCopy {
        index: text_at(row, "/index")?,
        shard: u32::try_from(count(row.get("shard"))?).ok()?,
        primary: text_at(row, "/prirep").is_some_and(|kind| kind.starts_with('p')),
        state,
        reason: text_at(row, "/unassigned.reason"),
        node: text_at(row, "/node"),
        ..WaitingCopy::default()
    })
}

/// Adds an explanation to the copy that it explains. A decider that says yes is left out.
pub(crate) fn explain_into(copy: &mut WaitingCopy, answer: &Value) {
    copy.can_allocate = text_at(answer, "/can_allocate");
    copy.explanation = text_at(answer, "/allocate_explanation");
    if copy.reason.is_none() {
        copy.reason = text_at(answer, "/unassigned_info/reason");
    }
    copy.decisions.clear();
    for node in elements(answer.get("node_allocation_decisions")) {
        let name =
            text_at(node, "/node_name").or_else(|| text_at(node, "/node_id")).unwrap_or_default();
        for decider in elements(node.get("deciders")) {
            let decision = text_at(decider, "/decision").unwrap_or_default();
            if decision == "NO" || decision == "THROTTLE" {
                copy.decisions.push(Decision {
                    node: name.clone(),
                    decider: text_at(decider, "/decider").unwrap_or_default(),
                    decision,
                    explanation: text_at(decider, "/explanation").unwrap_or_default(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_what_is_not_started_and_why() {
        let mut found = waiting(&json!([
            {"index": "a", "shard": "0", "prirep": "p", "state": "STARTED", "node": "n"},
            {"index": "logs-1", "shard": "0", "prirep": "r", "state": "UNASSIGNED",
             "unassigned.reason": "REPLICA_ADDED", "node": null},
        ]));
        assert_eq!(found.len(), 1);
        let answer = serde_json::from_str(include_str!("samples/explain.json")).unwrap();
        explain_into(&mut found[0], &answer);
        let said: Vec<(&str, &str)> =
            found[0].decisions.iter().map(|d| (d.node.as_str(), d.decider.as_str())).collect();
        assert_eq!(said, [("es-1", "same_shard"), ("es-2", "disk_threshold")]);
        assert_eq!(found[0].can_allocate.as_deref(), Some("no"));
    }
}
