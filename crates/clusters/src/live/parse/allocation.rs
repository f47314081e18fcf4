//! `_cat/shards` and `_cluster/allocation/explain`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use record::observation::{Decision, Lack, Move, WaitingCopy};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{elements, index_settings, lags, primary_of, text_at};

/// The copies of `_cat/shards?format=json` that are not started, and those that move. Rows are read one by one, for a
/// large cluster has hundreds of thousands, nearly all of which are started and stay.
#[derive(Default)]
pub(crate) struct Unsettled {
    /// All copies, those that are started and stay, too.
    pub(crate) rows: u64,
    pub(crate) waiting: Vec<WaitingCopy>,
    pub(crate) moves: Vec<Move>,
}

impl<'de> Deserialize<'de> for Unsettled {
    fn deserialize<D: Deserializer<'de>>(answer: D) -> Result<Self, D::Error> {
        let mut all = answer.deserialize_seq(Rows)?;
        all.waiting.sort_by(|a, b| {
            let key = |copy: &WaitingCopy| (copy.shard, !copy.primary);
            (&a.index, key(a), &a.state).cmp(&(&b.index, key(b), &b.state))
        });
        all.moves.sort_by(|a, b| (&a.from, &a.index, a.shard).cmp(&(&b.from, &b.index, b.shard)));
        Ok(all)
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Unsettled;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of copies")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
        let mut all = Unsettled::default();
        while let Some(row) = rows.next_element::<Row<'de>>()? {
            all.rows += 1;
            match row.state() {
                State::Moves => all.moves.extend(row.moves()),
                State::Waits => all.waiting.extend(row.waiting()),
                State::Stays | State::Untold => {}
            }
        }
        Ok(all)
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

#[derive(PartialEq)]
enum State {
    /// Not read yet.
    Untold,
    Waits,
    Moves,
    Stays,
}

