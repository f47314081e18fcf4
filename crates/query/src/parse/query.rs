//! Queries from JSON.

use std::collections::BTreeMap;

use record::names::did_you_mean;

use super::limits::{Clauses, MAX_BOOL_DEPTH, MAX_TERMS};
use super::options::Options;
use super::places::{corners, point, shape, sides};
use super::query_string::QueryString;
use super::simple_query_string::escaped;
use crate::error::{Result, SearchError, ensure, illegal, parsing};
use crate::geo;
use crate::json::{Node, Value};
use crate::query::{
    BoolQuery, FieldQuery, FieldsQuery, Fuzziness, MinimumShouldMatch, Query, QueryKind, RangeEnd,
    RangeQuery,
};
use crate::value::Literal;
use crate::{DateFormat, Zone, refused};

/// The queries that there are, each with the options that it may have beside `boost` and `_name`; behind `=` stand the
/// words that one may say. `<field>` is a name that is a field's, around the options or beside them. Clients of Java
/// write many at their defaults; there are no synonyms, and nothing that `fuzzy_*` and `escape` would say of a text.
const KINDS: &str = "
bool: must filter should must_not minimum_should_match adjust_pure_negative=true
constant_score: filter
dis_max: queries tie_breaker
exists: field
function_score: query functions score_mode boost_mode max_boost min_score weight exp field_value_factor gauss linear \
    random_score script_score
fuzzy <field>: value fuzziness prefix_length max_expansions transpositions rewrite=top_terms_blended_freqs_50
geo_bounding_box: <field> ignore_unmapped type=memory|indexed validation_method=strict
geo_distance: <field> distance distance_type=arc unit validation_method=strict ignore_unmapped=false
geo_polygon: <field> ignore_unmapped validation_method=strict
geo_shape: <field> ignore_unmapped
ids: values
match <field>: query operator minimum_should_match lenient zero_terms_query=none fuzziness prefix_length \
    max_expansions fuzzy_transpositions auto_generate_synonyms_phrase_query=true|false
match_all:
match_bool_prefix <field>: query operator minimum_should_match fuzziness prefix_length max_expansions \
    fuzzy_transpositions
match_none:
match_phrase <field>: query slop=0 zero_terms_query=none
match_phrase_prefix <field>: query slop=0 max_expansions zero_terms_query=none
multi_match: query fields type operator minimum_should_match tie_breaker lenient slop=0 zero_terms_query=none \
    fuzziness prefix_length max_expansions fuzzy_transpositions auto_generate_synonyms_phrase_query=true|false
prefix <field>: value case_insensitive rewrite=constant_score|constant_score_boolean|constant_score_blended
query_string: query default_field fields type=best_fields default_operator tie_breaker lenient \
    allow_leading_wildcard=true analyze_wildcard phrase_slop=0 enable_position_increments=true escape=false \
    auto_generate_synonyms_phrase_query=true|false fuzziness=auto fuzzy_max_expansions=50 fuzzy_prefix_length=0 \
    fuzzy_transpositions=true max_determinized_states=10000
range <field>: gt gte lt lte from to include_lower include_upper format time_zone relation
regexp <field>: value flags=all flags_value=255|65535 max_determinized_states=10000 case_insensitive \
    rewrite=constant_score|constant_score_boolean|constant_score_blended
simple_query_string: query fields default_operator flags=all|-1 minimum_should_match lenient \
    analyze_wildcard auto_generate_synonyms_phrase_query=true|false fuzzy_max_expansions=50 \
    fuzzy_prefix_length=0 fuzzy_transpositions=true
term <field>: value case_insensitive
terms: <field>
wildcard <field>: value wildcard case_insensitive \
    rewrite=constant_score|constant_score_boolean|constant_score_blended
";

/// Each name of [`KINDS`] with its options, and whether these stand under a field.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    KINDS.lines().filter_map(|line| line.split_once(':')).map(|(name, known)| {
        let of_field = name.strip_suffix(" <field>");
        (of_field.unwrap_or(name), known.trim_start(), of_field.is_some())
    })
}

