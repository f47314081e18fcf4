//! Queries from JSON.

use record::names::did_you_mean;

use super::clauses::Clauses;
use super::limits::{MAX_BOOL_DEPTH, MAX_TERMS};
use super::places::{corners, point, shape, sides};
use super::query_string::{QueryString, escaped};
use crate::error::{Result, SearchError, ensure, illegal, parsing};
use crate::geo;
use crate::json::{Node, Options, Value};
use crate::query::{
    BoolQuery, FieldQuery, FieldsQuery, Fuzziness, MinimumShouldMatch, Query, QueryKind, RangeEnd,
    RangeQuery,
};
use crate::value::Literal;
use crate::{DateFormat, Zone, refused};

/// Reads what stands under the name of a query; of those that have others within them, so deep.
type Read = fn(&mut Reader, &Node, usize) -> Result<Query>;

/// The queries that there are, and what reads them.
const KINDS: [(&str, Read); 26] = [
    ("bool", Reader::bool),
    ("constant_score", Reader::constant_score),
    ("dis_max", Reader::dis_max),
    ("exists", |_, node, _| exists(node)),
    ("function_score", Reader::function_score),
    ("fuzzy", |_, node, _| fuzzy(node)),
    ("geo_bounding_box", |_, node, _| geo_bounding_box(node)),
    ("geo_distance", |_, node, _| geo_distance(node)),
    ("geo_polygon", |_, node, _| geo_polygon(node)),
    ("geo_shape", |_, node, _| geo_shape(node)),
    ("ids", |_, node, _| ids(node)),
    ("match", |_, node, _| match_words(node)),
    ("match_all", |_, node, _| plain("match_all", node, QueryKind::MatchAll)),
    ("match_bool_prefix", |_, node, _| match_bool_prefix(node)),
    ("match_none", |_, node, _| plain("match_none", node, QueryKind::MatchNone)),
    ("match_phrase", |_, node, _| match_phrase(node)),
    ("match_phrase_prefix", |_, node, _| match_phrase_prefix(node)),
    ("multi_match", |reader, node, _| multi_match(reader, node)),
    ("prefix", |_, node, _| prefix(node)),
    ("query_string", |reader, node, _| query_string(reader, node)),
    ("range", |_, node, _| range(node)),
    ("regexp", |_, node, _| {
        pattern("regexp", node, |pattern, any_case| FieldQuery::Regexp { pattern, any_case })
    }),
    ("simple_query_string", |reader, node, _| simple_query_string(reader, node)),
    ("term", |_, node, _| term(node)),
    ("terms", |_, node, _| terms(node)),
    ("wildcard", |_, node, _| pattern("wildcard", node, wildcard)),
];

/// The queries that there are.
pub fn queries() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// Reads a query.
pub(crate) fn query(node: &Node) -> Result<Query> {
    Reader { clauses: Clauses::default() }.query(node, 0)
}

pub(super) struct Reader {
    pub(super) clauses: Clauses,
}

impl Reader {
    pub(super) fn query(&mut self, node: &Node, depth: usize) -> Result<Query> {
        let member = match node.object("query")? {
            [member] => member,
            [] => return Err(parsing(node.at, "query malformed, empty clause found")),
            [first, second, ..] => {
                let (of, found) = (&first.name, &second.name);
                let wanted = format_args!("[{of}] malformed query, expected [END_OBJECT]");
                return Err(parsing(second.at, format!("{wanted} but found [{found}]")));
            }
        };
        if depth > MAX_BOOL_DEPTH {
            return Err(illegal(format!(
                "bool queries are nested deeper than {MAX_BOOL_DEPTH} \
                 (indices.query.bool.max_nested_depth)"
            )));
        }
        self.clauses.add(1)?;
        let name = member.name.as_ref();
        let Some((_, read)) = KINDS.iter().find(|(known, _)| *known == name) else {
            let unknown = format!("unknown query [{name}]{}", did_you_mean(name, queries()));
            let what = format!("the query [{name}]");
            return Err(parsing(member.at, refused::said(refused::QUERIES, &what, name, unknown)));
        };
        read(self, &member.node, depth)
    }

