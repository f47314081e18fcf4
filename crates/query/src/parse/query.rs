//! Queries from JSON.

use record::names::did_you_mean;

use super::query_string::QueryString;
use crate::error::{SearchError, illegal, parsing};
use crate::geo;
use crate::json::{Node, Options, Value};
use crate::query::{
    BoolQuery, FieldQuery, FieldsQuery, MinimumShouldMatch, Query, QueryKind, RangeEnd,
};
use crate::value::{Literal, is_point, point as point_of_text};
use crate::{DateFormat, date, refused};

type Result<T> = std::result::Result<T, SearchError>;

/// `indices.query.bool.max_nested_depth` and `indices.query.bool.max_clause_count` of the field.
const MAX_BOOL_DEPTH: usize = 20;
const MAX_CLAUSES: usize = 1024;
/// `index.max_terms_count` of the field.
const MAX_TERMS: usize = 65_536;

/// The queries that there are.
pub const QUERIES: &str = "bool constant_score dis_max exists geo_bounding_box geo_distance ids match match_all \
                       match_none match_phrase multi_match prefix query_string range regexp term terms wildcard";

/// Reads a query.
pub(crate) fn query(node: &Node) -> Result<Query> {
    Reader { clauses: 0 }.query(node, 0)
}

struct Reader {
    clauses: usize,
}

impl Reader {
    fn query(&mut self, node: &Node, depth: usize) -> Result<Query> {
        let members = node.object("query")?;
        let [member] = members else {
            let reason = match members.get(1) {
                None => "query malformed, empty clause found".to_owned(),
                Some(second) => format!(
                    "[{}] malformed query, expected [END_OBJECT] but found [{}]",
                    members[0].name, second.name
                ),
            };
            return Err(parsing(members.get(1).map_or(node.at, |second| second.at), reason));
        };
        if depth > MAX_BOOL_DEPTH {
            return Err(illegal(format!(
                "bool queries are nested deeper than {MAX_BOOL_DEPTH} \
                 (indices.query.bool.max_nested_depth)"
            )));
        }
        self.clauses += 1;
        if self.clauses > MAX_CLAUSES {
            return Err(illegal(format!(
                "the query has more than {MAX_CLAUSES} clauses (indices.query.bool.max_clause_count); \
                 send terms in place of many clauses"
            )));
        }
        let body = &member.node;
        match member.name.as_ref() {
            "bool" => self.bool(body, depth),
            "constant_score" => {
                let options = body.options("constant_score", "filter boost _name", 0)?;
                let filter = Box::new(self.query(options.need("filter")?, depth)?);
                boosted(&options, QueryKind::ConstantScore(filter))
            }
            "dis_max" => {
                let options = body.options("dis_max", "queries tie_breaker boost _name", 0)?;
                let queries = options.need("queries")?.items().iter();
                let queries = queries.map(|query| self.query(query, depth + 1));
                let tie_breaker = options.read("tie_breaker", Node::float)?.unwrap_or(0.0) as f32;
                boosted(&options, QueryKind::DisMax(queries.collect::<Result<_>>()?, tie_breaker))
            }
            "match_all" => boosted(&body.options("match_all", COMMON, 0)?, QueryKind::MatchAll),
            "match_none" => boosted(&body.options("match_none", COMMON, 0)?, QueryKind::MatchNone),
            "match" => match_words(body),
            "match_phrase" => match_phrase(body),
            "multi_match" => multi_match(body),
            "query_string" => query_string(body),
            "term" => term(body),
            "terms" => terms(body),
            "range" => range(body),
            "prefix" => prefix(body),
            "wildcard" => pattern("wildcard", body, |pattern| FieldQuery::Wildcard {
                pattern,
                analyzed: false,
            }),
            "regexp" => pattern("regexp", body, FieldQuery::Regexp),
            "exists" => exists(body),
            "ids" => ids(body),
            "geo_distance" => geo_distance(body),
            "geo_bounding_box" => geo_bounding_box(body),
            name => {
                let near = did_you_mean(name, QUERIES.split(' '));
                let unknown = format!("unknown query [{name}]{near}");
                let what = format!("the query [{name}]");
                Err(parsing(member.at, refused::said(refused::QUERIES, &what, name, unknown)))
            }
        }
    }

