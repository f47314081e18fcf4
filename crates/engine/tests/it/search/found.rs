//! What is found: query, then fetch, over the shards of real nodes.

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use super::{ALL, WORDS, ids, started};
use crate::common::{Cluster, eventually, raw, settled};

testbed::real_world!(
    finds_sorts_and_aggregates_over_shards,
    what_is_wrong_is_said,
    many_searches_in_one_request,
    writes_become_visible_by_time,
    a_field_is_found_in_all_its_ways_or_it_is_said,
    answers_have_the_shape_that_typed_clients_ask_for,
    a_field_may_be_another_or_none_in_another_index,
    values_of_a_keyword_are_listed,
);

/// Java's clients ask for names with types, elasticdump for stored fields, of which there are none.
async fn answers_have_the_shape_that_typed_clients_ask_for(env: Env) {
    let c = started(&env, 2, (2, 0), 8).await;
    let body = json!({"size": 0, "aggs": {
        "words": {"terms": {"field": "word"}, "aggs": {"mean": {"avg": {"field": "n"}}}},
        "days": {"date_histogram": {"field": "at", "calendar_interval": "day"}},
        "none": {"terms": {"field": "nowhere"}},
    }});
    let path = "/a/_search?typed_keys=true";
    let typed = c.must("POST", path, body.clone()).await["aggregations"].clone();
    let plain = c.must("POST", "/a/_search", body.clone()).await["aggregations"].clone();
    let names: Vec<&String> = typed.as_object().unwrap().keys().collect();
    assert_eq!(names, ["date_histogram#days", "sterms#none", "sterms#words"]);
    assert_eq!(typed["date_histogram#days"], plain["days"]);
    let bucket = &typed["sterms#words"]["buckets"][0];
    assert_eq!((&bucket["key"], &bucket["doc_count"]), (&json!("red"), &json!(4)));
    assert_eq!(bucket["avg#mean"], plain["words"]["buckets"][0]["mean"]);
    c.must("PUT", "/b/_doc/1?refresh=true", json!({"n": 1})).await;
    let by_index = json!({"size": 0, "aggs": {"i": {"terms": {"field": "_index"}}}});
    let by_index = c.must("POST", "/a,b/_search?typed_keys=true", by_index).await;
    let each = json!([{"key": "a", "doc_count": 8}, {"key": "b", "doc_count": 1}]);
    assert_eq!(by_index["aggregations"]["sterms#i"]["buckets"], each, "{by_index}");
    let lines = bytes::Bytes::from(format!("{{\"index\":\"a\"}}\n{body}\n"));
    let many = crate::common::raw(c.any(), "POST", "/_msearch?typed_keys=true", lines).await.1;
    assert_eq!(many["responses"][0]["aggregations"], typed);

    for (body, shown) in [
        (json!({"stored_fields": ["*"], "_source": true}), true),
        (json!({"_source": true, "stored_fields": "*"}), true),
        (json!({"stored_fields": ["*"]}), false),
        (json!({"stored_fields": "_none_"}), false),
    ] {
        let found = c.must("POST", "/a/_search", body.clone()).await;
        assert_eq!(found["hits"]["hits"][0].get("_source").is_some(), shown, "{body}");
    }
    c.refuses(400, "_none_ or *", "POST", "/a/_search", json!({"stored_fields": ["n"]})).await;
}

