//! Dates in names of indices: `<logs-{now/d}>` and `<logs-{now/M{yyyy.MM|+01:00}}>`, as the field's
//! `IndexNameExpressionResolver` reads them. Behind a `\` a brace is a letter of the name.

use query::date::DateContext;
use query::{DateFormat, Zone};

use super::error::bad_body;
use engine::transport::{Failure, Result};

/// How a date is written where its place does not say.
const FORMAT: &str = "uuuu.MM.dd";

/// An expression that names indices, with what each name between `<` and `>` is at a moment.
pub(super) fn with_dates(expression: &str, now_ms: i64) -> Result<String> {
    let parts = expression.split(',').map(|part| {
        let inner = part.strip_prefix('<').and_then(|part| part.strip_suffix('>'));
        inner.map_or_else(|| Ok(part.to_owned()), |name| with_date(name, now_ms))
    });
    Ok(parts.collect::<Result<Vec<String>>>()?.join(","))
}

fn wrong(expression: &str, why: &str) -> Failure {
    bad_body(format!("invalid dynamic name expression [{expression}]: {why}"))
}

fn with_date(name: &str, now_ms: i64) -> Result<String> {
    let (mut text, mut escaped) = (String::new(), false);
    // What stands between braces so far, and whether its end is that of its format.
    let mut date: Option<(String, bool)> = None;
    for sign in name.chars() {
        let is_escaped = std::mem::take(&mut escaped);
        if sign == '\\' && !is_escaped {
            escaped = true;
            continue;
        }
        match (date.take(), sign) {
            (None, '{') if !is_escaped => date = Some((String::new(), false)),
            (None, '}') if !is_escaped => {
                return Err(wrong(
                    name,
                    "a brace that belongs to no date is written as \\{ or \\}",
                ));
            }
            (None, sign) => text.push(sign),
            (Some((inner, false)), '}') => text.push_str(&shown(&inner, now_ms)?),
            (Some((_, true)), '{') if !is_escaped => {
                return Err(wrong(
                    name,
                    "a brace in the format of a date is written as \\{ or \\}",
                ));
            }
            (Some((mut inner, in_format)), sign) => {
                inner.push(sign);
                let in_format = match sign {
                    '{' | '}' if !is_escaped => sign == '{',
                    _ => in_format,
                };
                date = Some((inner, in_format));
            }
        }
    }
    match date {
        Some(_) => Err(wrong(name, "date math placeholder is open ended")),
        None if text.is_empty() => Err(wrong(name, "nothing captured")),
        None => Ok(text),
    }
}

/// What stands between braces: date math, and maybe a format with a time zone.
fn shown(date: &str, now_ms: i64) -> Result<String> {
    let failed = |why: String| wrong(date, &why);
    let (math, format) = match date.split_once('{') {
        None => (date, FORMAT),
        Some((math, format)) => {
            let format = format.strip_suffix('}').filter(|format| !format.is_empty());
            (math, format.ok_or_else(|| wrong(date, "missing date format"))?)
        }
    };
    let (format, zone) = format.split_once('|').unwrap_or((format, "Z"));
    let format = DateFormat::parse(format).map_err(failed)?;
    let zone = Zone::try_from(zone.to_owned()).map_err(failed)?;
    let context = DateContext { format: &format, now_ms, zone: &zone };
    let ms = context.resolve(math, false).map_err(failed)?;
    Ok(format.show_in_zone(ms, &zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-03-31T22:30:00Z
    const NOW_MS: i64 = 1_711_924_200_000;

    fn dated(expression: &str) -> Result<String, String> {
        with_dates(expression, NOW_MS).map_err(|failure| failure.reason)
    }

    #[test]
    fn names_have_the_dates_of_the_moment() {
        for (expression, expected) in [
            ("logs", "logs"),
            ("a*,-b,_all", "a*,-b,_all"),
            ("<logs>", "logs"),
            ("<logs-{now/d}>", "logs-2024.03.31"),
            ("<logs-{now+1d/M}>,b,<c-{now-1M}>", "logs-2024.04.01,b,c-2024.02.29"),
            ("<logs-{now/d{yyyy-MM-dd|+12:00}}-x*>", "logs-2024-04-01-x*"),
            ("<logs-{now/M{yyyy.MM|Europe/Paris}}>", "logs-2024.04"),
            ("<{now/y{yyyy}}-{now/d{dd}}>", "2024-31"),
            ("<a\\{x\\}-{now/d{dd}}>", "a{x}-31"),
            ("<logs", "<logs"),
            ("-<logs-{now/d}>", "-<logs-{now/d}>"),
        ] {
            assert_eq!(dated(expression).as_deref(), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_date_is_named() {
        for (expression, why) in [
            ("<a-{now/d>", "open ended"),
            ("<a-now/d}>", "a brace that belongs to no date"),
            ("<a-{now/d{}}>", "missing date format"),
            ("<a-{now/d{yyyy{MM}}}>", "a brace in the format of a date"),
            ("<a-{soon}>", "failed to parse date field [soon]"),
            ("<a-{now/d{yyyy|zz}}>", "[zz] is no time zone"),
            ("<a-{now/d{xxxx}}>", "[x]"),
            ("<>", "nothing captured"),
        ] {
            let said = dated(expression).unwrap_err();
            assert!(said.contains(why), "{expression}: {said}");
        }
    }
}
