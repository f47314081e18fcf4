//! A TOML value as the text that a setting or a column takes.

use toml::Value;

/// The text of a string, number or boolean; otherwise what it is instead, for a message.
pub(super) fn text(value: &Value) -> Result<String, &'static str> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(_) => return Err("a date"),
        Value::Array(_) => return Err("an array"),
        Value::Table(_) => return Err("a table"),
    })
}