    fn constant_score(&mut self, node: &Node, depth: usize) -> Result<Query> {
        let options = node.options("constant_score", "filter boost _name", 0)?;
        let filter = Box::new(self.query(options.need("filter")?, depth + 1)?);
        boosted(&options, QueryKind::ConstantScore(filter))
    }

    fn dis_max(&mut self, node: &Node, depth: usize) -> Result<Query> {
        let options = node.options("dis_max", "queries tie_breaker boost _name", 0)?;
        let queries = options.need("queries")?.items().iter();
        let queries = queries.map(|query| self.query(query, depth + 1));
        let tie_breaker = tie_breaker(&options)?;
        boosted(&options, QueryKind::DisMax(queries.collect::<Result<_>>()?, tie_breaker))
    }

    fn bool(&mut self, node: &Node, depth: usize) -> Result<Query> {
        const KNOWN: &str =
            "must filter should must_not minimum_should_match adjust_pure_negative boost _name";
        let options = node.options("bool", KNOWN, 0)?;
        options.one_of("adjust_pure_negative", &["true"])?;
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
            drops: false,
        };
        boosted(&options, QueryKind::Bool(Box::new(query)))
    }
}

/// What every query may have.
const COMMON: &str = "boost _name";

fn plain(name: &str, node: &Node, kind: QueryKind) -> Result<Query> {
    boosted(&node.options(name, COMMON, 0)?, kind)
}

/// A query with the boost that its options give it.
pub(super) fn boosted(options: &Options<'_>, kind: QueryKind) -> Result<Query> {
    boosted_from(options, kind, 1.0)
}

/// The same, with the boost that it has where its options give it none.
fn boosted_from(options: &Options<'_>, kind: QueryKind, default: f64) -> Result<Query> {
    options.without(
        "_name",
        "[_name] is not supported by this engine: hits do not show their [matched_queries]; send a search for each of \
         the queries",
    )?;
    let boost = options.read("boost", |node, name| {
        let boost = node.float(name)?;
        ensure(boost >= 0.0, node.at, format_args!("boost [{boost}] is negative")).map(|()| boost)
    })?;
    Ok(Query { kind, boost: boost.unwrap_or(default) as f32 })
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
    const KNOWN: &str = "query operator minimum_should_match lenient zero_terms_query fuzziness prefix_length \
                         max_expansions fuzzy_transpositions boost _name";
    let (field, value, options) = valued("match", node, KNOWN)?;
    // [all] is not offered: a query whose words are all dropped, as stop words are, matches nothing.
    options.one_of("zero_terms_query", &["none"])?;
    let lenient = options.read("lenient", Node::bool)?.unwrap_or(false);
    let query = words(&options, value, (lenient, false))?;
    asked(&options, field, query)
}

fn match_bool_prefix(node: &Node) -> Result<Query> {
    const KNOWN: &str = "query operator minimum_should_match fuzziness prefix_length max_expansions \
                         fuzzy_transpositions boost _name";
    let (field, value, options) = valued("match_bool_prefix", node, KNOWN)?;
    let query = words(&options, value, (false, true))?;
    asked(&options, field, query)
}

/// The words of a value, and how the options ask for them.
fn words(
    options: &Options<'_>,
    value: Literal,
    (lenient, prefix): (bool, bool),
) -> Result<FieldQuery> {
    let all = options.one_of("operator", &["or", "and"])? == "and";
    let minimum = options.read("minimum_should_match", minimum)?;
    let fuzziness = fuzziness(options, "fuzzy_transpositions")?;
    let fuzziness = options.get("fuzziness").map(|_| fuzziness);
    Ok(FieldQuery::Match { value, all, prefix, minimum, lenient, fuzziness })
}

