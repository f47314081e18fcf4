//! Fragments of the texts of hits, in one shard, which answers at once, and in several, which are asked again.

use bytes::Bytes;
use serde_json::{Value, json};
use world::Env;

use crate::common::{Cluster, raw, settled};

testbed::real_world!(
    words_that_were_found_are_tagged,
    fields_are_named_by_paths_and_patterns,
    all_ways_to_hits_have_the_same_fragments,
    what_has_no_fragments_is_said,
);

async fn filled(c: &Cluster, shards: u32) {
    let english = json!({"type": "text", "analyzer": "english"});
    let properties = json!({
        "title": {"type": "text", "fields": {"english": english, "raw": {"type": "keyword"}}},
        "body": {"type": "text"}, "tag": {"type": "keyword"}, "group": {"type": "keyword"}, "n": {"type": "long"},
        "o": {"properties": {"note": {"type": "text"}}},
    });
    c.map("a", (shards, 0), json!({"properties": properties})).await;
    let documents = [
        json!({"title": "Quick brown foxes", "body": "The quick fox ran. It was late.", "tag": "red", "n": 1,
            "group": "x", "o": {"note": "a fox"}}),
        json!({"title": "The lazy dog", "body": ["A dog slept.", "No fox was near the dog, but a quick cat."],
            "tag": ["blue", "red"], "group": "x", "o": [{"note": "dog one"}, {"note": "cat"}]}),
        json!({"title": "Nothing", "body": "brown fox, quick; quick fox", "group": "y", "o.note": "foxes"}),
        json!({"title": "Cats", "n": 4}),
    ];
    for (id, document) in documents.into_iter().enumerate() {
        c.must("PUT", &format!("/a/_doc/{id}?refresh"), document).await;
    }
}

/// The fragments of each hit, by its id; null where it has none.
fn fragments(found: &Value) -> Value {
    let hits = found["hits"]["hits"].as_array().unwrap();
    let of = |hit: &Value| (hit["_id"].as_str().unwrap().to_owned(), hit["highlight"].clone());
    Value::Object(hits.iter().map(of).collect())
}

/// Asks for each query with its fields, in one shard and in three.
async fn each(env: &Env, cases: &[(Value, Value, Value)]) {
    let c = Cluster::start(env, "c", 2).await;
    for shards in [1, 3] {
        filled(&c, shards).await;
        for (query, highlight, expected) in cases {
            let body = json!({"query": query, "highlight": highlight});
            let found = c.must("POST", "/a/_search", body).await;
            assert_eq!(found["_shards"]["failed"], 0, "{query}: {found}");
            assert_eq!(fragments(&found), *expected, "{query} {highlight}, {shards} shards");
        }
        c.delete("/a").await;
    }
    settled(&c).await;
    c.stop().await;
}

