//! `_rollover`: a new index takes the writes of an alias, once the old one is large or old enough.

use std::time::Duration;

use record::{names::did_you_mean, units};
use serde_json::{Map, Value, json};

use super::active::Active;
use super::answer::Reply;
use super::call::{Call, PATIENCE, object, refuse_unknown_keys};
use super::error::{bad_body, bad_request};
use super::index::{replicas, take_made};
use super::names::no_such_index;
use super::spread::{on_shards, primaries, stats_of};
use super::time_text::{size, span};
use engine::state::{Event, Index, RollOver};
use engine::transport::{Result, ShardAction};

/// What an index has to have reached, `max_age` and the like; one of those that are given suffices.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Age(Duration),
    Docs(u64),
    Size(u64),
    PrimaryShardSize(u64),
    PrimaryShardDocs(u64),
}

/// What an index has reached. Sizes are bytes, and of the primaries alone.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    age: Duration,
    docs: u64,
    bytes: u64,
    largest_shard_bytes: u64,
    largest_shard_docs: u64,
}

impl Condition {
    const NAMES: [&str; 5] =
        ["max_age", "max_docs", "max_primary_shard_docs", "max_primary_shard_size", "max_size"];

    fn read(name: &str, value: &Value) -> Result<Condition> {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let wrong = |why: String| bad_request(format!("condition [{name}] of [{text}]: {why}"));
        let size = || units::parse_size(&text).map_err(|error| wrong(error.to_string()));
        let count = || text.parse::<u64>().map_err(|_| wrong("it is a number".to_owned()));
        match name {
            "max_age" => {
                let age = units::parse_duration(&text).map_err(|error| wrong(error.to_string()))?;
                Ok(Condition::Age(age))
            }
            "max_docs" => count().map(Condition::Docs),
            "max_size" => size().map(Condition::Size),
            "max_primary_shard_size" => size().map(Condition::PrimaryShardSize),
            "max_primary_shard_docs" => count().map(Condition::PrimaryShardDocs),
            _ => {
                let near = did_you_mean(name, Condition::NAMES);
                Err(bad_body(format!("unknown condition [{name}] of _rollover{near}")))
            }
        }
    }

    /// As in the field: what a value is, however it was given.
    fn shown(&self) -> String {
        match self {
            Condition::Age(age) => span(age.as_millis() as u64),
            Condition::Size(bytes) | Condition::PrimaryShardSize(bytes) => size(*bytes),
            Condition::Docs(docs) | Condition::PrimaryShardDocs(docs) => docs.to_string(),
        }
    }

    fn is_met(&self, reached: &Reached) -> bool {
        match self {
            Condition::Age(age) => reached.age >= *age,
            Condition::Docs(docs) => reached.docs >= *docs,
            Condition::Size(bytes) => reached.bytes >= *bytes,
            Condition::PrimaryShardSize(bytes) => reached.largest_shard_bytes >= *bytes,
            Condition::PrimaryShardDocs(docs) => reached.largest_shard_docs >= *docs,
        }
    }
}

/// The conditions with their names and values: `[max_docs: 5]`.
fn read_conditions(json: Option<Value>) -> Result<Vec<(String, Condition)>> {
    let object = match json {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(object)) => object,
        Some(_) => return Err(bad_body("[conditions] is an object: {\"max_docs\", \"max_age\"}")),
    };
    let one = |(name, value): (&String, &Value)| {
        let condition = Condition::read(name, value)?;
        Ok((format!("[{name}: {}]", condition.shown()), condition))
    };
    object.iter().map(one).collect()
}

/// The name after one that ends in `-` and a number: six digits, as in the field.
fn next_name(index: &str) -> Result<String> {
    let split = index.rsplit_once('-');
    let number = split.and_then(|(base, digits)| {
        let all_digits = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = digits.parse::<u64>().ok().filter(|_| all_digits)?;
        Some((base, number.checked_add(1)?))
    });
    match number {
        Some((base, next)) => Ok(format!("{base}-{next:06}")),
        None => Err(bad_request(format!(
            "index name [{index}] does not match pattern '^.*-\\d+$'; give the name of the new index with \
             POST /{{alias}}/_rollover/{{index}}"
        ))),
    }
}

