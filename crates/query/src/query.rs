//! Queries as plain data, before any mapping is known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::geo::Polygon;
use super::nested;
use super::score::{Combine, ScoreKind};
use super::value::Literal;
use super::zone::Zone;

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
    /// How many of `clauses`; maybe more than there are. None if it cannot be read.
    pub fn of(&self, clauses: usize) -> Option<usize> {
        let plain = |text: &str| -> Option<usize> {
            let clauses = i64::try_from(clauses).ok()?;
            let percent = text.strip_suffix('%');
            let most = if percent.is_some() { 10_000 } else { u64::from(u32::MAX) };
            let given = percent.unwrap_or(text).parse().ok();
            let given = given.filter(|given: &i64| given.unsigned_abs() <= most)?;
            // Rounded towards zero, on both sides of it.
            let share = if percent.is_some() { clauses * given / 100 } else { given };
            let needed = if given < 0 { clauses + share } else { share };
            usize::try_from(needed.max(0)).ok()
        };
        if !self.0.contains('<') {
            return plain(self.0.trim());
        }
        // `3<90% 9<-3`: all up to 3, 90 % up to 9, all but 3 beyond. Spaces may stand on both sides of `<`.
        let text = self.0.split('<').map(str::trim).collect::<Vec<_>>().join("<");
        let mut needed = clauses;
        for part in text.split_whitespace() {
            let (above, then) = part.split_once('<')?;
            if clauses <= above.parse::<usize>().ok()? {
                return Some(needed);
            }
            needed = plain(then)?;
        }
        Some(needed)
    }
}

/// A query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Which documents.
    #[serde(deserialize_with = "nested::deserialize")]
    pub kind: QueryKind,
    /// What the score is multiplied by.
    pub boost: f32,
}

impl Query {
    /// How many of its clauses compile what finds their words: regular expressions and fuzzy words.
    pub fn compiled(&self) -> usize {
        let all = |queries: &[Query]| queries.iter().map(Query::compiled).sum();
        let of = |query: &FieldQuery| match query {
            FieldQuery::Regexp { .. } | FieldQuery::Fuzzy(..) | FieldQuery::PhrasePrefix { .. } => {
                1
            }
            FieldQuery::Match { fuzziness, .. } => usize::from(fuzziness.is_some()),
            _ => 0,
        };
        match &self.kind {
            QueryKind::MatchAll
            | QueryKind::MatchNone
            | QueryKind::Exists(_)
            | QueryKind::Ids(_) => 0,
            QueryKind::Bool(query) => {
                let clauses = [&query.must, &query.filter, &query.should, &query.must_not];
                clauses.into_iter().map(|clauses| all(clauses)).sum()
            }
            QueryKind::ConstantScore(query) => query.compiled(),
            QueryKind::Field(_, query) => of(query),
            QueryKind::Fields(asked) => of(&asked.query),
            QueryKind::DisMax(queries, _) => all(queries),
            QueryKind::FunctionScore(scored) => {
                let filters =
                    scored.functions.iter().filter_map(|function| function.filter.as_ref());
                scored.query.compiled() + filters.map(Query::compiled).sum::<usize>()
            }
            QueryKind::First(of) => of.query.compiled(),
            QueryKind::Aliased(of) => {
                // One index asks one of the filters.
                let filters = of.filters.values().map(Query::compiled);
                of.query.compiled() + filters.max().unwrap_or(0)
            }
        }
    }
}

/// The kinds of queries that this engine has.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum QueryKind {
    MatchAll,
    MatchNone,
    /// A field, or an object with fields.
    Exists(String),
    Ids(Vec<String>),
    Bool(Box<BoolQuery>),
    ConstantScore(Box<Query>),
    /// What is asked of the field of a path.
    Field(String, FieldQuery),
    /// The same of several fields.
    Fields(Box<FieldsQuery>),
    /// Of several clauses the best scores; the others add the share that stands behind them.
    DisMax(Vec<Query>, f32),
    FunctionScore(Box<FunctionScore>),
    /// Of no body: what aliases with filters make of a query.
    Aliased(Box<AliasedQuery>),
    /// Of no body: what `terminate_after` makes of a query.
    First(Box<FirstQuery>),
}

