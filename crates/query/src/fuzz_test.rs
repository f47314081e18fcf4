//! Bodies that nobody would write.

use testbed::fuzz::{self, Budget};

use crate::mapping::NewFields;
use crate::{Mapping, SearchRequest, aggregations, parse_count, parse_search, parse_sort, queries};

const SEARCHES: [&[u8]; 17] = [
    br#"{"query": {"bool": {"must": [{"term": {"status": {"value": 404}}}], "filter": [{"range": {"@timestamp": {"gte": "now-1d/d", "lt": "2020-05-01||+1M"}}}], "should": [{"match": {"text": {"query": "a b", "operator": "and"}}}], "must_not": {"exists": {"field": "x"}}, "minimum_should_match": 1}}, "size": 3, "from": 2}"#,
    br#"{"query": {"match_phrase": {"body": {"query": "quick fox", "slop": 2}}}, "_source": {"includes": ["a.*"], "excludes": ["b"]}}"#,
    br#"{"query": {"geo_bounding_box": {"location": {"top_left": {"lat": 40.73, "lon": -74.1}, "bottom_right": "40.01, -71.12"}}}}"#,
    br#"{"query": {"geo_distance": {"distance": "200km", "location": [40, -70]}}}"#,
    br#"{"query": {"geo_polygon": {"location": {"points": [[-0.1, 49.0], [5.0, 48.0], {"lat": 15, "lon": 20}]}}}}"#,
    br#"{"query": {"bool": {"filter": [{"geo_shape": {"p": {"shape": {"type": "polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]], [[5, 1], [6, 1], [6, 2], [5, 1]]]}, "relation": "intersects"}}}, {"geo_shape": {"p": {"shape": {"type": "circle", "coordinates": [1, 2], "radius": "3km"}}, "ignore_unmapped": false}}, {"geo_shape": {"p": {"shape": {"type": "envelope", "coordinates": [[0, 9], [9, 0]]}}}}]}}}"#,
    br#"{"query": {"function_score": {"query": {"match_all": {}}, "functions": [{"weight": 2}], "boost_mode": "multiply"}}}"#,
    br#"{"size": 0, "aggs": {"by_hour": {"date_histogram": {"field": "@timestamp", "calendar_interval": "month", "time_zone": "+01:00", "offset": "+6h"}, "aggs": {"m": {"avg": {"field": "bytes"}}}}}}"#,
    br#"{"size": 0, "aggs": {"s": {"terms": {"field": "status", "size": 20, "order": {"_count": "desc"}}}, "p": {"percentiles": {"field": "bytes", "percents": [50, 99.9]}}, "c": {"cardinality": {"field": "ip"}}, "h": {"histogram": {"field": "x", "interval": 0.5}}}}"#,
    br#"{"query": {"query_string": {"query": "a AND (b OR -c) x:[1 TO 5} y:>=2 /z.*/ _exists_:q w*^2 \"d e\"", "fields": ["t^2", "k*"], "default_operator": "and", "tie_breaker": 0.3}}}"#,
    br#"{"query": {"simple_query_string": {"query": "a+b|c -(d|\"e f\") g* +h", "fields": ["t", "k"], "minimum_should_match": 1}}, "collapse": {"field": "k"}, "post_filter": {"ids": {"values": ["1"]}}}"#,
    br#"{"query": {"bool": {"should": [{"multi_match": {"query": "a b", "fields": ["t", "u^3"], "fuzziness": "AUTO", "type": "most_fields"}}, {"fuzzy": {"t": {"value": "roam", "prefix_length": 1}}}, {"wildcard": {"k": "a*b?"}}, {"regexp": {"k": "a(b|c)+"}}, {"prefix": {"k": {"value": "a", "case_insensitive": true}}}, {"match_bool_prefix": {"t": "a b"}}, {"match_phrase_prefix": {"t": {"query": "a b", "max_expansions": 3}}}, {"constant_score": {"filter": {"exists": {"field": "x"}}}}, {"dis_max": {"queries": [{"match_all": {}}, {"match_none": {}}], "tie_breaker": 0.7}}]}}}"#,
    br#"{"query": {"function_score": {"functions": [{"filter": {"term": {"x": 1}}, "gauss": {"at": {"origin": "now", "scale": "9d", "offset": "1d"}}}, {"field_value_factor": {"field": "n", "factor": 1.5, "modifier": "log2p", "missing": 1}}, {"random_score": {"seed": 7}}], "score_mode": "sum", "min_score": 1}}}"#,
    br#"{"size": 0, "aggs": {"pages": {"composite": {"size": 5, "sources": [{"k": {"terms": {"field": "k", "order": "desc"}}}, {"h": {"histogram": {"field": "n", "interval": 5}}}, {"d": {"date_histogram": {"field": "at", "fixed_interval": "1d"}}}, {"t": {"geotile_grid": {"field": "p"}}}], "after": {"k": "a", "h": 5, "d": 0, "t": "7/1/2"}}, "aggs": {"x": {"extended_stats": {"field": "n", "sigma": 3}}}}, "both": {"multi_terms": {"terms": [{"field": "k"}, {"field": "n", "missing": 0}], "order": {"m": "asc"}}, "aggs": {"m": {"min": {"field": "n"}}}}, "auto": {"auto_date_histogram": {"field": "at", "buckets": 7, "minimum_interval": "hour"}}}}"#,
    br#"{"size": 0, "aggs": {"r": {"range": {"field": "n", "ranges": [{"to": 1}, {"from": 1, "to": 5, "key": "b"}], "keyed": true}}, "d": {"date_range": {"field": "at", "format": "yyyy-MM", "ranges": [{"from": "now-2M/M"}]}}, "g": {"geo_distance": {"field": "p", "origin": "1,2", "unit": "km", "ranges": [{"to": 5}]}}, "gb": {"geo_bounds": {"field": "p", "wrap_longitude": false}}, "gc": {"geo_centroid": {"field": "p"}}, "gh": {"geohash_grid": {"field": "p", "precision": "1km", "bounds": {"top_left": "2, 1", "bottom_right": [3, 1]}}}, "gt": {"geotile_grid": {"field": "p", "precision": 8, "size": 5}}, "f": {"filters": {"filters": {"a": {"term": {"k": "a"}}}, "other_bucket": true}, "aggs": {"one": {"filter": {"exists": {"field": "n"}}}, "none": {"missing": {"field": "n"}}}}, "x": {"max": {"field": "n"}, "meta": {"a": [1]}}, "s": {"sum": {"field": "n"}}, "t": {"stats": {"field": "n"}}, "c": {"value_count": {"field": "n"}}}}"#,
    br#"{"size": 0, "aggs": {"h": {"date_histogram": {"field": "at", "fixed_interval": "1d"}, "aggs": {"s": {"sum": {"field": "n"}}, "d": {"derivative": {"buckets_path": "s", "unit": "1h"}}, "c": {"cumulative_sum": {"buckets_path": "s.value"}}, "b": {"bucket_sort": {"sort": [{"d": {"order": "desc"}}], "from": 1, "size": 5, "gap_policy": "insert_zeros"}}, "t": {"top_hits": {"size": 2, "sort": [{"n": "desc"}], "_source": ["a*"], "docvalue_fields": ["k"]}}}}, "a": {"avg_bucket": {"buckets_path": "h>s"}}, "m": {"max_bucket": {"buckets_path": "h>s"}}, "i": {"min_bucket": {"buckets_path": "h>s"}}, "u": {"sum_bucket": {"buckets_path": "h>_count"}}, "x": {"stats_bucket": {"buckets_path": "h>s"}}}}"#,
    br#"{"query": {"terms": {"tag": ["a", "b"]}}, "sort": [{"@timestamp": {"order": "desc", "missing": "_last"}}, "_score"], "search_after": [1, "x"], "track_total_hits": 100, "timeout": "1s", "highlight": {"pre_tags": "<b>", "post_tags": ["</b>"], "encoder": "html", "fields": [{"t*": {"type": "plain", "order": "score", "fragment_size": 20, "highlight_query": {"match": {"t": "x"}}}}]}}"#,
];