impl Row<'_> {
    fn state(&self) -> State {
        match &*self.state.0 {
            "" => State::Untold,
            "UNASSIGNED" | "INITIALIZING" => State::Waits,
            "RELOCATING" => State::Moves,
            _ => State::Stays,
        }
    }

    /// A copy that moves has both nodes in one column: the one that it leaves, an arrow, and address, id and name of
    /// the one that it goes to.
    fn moves(self) -> Option<Move> {
        let (from, to) = self.node.0.split_once(" -> ")?;
        Some(Move {
            index: self.index.0.into_owned(),
            shard: self.shard.0.parse().ok()?,
            primary: self.prirep.0.starts_with('p'),
            from: from.to_owned(),
            to: to.splitn(3, ' ').nth(2)?.to_owned(),
            filters: BTreeMap::new(),
        })
    }

    fn waiting(self) -> Option<WaitingCopy> {
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
            if row.state() == State::Stays {
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

/// Adds an explanation to the copy that it explains. A decider that says yes is left out. A recording of a version that
/// asked in another order answers for another copy.
pub(crate) fn explain_into(copy: &mut WaitingCopy, answer: &Value) {
    let names = |key: &str, own: Value| answer.get(key).is_none_or(|told| *told == own);
    if !names("index", copy.index.as_str().into())
        || !names("shard", copy.shard.into())
        || !names("primary", copy.primary.into())
    {
        return;
    }
    copy.can_allocate = text_at(answer, "/can_allocate");
    copy.explanation = text_at(answer, "/allocate_explanation");
    copy.delay_ms = answer.get("configured_delay_in_millis").and_then(Value::as_u64);
    copy.delay_left_ms = answer.get("remaining_delay_in_millis").and_then(Value::as_u64);
    let details = text_at(answer, "/unassigned_info/details").unwrap_or_default();
    let left = details.split_once("node_left").and_then(|(_, id)| id.split_once('['));
    copy.left = left.and_then(|(_, id)| Some(id.split_once(']')?.0.to_owned()));
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

/// The allocation filters of indices, out of their flat settings.
pub(crate) fn allocation_filters(answer: &Value) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all = index_settings(answer);
    all.values_mut().for_each(|own| own.retain(|name, _| name.starts_with(FILTER_OF_INDEX)));
    all
}

const FILTER_OF_INDEX: &str = "index.routing.allocation.";

/// What a shard's copy on a node that left lacks, by `_stats?level=shards` of its index: the operations above the
/// retention lease that the primary holds for the copy, or files where it holds none.
pub(crate) fn lack(copy: &WaitingCopy, node: &str, answer: &Value) -> Option<Lack> {
    let shards = answer.get("indices")?.get(&copy.index)?.get("shards")?;
    let lags = lags(primary_of(shards.get(copy.shard.to_string()))?)?;
    Some(lags.get(node).map_or(Lack::Files, |lag| Lack::Operations(*lag)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_that_moves_says_from_where_to_where() {
        // As the sources of Elasticsearch write the column of nodes.
        let rows = json!([
            {"index": "logs-1", "node": "es 1 -> 10.0.0.3 J6lvYxTaQqy es 3", "prirep": "p", "shard": "2",
             "state": "RELOCATING", "unassigned.reason": null},
            {"index": "logs-1", "node": "es 2", "prirep": "r", "shard": "2", "state": "STARTED"},
        ]);
        let found: Unsettled = serde_json::from_str(&rows.to_string()).unwrap();
        let [one] = &found.moves[..] else { panic!("{:?}", found.moves) };
        assert_eq!((one.from.as_str(), one.to.as_str()), ("es 1", "es 3"));
        assert!((one.shard, one.primary) == (2, true) && found.waiting.is_empty());
        let settings = json!({"logs-1": {"settings": {
            "index.routing.allocation.exclude._name": "es 1", "index.provided_name": "logs-1",
        }}});
        let expected = [("index.routing.allocation.exclude._name".to_owned(), "es 1".to_owned())];
        assert_eq!(allocation_filters(&settings)["logs-1"], expected.into());
    }

    /// Of the shape that OpenSearch 2.19.1 answers with.
    #[test]
    fn a_lease_of_the_primary_says_what_a_copy_lacks() {
        let copy = WaitingCopy { index: "logs".into(), ..WaitingCopy::default() };
        let stats = serde_json::from_str(include_str!("samples/leases.json")).unwrap();
        assert_eq!(lack(&copy, "node-a", &stats), Some(Lack::Operations(0)));
        assert_eq!(lack(&copy, "node-b", &stats), Some(Lack::Operations(100)));
        assert_eq!(lack(&copy, "node-c", &stats), Some(Lack::Files));
        assert_eq!(lack(&WaitingCopy { shard: 1, ..copy }, "node-b", &stats), None);
    }

    #[test]
    fn keeps_what_is_not_started_and_why() {
        let rows = json!([
            {"index": "a", "shard": "0", "prirep": "p", "state": "STARTED", "node": "n"},
            {"index": "logs-1", "shard": "0", "prirep": "r", "state": "UNASSIGNED",
             "unassigned.reason": "REPLICA_ADDED", "node": null},
            {"index": "b\"A", "shard": "3", "prirep": "p", "state": "INITIALIZING", "node": "m"},
        ]);
        let Unsettled { waiting: mut found, .. } = serde_json::from_str(&rows.to_string()).unwrap();
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
        for another in [
            json!({"index": "logs-2"}),
            json!({"shard": 1}),
            json!({"primary": true, "index": "logs-1"}),
        ] {
            explain_into(&mut found[0], &another);
        }
        assert_eq!((found[0].can_allocate.as_deref(), found[0].delay_left_ms), (Some("no"), None));
        // As the sources of Elasticsearch and OpenSearch write it.
        let delayed = json!({"can_allocate": "allocation_delayed", "configured_delay_in_millis": 60_000,
                             "remaining_delay_in_millis": 42_300,
                             "unassigned_info": {"reason": "NODE_LEFT", "details": "node_left [J6lvYxTaQqy]"}});
        explain_into(&mut found[0], &delayed);
        assert_eq!(found[0].can_allocate.as_deref(), Some("allocation_delayed"));
        assert_eq!((found[0].delay_ms, found[0].delay_left_ms), (Some(60_000), Some(42_300)));
        assert_eq!(found[0].left.as_deref(), Some("J6lvYxTaQqy"));
    }
}
