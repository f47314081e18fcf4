//! What is made of the buckets of all shards: pipelines over them, and the best documents of each.

use policy::routing::shard_of;
use serde_json::{Value, json};
use world::Env;

use super::{ids, started};
use crate::common::{Cluster, refuses};

testbed::real_world!(
    pipelines_read_what_all_shards_found,
    the_best_documents_of_each_bucket,
    values_are_chosen_and_may_be_missing,
    shards_send_the_first_keys_that_are_shown,
);

async fn shards_send_the_first_keys_that_are_shown(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    c.map("a", (2, 0), json!({"properties": {"word": {"type": "keyword"}}})).await;
    let routing = |shard: u32| {
        (0..).map(|n| format!("r{n}")).find(|text| shard_of(text, 2) == shard).unwrap()
    };
    let of_shards = [(0, ["a", "b", "c"]), (1, ["a", "c", "c"])];
    for (shard, words) in of_shards {
        for (n, word) in words.iter().enumerate() {
            let path = format!("/a/_doc/{shard}{n}?routing={}&refresh=true", routing(shard));
            c.must("PUT", &path, json!({"word": word, "n": n})).await;
        }
    }
    let terms = async |more: Value| {
        let mut terms = json!({"field": "word", "size": 2, "order": {"_key": "asc"}});
        terms.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"size": 0, "aggs": {"x": {"terms": terms}}});
        let found = c.must("POST", "/a/_search", body).await["aggregations"]["x"].clone();
        let bucket = |of: &Value| (of["key"].clone(), of["doc_count"].as_u64().unwrap());
        let buckets: Vec<_> = found["buckets"].as_array().unwrap().iter().map(bucket).collect();
        assert_eq!(found["doc_count_error_upper_bound"], 0, "{found}");
        (buckets, found["sum_other_doc_count"].as_u64().unwrap())
    };
    let counts = |a: u64, c: u64| vec![(json!("a"), a), (json!("c"), c)];
    // The first shard sends a and b, the second a and c.
    assert_eq!(terms(json!({"min_doc_count": 2})).await, (counts(2, 2), 1));
    assert_eq!(terms(json!({"min_doc_count": 2, "shard_size": 3})).await, (counts(2, 3), 0));
    let (buckets, other) = terms(json!({})).await;
    assert_eq!((buckets, other), (vec![(json!("a"), 2), (json!("b"), 1)], 3));
}

async fn pipelines_read_what_all_shards_found(env: Env) {
    let c = started(&env, 2, (3, 0), 100).await;
    let over = |path: &str| json!({"buckets_path": path});
    let sum = json!({"sum": {"field": "n"}});
    let body = json!({"size": 0, "aggs": {
        "months": {"date_histogram": {"field": "at", "calendar_interval": "month"}, "aggs": {
            "sum": sum, "all": {"cumulative_sum": over("sum")},
            "rise": {"derivative": {"buckets_path": "sum", "unit": "day"}}, "curve": {"derivative": over("rise")},
        }},
        "best": {"max_bucket": over("months>sum")}, "mean": {"avg_bucket": over("months>_count")},
        "rises": {"stats_bucket": over("months>rise")},
        "words": {"terms": {"field": "word"}, "aggs": {
            "sum": sum, "second": {"bucket_sort": {"sort": [{"sum": {"order": "desc"}}], "from": 1, "size": 1}},
        }},
        "rest": {"sum_bucket": over("words>sum")},
    }});
    let aggs = c.must("POST", "/a/_search", body.clone()).await["aggregations"].clone();
    let months = aggs["months"]["buckets"].as_array().unwrap();
    let column = |name: &str| months.iter().map(|month| &month[name]["value"]).collect::<Vec<_>>();
    assert_eq!(column("sum"), [465.0, 1305.0, 2325.0, 855.0]);
    assert_eq!(column("all"), [465.0, 1770.0, 4095.0, 4950.0]);
    assert_eq!(column("rise")[1..], [840.0, 1020.0, -1470.0]);
    assert_eq!(months[1]["rise"]["normalized_value"], 840.0 / 31.0);
    assert_eq!((months[0].get("rise"), months[1].get("curve")), (None, None));
    assert_eq!(column("curve")[2..], [180.0, -2490.0]);
    assert_eq!(aggs["best"], json!({"value": 2325.0, "keys": ["2020-03-01T00:00:00.000Z"]}));
    assert_eq!(aggs["mean"], json!({"value": 25.0}));
    let rises = json!({"count": 3, "min": -1470.0, "max": 1020.0, "avg": 130.0, "sum": 390.0});
    assert_eq!(aggs["rises"], rises);
    let words = json!([{"key": "blue", "doc_count": 25, "sum": {"value": 1250.0}}]);
    assert_eq!((&aggs["words"]["buckets"], &aggs["rest"]["value"]), (&words, &json!(1250.0)));

    // Where no shard is asked there are none.
    assert_eq!(c.must("POST", "/none*/_search", body.clone()).await.get("aggregations"), None);
    let typed = c.must("POST", "/a/_search?typed_keys=true", body).await["aggregations"].clone();
    let names: Vec<&String> = typed.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "bucket_metric_value#best", "date_histogram#months", "simple_value#mean",
            "simple_value#rest", "stats_bucket#rises", "sterms#words",
        ]
    );
    let march = &typed["date_histogram#months"]["buckets"][2];
    assert_eq!(march["derivative#curve"]["value"], 180.0);
    assert_eq!(march["simple_value#all"]["value"], 4095.0);

    let wrong = json!({"aggs": {
        "words": {"terms": {"field": "word"}}, "mean": {"avg_bucket": over("words>price")},
    }});
    let said = refuses(c.ask("POST", "/a/_search", wrong).await, 400, "illegal_argument_exception");
    assert!(
        said.to_string().contains("No aggregation [price] found for path [words>price]"),
        "{said}"
    );
}