    fn bool(&mut self, node: &Node, depth: usize) -> Result<Query> {
        const KNOWN: &str =
            "must filter should must_not minimum_should_match adjust_pure_negative boost _name";
        let options = node.options("bool", KNOWN, 0)?;
        options.read("adjust_pure_negative", Node::bool)?;
        let mut clauses = |name: &str| -> Result<Vec<Query>> {
            let items = options.get(name).map_or(&[][..], Node::items);
            items.iter().map(|clause| self.query(clause, depth + 1)).collect()
        };
        let query = BoolQuery {
            must: clauses("must")?,
            filter: clauses("filter")?,
            should: clauses("should")?,
            must_not: clauses("must_not")?,
            minimum: options.read("minimum_should_match", minimum)?,
        };
        boosted(&options, QueryKind::Bool(Box::new(query)))
    }
}

/// What every query may have.
const COMMON: &str = "boost _name";

/// A query with the boost that its options give it.
fn boosted(options: &Options<'_>, kind: QueryKind) -> Result<Query> {
    options.read("_name", Node::text)?;
    let boost = options.read("boost", Node::float)?.unwrap_or(1.0);
    if let Some(node) = options.get("boost").filter(|_| boost < 0.0) {
        return Err(parsing(node.at, format!("boost [{boost}] is negative")));
    }
    Ok(Query { kind, boost: boost as f32 })
}

/// A query of one field.
fn asked(options: &Options<'_>, field: &str, query: FieldQuery) -> Result<Query> {
    boosted(options, QueryKind::Field(field.to_owned(), query))
}

/// The one field of a query, and what stands under it.
fn field<'a>(query: &str, node: &'a Node<'a>) -> Result<(&'a str, &'a Node<'a>)> {
    match node.object(query)? {
        [member] => Ok((&member.name, &member.node)),
        [] => Err(parsing(node.at, format!("[{query}] query requires a field"))),
        [first, second, ..] => Err(parsing(
            second.at,
            format!(
                "[{query}] query doesn't support multiple fields, found [{}] and [{}]",
                first.name, second.name
            ),
        )),
    }
}

/// A query that has a field with either a value or an object with the first of the `known` and options.
fn valued<'a>(
    query: &'a str,
    node: &'a Node<'a>,
    known: &'static str,
) -> Result<(&'a str, Literal, Options<'a>)> {
    let (field, body) = field(query, node)?;
    let Value::Object(_) = body.value else {
        return Ok((field, body.literal(query)?, Options::none(query, body)));
    };
    let options = body.options(query, known, 0)?;
    let name = known.split(' ').next().unwrap_or_default();
    let value = options.need(name)?.literal(name)?;
    options.one_of("case_insensitive", &["false"])?;
    Ok((field, value, options))
}

fn minimum(node: &Node, name: &str) -> Result<MinimumShouldMatch> {
    let minimum = MinimumShouldMatch(node.text(name)?);
    match minimum.of(10) {
        Some(_) => Ok(minimum),
        None => Err(parsing(node.at, format!("[{name}] cannot be [{}]", minimum.0))),
    }
}

fn match_words(node: &Node) -> Result<Query> {
    const KNOWN: &str = "query operator minimum_should_match lenient zero_terms_query boost _name";
    let (field, value, options) = valued("match", node, KNOWN)?;
    // The standard analyzer drops no word, so that there is never a query without words to be had.
    options.one_of("zero_terms_query", &["none"])?;
    let query = FieldQuery::Match {
        value,
        all: options.one_of("operator", &["or", "and"])? == "and",
        minimum: options.read("minimum_should_match", minimum)?,
        lenient: options.read("lenient", Node::bool)?.unwrap_or(false),
    };
    asked(&options, field, query)
}

