//! Queries from JSON.

use record::names::did_you_mean;

use crate::error::{SearchError, illegal, parsing};
use crate::geo;
use crate::json::{Member, Node, Value};
use crate::query::{BoolQuery, Literal, MinimumShouldMatch, Query, QueryKind, RangeEnd};
use crate::{DateFormat, date};

type Result<T> = std::result::Result<T, SearchError>;

/// `indices.query.bool.max_nested_depth` and `indices.query.bool.max_clause_count` of the field.
const MAX_BOOL_DEPTH: usize = 20;
const MAX_CLAUSES: usize = 1024;
/// `index.max_terms_count` of the field.
const MAX_TERMS: usize = 65_536;

const QUERIES: [&str; 14] = [
    "bool",
    "constant_score",
    "exists",
    "geo_bounding_box",
    "geo_distance",
    "ids",
    "match",
    "match_all",
    "match_none",
    "match_phrase",
    "prefix",
    "range",
    "term",
    "terms",
];

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
        self.clauses += 1;
        if self.clauses > MAX_CLAUSES {
            return Err(illegal(format!(
                "the query has more than {MAX_CLAUSES} clauses (indices.query.bool.max_clause_count); \
                 send terms in place of many clauses"
            )));
        }
        let body = &member.node;
        match member.name.as_str() {
            "bool" => self.bool(body, depth),
            "constant_score" => self.constant_score(body, depth),
            "match_all" => options("match_all", body, QueryKind::MatchAll),
            "match_none" => options("match_none", body, QueryKind::MatchNone),
            "match" => match_words(body),
            "match_phrase" => match_phrase(body),
            "term" => term(body),
            "terms" => terms(body),
            "range" => range(body),
            "prefix" => prefix(body),
            "exists" => exists(body),
            "ids" => ids(body),
            "geo_distance" => geo_distance(body),
            "geo_bounding_box" => geo_bounding_box(body),
            name => {
                let near = did_you_mean(name, QUERIES);
                Err(parsing(member.at, format!("unknown query [{name}]{near}")))
            }
        }
    }

    fn bool(&mut self, node: &Node, depth: usize) -> Result<Query> {
        if depth == MAX_BOOL_DEPTH {
            return Err(illegal(format!(
                "bool queries are nested deeper than {MAX_BOOL_DEPTH} \
                 (indices.query.bool.max_nested_depth)"
            )));
        }
        let mut query = BoolQuery::default();
        let mut boost = 1.0;
        for member in node.object("bool")? {
            let place = match member.name.as_str() {
                "must" => &mut query.must,
                "filter" => &mut query.filter,
                "should" => &mut query.should,
                "must_not" => &mut query.must_not,
                "minimum_should_match" => {
                    query.minimum = Some(minimum(&member.node)?);
                    continue;
                }
                "adjust_pure_negative" => {
                    member.node.bool("adjust_pure_negative")?;
                    continue;
                }
                _ => {
                    common("bool", member, &mut boost, BOOL)?;
                    continue;
                }
            };
            for clause in member.node.items() {
                place.push(self.query(clause, depth + 1)?);
            }
        }
        Ok(Query { kind: QueryKind::Bool(Box::new(query)), boost })
    }

    fn constant_score(&mut self, node: &Node, depth: usize) -> Result<Query> {
        let (mut filter, mut boost) = (None, 1.0);
        for member in node.object("constant_score")? {
            match member.name.as_str() {
                "filter" => filter = Some(Box::new(self.query(&member.node, depth)?)),
                _ => common("constant_score", member, &mut boost, &["filter"])?,
            }
        }
        let filter = filter.ok_or_else(|| missing("constant_score", node, "filter"))?;
        Ok(Query { kind: QueryKind::ConstantScore { filter }, boost })
    }
}

const BOOL: &[&str] = &["must", "filter", "should", "must_not", "minimum_should_match"];