/// What a query asks of one field.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FieldQuery {
    /// `all`: every word must be there. `prefix`: the last is the beginning of one. `lenient`: what does not fit the
    /// field's type matches nothing.
    Match {
        value: Literal,
        all: bool,
        prefix: bool,
        minimum: Option<MinimumShouldMatch>,
        lenient: bool,
        fuzziness: Option<Fuzziness>,
    },
    /// `fuzzy`
    Fuzzy(String, Fuzziness),
    MatchPhrase(Literal),
    /// A phrase whose last word is the beginning of one: of the first so many.
    PhrasePrefix {
        value: Literal,
        words_max: usize,
    },
    Term(Literal),
    Terms(Vec<Literal>),
    Range(RangeQuery),
    Prefix(String),
    /// `*` and `?` stand for others, unless behind a backslash. `analyzed`: its letters become those of the field's
    /// words. `any_case`: those of ASCII count as one in either case, as in Lucene.
    Wildcard {
        pattern: String,
        analyzed: bool,
        any_case: bool,
    },
    /// `any_case`: as of a wildcard.
    Regexp {
        pattern: String,
        any_case: bool,
    },
    /// `center`: latitude and longitude.
    GeoDistance {
        center: (f64, f64),
        distance_m: f64,
    },
    /// Top, left, bottom and right, in degrees; left is greater than right where the box crosses the date line.
    /// `ignore_unmapped`: nothing matches where the field is not mapped, which is an error otherwise.
    GeoBoundingBox {
        sides: [f64; 4],
        ignore_unmapped: bool,
    },
    /// A point in one of these. `ignore_unmapped`: as of a box.
    GeoPolygons {
        polygons: Vec<Polygon>,
        ignore_unmapped: bool,
    },
}

impl FieldQuery {
    /// The words of a text; `all`: every one must be there.
    pub(crate) fn words(text: &str, all: bool) -> Self {
        let value = Literal::Text(text.to_owned());
        let (prefix, lenient) = (false, false);
        FieldQuery::Match { value, all, prefix, minimum: None, lenient, fuzziness: None }
    }
}

/// Values between two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeQuery {
    /// The least.
    pub lower: Option<RangeEnd>,
    /// The greatest.
    pub upper: Option<RangeEnd>,
    /// How dates are written; else as the mapping says.
    pub format: Option<super::DateFormat>,
    /// Of dates that bring no zone.
    pub zone: Zone,
    /// Of fields that are ranges themselves.
    pub relation: Relation,
    /// Whether the letters of its ends become those of the field's words.
    pub analyzed: bool,
}

/// How a range of a document lies to that of a query.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    #[default]
    Intersects,
    Contains,
    Within,
}

/// How far words may be from the one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fuzziness {
    /// Characters from which on a word may have one edit, and two.
    pub edits_from: (usize, usize),
    /// `prefix_length`: first characters that are the same.
    pub prefix_chars: usize,
    /// `max_expansions`: the nearest words that count.
    pub words_max: usize,
    /// Whether two characters that changed places are one edit.
    pub transpositions: bool,
}

impl Fuzziness {
    /// Of `AUTO`, `AUTO:3,6`, or a number of edits. None if it is neither.
    pub fn edits_from(text: &str) -> Option<(usize, usize)> {
        match text.to_ascii_uppercase().as_str() {
            "AUTO" => Some((3, 6)),
            "0" | "0.0" => Some((usize::MAX, usize::MAX)),
            "1" | "1.0" => Some((0, usize::MAX)),
            "2" | "2.0" => Some((0, 0)),
            text => {
                let (one, two) = text.strip_prefix("AUTO:")?.split_once(',')?;
                let from = (one.trim().parse().ok()?, two.trim().parse().ok()?);
                (from.0 <= from.1).then_some(from)
            }
        }
    }

    /// Edits that a word may have.
    pub fn edits(&self, word: &str) -> u8 {
        let chars = word.chars().count();
        u8::from(chars >= self.edits_from.0) + u8::from(chars >= self.edits_from.1)
    }
}

/// A query whose scores functions change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionScore {
    /// Which documents, and the scores that are changed.
    pub query: Query,
    /// What changes them.
    pub functions: Vec<ScoreFunction>,
    /// `score_mode`: how the functions of a document become one number.
    pub functions_by: Combine,
    /// `boost_mode`: how that number and the score become one.
    pub with_score_by: Combine,
    /// `max_boost`: the functions count for no more.
    pub max_boost: f64,
    /// Documents with less are left out.
    pub min_score: Option<f32>,
}

/// A function of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreFunction {
    /// The documents that it is of; none: of all.
    pub filter: Option<Query>,
    /// What it is multiplied by; none: by nothing, and in an average it weighs 1.
    pub weight: Option<f64>,
    /// What it is.
    pub kind: ScoreKind,
}

/// What a query asks of several fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldsQuery {
    /// Paths, or patterns of them, each with what the score in it is multiplied by; empty for those of the index
    /// (`index.query.default_field`).
    pub fields: Vec<(String, f32)>,
    /// What is asked of each.
    pub query: FieldQuery,
    /// What does not fit a field's type matches nothing in it; none for where the fields of the index are all that
    /// there are.
    pub lenient: Option<bool>,
    /// What the fields beside the best one add to a score: with 1 scores are summed up.
    pub tie_breaker: f32,
    /// Whether it is left out of the clauses around it where no field's analyzer finds a word in it.
    pub drops: bool,
}

/// A query that goes through aliases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AliasedQuery {
    /// Which documents, and their scores.
    pub query: Query,
    /// Which of them count, by the names of their indices; of the others all.
    pub filters: BTreeMap<String, Query>,
}