/// How far words may be from those asked for.
fn fuzziness(options: &Options<'_>, transpositions: &str) -> Result<Fuzziness> {
    let given = options.read("fuzziness", |node, name| {
        let edits_from = Fuzziness::edits_from(&node.text(name)?);
        edits_from.ok_or_else(|| node.wrong(name, "0, 1, 2, AUTO or AUTO:3,6"))
    })?;
    let count =
        |name, default| Ok(options.read(name, Node::count)?.map_or(default, |n| n as usize));
    Ok(Fuzziness {
        edits_from: given.unwrap_or((3, 6)),
        prefix_chars: count("prefix_length", 0)?,
        words_max: count("max_expansions", 50)?,
        transpositions: options.read(transpositions, Node::bool)?.unwrap_or(true),
    })
}

fn fuzzy(node: &Node) -> Result<Query> {
    const KNOWN: &str =
        "value fuzziness prefix_length max_expansions transpositions rewrite boost _name";
    let (field, value, options) = valued("fuzzy", node, KNOWN)?;
    options.one_of("rewrite", &["top_terms_blended_freqs_50"])?;
    let fuzziness = fuzziness(&options, "transpositions")?;
    asked(&options, field, FieldQuery::Fuzzy(value.text(), fuzziness))
}

fn match_phrase(node: &Node) -> Result<Query> {
    let (field, value, options) = valued("match_phrase", node, "query slop boost _name")?;
    options.one_of("slop", &["0"])?;
    asked(&options, field, FieldQuery::MatchPhrase(value))
}

fn match_phrase_prefix(node: &Node) -> Result<Query> {
    const KNOWN: &str = "query slop max_expansions zero_terms_query boost _name";
    let (field, value, options) = valued("match_phrase_prefix", node, KNOWN)?;
    options.one_of("slop", &["0"])?;
    options.one_of("zero_terms_query", &["none"])?;
    let words_max = options.read("max_expansions", |node, name| {
        let count = node.count(name)?;
        ensure(count > 0, node.at, "[max_expansions] must be positive").map(|()| count as usize)
    })?;
    let words_max = words_max.unwrap_or(50);
    asked(&options, field, FieldQuery::PhrasePrefix { value, words_max })
}

/// Whether letters count as one in either case.
fn any_case(options: &Options<'_>) -> Result<bool> {
    Ok(options.read("case_insensitive", Node::bool)?.unwrap_or(false))
}

fn wildcard(pattern: String, any_case: bool) -> FieldQuery {
    FieldQuery::Wildcard { pattern, analyzed: false, any_case }
}

fn term(node: &Node) -> Result<Query> {
    let (field, value, options) = valued("term", node, "value case_insensitive boost _name")?;
    match field {
        _ if any_case(&options)? => asked(&options, field, wildcard(escaped(&value.text()), true)),
        "_id" => boosted(&options, QueryKind::Ids(vec![value.text()])),
        _ => asked(&options, field, FieldQuery::Term(value)),
    }
}

/// `rewrite` of what finds words by a pattern: each of these gives all documents the same score.
const OF_PATTERNS: [&str; 3] =
    ["constant_score", "constant_score_boolean", "constant_score_blended"];

fn prefix(node: &Node) -> Result<Query> {
    const KNOWN: &str = "value case_insensitive rewrite boost _name";
    let (field, value, options) = valued("prefix", node, KNOWN)?;
    options.one_of("rewrite", &OF_PATTERNS)?;
    let query = match any_case(&options)? {
        true => wildcard(escaped(&value.text()) + "*", true),
        false => FieldQuery::Prefix(value.text()),
    };
    asked(&options, field, query)
}

fn pattern(name: &str, node: &Node, of: fn(String, bool) -> FieldQuery) -> Result<Query> {
    const KNOWN: &str = "value wildcard flags case_insensitive rewrite boost _name";
    let (field, body) = field(name, node)?;
    let Value::Object(_) = body.value else {
        return Ok(Query::of(QueryKind::Field(field.to_owned(), of(body.text(name)?, false))));
    };
    let options = body.options(name, KNOWN, 0)?;
    options.one_of("flags", &["all"])?;
    options.one_of("rewrite", &OF_PATTERNS)?;
    let value = options.get("wildcard").map_or_else(|| options.need("value"), Ok)?;
    asked(&options, field, of(value.text("value")?, any_case(&options)?))
}

