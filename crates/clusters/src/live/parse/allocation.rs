//! `_cat/shards` and `_cluster/allocation/explain`.

use std::borrow::Cow;
use std::fmt;

use record::observation::{Decision, WaitingCopy};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{elements, text_at};

/// The copies of `_cat/shards?format=json` that are not started. Rows are read one by one, for a large cluster has
/// hundreds of thousands, nearly all of which are started.
#[derive(Default)]
pub(crate) struct Waiting(pub(crate) Vec<WaitingCopy>);

impl<'de> Deserialize<'de> for Waiting {
    fn deserialize<D: Deserializer<'de>>(answer: D) -> Result<Self, D::Error> {
        let mut all = answer.deserialize_seq(Rows)?;
        all.sort_by(|a, b| (&a.index, a.shard, !a.primary).cmp(&(&b.index, b.shard, !b.primary)));
        Ok(Waiting(all))
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Vec<WaitingCopy>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of copies")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
        let mut waiting = Vec::new();
        while let Some(row) = rows.next_element::<Row<'de>>()? {
            waiting.extend(row.waiting());
        }
        Ok(waiting)
    }
}

/// What is read of a row.
#[derive(Default)]
struct Row<'a> {
    state: Cell<'a>,
    index: Cell<'a>,
    shard: Cell<'a>,
    prirep: Cell<'a>,
    reason: Cell<'a>,
    node: Cell<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Column {
    State,
    Index,
    Shard,
    Prirep,
    #[serde(rename = "unassigned.reason")]
    Reason,
    Node,
    #[serde(other)]
    Other,
}

impl Row<'_> {
    /// Whether its state is known, and is none that waits.
    fn has_started(&self) -> bool {
        !matches!(&*self.state.0, "" | "UNASSIGNED" | "INITIALIZING")
    }

    fn waiting(self) -> Option<WaitingCopy> {
        if self.state.0.is_empty() || self.has_started() {
            return None;
        }
        Some(WaitingCopy {
            index: self.index.text()?,
            shard: self.shard.0.parse().ok()?,
            primary: self.prirep.0.starts_with('p'),
            state: self.state.0.into_owned(),
            reason: self.reason.text(),
            node: self.node.text(),
            ..WaitingCopy::default()
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(row: D) -> Result<Self, D::Error> {
        row.deserialize_map(Columns)
    }
}

struct Columns;

impl<'de> Visitor<'de> for Columns {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a copy, column by column")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut columns: A) -> Result<Self::Value, A::Error> {
        let mut row = Row::default();
        while let Some(column) = columns.next_key::<Column>()? {
            let cell = match column {
                Column::State => &mut row.state,
                Column::Index => &mut row.index,
                Column::Shard => &mut row.shard,
                Column::Prirep => &mut row.prirep,
                Column::Reason => &mut row.reason,
                Column::Node => &mut row.node,
                Column::Other => {
                    columns.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *cell = columns.next_value()?;
            if row.has_started() {
                // Nearly every row: what follows is passed over.
                while columns.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            }
        }
        Ok(row)
    }
}

/// A text, borrowed where it has no escapes; empty where there is `null`. Numbers are their text.
#[derive(Default)]
struct Cell<'a>(Cow<'a, str>);

impl Cell<'_> {
    fn text(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.into_owned())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Cell<'a> {
    fn deserialize<D: Deserializer<'de>>(cell: D) -> Result<Self, D::Error> {
        cell.deserialize_any(CellVisitor).map(Cell)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

/// Adds an explanation to the copy that it explains. A decider that says yes is left out.
pub(crate) fn explain_into(copy: &mut WaitingCopy, answer: &Value) {
    copy.can_allocate = text_at(answer, "/can_allocate");
    copy.explanation = text_at(answer, "/allocate_explanation");
    copy.delay_left_ms = answer.get("remaining_delay_in_millis").and_then(Value::as_u64);
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
        let rows = json!([
            {"index": "a", "shard": "0", "prirep": "p", "state": "STARTED", "node": "n"},
            {"index": "logs-1", "shard": "0", "prirep": "r", "state": "UNASSIGNED",
             "unassigned.reason": "REPLICA_ADDED", "node": null},
            {"index": "b\"A", "shard": "3", "prirep": "p", "state": "INITIALIZING", "node": "m"},
        ]);
        let Waiting(mut found) = serde_json::from_str(&rows.to_string()).unwrap();
        let known: Vec<(&str, u32, bool)> =
            found.iter().map(|copy| (copy.index.as_str(), copy.shard, copy.primary)).collect();
        assert_eq!(known, [("b\"A", 3, true), ("logs-1", 0, false)]);
        let mut found = found.split_off(1);
        assert_eq!(found.len(), 1);
        let answer = serde_json::from_str(include_str!("samples/explain.json")).unwrap();
        explain_into(&mut found[0], &answer);
        let said: Vec<(&str, &str)> =
            found[0].decisions.iter().map(|d| (d.node.as_str(), d.decider.as_str())).collect();
        assert_eq!(said, [("es-1", "same_shard"), ("es-2", "disk_threshold")]);
        assert_eq!((found[0].can_allocate.as_deref(), found[0].delay_left_ms), (Some("no"), None));
        // As the sources of Elasticsearch and OpenSearch write it.
        let delayed = json!({"can_allocate": "allocation_delayed", "configured_delay_in_millis": 60_000,
                             "remaining_delay_in_millis": 42_300});
        explain_into(&mut found[0], &delayed);
        assert_eq!(found[0].can_allocate.as_deref(), Some("allocation_delayed"));
        assert_eq!(found[0].delay_left_ms, Some(42_300));
    }
}
