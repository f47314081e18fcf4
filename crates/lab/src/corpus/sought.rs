//! What searches look for in a field: a value, or those between two ends.

use std::ops::RangeInclusive;

use query::date::DateContext;
use query::{DateFormat, Zone};
use serde_json::Value;

/// Whole numbers, or milliseconds since 1970, from the first to the last.
pub(super) type Span = RangeInclusive<i64>;

/// How far from its only end the values of a range are made.
const BEYOND: i64 = 10_000;
/// From the year 1 to the end of 9999.
pub(super) const DATES: Span = -62_135_596_800_000..=253_402_300_799_999;
/// What is less than this between two numbers comes of their being binary: 0.07 * 100 is above 7.
const NEAR: f64 = 1e-6;

/// What a search looks for in a field, with the ends as it writes them; both are inclusive and the same for a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sought {
    gte: Option<String>,
    gt: Option<String>,
    lt: Option<String>,
    lte: Option<String>,
    /// How its dates are written; as in the field where there is none.
    format: Option<String>,
}

impl Sought {
    /// A text or a number.
    pub fn value(value: &Value) -> Option<Self> {
        let text = scalar(value)?;
        Some(Sought { gte: Some(text.clone()), lte: Some(text), ..Sought::default() })
    }

    /// The values of a range, `{"gte": 1, "lt": 5}`.
    pub fn range(range: &Value) -> Self {
        let names = ["gte", "gt", "lt", "lte", "format"];
        let [gte, gt, lt, lte, format] = names.map(|name| scalar(&range[name]));
        Sought { gte, gt, lt, lte, format }
    }

    /// The value, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        self.gte.as_deref().filter(|_| self.gte == self.lte)
    }

    /// The numbers that are looked for, counted in parts of one, and within what the field holds.
    pub(super) fn numbers(&self, parts: u32, held: &Span) -> Option<Span> {
        self.span(held, |text, is_last| {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
            let number = number * f64::from(parts);
            let whole = if is_last { (number + NEAR).floor() } else { (number - NEAR).ceil() };
            Some(whole as i64)
        })
    }

    /// The moments that are looked for in a field of this format. An end that counts from now is open, for documents
    /// are the same whenever they are made.
    pub(super) fn dates(&self, format: &DateFormat) -> Option<Span> {
        let own = self.format.as_deref().map(DateFormat::parse).transpose().ok()?;
        let zone = Zone::default();
        let context =
            DateContext { format: own.as_ref().unwrap_or(format), now_ms: 0, zone: &zone };
        self.span(&DATES, |text, is_last| {
            let from_now = text.starts_with("now");
            context.resolve(text, is_last).ok().filter(|_| !from_now)
        })
    }

    /// From the first to the last of what is looked for, if anything is within what the field holds. `read` reads an
    /// end: the last that is not above it, or the first that is not below it.
    fn span(&self, held: &Span, read: impl Fn(&str, bool) -> Option<i64>) -> Option<Span> {
        let end = |text: &Option<String>, is_last| read(text.as_deref()?, is_last);
        let low = end(&self.gte, false).or_else(|| end(&self.gt, true)?.checked_add(1));
        let high = end(&self.lte, true).or_else(|| end(&self.lt, false)?.checked_sub(1));
        let (low, high) = match (low, high) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, low.saturating_add(BEYOND)),
            (None, Some(high)) => (high.min(0), high),
            (None, None) => return None,
        };
        let (low, high) = (low.max(*held.start()), high.min(*held.end()));
        (low <= high).then_some(low..=high)
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HELD: Span = -1000..=1000;

    #[test]
    fn numbers_are_those_that_a_range_has() {
        for (range, span) in [
            (json!({"gte": 1, "lte": 5}), Some(1..=5)),
            (json!({"gt": 1, "lt": "5"}), Some(2..=4)),
            (json!({"gt": 1.5, "lt": 4.5}), Some(2..=4)),
            (json!({"gte": 990}), Some(990..=1000)),
            (json!({"lt": 10}), Some(0..=9)),
            (json!({"lt": -10}), Some(-11..=-11)),
            (json!({"gt": 1, "lt": 2}), None),
            (json!({"gte": 2000, "lte": 3000}), None),
            (json!({"gte": "x"}), None),
            (json!({"field": "n"}), None),
            (json!("n"), None),
        ] {
            assert_eq!(Sought::range(&range).numbers(1, &HELD), span, "{range}");
        }
        let seven = Sought::value(&json!(0.07)).unwrap();
        assert_eq!((seven.numbers(100, &HELD), seven.numbers(1, &HELD)), (Some(7..=7), None));
        assert_eq!(Sought::value(&json!(true)), None);
    }

    #[test]
    fn dates_are_read_in_the_format_of_the_range_or_of_the_field() {
        let field = DateFormat::default();
        let day = 1_420_070_400_000..=1_420_156_799_999;
        for range in [
            json!({"gte": "2015-01-01", "lt": "2015-01-02"}),
            json!({"gte": "2015-01-01", "lte": "2015-01-01"}),
            json!({"gt": "2014-12-31", "lte": "01/01/2015", "format": "yyyy-MM-dd||dd/MM/yyyy"}),
            json!({"gte": 1_420_070_400_000_i64, "lte": 1_420_156_799_999_i64}),
        ] {
            assert_eq!(Sought::range(&range).dates(&field), Some(day.clone()), "{range}");
        }
        assert_eq!(Sought::value(&json!("2015-01-01")).unwrap().dates(&field), Some(day));
        let open = Sought::range(&json!({"gte": "2015-01-01", "lt": "now/d"})).dates(&field);
        assert_eq!(open, Some(1_420_070_400_000..=1_420_070_410_000));
        for range in [json!({"gte": "now-1d"}), json!({"gte": "2015", "format": "no such"})] {
            assert_eq!(Sought::range(&range).dates(&field), None, "{range}");
        }
    }

    #[test]
    fn a_value_is_a_text_and_a_range_is_none() {
        assert_eq!(Sought::value(&json!(200)).unwrap().text(), Some("200"));
        assert_eq!(Sought::range(&json!({"gte": "a", "lt": "b"})).text(), None);
        assert_eq!(Sought::range(&json!({"gte": "a"})).text(), None);
    }
}
