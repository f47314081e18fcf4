//! Aggregations whose answers are written down: buckets, figures, and the pipelines over both.

use serde_json::{Value, json};
use store::Shard;

use super::known::{ids, is_refused, shard};
use super::{merged, run, search, with};

pub(super) async fn aggregated(shard: &Shard, aggs: Value) -> Value {
    answered(shard, json!({"size": 0, "aggs": aggs})).await
}

async fn answered(shard: &Shard, body: Value) -> Value {
    let (request, hits, _) = search(shard, &body).await;
    merged(&request, &[&hits])
}

fn keys(of: &Value) -> Vec<Value> {
    of["buckets"].as_array().unwrap().iter().map(|bucket| bucket["key"].clone()).collect()
}

#[test]
fn addresses_are_sorted_as_such_and_none_stands_for_missing_ones() {
    run("addresses", 1, async |env, dir, _| {
        let documents = ["fe80::1", "10.0.0.1", "2.2.2.2", "9.9.9.9"].map(|i| json!({ "i": i }));
        let shard = shard(&env, &dir, json!({"i": {"type": "ip"}}), &documents).await;
        let terms = |more| json!({"t": {"terms": with(json!({"field": "i"}), more)}});
        for more in [json!({"missing": "1.1.1.1"}), json!({"include": ["2.2.2.2"]})] {
            is_refused(&shard, json!({"aggs": terms(more)}), "of the type [ip] are not").await;
        }
        for segments in [2, 1] {
            shard.force_merge(segments).await.unwrap();
            let all = aggregated(&shard, terms(json!({"order": {"_key": "desc"}}))).await;
            assert_eq!(keys(&all["t"]), ["fe80::1", "10.0.0.1", "9.9.9.9", "2.2.2.2"]);
            for more in [json!({"order": {"_key": "asc"}}), json!({"shard_size": 1})] {
                let first = terms(with(json!({"size": 1}), more));
                let first = aggregated(&shard, first).await["t"].clone();
                assert_eq!(first["buckets"], json!([{"key": "2.2.2.2", "doc_count": 1}]));
                assert_eq!(first["sum_other_doc_count"], 3);
            }
        }
    });
}

#[test]
fn a_text_that_stands_for_missing_ones_is_one_among_others() {
    run("missing-texts", 1, async |env, dir, _| {
        let properties = json!({"w": {"type": "keyword"}});
        let documents = [json!({"w": "b"}), json!({"w": "c"}), json!({}), json!({"w": "d"})];
        let shard = shard(&env, &dir, properties, &documents).await;
        for segments in [2, 1] {
            shard.force_merge(segments).await.unwrap();
            for (missing, order, found) in [
                ("a", "asc", ["a", "b"]),
                ("a", "desc", ["d", "c"]),
                ("bb", "asc", ["b", "bb"]),
                ("e", "desc", ["e", "d"]),
            ] {
                let order = json!({ "_key": order });
                let terms = json!({"field": "w", "missing": missing, "order": order, "size": 2});
                let answer = aggregated(&shard, json!({"t": {"terms": terms}})).await;
                assert_eq!(keys(&answer["t"]), found, "{segments} {missing} {order}");
            }
        }
    });
}