async fn finds_sorts_and_aggregates_over_shards(env: Env) {
    let c = started(&env, 3, (5, 1), 200).await;
    let search = async |body: Value| c.must("POST", "/a/_search", body).await;
    // So many of each shard, which nodes are told.
    for (most, count, early) in
        [(3, 15, json!(true)), (1000, 200, json!(false)), (0, 200, Value::Null)]
    {
        let in_path =
            c.answers(200, "GET", &format!("/a/_search?terminate_after={most}"), Value::Null).await;
        for found in [in_path, search(json!({"terminate_after": most})).await] {
            assert_eq!(found["hits"]["total"], json!({"value": count, "relation": "eq"}), "{most}");
            assert_eq!(found["terminated_early"], early, "{most}");
        }
    }
    let filtered = json!({"terminate_after": 1, "min_score": 1});
    c.refuses(400, "into the query", "POST", "/a/_search", filtered).await;
    let found = search(json!({"query": {"range": {"n": {"gte": 50}}}, "sort": [{"n": "desc"}], "from": 3, "size": 4, "_source": ["o.x", "wo*"]})).await;
    assert_eq!(ids(&found), [196, 195, 194, 193]);
    let first = &found["hits"]["hits"][0];
    assert_eq!(first["_source"], json!({"o": {"x": 98.0}, "word": "red"}));
    assert_eq!(first["sort"], json!([196]));
    assert_eq!(first["_score"], Value::Null);
    assert_eq!(first["_index"], "a");
    assert_eq!(found["hits"]["total"], json!({"value": 150, "relation": "eq"}));
    // Pages behind one another.
    let mut after = Value::Null;
    let mut pages = Vec::new();
    loop {
        let mut body = json!({"size": 7, "sort": [{"word": "asc"}, "n"], "_source": false});
        if !after.is_null() {
            body["search_after"] = after;
        }
        let found = search(body).await;
        assert_eq!(found["hits"]["hits"].get(0).and_then(|hit| hit.get("_source")), None);
        let Some(last) = found["hits"]["hits"].as_array().unwrap().last() else { break };
        after = last["sort"].clone();
        pages.extend(ids(&found));
    }
    let mut expected: Vec<u64> = (0..200).collect();
    expected.sort_by_key(|n| (WORDS[*n as usize % 4], *n));
    assert_eq!(pages, expected);
    // Scores: a rare word beats common ones.
    let found = search(json!({"query": {"match": {"text": "red number 17"}}, "size": 200, "version": true, "seq_no_primary_term": true})).await;
    assert_eq!(ids(&found).len(), 200);
    assert_eq!(ids(&found)[0], 17);
    let scores: Vec<f64> = found["hits"]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["_score"].as_f64().unwrap())
        .collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(found["hits"]["max_score"], found["hits"]["hits"][0]["_score"]);
    assert_eq!(found["hits"]["hits"][0]["_version"], 1);
    assert!(found["hits"]["hits"][0]["_seq_no"].is_u64());
    let found = search(json!({"size": 0, "query": {"bool": {"must_not": {"term": {"word": "blue"}}}}, "aggs": {
        "words": {"terms": {"field": "word"}, "aggs": {"n": {"stats": {"field": "n"}}}},
        "months": {"date_histogram": {"field": "at", "calendar_interval": "month", "format": "yyyy-MM"}},
        "p": {"percentiles": {"field": "n", "percents": [50]}},
        "distinct": {"cardinality": {"field": "n"}, "meta": {"unit": "documents"}},
        "placed": {"value_count": {"field": "place"}},
        "near": {"geo_distance": {
            "field": "place", "origin": "0, 0", "unit": "km", "ranges": [{"to": 60}, {"from": 60}],
        }},
        "cells": {"geohash_grid": {"field": "place", "precision": 1}, "aggs": {
            "middle": {"geo_centroid": {"field": "place"}},
        }},
    }})).await;
    let aggs = &found["aggregations"];
    let red = &aggs["words"]["buckets"][0];
    assert_eq!((&red["key"], &red["doc_count"]), (&json!("red"), &json!(100)));
    assert_eq!((&red["n"]["count"], &red["n"]["max"]), (&json!(100), &json!(199.0)));
    assert_eq!(aggs["words"]["sum_other_doc_count"], 0);
    assert_eq!(
        aggs["months"]["buckets"][1],
        json!({"key_as_string": "2020-02", "key": 1_580_515_200_000u64, "doc_count": 22})
    );
    assert_eq!(aggs["distinct"], json!({"value": 150, "meta": {"unit": "documents"}}));
    assert_eq!(aggs["placed"], json!({"value": 150}));
    let within = json!({"key": "*-60.0", "from": 0.0, "to": 60.0, "doc_count": 5});
    let beyond = json!({"key": "60.0-*", "from": 60.0, "doc_count": 145});
    assert_eq!(aggs["near"]["buckets"], json!([within, beyond]));
    let cell = &aggs["cells"]["buckets"][0];
    assert_eq!((&cell["key"], &cell["middle"]["count"]), (&json!("s"), &json!(150)));
    let near = search(
        json!({"query": {"geo_distance": {"distance": "60km", "place": [0.0, 0.0]}}, "sort": "n"}),
    )
    .await;
    assert_eq!(ids(&near), [0, 1, 2, 3, 4, 5]);
    let counted = c.must("POST", "/a/_count", json!({"query": {"term": {"word": "green"}}})).await;
    assert_eq!(counted["count"], 50);
    // Those of one shard, where that is asked for.
    let of_first = c.get("/a/_count?preference=_shards:0").await;
    let of_first = of_first["count"].as_u64().unwrap();
    assert!((1..200).contains(&of_first), "{of_first}");
    let one = c.get("/a/_search?sort=n:desc&size=1&_source_includes=n").await;
    assert_eq!(one["hits"]["hits"][0]["_source"], json!({"n": 199}));
    settled(&c).await;
}