/// The queries that there are.
pub fn queries() -> impl Iterator<Item = &'static str> {
    kinds().map(|(name, ..)| name)
}

/// Reads a query.
pub(crate) fn query(node: &Node) -> Result<Query> {
    Reader { clauses: Clauses::default() }.query(node, 0)
}

pub(super) struct Reader {
    pub(super) clauses: Clauses,
}

/// A query as it stands in a body.
struct Asked<'a> {
    kind: &'a str,
    options: Options<'a>,
    /// The field that it names, and what stands under that; of a query without one nothing, and the query.
    field: &'a str,
    node: &'a Node<'a>,
}

impl<'a> Asked<'a> {
    fn of(kind: &'a str, node: &'a Node<'a>, known: &str, of_field: bool) -> Result<Self> {
        let beside = known.strip_prefix("<field>");
        let known = format!("{} boost _name", beside.unwrap_or(known));
        let known = known.trim_start();
        if !of_field {
            let options = node.options(kind, known, usize::from(beside.is_some()))?;
            let (field, node) = if beside.is_some() { options.field()? } else { ("", node) };
            return Ok(Asked { kind, options, field, node });
        }
        let (field, node) = match node.object(kind)? {
            [member] => (member.name.as_ref(), &member.node),
            [] => return Err(parsing(node.at, format!("[{kind}] query requires a field"))),
            [first, second, ..] => {
                let (first, found) = (&first.name, &second.name);
                let reason = format!(
                    "[{kind}] query doesn't support multiple fields, found [{first}] and [{found}]"
                );
                return Err(parsing(second.at, reason));
            }
        };
        let options = match node.value {
            Value::Object(_) => node.options(kind, known, 0)?,
            _ => Options::none(kind, node),
        };
        Ok(Asked { kind, options, field, node })
    }

    /// What is asked of the field: the option of this name, or what stands in place of all options.
    fn value(&self, name: &str) -> Result<Literal> {
        match self.node.value {
            Value::Object(_) => self.options.need(name)?.literal(name),
            _ => self.node.literal(self.kind),
        }
    }

    /// The same of a pattern; and whether its letters count as one in either case.
    fn pattern(&self) -> Result<(String, bool)> {
        let text = match self.node.value {
            Value::Object(_) => {
                let given = self.options.get("wildcard");
                given.map_or_else(|| self.options.need("value"), Ok)?.text("value")?
            }
            _ => self.node.text(self.kind)?,
        };
        Ok((text, self.flag("case_insensitive")?))
    }

    fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.options.read(name, Node::bool)?.unwrap_or(false))
    }

    /// What is asked of the one field that it names.
    fn of_one_field(&self) -> Result<FieldQuery> {
        let Asked { kind, options, node, .. } = self;
        Ok(match *kind {
            "fuzzy" => {
                let text = self.value("value")?.text();
                FieldQuery::Fuzzy(text, fuzziness(options, "transpositions")?)
            }
            // How the box is looked up (`type`) changes nothing in what is found.
            "geo_bounding_box" => {
                let (sides, ignore_unmapped) = (sides(node, kind)?, self.flag("ignore_unmapped")?);
                FieldQuery::GeoBoundingBox { sides, ignore_unmapped }
            }
            "geo_distance" => self.distance()?,
            "geo_polygon" => {
                let ignore_unmapped = self.flag("ignore_unmapped")?;
                FieldQuery::GeoPolygons { polygons: vec![corners(node)?], ignore_unmapped }
            }
            // Of points, those in areas.
            "geo_shape" => shape(node, self.flag("ignore_unmapped")?)?,
            // [all] of [zero_terms_query] is not offered: a query whose words are all dropped, as stop words are,
            // matches nothing.
            "match" => words(options, self.value("query")?, (self.flag("lenient")?, false))?,
            "match_bool_prefix" => words(options, self.value("query")?, (false, true))?,
            "match_phrase" => FieldQuery::MatchPhrase(self.value("query")?),
            "match_phrase_prefix" => {
                let value = self.value("query")?;
                let most = options.read("max_expansions", |node, name| {
                    let count = node.count(name)?;
                    ensure(count > 0, node.at, "[max_expansions] must be positive").map(|()| count)
                })?;
                let words_max = most.unwrap_or(50) as usize;
                FieldQuery::PhrasePrefix { value, words_max }
            }
            "prefix" => match (self.value("value")?.text(), self.flag("case_insensitive")?) {
                (text, true) => wildcard(escaped(&text) + "*", true),
                (text, false) => FieldQuery::Prefix(text),
            },
            "range" => FieldQuery::Range(self.range()?),
            "regexp" => {
                let (pattern, any_case) = self.pattern()?;
                FieldQuery::Regexp { pattern, any_case }
            }
            "term" => match (self.value("value")?, self.flag("case_insensitive")?) {
                (value, true) => wildcard(escaped(&value.text()), true),
                (value, false) => FieldQuery::Term(value),
            },
            "terms" => {
                let reason = "[terms] with the values of another document is not supported by this engine; get that \
                              document, and send its values";
                ensure(!matches!(node.value, Value::Object(_)), node.at, reason)?;
                let items = node.list(self.field).and_then(|_| items(kind, node))?;
                let values = items.iter().map(|item| item.literal(kind));
                FieldQuery::Terms(values.collect::<Result<_>>()?)
            }
            "wildcard" => {
                let (pattern, any_case) = self.pattern()?;
                wildcard(pattern, any_case)
            }
            other => unreachable!("[{other}] is of a kind without a reader"),
        })
    }

    fn range(&self) -> Result<RangeQuery> {
        self.node.object(self.kind)?;
        let options = &self.options;
        let end = |names: [&str; 3], included: &str| -> Result<Option<RangeEnd>> {
            let (mut found, mut is_included) = (None, true);
            // As in the field the last of several counts, also where it is null, and where it says whether the end is
            // in.
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
        Ok(RangeQuery {
            lower: end(["gt", "gte", "from"], "include_lower")?,
            upper: end(["lt", "lte", "to"], "include_upper")?,
            format: options.read("format", date_format)?,
            zone: options.read("time_zone", time_zone)?.unwrap_or_default(),
            relation: options.named("relation", &["intersects", "contains", "within"])?,
            analyzed: false,
        })
    }

    fn distance(&self) -> Result<FieldQuery> {
        let unit = self.options.read("unit", Node::text)?;
        let node = self.options.need("distance")?;
        let text = node.text("distance")?;
        let distance_m = geo::meters(&text, unit.as_deref().unwrap_or("m")).ok_or_else(|| {
            parsing(node.at, format!("[geo_distance] distance [{text}] is not like [12km]"))
        })?;
        Ok(FieldQuery::GeoDistance { center: point(self.node, self.field)?, distance_m })
    }
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
        let Some((_, known, of_field)) = kinds().find(|(known, ..)| *known == name) else {
            let unknown = format!("unknown query [{name}]{}", did_you_mean(name, queries()));
            let what = format!("the query [{name}]");
            return Err(parsing(member.at, refused::said(refused::QUERIES, &what, name, unknown)));
        };
        let asked = Asked::of(name, &member.node, known, of_field)?;
        let options = &asked.options;
        options.without(
            "_name",
            "[_name] is not supported by this engine: hits do not show their [matched_queries]; send a search for each \
             of the queries",
        )?;
        let boost = options.read("boost", |node, name| {
            let given = node.float(name)?;
            let (boost, most) = (given as f32, f32::MAX);
            let reason = format_args!("[boost] is a number from 0 to {most:e}, found [{given}]");
            ensure(is_boost(&boost), node.at, reason).map(|()| boost)
        })?;
        // As in Elasticsearch 7.10 and OpenSearch 2, where the boost of a shape is 0 unless it is given.
        let boost = boost.unwrap_or(if name == "geo_shape" { 0.0 } else { 1.0 });
        let kind = match name {
            "bool" => QueryKind::Bool(Box::new(self.bool(options, depth)?)),
            "constant_score" => {
                let filter = self.query(options.need("filter")?, depth + 1)?;
                QueryKind::ConstantScore(Box::new(filter))
            }
            "dis_max" => {
                let node = options.need("queries")?;
                let queries = self.each(node.items(), depth)?;
                let tie_breaker = tie_breaker(options, 0.0)?;
                ensure(
                    !queries.is_empty(),
                    node.at,
                    "[queries] of [dis_max] has at least one query",
                )?;
                QueryKind::DisMax(queries, tie_breaker)
            }
            "exists" => QueryKind::Exists(options.need("field")?.text("field")?),
            "function_score" => {
                QueryKind::FunctionScore(Box::new(self.function_score(options, depth)?))
            }
            "ids" => {
                let values = options.get("values").map_or(Ok(&[][..]), |of| items("ids", of))?;
                let values = values.iter().map(|item| item.text("values"));
                QueryKind::Ids(values.collect::<Result<_>>()?)
            }
            "match_all" => QueryKind::MatchAll,
            "match_none" => QueryKind::MatchNone,
            "multi_match" => QueryKind::Fields(Box::new(self.multi_match(options)?)),
            "query_string" => {
                let query = self.query_string(options)?;
                return Ok(Query { boost: query.boost * boost, ..query });
            }
            "simple_query_string" => self.simple_query_string(options)?,
            _ => match (asked.field, asked.of_one_field()?) {
                ("_id", FieldQuery::Term(value)) => QueryKind::Ids(vec![value.text()]),
                ("_id", FieldQuery::Terms(values)) => {
                    QueryKind::Ids(values.iter().map(Literal::text).collect())
                }
                (field, query) => QueryKind::Field(field.to_owned(), query),
            },
        };
        Ok(Query { kind, boost })
    }

    fn each(&mut self, queries: &[Node<'_>], depth: usize) -> Result<Vec<Query>> {
        queries.iter().map(|query| self.query(query, depth + 1)).collect()
    }

    fn bool(&mut self, options: &Options<'_>, depth: usize) -> Result<BoolQuery> {
        let mut clauses =
            |name: &str| self.each(options.get(name).map_or(&[][..], Node::items), depth);
        Ok(BoolQuery {
            must: clauses("must")?,
            filter: clauses("filter")?,
            should: clauses("should")?,
            must_not: clauses("must_not")?,
            minimum: options.read("minimum_should_match", minimum)?,
            drops: false,
        })
    }

    fn multi_match(&mut self, options: &Options<'_>) -> Result<FieldsQuery> {
        let kind = options.one_of("type", &["best_fields", "most_fields", "phrase"])?;
        if kind == "phrase" {
            options.without("fuzziness", "Fuzziness not allowed for type [phrase]")?;
        }
        let fields = fields(options)?;
        self.clauses.of_fields(&fields)?;
        let lenient = lenient(options, &fields)?;
        let value = options.need("query")?.literal("query")?;
        let query = match kind {
            "phrase" => FieldQuery::MatchPhrase(value),
            _ => words(options, value, (false, false))?,
        };
        let tie_breaker = tie_breaker(options, if kind == "most_fields" { 1.0 } else { 0.0 })?;
        Ok(FieldsQuery { fields, query, lenient, tie_breaker, drops: false })
    }

    fn query_string(&mut self, options: &Options<'_>) -> Result<Query> {
        let mut fields = fields(options)?;
        if let Some(field) = options.read("default_field", Node::text)? {
            let reason =
                "addition of [fields] to the query when [default_field] is set is not allowed";
            ensure(fields.is_empty(), options.node.at, reason)?;
            fields.push((field, 1.0));
        }
        let of = of_text(options, fields)?;
        let node = options.need("query")?;
        let read = of.read(&node.text("query")?, &mut self.clauses);
        read.map_err(|error| SearchError { at: Some(node.at), ..error })
    }

    fn simple_query_string(&mut self, options: &Options<'_>) -> Result<QueryKind> {
        let of = of_text(options, fields(options)?)?;
        let text = options.need("query")?.text("query")?;
        let mut query = of.read_simple(&text, &mut self.clauses)?;
        let minimum = options.read("minimum_should_match", minimum)?;
        if let QueryKind::Bool(clauses) = &mut query.kind {
            clauses.minimum = minimum;
        }
        Ok(query.kind)
    }
}

