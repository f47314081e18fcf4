//! The aggregation `terms` from JSON, and how many buckets are shown.

use super::limits::{MAX_TERMS, MAX_TERMS_SIZE, few};
use super::options::Options;
use crate::aggregation::{AggregationKind, Chosen};
use crate::error::{Result, ensure};
use crate::json::{Node, Value};

/// How many buckets are shown.
pub(super) fn size(options: &Options<'_>, name: &str) -> Result<Option<usize>> {
    options.read(name, |node, name| {
        let count = node.count(name)?;
        ensure(count > 0, node.at, format_args!("[{name}] must be greater than 0"))?;
        Ok(count.min(MAX_TERMS_SIZE) as usize)
    })
}

/// How many buckets are shown, and how many a shard sends: as `BucketUtils.suggestShardSideQueueSize`.
pub(super) fn sizes(options: &Options<'_>, default: usize) -> Result<(usize, usize)> {
    let shown = size(options, "size")?.unwrap_or(default);
    let shard_size = size(options, "shard_size")?.unwrap_or(shown + shown / 2 + 10);
    Ok((shown, shard_size.max(shown)))
}

pub(super) fn terms(options: &Options<'_>) -> Result<AggregationKind> {
    let (size, shard_size) = sizes(options, 10)?;
    let (include, exclude) = (options.read("include", chosen)?, options.read("exclude", chosen)?);
    if include.is_some() || exclude.is_some() {
        let is_of_index =
            options.get("field").is_some_and(|of| of.value == Value::Text("_index".into()));
        let reason = "[include] and [exclude] with [missing], or of [_index], are not supported by this engine; leave \
                      buckets of the answer out";
        ensure(options.get("missing").is_none() && !is_of_index, options.node.at, reason)?;
    }
    Ok(AggregationKind::Terms { size, shard_size, include, exclude })
}

/// A regular expression, or values.
fn chosen(node: &Node, name: &str) -> Result<Chosen> {
    match &node.value {
        Value::Text(text) => Ok(Chosen::Regexp(text.to_string())),
        Value::List(items) => {
            few(node.at, items.len(), (MAX_TERMS, "values of [include] or [exclude]"))?;
            let values = items.iter().map(|item| item.literal(name));
            Ok(Chosen::Values(values.collect::<Result<_>>()?))
        }
        _ => Err(node.wrong(name, "a regular expression, or an array of values")),
    }
}