async fn a_field_may_be_another_or_none_in_another_index(env: Env) {
    let c = started(&env, 1, (2, 0), 3).await;
    let keyword = json!({"type": "keyword"});
    let body = json!({"mappings": {"properties": {"at": keyword, "word": keyword}}});
    c.must("PUT", "/b", body).await;
    c.must("PUT", "/b/_doc/9?refresh", json!({"at": "soon", "word": "red"})).await;
    let search = async |body: Value| c.must("POST", "/a,b/_search", body).await;

    let both = json!({"multi_terms": {"terms": [{"field": "at"}, {"field": "word"}]}});
    let found = search(json!({"size": 0, "aggs": {"both": both}})).await;
    let buckets = found["aggregations"]["both"]["buckets"].as_array().unwrap();
    let keys: Vec<&Value> = buckets.iter().map(|bucket| &bucket["key"]).collect();
    for key in [json!(["soon", "red"]), json!(["2020-01-01T00:00:00.000Z", "red"])] {
        assert!(keys.contains(&&key), "{found}");
    }

    // What nothing tells apart comes by the numbers of shards, and of one number by the names of indices.
    let of_shard =
        async |shard: u32| ids(&c.get(&format!("/a/_search?preference=_shards:{shard}")).await);
    let (first, second) = (of_shard(0).await, of_shard(1).await);
    assert!(!first.is_empty() && !second.is_empty());
    let found = search(json!({"aggs": {"t": {"top_hits": {"size": 4}}}})).await;
    for found in [&found, &found["aggregations"]["t"]] {
        assert_eq!(ids(found), [&first[..], &[9], &second].concat(), "{found}");
    }

    // What is sorted by a field that an index does not have has the values of one that documents do not have.
    for (options, last, order) in [
        (json!({"unmapped_type": "long"}), json!([i64::MAX]), [0_u64, 1, 2, 9]),
        (json!({"unmapped_type": "long", "missing": "_first"}), json!([i64::MIN]), [9, 0, 1, 2]),
        (json!({"unmapped_type": "long", "missing": -1}), json!([-1]), [9, 0, 1, 2]),
    ] {
        let found = search(json!({"sort": [{"n": options}]})).await;
        assert_eq!(ids(&found), order, "{options}: {found}");
        let hits = found["hits"]["hits"].as_array().unwrap();
        let other = hits.iter().find(|hit| hit["_index"] == "b").unwrap();
        assert_eq!(other["sort"], last, "{options}");
    }
    // Those of the other index come behind any that there is.
    let after =
        json!({"sort": [{"text.raw": {"unmapped_type": "keyword"}}], "search_after": ["x"]});
    assert_eq!(search(after).await["hits"]["hits"].as_array().unwrap().len(), 4);
    let wrong = json!({"sort": [{"none": {"unmapped_type": "text"}}]});
    c.refuses(400, "keyword field instead", "POST", "/a/_search", wrong).await;

    // Nobody is told that nothing matches, however lenient about values.
    c.refuses(400, "cannot be searched here", "GET", "/a/_count?q=_index:a", Value::Null).await;
    assert_eq!(c.get("/a/_count?q=_id:1").await["count"], 1);
}

async fn values_of_a_keyword_are_listed(env: Env) {
    let c = started(&env, 2, (3, 0), 20).await;
    for (body, terms) in [
        (json!({"field": "word"}), json!(["blue", "green", "red"])),
        (json!({"field": "word", "string": "gr"}), json!(["green"])),
        (json!({"field": "word", "string": "h"}), json!([])),
        (json!({"field": "word", "size": 2}), json!(["blue", "green"])),
        (json!({"field": "none"}), json!([])),
    ] {
        let said = c.must("POST", "/a/_terms_enum", body.clone()).await;
        assert_eq!((&said["terms"], &said["complete"]), (&terms, &json!(true)), "{body}: {said}");
    }
    for (body, why) in [
        (json!({"field": "n"}), "of type [long]"),
        (json!({"field": "word", "case_insensitive": true}), "case_insensitive"),
        (json!({"field": "word", "size": 1001}), "from 1 to 1000"),
        (json!({"string": "a"}), "field cannot be null"),
    ] {
        c.refuses(400, why, "POST", "/a/_terms_enum", body).await;
    }
}

