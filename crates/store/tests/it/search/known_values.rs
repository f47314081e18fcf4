//! Values at the ends of what fields keep, and fields that are named by patterns.

use std::sync::Arc;

use query::{Literal, Mapping, SearchRequest, Stopped, parse_search};
use serde_json::{Value, json};
use store::{Options, Rejection, Shard};

use super::known::{ids, is_refused, shard, sorted_ids};
use super::known_buckets::aggregated;
use super::{index, limits, merged, run, search, with};

#[test]
fn dates_of_every_year_are_found_sorted_and_counted() {
    run("years", 1, async |env, dir, _| {
        // In the first segment each document has a date, in the second one has none: they are read in two ways.
        let days = ["0800-12-25", "1492-10-12", "1969-12-31", "2024-02-29", "3000-01-01"];
        let mut documents = days.map(|day| json!({ "d": day })).to_vec();
        documents.push(json!({}));
        let shard = shard(&env, &dir, json!({"d": {"type": "date"}}), &documents).await;
        for (query, expected) in [
            (json!({"range": {"d": {"lt": "1492-10-12"}}}), vec![0u64]),
            (json!({"range": {"d": {"gte": "1492-10-12", "lt": "1970"}}}), vec![1, 2]),
            (json!({"range": {"d": {"gt": "2024-02-29"}}}), vec![4]),
            (json!({"range": {"d": {"gte": "2500", "lte": "2600"}}}), vec![]),
            (json!({"range": {"d": {"gte": "0001", "lte": "9999"}}}), vec![0, 1, 2, 3, 4]),
            (json!({"range": {"d": {"gte": i64::MIN, "lte": "0900"}}}), vec![0]),
            (json!({"term": {"d": "3000-01-01"}}), vec![4]),
            (json!({"terms": {"d": ["1492-10-12", "2024-02-29"]}}), vec![1, 3]),
        ] {
            let body = json!({"query": query, "sort": ["d"]});
            assert_eq!(ids(&shard, body).await, expected, "{query}");
        }
        let (_, hits, found) = search(&shard, &json!({"sort": [{"d": "desc"}]})).await;
        assert_eq!(found, [4, 3, 2, 1, 0, 5]);
        assert_eq!(hits.hits[0].sort, [Some(Literal::Integer(32_503_680_000_000))]);
        let years = json!({"date_histogram": {"field": "d", "calendar_interval": "year", "min_doc_count": 1}});
        let answer =
            aggregated(&shard, json!({"y": years, "first": {"min": {"field": "d"}}})).await;
        assert_eq!(answer["first"]["value_as_string"], "0800-12-25T00:00:00.000Z");
        let buckets = answer["y"]["buckets"].as_array().unwrap();
        let years = buckets.iter().map(|bucket| bucket["key_as_string"].as_str().unwrap());
        let years: Vec<&str> = years.map(|key| &key[..10]).collect();
        assert_eq!(years, ["0800-01-01", "1492-01-01", "1969-01-01", "2024-01-01", "3000-01-01"]);
    });
}