async fn words_that_were_found_are_tagged(env: Env) {
    let body = json!({"fields": {"body": {}}});
    let several = json!({"fields": {"body": {}, "title": {}, "tag": {}}});
    let of_bool = json!({"bool": {
        "must": {"match": {"body": "fox"}}, "must_not": {"match": {"body": "dog"}},
        "should": {"prefix": {"title": "qui"}}, "filter": {"term": {"tag": "red"}},
    }});
    let wrapped = json!({"dis_max": {"queries": [
        {"constant_score": {"filter": {"match": {"body": "late"}}}},
        {"function_score": {"query": {"wildcard": {"body": "sl?pt"}}, "weight": 2}},
    ]}});
    let patterns = json!({"bool": {"should": [
        {"fuzzy": {"body": {"value": "quack", "fuzziness": 1}}}, {"regexp": {"title": "nothin."}},
        {"terms": {"tag": ["blue"]}}, {"range": {"tag": {"gte": "re", "lt": "rf"}}},
    ]}});
    each(&env, &[
        (json!({"match": {"body": "fox"}}), body.clone(), json!({
            "0": {"body": ["The quick <em>fox</em> ran. It was late."]},
            "1": {"body": ["No <em>fox</em> was near the dog, but a quick cat."]},
            "2": {"body": ["brown <em>fox</em>, quick; quick <em>fox</em>"]},
        })),
        (json!({"match_phrase": {"body": "quick fox"}}), body.clone(), json!({
            "0": {"body": ["The <em>quick</em> <em>fox</em> ran. It was late."]},
            "2": {"body": ["brown fox, quick; <em>quick</em> <em>fox</em>"]},
        })),
        (of_bool, several.clone(), json!({"0": {
            "body": ["The quick <em>fox</em> ran. It was late."], "tag": ["<em>red</em>"],
            "title": ["<em>Quick</em> brown foxes"],
        }})),
        (wrapped, body.clone(), json!({
            "0": {"body": ["It was <em>late</em>."]},
            "1": {"body": ["A dog <em>slept</em>."]},
        })),
        (patterns, several.clone(), json!({
            "0": {"body": ["The <em>quick</em> fox ran. It was late."], "tag": ["<em>red</em>"]},
            "1": {
                "body": ["No fox was near the dog, but a <em>quick</em> cat."],
                "tag": ["<em>blue</em>", "<em>red</em>"],
            },
            "2": {"body": ["brown fox, <em>quick</em>; <em>quick</em> fox"], "title": ["<em>Nothing</em>"]},
        })),
        (json!({"query_string": {"query": "body:late OR lazy"}}), json!({"fields": {"*": {}}}), json!({
            "0": {"body": ["It was <em>late</em>."]},
            "1": {"title": ["The <em>lazy</em> dog"], "title.english": ["The <em>lazy</em> dog"]},
        })),
        (json!({"multi_match": {"query": "cats nothing", "fields": ["title", "n"], "lenient": true}}), several, json!({
            "2": {"title": ["<em>Nothing</em>"]}, "3": {"title": ["<em>Cats</em>"]},
        })),
        (json!({"simple_query_string": {"query": "\"late\" | slept", "fields": ["body"]}}), body, json!({
            "0": {"body": ["It was <em>late</em>."]}, "1": {"body": ["A dog <em>slept</em>."]},
        })),
    ])
    .await;
}

async fn fields_are_named_by_paths_and_patterns(env: Env) {
    let fox = json!({"match": {"body": "fox"}});
    each(&env, &[
        (json!({"match": {"title.english": "fox"}}), json!({"fields": [{"title": {}}, {"t*": {}}]}), json!({
            "0": {"title.english": ["Quick brown <em>foxes</em>"]},
        })),
        (fox.clone(), json!({"require_field_match": false, "fields": {"o.note": {}}}), json!({
            "0": {"o.note": ["a <em>fox</em>"]}, "1": null, "2": null,
        })),
        (json!({"match": {"o.note": "dog foxes cat"}}), json!({"fields": {"o.*": {}, "n": {}, "nowhere": {}}}), json!({
            "1": {"o.note": ["<em>dog</em> one", "<em>cat</em>"]}, "2": {"o.note": ["<em>foxes</em>"]},
        })),
        (fox.clone(), json!({"fields": {"body": {"highlight_query": {"match": {"body": "late"}}}}}), json!({
            "0": {"body": ["It was <em>late</em>."]}, "1": null, "2": null,
        })),
        (fox.clone(), json!({
            "pre_tags": ["["], "post_tags": ["]"], "number_of_fragments": 0,
            "fields": {"title": {"no_match_size": 3}, "body": {"type": "plain"}},
        }), json!({
            "0": {"body": ["The quick [fox] ran. It was late."], "title": ["Quick"]},
            "1": {"body": ["No [fox] was near the dog, but a quick cat."], "title": ["The"]},
            "2": {"body": ["brown [fox], quick; quick [fox]"], "title": ["Nothing"]},
        })),
        (fox, json!({"fields": {}}), json!({"0": null, "1": null, "2": null})),
    ])
    .await;
}