/// What every query may have: `boost` and `_name`. Anything else is refused.
fn common(query: &str, member: &Member, boost: &mut f32, known: &[&str]) -> Result<()> {
    match member.name.as_str() {
        "boost" => {
            let given = member.node.float("boost")?;
            if given < 0.0 {
                return Err(parsing(
                    member.node.at,
                    format!("[{query}] boost [{given}] is negative"),
                ));
            }
            *boost = given as f32;
            Ok(())
        }
        "_name" => member.node.text("_name").map(|_| ()),
        name => {
            let near = did_you_mean(name, known.iter().copied().chain(["boost"]));
            Err(parsing(member.at, format!("[{query}] query does not support [{name}]{near}")))
        }
    }
}

fn missing(query: &str, node: &Node, what: &str) -> SearchError {
    parsing(node.at, format!("[{query}] requires [{what}]"))
}

fn options(name: &str, node: &Node, kind: QueryKind) -> Result<Query> {
    let mut boost = 1.0;
    for member in node.object(name)? {
        common(name, member, &mut boost, &[])?;
    }
    Ok(Query { kind, boost })
}

fn literal(node: &Node, what: &str) -> Result<Literal> {
    Ok(match &node.value {
        Value::Text(text) => Literal::Text(text.clone()),
        Value::Bool(yes) => Literal::Boolean(*yes),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Literal::Integer(whole),
            None => Literal::Float(
                node.float(what)
                    .or_else(|_| number.as_f64().ok_or_else(|| node.wrong(what, "a number")))?,
            ),
        },
        _ => return Err(node.wrong(what, "a value")),
    })
}

