//! The body of `_search` and `_count` as plain data. Pure: no mapping is known here.

mod aggregation;
mod function_score;
mod highlight;
mod histogram;
mod hits;
mod limits;
mod options;
mod pipeline;
mod places;
mod query;
mod query_string;
mod ranges;
mod simple_query_string;
mod sort;
mod terms;

pub use aggregation::aggregations;
pub use highlight::highlight_options;
pub use hits::add_columns_of_path;
pub use query::queries;
pub use query_string::QueryString;
pub use sort::of_path as parse_sort;

use super::Query;
use super::error::{Result, ensure, parsing};
use super::json::{Member, Node, Value, read};
use super::request::{
    AskedPointInTime, DeclaredCost, NO_TIMEOUT_MS, SearchRequest, TrackTotalHits,
};
use crate::refused;

const KNOWN: &str = "_source aggregations aggs collapse docvalue_fields ext from highlight min_score pit post_filter \
                     query search_after seq_no_primary_term size sort stored_fields terminate_after timeout \
                     track_scores track_total_hits version explain=false profile=false";

/// Options that are refused, and that ask for nothing where they are empty: dashboards send them so.
const EMPTY: [&str; 7] =
    ["derived", "fields", "indices_boost", "rescore", "runtime_mappings", "script_fields", "stats"];

/// Reads the body of `_search`; an empty one asks for everything.
///
/// Errors name the place in the body: what is unknown (with the nearest name), malformed, or nested too deep.
pub fn parse_search(body: &[u8]) -> Result<SearchRequest> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(SearchRequest::default());
    }
    read(body, search)
}

fn asks_for_nothing(of: &Member<'_>) -> bool {
    let is_empty = match &of.node.value {
        Value::Object(members) => members.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => false,
    };
    is_empty && EMPTY.contains(&of.name.as_ref())
}

fn search(node: &Node) -> Result<SearchRequest> {
    if let Value::Object(members) = &node.value
        && members.iter().any(asks_for_nothing)
    {
        let rest = members.iter().filter(|of| !asks_for_nothing(of)).cloned().collect();
        return search(&Node { at: node.at, value: Value::Object(rest) });
    }
    let mut request = SearchRequest::default();
    node.refuse_names(refused::SEARCH, |name| format!("the option [{name}] of a search"))?;
    let options = node.options("search", KNOWN, 0)?;
    for (name, value) in options.iter() {
        match name {
            "query" => request.query = query::query(value)?,
            "post_filter" => request.post_filter = Some(query::query(value)?),
            "docvalue_fields" => request.column_fields = hits::column_fields(value)?,
            "highlight" => request.highlight = highlight::highlight(value)?,
            "collapse" => {
                let options = value.options(name, "field", 0)?;
                request.collapse = Some(options.need("field")?.text("field")?);
            }
            "aggs" | "aggregations" => request.aggregations = aggregation::all(value)?,
            "sort" => request.sort = sort::keys(value)?,
            "from" => request.from = value.count(name)? as usize,
            "size" => request.size = value.count(name)? as usize,
            "track_total_hits" => request.track_total_hits = track_total_hits(value)?,
            "track_scores" => request.track_scores = value.bool(name)?,
            "min_score" => request.min_score = Some(value.float(name)? as f32),
            "_source" => request.source = hits::source(value)?,
            "version" => request.version = value.bool(name)?,
            "seq_no_primary_term" => request.seq_no_primary_term = value.bool(name)?,
            "timeout" => request.timeout_ms = Some(timeout_ms(value)?),
            // As in the field 0 is no bound.
            "terminate_after" => {
                request.terminate_after = Some(value.count(name)?).filter(|most| *most > 0);
            }
            "ext" => request.cost = cost(value)?,
            "pit" => request.point_in_time = Some(point_in_time(value)?),
            "stored_fields" => hits::stored_fields(value, &options, &mut request.source)?,
            _ => {}
        }
    }
    if let Some(after) = options.get("search_after") {
        request.search_after = Some(sort::after(after, &request)?);
        let reason = "cannot use `collapse` in conjunction with `search_after`";
        ensure(request.collapse.is_none(), after.at, reason)?;
    }
    request.check_terminate_after()?;
    Ok(request)
}