/// Fields with their boosts: `a^2`; none where they are not named: those of the index then.
fn fields(options: &Options<'_>) -> Result<Vec<(String, f32)>> {
    let mut fields = Vec::new();
    let Some(node) = options.get("fields") else { return Ok(fields) };
    for node in node.items() {
        let text = node.text("fields")?;
        let (name, boost) = match text.split_once('^') {
            Some((name, boost)) => (name, boost.parse().ok().filter(|boost: &f32| *boost >= 0.0)),
            None => (text.as_str(), Some(1.0)),
        };
        let boost = boost.ok_or_else(|| node.wrong("fields", "a field, or field^2"))?;
        fields.push((name.to_owned(), boost));
    }
    Ok(fields)
}

/// `lenient`: of all fields nobody can say that a text fits. None where the index says which they are.
fn lenient(options: &Options<'_>, fields: &[(String, f32)]) -> Result<Option<bool>> {
    let of_all = fields.iter().any(|(name, _)| name == "*");
    let said = options.read("lenient", Node::bool)?;
    Ok(said.or((!fields.is_empty()).then_some(of_all)))
}

fn tie_breaker(options: &Options<'_>) -> Result<f32> {
    Ok(options.read("tie_breaker", Node::float)?.unwrap_or(0.0) as f32)
}

/// What a text that has a language of its own is read with.
fn of_text(options: &Options<'_>, fields: Vec<(String, f32)>) -> Result<QueryString> {
    options.one_of("analyze_wildcard", &["false"])?;
    let lenient = lenient(options, &fields)?;
    let tie_breaker = tie_breaker(options)?;
    let all = options.one_of("default_operator", &["or", "and"])? == "and";
    Ok(QueryString { fields, all, lenient, tie_breaker })
}

fn multi_match(reader: &mut Reader, node: &Node) -> Result<Query> {
    const KNOWN: &str = "query fields type operator minimum_should_match tie_breaker lenient slop zero_terms_query \
                         fuzziness prefix_length max_expansions fuzzy_transpositions boost _name";
    let options = node.options("multi_match", KNOWN, 0)?;
    options.one_of("zero_terms_query", &["none"])?;
    options.one_of("slop", &["0"])?;
    let kind = options.one_of("type", &["best_fields", "most_fields", "phrase"])?;
    if kind == "phrase" {
        options.without("fuzziness", "Fuzziness not allowed for type [phrase]")?;
    }
    let fields = fields(&options)?;
    reader.clauses.of_fields(&fields)?;
    let lenient = lenient(&options, &fields)?;
    let value = options.need("query")?.literal("query")?;
    let query = match kind {
        "phrase" => FieldQuery::MatchPhrase(value),
        _ => words(&options, value, (false, false))?,
    };
    let sums = kind == "most_fields";
    let tie_breaker = tie_breaker(&options)?;
    let query = FieldsQuery { fields, query, lenient, tie_breaker, sums, drops: false };
    boosted(&options, QueryKind::Fields(Box::new(query)))
}

fn query_string(reader: &mut Reader, node: &Node) -> Result<Query> {
    const KNOWN: &str = "query default_field fields type default_operator tie_breaker lenient analyze_wildcard \
                         phrase_slop boost _name";
    let options = node.options("query_string", KNOWN, 0)?;
    options.one_of("type", &["best_fields"])?;
    options.one_of("phrase_slop", &["0"])?;
    let mut fields = fields(&options)?;
    if let Some(field) = options.read("default_field", Node::text)? {
        let reason = "addition of [fields] to the query when [default_field] is set is not allowed";
        ensure(fields.is_empty(), node.at, reason)?;
        fields.push((field, 1.0));
    }
    let of = of_text(&options, fields)?;
    let node = options.need("query")?;
    let read = of.read(&node.text("query")?, &mut reader.clauses);
    let query = read.map_err(|error| SearchError { at: Some(node.at), ..error })?;
    let boost = boosted(&options, QueryKind::MatchNone)?.boost;
    Ok(Query { boost: query.boost * boost, ..query })
}

