//! Aggregations of places whose answers are written down: distances, cells, middles and boxes.

use serde_json::{Value, json};

use super::known::{is_refused, shard};
use super::known_buckets::aggregated;
use super::{run, with};

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
            with(json!({"key": key, "doc_count": doc_count, "n": {"value": sum}}), ends)
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
        is_refused(&shard, wrong, "[n] of type [long] is not supported").await;
    });
}

/// Points lie on steps of Lucene, so that nothing is rounded. Of equal buckets the field has the greatest cell first,
/// and the cells of twelve letters have a sign.
#[test]
fn cells_middles_and_boxes_of_points() {
    run("cells", 1, async |env, dir, _| {
        let properties = json!({"p": {"type": "geo_point"}, "k": {"type": "keyword"}});
        let west = [-178.59375, 22.5];
        let documents = [
            json!({"p": [[178.59375, 45], west]}),
            json!({"p": [west, west]}),
            json!({"p": "-45,-90"}),
            json!({"k": "nowhere"}),
        ];
        let shard = shard(&env, &dir, properties, &documents).await;
        let of = json!({"field": "p"});
        let grid = |options| with(of.clone(), options);
        let page = |options, more| {
            let page = json!({"size": 2, "sources": [{"t": {"geotile_grid": grid(options)}}]});
            json!({ "composite": with(page, more) })
        };
        let across = json!({"top_left": "50,170", "bottom_right": "0,-170"});
        let (descending, null) = (json!({"order": "desc"}), json!({"missing_bucket": true}));
        let zoom = |options| with(json!({"precision": 2}), options);
        let answer = aggregated(&shard, json!({
            "middle": {"geo_centroid": of}, "box": {"geo_bounds": of},
            "plain": {"geo_bounds": {"field": "p", "wrap_longitude": false}},
            "letters": {"geohash_grid": grid(json!({"precision": 1})), "aggs": {"m": {"geo_centroid": of}}},
            "twelve": {"geohash_grid": grid(json!({"precision": 12}))},
            "two": {"geohash_grid": grid(json!({"precision": "2", "size": 2}))},
            "wide": {"geohash_grid": grid(json!({"precision": "5000km"}))},
            "tiles": {"geotile_grid": grid(json!({"precision": 2}))},
            "seven": {"geotile_grid": of},
            "within": {"geotile_grid": grid(json!({"precision": 2, "bounds": across}))},
            "first": page(zoom(descending.clone()), json!({})),
            "second": page(zoom(descending), json!({"after": {"t": "2/1/2"}})),
            "nulls": page(zoom(null), json!({})),
            "none": {"filter": {"term": {"k": "nowhere"}}, "aggs": {
                "m": {"geo_centroid": of}, "b": {"geo_bounds": of}, "g": {"geohash_grid": of},
            }},
            "unmapped": {"geo_bounds": {"field": "zz"}},
        }))
        .await;
        let corner = |lat: f64, lon: f64| json!({"lat": lat, "lon": lon});
        let bounds = |left: f64, right: f64| {
            let (top_left, bottom_right) = (corner(45.0, left), corner(-45.0, right));
            json!({"bounds": {"top_left": top_left, "bottom_right": bottom_right}})
        };
        assert_eq!(answer["middle"], json!({"location": corner(13.5, -89.4375), "count": 5}));
        assert_eq!(answer["box"], bounds(178.59375, -90.0));
        assert_eq!(answer["plain"], bounds(-178.59375, 178.59375));
        let found = |name: &str| -> Vec<(Value, u64)> {
            let buckets = answer[name]["buckets"].as_array().unwrap().iter();
            let bucket = |of: &Value| (of["key"].clone(), of["doc_count"].as_u64().unwrap());
            buckets.map(bucket).collect()
        };
        for (name, keys) in [
            ("letters", "8 z 6"),
            ("twelve", "8h1000000000 600000000000 zbp000000000"),
            ("two", "8h zb"),
            ("wide", "8h zb 60"),
            ("tiles", "2/0/1 2/3/1 2/1/2"),
            ("seven", "7/0/55 7/127/46 7/32/81"),
            ("within", "2/0/1 2/3/1"),
        ] {
            let expected = keys.split(' ').map(|key| json!(key)).zip([2, 1, 1]);
            assert_eq!(found(name), expected.collect::<Vec<(Value, u64)>>(), "{name}");
        }
        let of_both = json!({"location": corner(28.125, -89.296875), "count": 4});
        assert_eq!(answer["letters"]["buckets"][0]["m"], of_both);
        let tile = |key: Value, count: u64| (json!({ "t": key }), count);
        assert_eq!(found("first"), [tile(json!("2/3/1"), 1), tile(json!("2/1/2"), 1)]);
        assert_eq!(answer["first"]["after_key"], json!({"t": "2/1/2"}));
        assert_eq!(found("second"), [tile(json!("2/0/1"), 2)]);
        assert_eq!(found("nulls"), [tile(Value::Null, 1), tile(json!("2/0/1"), 2)]);
        let none = json!({"doc_count": 1, "m": {"count": 0}, "b": {}, "g": {"buckets": []}});
        assert_eq!((&answer["none"], &answer["unmapped"]), (&none, &json!({})));
        for kind in ["geo_centroid", "geo_bounds", "geohash_grid", "geotile_grid"] {
            let wrong = json!({"size": 0, "aggs": {"a": {kind: {"field": "k"}}}});
            is_refused(&shard, wrong, "[k] of type [keyword] is not supported").await;
        }
    });
}