/// The least of no values is above all numbers, the greatest below, and a mean comes last.
#[test]
fn buckets_without_a_value_are_sorted_as_the_field_does() {
    run("sorted", 1, async |env, dir, _| {
        let properties = json!({"k": {"type": "keyword"}, "n": {"type": "long"}});
        let documents = [
            json!({"k": "a", "n": 2}),
            json!({"k": "b"}),
            json!({"k": "c", "n": 1}),
            json!({"k": "d", "n": 3}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        for (order, sorted) in [
            (json!({"least": "asc"}), "c a d b"),
            (json!({"least": "desc"}), "b d a c"),
            (json!({"greatest": "asc"}), "b c a d"),
            (json!({"greatest.value": "desc"}), "d a c b"),
            (json!({"all.min": "desc"}), "b d a c"),
            (json!({"all.max": "asc"}), "b c a d"),
            (json!({"all.avg": "asc"}), "c a d b"),
            (json!({"all.avg": "desc"}), "d a c b"),
        ] {
            for size in [1, 2, 4] {
                let of = json!({"field": "n"});
                let terms = json!({"field": "k", "size": size, "shard_size": size, "order": order});
                let subs =
                    json!({"least": {"min": of}, "greatest": {"max": of}, "all": {"stats": of}});
                let answer = aggregated(&shard, json!({"t": {"terms": terms, "aggs": subs}})).await;
                let expected: Vec<&str> = sorted.split(' ').take(size).collect();
                assert_eq!(keys(&answer["t"]), expected, "{order}");
            }
        }
    });
}

/// Dashboards name what they ask by numbers, as the sources of tuples are.
#[test]
fn all_tuples_are_there_whatever_is_within_them() {
    run("named", 1, async |env, dir, _| {
        let properties = json!({"k": {"type": "keyword"}, "m": {"type": "keyword"}});
        let documents = ["x", "y", "z"].map(|m| json!({"k": "a", "m": m}));
        let shard = shard(&env, &dir, properties, &documents).await;
        for name in ["1", "other"] {
            let within = json!({name: {"terms": {"field": "k", "size": 1, "shard_size": 1}}});
            let of =
                json!({"multi_terms": {"terms": [{"field": "k"}, {"field": "m"}]}, "aggs": within});
            let answer = aggregated(&shard, json!({ "t": of })).await;
            let buckets = answer["t"]["buckets"].as_array().unwrap();
            assert_eq!(buckets.len(), 3, "{answer}");
            assert_eq!(buckets[2][name]["buckets"][0]["doc_count"], 1, "{answer}");
        }
    });
}

/// What OpenSearch 2.19.1 answers, of one shard, too: how wrong counts may be is known where the greatest are shown, or
/// where a shard has fewer buckets than it may send.
#[test]
fn how_wrong_counts_may_be() {
    run("errors", 1, async |env, dir, _| {
        let properties = json!({
            "k": {"type": "keyword"}, "n": {"type": "long"}, "p": {"type": "geo_point"},
        });
        let documents = ["a", "b", "c"].map(|k| json!({"k": k, "n": 1, "p": "0,1"}));
        let shard = shard(&env, &dir, properties, &documents).await;
        for (order, shard_size, error) in [
            (json!({"n": "desc"}), 3, -1),
            (json!({"n": "asc"}), 2, -1),
            (json!({"n": "desc"}), 4, 0),
            (json!({"_count": "asc"}), 2, -1),
            (json!({"_count": "desc"}), 2, 0),
            (json!({"_key": "desc"}), 2, 0),
        ] {
            let terms = json!({"field": "k", "size": 1, "shard_size": shard_size, "order": order});
            let subs = json!({"n": {"sum": {"field": "n"}}});
            let answer = aggregated(&shard, json!({"t": {"terms": terms, "aggs": subs}})).await;
            assert_eq!(answer["t"]["doc_count_error_upper_bound"], error, "{terms}");
        }
        // Of several shards each one that sends as many as it may counts, also where it has no others.
        for (shard_size, error) in [(2, 2), (3, 2), (4, 0)] {
            let terms = json!({"terms": {"field": "k", "size": 2, "shard_size": shard_size}});
            let within = |around: Value| with(around, json!({"aggs": {"t": terms}}));
            let cells = json!({"field": "p", "precision": 2});
            let body = json!({"size": 0, "aggs": {
                "t": terms, "f": within(json!({"filter": {"match_all": {}}})),
                "hash": within(json!({"geohash_grid": cells})), "tile": within(json!({"geotile_grid": cells})),
            }});
            let (request, hits, _) = search(&shard, &body).await;
            let answer = merged(&request, &[&hits, &hits]);
            // A shard knows a cell by another key than is shown.
            let [hash, tile] = ["hash", "tile"].map(|cells| &answer[cells]["buckets"][0]["t"]);
            for of in [&answer["t"], &answer["f"]["t"], hash, tile] {
                assert_eq!(of["doc_count_error_upper_bound"], error, "{shard_size}: {answer}");
            }
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
        // Numbers are read by the format: seconds, or a year where there is none.
        for (from, format, count) in [
            (json!(1_425_168_000), json!("epoch_second"), 5),
            (json!(1_425_168_000.5), json!("epoch_second"), 5),
            (json!(1_425_168_000_000_u64), json!(null), 5),
            (json!(2016), json!(null), 0),
        ] {
            let ranges = json!({"field": "d", "format": format, "ranges": [{"from": from}]});
            let answer = aggregated(&shard, json!({"r": {"date_range": ranges}})).await;
            assert_eq!(answer["r"]["buckets"][0]["doc_count"], count, "{ranges}");
        }

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
        for (field, value) in [("b", json!("yes")), ("d", json!("soon")), ("k", json!(5))] {
            let sources = json!([{"s": {"terms": {"field": field}}}]);
            let page = json!({"composite": {"sources": sources, "after": {"s": value}}});
            is_refused(&shard, json!({"aggs": {"c": page}}), "[after] of [composite]").await;
        }
    });
}

/// What is looked at before documents are collected is what filters around it and the least score leave.
#[test]
fn pages_of_what_is_left() {
    run("pages", 1, async |env, dir, _| {
        let mut properties = json!({
            "n": {"type": "long"}, "t": {"type": "text"}, "d": {"type": "date"}, "p": {"type": "geo_point"},
        });
        let mut many = json!({"t": "c"});
        for n in 0..21 {
            properties[format!("f{n}")] = json!({"type": "long"});
            many[format!("f{n}")] = json!([1, 2]);
        }
        let documents = [
            json!({"n": 1, "t": "a", "d": "1990-01-01"}),
            json!({"n": 2, "t": "a b", "d": "2020-01-01"}),
            json!({"n": 2, "t": "b", "d": "2020-01-01"}),
            json!({"n": 20, "t": "b", "d": "2020-01-01"}),
            many,
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let page = |source: Value| json!({"composite": {"size": 1, "sources": [{"n": source}]}});
        let terms = page(json!({"terms": {"field": "n"}}));
        let widths = page(json!({"histogram": {"field": "n", "interval": 1}}));
        let bucket = |n: Value, count: u64| {
            let key = json!({ "n": n });
            json!({"after_key": key, "buckets": [{"key": key, "doc_count": count}]})
        };
        let greater = json!({"filter": {"range": {"n": {"gt": 2}}}, "aggs": {"p": terms}});
        let of_b =
            json!({"filter": {"match": {"t": "b"}}, "aggs": {"p": terms, "greater": greater}});
        // The same values of two pages, each shown as its field is.
        let answer = aggregated(&shard, json!({"b": of_b, "p": terms, "w": widths})).await;
        assert_eq!(answer["b"]["p"], bucket(json!(2), 2));
        assert_eq!(answer["b"]["greater"]["p"], bucket(json!(20), 1));
        assert_eq!(answer["p"], bucket(json!(1), 1));
        assert_eq!(answer["w"], bucket(json!(1.0), 1));

        let scored = |word: &str, boost: u64| {
            let filter = json!({"match": {"t": word}});
            json!({"constant_score": {"filter": filter, "boost": boost}})
        };
        let answer = answered(&shard, json!({
            "size": 0, "min_score": 2, "query": {"bool": {"should": [scored("a", 1), scored("b", 2)]}},
            "aggs": {"p": terms, "d": {"auto_date_histogram": {"field": "d", "buckets": 10}}},
        }))
        .await;
        assert_eq!(answer["p"], bucket(json!(2), 2));
        assert_eq!(answer["d"]["interval"], "1s");
        assert_eq!(answer["d"]["buckets"][0]["doc_count"], 3);

        let sources =
            (0..21).map(|n| json!({format!("f{n}"): {"terms": {"field": format!("f{n}")}}}));
        let wide = json!({"composite": {"sources": sources.collect::<Vec<_>>()}});
        is_refused(&shard, json!({"aggs": {"wide": wide}}), "combinations of values").await;

        let within = |field: &str, ignored: bool| {
            let sides = json!({"top": 1, "left": 0, "bottom": 0, "right": 1});
            json!({"query": {"geo_bounding_box": {field: sides, "ignore_unmapped": ignored}}})
        };
        assert!(ids(&shard, within("none", true)).await.is_empty());
        is_refused(&shard, within("none", false), "find geo field [none]").await;
        is_refused(&shard, within("n", true), "unsupported type [long]").await;
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
            (json!({"sort": ["n", {"_id": "desc"}]}), "sort by [_doc], or by a keyword field"),
            (json!({"collapse": {"field": "_id"}}), "unknown type for collapse field `_id`"),
            (json!({"query": {"exists": {"field": "_routing"}}}), "metadata field [_routing]"),
            (json!({"aggs": {"a": {"avg": of(json!("x"))}}}), "[none], which is not mapped"),
        ] {
            is_refused(&shard, body, why).await;
        }
    });
}

/// What OpenSearch 2.19.1 answers.
#[test]
fn bounds_of_dates_are_rounded_without_the_offset_and_one_value_is_not_spread() {
    run("ends", 1, async |env, dir, _| {
        let properties = json!({
            "d": {"type": "date"}, "n": {"type": "long"}, "s": {"type": "date", "format": "epoch_second"},
        });
        let shard = shard(&env, &dir, properties, &[json!({"n": 3}), json!({})]).await;
        let bounds = |min: &str, max: &str| json!({"min": min, "max": max});
        let answer = aggregated(&shard, json!({
            "month": {"date_histogram": {
                "field": "d", "calendar_interval": "month", "offset": "3d",
                "extended_bounds": bounds("2024-01-02", "2024-03-05")}},
            "day": {"date_histogram": {
                "field": "d", "fixed_interval": "1d", "offset": "6h",
                "extended_bounds": bounds("2024-01-01", "2024-01-02")}},
            "before": {"date_histogram": {
                "field": "d", "fixed_interval": "1d", "offset": "-6h",
                "extended_bounds": bounds("2024-01-01", "2024-01-02")}},
            "seconds": {"date_histogram": {
                "field": "s", "fixed_interval": "1d",
                "extended_bounds": bounds("1704067200", "1704153600")}},
            "later": {"date_histogram": {
                "field": "d", "fixed_interval": "1d", "offset": "30h",
                "extended_bounds": bounds("2024-01-01", "2024-01-02")}},
            "five": {"histogram": {
                "field": "n", "interval": 5, "offset": 2, "extended_bounds": {"min": 0, "max": 10}}},
            "from": {"histogram": {"field": "n", "interval": 5, "extended_bounds": {"min": -7}}},
            "to": {"histogram": {"field": "n", "interval": 5, "extended_bounds": {"max": 12}}},
            "empty": {"date_histogram": {
                "field": "d", "fixed_interval": "1d", "extended_bounds": {"min": "2024-01-01"}}},
            "one": {"extended_stats": {"field": "n"}},
            "none": {"extended_stats": {"field": "nobody"}},
        }))
        .await;
        let days = [1_704_326_400_000i64, 1_707_004_800_000, 1_709_510_400_000];
        assert_eq!(keys(&answer["month"]), days, "the fourth of each month");
        assert_eq!(keys(&answer["day"]), [1_704_088_800_000i64, 1_704_175_200_000]);
        assert_eq!(keys(&answer["before"]), [1_704_045_600_000i64, 1_704_132_000_000]);
        assert_eq!(keys(&answer["later"]), [1_704_175_200_000i64, 1_704_261_600_000]);
        assert_eq!(keys(&answer["seconds"]), [1_704_067_200_000i64, 1_704_153_600_000]);
        assert_eq!(keys(&answer["five"]), [-3.0, 2.0, 7.0]);
        assert_eq!(keys(&answer["from"]), [-10.0, -5.0, 0.0]);
        assert_eq!(keys(&answer["to"]), [0.0, 5.0, 10.0]);
        assert_eq!(answer["empty"]["buckets"], json!([]));
        let (one, none) = (&answer["one"], &answer["none"]);
        assert_eq!(one["variance"], 0.0);
        assert_eq!(one["std_deviation_sampling"], "NaN");
        let ends = &one["std_deviation_bounds"];
        assert_eq!((&ends["lower"], &ends["upper_sampling"]), (&json!(3.0), &json!("NaN")));
        for name in ["sum_of_squares", "variance", "std_deviation_sampling"] {
            assert_eq!(none.get(name), Some(&Value::Null), "{name}: {none}");
        }
        assert_eq!(none["std_deviation_bounds"].as_object().unwrap().len(), 6);
        for (field, min, max, why) in [
            ("d", "2024-01-02", "2024-01-01", "cannot be greater than"),
            ("s", "2024-01-01", "1704153600", "failed to parse date field [2024-01-01]"),
        ] {
            let days = json!({"field": field, "fixed_interval": "1d", "extended_bounds": bounds(min, max)});
            // There is no bucket that they would be within.
            let within = json!({"days": {"date_histogram": days}});
            let terms = json!({"terms": {"field": "d"}, "aggs": within});
            is_refused(&shard, json!({"size": 0, "aggs": {"a": terms}}), why).await;
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
        assert_eq!(answer["mean"]["value"], 13.0 / 3.0);
        assert_eq!(answer["mean0"]["value"], 2.6);
        assert_eq!(answer["least"], json!({"value": 0.0, "keys": ["3.0"]}));
        assert_eq!(answer["most"], json!({"meta": {"is": "max"}, "value": 2.0, "keys": ["0.0"]}));
        assert_eq!(answer["of_a"]["value"], 13.0);
        assert_eq!(answer["deep"]["value"], 2.0);
        let rises = json!({"count": 2, "min": -9.0, "max": 1.0, "avg": -4.0, "sum": -8.0});
        assert_eq!(answer["rises"], rises);

        // Of buckets within buckets, and of those that are left.
        let within = |more| {
            let aggs = json!({"m": {"max_bucket": over("h>s")}, "h": {"histogram": histogram, "aggs": {"s": sum}}});
            json!({"terms": {"field": "k"}, "aggs": with(aggs, more)})
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
        assert_eq!(keys(&answer["t"]), ["b", "a"]);
        assert_eq!(keys(&answer["one"]), ["a"]);
        assert_eq!(answer["one"]["buckets"][0]["m"], json!({"value": 9.0, "keys": ["2.0"]}));
        assert_eq!(answer["one"]["sum_other_doc_count"], 0);
        assert_eq!(answer["mean"]["value"], 5.5);
        assert_eq!(answer["mean_of_one"]["value"], 9.0);

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