async fn what_is_wrong_is_said(env: Env) {
    let c = started(&env, 1, (2, 0), 20).await;
    let narrow = json!({"histogram": {"field": "n", "interval": 0.0001}});
    let of_word = json!({"geo_distance": {"distance": "1km", "word": [0, 0]}});
    for (body, kind, part) in [
        (json!({"query": {"knn": {"a": "b"}}}), "parsing", "the query [knn] is not supported"),
        (json!({"from": 9_995, "size": 10}), "illegal_argument", "index.max_result_window"),
        (json!({"query": {"term": {"n": "many"}}}), "query_shard", "many"),
        (json!({"query": {"prefix": {"n": "1"}}}), "query_shard", "prefix"),
        (json!({"sort": "nothing"}), "query_shard", "No mapping found for [nothing]"),
        (json!({"sort": "text"}), "illegal_argument", "keyword field instead"),
        (json!({"aggs": {"a": {"max": {"field": "word"}}}}), "illegal_argument", "[word]"),
        (json!({"size": 0, "aggs": {"a": narrow}}), "too_many_buckets", "search.max_buckets"),
        (json!({"query": of_word}), "query_shard", "[keyword]"),
    ] {
        let answer = c.answers(400, "POST", "/a/_search", body.clone()).await;
        let cause = &answer["error"]["root_cause"][0];
        assert_eq!(cause["type"], format!("{kind}_exception"), "{body}: {answer}");
        assert!(cause["reason"].as_str().unwrap().contains(part), "{body}: {answer}");
    }
    let (_, answer) = c.ask("POST", "/a/_search", json!({"query": {"knn": {"a": "b"}}})).await;
    assert_eq!((&answer["error"]["line"], &answer["error"]["col"]), (&json!(1), &json!(11)));
    let empty = c.must("POST", "/a/_search", json!({"query": {"term": {"unknown": 1}}, "aggs": {"a": {"max": {"field": "unknown"}}}})).await;
    assert_eq!(empty["hits"]["total"]["value"], 0);
    assert_eq!(empty["aggregations"]["a"]["value"], Value::Null);
    for path in [
        "/a/_search?terminate_after=-1",
        "/a/_search?scroll=1m&terminate_after=1",
        "/a/_search?scroll=1m&from=1",
        "/a/_search?search_type=dfs_query_then_fetch",
        "/a/_search?preference=_primary",
        "/a/_count?terminate_after=1",
        "/a/_search?sise=1",
    ] {
        assert_eq!(c.ask("GET", path, Value::Null).await.0, 400, "{path}");
    }
    settled(&c).await;
}

