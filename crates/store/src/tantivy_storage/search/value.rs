//! Values of queries, in the type of their field.

use std::net::Ipv6Addr;
use std::ops::Bound;

use tantivy::schema::Field as IndexField;
use tantivy::{DateTime, Term};

use query::{Field, FieldType, Literal, RangeEnd, SearchError, illegal, unfit};

use super::column::{double_bits, long_bits};
use query::date::{DateContext, DateFormat};
use query::mapping::value::ip;

/// A value in the type of its field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Long(i64),
    Double(f64),
    Boolean(bool),
    /// Milliseconds since 1970.
    Date(i64),
    Ip(Ipv6Addr),
    Text(String),
}

type Bounds = (Bound<Value>, Bound<Value>);
/// Reads an end of a range; whether it is the lower one.
type ReadEnd<'a> = &'a dyn Fn(&RangeEnd, bool) -> Result<Bound<Value>, SearchError>;

impl Value {
    pub(super) fn term(self, field: IndexField) -> Term {
        match self {
            Value::Long(number) => Term::from_field_i64(field, number),
            Value::Double(number) => Term::from_field_f64(field, number + 0.0),
            Value::Boolean(yes) => Term::from_field_bool(field, yes),
            Value::Date(ms) => {
                let nanos = ms.saturating_mul(1_000_000);
                Term::from_field_date(field, DateTime::from_timestamp_nanos(nanos))
            }
            Value::Ip(address) => Term::from_field_ip_addr(field, address),
            Value::Text(text) => Term::from_field_text(field, &text),
        }
    }

    /// The bits that [`super::column::Column::each_bits`] gives for it. Texts have none.
    pub(super) fn bits(&self) -> u128 {
        match self {
            Value::Long(number) | Value::Date(number) => long_bits(*number).into(),
            Value::Double(number) => double_bits(*number).into(),
            Value::Boolean(yes) => long_bits(i64::from(*yes)).into(),
            Value::Ip(address) => address.to_bits(),
            Value::Text(_) => 0,
        }
    }

    /// As a number; none of texts and addresses.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Long(number) | Value::Date(number) => Some(*number as f64),
            Value::Double(number) => Some(*number),
            Value::Boolean(yes) => Some(f64::from(*yes)),
            Value::Ip(_) | Value::Text(_) => None,
        }
    }
}

/// Texts have no columns, points no order.
pub(super) fn check_sortable(path: &str, kind: FieldType) -> Result<(), SearchError> {
    match kind {
        FieldType::Text => Err(illegal(format!(
            "Text fields are not optimised for operations that require per-document field data like aggregations \
             and sorting, so these operations are disabled by default. Please use a keyword field instead of [{path}]."
        ))),
        FieldType::GeoPoint => {
            Err(illegal(format!("can't sort or aggregate on geo_point field [{path}]")))
        }
        _ => Ok(()),
    }
}

/// How dates of a field are written.
pub(super) fn format_of(mapped: &Field) -> DateFormat {
    mapped.format().and_then(|text| DateFormat::parse(text).ok()).unwrap_or_default()
}

fn no_number(path: &str, text: &str) -> SearchError {
    unfit(format!("failed to create query on [{path}]: For input string: \"{text}\""))
}

fn double(path: &str, literal: &Literal) -> Result<f64, SearchError> {
    let number = match literal {
        Literal::Integer(number) => Some(*number as f64),
        Literal::Float(number) => Some(*number),
        Literal::Text(text) => text.trim().parse().ok(),
        Literal::Boolean(_) => None,
    };
    number.filter(|n: &f64| n.is_finite()).ok_or_else(|| no_number(path, &literal.text()))
}

/// A whole number exactly, or the number that it is not.
fn long(path: &str, literal: &Literal) -> Result<Result<i64, f64>, SearchError> {
    match literal {
        Literal::Integer(number) => return Ok(Ok(*number)),
        Literal::Text(text) => {
            if let Ok(number) = text.trim().parse() {
                return Ok(Ok(number));
            }
        }
        _ => {}
    }
    let number = double(path, literal)?;
    let whole = number.fract() == 0.0 && number.abs() < 9.2e18;
    Ok(if whole { Ok(number as i64) } else { Err(number) })
}

