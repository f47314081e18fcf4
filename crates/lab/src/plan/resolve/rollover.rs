//! When an index of a plan rolls over.

use std::time::Duration;

use toml::Spanned;

use super::together::Together;
use crate::error::Result;
use crate::plan::by_world::ByWorld;
use crate::plan::document::{ROLLOVER, RolloverTable};
use crate::plan::file::Plan;
use crate::plan::rollover::RolloverRule;

/// `indices.lifecycle.poll_interval` where the plan does not set it.
const POLL_INTERVAL: Duration = Duration::from_secs(600);

impl Plan {
    pub(super) fn rollover(&self, table: &Spanned<RolloverTable>) -> Result<ByWorld<RolloverRule>> {
        let real = self.rollover_rule(table)?;
        let full = match &table.get_ref().full {
            Some(full) => self.rollover_rule(full)?,
            None => real.clone(),
        };
        Ok(ByWorld { real, full })
    }

    fn rollover_rule(&self, table: &Spanned<RolloverTable>) -> Result<RolloverRule> {
        let RolloverTable { max_docs, max_size, max_age, poll_interval, .. } = table.get_ref();
        let time = |key: &str, text: &Spanned<String>| self.time(&ROLLOVER, key, text);
        let size = |text: &Spanned<String>| self.size(&ROLLOVER, "max_size", text);
        let docs = |docs: &Spanned<i64>| self.number(&ROLLOVER, "max_docs", docs);
        let found = (
            max_docs.as_ref().map(docs).transpose(),
            max_size.as_ref().map(size).transpose(),
            max_age.as_ref().map(|text| time("max_age", text)).transpose(),
            poll_interval.as_ref().map(|text| time("poll_interval", text)).transpose(),
        );
        let (max_docs, max_bytes, max_age, interval) = found.together()?;
        let poll_interval = interval.unwrap_or(POLL_INTERVAL);
        let rule = RolloverRule { max_docs, max_bytes, max_age, poll_interval };
        if rule.max_docs.is_none() && rule.max_bytes.is_none() && rule.max_age.is_none() {
            let message = "say when it rolls over: max_docs, max_size or max_age";
            return Err(self.error(table.span(), message));
        }
        Ok(rule)
    }
}