fn match_phrase(node: &Node) -> Result<Query> {
    let (field, value, options) = valued("match_phrase", node, "query slop boost _name")?;
    options.one_of("slop", &["0"])?;
    asked(&options, field, FieldQuery::MatchPhrase(value))
}

fn term(node: &Node) -> Result<Query> {
    let (field, value, options) = valued("term", node, "value case_insensitive boost _name")?;
    match field {
        "_id" => boosted(&options, QueryKind::Ids(vec![value.text()])),
        _ => asked(&options, field, FieldQuery::Term(value)),
    }
}

fn prefix(node: &Node) -> Result<Query> {
    const KNOWN: &str = "value case_insensitive rewrite boost _name";
    let (field, value, options) = valued("prefix", node, KNOWN)?;
    asked(&options, field, FieldQuery::Prefix(value.text()))
}

fn pattern(name: &str, node: &Node, of: fn(String) -> FieldQuery) -> Result<Query> {
    const KNOWN: &str = "value wildcard flags case_insensitive rewrite boost _name";
    let (field, body) = field(name, node)?;
    let Value::Object(_) = body.value else {
        return Ok(Query::of(QueryKind::Field(field.to_owned(), of(body.text(name)?))));
    };
    let options = body.options(name, KNOWN, 0)?;
    options.one_of("case_insensitive", &["false"])?;
    options.one_of("flags", &["all"])?;
    let value = options.get("wildcard").map_or_else(|| options.need("value"), Ok)?;
    asked(&options, field, of(value.text("value")?))
}

/// Fields with their boosts: `a^2`; none where they are not named.
fn fields(options: &Options<'_>) -> Result<Option<Vec<(String, f32)>>> {
    let Some(node) = options.get("fields") else { return Ok(None) };
    let mut fields = Vec::new();
    for node in node.items() {
        let text = node.text("fields")?;
        let (name, boost) = match text.split_once('^') {
            Some((name, boost)) => (name, boost.parse().ok().filter(|boost: &f32| *boost >= 0.0)),
            None => (text.as_str(), Some(1.0)),
        };
        let boost = boost.ok_or_else(|| node.wrong("fields", "a field, or field^2"))?;
        fields.push((name.to_owned(), boost));
    }
    Ok(Some(fields).filter(|fields| !fields.is_empty()))
}

/// `lenient`: without fields, or of all of them, nobody can say that a text fits.
fn lenient(options: &Options<'_>, fields: &[(String, f32)]) -> Result<bool> {
    let of_all = fields.iter().any(|(name, _)| name == "*");
    Ok(options.read("lenient", Node::bool)?.unwrap_or(of_all))
}

fn all_fields() -> Vec<(String, f32)> {
    vec![("*".to_owned(), 1.0)]
}

fn multi_match(node: &Node) -> Result<Query> {
    const KNOWN: &str = "query fields type operator minimum_should_match tie_breaker lenient slop zero_terms_query boost \
                         _name";
    let options = node.options("multi_match", KNOWN, 0)?;
    options.one_of("zero_terms_query", &["none"])?;
    options.one_of("slop", &["0"])?;
    let kind = options.one_of("type", &["best_fields", "most_fields", "phrase"])?;
    let fields = fields(&options)?.unwrap_or_else(all_fields);
    let lenient = lenient(&options, &fields)?;
    let value = options.need("query")?.literal("query")?;
    let query = match kind {
        "phrase" => FieldQuery::MatchPhrase(value),
        _ => FieldQuery::Match {
            value,
            all: options.one_of("operator", &["or", "and"])? == "and",
            minimum: options.read("minimum_should_match", minimum)?,
            lenient,
        },
    };
    let sums = kind == "most_fields";
    let tie_breaker = options.read("tie_breaker", Node::float)?.unwrap_or(0.0) as f32;
    let query = FieldsQuery { fields, query, lenient, tie_breaker, sums, drops: false };
    boosted(&options, QueryKind::Fields(Box::new(query)))
}

