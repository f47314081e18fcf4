//! Requests whose answers are written down: what is found, in which order, and what is shown.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use query::aggregation::DEFAULT_MAX_BUCKETS;
use query::{Literal, Mapping, SearchLimits, SourceFilter, parse_search};
use serde_json::{Value, json};
use store::{Aggregated, Options, Shard, WriteRequest};
use world::Env;

use super::{bm25, limits, run, search};
use crate::common::write;

/// A copy with some documents in two segments.
async fn shard(env: &Env, dir: &Path, properties: Value, documents: &[Value]) -> Shard {
    let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
    let shard = Shard::create(env, dir, &mapping, Options::default()).await.unwrap();
    let index = |(id, document): (usize, &Value)| WriteRequest::Index {
        id: id.to_string().into(),
        source: Bytes::from(document.to_string()),
        auto_id: false,
        create: false,
    };
    let mut requests: Vec<WriteRequest> = documents.iter().enumerate().map(index).collect();
    let rest = requests.split_off(documents.len() / 2);
    for requests in [requests, rest] {
        write(&shard, requests).await;
        shard.refresh().await.unwrap();
    }
    shard
}

async fn ids(shard: &Shard, body: Value) -> Vec<u64> {
    search(shard, &body).await.2
}

async fn refused(shard: &Shard, body: Value) -> String {
    let request = parse_search(body.to_string().as_bytes()).unwrap();
    shard.search(&Arc::new(request), &limits()).await.map(drop).unwrap_err().to_string()
}

