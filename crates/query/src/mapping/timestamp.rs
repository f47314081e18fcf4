//! `_data_stream_timestamp`: that each document has one date in `@timestamp`, as those of data streams do. Indices may
//! ask for it, too.

use serde_json::Value;

use super::field::known_keys;

/// What a mapping asks for it by.
pub(super) const DATA_STREAM_TIMESTAMP: &str = "_data_stream_timestamp";
/// The field that has it.
pub(super) const FIELD: &str = "@timestamp";
/// What is said of a document without it, or with several, in the words of OpenSearch.
pub(super) const NOT_ONE: &str =
    "documents must contain a single-valued timestamp field '@timestamp' of date type";

/// Whether it is asked for. The error says what is wrong.
pub(super) fn is_asked_for(json: Option<&Value>) -> Result<bool, String> {
    let Some(json) = json else { return Ok(false) };
    let object = json.as_object().ok_or("it is an object: {\"enabled\": true}")?;
    known_keys(object, "enabled")?;
    match object.get("enabled") {
        None => Ok(false),
        Some(Value::Bool(enabled)) => Ok(*enabled),
        Some(other) => Err(format!("\"enabled\" is true or false, not {other}")),
    }
}
