//! Values of queries, in the type of their field: of a date the milliseconds since 1970.

use std::net::Ipv6Addr;
use std::ops::Bound;

use tantivy::Term;
use tantivy::schema::{Field as IndexField, Schema};

use query::{Field, FieldType, Literal, RangeEnd, SearchError, Zone, illegal, unfit};

use super::column::{double_bits, long_bits};
use crate::tantivy_storage::schema::{ID, has_nanos, nanos};
use query::date::{DateContext, DateFormat};
use query::value::ip;

pub(super) type Bounds = (Bound<Literal>, Bound<Literal>);

pub(super) fn term(value: &Literal, field: IndexField, schema: &Schema) -> Term {
    match value {
        Literal::Integer(ms) if has_nanos(schema, field) => {
            Term::from_field_date(field, nanos(*ms))
        }
        Literal::Integer(number) => Term::from_field_i64(field, *number),
        Literal::Float(number) => Term::from_field_f64(field, number + 0.0),
        Literal::Boolean(yes) => Term::from_field_bool(field, *yes),
        Literal::Address(address) => Term::from_field_ip_addr(field, *address),
        text => Term::from_field_text(field, &text.text()),
    }
}

/// The bits that [`super::column::Column::each_bits`] gives for a value. Texts have none.
pub(super) fn bits(value: &Literal) -> u128 {
    match value {
        Literal::Integer(number) => long_bits(*number).into(),
        Literal::Float(number) => double_bits(*number).into(),
        Literal::Boolean(yes) => long_bits(i64::from(*yes)).into(),
        Literal::Address(address) => address.to_bits(),
        Literal::Text(_) | Literal::Null => 0,
    }
}

/// Texts have no columns, points no order.
pub(super) fn check_sortable(path: &str, mapped: &Field) -> Result<(), SearchError> {
    match mapped.kind {
        FieldType::Text if mapped.has_column => Ok(()),
        FieldType::Text | FieldType::MatchOnlyText => Err(illegal(format!(
            "Text fields are not optimised for operations that require per-document field data like aggregations \
             and sorting, so these operations are disabled by default. Please use a keyword field instead of [{path}]."
        ))),
        FieldType::GeoPoint | FieldType::DoubleRange => {
            let kind = mapped.kind.name();
            Err(illegal(format!("can't sort or aggregate on {kind} field [{path}]")))
        }
        _ if !mapped.has_column => Err(illegal(format!(
            "Can't load fielddata on [{path}] because fielddata is unsupported on fields of type [{}]. Use doc values \
             instead.",
            mapped.kind.name()
        ))),
        _ => Ok(()),
    }
}

/// Fails where hits cannot be collapsed by a field: keywords and numbers are what the field takes.
pub(super) fn check_collapsible(path: &str, kind: Option<FieldType>) -> Result<(), SearchError> {
    use FieldType::{Byte, Double, Float, HalfFloat, Integer, Keyword, Long, Short};
    match kind {
        Some(Keyword | Long | Integer | Short | Byte | Double | Float | HalfFloat) => Ok(()),
        // Which other fields are not there is told where hits are grouped by them.
        None if path != ID => Ok(()),
        _ => Err(illegal(format!(
            "unknown type for collapse field `{path}`, only keywords and numbers are accepted"
        ))),
    }
}

/// `12.0` for 12 and `1.2E7` for 12 000 000, as Java writes a double.
pub(super) fn show_double(value: f64) -> String {
    let is_plain = value == 0.0 || !value.is_finite() || (1e-3..1e7).contains(&value.abs());
    let text = if is_plain { value.to_string() } else { format!("{value:E}") };
    match text.split_once('E') {
        _ if text.contains('.') || !value.is_finite() => text,
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text + ".0",
    }
}

fn double(path: &str, literal: &Literal) -> Result<f64, SearchError> {
    let number = match literal {
        Literal::Integer(number) => Some(*number as f64),
        Literal::Float(number) => Some(*number),
        Literal::Text(text) => text.trim().parse().ok(),
        Literal::Boolean(_) | Literal::Address(_) | Literal::Null => None,
    };
    number.filter(|n: &f64| n.is_finite()).ok_or_else(|| {
        let text = literal.text();
        unfit(format!("failed to create query on [{path}]: For input string: \"{text}\""))
    })
}

/// A number as `half_float` is asked for it: of 32 bits, as in the field.
fn half(path: &str, mapped: &Field, literal: &Literal) -> Result<f64, SearchError> {
    let number = double(path, literal)?;
    if mapped.has_room(number) {
        return Ok(f64::from(number as f32));
    }
    let text = literal.text();
    let reason = format!("[half_float] supports only finite values, but got [{text}]");
    Err(unfit(format!("failed to create query on [{path}]: {reason}")))
}

