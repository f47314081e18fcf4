//! Who rolls an index over: asks the leader every so often, as index lifecycle management does, with the conditions of the
//! plan.

use bytes::Bytes;
use serde_json::{Value, json};

use super::writing::Driver;
use crate::Error;
use crate::plan::RolloverRule;

/// Rolls one alias over.
#[derive(Clone)]
pub(super) struct Keeper {
    /// Which family of the driver's books it is about.
    pub(super) family: usize,
    pub(super) rule: RolloverRule,
    /// What a new index is like: `settings` and `mappings`.
    pub(super) index: Value,
}

impl Keeper {
    /// Goes on until the driver stops.
    pub(super) async fn run(&self, driver: &Driver) -> Result<(), Error> {
        let body = Bytes::from(self.body().to_string());
        let path = format!("/{}/_rollover", driver.books.families[self.family].name);
        let mut next = driver.env.now();
        let mut was_right = false;
        loop {
            next = next + self.rule.poll_interval;
            if !driver.wait_until(next).await {
                return Ok(());
            }
            let answer = match driver.ask("POST", &path, body.clone()).await {
                Ok(answer) => answer,
                // A request that cannot be right will never be. One that was may come while another is still at it.
                Err(error @ clusters::Error::Refused { status: 400, .. }) if !was_right => {
                    return Err(error.into());
                }
                Err(_) => continue,
            };
            was_right = true;
            // Without an answer to the one before, this is how it is heard of.
            let rolled = answer["rolled_over"] == true;
            let index = if rolled { &answer["new_index"] } else { &answer["old_index"] };
            if let Some(index) = index.as_str() {
                driver.books.of(self.family, index);
            }
        }
    }

    /// The request's body.
    fn body(&self) -> Value {
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
