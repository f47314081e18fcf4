//! What hits show, from JSON; and `top_hits`.

use super::limits::{MAX_COLUMN_FIELDS, MAX_INNER_WINDOW, SOURCE_PATTERNS, few};
use super::options::Options;
use super::{query, sort};
use crate::aggregation::AggregationKind;
use crate::error::{Result, SearchError, Spot, ensure, illegal, parsing};
use crate::hits::{ColumnField, SortKey, TopHits};
use crate::json::{Node, Value};
use crate::mapping::is_metadata;
use crate::source::SourceFilter;

pub(super) fn top_hits(options: &Options<'_>) -> Result<AggregationKind> {
    let from = options.read("from", Node::count)?.unwrap_or(0) as usize;
    let size = options.read("size", Node::count)?.unwrap_or(3) as usize;
    let reach = from.saturating_add(size);
    let reason = format_args!(
        "Top hits result window is too large, from + size must be less than or equal to: [{MAX_INNER_WINDOW}] but was \
         [{reach}]"
    );
    ensure(reach <= MAX_INNER_WINDOW, options.node.at, reason)?;
    let mut sort = options.read("sort", |node, _| sort::keys(node))?.unwrap_or_default();
    // That is the order where none is given, and hits show their scores then.
    if sort == [SortKey::of("_score", None)] {
        sort.clear();
    }
    let mut shown = options.read("_source", |node, _| source(node))?.unwrap_or_default();
    if let Some(node) = options.get("stored_fields") {
        stored_fields(node, options, &mut shown)?;
    }
    Ok(AggregationKind::TopHits(TopHits {
        from,
        size,
        sort,
        source: shown,
        column_fields: options
            .read("docvalue_fields", |node, _| column_fields(node))?
            .unwrap_or_default(),
    }))
}

/// `stored_fields` beside these options. No field is stored, so that it says only whether `_source` is shown: never, or
/// where it is asked for.
pub(super) fn stored_fields(
    node: &Node,
    options: &Options<'_>,
    shown: &mut SourceFilter,
) -> Result<()> {
    match texts(node, "stored_fields")?.join(",").as_str() {
        "_none_" => {
            let asked = options.get("_source").is_some_and(|of| of.value != Value::Bool(false));
            let reason = "[stored_fields] cannot be disabled if [_source] is requested";
            ensure(!asked, node.at, reason)?;
            shown.enabled = false;
        }
        "*" => shown.enabled &= options.get("_source").is_some(),
        names => {
            let reason = "is not supported by this engine, which stores no field; send _none_ or *, and [_source]";
            return Err(parsing(node.at, format!("[stored_fields] [{names}] {reason}")));
        }
    }
    Ok(())
}

/// `docvalue_fields`: names, or objects with a format.
pub(super) fn column_fields(node: &Node) -> Result<Vec<ColumnField>> {
    few_columns(node.items().len())?;
    let read = node.items().iter().map(|item| match &item.value {
        Value::Object(_) => {
            let options = item.options("docvalue_fields", "field format", 0)?;
            let format = options
                .get("format")
                .filter(|node| node.value != Value::Text("use_field_mapping".into()));
            Ok(ColumnField {
                pattern: column_pattern(options.need("field")?, "field")?,
                format: format.map(|node| query::date_format(node, "format")).transpose()?,
            })
        }
        _ => Ok(ColumnField { pattern: column_pattern(item, "docvalue_fields")?, format: None }),
    });
    read.collect()
}

/// Adds `docvalue_fields` of a path, `a,b*`, to those of a body.
pub fn add_columns_of_path(text: &str, columns: &mut Vec<ColumnField>) -> Result<()> {
    let at = Spot::default();
    let names = text.split(',').filter(|name| !name.is_empty());
    let items = names.map(|name| Node { at, value: Value::Text(name.into()) }).collect();
    let read = column_fields(&Node { at, value: Value::List(items) });
    columns.extend(read.map_err(|error| SearchError { at: None, ..error })?);
    few_columns(columns.len())
}

fn few_columns(count: usize) -> Result<()> {
    if count <= MAX_COLUMN_FIELDS {
        return Ok(());
    }
    Err(illegal(format!(
        "Trying to retrieve too many docvalue_fields. Must be less than or equal to: [{MAX_COLUMN_FIELDS}] but was \
         [{count}] (index.max_docvalue_fields_search)"
    )))
}

fn column_pattern(node: &Node, name: &str) -> Result<String> {
    let pattern = node.text(name)?;
    let reason = format_args!(
        "[docvalue_fields] of the metadata field [{pattern}] is not supported by this engine; hits show [_id] and \
         [_index] in any case, and the others with [version] and [seq_no_primary_term]"
    );
    ensure(!is_metadata(&pattern), node.at, reason)?;
    Ok(pattern)
}

pub(super) fn texts(node: &Node, what: &str) -> Result<Vec<String>> {
    node.items().iter().map(|item| item.text(what)).collect()
}

pub(super) fn source(node: &Node) -> Result<SourceFilter> {
    let patterns = |node: &Node, name: &str| {
        few(node.at, node.items().len(), SOURCE_PATTERNS)?;
        texts(node, name)
    };
    let mut filter = SourceFilter::default();
    match &node.value {
        Value::Bool(enabled) => filter.enabled = *enabled,
        Value::Object(_) => {
            let options = node.options("_source", "includes include excludes exclude", 0)?;
            for (name, node) in options.iter() {
                match name.starts_with("include") {
                    true => filter.includes = patterns(node, name)?,
                    false => filter.excludes = patterns(node, name)?,
                }
            }
        }
        Value::Number(_) => {
            return Err(node.wrong("_source", "a boolean, a string, a list or an object"));
        }
        _ => filter.includes = patterns(node, "_source")?,
    }
    Ok(filter)
}
