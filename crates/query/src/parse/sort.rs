//! `sort` and `search_after` from JSON.

use record::names::did_you_mean;

use crate::Literal;
use crate::error::{SearchError, illegal, parsing};
use crate::json::{Node, Value};
use crate::request::{SearchRequest, SortKey, SortMissing, SortMode, SortTarget, SortValue};

type Result<T> = std::result::Result<T, SearchError>;

/// The keys of an order: a name, an object, or several of them.
pub(super) fn keys(node: &Node) -> Result<Vec<SortKey>> {
    let mut keys = Vec::new();
    for item in node.items() {
        match &item.value {
            Value::Text(name) => keys.push(key(name, None)),
            Value::Object(members) => {
                for member in members {
                    keys.push(options(&member.name, &member.node)?);
                }
            }
            _ => return Err(item.wrong("sort", "a field, or an object with one")),
        }
    }
    Ok(keys)
}

/// `a:desc,_score` of a path.
pub(super) fn of_path(text: &str) -> Result<Vec<SortKey>> {
    let parts = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let Some((name, order)) = part.rsplit_once(':') else { return Ok(key(part, None)) };
        let descending =
            descending(order).ok_or_else(|| illegal(format!("unknown sort order [{order}]")))?;
        Ok(key(name, Some(descending)))
    });
    parts.collect()
}

fn key(name: &str, descending: Option<bool>) -> SortKey {
    let target = match name {
        "_score" => SortTarget::Score,
        "_doc" => SortTarget::Doc,
        field => SortTarget::Field(field.to_owned()),
    };
    let descending = descending.unwrap_or(target == SortTarget::Score);
    let mode = if descending { SortMode::Max } else { SortMode::Min };
    SortKey { target, descending, missing: SortMissing::Last, mode, may_be_unmapped: false }
}

fn descending(order: &str) -> Option<bool> {
    match order.to_ascii_lowercase().as_str() {
        "asc" => Some(false),
        "desc" => Some(true),
        _ => None,
    }
}

fn order(node: &Node) -> Result<bool> {
    let text = node.text("order")?;
    descending(&text)
        .ok_or_else(|| parsing(node.at, format!("sort order [{text}] is neither asc nor desc")))
}

fn options(name: &str, node: &Node) -> Result<SortKey> {
    const KNOWN: [&str; 6] =
        ["order", "missing", "mode", "unmapped_type", "format", "numeric_type"];
    let Value::Object(members) = &node.value else { return Ok(key(name, Some(order(node)?))) };
    let given = members.iter().find(|member| member.name == "order");
    let mut key = key(name, given.map(|member| order(&member.node)).transpose()?);
    for member in members {
        let node = &member.node;
        match member.name.as_str() {
            "order" => {}
            "missing" => {
                key.missing = match &node.value {
                    Value::Text(text) if text == "_last" => SortMissing::Last,
                    Value::Text(text) if text == "_first" => SortMissing::First,
                    Value::Text(text) => SortMissing::Value(Literal::Text(text.clone())),
                    _ => SortMissing::Value(number(node, "missing")?),
                }
            }
            "mode" => {
                key.mode = match node.text("mode")?.as_str() {
                    "min" => SortMode::Min,
                    "max" => SortMode::Max,
                    other => {
                        let reason =
                            format!("sort mode [{other}] is not supported; send min or max");
                        return Err(parsing(node.at, reason));
                    }
                }
            }
            "unmapped_type" => {
                node.text("unmapped_type")?;
                key.may_be_unmapped = true;
            }
            unknown => {
                let near = did_you_mean(unknown, KNOWN);
                let reason = format!("[field_sort] unknown field [{unknown}]{near}");
                return Err(parsing(member.at, reason));
            }
        }
    }
    Ok(key)
}

fn number(node: &Node, what: &str) -> Result<Literal> {
    match node.integer(what) {
        Ok(whole) => Ok(Literal::Integer(whole)),
        Err(_) => node.float(what).map(Literal::Float),
    }
}

/// The values that hits must lie behind: one for each key of the order.
pub(super) fn after(node: &Node, request: &SearchRequest) -> Result<Vec<SortValue>> {
    let items = node.list("search_after")?;
    if request.sort.is_empty() {
        return Err(parsing(
            node.at,
            "sort must contain at least one field when using search_after",
        ));
    }
    if items.len() != request.sort.len() {
        let reason = format!(
            "search_after has {} value(s) but sort has {}",
            items.len(),
            request.sort.len()
        );
        return Err(parsing(node.at, reason));
    }
    if request.from > 0 {
        let reason = "`from` parameter must be set to 0 when `search_after` is used";
        return Err(parsing(node.at, reason));
    }
    let value = |item: &Node| {
        Ok(match &item.value {
            Value::Null => SortValue::Null,
            Value::Bool(yes) => SortValue::Long(i64::from(*yes)),
            Value::Text(text) => SortValue::Text(text.clone()),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => SortValue::Long(whole),
                None => SortValue::Double(item.float("search_after")?),
            },
            _ => return Err(item.wrong("search_after", "an array of values")),
        })
    };
    items.iter().map(value).collect()
}