/// The first number behind those of 64 bits.
const LONG_END: f64 = 9_223_372_036_854_775_808.0;

/// A whole number exactly, or the number that it is not.
fn long(path: &str, literal: &Literal) -> Result<Result<i64, f64>, SearchError> {
    let exact = match literal {
        Literal::Integer(number) => Some(*number),
        Literal::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    if let Some(number) = exact {
        return Ok(Ok(number));
    }
    let number = double(path, literal)?;
    let whole = number.fract() == 0.0 && (-LONG_END..LONG_END).contains(&number);
    Ok(if whole { Ok(number as i64) } else { Err(number) })
}

fn boolean(path: &str, literal: &Literal) -> Result<bool, SearchError> {
    match literal.text().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
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
    let bits = prefix.checked_add(shift).filter(|bits| *bits <= 128).ok_or_else(wrong)?;
    let host = u128::MAX.checked_shr(bits).unwrap_or(0);
    let first = base.to_bits() & !host;
    Ok((Ipv6Addr::from_bits(first), Ipv6Addr::from_bits(first | host)))
}

/// Refuses a whole number for which a field has no room. As in the field that is asked of queries alone, and shorter
/// integers are sought as [`FieldType::Integer`].
pub(super) fn check_room(path: &str, mapped: &Field, literal: &Literal) -> Result<(), SearchError> {
    let kind = match mapped.kind {
        FieldType::Long => FieldType::Long,
        FieldType::Integer | FieldType::Short | FieldType::Byte => FieldType::Integer,
        _ => return Ok(()),
    };
    let (least, greatest) = kind.integer_range();
    match long(path, literal)? {
        Ok(number) if (least..=greatest).contains(&number) => Ok(()),
        Err(number) if number.fract() != 0.0 => Ok(()),
        _ => Err(unfit(format!(
            "Value [{}] of field [{path}] is out of range for type [{}]",
            literal.text(),
            kind.name()
        ))),
    }
}

/// By what dates are read: format (else as the mapping says), zone (else UTC), and now.
pub(super) type DateReading<'a> = (Option<&'a DateFormat>, Option<&'a Zone>, i64);

/// The least and greatest value that a literal stands for; a date without a time is a whole day. None if no value of
/// the field can equal it.
pub(super) fn exact(
    path: &str,
    mapped: &Field,
    literal: &Literal,
    (format, zone, now_ms): DateReading<'_>,
) -> Result<Option<(Literal, Literal)>, SearchError> {
    let one = |value: Literal| Ok(Some((value.clone(), value)));
    match mapped.kind {
        FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
            match long(path, literal)? {
                Ok(number) => one(Literal::Integer(number)),
                Err(_) => Ok(None),
            }
        }
        FieldType::Double | FieldType::Float | FieldType::DoubleRange => {
            one(Literal::Float(double(path, literal)?))
        }
        FieldType::HalfFloat => one(Literal::Float(mapped.stepped(half(path, mapped, literal)?))),
        FieldType::ScaledFloat => one(Literal::Float(mapped.stepped(double(path, literal)?))),
        FieldType::Boolean => one(Literal::Boolean(boolean(path, literal)?)),
        FieldType::Ip => {
            let (first, last) = addresses(path, &literal.text())?;
            Ok(Some((Literal::Address(first), Literal::Address(last))))
        }
        FieldType::Date => {
            let utc = Zone::default();
            let (format, zone) = (format.unwrap_or(&mapped.dates), zone.unwrap_or(&utc));
            let context = DateContext { format, now_ms, zone };
            let end = |up| context.resolve(&literal.text(), up).map_err(unfit);
            Ok(Some((Literal::Integer(end(false)?), Literal::Integer(end(true)?))))
        }
        FieldType::GeoPoint => Err(unfit(format!(
            "Geometry fields do not support exact searching, use dedicated geometry queries instead: [{path}]"
        ))),
        FieldType::Keyword | FieldType::Text | FieldType::MatchOnlyText => {
            one(Literal::Text(literal.text()))
        }
    }
}

/// The value of a literal that is not sought: what stands for missing values, is chosen, or was the last one of a page.
/// Of `scaled_float` and `half_float` it need not be a step. None if no value of the field can equal it.
pub(super) fn plain(
    path: &str,
    mapped: &Field,
    literal: &Literal,
    now_ms: i64,
) -> Result<Option<Literal>, SearchError> {
    if mapped.kind.is_float() {
        return Ok(Some(Literal::Float(double(path, literal)?)));
    }
    Ok(exact(path, mapped, literal, (None, None, now_ms))?.map(|(first, _)| first))
}