async fn the_best_documents_of_each_bucket(env: Env) {
    let c = started(&env, 2, (3, 0), 100).await;
    let search = async |body: Value| c.must("POST", "/a/_search", body).await;
    let body = json!({"size": 0, "query": {"range": {"n": {"gte": 10}}}, "aggs": {"words": {
        "terms": {"field": "word"},
        "aggs": {"top": {"top_hits": {"from": 1, "size": 2, "sort": [{"n": "desc"}], "_source": ["n"]}}},
    }}});
    let buckets = search(body).await["aggregations"]["words"]["buckets"].clone();
    for (at, word, total, best) in
        [(0, "red", 45, [96, 95]), (1, "blue", 23, [94, 90]), (2, "green", 22, [93, 89])]
    {
        let hits = &buckets[at]["top"]["hits"];
        assert_eq!(buckets[at]["key"], word);
        assert_eq!(hits["total"], json!({"value": total, "relation": "eq"}), "{word}");
        assert_eq!(hits["max_score"], Value::Null, "{word}");
        let hit = |n: u64| {
            let (id, source) = (n.to_string(), json!({"n": n}));
            json!({"_index": "a", "_id": id, "_score": null, "_source": source, "sort": [n]})
        };
        assert_eq!(hits["hits"], json!([hit(best[0]), hit(best[1])]), "{word}");
    }
    let path = "/a/_search?rest_total_hits_as_int=true";
    let as_int = c.must("POST", path, json!({"size": 0, "aggs": {"top": {"top_hits": {}}}})).await;
    assert_eq!(as_int["aggregations"]["top"]["hits"]["total"], 100);
    // By score: as the search itself finds them, where all is one bucket.
    let by_score = json!({"size": 3, "query": {"match": {"text": "red number 17"}}, "aggs": {
        "best": {"top_hits": {"sort": "_score"}},
        "odd": {"filters": {"filters": {"few": {"range": {"n": {"lt": 5}}}}, "other_bucket": true},
            "aggs": {"best": {"top_hits": {"size": 1, "_source": false}}}},
    }});
    let found = search(by_score).await;
    let best = &found["aggregations"]["best"];
    assert_eq!((ids(best), ids(best)[0]), (ids(&found), 17));
    assert_eq!(best["hits"]["total"], found["hits"]["total"]);
    assert_eq!(best["hits"]["hits"][0]["_source"], found["hits"]["hits"][0]["_source"]);
    // Words may be added up in another order.
    let near = |score: &Value| {
        let (score, whole) =
            (score.as_f64().unwrap(), found["hits"]["max_score"].as_f64().unwrap());
        assert!((score - whole).abs() < 1e-5 * whole, "{score} {whole}");
    };
    near(&best["hits"]["max_score"]);
    near(&best["hits"]["hits"][0]["_score"]);
    let odd = &found["aggregations"]["odd"]["buckets"];
    let of_other = odd["_other_"]["best"]["hits"]["hits"].as_array().unwrap();
    assert_eq!((of_other.len(), &of_other[0]["_id"]), (1, &json!("17")));
    assert_eq!(of_other[0].get("_source"), None);
    near(&of_other[0]["_score"]);
    assert_eq!(odd["few"]["best"]["hits"]["total"]["value"], 5);
    // Within one another, with what columns hold; and buckets with nothing in them.
    let nested = json!({"size": 0, "aggs": {
        "months": {"date_histogram": {"field": "at", "calendar_interval": "month"}, "aggs": {
            "words": {"terms": {"field": "word"}, "aggs": {"first": {"top_hits": {
                "size": 1, "sort": [{"at": "asc"}], "docvalue_fields": ["at"], "_source": false,
            }}}},
        }},
        "halves": {"range": {"field": "o.x", "ranges": [{"to": 5}, {"from": 5, "to": 1000}, {"from": 1000}]},
            "aggs": {"last": {"top_hits": {"size": 1, "sort": [{"n": "desc"}]}}}},
    }});
    let aggs = search(nested).await["aggregations"].clone();
    let february = &aggs["months"]["buckets"][1]["words"]["buckets"][0];
    let first = &february["first"]["hits"]["hits"][0];
    assert_eq!((&february["key"], &first["_id"]), (&json!("red"), &json!("31")));
    assert_eq!(first["fields"], json!({"at": ["2020-02-01T00:00:00.000Z"]}));
    let last = |at: usize| &aggs["halves"]["buckets"][at]["last"]["hits"];
    assert_eq!(last(0)["hits"][0]["_id"], "9");
    assert_eq!(last(1)["hits"][0]["_id"], "99");
    let none = json!({"total": {"value": 0, "relation": "eq"}, "max_score": null, "hits": []});
    assert_eq!(*last(2), none);
}