fn boolean(path: &str, literal: &Literal) -> Result<bool, SearchError> {
    match literal.text().as_str() {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        other => Err(unfit(format!(
            "Can't parse boolean value [{other}] of field [{path}], expected [true] or [false]"
        ))),
    }
}

/// The addresses of a text: one, or all of a block like `10.0.0.0/8`.
fn addresses(path: &str, text: &str) -> Result<(Ipv6Addr, Ipv6Addr), SearchError> {
    let wrong = || unfit(format!("'{text}' is not an IP string literal, in a query on [{path}]"));
    let Some((base, prefix)) = text.split_once('/') else {
        let address = ip(text).ok_or_else(wrong)?;
        return Ok((address, address));
    };
    let base = ip(base).ok_or_else(wrong)?;
    let prefix: u32 = prefix.parse().map_err(|_| wrong())?;
    let shift = if base.to_ipv4_mapped().is_some() { 96 } else { 0 };
    let bits = Some(prefix + shift).filter(|_| prefix <= 128 - shift).ok_or_else(wrong)?;
    let host = u128::MAX.checked_shr(bits).unwrap_or(0);
    let first = base.to_bits() & !host;
    Ok((Ipv6Addr::from_bits(first), Ipv6Addr::from_bits(first | host)))
}

/// The least and greatest value that a literal stands for; a date without a time is a whole day. None if no value of
/// the field can equal it.
pub(super) fn exact(
    path: &str,
    mapped: &Field,
    literal: &Literal,
    now_ms: i64,
) -> Result<Option<(Value, Value)>, SearchError> {
    let one = |value: Value| Ok(Some((value.clone(), value)));
    match mapped.kind {
        FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
            match long(path, literal)? {
                Ok(number) => one(Value::Long(number)),
                Err(_) => Ok(None),
            }
        }
        FieldType::Double | FieldType::Float => one(Value::Double(double(path, literal)?)),
        FieldType::Boolean => one(Value::Boolean(boolean(path, literal)?)),
        FieldType::Ip => {
            let (first, last) = addresses(path, &literal.text())?;
            Ok(Some((Value::Ip(first), Value::Ip(last))))
        }
        FieldType::Date => {
            let format = format_of(mapped);
            let context = DateContext { format: &format, now_ms, zone_ms: 0 };
            let end = |up| context.resolve(&literal.text(), up).map_err(unfit);
            Ok(Some((Value::Date(end(false)?), Value::Date(end(true)?))))
        }
        FieldType::GeoPoint => Err(unfit(format!(
            "Geometry fields do not support exact searching, use dedicated geometry queries instead: [{path}]"
        ))),
        FieldType::Keyword | FieldType::Text => one(Value::Text(literal.text())),
    }
}