async fn many_searches_in_one_request(env: Env) {
    let c = started(&env, 2, (2, 0), 20).await;
    let body = "{}\n{\"size\":1,\"sort\":\"n\"}\n{\"index\":\"gone\"}\n{}\n{\"index\":[\"a\"],\"preference\":\"x\"}\n{\"sort\":\"none_such\"}\n";
    let (status, answer) = raw(c.any(), "POST", "/a/_msearch", Bytes::from(body)).await;
    assert_eq!(status, 200, "{answer}");
    let responses = answer["responses"].as_array().unwrap();
    assert_eq!(responses.len(), 3);
    assert_eq!(responses[0]["status"], 200);
    assert_eq!(responses[0]["hits"]["hits"][0]["_id"], "0");
    assert_eq!(responses[1]["status"], 404);
    assert_eq!(responses[1]["error"]["type"], "index_not_found_exception");
    assert_eq!(responses[2]["status"], 400);
    assert_eq!(responses[2]["error"]["type"], "search_phase_execution_exception");
    // One that cannot be read fails them all.
    for bad in [
        "{}\n{\"query\":{\"mtch\":{}}}\n",
        "{\"indx\":\"a\"}\n{}\n",
        "{\"index\":\"a\",\"index\":\"gone\"}\n{}\n",
        "{}\n{\"size\":1\n",
        "{\n{}\n",
    ] {
        let body = Bytes::from(format!("{{}}\n{{}}\n{bad}"));
        let (status, answer) = raw(c.any(), "POST", "/a/_msearch", body).await;
        let error = &answer["error"]["type"];
        assert!(status == 400 && error.is_string(), "{bad}: {answer}");
    }
    // A line about a search stands above the path, and says nothing of the others.
    let body = "{\"index\":\"a,gone\"}\n{\"size\":0}\n{\"index\":\"a,gone\",\"ignore_unavailable\":false}\n{}\n\
                {\"index\":\"a*\",\"expandWildcards\":\"none\"}\n{}\n";
    let path =
        "/a/_msearch?ignore_unavailable=true&allow_no_indices=false&rest_total_hits_as_int=true";
    let (_, answer) = raw(c.any(), "POST", path, Bytes::from(body)).await;
    let responses = answer["responses"].as_array().unwrap();
    let status: Vec<&Value> = responses.iter().map(|response| &response["status"]).collect();
    assert_eq!(status, [200, 404, 404], "{answer}");
    assert_eq!(responses[0]["hits"]["total"], 20);
    // Each counts as its own body says; as a bare number exactly, not at all, or it is refused.
    let bodies = [json!(true), json!(false), json!(i32::MAX), json!(7)]
        .map(|counted| format!("{{}}\n{}\n", json!({"size": 0, "track_total_hits": counted})));
    let totals = async |path: &str, bodies: &[String]| {
        let (_, answer) = raw(c.any(), "POST", path, Bytes::from(bodies.concat())).await;
        let responses = answer["responses"].as_array().unwrap();
        responses.iter().map(|response| response["hits"]["total"].clone()).collect::<Vec<_>>()
    };
    let (all, few) =
        (json!({"value": 20, "relation": "eq"}), json!({"value": 7, "relation": "gte"}));
    assert_eq!(totals("/a/_msearch", &bodies).await, [all.clone(), Value::Null, all, few]);
    let path = "/a/_msearch?rest_total_hits_as_int=true";
    assert_eq!(totals(path, &bodies[..3]).await, [json!(20), json!(-1), json!(20)]);
    let (status, said) = raw(c.any(), "POST", path, Bytes::from(bodies.concat())).await;
    let said = said["error"]["reason"].as_str().unwrap_or_default();
    assert!(status == 400 && said.ends_with("not accurate, got 7"), "{said}");
    for bad in ["", "{}", "{}\n", "{}\n{}", "{}\n{}\n{}\n", "{\"indx\":\"a\"}\n"] {
        let (status, _) = raw(c.any(), "POST", "/a/_msearch", Bytes::from(bad)).await;
        assert_eq!(status, 400, "{bad}");
    }
}

async fn writes_become_visible_by_time(env: Env) {
    let c = started(&env, 1, (1, 0), 5).await;
    let count = async || c.get(ALL).await["hits"]["total"]["value"].as_u64().unwrap();
    assert_eq!(count().await, 5);
    c.must("PUT", "/a/_doc/new", json!({"n": 1})).await;
    eventually(&env, "the write is found", async || count().await == 6).await;
}