async fn values_are_chosen_and_may_be_missing(env: Env) {
    let c = started(&env, 2, (3, 0), 20).await;
    c.must("PUT", "/a/_doc/none?refresh", json!({"n": 20})).await;
    let aggregated = async |agg: Value| {
        let body = json!({"size": 0, "aggs": {"x": agg}});
        c.must("POST", "/a/_search", body).await["aggregations"]["x"].clone()
    };
    let keys = |found: &Value| -> Vec<Value> {
        found["buckets"].as_array().unwrap().iter().map(|bucket| bucket["key"].clone()).collect()
    };
    for (terms, expected) in [
        (json!({"field": "word", "include": "r.*|blu."}), json!(["red", "blue"])),
        (json!({"field": "word", "include": ["green", "none"]}), json!(["green"])),
        (
            json!({"field": "word", "include": ".*e.*", "exclude": ["red"]}),
            json!(["blue", "green"]),
        ),
        (json!({"field": "word", "exclude": "[rb].*"}), json!(["green"])),
        (json!({"field": "n", "include": [3, "7", 99]}), json!([3, 7])),
        (
            json!({"field": "n", "exclude": [1, 2], "include": [1, 4], "order": {"_key": "desc"}}),
            json!([4]),
        ),
        (json!({"field": "o.x", "include": [0.5, 2]}), json!([0.5, 2.0])),
        (json!({"field": "at", "include": ["2020-01-03"]}), json!([1_578_009_600_000u64])),
        (json!({"field": "nowhere", "include": ["a"]}), json!([])),
    ] {
        let found = aggregated(json!({ "terms": terms })).await;
        assert_eq!(json!(keys(&found)), expected, "{terms}");
        assert_eq!(found["sum_other_doc_count"], 0, "{terms}");
    }
    for terms in [
        json!({"field": "n", "include": "1.*"}),
        json!({"field": "n", "include": ["many"]}),
        json!({"field": "word", "include": "a@"}),
    ] {
        let body = json!({"aggs": {"x": {"terms": terms}}});
        assert_eq!(c.ask("POST", "/a/_search", body).await.0, 400, "{terms}");
    }

    let page = async |order: &str, after: Option<Value>| {
        let word =
            json!({"word": {"terms": {"field": "word", "order": order, "missing_bucket": true}}});
        let none = json!({"none": {"terms": {"field": "nowhere", "missing_bucket": true}}});
        let mut of = json!({"size": 2, "sources": [word, none]});
        of.as_object_mut().unwrap().extend(after.map(|after| ("after".to_owned(), after)));
        aggregated(json!({"composite": of})).await
    };
    for (order, expected) in [
        ("asc", [Value::Null, json!("blue"), json!("green"), json!("red")]),
        ("desc", [json!("red"), json!("green"), json!("blue"), Value::Null]),
    ] {
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let found = page(order, after).await;
            seen.extend(keys(&found));
            after = found.get("after_key").cloned();
            if after.is_none() {
                break;
            }
        }
        let tuples = expected.map(|word| json!({"word": word, "none": null}));
        assert_eq!(seen, tuples, "{order}");
    }
    let widths =
        json!({"w": {"histogram": {"field": "o.y", "interval": 2, "missing_bucket": true}}});
    let found = aggregated(json!({"composite": {"sources": [widths]}})).await;
    assert_eq!(keys(&found), [json!({"w": null}), json!({"w": 0.0})]);
}
