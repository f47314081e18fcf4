//! `_terms_enum`: the values of a keyword field that begin so, as Elasticsearch lists them from 7.14 on. They are those
//! of what a refresh made visible, also of documents that were deleted since and are not merged away.

use std::collections::BTreeSet;

use query::{FieldType, Mapping};
use serde_json::{Value, json};

use super::answer::Reply;
use super::call::{Call, PATIENCE, object};
use super::error::{bad_request, invalid, not_supported};
use super::names::indices;
use super::spread::{on_shards, primaries, shards_json};
use engine::transport::{Result, ShardAction, ShardAnswer};

/// Values of an answer, at most: each may have 32 766 bytes.
const VALUES_MAX: u64 = 1000;
const VALUES: u64 = 10;

/// `GET /{index}/_terms_enum`.
pub(super) async fn terms_enum(call: Call) -> Result<Reply> {
    let (mut field, mut begin, mut size) = (None, String::new(), VALUES);
    for (key, value) in object(call.json()?, ": {\"field\", \"string\", \"size\"}")? {
        match (key.as_str(), value) {
            ("field", Value::String(text)) => field = Some(text),
            ("string", Value::String(text)) => begin = text,
            ("size", Value::Number(number)) => size = number.as_u64().unwrap_or_default(),
            ("string", Value::Null) | ("case_insensitive", Value::Bool(false)) => {}
            (key, value) => {
                let what = format!("[{key}] of _terms_enum that is {value}");
                return Err(not_supported(&what, "send [field], [string] and [size]"));
            }
        }
    }
    let field = field.ok_or_else(|| invalid("field cannot be null"))?;
    if !(1..=VALUES_MAX).contains(&size) {
        return Err(bad_request(format!("[size] is a number from 1 to {VALUES_MAX}")));
    }
    let state = call.state();
    let mut holding = Vec::new();
    for name in indices(&state, call.indices(), &call.query)? {
        let Some(meta) = state.indices.get(&name) else { continue };
        match Mapping::stored(&meta.mappings)?.field(&field) {
            None => {}
            Some(of) if of.kind == FieldType::Keyword && of.has_column => holding.push(name),
            Some(of) => {
                let kind = of.kind.name();
                let what =
                    format!("_terms_enum of [{field}], which is of type [{kind}] in [{name}],");
                return Err(not_supported(&what, "name a keyword field with doc_values"));
            }
        }
    }
    let asked = primaries(&state, &holding);
    let (total, most) = (asked.len(), size as usize);
    let action = ShardAction::Terms { field, begin, most };
    let answers = on_shards(&call.node, asked, &action, PATIENCE).await;
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for (_, answer) in &answers {
        if let Ok(ShardAnswer::Terms(terms)) = answer {
            found.extend(terms.iter().map(String::as_str));
        }
    }
    let terms: Vec<&str> = found.into_iter().take(most).collect();
    let complete = answers.iter().all(|(_, answer)| answer.is_ok());
    let shards = shards_json(total, &answers);
    Ok(json!({ "_shards": shards, "terms": terms, "complete": complete }).into())
}
