//! `sort` and `search_after` from JSON.

use super::limits::{SORT_KEYS, SORT_POINTS, few};
use super::options::Options;
use super::places::{point, unit_m};
use crate::error::{Result, ensure, illegal, parsing};
use crate::hits::{SortDistance, SortKey, SortMissing, SortTarget, SortValue};
use crate::json::{Node, Value};
use crate::refused::{SORTS, refusal};
use crate::request::SearchRequest;
use crate::value::Literal;

/// The keys of an order: a name, an object, or several of them.
pub(super) fn keys(node: &Node) -> Result<Vec<SortKey>> {
    let mut keys = Vec::new();
    for item in node.items() {
        match &item.value {
            Value::Text(name) => keys.push(SortKey::of(name, None)),
            Value::Object(members) => {
                for member in members {
                    keys.push(options(&member.name, &member.node)?);
                }
            }
            _ => return Err(item.wrong("sort", "a field, or an object with one")),
        }
        few(node.at, keys.len(), SORT_KEYS)?;
    }
    Ok(keys)
}

/// Reads `sort` of a path: `a:desc,_score`.
pub fn of_path(text: &str) -> Result<Vec<SortKey>> {
    let parts = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let Some((name, order)) = part.rsplit_once(':') else { return Ok(SortKey::of(part, None)) };
        let descending =
            descending(order).ok_or_else(|| illegal(format!("unknown sort order [{order}]")))?;
        Ok(SortKey::of(name, Some(descending)))
    });
    parts.collect()
}

fn descending(order: &str) -> Option<bool> {
    match order.to_ascii_lowercase().as_str() {
        "asc" => Some(false),
        "desc" => Some(true),
        _ => None,
    }
}

/// Whether an order is `desc`; else it is `asc`.
pub(super) fn is_descending(node: &Node) -> Result<bool> {
    let text = node.text("order")?;
    descending(&text)
        .ok_or_else(|| parsing(node.at, format!("order [{text}] is neither asc nor desc")))
}

fn options(name: &str, node: &Node) -> Result<SortKey> {
    let what = |name: &str| format!("[{name}] in sort");
    let refusal = refusal(SORTS, &what(name), name).filter(|_| name.starts_with('_'));
    ensure(refusal.is_none(), node.at, refusal.unwrap_or_default())?;
    node.refuse_names(SORTS, what)?;
    if name == "_geo_distance" {
        return distance(node);
    }
    if !matches!(node.value, Value::Object(_)) {
        return Ok(SortKey::of(name, Some(is_descending(node)?)));
    }
    let known = if name == "_score" { "order" } else { "order missing mode unmapped_type" };
    let options = node.options("field_sort", known, 0)?;
    let mut key = SortKey::of(name, options.read("order", |node, _| is_descending(node))?);
    read_mode(&mut key, &options)?;
    key.missing = match options.read("missing", Node::literal)? {
        None => SortMissing::Last,
        Some(Literal::Text(text)) if text == "_last" => SortMissing::Last,
        Some(Literal::Text(text)) if text == "_first" => SortMissing::First,
        Some(value) => SortMissing::Value(value),
    };
    // Whether there is such a type matters to indices without the field alone, as in the field.
    key.unmapped_type = options.read("unmapped_type", Node::text)?;
    Ok(key)
}

fn read_mode(key: &mut SortKey, options: &Options<'_>) -> Result<()> {
    if options.get("mode").is_some() {
        key.takes_greatest = options.one_of("mode", &["min", "max"])? == "max";
    }
    Ok(())
}

/// `_geo_distance`: how far a field of points is from one or several.
fn distance(node: &Node) -> Result<SortKey> {
    const KNOWN: &str =
        "order unit mode distance_type=arc ignore_unmapped validation_method=strict";
    let options = node.options("_geo_distance", KNOWN, 1)?;
    let (field, from) = options.field()?;
    let is_number = |item: &Node| matches!(item.value, Value::Number(_));
    let origins = match &from.value {
        Value::List(items) if !items.iter().any(is_number) => {
            few(from.at, items.len(), SORT_POINTS)?;
            items.iter().map(|item| point(item, field)).collect::<Result<Vec<_>>>()?
        }
        _ => vec![point(from, field)?],
    };
    if origins.is_empty() {
        return Err(from.wrong(field, "a point, or some"));
    }
    let distance = SortDistance {
        field: field.to_owned(),
        origins,
        unit_m: unit_m(&options)?,
        ignore_unmapped: options.read("ignore_unmapped", Node::bool)?.unwrap_or(false),
    };
    let descending = options.read("order", |node, _| is_descending(node))?;
    let mut key = SortKey::by(SortTarget::Distance(distance), descending);
    read_mode(&mut key, &options)?;
    Ok(key)
}

/// The values that hits must lie behind: one for each key of the order.
pub(super) fn after(node: &Node, request: &SearchRequest) -> Result<Vec<SortValue>> {
    let items = node.list("search_after")?;
    let (values, keys) = (items.len(), request.sort.len());
    ensure(keys > 0, node.at, "sort must contain at least one field when using search_after")?;
    let reason = format_args!("search_after has {values} value(s) but sort has {keys}");
    ensure(values == keys, node.at, reason)?;
    let reason = "`from` parameter must be set to 0 when `search_after` is used";
    ensure(request.from == 0, node.at, reason)?;
    let value = |item: &Node| match &item.value {
        Value::Null => Ok(None),
        Value::Bool(yes) => Ok(Some(Literal::Integer(i64::from(*yes)))),
        _ => item.literal("search_after").map(Some),
    };
    items.iter().map(value).collect()
}