fn query_string(node: &Node) -> Result<Query> {
    const KNOWN: &str = "query default_field fields type default_operator tie_breaker lenient analyzer analyze_wildcard \
                         phrase_slop boost _name";
    let options = node.options("query_string", KNOWN, 0)?;
    options.one_of("type", &["best_fields"])?;
    options.one_of("analyzer", &["standard"])?;
    options.one_of("analyze_wildcard", &["false"])?;
    options.one_of("phrase_slop", &["0"])?;
    let fields = match (fields(&options)?, options.read("default_field", Node::text)?) {
        (Some(fields), None) => fields,
        (None, Some(field)) => vec![(field, 1.0)],
        (None, None) => all_fields(),
        (Some(_), Some(_)) => {
            let reason =
                "addition of [fields] to the query when [default_field] is set is not allowed";
            return Err(parsing(node.at, reason.to_owned()));
        }
    };
    let lenient = lenient(&options, &fields)?;
    let tie_breaker = options.read("tie_breaker", Node::float)?.unwrap_or(0.0) as f32;
    let all = options.one_of("default_operator", &["or", "and"])? == "and";
    let node = options.need("query")?;
    let read = QueryString { fields, all, lenient, tie_breaker }.parse(&node.text("query")?);
    let query = read.map_err(|error| SearchError { at: Some(node.at), ..error })?;
    let boost = boosted(&options, QueryKind::MatchNone)?.boost;
    Ok(Query { boost: query.boost * boost, ..query })
}

fn items<'a>(query: &str, node: &'a Node<'a>) -> Result<&'a [Node<'a>]> {
    let items = node.items();
    if items.len() > MAX_TERMS {
        return Err(illegal(format!(
            "the number of terms [{}] used in the [{query}] query is greater than {MAX_TERMS} \
             (index.max_terms_count)",
            items.len()
        )));
    }
    Ok(items)
}

fn terms(node: &Node) -> Result<Query> {
    let options = node.options("terms", COMMON, 1)?;
    let (field, values) = options.field()?;
    let values = values.list(field).and_then(|_| items("terms", values))?;
    let values = values.iter().map(|item| item.literal("terms")).collect::<Result<Vec<_>>>()?;
    match field {
        "_id" => boosted(&options, QueryKind::Ids(values.iter().map(Literal::text).collect())),
        _ => asked(&options, field, FieldQuery::Terms(values)),
    }
}

fn ids(node: &Node) -> Result<Query> {
    let options = node.options("ids", "values boost _name", 0)?;
    let values = options.get("values").map_or(Ok(&[][..]), |values| items("ids", values))?;
    let values = values.iter().map(|item| item.text("values")).collect::<Result<_>>()?;
    boosted(&options, QueryKind::Ids(values))
}

fn exists(node: &Node) -> Result<Query> {
    let options = node.options("exists", "field boost _name", 0)?;
    boosted(&options, QueryKind::Exists(options.need("field")?.text("field")?))
}

fn range(node: &Node) -> Result<Query> {
    const KNOWN: &str =
        "gt gte lt lte from to include_lower include_upper format time_zone relation boost _name";
    let (field, body) = field("range", node)?;
    let options = body.options("range", KNOWN, 0)?;
    options.one_of("relation", &["intersects"])?;
    let end = |names: [&str; 3], included: &str| -> Result<Option<RangeEnd>> {
        let given = options.read(included, Node::bool)?;
        let mut found = None;
        for (name, included) in names.into_iter().zip([false, true, true]) {
            if let Some(value) = options.read(name, Node::literal)? {
                found = Some(RangeEnd { value, included: given.unwrap_or(included) });
            }
        }
        Ok(found)
    };
    let query = FieldQuery::Range {
        lower: end(["gt", "gte", "from"], "include_lower")?,
        upper: end(["lt", "lte", "to"], "include_upper")?,
        format: options.read("format", date_format)?,
        zone_ms: options.read("time_zone", time_zone)?.unwrap_or(0),
    };
    asked(&options, field, query)
}

/// A date format, refused where it stands.
pub(super) fn date_format(node: &Node, name: &str) -> Result<DateFormat> {
    DateFormat::parse(&node.text(name)?).map_err(|reason| parsing(node.at, reason))
}