async fn all_ways_to_hits_have_the_same_fragments(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    filled(&c, 3).await;
    let body = json!({"query": {"match": {"body": "fox"}}, "highlight": {"fields": {"body": {}}}, "_source": false});
    let found = c.must("POST", "/a/_search", body.clone()).await;
    assert_eq!(found["hits"]["hits"][0].get("_source"), None, "{found}");
    let expected = fragments(&found);
    assert_eq!(expected.as_object().unwrap().len(), 3);

    let first = c.must("POST", "/a/_search?scroll=1m&size=1", body.clone()).await;
    let mut pages = fragments(&first).as_object().unwrap().clone();
    for _ in 0..2 {
        let next = json!({"scroll": "1m", "scroll_id": first["_scroll_id"]});
        let next = c.must("POST", "/_search/scroll", next).await;
        pages.extend(fragments(&next).as_object().unwrap().clone());
    }
    assert_eq!(Value::Object(pages), expected);
    c.must("DELETE", "/_search/scroll", json!({"scroll_id": first["_scroll_id"]})).await;

    let point = c.post("/a/_search/point_in_time?keep_alive=1m").await["pit_id"].clone();
    let mut at_one_moment = body.clone();
    at_one_moment["pit"] = json!({"id": point});
    let seen = c.must("POST", "/_search", at_one_moment).await;
    assert_eq!(fragments(&seen), expected);
    c.must("DELETE", "/_search/point_in_time", json!({"pit_id": point})).await;

    let lines = Bytes::from(format!("{{\"index\":\"a\"}}\n{body}\n"));
    let (_, many) = raw(c.any(), "POST", "/_msearch", lines).await;
    assert_eq!(fragments(&many["responses"][0]), expected);

    let mut collapsed = body;
    collapsed["collapse"] = json!({"field": "group"});
    let collapsed = fragments(&c.must("POST", "/a/_search", collapsed).await);
    assert_eq!(collapsed.as_object().unwrap().len(), 2);
    assert!(collapsed.as_object().unwrap().iter().all(|(id, shown)| *shown == expected[id]));
    settled(&c).await;
}

async fn what_has_no_fragments_is_said(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    filled(&c, 3).await;
    let highlight = |highlight: Value| json!({"highlight": highlight});
    for (body, part) in [
        (highlight(json!({"fields": {"body": {"type": "fvh"}}})), "send unified or plain"),
        (highlight(json!({"fields": {"body": {"fragmenter": "span"}}})), "leave it out"),
        (highlight(json!({"tags_schema": "styled", "fields": {"body": {}}})), "[tags_schema]"),
        (highlight(json!({"fields": {"n": {"no_match_size": 5}}})), "[n], which is of type [long]"),
        (
            highlight(json!({"fields": {"body": {"highlight_query": {"regexp": {"body": "("}}}}})),
            "[regexp] cannot be read",
        ),
        (
            json!({"aggs": {"t": {"top_hits": {"highlight": {"fields": {"body": {}}}}}}}),
            "[top_hits] does not support [highlight]",
        ),
    ] {
        c.refuses(400, part, "POST", "/a/_search", body).await;
    }
    c.map("b", (1, 0), json!({})).await;
    c.must("PUT", "/b/_doc/1?refresh", json!({"long": "x ".repeat(500_001), "short": "x"})).await;
    for (field, status) in [("long", 400), ("short", 200)] {
        let query = json!({"multi_match": {"query": "x", "fields": ["long", "short"]}});
        let body = json!({"query": query, "highlight": {"fields": {field: {}}}, "_source": false});
        let said = c.ask("POST", "/b/_search", body).await;
        let exceeds = said.1.to_string().contains("has exceeded [1000000]");
        assert_eq!((said.0, exceeds), (status, status == 400), "{}", said.1);
    }
}