/// Reads the body of `_count`.
pub fn parse_count(body: &[u8]) -> Result<Query> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Query::match_all());
    }
    let count = |node: &Node| {
        let options = node.options("count", "query", 0)?;
        // As in the field null is not every document, but refused.
        options.iter().next().map(|(_, node)| query::query(node)).transpose()
    };
    Ok(read(body, count)?.unwrap_or_else(Query::match_all))
}

fn track_total_hits(node: &Node) -> Result<TrackTotalHits> {
    let name = "track_total_hits";
    let text = match node.integer(name) {
        Ok(count) => Some(count.to_string()),
        // An empty one is a yes in a path alone.
        Err(_) => Some(node.text(name)?).filter(|text| !text.is_empty()),
    };
    text.and_then(|text| parse_track_total_hits(&text))
        .ok_or_else(|| node.wrong(name, "true, false or a number"))
}

/// Reads `track_total_hits` of a body or a path: true, false, or how many.
pub fn parse_track_total_hits(text: &str) -> Option<TrackTotalHits> {
    Some(match text {
        "" | "true" => TrackTotalHits::All,
        "false" => TrackTotalHits::No,
        // As in the field -1 is none, and the largest number that it can read is all.
        number => match number.parse::<i64>().ok()? {
            -1 => TrackTotalHits::No,
            count if count == i64::from(i32::MAX) => TrackTotalHits::All,
            count => TrackTotalHits::UpTo(u64::try_from(count).ok()?),
        },
    })
}

fn timeout_ms(node: &Node) -> Result<u64> {
    let text = node.text("timeout")?;
    if text == "-1" {
        return Ok(NO_TIMEOUT_MS);
    }
    let time = record::units::parse_duration(&text)
        .map_err(|error| parsing(node.at, format!("failed to parse [timeout]: {error}")))?;
    Ok(time.as_millis() as u64)
}

fn point_in_time(node: &Node) -> Result<AskedPointInTime> {
    let options = node.options("pit", "id keep_alive", 0)?;
    let id = options.need("id")?.text("id")?;
    Ok(AskedPointInTime { id, keep_alive: options.read("keep_alive", Node::text)? })
}

