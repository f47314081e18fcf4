//! Rolling an alias over: the request with the plan's conditions, as index lifecycle management makes it.

use serde_json::{Value, json};

use crate::plan::RolloverRule;

#[derive(Clone)]
pub(crate) struct Rollover {
    /// Which write target of the driver's ledgers it is.
    pub(crate) target: usize,
    pub(crate) rule: RolloverRule,
    /// The body that creates a new index: `settings` and `mappings`.
    pub(crate) index: Value,
}

impl Rollover {
    pub(super) fn body(&self) -> Value {
        let RolloverRule { max_docs, max_bytes, max_age, .. } = &self.rule;
        let mut conditions = json!({});
        if let Some(docs) = max_docs {
            conditions["max_docs"] = json!(docs);
        }
        if let Some(bytes) = max_bytes {
            conditions["max_size"] = json!(format!("{bytes}b"));
        }
        if let Some(age) = max_age {
            conditions["max_age"] = json!(format!("{}ms", age.as_millis()));
        }
        let mut body = self.index.clone();
        body["conditions"] = conditions;
        body
    }
}
