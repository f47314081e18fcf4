//! Queries whose hits are written down: what is found, in which order, and what is shown.

use std::path::Path;
use std::sync::Arc;

use query::{Literal, Mapping, SearchLimits, parse_search};
use serde_json::{Value, json};
use store::{Options, Shard, WriteRequest};
use world::Env;

use super::{bm25, index, limits, merged, run, search, with};
use crate::common::write;

/// A copy with some documents in two segments.
pub(super) async fn shard(env: &Env, dir: &Path, properties: Value, documents: &[Value]) -> Shard {
    let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
    let shard = Shard::create(env, dir, &mapping, Options::default()).await.unwrap();
    let mut requests: Vec<WriteRequest> =
        (0..).zip(documents).map(|(id, document)| index(id, document)).collect();
    let rest = requests.split_off(documents.len() / 2);
    for requests in [requests, rest] {
        write(&shard, requests).await;
        shard.refresh().await.unwrap();
    }
    shard
}

pub(super) async fn ids(shard: &Shard, body: Value) -> Vec<u64> {
    search(shard, &body).await.2
}

pub(super) async fn sorted_ids(shard: &Shard, body: Value) -> Vec<u64> {
    let mut ids = ids(shard, body).await;
    ids.sort_unstable();
    ids
}

pub(super) async fn is_refused(shard: &Shard, body: Value, why: &str) {
    let request = parse_search(body.to_string().as_bytes()).unwrap();
    let answer = shard.search(&Arc::new(request), &limits()).await;
    let said = answer.map(drop).unwrap_err().to_string();
    assert!(said.contains(why), "{body}: {said}");
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
            let why = "too many words, fuzzy words and patterns";
            is_refused(&shard, json!({ "query": query }), why).await;
        }
        let regexps = (0..17).map(|n| format!("/a{n}/")).collect::<Vec<_>>().join(" OR ");
        let lenient =
            json!({"query_string": {"query": regexps, "fields": ["f0"], "lenient": true}});
        is_refused(&shard, json!({ "query": lenient }), "regular expressions").await;
        let long = json!({"regexp": {"f0": {"value": "a".repeat(1001)}}});
        is_refused(&shard, json!({ "query": long }), "index.max_regex_length").await;
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
            assert_eq!(sorted_ids(&shard, json!({ "query": query })).await, found, "{query}");
        }
    });
}

#[test]
fn a_boolean_scores_more_where_documents_have_both_values() {
    run("booleans", 1, async |env, dir, _| {
        let values =
            [json!(true), json!([true, false, true]), json!(true), json!(false), json!(false)];
        let documents = values.map(|b| json!({ "b": b }));
        let shard = shard(&env, &dir, json!({"b": {"type": "boolean"}}), &documents).await;
        let (_, hits, _) = search(&shard, &json!({"query": {"term": {"b": true}}})).await;
        let score = bm25(5.0, 3.0, 1.0, 1.0, 6.0 / 5.0);
        assert!((f64::from(hits.max_score.unwrap()) - 0.578).abs() < 1e-3, "{score}");
        assert!((f64::from(hits.max_score.unwrap()) - score).abs() < 1e-5, "{score}");
    });
}

