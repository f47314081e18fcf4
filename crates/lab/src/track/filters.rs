//! Filters and functions of Jinja that tracks use, where there is none here or another than Python's.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use minijinja::value::{Kwargs, Rest, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};

pub(super) fn add(jinja: &mut Environment<'_>) {
    jinja.add_function("cycler", minijinja_contrib::globals::cycler);
    jinja.add_function("joiner", minijinja_contrib::globals::joiner);
    jinja.add_filter("days_ago", days_ago);
    jinja.add_filter("get_start_date", get_start_date);
    jinja.add_filter("get_end_date", get_end_date);
    jinja.add_filter("d", default);
    jinja.add_filter("default", default);
    jinja.add_filter("int", int);
    jinja.add_filter("float", float);
    jinja.add_filter("round", round);
    // What it picks comes from a seed, `RAND_SEED`.
    jinja.add_filter("random", minijinja_contrib::filters::random);
}

/// How many whole days lie between two moments.
fn days_ago(start: &Value, end: &Value) -> Result<i64, Error> {
    Ok(moment(end)?.duration_since(moment(start)?).as_secs().div_euclid(24 * 3600))
}

/// The day of a moment, as `1998-05-15`.
fn get_start_date(start: &Value) -> Result<String, Error> {
    Ok(moment(start)?.strftime("%F").to_string())
}

/// The day so many days later.
fn get_end_date(start: &Value, days: Option<i32>, named: Kwargs) -> Result<String, Error> {
    let named_days: Option<i32> = named.get("duration_days")?;
    named.assert_all_used()?;
    let days = SignedDuration::from_hours(24 * i64::from(days.or(named_days).unwrap_or(1)));
    let end = moment(start)?.date().checked_add(days);
    end.map(|end| end.strftime("%F").to_string()).map_err(|_| no_moment(start))
}

/// A day, or seconds since 1970 as `now` has them.
fn moment(given: &Value) -> Result<DateTime, Error> {
    let since_1970 = |seconds: f64| {
        let seconds = SignedDuration::from_secs(seconds as i64);
        DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(seconds).ok()
    };
    let found = match given.as_str() {
        Some(text) => day(text).map(DateTime::from),
        None => f64::try_from(given.clone()).ok().and_then(since_1970),
    };
    found.ok_or_else(|| no_moment(given))
}

/// A day as Rally writes it, `15-05-1998`, or as JSON has it.
fn day(text: &str) -> Option<Date> {
    let (year, month, day) = match text.split('-').collect::<Vec<_>>()[..] {
        [year, month, day] if year.len() == 4 => (year, month, day),
        [day, month, year] => (year, month, day),
        _ => return None,
    };
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

fn no_moment(given: &Value) -> Error {
    let said = format!(
        "a day is written as 15-05-1998 or 1998-05-15, or is a number of seconds as now is; found \"{given}\""
    );
    Error::new(ErrorKind::InvalidOperation, said)
}

/// What stands in place of a value that is not given, and with `boolean` of a false one; by the names of Python, too.
fn default(state: &State<'_, '_>, value: &Value, given: Rest<Value>) -> Result<Value, Error> {
    let (given, named): (&[Value], Kwargs) = from_args(&given)?;
    let mut args = given.to_vec();
    let otherwise = [("default_value", Value::from("")), ("boolean", Value::from(false))];
    for (name, otherwise) in otherwise.into_iter().skip(given.len()) {
        args.push(if named.has(name) { named.get(name)? } else { otherwise });
    }
    named.assert_all_used()?;
    minijinja::filters::default(state, value, Rest(args))
}

/// A whole number; of what is no number the default, as in Python.
fn int(
    state: &State<'_, '_>,
    value: &Value,
    default: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let read = |value: &Value| minijinja::filters::int(state, value);
    number(value, default.unwrap_or(named_default(&named, Value::from(0))?), read)
}

/// A number; of what is none the default, as in Python.
fn float(
    state: &State<'_, '_>,
    value: &Value,
    default: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let read = |value: &Value| minijinja::filters::float(state, value);
    number(value, default.unwrap_or(named_default(&named, Value::from(0.0))?), read)
}

fn named_default(named: &Kwargs, otherwise: Value) -> Result<Value, Error> {
    let default: Option<Value> = named.get("default")?;
    named.assert_all_used()?;
    Ok(default.unwrap_or(otherwise))
}

fn number(
    value: &Value,
    otherwise: Value,
    read: impl Fn(&Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    if value.is_none() || value.is_undefined() {
        return Ok(otherwise);
    }
    let Some(text) = value.as_str() else { return Ok(read(value).unwrap_or(otherwise)) };
    // As Python reads it: with blanks around it, and with underscores between its digits.
    let text = text.trim().replace('_', "");
    match text.parse::<f64>().is_ok_and(f64::is_finite) {
        true => read(&Value::from(text)),
        false => Ok(otherwise),
    }
}

/// A rounded number, by the methods that Python's has; halves go to the even neighbour, as there.
fn round(
    value: &Value,
    precision: Option<i32>,
    method: Option<String>,
    named: Kwargs,
) -> Result<Value, Error> {
    let named_precision: Option<i32> = named.get("precision")?;
    let named_method: Option<String> = named.get("method")?;
    named.assert_all_used()?;
    let rounded: fn(f64) -> f64 = match method.or(named_method).as_deref() {
        // A whole number stays one.
        None | Some("common") if value.is_integer() => return Ok(value.clone()),
        None | Some("common") => f64::round_ties_even,
        Some("ceil") => f64::ceil,
        Some("floor") => f64::floor,
        Some(other) => {
            let said = format!("round has the methods common, ceil and floor, found \"{other}\"");
            return Err(Error::new(ErrorKind::InvalidOperation, said));
        }
    };
    let scale = 10f64.powi(precision.or(named_precision).unwrap_or(0));
    Ok(Value::from(rounded(f64::try_from(value.clone())? * scale) / scale))
}