fn simple_query_string(reader: &mut Reader, node: &Node) -> Result<Query> {
    const KNOWN: &str = "query fields default_operator flags minimum_should_match lenient analyze_wildcard boost \
                         _name";
    let options = node.options("simple_query_string", KNOWN, 0)?;
    options.one_of("flags", &["all", "-1"])?;
    let of = of_text(&options, fields(&options)?)?;
    let text = options.need("query")?.text("query")?;
    let mut query = of.read_simple(&text, &mut reader.clauses)?;
    if let QueryKind::Bool(clauses) = &mut query.kind {
        clauses.minimum = options.read("minimum_should_match", minimum)?;
    }
    boosted(&options, query.kind)
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
    let reason = "[terms] with the values of another document is not supported by this engine; get that document, and \
                  send its values";
    ensure(!matches!(values.value, Value::Object(_)), values.at, reason)?;
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
    let end = |names: [&str; 3], included: &str| -> Result<Option<RangeEnd>> {
        let (mut found, mut is_included) = (None, true);
        // As in the field the last of several counts, also where it is null, and where it says whether the end is in.
        for (name, node) in options.iter() {
            if name == included {
                is_included = node.bool(name)?;
            } else if let Some(place) = names.iter().position(|known| *known == name) {
                found = match node.value {
                    Value::Null => None,
                    _ => Some(node.literal(name)?),
                };
                // `from` and `to` leave it as it is.
                is_included = if place < 2 { place == 1 } else { is_included };
            }
        }
        Ok(found.map(|value| RangeEnd { value, included: is_included }))
    };
    let query = RangeQuery {
        lower: end(["gt", "gte", "from"], "include_lower")?,
        upper: end(["lt", "lte", "to"], "include_upper")?,
        format: options.read("format", date_format)?,
        zone: options.read("time_zone", time_zone)?.unwrap_or_default(),
        relation: options.named("relation", &["intersects", "contains", "within"])?,
        analyzed: false,
    };
    asked(&options, field, FieldQuery::Range(query))
}

/// A date format, refused where it stands.
pub(super) fn date_format(node: &Node, name: &str) -> Result<DateFormat> {
    DateFormat::parse(&node.text(name)?).map_err(|reason| parsing(node.at, reason))
}

/// A time zone, refused where it stands.
pub(super) fn time_zone(node: &Node, name: &str) -> Result<Zone> {
    Zone::try_from(node.text(name)?).map_err(|reason| parsing(node.at, reason))
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
    let [top, left, bottom, right] = sides(corners, "geo_bounding_box")?;
    let ignore_unmapped = options.read("ignore_unmapped", Node::bool)?.unwrap_or(false);
    asked(&options, field, FieldQuery::GeoBoundingBox { top, left, bottom, right, ignore_unmapped })
}

/// `geo_shape`: of points, those in areas.
fn geo_shape(node: &Node) -> Result<Query> {
    let options = node.options("geo_shape", "ignore_unmapped boost _name", 1)?;
    let ignore_unmapped = options.read("ignore_unmapped", Node::bool)?.unwrap_or(false);
    let (field, asked_of) = options.field()?;
    let kind = QueryKind::Field(field.to_owned(), shape(asked_of, ignore_unmapped)?);
    // As in Elasticsearch 7.10 and OpenSearch 2, where its boost is 0 unless it is given.
    boosted_from(&options, kind, 0.0)
}

fn geo_polygon(node: &Node) -> Result<Query> {
    let known = "ignore_unmapped validation_method boost _name";
    let options = node.options("geo_polygon", known, 1)?;
    options.one_of("validation_method", &["strict"])?;
    let ignore_unmapped = options.read("ignore_unmapped", Node::bool)?.unwrap_or(false);
    let (field, of) = options.field()?;
    let polygons = vec![corners(of)?];
    asked(&options, field, FieldQuery::GeoPolygons { polygons, ignore_unmapped })
}