fn minimum(node: &Node, name: &str) -> Result<MinimumShouldMatch> {
    let minimum = MinimumShouldMatch(node.text(name)?);
    // Of so many clauses that each of its parts is read: one that only many come to would be passed over then.
    match minimum.of(u32::MAX as usize) {
        Some(_) => Ok(minimum),
        None => Err(parsing(node.at, format!("[{name}] cannot be [{}]", minimum.0))),
    }
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

fn wildcard(pattern: String, any_case: bool) -> FieldQuery {
    FieldQuery::Wildcard { pattern, analyzed: false, any_case }
}

/// Fields with their boosts: `a^2`, as in the field the last of one that is named twice; none where they are not named:
/// those of the index then.
fn fields(options: &Options<'_>) -> Result<Vec<(String, f32)>> {
    let mut fields = BTreeMap::new();
    for node in options.get("fields").map_or(&[][..], Node::items) {
        let text = node.text("fields")?;
        let (name, boost) = match text.split_once('^') {
            Some((name, boost)) => (name, boost.parse().ok().filter(is_boost)),
            None => (text.as_str(), Some(1.0)),
        };
        let boost = boost.ok_or_else(|| node.wrong("fields", "a field, or field^2"))?;
        fields.insert(name.to_owned(), boost);
    }
    Ok(fields.into_iter().collect())
}

/// Whether scores may be multiplied by it.
fn is_boost(boost: &f32) -> bool {
    (0.0..=f32::MAX).contains(boost)
}

/// `lenient`: of all fields nobody can say that a text fits. None where the index says which they are.
fn lenient(options: &Options<'_>, fields: &[(String, f32)]) -> Result<Option<bool>> {
    let of_all = fields.iter().any(|(name, _)| name == "*");
    let said = options.read("lenient", Node::bool)?;
    Ok(said.or((!fields.is_empty()).then_some(of_all)))
}

fn tie_breaker(options: &Options<'_>, default: f64) -> Result<f32> {
    let share = options.read("tie_breaker", |node, name| {
        let share = node.float(name)?;
        let reason = format_args!("[{name}] must be between 0 and 1, found [{share}]");
        ensure((0.0..=1.0).contains(&share), node.at, reason).map(|()| share)
    })?;
    Ok(share.unwrap_or(default) as f32)
}

/// What a text that has a language of its own is read with.
fn of_text(options: &Options<'_>, fields: Vec<(String, f32)>) -> Result<QueryString> {
    let lenient = lenient(options, &fields)?;
    let tie_breaker = tie_breaker(options, 0.0)?;
    let all = options.one_of("default_operator", &["or", "and"])? == "and";
    let analyze_wildcard = options.read("analyze_wildcard", Node::bool)?.unwrap_or(false);
    Ok(QueryString { fields, all, lenient, tie_breaker, analyze_wildcard })
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

/// A date format, refused where it stands.
pub(super) fn date_format(node: &Node, name: &str) -> Result<DateFormat> {
    DateFormat::parse(&node.text(name)?).map_err(|reason| parsing(node.at, reason))
}

/// A time zone, refused where it stands.
pub(super) fn time_zone(node: &Node, name: &str) -> Result<Zone> {
    Zone::try_from(node.text(name)?).map_err(|reason| parsing(node.at, reason))
}