/// Of the documents of each shard that a query matches the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstQuery {
    /// Which documents, and their scores.
    pub query: Query,
    /// How many, at least 1.
    pub most: u64,
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
    /// `minimum_should_match`: at least 1 without `must` and `filter`; where it is not given 0 with them.
    pub minimum: Option<MinimumShouldMatch>,
    /// Made of a `simple_query_string`: what has no words is left out of its clauses, and this of those around it where
    /// nothing of it is left but what matches all beside a negated clause.
    pub drops: bool,
}

impl BoolQuery {
    /// How many of `should` must match, where so many of `must` and of `should` are not left out; nothing can where
    /// these are more than there are.
    pub fn needed(&self, must: usize, should: usize) -> usize {
        let is_alone = must == 0 && self.filter.is_empty();
        // As in the field the minimum does not count where nothing is asked for, or where clauses only exclude.
        if is_alone && should == 0 {
            return 0;
        }
        let given = self.minimum.as_ref().and_then(|minimum| minimum.of(should));
        given.unwrap_or(0).max(usize::from(is_alone))
    }
}

impl Query {
    /// A query with boost 1.
    pub fn of(kind: QueryKind) -> Self {
        Query { kind, boost: 1.0 }
    }

    /// The same of what filters let through, by the names of the indices.
    pub fn within(self, filters: BTreeMap<String, Query>) -> Self {
        match filters.is_empty() {
            true => self,
            false => Query::of(QueryKind::Aliased(Box::new(AliasedQuery { query: self, filters }))),
        }
    }

    /// What it matches and filters let pass, with its scores.
    pub fn filtered(&self, filter: Vec<Query>) -> Self {
        let of = BoolQuery { must: vec![self.clone()], filter, ..BoolQuery::default() };
        Query::of(QueryKind::Bool(Box::new(of)))
    }

    /// The same of so many documents of each shard alone: the first that match. Of all where no number is given.
    pub fn first(self, most: Option<u64>) -> Self {
        match most {
            None => self,
            Some(most) => Query::of(QueryKind::First(Box::new(FirstQuery { query: self, most }))),
        }
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
    fn edits_by_length() {
        for (text, edits) in
            [("auto", [0, 1, 2]), ("2", [2, 2, 2]), ("AUTO:0,4", [1, 2, 2]), ("0", [0; 3])]
        {
            let edits_from = Fuzziness::edits_from(text).unwrap();
            let of = Fuzziness { edits_from, prefix_chars: 0, words_max: 50, transpositions: true };
            assert_eq!(["ab", "abcd", "abcdef"].map(|word| of.edits(word)), edits, "{text}");
        }
        assert_eq!((Fuzziness::edits_from("3"), Fuzziness::edits_from("AUTO:6,3")), (None, None));
    }

    #[test]
    fn minimum_should_match_as_documented() {
        for (text, clauses, needed) in [
            ("2", 5, Some(2)),
            ("9", 5, Some(9)),
            ("-2", 5, Some(3)),
            ("-9", 5, Some(0)),
            ("75%", 4, Some(3)),
            ("75%", 5, Some(3)),
            ("-25%", 4, Some(3)),
            ("-25%", 5, Some(4)),
            ("200%", 4, Some(8)),
            ("3<90%", 3, Some(3)),
            ("3<90%", 4, Some(3)),
            ("2<-25% 9<-3", 2, Some(2)),
            ("2<-25% 9<-3", 8, Some(6)),
            ("2<-25% 9<-3", 12, Some(9)),
            ("2< -25%", 2, Some(2)),
            (" 2 < -25%  9 <\t-3 ", 8, Some(6)),
            (" 2 < -25%  9 <\t-3 ", 12, Some(9)),
            (" 75% ", 4, Some(3)),
            ("75 %", 4, None),
            ("2<75% 9", 12, None),
            ("two", 3, None),
            ("3<", 4, None),
            ("10001%", 4, None),
            ("-9223372036854775808", 4, None),
        ] {
            assert_eq!(MinimumShouldMatch(text.to_owned()).of(clauses), needed, "{text} {clauses}");
        }
    }

    #[test]
    fn a_bool_needs_one_of_its_clauses_and_maybe_more_than_it_has() {
        for (must, should, minimum, needed) in [
            (0, 3, None, 1),
            (1, 3, None, 0),
            (0, 3, Some("30%"), 1),
            (0, 3, Some("0"), 1),
            (0, 3, Some("-3"), 1),
            (1, 3, Some("-3"), 0),
            (0, 2, Some("3"), 3),
            (1, 0, Some("1"), 1),
            (0, 0, Some("1"), 0),
        ] {
            let all = |count: usize| vec![Query::match_all(); count];
            let query = BoolQuery {
                must: all(must),
                should: all(should),
                minimum: minimum.map(|text: &str| MinimumShouldMatch(text.to_owned())),
                ..BoolQuery::default()
            };
            assert_eq!(query.needed(must, should), needed, "{query:?}");
        }
    }
}