/// `POST /{alias}/_rollover`, `POST /{alias}/_rollover/{new_index}`.
pub(super) async fn roll_over(call: Call) -> Result<Reply> {
    let active = Active::read(&call.query, 1)?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let env = &call.node.core().env;
    let give_up = env.now() + limit;
    let dry_run = call.query.flag("dry_run", false)?;
    let mut object = object(call.json()?, ": {\"conditions\", \"settings\"}")?;
    let conditions = read_conditions(object.remove("conditions"))?;
    let known = ["aliases", "conditions", "mappings", "settings"];
    refuse_unknown_keys(&object, &known, "of _rollover")?;
    let old = source(&call)?;
    let from = old.name.clone();
    let to = match call.part("new_index") {
        Some(name) => name.to_owned(),
        None => next_name(&from)?,
    };
    let reached = reached(&call, &from, &conditions, limit).await?;
    let mut results = Map::new();
    for (name, condition) in &conditions {
        results.insert(name.clone(), json!(condition.is_met(&reached)));
    }
    let is_due = conditions.is_empty() || results.values().any(|met| *met == true);
    let (mut done, mut acked) = (false, false);
    // Whoever rolls over by conditions asks again and again: what the new index is made with is read once it is due.
    if is_due || dry_run {
        let made = take_made(&mut object)?;
        active.check(&to, replicas(&call.state(), &to, &made.settings)?)?;
        if !dry_run {
            let alias = call.index().to_owned();
            let request = RollOver { alias, from: old, to: to.clone(), made };
            done = call.submit(vec![Event::RollOver(Box::new(request))]).await?;
            let left = give_up - env.now();
            acked = done && active.wait_everywhere(&call.node, &to, left).await;
        }
    }
    Ok(json!({
        "acknowledged": done,
        "shards_acknowledged": acked,
        "old_index": from,
        "new_index": to,
        "rolled_over": done,
        "dry_run": dry_run,
        "conditions": results,
    })
    .into())
}

/// The index that takes the writes of the alias that the path names.
fn source(call: &Call) -> Result<Index> {
    let state = call.state();
    let alias = call.index();
    if state.indices.contains_key(alias) {
        return Err(bad_request(format!(
            "rollover target is a concrete index: [{alias}]; only an alias can be rolled over"
        )));
    }
    let found = super::names::write_index(&state, alias)?;
    // Where no index takes them, it is the name itself.
    state.index(found).ok_or_else(|| no_such_index(&state, alias))
}

async fn reached(
    call: &Call,
    index: &str,
    conditions: &[(String, Condition)],
    limit: Duration,
) -> Result<Reached> {
    let state = call.state();
    let made_ms = state.indices.get(index).map_or(0, |meta| meta.created_ms);
    let age = Duration::from_millis(call.node.core().env.epoch_ms().saturating_sub(made_ms));
    let mut reached = Reached { age, ..Reached::default() };
    if conditions.iter().all(|(_, condition)| matches!(condition, Condition::Age(_))) {
        return Ok(reached);
    }
    let places = primaries(&state, &[index.to_owned()]);
    let action = ShardAction::Stats { segments: false };
    let answers = on_shards(&call.node, places, &action, limit).await;
    // A shard that does not answer counts as empty: the next call finds out.
    for (_, stats) in stats_of(&answers) {
        reached.docs += stats.documents;
        reached.bytes += stats.store_bytes;
        reached.largest_shard_docs = reached.largest_shard_docs.max(stats.documents);
        reached.largest_shard_bytes = reached.largest_shard_bytes.max(stats.store_bytes);
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_on() {
        assert_eq!(next_name("logs-1").unwrap(), "logs-000002");
        assert_eq!(next_name("logs-2026-000341").unwrap(), "logs-2026-000342");
        for name in ["logs", "logs-", "logs-a1", "logs-18446744073709551615"] {
            assert!(
                next_name(name).unwrap_err().reason.contains("does not match pattern"),
                "{name}"
            );
        }
    }

    #[test]
    fn conditions_hold_from_what_they_name() {
        let given = json!({
            "max_docs": 5, "max_size": "2048b", "max_age": "60m",
            "max_primary_shard_size": "1kb", "max_primary_shard_docs": "4",
        });
        let conditions = read_conditions(Some(given)).unwrap();
        let met = |reached: &Reached| -> Vec<&str> {
            let met = conditions.iter().filter(|(_, condition)| condition.is_met(reached));
            met.map(|(name, _)| name.as_str()).collect()
        };
        let mut reached = Reached {
            age: Duration::from_secs(3599),
            docs: 4,
            bytes: 2047,
            largest_shard_bytes: 1023,
            largest_shard_docs: 3,
        };
        assert!(met(&reached).is_empty());
        (reached.docs, reached.bytes) = (5, 2048);
        assert_eq!(met(&reached), ["[max_docs: 5]", "[max_size: 2kb]"]);
        (reached.largest_shard_bytes, reached.largest_shard_docs) = (1024, 4);
        reached.age = Duration::from_secs(3600);
        let met = met(&reached);
        assert!(met.len() == 5 && met.contains(&"[max_age: 1h]"), "{met:?}");
        let said = read_conditions(Some(json!({"max_doc": 1}))).unwrap_err().reason;
        assert!(said.contains("did you mean \"max_docs\""), "{said}");
        assert!(read_conditions(Some(json!({"max_docs": "x"}))).is_err());
        assert!(read_conditions(Some(json!([]))).is_err());
    }
}