/// The bounds of a range in the type of the field.
pub(super) fn range(
    path: &str,
    mapped: &Field,
    (lower, upper): (Option<&RangeEnd>, Option<&RangeEnd>),
    dates: DateReading<'_>,
) -> Result<Bounds, SearchError> {
    let bound = |end: Option<&RangeEnd>, is_lower: bool| -> Result<_, SearchError> {
        let Some(RangeEnd { value, included }) = end else { return Ok(Bound::Unbounded) };
        let ending =
            |value| if *included { Bound::Included(value) } else { Bound::Excluded(value) };
        if mapped.kind == FieldType::Ip && value.text().contains('/') {
            let text = value.text();
            return Err(unfit(format!(
                "'{text}' is not an IP string literal, in a range of [{path}]; send [term] for a block of addresses"
            )));
        }
        if mapped.kind == FieldType::HalfFloat {
            // Its ends need not be numbers of 16 bits.
            return Ok(ending(Literal::Float(half(path, mapped, value)?)));
        }
        if mapped.kind == FieldType::ScaledFloat {
            // Its ends need not be steps.
            let step = mapped.by_steps(double(path, value)?, |steps| match (is_lower, *included) {
                (true, true) => steps.ceil(),
                (true, false) => steps.next_up().ceil(),
                (false, true) => steps.floor(),
                (false, false) => steps.next_down().floor(),
            });
            return Ok(Bound::Included(Literal::Float(step)));
        }
        check_room(path, mapped, value)?;
        let Some((first, last)) = exact(path, mapped, value, dates)? else {
            return Ok(between_whole(double(path, value)?, is_lower));
        };
        // Beyond a day is beyond its last moment; up to a day, up to its last moment.
        Ok(ending(if is_lower == *included { first } else { last }))
    };
    Ok((bound(lower, true)?, bound(upper, false)?))
}

/// A bound between whole numbers is moved to the next one inside.
fn between_whole(number: f64, is_lower: bool) -> Bound<Literal> {
    let whole = if is_lower { number.ceil() } else { number.floor() };
    Bound::Included(Literal::Integer(whole as i64))
}

#[cfg(test)]
mod tests {
    use tantivy::DateTime;
    use tantivy::schema::{DateOptions, NumericOptions};

    use super::*;

    #[test]
    fn blocks_of_addresses() {
        let of = |text: &str| addresses("a", text).map(|(a, b)| (a.to_string(), b.to_string()));
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(of("10.1.2.3/8"), pair("::ffff:10.0.0.0", "::ffff:10.255.255.255"));
        assert_eq!(of("2001:db8::/32").unwrap().0, "2001:db8::");
        assert_eq!(of("10.0.0.1/32"), pair("::ffff:10.0.0.1", "::ffff:10.0.0.1"));
        assert!(of("10.0.0.1/33").is_err() && of("::1/129").is_err() && of("ten").is_err());
        assert!(of("10.0.0.1/4294967295").is_err());
        assert_eq!(of("0.0.0.0/0").unwrap().1, "::ffff:255.255.255.255");
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (12.0, "12.0"),
            (-0.25, "-0.25"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (25_000_000.5, "2.50000005E7"),
            (-1.5e300, "-1.5E300"),
            (0.001, "0.001"),
            (0.0005, "5.0E-4"),
        ] {
            assert_eq!(show_double(value), text);
        }
    }

    #[test]
    fn a_moment_is_sought_as_its_field_keeps_it() {
        let mut builder = Schema::builder();
        let older = builder.add_date_field("older", DateOptions::default());
        let newer = builder.add_i64_field("newer", NumericOptions::default());
        let schema = builder.build();
        let of = |ms: i64, field| term(&Literal::Integer(ms), field, &schema);
        let at = |ns: i64| Term::from_field_date(older, DateTime::from_timestamp_nanos(ns));
        assert_eq!((of(-1, older), of(i64::MIN, older)), (at(-1_000_000), at(i64::MIN)));
        assert_eq!(of(i64::MIN, newer), Term::from_field_i64(newer, i64::MIN));
    }

    #[test]
    fn bounds_between_whole_numbers() {
        let long = |n| Bound::Included(Literal::Integer(n));
        assert_eq!((between_whole(1.5, true), between_whole(2.5, false)), (long(2), long(2)));
        assert_eq!((between_whole(-1.5, true), between_whole(-2.5, false)), (long(-1), long(-3)));
    }
}
