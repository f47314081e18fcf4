//! Bodies that nobody would write.

use query::{Mapping, parse_count, parse_search, parse_sort};
use testbed::fuzz::{self, Budget};

const SEARCHES: [&[u8]; 9] = [
    br#"{"query": {"bool": {"must": [{"term": {"status": {"value": 404}}}], "filter": [{"range": {"@timestamp": {"gte": "now-1d/d", "lt": "2020-05-01||+1M"}}}], "should": [{"match": {"text": {"query": "a b", "operator": "and"}}}], "must_not": {"exists": {"field": "x"}}, "minimum_should_match": 1}}, "size": 3, "from": 2}"#,
    br#"{"query": {"match_phrase": {"body": {"query": "quick fox", "slop": 2}}}, "_source": {"includes": ["a.*"], "excludes": ["b"]}}"#,
    br#"{"query": {"geo_bounding_box": {"location": {"top_left": {"lat": 40.73, "lon": -74.1}, "bottom_right": "40.01, -71.12"}}}}"#,
    br#"{"query": {"geo_distance": {"distance": "200km", "location": [40, -70]}}}"#,
    br#"{"query": {"geo_polygon": {"location": {"points": [[-0.1, 49.0], [5.0, 48.0], {"lat": 15, "lon": 20}]}}}}"#,
    br#"{"query": {"function_score": {"query": {"match_all": {}}, "functions": [{"weight": 2}], "boost_mode": "multiply"}}}"#,
    br#"{"size": 0, "aggs": {"by_hour": {"date_histogram": {"field": "@timestamp", "calendar_interval": "month", "time_zone": "+01:00", "offset": "+6h"}, "aggs": {"m": {"avg": {"field": "bytes"}}}}}}"#,
    br#"{"size": 0, "aggs": {"s": {"terms": {"field": "status", "size": 20, "order": {"_count": "desc"}}}, "p": {"percentiles": {"field": "bytes", "percents": [50, 99.9]}}, "c": {"cardinality": {"field": "ip"}}, "h": {"histogram": {"field": "x", "interval": 0.5}}}}"#,
    br#"{"query": {"terms": {"tag": ["a", "b"]}}, "sort": [{"@timestamp": {"order": "desc", "missing": "_last"}}, "_score"], "search_after": [1, "x"], "track_total_hits": 100, "timeout": "1s"}"#,
];

#[test]
fn searches() {
    fuzz::search("search bodies", &SEARCHES, 20_000, Budget::default(), |body| {
        let _ = (parse_search(body), parse_count(body));
    });
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