/// A time zone that is a fixed offset, in milliseconds.
pub(super) fn time_zone(node: &Node, name: &str) -> Result<i64> {
    let text = node.text(name)?;
    date::zone_offset_ms(&text).ok_or_else(|| {
        let reason = format!(
            "[{name}] [{text}] is no offset; write Z or +02:00, as zones by name are not known here"
        );
        parsing(node.at, reason)
    })
}

/// A point: `{"lat":..,"lon":..}`, `[lon, lat]` or `"lat,lon"`.
fn point(node: &Node, name: &str) -> Result<(f64, f64)> {
    let read = match &node.value {
        Value::List(items) => match items.as_slice() {
            [lon, lat] => Some((lat.float(name)?, lon.float(name)?)),
            _ => None,
        },
        Value::Object(_) => {
            let options = node.options(name, "lat lon", 0)?;
            Some((options.need("lat")?.float("lat")?, options.need("lon")?.float("lon")?))
        }
        Value::Text(text) => point_of_text(text),
        _ => None,
    };
    let on_earth = read.filter(|(lat, lon)| is_point(*lat, *lon));
    on_earth.ok_or_else(|| {
        node.wrong(name, "a point of the Earth: {\"lat\":..,\"lon\":..}, [lon, lat] or \"lat,lon\"")
    })
}

fn geo_distance(node: &Node) -> Result<Query> {
    const KNOWN: &str = "distance distance_type unit validation_method boost _name";
    let options = node.options("geo_distance", KNOWN, 1)?;
    options.one_of("distance_type", &["arc"])?;
    options.one_of("validation_method", &["strict"])?;
    let unit = options.read("unit", Node::text)?;
    let node = options.need("distance")?;
    let text = node.text("distance")?;
    let distance_m = geo::meters(&text, unit.as_deref().unwrap_or("m")).ok_or_else(|| {
        parsing(node.at, format!("[geo_distance] distance [{text}] is not like [12km]"))
    })?;
    let (field, center) = options.field()?;
    let center = point(center, field)?;
    asked(&options, field, FieldQuery::GeoDistance { center, distance_m })
}

fn geo_bounding_box(node: &Node) -> Result<Query> {
    // How the box is looked up (`type`) changes nothing in what is found.
    const KNOWN: &str = "ignore_unmapped type validation_method boost _name";
    let options = node.options("geo_bounding_box", KNOWN, 1)?;
    options.one_of("validation_method", &["strict"])?;
    let (field, corners) = options.field()?;
    let [top, left, bottom, right] = sides(corners)?;
    asked(&options, field, FieldQuery::GeoBoundingBox { top, left, bottom, right })
}

/// Top, left, bottom, right.
fn sides(node: &Node) -> Result<[f64; 4]> {
    const KNOWN: &str = "top left bottom right top_left top_right bottom_left bottom_right";
    let options = node.options("geo_bounding_box", KNOWN, 0)?;
    let mut sides: [Option<f64>; 4] = [None; 4];
    for (name, node) in options.iter() {
        let vertical = if name.starts_with("top") { 0 } else { 2 };
        let horizontal = if name.ends_with("left") { 1 } else { 3 };
        match name {
            "top" | "bottom" => sides[vertical] = Some(node.float(name)?),
            "left" | "right" => sides[horizontal] = Some(node.float(name)?),
            _ => {
                let (lat, lon) = point(node, name)?;
                (sides[vertical], sides[horizontal]) = (Some(lat), Some(lon));
            }
        }
    }
    let [Some(top), Some(left), Some(bottom), Some(right)] = sides else {
        return Err(options.missing("all of top, left, bottom and right"));
    };
    if !is_point(top, left) || !is_point(bottom, right) || top < bottom {
        let reason =
            format!("top [{top}], left [{left}], bottom [{bottom}], right [{right}] is no box");
        return Err(parsing(node.at, reason));
    }
    Ok([top, left, bottom, right])
}