/// `ext.narrows.cost`: documents, bytes, response_bytes.
fn cost(node: &Node) -> Result<Option<DeclaredCost>> {
    let Some(narrows) = node.options("ext", "narrows", 0)?.get("narrows") else { return Ok(None) };
    narrows.options("narrows", "cost", 0)?.read("cost", |node, name| {
        let options = node.options(name, "documents bytes response_bytes", 0)?;
        let number = |name: &str| Ok(options.read(name, Node::count)?.unwrap_or(0));
        Ok(DeclaredCost {
            documents: number("documents")?,
            bytes: number("bytes")?,
            response_bytes: number("response_bytes")?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::query::{FieldQuery, QueryKind, RangeEnd, RangeQuery};
    use super::super::{Literal, SearchErrorKind};
    use super::*;
    use crate::Spot;

    /// The two sides of each line.
    pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.split_once(" => ").expect("a body, and what is said of it"))
    }

    fn said(body: &str) -> (String, Option<Spot>) {
        let error = parse_search(body.as_bytes()).unwrap_err();
        (error.reason, error.at)
    }

    #[test]
    fn an_empty_body_asks_for_everything() {
        let request = parse_search(b" ").unwrap();
        assert_eq!(request, SearchRequest::default());
        assert_eq!((request.size, request.track_total_hits), (10, TrackTotalHits::Unset));
        assert_eq!(request.track_total_hits.of(10_001), (10_000, true));
        assert!(parse_search(b"{}").unwrap().query.is_match_all());
        for number in ["5", "5.0", "\"5\""] {
            let body = format!("{{\"track_total_hits\":{number}}}");
            let counted = parse_search(body.as_bytes()).map(|request| request.track_total_hits);
            assert_eq!(counted, Ok(TrackTotalHits::UpTo(5)), "{number}");
        }
    }

    #[test]
    fn what_is_not_supported_may_be_asked_for_nothing() {
        let whole = parse_search(br#"{"size":3}"#);
        for option in EMPTY {
            for (value, asks) in [("{}", false), ("[]", false), ("[1]", true), ("null", true)] {
                let body = format!("{{\"{option}\":{value},\"size\":3}}");
                let read = parse_search(body.as_bytes());
                assert_eq!(read.is_err(), asks, "{body}");
                assert!(asks || read == whole, "{body}");
            }
        }
        assert!(parse_search(br#"{"suggest":{}}"#).is_err());
    }

    #[test]
    fn defaults_that_clients_write_and_lists_of_one_change_nothing() {
        let terms = r#""terms":{"field":"a","size":10,"min_doc_count":1"#;
        let java = r#","shard_min_doc_count":0,"show_term_doc_count_error":false,"order":[{"_count":"desc"}]"#;
        let hits = r#""top_hits":{"from":0,"size":3"#;
        let java_hits = r#","version":false,"seq_no_primary_term":false,"explain":false"#;
        for (written, short) in [
            (format!("{terms}{java}}}"), format!("{terms}}}")),
            (format!("{hits}{java_hits}}}"), format!("{hits}}}")),
            (
                r#""percentiles":{"field":"a","percents":5,"tdigest":{"compression":100.0}}"#
                    .to_owned(),
                r#""percentiles":{"field":"a","percents":[5]}"#.to_owned(),
            ),
            (
                r#""percentiles":{"field":"a","percents":[99,5]}"#.to_owned(),
                r#""percentiles":{"field":"a","percents":[5,99]}"#.to_owned(),
            ),
            (
                r#""range":{"field":"a","ranges":{"to":5}}"#.to_owned(),
                r#""range":{"field":"a","ranges":[{"to":5}]}"#.to_owned(),
            ),
        ] {
            let read =
                |of: &str| parse_search(format!("{{\"aggs\":{{\"x\":{{{of}}}}}}}").as_bytes());
            assert_eq!(read(&written).unwrap(), read(&short).unwrap(), "{written}");
        }
    }

    #[test]
    fn stored_fields_of_top_hits_say_whether_source_is_shown() {
        let read = |options: &str| {
            let body = format!("{{\"aggs\":{{\"h\":{{\"top_hits\":{options}}}}}}}");
            parse_search(body.as_bytes())
        };
        let hidden = read(r#"{"_source":false}"#).unwrap();
        for given in [r#"{"stored_fields":"_none_"}"#, r#"{"stored_fields":["*"]}"#] {
            let given = read(given).unwrap();
            assert_eq!(format!("{:?}", given.aggregations), format!("{:?}", hidden.aggregations));
        }
        assert!(
            read(r#"{"stored_fields":["a"]}"#).unwrap_err().to_string().contains("_none_ or *")
        );
    }

    #[test]
    fn short_and_long_forms_are_one() {
        const FORMS: &str = r#"
            {"term":{"a":1}} => {"term":{"a":{"value":1,"boost":1}}}
            {"match":{"a":"b c"}} => {"match":{"a":{"query":"b c","operator":"OR"}}}
            {"match_phrase":{"a":"b c"}} => {"match_phrase":{"a":{"query":"b c","slop":0}}}
            {"prefix":{"a":"b"}} => {"prefix":{"a":{"value":"b"}}}
            {"geo_distance":{"distance":"2km","p":[1,2]}} => {"geo_distance":{"distance":2,"unit":"km","p":{"lon":1,"lat":2}}}
            {"geo_bounding_box":{"p":{"top_left":[-1,2],"bottom_right":"0,1"}}} => {"geo_bounding_box":{"p":{"top":2,"left":-1,"bottom":0,"right":1}}}
            {"range":{"a":{"from":1,"to":2,"include_upper":false}}} => {"range":{"a":{"gte":1,"lt":2}}}
            {"range":{"a":{"gte":5,"gt":1,"lt":2}}} => {"range":{"a":{"gt":1,"lt":2}}}
            {"range":{"a":{"include_lower":true,"gt":1,"lt":2}}} => {"range":{"a":{"gt":1,"lt":2}}}
            {"range":{"a":{"gt":1,"lt":2,"include_lower":"true"}}} => {"range":{"a":{"gte":1,"lt":2}}}
            {"range":{"a":{"include_upper":false,"to":2}}} => {"range":{"a":{"lt":2}}}
            {"range":{"a":{"gte":1,"lt":2,"lte":null}}} => {"range":{"a":{"gte":1}}}
            {"bool":{"must":{"match_all":{}}}} => {"bool":{"must":[{"match_all":{}}]}}
            {"match_phrase_prefix":{"a":{"query":"x","max_expansions":7.0}}} => {"match_phrase_prefix":{"a":{"query":"x","max_expansions":"7"}}}
            {"term":{"a":{"value":1,"boost":"2.0"}}} => {"term":{"a":{"value":1,"boost":2}}}
            {"match":{"a":{"query":"b","operator":"OR","prefix_length":0,"max_expansions":50,"fuzzy_transpositions":true,"lenient":false,"zero_terms_query":"NONE","auto_generate_synonyms_phrase_query":true,"boost":1.0}}} => {"match":{"a":"b"}}
            {"multi_match":{"query":"x","fields":["a^1.0"],"type":"best_fields","operator":"OR","slop":0,"prefix_length":0,"max_expansions":50,"zero_terms_query":"NONE","auto_generate_synonyms_phrase_query":true,"fuzzy_transpositions":true,"boost":1.0}} => {"multi_match":{"query":"x","fields":["a"]}}
            {"query_string":{"query":"b","default_field":"a","fields":[],"type":"best_fields","default_operator":"or","max_determinized_states":10000,"enable_position_increments":true,"fuzziness":"AUTO","fuzzy_prefix_length":0,"fuzzy_max_expansions":50,"phrase_slop":0,"escape":false,"auto_generate_synonyms_phrase_query":true,"fuzzy_transpositions":true,"boost":1.0}} => {"query_string":{"query":"b","fields":"a"}}
            {"simple_query_string":{"query":"b","fields":["a^1.0"],"flags":-1,"default_operator":"or","analyze_wildcard":false,"auto_generate_synonyms_phrase_query":true,"fuzzy_prefix_length":0,"fuzzy_max_expansions":50,"fuzzy_transpositions":true,"boost":1.0}} => {"simple_query_string":{"query":"b","fields":["a"]}}
            {"regexp":{"a":{"value":"b","flags_value":65535,"max_determinized_states":10000,"boost":1.0}}} => {"regexp":{"a":"b"}}
            {"geo_distance":{"p":[1,2],"distance":12000.0,"distance_type":"arc","validation_method":"STRICT","ignore_unmapped":false,"boost":1.0}} => {"geo_distance":{"p":[1,2],"distance":"12km"}}
            {"query_string":{"query":"a:b OR *","analyze_wildcard":true}} => {"query_string":{"query":"a:b OR *"}}
            {"multi_match":{"query":"x","fields":["b^2","a*^5","b^3"]}} => {"multi_match":{"query":"x","fields":["a*^5","b^3"]}}
        "#;
        for (short, long) in pairs(FORMS) {
            let read = |text: &str| parse_count(format!("{{\"query\":{text}}}").as_bytes());
            assert_eq!(read(short), read(long), "{short}");
            assert!(read(short).is_ok(), "{short}: {:?}", read(short));
        }
        let range =
            parse_count(br#"{"query":{"range":{"a":{"gt":1,"lte":"x","boost":2}}}}"#).unwrap();
        let end = |value, included| Some(RangeEnd { value, included });
        let (lower, upper) =
            (end(Literal::Integer(1), false), end(Literal::Text("x".into()), true));
        let asked = FieldQuery::Range(RangeQuery { lower, upper, ..RangeQuery::default() });
        assert_eq!(range, Query { kind: QueryKind::Field("a".into(), asked), boost: 2.0 });
    }

    #[test]
    fn without_a_query_everything_counts_and_null_is_no_query() {
        assert_eq!(parse_count(b"{}").unwrap(), Query::match_all());
        let said = parse_count(br#"{"query":null}"#).unwrap_err().reason;
        assert!(said.contains("found null"), "{said}");
    }

    #[test]
    fn what_is_unknown_is_named_with_its_place() {
        let at = |line, column| Some(Spot { line, column });
        let (reason, spot) = said("{\n \"query\": {\"bool\": {\"must\": [{\"mtch\": {}}]}}\n}");
        assert_eq!(reason, "unknown query [mtch]; did you mean \"match\"?");
        assert_eq!(spot, at(2, 31));
        const REFUSED: &str = r#"
            {"query":{}} => empty clause
            {"query":{"term":{"a":1},"match":{}}} => found [match]
            {"query":{"wrapper":{"a":"b"}}} => the query [wrapper] is not supported by this engine; send [wildcard]
            {"query":{"term":{"a":{"valeu":1}}}} => did you mean "value"
            {"query":{"term":{"a":{}}}} => [term] requires [value]
            {"query":{"match":{"a":{"query":"x","fuzziness":3}}}} => [fuzziness]
            {"query":{"match":{"a":{"query":"x","minimum_should_match":"20<y"}}}} => [minimum_should_match] cannot be [20<y]
            {"query":{"bool":{"should":[],"minimum_should_match":"2<75% 20<-3 9"}}} => cannot be [2<75% 20<-3 9]
            {"query":{"simple_query_string":{"query":"x","minimum_should_match":"two"}}} => cannot be [two]
            {"query":{"dis_max":{"queries":[],"tie_breaker":1.5}}} => [tie_breaker] must be between 0 and 1, found [1.5]
            {"query":{"dis_max":{"queries":[]}}} => [queries] of [dis_max] has at least one query
            {"query":{"multi_match":{"query":"x","fields":["a"],"tie_breaker":-1}}} => [tie_breaker]
            {"query":{"multi_match":{"query":"x","fields":["a^-1"]}}} => a field, or field^2
            {"query":{"multi_match":{"query":"x","fields":["a^1e99"]}}} => a field, or field^2
            {"query":{"match_all":{"boost":-1}}} => [boost] is a number from 0 to
            {"query":{"match_all":{"boost":1e99}}} => [boost] is a number from 0 to
            {"query":{"function_score":{"script_score":{}}}} => no scripts
            {"query":{"function_score":{"functions":[{}]}}} => [a function]
            {"query":{"match_phrase":{"a":{"query":"x","slop":1}}}} => slop
            {"query":{"match_phrase":{"a":{"query":"x","zero_terms_query":"all"}}}} => zero_terms_query [all]
            {"query":{"regexp":{"a":{"value":"x","flags_value":7}}}} => flags_value [7] is not supported by this engine; send 255
            {"query":{"query_string":{"query":"x a:b*","analyze_wildcard":true}}} => [analyze_wildcard] is not supported
            {"query":{"match":{"a":{"query":"x","analyzer":"german"}}}} => [match] [analyzer] is not supported by this engine; leave it out
            {"query":{"query_string":{"query":"x","time_zone":"+02:00"}}} => [time_zone] is not supported by this engine; write offsets
            {"query":{"query_string":{"query":"x","escape":true}}} => escape [true] is not supported
            {"query":{"regexp":{"a":{"wildcard":"x*"}}}} => [regexp] does not support [wildcard]
            {"query":{"wildcard":{"a":{"value":"x*","flags":"all"}}}} => [wildcard] does not support [flags]
            {"slice":{"id":0,"max":2}} => the option [slice] of a search is not supported by this engine; leave it out
            {"stored_fields":["a","b"]} => [stored_fields] [a,b] is not supported
            {"stored_fields":"_none_","_source":["a"]} => cannot be disabled if [_source] is requested
            {"aggs":{"a":{"terms":{"field":"x","collect_mode":"any"}}}} => collect_mode [any] is not supported
            {"aggs":{"a":{"terms":{"field":"x","execution_hint":"any"}}}} => execution_hint [any] is not supported
            {"aggs":{"a":{"percentiles":{"field":"x","tdigest":{"compression":-1}}}}} => greater than or equal to 0. Found [-1]
            {"aggs":{"a":{"percentiles":{"field":"x","tdigest":{"compresion":1}}}}} => did you mean "compression"
            {"aggs":{"a":{"extended_stats":{"field":"x","sigma":-1}}}} => [sigma] must be greater than or equal to 0
            {"query":{"geo_bounding_box":{"type":"any","p":{"top":1}}}} => type [any] is not supported
            {"query":{"term":{"a":1,"b":2}}} => [a] and [b]
            {"query":{"terms":{"a":"x"}}} => [a]
            {"query":{"range":{"a":{"gte":[1]}}}} => [gte] is a value, found an array
            {"query":{"range":{"a":{"gte":1,"time_zone":"Europe/Roma"}}}} => no time zone
            {"query":{"range":{"a":{"gte":1,"format":"GGG"}}}} => [G]
            {"query":{"geo_distance":{"distance":"2 parsecs","p":[1,2]}}} => parsecs
            {"query":{"geo_distance":{"distance":"2km","p":[1,200]}}} => point of the Earth
            {"query":{"geo_bounding_box":{"p":{"top":1}}}} => all of top
            {"query":{"geo_bounding_box":{"p":{"wkt":"BBOX"}}}} => [wkt]
            {"qurey":{}} => did you mean "query"
            {"size":-1} => cannot be negative
            {"size":1.5} => whole number
            {"_source":5} => a boolean, a string, a list or an object
            {"highlight":{"field":{}}} => did you mean "fields"
            {"track_total_hits":"maybe"} => track_total_hits
            {"track_total_hits":""} => track_total_hits
            {"version":""} => [version] is true or false
            {"size":"5.5"} => whole number
            {"size":1e300} => whole number
            {"from":[5]} => [from] is a whole number, found an array
            {"sort":[{"a":"up"}]} => [up]
            {"sort":[{"_score":{"missing":0}}]} => does not support [missing]
            {"sort":[{"_geo_distance":{"p":[1,2],"mode":"avg"}}]} => send min or max
            {"sort":[{"_geo_distance":{"p":[],"order":"asc"}}]} => a point, or some
            {"sort":[{"_geo_distance":{"order":"asc"}}]} => [a field]
            {"query":{"terms":{"a":{"index":"b","id":"1","path":"c"}}}} => get that document
            {"aggs":{"a":{"terms":{"field":"x","include":{"partition":0}}}}} => [include] is a regular expression, or an array
            {"aggs":{"a":{"terms":{"field":"x","exclude":"a.*","missing":"b"}}}} => with [missing]
            {"aggs":{"a":{"multi_terms":{"terms":[{"field":"x","include":"a"}]}}}} => [include] is not supported
            {"query":{"match_phrase_prefix":{"a":{"query":"x","slop":1}}}} => slop
            {"query":{"match_phrase_prefix":{"a":{"query":"x","max_expansions":0}}}} => must be positive
            {"sort":[{"a":{"order":"asc","nested":{"path":"b"}}}]} => objects are flattened
            {"search_after":[1]} => sort
            {"sort":["a"],"search_after":[1,2]} => 2 value(s)
            {"aggs":{"a":{"trems":{"field":"x"}}}} => did you mean "terms"
            {"aggs":{"a":{}}} => Missing definition
            {"aggs":{"a":{"terms":{}}}} => [field]
            {"aggs":{"a":{"date_histogram":{"field":"x","calendar_interval":"2M"}}}} => [2M]
            {"aggs":{"a":{"max":{"field":"x"},"aggs":{"b":{"max":{"field":"x"}}}}}} => cannot accept sub-aggregations
            {"aggs":{"a":{"filters":{"filters":{}}}}} => cannot be empty
            {"aggs":{"a":{"filter":{"trem":{}}}}} => did you mean "term"
            {"aggs":{"a":{"geo_distance":{"field":"p","ranges":[{"to":1}]}}}} => [origin]
            {"aggs":{"a":{"geo_distance":{"field":"p","origin":"1,2","unit":"ell","ranges":[{"to":1}]}}}} => [unit]
            {"aggs":{"a":{"composite":{"sources":[{"x":{"geohash_grid":{}}}]}}}} => [geohash_grid] is not supported
            {"aggs":{"a":{"composite":{"sources":[{"x":{"geotile_grid":{"field":"p"}}}],"after":{"x":"1/2/0"}}}}} => hash string of 1/2/0
            {"aggs":{"a":{"geotile_grid":{"field":"p","precision":30}}}} => geotile_grid precision of 30. Must be between 0 and 29
            {"aggs":{"a":{"geotile_grid":{"field":"p","precision":"1km"}}}} => [precision] is a whole number
            {"aggs":{"a":{"geohash_grid":{"field":"p","precision":0}}}} => geohash aggregation precision of 0. Must be between 1 and 12
            {"aggs":{"a":{"geohash_grid":{"field":"p","precision":"13"}}}} => precision of 13
            {"aggs":{"a":{"geohash_grid":{"field":"p","precision":"1cm"}}}} => precision too high [1cm]
            {"aggs":{"a":{"geohash_grid":{"field":"p","precision":"wide"}}}} => size of a cell
            {"aggs":{"a":{"geohash_grid":{"field":"p","bounds":{"top":1}}}}} => [bounds] requires [all of top
            {"aggs":{"a":{"geohash_grid":{"field":"p","size":0}}}} => must be greater than 0
            {"aggs":{"a":{"terms":{"field":"x","order":{"c":"asc"}},"aggs":{"c":{"geo_centroid":{"field":"p"}}}}}} => Invalid aggregation order path [c]
            {"aggs":{"a":{"multi_terms":{"terms":[{"field":"x"}]}}}} => at least two
            {"aggs":{"a":{"terms":{"field":"x","order":[LIST1]}}}} => at most 64
            {"aggs":{"a":{"composite":{"sources":[LIST1]}}}} => at most 64
            {"aggs":{"p":{"avg_bucket":{}}}} => [buckets_path]
            {"aggs":{"p":{"avg_bucket":{"buckets_path":"t>m"}}}} => aggregation does not exist for aggregation [p]: t>m
            {"aggs":{"m":{"max":{"field":"x"}},"p":{"avg_bucket":{"buckets_path":"m"}}}} => multi-bucket aggregation for aggregation [p]
            {"aggs":{"c":{"composite":{"sources":[{"x":{"terms":{"field":"x"}}}]}},"p":{"avg_bucket":{"buckets_path":"c>_count"}}}} => multi-bucket aggregation for aggregation [p]
            {"aggs":{"t":{"terms":{"field":"x"}},"p":{"sum_bucket":{"buckets_path":"t>m.value"}}}} => No aggregation [m] found for path [t>m>value]
            {"aggs":{"t":{"terms":{"field":"x"}},"p":{"sum_bucket":{"buckets_path":"t"}}}} => must reference a number
            {"aggs":{"t":{"terms":{"field":"x"}},"p":{"sum_bucket":{"buckets_path":"t>"}}}} => Invalid path element
            {"aggs":{"p":{"derivative":{"buckets_path":"_count"}}}} => inside of another
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"p":{"derivative":{"buckets_path":"_count"}}}}}} => [p] must have a histogram
            {"aggs":{"h":{"histogram":{"field":"x","interval":1,"min_doc_count":1},"aggs":{"p":{"cumulative_sum":{"buckets_path":"_count"}}}}}} => min_doc_count of 0
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"s":{"stats":{"field":"x"}},"p":{"bucket_sort":{"sort":["s"]}}}}}} => [s] is none of that for path [s]
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"p":{"bucket_sort":{}}}}}} => perform nothing
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"p":{"bucket_sort":{"sort":{"_count":{"mode":"max"}}}}}}}} => [order] alone
            {"aggs":{"t":{"terms":{"field":"x","order":{"p":"asc"}},"aggs":{"h":{"histogram":{"field":"x","interval":1}},"p":{"max_bucket":{"buckets_path":"h>_count"}}}}}} => Invalid aggregation order path [p]
            {"aggs":{"p":{"derivative":{"buckets_path":"a","format":"0.0"}}}} => [format]
            {"aggs":{"p":{"bucket_script":{}}}} => compute it from the buckets
            {"aggs":{"t":{"terms":{"field":"x","missing":1},"aggs":{"h":{"top_hits":{}}}}}} => [top_hits] within [terms]
            {"aggs":{"t":{"auto_date_histogram":{"field":"x"},"aggs":{"f":{"filter":{"match_all":{}},"aggs":{"h":{"top_hits":{"highlight":{}}}}}}}}} => [highlight]
            {"aggs":{"t":{"auto_date_histogram":{"field":"x"},"aggs":{"f":{"filter":{"match_all":{}},"aggs":{"h":{"top_hits":{}}}}}}}} => [top_hits] within [auto_date_histogram]
            {"aggs":{"h":{"top_hits":{"from":99,"size":2}}}} => less than or equal to: [100]
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"h":{"top_hits":{}}}},"p":{"max_bucket":{"buckets_path":"t>h"}}}} => [h] is none of that
            {"collapse":{"field":"x","inner_hits":{}}} => [inner_hits]
            {"ext":{"narrows":{"cost":{"documnets":1}}}} => did you mean "documents"
            {"ext":{"other":{}}} => [ext] does not support [other]
            {"query":{"term":{"k":{"value":"a","_name":"n"}}}} => [_name] is not supported
            {"query":{"bool":{"must":[],"_name":"n"}}} => [_name] is not supported
            {"query":{"match_all":{"_name":"n"}}} => [_name] is not supported
            {"query":{"query_string":{"query":"a","_name":"n"}}} => [_name] is not supported
            {"query":{"function_score":{"weight":2,"_name":"n"}}} => [_name] is not supported
            {"query":{"prefix":{"k":{"value":"a","rewrite":"top_terms_5"}}}} => rewrite
            {"query":{"regexp":{"k":{"value":"a","rewrite":"scoring_boolean"}}}} => rewrite
            {"query":{"multi_match":{"query":"a","type":"phrase","fuzziness":1}}} => Fuzziness not allowed for type [phrase]
            {"aggs":{"a":{"terms":{"field":"x"},"aggs":{},"aggregations":{}}}} => two sub aggregation definitions
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"c":{"composite":{"sources":[{"x":{"terms":{"field":"x"}}}]}}}}}} => [composite] aggregation cannot be used with a parent aggregation of type: [terms]
            {"aggs":{"t":{"terms":{"field":"x"},"aggs":{"f":{"filter":{"match_all":{}},"aggs":{"c":{"composite":{"sources":[{"x":{"terms":{"field":"x"}}}]}}}}}}}} => with a parent aggregation of type: [terms]
        "#;
        let refused = REFUSED.replace("LIST", &"1,".repeat(64));
        for (body, part) in pairs(&refused) {
            let (reason, spot) = said(body);
            assert!(reason.contains(part), "{body}: {reason}");
            assert!(spot.is_some_and(|spot| spot.column > 1), "{body}: {spot:?}");
        }
    }

    #[test]
    fn bounds_are_named_by_their_settings() {
        let parse = |query: String| parse_count(format!("{{\"query\":{query}}}").as_bytes());
        for open in ["{\"bool\":{\"must\":", "{\"constant_score\":{\"filter\":"] {
            let nested = |depth: usize| {
                parse(open.repeat(depth) + "{\"match_all\":{}}" + &"}}".repeat(depth))
            };
            assert!(nested(20).is_ok());
            let error = nested(21).unwrap_err();
            assert_eq!(error.kind, SearchErrorKind::IllegalArgument);
            assert!(error.reason.contains("indices.query.bool.max_nested_depth"));
        }
        let clauses = vec!["{\"match_all\":{}}"; 1024].join(",");
        let error = parse(format!("{{\"bool\":{{\"should\":[{clauses}]}}}}")).unwrap_err();
        assert!(error.reason.contains("indices.query.bool.max_clause_count"));

        // Of several texts all clauses count, each once for each field.
        let text = |kind: &str, fields: usize, words: usize| {
            let fields = (0..fields).map(|n| format!("\"f{n}\"")).collect::<Vec<_>>().join(",");
            format!(
                "{{\"{kind}\":{{\"fields\":[{fields}],\"query\":\"{}\"}}}}",
                "+a ".repeat(words)
            )
        };
        for kind in ["query_string", "simple_query_string"] {
            let both = |fields, words| {
                let text = text(kind, fields, words);
                parse(format!("{{\"bool\":{{\"should\":[{text},{text}]}}}}"))
            };
            assert!(both(10, 51).is_ok(), "{kind}");
            assert!(both(10, 52).unwrap_err().reason.contains("max_clause_count"), "{kind}");
        }
        assert!(parse(text("multi_match", 1024, 1)).unwrap_err().reason.contains("clause_count"));
        let long =
            format!("{{\"multi_match\":{{\"fields\":[\"{}\"],\"query\":1}}}}", "f".repeat(1025));
        assert!(parse(long).unwrap_err().reason.contains("at most 1024 bytes"));
        let terms = vec!["1"; 65_537].join(",");
        let error = parse(format!("{{\"terms\":{{\"a\":[{terms}]}}}}")).unwrap_err();
        assert!(error.reason.contains("index.max_terms_count"));
        let aggs = |depth: usize| {
            let open = "{\"a\":{\"filter\":{\"match_all\":{}},\"aggs\":".repeat(depth - 1);
            let leaf = "{\"a\":{\"filter\":{\"match_all\":{}}}}";
            format!("{{\"aggs\":{open}{leaf}{}}}", "}}".repeat(depth - 1))
        };
        assert!(parse_search(aggs(20).as_bytes()).is_ok());
        let error = parse_search(aggs(21).as_bytes()).unwrap_err();
        assert!(error.reason.contains("aggregations are nested deeper than 20"), "{error}");
    }
}