/// A sample that is refused at once tries nothing behind it; of each query and aggregation that there is one is tried.
#[test]
fn samples_have_every_kind() {
    let all = SEARCHES.map(|sample| String::from_utf8_lossy(sample)).join("\n");
    let kinds = queries().chain(aggregations());
    let lacking: Vec<&str> = kinds.filter(|kind| !all.contains(&format!("\"{kind}\""))).collect();
    assert_eq!(lacking, [""; 0]);
    let refused = SEARCHES.iter().filter_map(|sample| parse_search(sample).err());
    let refused: Vec<String> = refused.map(|error| error.reason).collect();
    let [slop] = refused.as_slice() else { panic!("{refused:?}") };
    assert!(slop.contains("slop"), "{refused:?}");
}

#[test]
fn searches() {
    fuzz::search("search bodies", &SEARCHES, 20_000, Budget::default(), |body| {
        let _ = (parse_search(body), parse_count(body));
    });
}

/// What a node sends is read to the depth that a body can ask for, and no deeper, on the stack of a test's thread.
#[test]
fn what_travels_is_as_deep_as_a_body() {
    let text = format!("{}b", "a+b|".repeat(32));
    let simple = format!("{{\"simple_query_string\":{{\"query\":\"{text}\"}}}}");
    let around = |open: &str, times: usize, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let query = around("{\"bool\":{\"must\":", 20, &simple, "}}");
    let filter = format!("{{\"filter\":{query}}}");
    let aggs = around("{\"filter\":{\"match_all\":{}},\"aggs\":{\"a\":", 19, &filter, "}}");
    let body = format!("{{\"query\":{query},\"aggs\":{{\"a\":{aggs}}}}}");
    let deepest = parse_search(body.as_bytes()).unwrap();
    let sent = postcard::to_stdvec(&deepest).unwrap();
    assert_eq!(postcard::from_bytes::<SearchRequest>(&sent).unwrap(), deepest);

    // A query is its kind and a boost: what stands before the inner one is what makes it deep.
    let plain = postcard::to_stdvec(&SearchRequest::default()).unwrap();
    let constant = br#"{"query": {"constant_score": {"filter": {"match_all": {}}}}}"#;
    let constant = postcard::to_stdvec(&parse_search(constant).unwrap()).unwrap();
    assert!(constant.len() > plain.len());
    let at = plain.iter().zip(&constant).position(|(a, b)| a != b).unwrap();
    let mut deep = constant.clone();
    deep.splice(at..at, constant[at..=at].repeat(100_000));
    assert!(postcard::from_bytes::<SearchRequest>(&deep).is_err());
}

