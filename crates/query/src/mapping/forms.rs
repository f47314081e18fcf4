//! The forms in which documents write numbers, ranges and points.

use crate::grid::GEOHASH;
use crate::json::{Node, Value};
use crate::value::point;

pub(super) fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// A whole number. Elasticsearch coerces unless it is told not to: the fraction is cut off, and strings are read; with
/// spaces around them unless it is a `long`.
pub(super) fn integer(json: &Value, coerce: bool, is_long: bool) -> Option<i64> {
    let is_whole = |number: f64| coerce || number.fract() == 0.0;
    let cut = |number: f64| (number.abs() < 9.2e18 && is_whole(number)).then_some(number as i64);
    match json {
        Value::Text(_) if !coerce => None,
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(cut),
        Value::Number(number) => number.as_i64(),
        Value::Text(text) => {
            let text = if is_long { text } else { text.trim() };
            text.parse().ok().or_else(|| text.parse().ok().and_then(cut))
        }
        _ => None,
    }
}

/// The ends of a range of numbers; one that is left out is as far as numbers go.
pub(super) fn range(json: &Value) -> Option<(f64, f64)> {
    let Value::Object(members) = json else { return None };
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for member in members {
        if member.node.value == Value::Null {
            continue;
        }
        let end = member.node.float("").ok()?;
        match member.name.as_ref() {
            "gte" => low = end,
            "gt" => low = end.next_up(),
            "lte" => high = end,
            "lt" => high = end.next_down(),
            _ => return None,
        }
    }
    (low <= high).then_some((low, high))
}

/// Whether a value that is none here may be one in the field: such a one is refused where values of no form are left
/// out. An object is, of all types but a geo_point; that may be a geohash or GeoJSON, has coordinates as texts, and is
/// moved onto the Earth.
pub(super) fn is_other_form(json: &Value, is_point: bool) -> bool {
    match json {
        Value::Object(_) if is_point => {
            let is_number = |name: &str| match json.member(name).map(|node| &node.value) {
                Some(Value::Text(text)) => text.trim().parse::<f64>().is_ok(),
                other => matches!(other, Some(Value::Number(_))),
            };
            let has = |name: &str| json.member(name).is_some();
            let has_coordinates = is_number("lat") && is_number("lon");
            has_coordinates || has("geohash") || (has("type") && has("coordinates"))
        }
        Value::Object(_) => true,
        Value::Text(text) if is_point && !text.is_empty() => {
            point(text).is_some() || text.chars().all(|letter| GEOHASH.contains(letter))
        }
        _ => is_point && place(json).is_some(),
    }
}

/// Latitude and longitude.
pub(super) fn place(json: &Value) -> Option<(f64, f64)> {
    match json {
        Value::Text(text) => point(text),
        Value::List(items) => match items.as_slice() {
            [lon, lat] | [lon, lat, _] => Some((number(lat)?, number(lon)?)),
            _ => None,
        },
        Value::Object(members) => {
            let point = (number(json.member("lat")?)?, number(json.member("lon")?)?);
            (members.len() == 2).then_some(point)
        }
        _ => None,
    }
}