/// The bounds of a range in the type of the field. None if nothing can lie within. Dates are read by `context`:
/// format, offset of the zone, and now.
pub(super) fn range(
    path: &str,
    mapped: &Field,
    (lower, upper): (Option<&RangeEnd>, Option<&RangeEnd>),
    context: (Option<&DateFormat>, i64, i64),
) -> Result<Option<Bounds>, SearchError> {
    let ends = |of: ReadEnd<'_>| {
        let low = lower.map_or(Ok(Bound::Unbounded), |end| of(end, true))?;
        let high = upper.map_or(Ok(Bound::Unbounded), |end| of(end, false))?;
        Ok(Some((low, high)))
    };
    let bound = |value: Value, included: bool| {
        if included { Bound::Included(value) } else { Bound::Excluded(value) }
    };
    match mapped.kind {
        FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
            whole_numbers(path, lower, upper)
        }
        FieldType::Double | FieldType::Float => {
            ends(&|end, _| Ok(bound(Value::Double(double(path, &end.value)?), end.included)))
        }
        FieldType::Boolean => {
            ends(&|end, _| Ok(bound(Value::Boolean(boolean(path, &end.value)?), end.included)))
        }
        FieldType::Ip => ends(&|end, low| {
            let (first, last) = addresses(path, &end.value.text())?;
            let value = if low == end.included { first } else { last };
            Ok(bound(Value::Ip(value), end.included))
        }),
        FieldType::Date => {
            let (format, zone_ms, now_ms) = context;
            let own = format_of(mapped);
            let context = DateContext { format: format.unwrap_or(&own), now_ms, zone_ms };
            // Beyond a day is beyond its last moment; up to a day, up to its last moment.
            ends(&|end, low| {
                let round_up = low != end.included;
                let ms = context.resolve(&end.value.text(), round_up).map_err(unfit)?;
                Ok(bound(Value::Date(ms), end.included))
            })
        }
        FieldType::Keyword | FieldType::Text => {
            ends(&|end, _| Ok(bound(Value::Text(end.value.text()), end.included)))
        }
        FieldType::GeoPoint => Ok(None),
    }
}

/// Bounds between whole numbers are moved to the next one inside.
fn whole_numbers(
    path: &str,
    lower: Option<&RangeEnd>,
    upper: Option<&RangeEnd>,
) -> Result<Option<Bounds>, SearchError> {
    let mut bounds = (Bound::Unbounded, Bound::Unbounded);
    if let Some(end) = lower {
        let least = match long(path, &end.value)? {
            Ok(number) if end.included => Some(number),
            Ok(number) => number.checked_add(1),
            Err(number) if number >= 9.2e18 => None,
            Err(number) => Some(number.ceil() as i64),
        };
        let Some(least) = least else { return Ok(None) };
        bounds.0 = Bound::Included(Value::Long(least));
    }
    if let Some(end) = upper {
        let greatest = match long(path, &end.value)? {
            Ok(number) if end.included => Some(number),
            Ok(number) => number.checked_sub(1),
            Err(number) if number <= -9.2e18 => None,
            Err(number) => Some(number.floor() as i64),
        };
        let Some(greatest) = greatest else { return Ok(None) };
        bounds.1 = Bound::Included(Value::Long(greatest));
    }
    Ok(Some(bounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_addresses() {
        let of = |text: &str| addresses("a", text).map(|(a, b)| (a.to_string(), b.to_string()));
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(of("10.1.2.3/8"), pair("::ffff:10.0.0.0", "::ffff:10.255.255.255"));
        assert_eq!(of("2001:db8::/32").unwrap().0, "2001:db8::");
        assert_eq!(of("10.0.0.1/32"), pair("::ffff:10.0.0.1", "::ffff:10.0.0.1"));
        assert!(of("10.0.0.1/33").is_err() && of("::1/129").is_err() && of("ten").is_err());
        assert_eq!(of("0.0.0.0/0").unwrap().1, "::ffff:255.255.255.255");
    }

    #[test]
    fn bounds_of_whole_numbers() {
        let end = |value, included| Some(RangeEnd { value, included });
        let of = |low: Option<RangeEnd>, high: Option<RangeEnd>| {
            whole_numbers("a", low.as_ref(), high.as_ref()).unwrap()
        };
        let long = |n| Bound::Included(Value::Long(n));
        assert_eq!(
            of(end(Literal::Float(1.5), true), end(Literal::Float(2.5), false)),
            Some((long(2), long(2)))
        );
        assert_eq!(of(end(Literal::Integer(1), false), None), Some((long(2), Bound::Unbounded)));
        assert_eq!(of(end(Literal::Integer(i64::MAX), false), None), None);
        assert_eq!(of(end(Literal::Float(1e19), true), None), None);
        assert_eq!(
            of(None, end(Literal::Text("7".into()), false)),
            Some((Bound::Unbounded, long(6)))
        );
    }
}