/// The one field of a query, and what stands under it.
fn field<'a>(query: &str, node: &'a Node) -> Result<(&'a str, &'a Node)> {
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

/// A query that has a field with either a value or an object with `value_name` and options.
fn valued<'a>(
    query: &str,
    node: &'a Node,
    value_names: &[&str],
    mut option: impl FnMut(&'a Member) -> Result<bool>,
) -> Result<(String, Literal, f32)> {
    let (field, body) = field(query, node)?;
    let Value::Object(members) = &body.value else {
        return Ok((field.to_owned(), literal(body, query)?, 1.0));
    };
    let (mut value, mut boost) = (None, 1.0);
    for member in members {
        if value_names.contains(&member.name.as_str()) {
            value = Some(literal(&member.node, &member.name)?);
        } else if !option(member)? {
            common(query, member, &mut boost, value_names)?;
        }
    }
    let value = value.ok_or_else(|| missing(query, body, value_names[0]))?;
    Ok((field.to_owned(), value, boost))
}

fn minimum(node: &Node) -> Result<MinimumShouldMatch> {
    let minimum = MinimumShouldMatch(node.text("minimum_should_match")?);
    match minimum.of(10) {
        Some(_) => Ok(minimum),
        None => Err(parsing(node.at, format!("[minimum_should_match] cannot be [{}]", minimum.0))),
    }
}

fn match_words(node: &Node) -> Result<Query> {
    let (mut all, mut least, mut lenient) = (false, None, false);
    let (field, value, boost) = valued("match", node, &["query"], |member| {
        match member.name.as_str() {
            "operator" => {
                all = match member.node.text("operator")?.to_ascii_lowercase().as_str() {
                    "and" => true,
                    "or" => false,
                    other => {
                        let reason = format!("[match] operator [{other}] is neither and nor or");
                        return Err(parsing(member.node.at, reason));
                    }
                }
            }
            "minimum_should_match" => least = Some(minimum(&member.node)?),
            "lenient" => lenient = member.node.bool("lenient")?,
            // The standard analyzer drops no word, so that there is never a query without words to be had.
            "zero_terms_query" => {
                let given = member.node.text("zero_terms_query")?;
                if !given.eq_ignore_ascii_case("none") {
                    let reason = format!("[match] zero_terms_query [{given}] is not supported");
                    return Err(parsing(member.node.at, reason));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Query { kind: QueryKind::Match { field, value, all, minimum: least, lenient }, boost })
}

fn match_phrase(node: &Node) -> Result<Query> {
    let (field, value, boost) = valued("match_phrase", node, &["query"], |member| {
        if member.name != "slop" {
            return Ok(false);
        }
        if member.node.count("slop")? > 0 {
            let reason = "[match_phrase] slop above 0 is not supported by this engine";
            return Err(parsing(member.node.at, reason));
        }
        Ok(true)
    })?;
    Ok(Query { kind: QueryKind::MatchPhrase { field, value }, boost })
}

fn term(node: &Node) -> Result<Query> {
    let (field, value, boost) =
        valued("term", node, &["value"], |member| exactly_cased("term", member))?;
    Ok(Query { kind: QueryKind::Term { field, value }, boost })
}

fn prefix(node: &Node) -> Result<Query> {
    let (field, value, boost) = valued("prefix", node, &["value"], |member| {
        Ok(member.name == "rewrite" || exactly_cased("prefix", member)?)
    })?;
    Ok(Query { kind: QueryKind::Prefix { field, value: value.text() }, boost })
}

fn exactly_cased(query: &str, member: &Member) -> Result<bool> {
    if member.name != "case_insensitive" {
        return Ok(false);
    }
    if member.node.bool("case_insensitive")? {
        let reason = format!("[{query}] case_insensitive is not supported by this engine");
        return Err(parsing(member.node.at, reason));
    }
    Ok(true)
}

fn terms(node: &Node) -> Result<Query> {
    let (mut field, mut boost) = (None, 1.0);
    for member in node.object("terms")? {
        if let Value::List(items) = &member.node.value {
            if let Some((first, _)) = &field {
                let reason = format!(
                    "[terms] query does not support multiple fields, found [{first}] and [{}]",
                    member.name
                );
                return Err(parsing(member.at, reason));
            }
            if items.len() > MAX_TERMS {
                return Err(illegal(format!(
                    "the number of terms [{}] used in the terms query is greater than {MAX_TERMS} \
                     (index.max_terms_count)",
                    items.len()
                )));
            }
            let values = items.iter().map(|item| literal(item, "terms")).collect::<Result<_>>()?;
            field = Some((member.name.clone(), values));
        } else {
            common("terms", member, &mut boost, &[])?;
        }
    }
    let (field, values) =
        field.ok_or_else(|| missing("terms", node, "a field with an array of terms"))?;
    Ok(Query { kind: QueryKind::Terms { field, values }, boost })
}

fn range(node: &Node) -> Result<Query> {
    const KNOWN: &[&str] = &["gt", "gte", "lt", "lte", "format", "time_zone", "relation"];
    let (field, body) = field("range", node)?;
    let (mut lower, mut upper, mut format, mut zone_ms, mut boost) = (None, None, None, 0, 1.0);
    let (mut include_lower, mut include_upper) = (None, None);
    for member in body.object("range")? {
        let end = |included| -> Result<Option<RangeEnd>> {
            if member.node.value == Value::Null {
                return Ok(None);
            }
            Ok(Some(RangeEnd { value: literal(&member.node, &member.name)?, included }))
        };
        match member.name.as_str() {
            "gt" => lower = end(false)?,
            "gte" | "from" => lower = end(true)?,
            "lt" => upper = end(false)?,
            "lte" | "to" => upper = end(true)?,
            "include_lower" => include_lower = Some(member.node.bool("include_lower")?),
            "include_upper" => include_upper = Some(member.node.bool("include_upper")?),
            "format" => format = Some(date_format(&member.node)?),
            "time_zone" => zone_ms = time_zone(&member.node)?,
            "relation" if member.node.text("relation")?.eq_ignore_ascii_case("intersects") => {}
            _ => common("range", member, &mut boost, KNOWN)?,
        }
    }
    let included = |end: Option<RangeEnd>, given: Option<bool>| {
        end.map(|end| RangeEnd { included: given.unwrap_or(end.included), ..end })
    };
    let (lower, upper) = (included(lower, include_lower), included(upper, include_upper));
    Ok(Query {
        kind: QueryKind::Range { field: field.to_owned(), lower, upper, format, zone_ms },
        boost,
    })
}

/// A date format, refused where it stands.
pub(super) fn date_format(node: &Node) -> Result<DateFormat> {
    DateFormat::parse(&node.text("format")?).map_err(|reason| parsing(node.at, reason))
}

/// A time zone that is a fixed offset, in milliseconds.
pub(super) fn time_zone(node: &Node) -> Result<i64> {
    let text = node.text("time_zone")?;
    date::zone_offset_ms(&text).ok_or_else(|| {
        let reason = format!("[time_zone] [{text}] is no offset; write Z or +02:00, as zones by name are not known here");
        parsing(node.at, reason)
    })
}

fn exists(node: &Node) -> Result<Query> {
    let (mut field, mut boost) = (None, 1.0);
    for member in node.object("exists")? {
        match member.name.as_str() {
            "field" => field = Some(member.node.text("field")?),
            _ => common("exists", member, &mut boost, &["field"])?,
        }
    }
    let field = field.ok_or_else(|| missing("exists", node, "field"))?;
    Ok(Query { kind: QueryKind::Exists { field }, boost })
}

fn ids(node: &Node) -> Result<Query> {
    let (mut values, mut boost) = (Vec::new(), 1.0);
    for member in node.object("ids")? {
        match member.name.as_str() {
            "values" => {
                let items = member.node.items();
                if items.len() > MAX_TERMS {
                    return Err(illegal(format!(
                        "[ids] has [{}] values, more than {MAX_TERMS} (index.max_terms_count)",
                        items.len()
                    )));
                }
                values = items.iter().map(|item| item.text("values")).collect::<Result<_>>()?;
            }
            _ => common("ids", member, &mut boost, &["values"])?,
        }
    }
    Ok(Query { kind: QueryKind::Ids { values }, boost })
}

/// A point: `{"lat":..,"lon":..}`, `[lon, lat]` or `"lat,lon"`.
fn point(node: &Node, what: &str) -> Result<(f64, f64)> {
    let read = match &node.value {
        Value::List(items) => match items.as_slice() {
            [lon, lat] => Some((lat.float(what)?, lon.float(what)?)),
            _ => None,
        },
        Value::Object(members) => {
            let of = |name: &str| members.iter().find(|member| member.name == name);
            match (of("lat"), of("lon"), members.len()) {
                (Some(lat), Some(lon), 2) => Some((lat.node.float(what)?, lon.node.float(what)?)),
                _ => None,
            }
        }
        Value::Text(text) => crate::mapping::value::point(text),
        _ => None,
    };
    let on_earth = read.filter(|(lat, lon)| crate::mapping::value::is_point(*lat, *lon));
    on_earth.ok_or_else(|| {
        node.wrong(what, "a point of the Earth: {\"lat\":..,\"lon\":..}, [lon, lat] or \"lat,lon\"")
    })
}

fn geo_distance(node: &Node) -> Result<Query> {
    const KNOWN: &[&str] = &["distance", "distance_type", "unit", "validation_method"];
    let (mut center, mut distance, mut unit, mut boost) = (None, None, "m".to_owned(), 1.0);
    for member in node.object("geo_distance")? {
        match member.name.as_str() {
            "distance" => distance = Some(&member.node),
            "unit" => unit = member.node.text("unit")?,
            "distance_type" => {
                let kind = member.node.text("distance_type")?;
                if kind != "arc" {
                    let reason =
                        format!("[geo_distance] distance_type [{kind}] is not supported; send arc");
                    return Err(parsing(member.node.at, reason));
                }
            }
            "validation_method" => strictly("geo_distance", member)?,
            "boost" | "_name" => common("geo_distance", member, &mut boost, KNOWN)?,
            _ if center.is_none() => {
                center = Some((member.name.clone(), point(&member.node, &member.name)?));
            }
            _ => common("geo_distance", member, &mut boost, KNOWN)?,
        }
    }
    let node_of = distance.ok_or_else(|| missing("geo_distance", node, "distance"))?;
    let text = node_of.text("distance")?;
    let distance_m = geo::meters(&text, &unit).ok_or_else(|| {
        parsing(node_of.at, format!("[geo_distance] distance [{text}] is not like [12km]"))
    })?;
    let (field, center) =
        center.ok_or_else(|| missing("geo_distance", node, "a field with a point"))?;
    Ok(Query { kind: QueryKind::GeoDistance { field, center, distance_m }, boost })
}

fn strictly(query: &str, member: &Member) -> Result<()> {
    let given = member.node.text("validation_method")?;
    if given.eq_ignore_ascii_case("strict") {
        return Ok(());
    }
    let reason = format!("[{query}] validation_method [{given}] is not supported; send strict");
    Err(parsing(member.node.at, reason))
}

fn geo_bounding_box(node: &Node) -> Result<Query> {
    const KNOWN: &[&str] = &["ignore_unmapped", "type", "validation_method"];
    let (mut found, mut boost) = (None, 1.0);
    for member in node.object("geo_bounding_box")? {
        match member.name.as_str() {
            "validation_method" => strictly("geo_bounding_box", member)?,
            // How the box is looked up; nothing changes in what is found.
            "type" | "ignore_unmapped" => {}
            "boost" | "_name" => common("geo_bounding_box", member, &mut boost, KNOWN)?,
            _ if found.is_none() => {
                found = Some((member.name.clone(), corners(&member.node)?));
            }
            _ => common("geo_bounding_box", member, &mut boost, KNOWN)?,
        }
    }
    let (field, [top, left, bottom, right]) =
        found.ok_or_else(|| missing("geo_bounding_box", node, "a field with a box"))?;
    Ok(Query { kind: QueryKind::GeoBoundingBox { field, top, left, bottom, right }, boost })
}

/// Top, left, bottom, right.
fn corners(node: &Node) -> Result<[f64; 4]> {
    let mut sides: [Option<f64>; 4] = [None; 4];
    for member in node.object("geo_bounding_box")? {
        let name = member.name.as_str();
        let number = || member.node.float(name);
        match name {
            "top" => sides[0] = Some(number()?),
            "left" => sides[1] = Some(number()?),
            "bottom" => sides[2] = Some(number()?),
            "right" => sides[3] = Some(number()?),
            "top_left" | "top_right" | "bottom_left" | "bottom_right" => {
                let (lat, lon) = point(&member.node, name)?;
                let vertical = if name.starts_with("top") { 0 } else { 2 };
                let horizontal = if name.ends_with("left") { 1 } else { 3 };
                (sides[vertical], sides[horizontal]) = (Some(lat), Some(lon));
            }
            _ => {
                let known = ["top", "left", "bottom", "right", "top_left", "bottom_right"];
                let near = did_you_mean(name, known);
                let reason =
                    format!("failed to parse bounding box. unexpected field [{name}]{near}");
                return Err(parsing(member.at, reason));
            }
        }
    }
    let [Some(top), Some(left), Some(bottom), Some(right)] = sides else {
        return Err(missing("geo_bounding_box", node, "all of top, left, bottom and right"));
    };
    let on_earth = crate::mapping::value::is_point(top, left)
        && crate::mapping::value::is_point(bottom, right);
    if !on_earth || top < bottom {
        let reason =
            format!("top [{top}], left [{left}], bottom [{bottom}], right [{right}] is no box");
        return Err(parsing(node.at, reason));
    }
    Ok([top, left, bottom, right])
}
