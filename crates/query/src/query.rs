//! Queries as plain data, before any mapping is known.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::mapping::value::show_ip;

/// A value of a query, as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Literal {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// An address that a hit is sorted by; IPv4 is mapped into IPv6. Requests have texts in its place.
    Address(Ipv6Addr),
}

impl Literal {
    /// Its text, as an analyzer or a parser of dates reads it.
    pub fn text(&self) -> String {
        match self {
            Literal::Text(text) => text.clone(),
            Literal::Integer(number) => number.to_string(),
            Literal::Float(number) => number.to_string(),
            Literal::Boolean(yes) => yes.to_string(),
            Literal::Address(address) => show_ip(address),
        }
    }

    /// As a hit shows it: JSON has no infinity, which the field writes as a string.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Literal::Text(text) => text.as_str().into(),
            Literal::Integer(number) => (*number).into(),
            Literal::Float(f64::INFINITY) => "Infinity".into(),
            Literal::Float(f64::NEG_INFINITY) => "-Infinity".into(),
            Literal::Float(number) => (*number).into(),
            Literal::Boolean(yes) => (*yes).into(),
            Literal::Address(address) => show_ip(address).into(),
        }
    }
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeEnd {
    /// The value.
    pub value: Literal,
    /// Whether the value itself belongs to the range.
    pub included: bool,
}

/// How many of several clauses must match: `2`, `-1`, `75%`, `3<90%`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinimumShouldMatch(pub String);

impl MinimumShouldMatch {
    /// How many of `clauses`; at most all of them. None if it cannot be read.
    pub fn of(&self, clauses: usize) -> Option<usize> {
        let plain = |text: &str| -> Option<usize> {
            let clauses = i64::try_from(clauses).ok()?;
            let needed = match text.strip_suffix('%') {
                Some(percent) => {
                    let percent: i64 =
                        percent.trim().parse().ok().filter(|p: &i64| p.abs() <= 10_000)?;
                    // Rounded towards zero, on both sides of it.
                    let share = clauses * percent / 100;
                    if percent < 0 { clauses + share } else { share }
                }
                None => {
                    let count: i64 =
                        text.trim().parse().ok().filter(|c: &i64| c.abs() < 1 << 32)?;
                    if count < 0 { clauses + count } else { count }
                }
            };
            usize::try_from(needed.clamp(0, clauses)).ok()
        };
        if !self.0.contains('<') {
            return plain(self.0.trim());
        }
        // `3<90% 9<-3`: all up to 3, 90 % up to 9, all but 3 beyond.
        let mut needed = clauses;
        for part in self.0.split_whitespace() {
            let (above, then) = part.split_once('<')?;
            if clauses <= above.trim().parse::<usize>().ok()? {
                return Some(needed);
            }
            needed = plain(then.trim())?;
        }
        Some(needed)
    }
}

/// A query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Which documents.
    pub kind: QueryKind,
    /// What the score is multiplied by.
    pub boost: f32,
}

/// The kinds of queries that this engine has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum QueryKind {
    /// `match_all`
    MatchAll,
    /// `match_none`
    MatchNone,
    /// `match`
    Match {
        /// Field.
        field: String,
        /// What is looked for.
        value: Literal,
        /// `operator: and`: every word must be there.
        all: bool,
        /// `minimum_should_match`
        minimum: Option<MinimumShouldMatch>,
        /// `lenient`: what does not fit the field's type matches nothing.
        lenient: bool,
    },
    /// `match_phrase`
    MatchPhrase {
        /// Field.
        field: String,
        /// What is looked for.
        value: Literal,
    },
    /// `term`
    Term {
        /// Field.
        field: String,
        /// The value.
        value: Literal,
    },
    /// `terms`
    Terms {
        /// Field.
        field: String,
        /// One of these.
        values: Vec<Literal>,
    },
    /// `range`
    Range {
        /// Field.
        field: String,
        /// `gt` or `gte`.
        lower: Option<RangeEnd>,
        /// `lt` or `lte`.
        upper: Option<RangeEnd>,
        /// How dates are written; else as the mapping says.
        format: Option<super::DateFormat>,
        /// Of dates that bring none.
        zone_ms: i64,
    },
    /// `prefix`
    Prefix {
        /// Field.
        field: String,
        /// How the value begins.
        value: String,
    },
    /// `exists`
    Exists {
        /// Field, or an object with fields.
        field: String,
    },
    /// `ids`
    Ids {
        /// `_id` is one of these.
        values: Vec<String>,
    },
    /// `geo_distance`
    GeoDistance {
        /// Field.
        field: String,
        /// Latitude and longitude of the centre.
        center: (f64, f64),
        /// Metres.
        distance_m: f64,
    },
    /// `geo_bounding_box`
    GeoBoundingBox {
        /// Field.
        field: String,
        /// Northern latitude.
        top: f64,
        /// Western longitude. Greater than `right` where the box crosses the date line.
        left: f64,
        /// Southern latitude.
        bottom: f64,
        /// Eastern longitude.
        right: f64,
    },
    /// `bool`
    Bool(Box<BoolQuery>),
    /// `constant_score`
    ConstantScore {
        /// Which documents.
        filter: Box<Query>,
    },
}

/// `bool`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoolQuery {
    /// Must match, and score.
    pub must: Vec<Query>,
    /// Must match.
    pub filter: Vec<Query>,
    /// May match, and score.
    pub should: Vec<Query>,
    /// Must not match.
    pub must_not: Vec<Query>,
    /// `minimum_should_match`; else 1 without `must` and `filter`, and 0 with them.
    pub minimum: Option<MinimumShouldMatch>,
}

impl BoolQuery {
    /// How many of `should` must match.
    pub fn needed(&self) -> usize {
        let default =
            usize::from(self.must.is_empty() && self.filter.is_empty() && !self.should.is_empty());
        let given = self.minimum.as_ref().and_then(|minimum| minimum.of(self.should.len()));
        given.unwrap_or(default)
    }
}

impl Query {
    /// A query with boost 1.
    pub fn of(kind: QueryKind) -> Self {
        Query { kind, boost: 1.0 }
    }

    /// Every document.
    pub fn match_all() -> Self {
        Query::of(QueryKind::MatchAll)
    }

    /// Whether it is `match_all`, so that no document has to be read to count.
    pub fn is_match_all(&self) -> bool {
        self.kind == QueryKind::MatchAll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_should_match_as_documented() {
        for (text, clauses, needed) in [
            ("2", 5, Some(2)),
            ("9", 5, Some(5)),
            ("-2", 5, Some(3)),
            ("-9", 5, Some(0)),
            ("75%", 4, Some(3)),
            ("75%", 5, Some(3)),
            ("-25%", 4, Some(3)),
            ("-25%", 5, Some(4)),
            ("3<90%", 3, Some(3)),
            ("3<90%", 4, Some(3)),
            ("2<-25% 9<-3", 2, Some(2)),
            ("2<-25% 9<-3", 8, Some(6)),
            ("2<-25% 9<-3", 12, Some(9)),
            ("two", 3, None),
            ("3<", 4, None),
        ] {
            assert_eq!(MinimumShouldMatch(text.to_owned()).of(clauses), needed, "{text} {clauses}");
        }
    }
}
