//! What becomes of a field that the mapping does not name: by the `dynamic` of the object that it stands in it is
//! mapped by its first value, kept in `_source` alone, or refused with its document.

use serde_json::Value as Json;

use crate::json::Value;

/// `dynamic` of an object; one that does not say has that of the object around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dynamic {
    /// It is mapped.
    True,
    /// It is kept in `_source` alone.
    False,
    /// Its document is refused.
    Strict,
}

impl Dynamic {
    /// The error says what it may be.
    pub(super) fn read(given: Option<&Json>, around: Dynamic) -> Result<Dynamic, String> {
        match given {
            None => Ok(around),
            Some(Json::Bool(true)) => Ok(Dynamic::True),
            Some(Json::Bool(false)) => Ok(Dynamic::False),
            Some(Json::String(given)) if given == "true" => Ok(Dynamic::True),
            Some(Json::String(given)) if given == "false" => Ok(Dynamic::False),
            Some(Json::String(given)) if given == "strict" => Ok(Dynamic::Strict),
            Some(given) => Err(format!("\"dynamic\" is true, false or \"strict\", not {given}")),
        }
    }
}

/// Whether a value says of what type its field is: null and an array without anything do not.
pub(super) fn adds(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::List(items) => items.iter().any(|item| adds(&item.value)),
        _ => true,
    }
}