#[test]
fn a_pattern_of_fields_exists_where_one_of_them_does() {
    run("patterns", 1, async |env, dir, _| {
        let raw = json!({"type": "text", "fields": {"raw": {"type": "keyword"}}});
        let properties = json!({
            "other": {"type": "boolean"},
            "user": {"properties": {"name": {"type": "keyword"}, "age": {"type": "long"}, "nick": raw}},
        });
        let documents = [
            json!({"user": {"name": "a"}}),
            json!({"user": {"age": 3}}),
            json!({"user": {"nick": "x"}}),
            json!({"other": true}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        for (pattern, expected) in [
            ("user.*", vec![0u64, 1, 2]),
            ("us*", vec![0, 1, 2]),
            ("user.n*", vec![0, 2]),
            ("*.raw", vec![2]),
            ("*", vec![0, 1, 2, 3]),
            ("none*", vec![]),
        ] {
            let exists = json!({"exists": {"field": pattern}});
            let found = sorted_ids(&shard, json!({ "query": exists })).await;
            assert_eq!(found, expected, "{pattern}");
            let mut others = ids(&shard, json!({"query": {"bool": {"must_not": exists}}})).await;
            others.extend(&found);
            others.sort_unstable();
            assert_eq!(others, [0, 1, 2, 3], "{pattern}");
        }
        let text = json!({"query": {"query_string": {"query": "user.*:*"}}});
        assert_eq!(ids(&shard, text).await.len(), 3);
    });
}

/// What would be kept as another value, or not found, is refused before it is acknowledged; its neighbours go on.
#[test]
fn what_cannot_be_kept_is_refused() {
    run("refused", 1, async |env, dir, _| {
        let properties =
            json!({"d": {"type": "date"}, "k": {"type": "keyword"}, "n": {"type": "long"}});
        let shard = shard(&env, &dir, properties, &[]).await;
        let documents = [
            json!({"d": "2023-02-28", "k": "k".repeat(32_766)}),
            json!({"d": "2023-02-30"}),
            json!({"d": "2023-02-28T25:00"}),
            json!({"k": "k".repeat(32_767)}),
        ];
        let requests = (0..).zip(&documents).map(|(id, document)| index(id, document));
        let results = shard.index(requests.collect()).await.unwrap();
        let said = results.into_iter().map(|result| match result {
            Ok(_) => "kept".to_owned(),
            Err(Rejection::Document { refusal, .. }) => refusal.kind,
            Err(other) => other.to_string(),
        });
        let parsing = "mapper_parsing_exception";
        assert_eq!(
            said.collect::<Vec<_>>(),
            ["kept", parsing, parsing, "illegal_argument_exception"]
        );
        shard.refresh().await.unwrap();
        let query = json!({"query": {"term": {"k": "k".repeat(32_766)}}});
        assert_eq!(ids(&shard, query).await, [0]);
    });
}

/// What the field answers otherwise than one would think is answered as there, or refused.
#[test]
fn values_mean_what_they_mean_in_the_field() {
    run("meant", 1, async |env, dir, _| {
        let properties = json!({
            "r": {"type": "double_range"}, "k": {"type": "keyword"}, "b": {"type": "boolean"}, "i": {"type": "ip"},
            "n": {"type": "integer"}, "d": {"type": "date"}, "two": {"type": "long"},
            "zero": {"type": "long"},
        });
        let document = |n: u64| {
            let words = if n == 3 { json!(["x", "y"]) } else { json!(["x", "x"]) };
            json!({
                "r": {"gte": n, "lt": n + 2}, "k": words, "b": n == 0, "i": "10.0.0.1", "n": n, "d": "2024-01-01",
                "two": [1, 1], "zero": [0, 0],
            })
        };
        let shard = shard(&env, &dir, properties, &[0, 1, 2, 3].map(document)).await;
        for (query, expected) in [
            (json!({"terms": {"r": [0.5, 3]}}), vec![0u64, 2, 3]),
            (json!({"range": {"r": {"gte": 1, "lte": 1}}}), vec![0, 1]),
            (json!({"range": {"r": {"gt": 1, "lte": 1}}}), vec![]),
            (json!({"term": {"n": 2.5}}), vec![]),
            (json!({"range": {"n": {"gt": 1.5}}}), vec![2, 3]),
            (json!({"term": {"i": "10.0.0.0/30"}}), vec![0, 1, 2, 3]),
            (json!({"query_string": {"query": "\"\"", "fields": ["*"]}}), vec![]),
        ] {
            let body = json!({"query": query, "sort": ["n"]});
            assert_eq!(ids(&shard, body).await, expected, "{query}");
        }
        for (query, why) in [
            (json!({"range": {"i": {"gte": "10.0.0.0/30"}}}), "is not an IP string literal"),
            (json!({"term": {"n": 3_000_000_000u64}}), "out of range for type [integer]"),
            (json!({"terms": {"n": [1, -3e9]}}), "out of range for type [integer]"),
            (json!({"range": {"n": {"lte": 1e30}}}), "out of range for type [integer]"),
            (json!({"term": {"b": ""}}), "Can't parse boolean value []"),
        ] {
            is_refused(&shard, json!({"query": query}), why).await;
        }
        let collapse = json!({"field": "k"});
        is_refused(&shard, json!({"collapse": collapse}), "single valued").await;
        let few =
            json!({"collapse": collapse, "query": {"range": {"n": {"lt": 3}}}, "sort": ["n"]});
        assert_eq!(ids(&shard, few).await, [0], "twice the same text is one");
        // Twice the same number is two.
        is_refused(&shard, json!({"collapse": {"field": "two"}}), "single valued").await;
        let score = async |query: Value| search(&shard, &json!({"query": query})).await.1.max_score;
        let term = score(json!({"term": {"b": true}})).await;
        assert!(term > Some(1.1), "{term:?}");
        for query in [
            json!({"terms": {"b": [true, "true"]}}),
            json!({"range": {"b": {"gte": true}}}),
            json!({"range": {"b": {"gt": false, "lte": true}}}),
        ] {
            assert_eq!(score(query.clone()).await, term, "{query}");
        }
        assert_eq!(score(json!({"terms": {"b": [true, false]}})).await, Some(1.0));
        let answer = aggregated(
            &shard,
            json!({
                "p": {"percentiles": {"field": "d", "percents": [50]}},
                "zero": {"percentiles": {"field": "zero", "percents": [100]}},
                "h": {"histogram": {"field": "b", "interval": 1}},
                "r": {"range": {"field": "b", "ranges": [{"to": 5}]}},
                "none": {
                    "filter": {"match_none": {}},
                    "aggs": {"s": {"stats": {"field": "d"}}, "sum": {"sum": {"field": "d"}}},
                },
            }),
        )
        .await;
        assert_eq!(answer["none"]["s"].get("sum_as_string"), None, "{answer}");
        assert_eq!(answer["none"]["sum"]["value_as_string"], "1970-01-01T00:00:00.000Z");
        assert_eq!(answer["p"]["values"]["50.0_as_string"], "2024-01-01T00:00:00.000Z");
        assert_eq!(answer["zero"]["values"]["100.0"], 0.0, "{answer}");
        let buckets = answer["h"]["buckets"].as_array().unwrap().iter();
        let keys = buckets.map(|bucket| &bucket["key_as_string"]);
        assert!(keys.eq(["false", "true"]), "{answer}");
        let range = &answer["r"]["buckets"][0];
        assert_eq!((&range["key"], &range["to_as_string"]), (&json!("*-true"), &json!("true")));
    });
    for (body, why) in [
        (r#"{"docvalue_fields": ["n", "_seq_no"]}"#, "the metadata field [_seq_no]"),
        (r#"{"docvalue_fields": [{"field": "_id"}]}"#, "the metadata field [_id]"),
        (r#"{"query": {"bool": {"adjust_pure_negative": false}}}"#, "adjust_pure_negative [false]"),
    ] {
        let said = parse_search(body.as_bytes()).unwrap_err().reason;
        assert!(said.contains(why), "{body}: {said}");
    }
    let pure =
        br#"{"query": {"bool": {"must_not": {"match_none": {}}, "adjust_pure_negative": true}}}"#;
    assert!(parse_search(pure).is_ok());
}

/// A degree of the equator is 111.195 km.
#[test]
fn hits_are_sorted_by_how_far_their_points_are() {
    run("far", 1, async |env, dir, _| {
        let properties = json!({"p": {"type": "geo_point"}, "n": {"type": "long"}});
        let documents = [
            json!({"p": "0,1"}),
            json!({"p": [[3, 0], [5, 0]]}),
            json!({"n": 4}),
            json!({"p": [-2, 0]}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let sorted = |field: &str, from: Value, options: Value| {
            let by = with(json!({field: from, "unit": "km"}), options);
            json!({"sort": [{"_geo_distance": by}]})
        };
        let endless = f64::INFINITY;
        let both = json!([[0, 0], {"lat": 0, "lon": 5.5}]);
        for (from, options, expected) in [
            (json!([0, 0]), json!({}), [(0u64, 1.0), (3, 2.0), (1, 3.0), (2, endless)]),
            (json!("0,0"), json!({"mode": "max"}), [(0, 1.0), (3, 2.0), (1, 5.0), (2, endless)]),
            (
                json!({"lat": 0, "lon": 0}),
                json!({"order": "desc"}),
                [(2, endless), (1, 5.0), (3, 2.0), (0, 1.0)],
            ),
            (both, json!({}), [(1, 0.5), (0, 1.0), (3, 2.0), (2, endless)]),
        ] {
            let (_, hits, found) = search(&shard, &sorted("p", from, options.clone())).await;
            assert_eq!(found, expected.map(|(id, _)| id), "{options}");
            for (hit, (_, degrees)) in hits.hits.iter().zip(expected) {
                let Some(Literal::Float(km)) = hit.sort[0] else { panic!("{:?}", hit.sort) };
                let is_near = (km - degrees * 111.195_08).abs() < 0.001;
                assert!(km == degrees || is_near, "{options}: {km}");
            }
        }
        for (after, found) in [(json!(223), vec![1u64, 2]), (json!("Infinity"), vec![])] {
            let mut body = sorted("p", json!([0, 0]), json!({}));
            body["search_after"] = json!([after]);
            assert_eq!(ids(&shard, body).await, found, "{after}");
        }
        let ignored = sorted("none", json!([0, 0]), json!({"ignore_unmapped": true}));
        // All are as far, and come in the order in which the segments hold them.
        assert_eq!(sorted_ids(&shard, ignored).await, [0, 1, 2, 3]);
        for (field, after, why) in [
            ("n", json!(1), "sorts by columns of points"),
            ("none", json!(1), "failed to find mapper for [none]"),
            ("p", json!("far"), "Failed to parse search_after value [far]"),
        ] {
            let mut body = sorted(field, json!([0, 0]), json!({}));
            body["search_after"] = json!([after]);
            is_refused(&shard, body, why).await;
        }
    });
}

/// Of two segments, in one of which one document is odd, and in the other two.
#[test]
fn only_the_first_documents_are_looked_at_where_the_search_says_so() {
    run("first", 1, async |env, dir, _| {
        let documents: Vec<Value> = (0..6).map(|n| json!({"n": 1, "odd": n % 2 == 1})).collect();
        let properties = json!({"n": {"type": "long"}, "odd": {"type": "boolean"}});
        let shard = shard(&env, &dir, properties, &documents).await;
        let (all, odd) = (json!({"match_all": {}}), json!({"term": {"odd": true}}));
        let (enough, no) = (Stopped::EnoughFound, Stopped::No);
        for (query, most, found, stopped) in [
            (&all, Some(2), 2, enough),
            (&all, Some(3), 3, enough),
            (&all, Some(6), 6, no),
            (&all, None, 6, no),
            (&odd, Some(1), 1, enough),
            (&odd, Some(2), 2, enough),
            (&odd, Some(3), 3, no),
        ] {
            for sort in [json!(["_score"]), json!([{"n": "desc"}])] {
                let aggs = json!({"s": {"sum": {"field": "n"}}});
                let body = json!({"query": query, "sort": sort, "aggs": aggs});
                let mut request = parse_search(body.to_string().as_bytes()).unwrap();
                let plain = request.query.clone();
                request.query = plain.first(most);
                let request = Arc::new(request);
                let (hits, _) = shard.search(&request, &limits()).await.unwrap();
                let counted = (hits.total, hits.hits.len() as u64, hits.stopped);
                assert_eq!(counted, (found, found, stopped), "{query} {most:?} {sort}");
                let sum = merged(&request, &[&hits])["s"]["value"].clone();
                assert_eq!(sum, found as f64, "{query} {most:?}");
                // Without aggregations the best are found in another way.
                let request = SearchRequest { aggregations: Vec::new(), ..(*request).clone() };
                let (hits, _) = shard.search(&Arc::new(request), &limits()).await.unwrap();
                let counted = (hits.total, hits.hits.len() as u64, hits.stopped);
                assert_eq!(counted, (found, found, stopped), "{query} {most:?} {sort}");
            }
        }
    });
}

#[test]
fn a_copy_without_documents_is_sorted_by_what_others_can_be_sorted_by() {
    run("none", 1, async |env, dir, _| {
        let properties = json!({"n": {"type": "long"}, "t": {"type": "text"}});
        let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
        let empty = Shard::create(&env, &dir.join("empty"), &mapping, Options::default()).await;
        let empty = empty.unwrap();
        for (body, why) in [
            (json!({"sort": ["none"]}), "No mapping found for [none]"),
            (json!({"sort": ["t"]}), "keyword field instead"),
            (json!({"sort": [{"n": {"missing": "x"}}]}), "For input string: \"x\""),
            (json!({"sort": ["n"], "search_after": ["x"]}), "For input string: \"x\""),
            (json!({"sort": [{"none": {"unmapped_type": "unsigned_long"}}]}), "map it as long"),
            (json!({"sort": [{"none": {"unmapped_type": "keywrd"}}]}), "did you mean \"keyword\""),
            (json!({"collapse": {"field": "none"}}), "No mapping found for [none]"),
        ] {
            is_refused(&empty, body, why).await;
        }
        // Nobody asks for the type of a field that is there.
        let of_other = json!({"sort": [{"n": {"unmapped_type": "keywrd"}}]});
        assert_eq!(ids(&empty, of_other).await, [0u64; 0]);

        let documents = [json!({"n": 1}), json!({})];
        let shard = shard(&env, &dir.join("some"), properties, &documents).await;
        for (kind, last) in [
            ("date_nanos", Literal::Integer(i64::MAX)),
            ("half_float", Literal::Float(f64::INFINITY)),
        ] {
            let body = json!({"sort": [{"none": {"unmapped_type": kind}}]});
            let (_, hits, mut found) = search(&shard, &body).await;
            found.sort_unstable();
            assert_eq!((found, &hits.hits[0].sort), (vec![0, 1], &vec![Some(last)]));
        }
        // Nothing is shown where no hits are asked for, not even how good the best is.
        let scored = json!({"size": 0, "min_score": 0.5, "query": {"term": {"n": 1}}});
        let (_, hits, _) = search(&shard, &scored).await;
        assert_eq!((hits.total, hits.max_score), (1, None));
    });
}

/// A query of a `scaled_float` asks for its steps. What goes on behind a value, stands for missing ones or chooses
/// among them is no query.
#[test]
fn what_is_not_sought_needs_no_step() {
    run("steps", 1, async |env, dir, _| {
        let properties = json!({"x": {"type": "scaled_float", "scaling_factor": 100}});
        let documents = [json!({"x": 0.33}), json!({"x": 0.34}), json!({})];
        let shard = shard(&env, &dir, properties, &documents).await;
        assert_eq!(ids(&shard, json!({"sort": ["x"], "search_after": [0.335]})).await, [1, 2]);
        let missing = json!({"sort": [{"x": {"missing": 0.335}}]});
        let (_, hits, found) = search(&shard, &missing).await;
        assert_eq!(found, [0, 2, 1]);
        assert_eq!(hits.hits[1].sort, [Some(Literal::Float(0.335))]);
        let aggs = json!({
            "m": {"max": {"field": "x", "missing": 9.995}},
            "none": {"terms": {"field": "x", "include": [0.335]}},
            "one": {"terms": {"field": "x", "include": [0.33]}},
        });
        let answer = aggregated(&shard, aggs).await;
        assert_eq!(answer["m"]["value"], 9.995);
        assert_eq!(answer["none"]["buckets"], json!([]));
        assert_eq!(answer["one"]["buckets"][0]["doc_count"], 1);
    });
}

/// Nowhere, neither where each document has a value nor where one has none.
#[test]
fn zero_has_no_sign() {
    run("zeros", 1, async |env, dir, _| {
        let with_value = |x: f64| json!({ "x": x });
        let mut documents = [-3.0, -0.0, 0.0].map(with_value).to_vec();
        documents.extend([json!({}), with_value(-0.0), with_value(-3.0)]);
        let shard = shard(&env, &dir, json!({"x": {"type": "double"}}), &documents).await;
        for (query, found) in [
            (json!({"term": {"x": 0}}), vec![1, 2, 4]),
            (json!({"term": {"x": -0.0}}), vec![1, 2, 4]),
            (json!({"range": {"x": {"gte": 0}}}), vec![1, 2, 4]),
            (json!({"range": {"x": {"lt": 0}}}), vec![0, 5]),
            (json!({"range": {"x": {"lte": -0.0}}}), vec![0, 1, 2, 4, 5]),
            (json!({"range": {"x": {"gt": -0.0}}}), vec![]),
        ] {
            let body = json!({ "query": query });
            assert_eq!(sorted_ids(&shard, body).await, found, "{query}");
        }
    });
}

/// What is sought of a `half_float` is rounded as its values are; the ends of a range are not.
#[test]
fn numbers_of_16_bits_are_found_sorted_and_summed_as_they_are_kept() {
    run("halves", 1, async |env, dir, _| {
        let properties = json!({"x": {"type": "half_float"}});
        let documents = [0.1, 0.333, 2049.0, -1.5].map(|x| json!({ "x": x }));
        let shard = shard(&env, &dir, properties, &documents).await;
        for (query, found) in [
            (json!({"term": {"x": 0.1}}), vec![0]),
            (json!({"terms": {"x": [0.3331, 2048]}}), vec![1, 2]),
            (json!({"range": {"x": {"gte": 0.1}}}), vec![1, 2]),
            (json!({"range": {"x": {"gt": 0.0999, "lt": 0.1}}}), vec![0]),
            (json!({"range": {"x": {"lte": 2048.5}}}), vec![0, 1, 2, 3]),
        ] {
            let body = json!({ "query": query });
            assert_eq!(sorted_ids(&shard, body).await, found, "{query}");
        }
        assert_eq!(ids(&shard, json!({"sort": [{"x": "desc"}]})).await, [2, 1, 0, 3]);
        let after = json!({"sort": ["x"], "search_after": [0.0999755859375]});
        assert_eq!(ids(&shard, after).await, [1, 2]);
        let aggs = json!({
            "s": {"stats": {"field": "x"}},
            "t": {"terms": {"field": "x", "order": {"_key": "asc"}, "size": 2}},
        });
        let answer = aggregated(&shard, aggs).await;
        assert_eq!(answer["s"]["max"], 2048.0);
        assert_eq!(answer["s"]["sum"], 2048.0 + 0.0999755859375 + 0.3330078125 - 1.5);
        assert_eq!(answer["t"]["buckets"][1]["key"], 0.0999755859375);
    });
}