#[test]
fn functions_change_scores() {
    run("functions", 1, async |env, dir, _| {
        let properties = json!({"n": {"type": "long"}, "at": {"type": "date"}, "p": {"type": "geo_point"},
                "k": {"type": "keyword"}});
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
        let found = scores(json!({"gauss": gauss})).await;
        assert_eq!(found, [(1, 1.0), (2, 0.926), (0, 0.5), (3, 0.0)]);
        let linear =
            json!({"p": {"origin": {"lat": 0, "lon": 0}, "scale": "1111.95km", "offset": "0km"}});
        let found = scores(json!({"linear": linear})).await;
        assert_eq!(found, [(0, 1.0), (2, 0.95), (3, 0.9), (1, 0.5)]);
        let functions = json!([{"filter": {"range": {"n": {"gte": 8}}}, "weight": 3},
            {"filter": {"ids": {"values": ["1", "3"]}}, "weight": 2}]);
        let of = |more| with(json!({"functions": functions, "score_mode": "sum"}), more);
        assert_eq!(scores(of(json!({}))).await, [(1, 5.0), (0, 3.0), (3, 2.0), (2, 1.0)]);
        let best = of(json!({"boost_mode": "sum", "max_boost": 4, "min_score": 4}));
        assert_eq!(scores(best.clone()).await, [(1, 5.0), (0, 4.0)]);
        let counted =
            json!({"size": 0, "track_total_hits": true, "query": {"function_score": best}});
        assert_eq!(search(&shard, &counted).await.1.total, 2);
        let seven = json!({"constant_score": {"filter": {"term": {"n": 8}}, "boost": 7}});
        for mode in ["multiply", "replace", "sum"] {
            let nothing = json!({"query": seven, "boost_mode": mode, "max_boost": 0.5});
            assert_eq!(scores(nothing).await, [(0, 7.0)], "{mode}");
        }
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
            is_refused(&shard, body, why).await;
        }
        let modified = |factor: f64, modifier: &str| {
            let factor =
                json!({"field": "n", "missing": 1, "factor": factor, "modifier": modifier});
            json!({ "field_value_factor": factor })
        };
        let endless = modified(0.0, "reciprocal");
        let bounded = scores(with(endless.clone(), json!({"max_boost": 5}))).await;
        assert!(
            bounded.len() == 4 && bounded.iter().all(|(_, score)| *score == 5.0),
            "{bounded:?}"
        );
        let unknown = with(endless.clone(), json!({"weight": 0}));
        let of_two =
            |mode: &str| json!({"functions": [{"weight": 2}, unknown], "score_mode": mode});
        for other in [unknown.clone(), modified(-1.0, "sqrt")] {
            let first = json!({"functions": [{"weight": 2}, other], "score_mode": "first"});
            let found = scores(first).await;
            assert!(found.len() == 4 && found.iter().all(|(_, score)| *score == 2.0), "{found:?}");
        }
        let (negative, invalid) = ("must not produce negative scores", "an invalid score: ");
        for (function, why) in [
            (modified(0.0, "log"), format!("{negative}, but got: [-inf]")),
            (modified(0.0, "ln"), format!("{negative}, but got: [-inf]")),
            (modified(-1.0, "ln"), format!("{negative}, but got: [NaN]")),
            (modified(-1.0, "sqrt"), format!("{negative}, but got: [NaN]")),
            (unknown.clone(), format!("{invalid}NaN")),
            (of_two("max"), format!("{invalid}NaN")),
            (of_two("min"), format!("{invalid}NaN")),
            (with(endless, json!({"query": seven})), format!("{invalid}inf")),
            (json!({"weight": 1, "max_boost": -2}), format!("{invalid}-2")),
        ] {
            is_refused(&shard, json!({"query": {"function_score": function}}), &why).await;
        }
        let no_numbers = "only numeric types";
        for (function, why) in [
            (json!({"field_value_factor": {"field": "k", "missing": 1}}), no_numbers),
            (json!({"gauss": {"k": {"origin": 1, "scale": 1}}}), no_numbers),
            (json!({"gauss": {"n": {"origin": 1, "scale": 1, "offset": -1}}}), "[offset] must be"),
        ] {
            is_refused(&shard, json!({"query": {"function_score": function}}), why).await;
        }
    });
}