#[test]
fn sorts() {
    fuzz::search("sorts of a URL", &[b"a:desc,b,_score:asc"], 5_000, Budget::default(), |text| {
        let _ = std::str::from_utf8(text).map(parse_sort);
    });
}

#[test]
fn mappings() {
    let samples: [&[u8]; 3] = [
        br#"{"properties": {"status": {"type": "integer"}, "at": {"type": "date", "format": "epoch_millis"}, "where": {"type": "geo_point"}}}"#,
        br#"{"dynamic": "strict", "_source": {"enabled": true}, "properties": {"o": {"properties": {"p": {"type": "keyword", "ignore_above": 256}}}}}"#,
        br#"{"dynamic": false, "properties": {"t": {"type": "text", "fields": {"raw": {"type": "keyword"}}, "analyzer": "standard"}}}"#,
    ];
    fuzz::search("mappings", &samples, 20_000, Budget::default(), |body| {
        if let Ok(value) = serde_json::from_slice(body) {
            let _ = Mapping::parse(&value);
        }
    });
}

/// A document costs what it holds, not what those before it brought, whether they are accepted or refused: allocations
/// are counted.
#[test]
fn documents_with_new_fields() {
    let of = |document: fn(u32) -> String| (0..1_000).map(document).collect::<String>();
    let accepted = of(|n| format!("{{\"f{n}\":{n}}}\n"));
    let refused = of(|n| format!("{{\"f{n}\":0}}\n{{\"g{n}\":[0,\"x\"]}}\n"));
    let samples = [accepted.as_bytes(), refused.as_bytes()];
    fuzz::search("documents with new fields", &samples, 50, Budget::default(), |bulk| {
        let mapping = Mapping::default();
        let mut fields = NewFields::of(&mapping);
        bulk.split(|byte| *byte == b'\n').for_each(|document| drop(fields.meet(document)));
    });
}