/// Multi-fields, fields that are not indexed, and fields without columns: right or refused, the same after a
/// restart.
async fn a_field_is_found_in_all_its_ways_or_it_is_said(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    let properties = json!({
        "title": {"type": "text", "fields": {
            "raw": {"type": "keyword", "ignore_above": 20}, "stems": {"type": "text", "analyzer": "english"},
        }},
        "shown": {"type": "keyword", "index": false},
        "absent": {"type": "keyword", "index": false, "doc_values": false},
        "bare": {"type": "long", "doc_values": false, "ignore_malformed": true},
    });
    c.map("a", (2, 1), json!({"properties": properties})).await;
    for n in 0..20 {
        let bare = if n % 2 == 0 { json!(n) } else { json!("no number") };
        let title = format!("Title Number{}", n % 4);
        let source = json!({"title": title, "shown": "s", "absent": "s", "bare": bare});
        c.must("PUT", &format!("/a/_doc/{n}"), source).await;
    }
    // One more way, after there are documents: those that come later have it, and what a replay of the log brings. A
    // replica that is not there yet would replay them all.
    c.green("a").await;
    c.post("/a/_flush").await;
    let later = json!({"properties": {"title": {"type": "text", "fields": {
        "later": {"type": "keyword"},
        "as_they_are": {"type": "text", "analyzer": "english", "search_analyzer": "standard"},
    }}}});
    c.must("PUT", "/a/_mapping", later).await;
    c.must("PUT", "/a/_doc/20", json!({"title": "one that is longer than twenty"})).await;
    c.green("a").await;
    for when in ["as it was written", "after a restart"] {
        c.post("/a/_refresh").await;
        let count = async |query: Value| {
            let body = json!({"size": 0, "query": query});
            c.must("POST", "/a/_search", body).await["hits"]["total"]["value"].as_u64().unwrap()
        };
        assert_eq!(count(json!({"match": {"title": "number3"}})).await, 5, "{when}");
        assert_eq!(count(json!({"term": {"title.raw": "Title Number3"}})).await, 5, "{when}");
        assert_eq!(count(json!({"term": {"title.raw": "title"}})).await, 0, "{when}");
        // Stop words are not there, and leave their places in a phrase.
        assert_eq!(count(json!({"match": {"title.stems": "the titles"}})).await, 20, "{when}");
        assert_eq!(count(json!({"match": {"title.stems": "that is"}})).await, 0, "{when}");
        for (phrase, found) in [("one longer", 0), ("one of the longer", 1)] {
            let query = json!({"match_phrase": {"title.stems": phrase}});
            assert_eq!(count(query).await, found, "{phrase} {when}");
        }
        for (word, found) in [("twenty", 0), ("twenti", 1)] {
            let query = json!({"match": {"title.as_they_are": word}});
            assert_eq!(count(query).await, found, "{word} {when}");
        }
        assert_eq!(count(json!({"exists": {"field": "title"}})).await, 21, "{when}");
        assert_eq!(count(json!({"exists": {"field": "title.raw"}})).await, 20, "{when}");
        assert_eq!(count(json!({"exists": {"field": "title.later"}})).await, 1, "{when}");
        assert_eq!(count(json!({"range": {"bare": {"gte": 0}}})).await, 10, "{when}");
        for by_column in [
            json!({"term": {"shown": "s"}}),
            json!({"query_string": {"query": "s"}}),
            json!({"multi_match": {"query": "s", "fields": ["*"], "lenient": true}}),
        ] {
            let hits =
                c.must("POST", "/a/_search", json!({ "query": by_column })).await["hits"].clone();
            assert_eq!(hits["total"]["value"], 20, "{by_column} {when}");
            assert_eq!(hits["max_score"], 1.0, "{by_column} {when}");
        }
        let body = json!({"size": 0, "aggs": {
            "raw": {"terms": {"field": "title.raw"}}, "shown": {"terms": {"field": "shown"}},
        }});
        let aggs = c.must("POST", "/a/_search", body).await["aggregations"].clone();
        assert_eq!(aggs["raw"]["buckets"].as_array().unwrap().len(), 4, "{when}");
        let shown = json!([{"key": "s", "doc_count": 20}]);
        assert_eq!(aggs["shown"]["buckets"], shown, "{when}");
        for (body, why) in [
            (json!({"query": {"term": {"absent": "s"}}}), "Cannot search on field [absent]"),
            (json!({"sort": ["absent"]}), "fielddata on [absent]"),
            (json!({"aggs": {"x": {"max": {"field": "bare"}}}}), "fielddata on [bare]"),
        ] {
            let (status, said) = c.ask("POST", "/a/_search", body).await;
            assert!(status == 400 && said.to_string().contains(why), "{when}: {said}");
        }
        if when == "as it was written" {
            c.stop_all().await;
            c.start_all().await;
            c.green("a").await;
        }
    }
    for (field, why) in [
        (json!({"type": "text", "analyzer": "x"}), "standard"),
        (json!({"type": "text", "similarity": "boolean"}), "similarity"),
        (json!({"type": "long", "null_value": "one"}), "null_value"),
    ] {
        c.refuses(400, why, "PUT", "/a/_mapping", json!({"properties": {"t": field}})).await;
    }
    for what in ["hot_threads", "usage"] {
        c.refuses(400, "is not supported", "GET", &format!("/_nodes/{what}"), Value::Null).await;
    }
}