#[test]
fn hits_show_the_values_of_a_field_in_their_order() {
    run("ordered", 1, async |env, dir, _| {
        let properties = json!({
            "b": {"type": "boolean"}, "d": {"type": "date", "format": "dd/MM/yyyy"}, "i": {"type": "ip"},
        });
        let document = json!({
            "b": [true, false], "d": ["01/12/2024", "20/01/2024"], "i": ["10.0.0.5", "9.9.9.9", "::1"],
        });
        let documents = [document.clone(), document];
        let shard = shard(&env, &dir, properties, &documents).await;
        let (_, hits, _) = search(&shard, &json!({"docvalue_fields": ["b", "d", "i"]})).await;
        let shown = ["b", "d", "i"].map(|name| {
            let values = hits.hits[0].fields[name].iter().map(Literal::text);
            values.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(shown, ["false true", "20/01/2024 01/12/2024", "::1 9.9.9.9 10.0.0.5"]);
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
        let found = async |query: Value| sorted_ids(&shard, json!({ "query": query })).await;
        assert_eq!(ids(&shard, json!({"query": {"fuzzy": {"t": "roam"}}})).await[0], 0);
        assert_eq!(found(json!({"fuzzy": {"t": "roam"}})).await, [0, 1, 2, 4, 5]);
        let plain =
            json!({"fuzzy": {"t": {"value": "roam", "transpositions": false, "prefix_length": 1}}});
        assert_eq!(found(plain).await, [0, 2, 5]);
        assert_eq!(found(json!({"fuzzy": {"k": {"value": "fom", "fuzziness": 1}}})).await, [1, 3]);
        assert_eq!(found(json!({"fuzzy": {"t": {"value": "roam", "fuzziness": 0}}})).await, [0]);
        // A word with more edits than letters took more than all of a score.
        let short = json!({"query": {"fuzzy": {"t": {"value": "x", "fuzziness": 2}}}});
        let (_, hits, _) = search(&shard, &short).await;
        let scores: Vec<f32> = hits.hits.iter().filter_map(|hit| hit.score).collect();
        assert_eq!(scores, [0.0]);
        let matched =
            json!({"match": {"t": {"query": "roma fre", "fuzziness": "AUTO", "operator": "and"}}});
        assert_eq!(found(matched).await, [0]);
        let simple =
            |query: &str| json!({"simple_query_string": {"query": query, "fields": ["t"]}});
        assert_eq!(found(simple("foam | ro*")).await, [0, 1, 2, 4, 5]);
        assert_eq!(found(simple("\"road to\" + rome")).await, [5]);
        assert_eq!(found(simple("ro* + -rome")).await, [0, 2, 4]);
        is_refused(&shard, json!({"query": {"fuzzy": {"n": "1"}}}), "fuzzy").await;
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
            let found = shard.fetch(&view, places, &Arc::default(), &limits).await.unwrap();
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

/// As of Lucene's `SimpleQueryParser`: of a negated clause without words nothing is left, the match of all beside it
/// included.
#[test]
fn negated_clauses_without_words_are_left_out() {
    run("negated", 1, async |env, dir, _| {
        let english = json!({"type": "text", "analyzer": "english"});
        let properties = json!({"e": english, "f": english, "t": {"type": "text"}});
        let documents = ["the fox", "foxes and dogs", "dog"]
            .map(|text| json!({"e": text, "f": text, "t": text}));
        let shard = shard(&env, &dir, properties, &documents).await;
        let scores = async |text: &str, fields: &[&str]| {
            let query = json!({"simple_query_string": {"query": text, "fields": fields}});
            let (_, hits, ids) = search(&shard, &json!({ "query": query })).await;
            ids.into_iter().zip(hits.hits.iter().map(|hit| hit.score)).collect::<Vec<_>>()
        };
        for fields in [&["e"][..], &["e", "f"]] {
            let foxes = scores("foxes", fields).await;
            assert_eq!(foxes.len(), 2);
            for text in ["foxes -the", "foxes -\"the of\"", "foxes -(the | -of)", "(the -of) foxes"]
            {
                assert_eq!(scores(text, fields).await, foxes, "{text}");
            }
            assert_eq!(scores("foxes + -the", fields).await, foxes);
            assert!(scores("-the", fields).await.is_empty());
            // What has words excludes, and the match of all beside it finds.
            assert_eq!(scores("-foxes", fields).await.len(), 1);
            assert_eq!(scores("foxes -the*", fields).await.len(), 3);
        }
        // One field that has the word is enough.
        assert_eq!(scores("fox -the", &["e", "t"]).await.len(), 3);
        assert_eq!(scores("fox + -the", &["e", "t"]).await.len(), 1);
    });
}

/// Points are kept in 32 bits, rounded down: 10, 20 and 30 a little less than written, 0 as it is.
#[test]
fn points_are_found_and_shown_as_they_are_kept() {
    run("points", 1, async |env, dir, _| {
        let documents =
            [json!([10, 20]), json!([0, 0]), json!([[16, 6], [20, 30]]), json!([180, 90])]
                .map(|point| json!({"p": point}));
        let shard = shard(&env, &dir, json!({"p": {"type": "geo_point"}}), &documents).await;
        for (top, left, bottom, right, found) in [
            (20, 10, 0, 30, vec![2]),
            (20, 9, 0, 10, vec![0]),
            (25, 9, 20, 11, vec![]),
            (0, 0, 0, 0, vec![1]),
            (20, 10, 19, -170, vec![]),
            (20, 100, 19, 10, vec![0]),
            (90, 170, 80, 180, vec![3]),
            (90, 180, 80, -170, vec![]),
        ] {
            let sides = json!({"top": top, "left": left, "bottom": bottom, "right": right});
            let body = json!({"query": {"geo_bounding_box": {"p": sides}}});
            assert_eq!(ids(&shard, body).await, found, "{sides}");
        }
        let square = |west: i32, south: i32, side: i32| {
            let (east, north) = (west + side, south + side);
            json!([[west, south], [east, south], [east, north], [west, north], [west, south]])
        };
        let triangle = json!([[5, 0], [25, 0], [25, 30], [5, 0]]);
        for (shape, found) in [
            (json!({"type": "polygon", "coordinates": [square(5, 0, 25)]}), vec![0, 2]),
            (
                json!({"type": "polygon", "coordinates": [square(5, 0, 25), square(15, 5, 3)]}),
                vec![0],
            ),
            (json!({"type": "polygon", "coordinates": [triangle]}), vec![2]),
            (
                json!({"type": "multipolygon", "coordinates": [[triangle], [square(-1, -1, 2)]]}),
                vec![1, 2],
            ),
            (json!({"type": "envelope", "coordinates": [[-1, 1], [1, -1]]}), vec![1]),
        ] {
            let body = json!({"query": {"geo_shape": {"p": {"shape": shape}}}});
            assert_eq!(sorted_ids(&shard, body).await, found, "{shape}");
        }
        let near =
            json!({"geo_bounding_box": {"p": {"top": 7, "left": 15, "bottom": 5, "right": 17}}});
        let (_, hits, _) = search(&shard, &json!({"query": near, "docvalue_fields": ["p"]})).await;
        let shown: Vec<Value> = hits.hits[0].fields["p"].iter().map(Literal::json).collect();
        // Sorted as texts.
        let expected =
            ["29.999999972060323, 19.99999998137355", "5.999999977648258, 15.999999968335032"];
        assert_eq!(shown, expected);
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
        let buckets = &merged(&request, &[&hits])["k"]["buckets"];
        assert_eq!(buckets.as_array().unwrap().len(), 3, "{buckets}");

        let passed_over = json!({"query": {"term": {"k": "a"}}, "from": 2, "size": 0});
        let (_, hits, found) = search(&shard, &passed_over).await;
        assert_eq!((hits.total, hits.max_score, found), (3, None, vec![]));

        let collapsed =
            json!({"collapse": {"field": "k"}, "sort": [{"n": "desc"}], "track_total_hits": true});
        let (_, hits, found) = search(&shard, &collapsed).await;
        assert_eq!((hits.total, found), (6, vec![5, 4, 3]));
        assert_eq!(hits.hits[0].fields["k"], [Literal::Text("a".to_owned())]);
        let few = json!({"collapse": {"field": "k"}, "size": 2, "sort": ["n"]});
        assert_eq!(ids(&shard, few).await, [0, 1]);

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
            let body = json!({"query": query, "sort": ["n"]});
            assert_eq!(ids(&shard, body).await, expected, "{query}");
        }
        for body in [json!({"sort": ["r"]}), json!({"docvalue_fields": ["r"]})] {
            is_refused(&shard, body, "double_range").await;
        }
    });
}

#[test]
fn phrases_score_by_the_best_field_and_words_by_all() {
    run("phrases", 1, async |env, dir, _| {
        let text = json!({"type": "text"});
        let documents = ["a fox", "b"].map(|text| json!({"s": text, "t": text}));
        let shard = shard(&env, &dir, json!({"s": text, "t": text}), &documents).await;
        let score = async |query: &str, fields: Value| {
            let asked = json!({"simple_query_string": {"query": query, "fields": fields}});
            search(&shard, &json!({ "query": asked })).await.1.max_score.unwrap()
        };
        let (one, both) = (json!(["s"]), json!(["s", "t"]));
        let phrase = "\"a fox\"";
        assert_eq!(score(phrase, both.clone()).await, score(phrase, one.clone()).await);
        assert_eq!(score("fox", both).await, 2.0 * score("fox", one).await);
    });
}

/// `query_string` writes patterns and ranges in the letters that the analyzer of the field leaves.
#[test]
fn patterns_and_ranges_are_in_the_letters_of_words() {
    run("letters", 1, async |env, dir, _| {
        let words = |analyzer: &str| json!({"type": "text", "analyzer": analyzer});
        let properties = json!({
            "s": words("standard"), "w": words("whitespace"), "e": words("english"),
            "k": {"type": "keyword"},
        });
        let texts = ["Fox", "fox", "Dog"];
        let documents = texts.map(|text| json!({"s": text, "w": text, "e": text, "k": text}));
        let shard = shard(&env, &dir, properties, &documents).await;
        for (query, expected) in [
            ("s:FO*", vec![0, 1]),
            ("e:F?X", vec![0, 1]),
            ("w:FO*", vec![]),
            ("w:Fo*", vec![0]),
            ("w:f?x", vec![1]),
            ("s:[EMU TO GNU]", vec![0, 1]),
            ("e:>EMU", vec![0, 1]),
            ("w:[Emu TO Gnu]", vec![0]),
            ("w:<Emu", vec![2]),
            ("k:[Emu TO Gnu]", vec![0]),
        ] {
            let asked = json!({"query": {"query_string": {"query": query}}, "sort": ["_doc"]});
            assert_eq!(ids(&shard, asked).await, expected, "{query}");
        }
        // A query of values takes them as they are.
        let range = json!({"query": {"range": {"s": {"gte": "EMU", "lte": "GNU"}}}});
        assert!(ids(&shard, range).await.is_empty());
    });
}

#[test]
fn a_text_without_words_is_there() {
    run("wordless", 1, async |env, dir, _| {
        let text = |more| with(json!({"type": "text"}), more);
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