async fn aggregated(shard: &Shard, aggs: Value) -> Value {
    let (request, hits, _) = search(shard, &json!({"size": 0, "aggs": aggs})).await;
    let (mut answer, mut text) = (Aggregated::default(), Vec::new());
    answer.add("a", &hits.aggregations).unwrap();
    answer.write(&request.aggregations, DEFAULT_MAX_BUCKETS, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// What is made of a body is bounded: clauses within each other by the stack of the thread that searches, words and
/// patterns by what they take in all fields together.
#[test]
fn no_body_takes_more_than_its_bounds() {
    run("bounds", 1, async |env, dir, _| {
        let properties: serde_json::Map<String, Value> =
            (0..40).map(|n| (format!("f{n}"), json!({"type": "text"}))).collect();
        let documents = [json!({"f0": "a b"}), json!({"f0": "c"})];
        let shard = shard(&env, &dir, properties.into(), &documents).await;
        // The deepest that there is, with nothing else to be refused in it.
        let text = format!("{}b", "a+b|".repeat(32));
        let simple = json!({"simple_query_string": {"query": text, "fields": ["f0"]}});
        let query = (0..20).fold(simple, |inner, _| json!({"bool": {"must": inner}}));
        let filter = json!({ "filter": query });
        let aggs = (0..19).fold(filter, |inner, _| json!({"filter": query, "aggs": {"a": inner}}));
        assert_eq!(ids(&shard, json!({"query": query, "aggs": {"a": aggs}})).await, [0]);
        let names = json!(["f*"]);
        let fuzzy: Vec<String> = (100..200).map(|n| format!("{n}{}", "a".repeat(240))).collect();
        let pattern = format!("a{}?z OR ", "b".repeat(100)).repeat(60) + "a";
        for query in [
            json!({"match": {"f0": {"query": fuzzy.join(" "), "fuzziness": 2}}}),
            json!({"multi_match": {"query": "a ".repeat(7000), "fields": names, "lenient": true}}),
            json!({"query_string": {"query": pattern, "fields": names, "lenient": true}}),
        ] {
            let said = refused(&shard, json!({ "query": query })).await;
            assert!(said.contains("too many words, fuzzy words and patterns"), "{said}");
        }
        let regexps = (0..17).map(|n| format!("/a{n}/")).collect::<Vec<_>>().join(" OR ");
        let lenient =
            json!({"query_string": {"query": regexps, "fields": ["f0"], "lenient": true}});
        assert!(refused(&shard, json!({ "query": lenient })).await.contains("regular expressions"));
    });
}

#[test]
fn nothing_matches_more_clauses_than_there_are() {
    run("clauses", 1, async |env, dir, _| {
        let properties = json!({"t": {"type": "text"}, "k": {"type": "keyword"}});
        let documents = [json!({"t": "red sky", "k": 2.0}), json!({"t": "red", "k": 2})];
        let shard = shard(&env, &dir, properties, &documents).await;
        let words = |text: &str, needed: u64| json!({"match": {"t": {"query": text, "minimum_should_match": needed}}});
        let (red, sky, sea) = (words("red", 9), words("sky", 1), words("sea", 1));
        // With [and] no word may be missing, so that the minimum is one of none.
        let every = |text: &str, needed: Value| {
            json!({"match": {"t": {
                "query": text, "operator": "and", "minimum_should_match": needed,
            }}})
        };
        for (query, found) in [
            (red.clone(), vec![0u64, 1]),
            (words("red sky", 2), vec![0]),
            (words("red sky", 3), vec![]),
            (every("red sky", json!(1)), vec![]),
            (every("red sky", json!("75%")), vec![0]),
            (every("red sky", json!(-1)), vec![0]),
            (every("red", json!(2)), vec![0, 1]),
            (
                json!({"multi_match": {"query": "red sky", "fields": ["t"], "operator": "and",
                    "minimum_should_match": 2}}),
                vec![],
            ),
            (json!({"bool": {"should": [sky, sea], "minimum_should_match": "30%"}}), vec![0]),
            (json!({"bool": {"should": [sea], "minimum_should_match": -3}}), vec![]),
            (json!({"bool": {"should": [red, sky], "minimum_should_match": 3}}), vec![]),
            (json!({"bool": {"must": red, "should": [], "minimum_should_match": 1}}), vec![]),
            (json!({"bool": {"must_not": sky, "minimum_should_match": 1}}), vec![1]),
            (json!({"bool": {"minimum_should_match": 1}}), vec![0, 1]),
            // A keyword of a number is its text.
            (json!({"term": {"k": 2.0}}), vec![0]),
            (json!({"terms": {"k": [2]}}), vec![1]),
        ] {
            let mut ids = ids(&shard, json!({ "query": query })).await;
            ids.sort_unstable();
            assert_eq!(ids, found, "{query}");
        }
    });
}

#[test]
fn functions_change_scores() {
    run("functions", 1, async |env, dir, _| {
        let properties =
            json!({"n": {"type": "long"}, "at": {"type": "date"}, "p": {"type": "geo_point"}});
        let documents = [
            json!({"n": 8, "at": "2020-01-10", "p": "0,0"}),
            json!({"n": 98, "at": "2020-01-01", "p": "0,10"}),
            json!({"n": [3, 1], "at": "2020-01-04", "p": "0,1"}),
            json!({"at": "2020-03-01", "p": ["0,50", "0,2"]}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let scores = async |function: Value| {
            let (_, hits, ids) =
                search(&shard, &json!({"query": {"function_score": function}})).await;
            let scores = hits.hits.iter().map(|hit| (hit.score.unwrap() * 1000.0).round() / 1000.0);
            ids.into_iter().zip(scores).collect::<Vec<_>>()
        };
        let factor = json!({"field": "n", "factor": 1.0, "modifier": "log2p", "missing": 28});
        let found = scores(json!({"field_value_factor": factor})).await;
        assert_eq!(found, [(1, 2.0), (3, 1.477), (0, 1.0), (2, 0.477)]);
        let gauss = json!({"at": {"origin": "2020-01-01", "scale": "9d"}});
        assert_eq!(
            scores(json!({"gauss": gauss})).await,
            [(1, 1.0), (2, 0.926), (0, 0.5), (3, 0.0)]
        );
        let linear =
            json!({"p": {"origin": {"lat": 0, "lon": 0}, "scale": "1111.95km", "offset": "0km"}});
        assert_eq!(
            scores(json!({"linear": linear})).await,
            [(0, 1.0), (2, 0.95), (3, 0.9), (1, 0.5)]
        );
        let functions = json!([{"filter": {"range": {"n": {"gte": 8}}}, "weight": 3},
            {"filter": {"ids": {"values": ["1", "3"]}}, "weight": 2}]);
        let of = |more: Value| {
            let mut of = json!({"functions": functions, "score_mode": "sum"});
            of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            of
        };
        assert_eq!(scores(of(json!({}))).await, [(1, 5.0), (0, 3.0), (3, 2.0), (2, 1.0)]);
        let best = of(json!({"boost_mode": "sum", "max_boost": 4, "min_score": 4}));
        assert_eq!(scores(best.clone()).await, [(1, 5.0), (0, 4.0)]);
        let counted =
            json!({"size": 0, "track_total_hits": true, "query": {"function_score": best}});
        assert_eq!(search(&shard, &counted).await.1.total, 2);
        let random = json!({"random_score": {"seed": 7}});
        let (once, again) = (scores(random.clone()).await, scores(random).await);
        assert!(
            once == again && once.iter().all(|(_, score)| (0.0..1.0).contains(score)),
            "{once:?}"
        );
        for (field, why) in
            [("n", "Missing value for field [n]"), ("none", "field mapper for field [none]")]
        {
            let body =
                json!({"query": {"function_score": {"field_value_factor": {"field": field}}}});
            assert!(refused(&shard, body).await.contains(why));
        }
    });
}

#[test]
fn words_that_are_near_are_found() {
    run("fuzzy", 1, async |env, dir, _| {
        let properties =
            json!({"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "long"}});
        let texts = ["roam free", "foam", "roams", "form", "roma", "road to rome"];
        let documents = texts.map(|text| json!({"t": text, "k": text}));
        let shard = shard(&env, &dir, properties, &documents).await;
        let found = async |query: Value| {
            let mut found = ids(&shard, json!({ "query": query })).await;
            found.sort_unstable();
            found
        };
        assert_eq!(ids(&shard, json!({"query": {"fuzzy": {"t": "roam"}}})).await[0], 0);
        assert_eq!(found(json!({"fuzzy": {"t": "roam"}})).await, [0, 1, 2, 4, 5]);
        let plain =
            json!({"fuzzy": {"t": {"value": "roam", "transpositions": false, "prefix_length": 1}}});
        assert_eq!(found(plain).await, [0, 2, 5]);
        assert_eq!(found(json!({"fuzzy": {"k": {"value": "fom", "fuzziness": 1}}})).await, [1, 3]);
        assert_eq!(found(json!({"fuzzy": {"t": {"value": "roam", "fuzziness": 0}}})).await, [0]);
        let matched =
            json!({"match": {"t": {"query": "roma fre", "fuzziness": "AUTO", "operator": "and"}}});
        assert_eq!(found(matched).await, [0]);
        let simple =
            |query: &str| json!({"simple_query_string": {"query": query, "fields": ["t"]}});
        assert_eq!(found(simple("foam | ro*")).await, [0, 1, 2, 4, 5]);
        assert_eq!(found(simple("\"road to\" + rome")).await, [5]);
        assert_eq!(found(simple("ro* + -rome")).await, [0, 2, 4]);
        assert!(refused(&shard, json!({"query": {"fuzzy": {"n": "1"}}})).await.contains("fuzzy"));
    });
}

#[test]
fn queries_without_fields_ask_those_of_the_index() {
    run("default fields", 1, async |env, dir, _| {
        let properties =
            json!({"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "long"}});
        let documents = [("red fox", "blue"), ("blue fox", "red"), ("green", "fox")]
            .map(|(text, key)| json!({"t": text, "k": key, "n": 7}));
        let shard = shard(&env, &dir, properties, &documents).await;
        let found = async |fields: &[(&str, f32)], kind: &str, text: &str| {
            let body = json!({"query": {kind: {"query": text}}});
            let request = Arc::new(parse_search(body.to_string().as_bytes()).unwrap());
            let default_fields = fields.iter().map(|(name, boost)| ((*name).to_owned(), *boost));
            let limits = SearchLimits { default_fields: default_fields.collect(), ..limits() };
            let (hits, view) = shard.search(&request, &limits).await.map_err(|e| e.to_string())?;
            let places = hits.hits.iter().map(|hit| (hit.segment, hit.doc)).collect();
            let found = shard.fetch(&view, places, &SourceFilter::default()).await.unwrap();
            Ok::<_, String>(found.iter().map(|hit| hit.id.parse().unwrap()).collect::<Vec<u64>>())
        };
        for kind in ["query_string", "simple_query_string", "multi_match"] {
            assert_eq!(found(&[("*", 1.0)], kind, "red").await.unwrap().len(), 2, "{kind}");
            assert_eq!(found(&[("t", 1.0)], kind, "red").await.unwrap(), [0], "{kind}");
            let boosted = [("t", 1.0), ("k", 9.0)];
            assert_eq!(found(&boosted, kind, "red").await.unwrap(), [1, 0], "{kind}");
            // Of named fields a text has to fit each; of all it need not.
            assert!(found(&[("t", 1.0), ("n", 1.0)], kind, "red").await.is_err(), "{kind}");
        }
        assert_eq!(found(&[("k", 1.0)], "query_string", "*").await.unwrap().len(), 3);
        assert_eq!(found(&[("none", 1.0)], "query_string", "*").await.unwrap().len(), 0);
        assert_eq!(found(&[("*", 1.0)], "query_string", "*").await.unwrap().len(), 3);
    });
}

#[test]
fn hits_are_filtered_collapsed_and_shown() {
    run("hits", 1, async |env, dir, _| {
        let properties = json!({
            "k": {"type": "keyword"}, "n": {"type": "long"}, "d": {"type": "date", "format": "yyyy-MM-dd"},
            "b": {"type": "boolean"}, "x": {"type": "scaled_float", "scaling_factor": 10},
            "w": {"type": "text", "analyzer": "whitespace", "fielddata": true, "norms": false},
            "r": {"type": "double_range"},
        });
        let document = |k: &str, n: i64| {
            json!({"k": k, "n": n, "d": "2020-01-02", "b": n > 2, "x": n as f64 / 7.0,
                "w": format!("A-{n} b"), "r": {"gte": n, "lt": n + 3}})
        };
        let documents = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)];
        let shard = shard(&env, &dir, properties, &documents.map(|(k, n)| document(k, n))).await;
        let body = json!({
            "query": {"range": {"n": {"gte": 2}}}, "post_filter": {"term": {"k": "a"}}, "sort": ["n"],
            "aggs": {"k": {"terms": {"field": "k"}}}, "track_total_hits": true,
        });
        let (request, hits, found) = search(&shard, &body).await;
        assert_eq!((hits.total, found), (2, vec![2, 5]));
        let (mut answer, mut text) = (Aggregated::default(), Vec::new());
        answer.add("a", &hits.aggregations).unwrap();
        answer.write(&request.aggregations, DEFAULT_MAX_BUCKETS, &mut text).unwrap();
        let buckets = serde_json::from_slice::<Value>(&text).unwrap()["k"]["buckets"].clone();
        assert_eq!(buckets.as_array().unwrap().len(), 3, "{buckets}");

        let collapsed =
            json!({"collapse": {"field": "k"}, "sort": [{"n": "desc"}], "track_total_hits": true});
        let (_, hits, found) = search(&shard, &collapsed).await;
        assert_eq!((hits.total, found), (6, vec![5, 4, 3]));
        assert_eq!(hits.hits[0].fields["k"], [Literal::Text("a".to_owned())]);
        assert_eq!(
            ids(&shard, json!({"collapse": {"field": "k"}, "size": 2, "sort": ["n"]})).await,
            [0, 1]
        );

        let shown = json!({"size": 1, "sort": ["n"], "docvalue_fields": ["*", {"field": "d", "format": "yyyy"}, "none"]});
        let (_, hits, _) = search(&shard, &shown).await;
        let fields = &hits.hits[0].fields;
        let json: Value = fields
            .iter()
            .map(|(name, values)| {
                (name.clone(), values.iter().map(Literal::json).collect::<Value>())
            })
            .collect();
        assert_eq!(
            json,
            json!({"b": [false], "d": ["2020-01-02", "2020"], "k": ["a"], "n": [1], "w": ["A-1", "b"], "x": [0.1]})
        );

        for (query, expected) in [
            (json!({"term": {"x": 0.3}}), vec![1]),
            (json!({"range": {"x": {"gt": 0.3, "lte": 0.75}}}), vec![2, 3, 4]),
            (json!({"match": {"w": "A-3"}}), vec![2]),
            (json!({"match": {"w": "a-3"}}), vec![]),
            (json!({"range": {"r": {"gte": 4, "lt": 5}}}), vec![1, 2, 3]),
            (json!({"range": {"r": {"gte": 3.5, "lte": 5.5, "relation": "contains"}}}), vec![2]),
            (json!({"range": {"r": {"gte": 2, "lt": 6, "relation": "within"}}}), vec![1, 2]),
            (json!({"term": {"r": 4}}), vec![1, 2, 3]),
            (json!({"exists": {"field": "r"}}), vec![0, 1, 2, 3, 4, 5]),
        ] {
            assert_eq!(
                ids(&shard, json!({"query": query, "sort": ["n"]})).await,
                expected,
                "{query}"
            );
        }
        // A boolean scores by how many documents have it, as a word does.
        let (_, hits, _) = search(&shard, &json!({"query": {"term": {"b": true}}})).await;
        let idf = (1.0f32 + (6.0 - 4.0 + 0.5) / (4.0 + 0.5)).ln();
        assert!((hits.max_score.unwrap() - idf).abs() < 1e-6, "{:?} {idf}", hits.max_score);
        for (body, why) in [
            (json!({"sort": ["r"]}), "double_range"),
            (json!({"docvalue_fields": ["r"]}), "double_range"),
        ] {
            assert!(refused(&shard, body).await.contains(why));
        }
    });
}

#[test]
fn buckets_of_dates_and_of_pages() {
    run("dates", 1, async |env, dir, _| {
        let properties = json!({
            "d": {"type": "date"}, "k": {"type": "keyword"}, "b": {"type": "boolean"},
            "i": {"type": "ip"},
        });
        let documents = [
            ("2015-02-28T23:00:00Z", "a"),
            ("2015-03-01T04:30:00Z", "b"),
            ("2015-03-08T06:30:00Z", "a"),
            ("2015-03-08T07:30:00Z", "b"),
            ("2015-11-01T05:30:00Z", "a"),
            ("2015-11-01T06:30:00Z", "a"),
        ];
        // As texts these addresses would be the other way round.
        let address = |k: &str| if k == "a" { "10.0.0.10" } else { "10.0.0.9" };
        let documents =
            documents.map(|(d, k)| json!({"d": d, "k": k, "b": k == "a", "i": address(k)}));
        let shard = shard(&env, &dir, properties, &documents).await;
        let counts = |answer: &Value, name: &str| {
            let bucket = |bucket: &Value| {
                let key = bucket["key_as_string"].as_str().or(bucket["key"].as_str());
                (key.unwrap_or_default().to_owned(), bucket["doc_count"].as_u64().unwrap())
            };
            answer[name]["buckets"].as_array().unwrap().iter().map(bucket).collect::<Vec<_>>()
        };
        let pairs =
            |of: &[(&str, u64)]| of.iter().map(|(a, n)| ((*a).to_owned(), *n)).collect::<Vec<_>>();
        let york = "America/New_York";
        let histogram = |interval: &str| json!({"date_histogram": {"field": "d", "calendar_interval": interval, "time_zone": york, "min_doc_count": 1}});
        let answer = aggregated(&shard, json!({"m": histogram("month"), "h": histogram("hour"), "r": {"date_range": {
            "field": "d", "time_zone": york, "format": "yyyy-MM-dd",
            "ranges": [{"from": "2015-03-01"}, {"to": "2015-03-01"}, {"from": "2015-03-08||/M", "to": "2015-03-08", "key": "x"}],
        }}})).await;
        assert_eq!(
            counts(&answer, "m"),
            pairs(&[
                ("2015-02-01T00:00:00.000-05:00", 2),
                ("2015-03-01T00:00:00.000-05:00", 2),
                ("2015-11-01T00:00:00.000-04:00", 2),
            ])
        );
        // An hour that clocks show twice is two hours, one that they leave out is none.
        assert_eq!(
            counts(&answer, "h")[2..],
            pairs(&[
                ("2015-03-08T01:00:00.000-05:00", 1),
                ("2015-03-08T03:00:00.000-04:00", 1),
                ("2015-11-01T01:00:00.000-04:00", 1),
                ("2015-11-01T01:00:00.000-05:00", 1),
            ])
        );
        assert_eq!(
            counts(&answer, "r"),
            pairs(&[("*-2015-03-01", 2), ("x", 0), ("2015-03-01-*", 4)])
        );
        assert_eq!(answer["r"]["buckets"][0]["to_as_string"], "2015-03-01", "{answer}");

        let composite = |zone: &str, after: Option<Value>| {
            let mut of = json!({"size": 3, "sources": [
                {"day": {"date_histogram": {
                    "field": "d", "calendar_interval": "month", "format": "yyyy-MM", "time_zone": zone,
                }}},
                {"i": {"terms": {"field": "i"}}},
                {"k": {"terms": {"field": "k", "order": "desc"}}}, {"b": {"terms": {"field": "b"}}},
            ]});
            if let Some(after) = after {
                of["after"] = after;
            }
            json!({"c": {"composite": of}})
        };
        for (zone, expected) in [
            (
                "UTC",
                [("02", "b", 0), ("02", "a", 1), ("03", "b", 2), ("03", "a", 1), ("11", "a", 2)],
            ),
            (
                york,
                [("02", "b", 1), ("02", "a", 1), ("03", "b", 1), ("03", "a", 1), ("11", "a", 2)],
            ),
        ] {
            let (mut after, mut pages) = (None, Vec::new());
            for _ in 0..3 {
                let answer = aggregated(&shard, composite(zone, after.clone())).await;
                let buckets = answer["c"]["buckets"].as_array().unwrap().clone();
                let Some(last) = buckets.last() else { break };
                assert_eq!(answer["c"]["after_key"], last["key"]);
                after = Some(last["key"].clone());
                pages.extend(buckets);
            }
            let bucket = |(month, k, n): (&str, &str, u64)| {
                let day = format!("2015-{month}");
                let key = json!({"day": day, "i": address(k), "k": k, "b": k == "a"});
                json!({"key": key, "doc_count": n})
            };
            let expected = expected.into_iter().filter(|(.., n)| *n > 0).map(bucket);
            assert_eq!(pages, expected.collect::<Vec<_>>(), "{zone}");
        }
    });
}

#[test]
fn buckets_of_fields_that_no_document_has() {
    run("unmapped", 1, async |env, dir, _| {
        let documents = [json!({"n": 1}), json!({"n": 2}), json!({"n": 4})];
        let shard = shard(&env, &dir, json!({"n": {"type": "long"}}), &documents).await;
        let sum = json!({"s": {"sum": {"field": "n"}}});
        let of = |missing: Value| json!({"field": "none", "missing": missing});
        let index = json!({"field": "_index"});
        let answer = aggregated(
            &shard,
            json!({
                "text": {"terms": of(json!("__missing__")), "aggs": sum}, "number": {"terms": of(json!(7))},
                "mean": {"avg": of(json!(1.5))}, "values": {"value_count": of(json!("x"))},
                "distinct": {"cardinality": of(json!("x"))},
                "width": {"histogram": {"field": "none", "missing": 25, "interval": 10}},
                "index": {"terms": index, "aggs": {"s": sum["s"], "top": {"top_hits": {"size": 1, "sort": ["n"]}}}},
                "indices": {"cardinality": index},
                "pages": {"composite": {"sources": [{"i": {"terms": index}}]}},
            }),
        )
        .await;
        let first = |name: &str| answer[name]["buckets"][0].clone();
        let all = json!({"key": "__missing__", "doc_count": 3, "s": {"value": 7.0}});
        assert_eq!(first("text"), all);
        assert_eq!(first("number"), json!({"key": 7, "doc_count": 3}));
        assert_eq!(first("width"), json!({"key": 20.0, "doc_count": 3}));
        assert_eq!(first("pages"), json!({"key": {"i": "a"}, "doc_count": 3}));
        let values = ["mean", "values", "distinct", "indices"].map(|name| &answer[name]["value"]);
        assert_eq!(values, [&json!(1.5), &json!(3), &json!(1), &json!(1)]);
        let index = first("index");
        assert_eq!((&index["key"], &index["doc_count"]), (&json!("a"), &json!(3)), "{index}");
        assert_eq!(index["s"]["value"], 7.0);
        assert_eq!(index["top"]["hits"]["hits"][0]["_id"], "0");
        for field in ["_id", "_index"] {
            let exists = json!({"exists": {"field": field}});
            assert_eq!(ids(&shard, json!({"query": exists})).await.len(), 3, "{field}");
        }
        for (body, why) in [
            (json!({"aggs": {"a": {"terms": {"field": "_id"}}}}), "metadata field [_id]"),
            (json!({"aggs": {"a": {"max": {"field": "_index"}}}}), "metadata field [_index]"),
            (json!({"sort": [{"_seq_no": {"unmapped_type": "long"}}]}), "sorted by the metadata"),
            (json!({"query": {"exists": {"field": "_routing"}}}), "metadata field [_routing]"),
            (json!({"aggs": {"a": {"avg": of(json!("x"))}}}), "[none], which is not mapped"),
        ] {
            let said = refused(&shard, body).await;
            assert!(said.contains(why), "{said}");
        }
    });
}

#[test]
fn buckets_of_distances() {
    run("distances", 1, async |env, dir, _| {
        let properties = json!({"p": {"type": "geo_point"}, "n": {"type": "long"}});
        // A degree of the equator is 111.2 km.
        let documents = [
            json!({"p": "0,1", "n": 1}),
            json!({"p": [[1, 0], [3, 0], [3.5, 0]], "n": 2}),
            json!({"n": 4}),
            json!({"p": "POINT (-5 0)", "n": 8}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let asked = |field: &str, keyed: bool| {
            json!({"d": {"geo_distance": {
                "field": field, "origin": [0, 0], "unit": "km", "keyed": keyed,
                "ranges": [{"from": 300}, {"to": 150}, {"from": 100, "to": 400, "key": "ring"}],
            }, "aggs": {"n": {"sum": {"field": "n"}}}}, "c": {"value_count": {"field": field}}})
        };
        let bucket = |key: &str, ends: Value, doc_count: u64, sum: f64| {
            let mut bucket = json!({"key": key, "doc_count": doc_count, "n": {"value": sum}});
            bucket.as_object_mut().unwrap().extend(ends.as_object().unwrap().clone());
            bucket
        };
        let expected = json!([
            bucket("300.0-*", json!({"from": 300.0}), 2, 10.0),
            bucket("*-150.0", json!({"from": 0.0, "to": 150.0}), 2, 3.0),
            bucket("ring", json!({"from": 100.0, "to": 400.0}), 2, 3.0),
        ]);
        let answer = aggregated(&shard, asked("p", false)).await;
        assert_eq!((&answer["d"]["buckets"], &answer["c"]["value"]), (&expected, &json!(5)));
        let answer = aggregated(&shard, asked("p", true)).await;
        assert_eq!(answer["d"]["buckets"]["ring"]["n"]["value"], 3.0, "{answer}");
        let answer = aggregated(&shard, asked("none", false)).await;
        assert_eq!(answer["d"]["buckets"][0]["doc_count"], 0, "{answer}");
        let wrong = json!({"size": 0, "aggs": asked("n", false)});
        assert!(refused(&shard, wrong).await.contains("[n] of type [long] is not supported"));
    });
}

#[test]
fn a_text_without_words_is_there() {
    run("wordless", 1, async |env, dir, _| {
        let text = |more: Value| {
            let mut field = json!({"type": "text"});
            field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            field
        };
        let properties = json!({
            "n": {"type": "long"}, "t": text(json!({})), "bare": text(json!({"norms": false})),
            "e": text(json!({"analyzer": "english"})),
        });
        let texts = [
            json!("It is"),
            json!(""),
            json!(["the ...", "..."]),
            json!("fox"),
            json!(null),
            json!(["fox", "the dog"]),
            json!("the fox, and the dogs"),
        ];
        let documents = (0..).zip(&texts);
        let documents = documents.map(|(n, of)| json!({"n": n, "t": of, "bare": of, "e": of}));
        let shard = shard(&env, &dir, properties, &documents.collect::<Vec<_>>()).await;
        let found = async |query: Value| ids(&shard, json!({"query": query, "sort": ["n"]})).await;
        for field in ["t", "bare", "e"] {
            let exists = json!({"exists": {"field": field}});
            assert_eq!(found(exists.clone()).await, [0, 1, 2, 3, 5, 6], "{field}");
            assert_eq!(found(json!({"bool": {"must_not": exists}})).await, [4], "{field}");
            let any = json!({"query_string": {"query": format!("{field}:*")}});
            assert_eq!(found(any).await, [0, 1, 2, 3, 5, 6], "{field}");
            let words: &[u64] = if field == "e" { &[3, 5, 6] } else { &[0, 2, 3, 5, 6] };
            assert_eq!(found(json!({"prefix": {field: ""}})).await, words, "{field}");
            assert_eq!(found(json!({"wildcard": {field: "*"}})).await, words, "{field}");
        }
        // No word of one value stands next to one of another, whatever was dropped between.
        for (phrase, expected) in
            [("fox dog", vec![]), ("fox is the dog", vec![6]), ("it is", vec![])]
        {
            assert_eq!(found(json!({"match_phrase": {"e": phrase}})).await, expected, "{phrase}");
        }
        // What was dropped counts for no length: three texts have five words.
        let (_, hits, _) = search(&shard, &json!({"query": {"match": {"e": "foxes"}}})).await;
        let score = |length: f64| bm25(3.0, 3.0, 1.0, length, 5.0 / 3.0);
        let scores = hits.hits.iter().map(|hit| f64::from(hit.score.unwrap()));
        for (score_of, expected) in scores.zip([score(1.0), score(2.0), score(2.0)]) {
            assert!((score_of - expected).abs() < 1e-5, "{score_of} {expected}");
        }
    });
}

#[test]
fn pipelines_read_the_buckets_that_are_shown() {
    run("pipelines", 1, async |env, dir, _| {
        let properties = json!({
            "n": {"type": "long"}, "x": {"type": "double"}, "k": {"type": "keyword"}, "at": {"type": "date"},
        });
        // By n: two documents, none, one, one without x, one.
        let documents = [
            json!({"n": 0, "x": 4, "k": "a", "at": "2020-01-05"}),
            json!({"n": 0, "x": 2, "k": "b", "at": "2020-01-06"}),
            json!({"n": 2, "x": 9, "k": "a", "at": "2020-02-07"}),
            json!({"n": 3, "k": "b", "at": "2020-02-08"}),
            json!({"n": 4, "x": 1, "k": "b", "at": "2020-04-01"}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let histogram = json!({"field": "n", "interval": 1});
        let over = |path: &str| json!({"buckets_path": path});
        let zeros = |path: &str| json!({"buckets_path": path, "gap_policy": "insert_zeros"});
        let (sum, avg) = (json!({"sum": {"field": "x"}}), json!({"avg": {"field": "x"}}));
        let answer = aggregated(&shard, json!({
            "mean": {"avg_bucket": over("h>a")}, "mean0": {"avg_bucket": zeros("h>a.value")},
            "least": {"min_bucket": over("h>s")}, "most": {"max_bucket": over("h._count"), "meta": {"is": "max"}},
            "of_a": {"sum_bucket": over("h>f>s")}, "rises": {"stats_bucket": over("h>d")},
            "deep": {"sum_bucket": over("h>f>p")},
            "h": {"histogram": histogram, "aggs": {
                "c": {"cumulative_sum": over("a")}, "dd": {"derivative": over("d")},
                "d": {"derivative": over("s")}, "d0": {"derivative": zeros("s")}, "s": sum, "a": avg,
                "f": {"filter": {"term": {"k": "a"}}, "aggs": {
                    "s": sum, "t": {"terms": {"field": "k"}}, "p": {"max_bucket": over("t>_count")},
                }},
            }},
        }))
        .await;
        let column = |name: &str| -> Vec<Value> {
            let buckets = answer["h"]["buckets"].as_array().unwrap();
            buckets.iter().map(|bucket| bucket[name]["value"].clone()).collect()
        };
        assert_eq!(column("c"), [3.0, 3.0, 12.0, 12.0, 13.0]);
        assert_eq!(column("d"), [json!(null), json!(null), json!(null), json!(-9.0), json!(1.0)]);
        assert_eq!(column("d0"), [json!(null), json!(-6.0), json!(9.0), json!(-9.0), json!(1.0)]);
        let has = |bucket: usize, name: &str| answer["h"]["buckets"][bucket].get(name).is_some();
        assert_eq!(
            [has(0, "d"), has(1, "d"), has(1, "dd"), has(2, "dd")],
            [false, true, false, true]
        );
        assert_eq!(column("dd")[4], 10.0);
        assert_eq!(
            (&answer["mean"]["value"], &answer["mean0"]["value"]),
            (&json!(13.0 / 3.0), &json!(2.6))
        );
        assert_eq!(answer["least"], json!({"value": 0.0, "keys": ["3.0"]}));
        assert_eq!(answer["most"], json!({"meta": {"is": "max"}, "value": 2.0, "keys": ["0.0"]}));
        assert_eq!(
            (&answer["of_a"]["value"], &answer["deep"]["value"]),
            (&json!(13.0), &json!(2.0))
        );
        let rises = json!({"count": 2, "min": -9.0, "max": 1.0, "avg": -4.0, "sum": -8.0});
        assert_eq!(answer["rises"], rises);

        // Of buckets within buckets, and of those that are left.
        let within = |more: Value| {
            let mut aggs = json!({"m": {"max_bucket": over("h>s")}, "h": {"histogram": histogram, "aggs": {"s": sum}}});
            aggs.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"terms": {"field": "k"}, "aggs": aggs})
        };
        let sort = json!({"o": {"bucket_sort": {"sort": [{"m": "desc"}, "_key"], "size": 1}}});
        let answer = aggregated(
            &shard,
            json!({
                "t": within(json!({})), "mean": {"avg_bucket": over("t>m")},
                "one": within(sort), "mean_of_one": {"avg_bucket": over("one>m")},
            }),
        )
        .await;
        let keys = |of: &Value| -> Vec<Value> {
            of["buckets"].as_array().unwrap().iter().map(|bucket| bucket["key"].clone()).collect()
        };
        assert_eq!(
            (keys(&answer["t"]), keys(&answer["one"])),
            (vec![json!("b"), json!("a")], vec![json!("a")])
        );
        assert_eq!(answer["one"]["buckets"][0]["m"], json!({"value": 9.0, "keys": ["2.0"]}));
        assert_eq!(answer["one"]["sum_other_doc_count"], 0);
        assert_eq!(
            (&answer["mean"]["value"], &answer["mean_of_one"]["value"]),
            (&json!(5.5), &json!(9.0))
        );

        // Buckets with a gap are no longer there where they are sorted; keyed ones stay keyed.
        let sorted = |keyed: bool, sort: Value| {
            let histogram = json!({"field": "n", "interval": 1, "keyed": keyed});
            json!({"h": {"histogram": histogram, "aggs": {"a": avg, "o": {"bucket_sort": sort}}}})
        };
        let answer =
            aggregated(&shard, sorted(false, json!({"sort": [{"a": {"order": "desc"}}]}))).await;
        assert_eq!(keys(&answer["h"]), [2.0, 0.0, 4.0]);
        let by_count =
            json!({"sort": [{"_count": "desc"}, {"_key": "desc"}], "from": 1, "size": 2});
        let answer = aggregated(&shard, sorted(false, by_count.clone())).await;
        assert_eq!(keys(&answer["h"]), [4.0, 3.0]);
        let answer = aggregated(&shard, sorted(true, by_count)).await;
        let names: Vec<&String> = answer["h"]["buckets"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["3.0", "4.0"]);
        let answer = aggregated(&shard, sorted(false, json!({"from": 9}))).await;
        assert_eq!(answer["h"]["buckets"], json!([]));

        // Calendars, with a unit; and nothing at all.
        let answer = aggregated(
            &shard,
            json!({
                "m": {"date_histogram": {"field": "at", "calendar_interval": "month"}, "aggs": {
                    "d": {"derivative": {"buckets_path": "_count", "unit": "1d"}},
                }},
                "most": {"max_bucket": over("m>d")},
                "none": {"date_histogram": {"field": "none", "calendar_interval": "month"}},
                "least_of_none": {"min_bucket": over("none>_count")},
            }),
        )
        .await;
        let of_march = json!({"value": -2.0, "normalized_value": -2.0 / 29.0});
        assert_eq!(answer["m"]["buckets"][2]["d"], of_march);
        assert_eq!(answer["most"], json!({"value": 1.0, "keys": ["2020-04-01T00:00:00.000Z"]}));
        assert_eq!(answer["least_of_none"], json!({"value": null, "keys": []}));
    });
}
