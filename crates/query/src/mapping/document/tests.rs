//! Documents in every form, read by their mappings.

use serde_json::json;

use super::*;

fn read(properties: serde_json::Value, source: &str) -> Result<Vec<String>, Refusal> {
    let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
    let mut seen = Vec::new();
    let mut put = |field: usize, value: Indexed<'_>| seen.push(format!("{field} {value:?}"));
    mapping.read(source.as_bytes(), true, &mut put)?;
    Ok(seen)
}

#[test]
fn a_document_has_one_timestamp_where_the_mapping_asks_for_it() {
    let mapping = |asks: serde_json::Value| {
        let date = json!({"type": "date", "ignore_malformed": true});
        let properties = json!({"@timestamp": date, "n": {"type": "long"}});
        Mapping::parse(&json!({"_data_stream_timestamp": asks, "properties": properties}))
    };
    let stamped = mapping(json!({"enabled": true})).unwrap();
    for (source, fits) in [
        (r#"{"n":1,"@timestamp":"2023-01-02T22:02:34.000Z"}"#, true),
        (r#"{"n":1,"@timestamp":[null,5]}"#, true),
        (r#"{"n":1}"#, false),
        (r#"{"n":1,"@timestamp":null}"#, false),
        (r#"{"n":1,"@timestamp":"soon"}"#, false),
        (r#"{"n":1,"@timestamp":[5,6]}"#, false),
    ] {
        let read = |mapping: &Mapping, is_new| {
            let read = mapping.read(source.as_bytes(), is_new, &mut nowhere);
            read.map_err(|refusal| refusal.reason)
        };
        assert_eq!(read(&stamped, true).is_ok(), fits, "{source}");
        // It was accepted before.
        assert!(read(&stamped, false).is_ok(), "{source}");
        if let Err(said) = read(&stamped, true) {
            assert!(said.contains("single-valued timestamp field '@timestamp'"), "{said}");
            assert!(read(&mapping(json!({})).unwrap(), true).is_ok(), "{source}");
        }
    }
    // One that documents bring is mapped first.
    let grows = Mapping::parse(&json!({"_data_stream_timestamp": {"enabled": true}})).unwrap();
    let read = grows.read(br#"{"@timestamp":"2023-01-02"}"#, true, &mut nowhere);
    assert_eq!(read, Ok(Extent::NewFields));
    let said = |asks| mapping(asks).unwrap_err().to_string();
    assert!(said(json!({"enabled": 1})).contains("true or false"));
    assert!(said(json!({"name": "a"})).contains("unknown parameter"));
}

#[test]
fn points_in_every_form() {
    let one = ["0 Point { lat: 51.52, lon: -0.14 }"];
    let two = [one[0], "0 Point { lat: 1.0, lon: 2.0 }"];
    let point = || json!({"p": {"type": "geo_point"}});
    for form in [
        r#"[-0.14,51.52]"#, r#"[-0.14,51.52,12.5]"#, r#"{"lat":51.52,"lon":-0.14}"#,
        r#""51.52,-0.14""#, r#"[[-0.14,51.52]]"#,
    ] {
        assert_eq!(read(point(), &format!("{{\"p\":{form}}}")).unwrap(), one, "{form}");
    }
    for form in [r#"[[-0.14,51.52],[2,1]]"#, r#"[{"lat":51.52,"lon":-0.14},"1,2"]"#] {
        assert_eq!(read(point(), &format!("{{\"p\":{form}}}")).unwrap(), two, "{form}");
    }
    for bad in ["[200,0]", "[1]", "[1,2,3,4]", "{\"lat\":1}", "\"x\"", "true", "{\"x\":1}"] {
        let said = read(point(), &format!("{{\"p\":{bad}}}")).unwrap_err().reason;
        assert!(said.contains("field [p] of type [geo_point]"), "{bad}: {said}");
    }
}

#[test]
fn every_type_coerces_as_the_field_does() {
    let properties = json!({
        "b": {"type": "boolean"}, "d": {"type": "date", "format": "epoch_second"},
        "f": {"type": "float"}, "i": {"type": "ip"}, "k": {"type": "keyword", "ignore_above": 3},
        "l": {"type": "long"}, "o": {"properties": {"s": {"type": "short"}}}, "t": {"type": "text"}
    });
    let source = r#"{"b":"true","d":894000000,"f":"1.5","i":"::1","k":["abc","abcd",7],"l":2.9,
        "o":[{"s":1},{"s":null}],"o.s":2,"t":"a b","unmapped":{"x":[1,{}]}}"#;
    assert_eq!(
        read(properties.clone(), source).unwrap(),
        [
            "0 Boolean(true)", "1 Date(894000000000)", "2 Float(1.5)", "3 Address(::1)",
            "4 Text(\"abc\")", "4 Text(\"7\")", "5 Integer(2)", "6 Integer(1)", "6 Integer(2)",
            "7 Text(\"a b\")"
        ]
    );
    for bad in [
        r#"{"o":{"s":40000}}"#, r#"{"l":"x"}"#, r#"{"l":18446744073709551615}"#, r#"{"i":1}"#,
        r#"{"b":2}"#, r#"{"o":5}"#, r#"[]"#, r#"{"l":1"#, r#"{} {}"#, "",
    ] {
        assert!(read(properties.clone(), bad).is_err(), "{bad}");
    }
}

#[test]
fn a_term_is_not_immense() {
    let texts = json!({
        "k": {"type": "keyword"}, "s": {"type": "keyword", "ignore_above": 256},
        "t": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "w": {"type": "text", "analyzer": "keyword"}, "x": {"type": "text"},
    });
    // Two bytes each.
    let text = |letters: usize| "é".repeat(letters);
    let of =
        |path: &str, letters| read(texts.clone(), &json!({ path: [text(letters)] }).to_string());
    for (path, named) in [("k", "k"), ("t", "t.raw"), ("w", "w")] {
        assert!(of(path, 16_383).is_ok(), "{path}");
        let refused = of(path, 16_384).unwrap_err();
        assert_eq!((refused.status, refused.kind.as_str()), (400, "illegal_argument_exception"));
        let said = refused.reason;
        assert!(said.contains(&format!("immense term in field=\"{named}\"")), "{said}");
        assert!(said.contains("'[195, 169, ") && said.ends_with("got 32768"), "{said}");
    }
    assert_eq!(of("s", 40_000).unwrap(), [""; 0], "it is left out");
    assert_eq!(of("x", 40_000).unwrap().len(), 1, "it is cut into words");
    // Two characters of Java each.
    let smiles = json!({"s": ["😀".repeat(128), "😀".repeat(129)]}).to_string();
    assert_eq!(read(texts.clone(), &smiles).unwrap().len(), 1);
}

#[test]
fn a_number_is_kept_as_the_text_that_it_is_written_with() {
    let raw = json!({"type": "double", "fields": {"raw": {"type": "keyword"}}});
    let properties =
        json!({"d": {"type": "double"}, "k": {"type": "keyword"}, "m": raw, "t": {"type": "text"}});
    let source = r#"{"d":1.50,"k":1.5,"m":-2,"t":[2, 0.25,18446744073709551615]}"#;
    let kept = read(properties.clone(), source).unwrap();
    assert!(kept.contains(&"1 Text(\"1.5\")".to_owned()), "{kept:?}");
    for (bad, written) in [
        (r#"{"x":[{"y":1}],"k":1.50}"#, "1.50"),
        (r#"{"k":[0.5,"a",0.25],"t":[0.125,2.50]}"#, "2.50"),
        (r#"{"t":["a",1e3]}"#, "1e3"),
        (r#"{"m":2.0E0}"#, "2.0E0"),
        (r#"{"k":-0}"#, "-0"),
        (r#"{"k":12345678901234567890123}"#, "12345678901234567890123"),
    ] {
        let said = read(properties.clone(), bad).unwrap_err().reason;
        assert!(said.contains(&format!("the number [{written}] in")), "{said}");
    }
}

#[test]
fn a_field_is_kept_in_all_its_ways() {
    let properties = json!({
        "n": {"type": "keyword", "index": false, "doc_values": false, "fields": {
            "long": {"type": "long", "ignore_malformed": true},
            "text": {"type": "text"}, "short": {"type": "keyword", "ignore_above": 2}}},
        "o": {"properties": {"t": {"type": "text", "fields": {"raw": {"type": "keyword"}}}}},
    });
    // In the order of their paths: n 0, n.long 1, n.short 2, n.text 3, o.t 4, o.t.raw 5.
    let source = r#"{"n":["12","x y"],"n.long":5,"o":{"t":"a b","t.raw":"not this"}}"#;
    let expected = [
        "1 Integer(12)", "2 Text(\"12\")", "3 Text(\"12\")", "3 Text(\"x y\")", "4 Text(\"a b\")",
        "5 Text(\"a b\")",
    ];
    assert_eq!(read(properties.clone(), source).unwrap(), expected);
    let strict = json!({"dynamic": "strict", "properties": properties});
    let strict = Mapping::parse(&strict).unwrap();
    assert!(strict.read(br#"{"n.long":5}"#, true, &mut nowhere).is_err());
}

#[test]
fn nulls_copies_steps_and_ranges() {
    let properties = json!({
        "a": {"type": "keyword", "null_value": "none", "copy_to": ["all", "c"]},
        "all": {"type": "text", "fields": {"raw": {"type": "keyword"}}}, "c": {"type": "keyword"},
        "d": {"type": "scaled_float", "scaling_factor": 100}, "e": {"type": "double_range"},
    });
    // In the order of their paths: a 0, all 1, all.raw 2, c 3, d 4, e 5.
    let of = |source: &str| read(properties.clone(), source);
    assert_eq!(
        of(r#"{"a":"x"}"#).unwrap(),
        ["0 Text(\"x\")", "1 Text(\"x\")", "2 Text(\"x\")", "3 Text(\"x\")"]
    );
    assert_eq!(of(r#"{"a":[null],"d":null}"#).unwrap(), ["0 Text(\"none\")"]);
    assert_eq!(of(r#"{"d":[5.294,"0.1"]}"#).unwrap(), ["4 Float(5.29)", "4 Float(0.1)"]);
    assert_eq!(
        of(r#"{"e":[{"gte":-1.5,"lte":2},{"lt":1}]}"#).unwrap(),
        ["5 Range { low: -1.5, high: 2.0 }", "5 Range { low: -inf, high: 0.9999999999999999 }"]
    );
    for bad in [r#"{"e":{"gte":2,"lt":2}}"#, r#"{"e":{"from":2}}"#, r#"{"e":7}"#, r#"{"d":"x"}"#] {
        assert!(of(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_a_field_says_of_its_values_is_heeded() {
    let exact = || json!({"l": {"type": "long", "coerce": false}, "d": {"type": "double", "coerce": false}});
    for bad in [r#"{"l":"5"}"#, r#"{"l":5.5}"#, r#"{"d":"5"}"#, r#"{"l":""}"#, r#"{"d":""}"#] {
        assert!(read(exact(), bad).is_err(), "{bad}");
    }
    let good = read(exact(), r#"{"l":5.0,"d":5}"#).unwrap();
    assert_eq!(good, ["1 Integer(5)", "0 Float(5.0)"]);
    let float = || json!({"f": {"type": "float"}, "d": {"type": "double"}});
    for bad in [r#"{"f":1e39}"#, r#"{"f":"-1e39"}"#, r#"{"d":1,"d":2}"#, r#"{"o":{"x":1,"x":1}}"#] {
        assert!(read(float(), bad).is_err(), "{bad}");
    }
    assert_eq!(read(float(), r#"{"f":3.4e38,"d":1e39}"#).unwrap().len(), 2);
    let empty = json!({"f": {"type": "float"}, "l": {"type": "long", "null_value": 7}});
    let good = read(empty, r#"{"f":["",1],"l":""}"#).unwrap();
    assert_eq!(good, ["0 Float(1.0)", "1 Integer(7)"]);
    let half = || json!({"h": {"type": "half_float"}});
    assert_eq!(
        read(half(), r#"{"h":[0.1,"2"]}"#).unwrap(),
        ["0 Float(0.0999755859375)", "0 Float(2.0)"]
    );
    for bad in [r#"{"h":65520}"#, r#"{"h":"-1e9"}"#] {
        assert!(read(half(), bad).is_err(), "{bad}");
    }
    let lenient = json!({"l": {"type": "long", "ignore_malformed": true}});
    assert_eq!(read(lenient.clone(), r#"{"l":["x"," 8",7]}"#).unwrap(), ["0 Integer(7)"]);
    assert!(read(lenient, r#"{"l":["x",7,{}]}"#).is_err(), "an object is no malformed value");
    let spaced = json!({"d": {"type": "double"}, "i": {"type": "integer"}, "l": {"type": "long"}});
    assert!(read(spaced.clone(), r#"{"l":" 1"}"#).is_err());
    assert_eq!(read(spaced.clone(), r#"{"i":" 1 "}"#).unwrap(), ["1 Integer(1)"]);
    assert_eq!(read(spaced, r#"{"d":" 1 "}"#).unwrap(), ["0 Float(1.0)"]);
    let hidden = json!({"t": {"type": "text", "index": false}});
    assert!(read(hidden.clone(), r#"{"t":{"a":1}}"#).is_err());
    assert_eq!(read(hidden, r#"{"t":["a",1]}"#).unwrap(), [""; 0]);
    let unread = json!({"b": {"type": "boolean", "index": false, "doc_values": false}});
    assert_eq!(read(unread, r#"{"b":"yes"}"#).unwrap(), [""; 0]);
    let point = json!({"p": {"type": "geo_point", "ignore_malformed": true}});
    for other in [
        r#""u10hb""#,
        r#"{"lat":"1","lon":"2"}"#,
        r#"{"lat":"1.5 ","lon":2}"#,
        r#"{"geohash":"u10hb"}"#,
        r#"{"type":"Point","coordinates":[1,2]}"#,
        r#"[200,0]"#,
        r#""91,0""#,
    ] {
        let said = read(point.clone(), &format!("{{\"p\":{other}}}")).unwrap_err().reason;
        assert!(said.contains("field [p] of type [geo_point]"), "{other}: {said}");
    }
    for malformed in [
        r#""hello world""#, "true", "\"\"", "[1,2,3,4]", "{}", r#"{"lon":1}"#,
        r#"{"lat":"x","lon":1}"#, r#"{"type":"Point"}"#,
    ] {
        assert_eq!(read(point.clone(), &format!("{{\"p\":{malformed}}}")).unwrap(), [""; 0]);
    }
}

#[test]
fn dates_that_an_earlier_build_took_keep_their_values() {
    let properties = json!({"a": {"type": "date"}, "b": {"type": "date", "ignore_malformed": true},
        "c": {"type": "date", "format": "MM/dd/yyyy||dd MMM yyyy"}});
    let stored = Mapping::stored(&json!({ "properties": properties })).unwrap();
    let mut seen = Vec::new();
    let mut put = |field: usize, value: Indexed<'_>| seen.push(format!("{field} {value:?}"));
    let source = br#"{"a":"2015/01/01 00:00:00","b":"2015/01/01","c":"01/01/2015"}"#;
    stored.read(source, false, &mut put).unwrap();
    let days = ["0 Date(1420070400000)", "2 Date(1420070400000)"];
    assert_eq!(seen, days, "a new document has none at b, either");
    for refused in [r#"{"a":"2015-01-01 00:00:00"}"#, r#"{"c":"01 Jan 2015"}"#] {
        assert!(stored.read(refused.as_bytes(), true, &mut nowhere).is_err(), "{refused}");
    }
}

#[test]
fn numbers_and_texts_are_dates_as_the_format_says() {
    const NEW_YEAR_2015: i64 = 1_420_070_400_000;
    let default = "strict_date_optional_time||epoch_millis";
    for (format, value, ms) in [
        (default, "2015", Some(NEW_YEAR_2015)),
        (default, "1420070400001", Some(NEW_YEAR_2015 + 1)),
        (default, "-2015", Some(-2015)),
        (default, "2015.5", Some(2015)),
        (default, "\"0001-01-01\"", Some(-62_135_596_800_000)),
        (default, "\"9999-12-31T23:59:59.999Z\"", Some(253_402_300_799_999)),
        (default, "-9223372036854775808", Some(i64::MIN)),
        (default, "\"2023-02-30\"", None),
        // Not the fourth of January.
        ("yyyy-dd-MM", "\"2015-01-04\"", Some(NEW_YEAR_2015 + 90 * 86_400_000)),
        ("dd.MM.yyyy||epoch_millis", "\"01.01.2015\"", Some(NEW_YEAR_2015)),
        ("yyyy", "2015", Some(NEW_YEAR_2015)),
        ("yyyy", "20150", None),
        ("basic_date", "20150101", Some(NEW_YEAR_2015)),
        ("epoch_second||strict_date_hour", "\"2015-01-01T00\"", Some(NEW_YEAR_2015)),
        ("epoch_second", "2015", Some(2_015_000)),
        ("epoch_second", "1420070400.5", Some(NEW_YEAR_2015 + 500)),
        ("epoch_second", "\"-0.25\"", Some(-250)),
        ("epoch_millis", "1420070400000.9", Some(NEW_YEAR_2015)),
        ("epoch_millis||epoch_second", "2015", Some(2015)),
        ("yyyy-MM-dd", "1420070400000", None),
    ] {
        let properties = json!({"d": {"type": "date", "format": format}});
        let found = read(properties, &format!("{{\"d\":{value}}}")).ok();
        let expected = ms.map(|ms| vec![format!("0 Date({ms})")]);
        assert_eq!(found, expected, "{value} as {format}");
    }
    let without = read(json!({"d": {"type": "date"}}), r#"{"d":[2015,1420070400001]}"#);
    assert_eq!(without.unwrap(), ["0 Date(1420070400000)", "0 Date(1420070400001)"]);
}

#[test]
fn a_new_document_is_json_throughout() {
    let mapping = json!({
        "dynamic": false, "properties": {"k": {"type": "keyword"}, "d": {"type": "double"}},
    });
    let reader = Mapping::parse(&mapping).unwrap();
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let bad: [&[u8]; 8] = [
        b"{\"x\":\"\xff\"}",
        b"{\"x\":{\"y\":[\"\xed\xa0\x80\"]}}",
        b"{\"\xff\":1}",
        b"{\"x\":{\"\xc3\":1}}",
        br#"{"x":1e400}"#,
        br#"{"x":["\ud800"]}"#,
        br#"{"x":{"\udc00":1}}"#,
        deep.as_bytes(),
    ];
    for source in bad {
        let shown = String::from_utf8_lossy(source);
        let said = reader.read(source, true, &mut nowhere).unwrap_err().reason;
        assert!(said.starts_with("failed to parse: "), "{shown}: {said}");
        // What an earlier build accepted must still be replayed; names were always read.
        let mapped = source.starts_with(b"{\"\xff");
        let replayed = reader.read(source, false, &mut nowhere);
        assert_eq!(replayed.is_err(), mapped, "{shown}");
    }
    for mapped in [&br#"{"k":"\ud800"}"#[..], br#"{"d":1e400}"#, b"{\"k\":\"\xff\"}"] {
        assert!(reader.read(mapped, false, &mut nowhere).is_err());
    }
    for empty in ["", " \t"] {
        let said = reader.read(empty.as_bytes(), true, &mut nowhere).unwrap_err().reason;
        assert!(said.contains("the document is empty; send an object"), "{said}");
    }
    let good = r#"{"x":["\ud83d\ude00", 1e308, -0.0, null, true, {"y": 18446744073709551615}]}"#;
    assert_eq!(reader.read(good.as_bytes(), true, &mut nowhere), Ok(Extent::Whole));
}

#[test]
fn strict_refuses_what_is_not_mapped() {
    let json = json!({"dynamic": "strict", "properties": {
        "a": {"type": "long"}, "open": {"dynamic": false, "properties": {}},
    }});
    let reader = Mapping::parse(&json).unwrap();
    let read = |source: &str, is_new| reader.read(source.as_bytes(), is_new, &mut nowhere);
    assert_eq!(read(r#"{"a":1,"open":{"b":1},"open.c":2}"#, true), Ok(Extent::Whole));
    let refused = read(r#"{"b":1}"#, true).unwrap_err();
    assert_eq!(refused.kind, "strict_dynamic_mapping_exception");
    assert!(refused.reason.contains("dynamic introduction of [b] within [_doc]"), "{refused}");
    assert_eq!(read(r#"{"b":1}"#, false), Ok(Extent::Whole), "it was accepted before");
}

#[test]
fn what_is_no_name_is_none_where_fields_are_not_mapped_either() {
    for dynamic in [json!(true), json!(false), json!("strict")] {
        let objects = json!({"o": {"properties": {}}, "off": {"enabled": false}});
        let reader = Mapping::parse(&json!({"dynamic": dynamic, "properties": objects})).unwrap();
        let read = |source: &str, is_new| reader.read(source.as_bytes(), is_new, &mut nowhere);
        for (source, why) in [
            (r#"{"":1}"#, "cannot be an empty string"),
            (r#"{"o":{"":null}}"#, "cannot be an empty string"),
            (r#"{"a..b":1}"#, "ambiguous: [a..b]"),
            (r#"{".a":1}"#, "ambiguous: [.a]"),
            (r#"{"..":1}"#, "only dots"),
            (r#"{"o. ":1}"#, "only whitespace: ['o. ']"),
            (r#"{"o.":1}"#, "not supported by this engine; write [o]"),
            (r#"{"_id":1}"#, "[_id] is a metadata field"),
        ] {
            let said = read(source, true).unwrap_err().reason;
            assert!(said.contains(why), "{dynamic} {source}: {said}");
            assert_eq!(read(source, false), Ok(Extent::Whole), "it was accepted before");
        }
        let unread = r#"{"off":{"":1,"_id":1,"a..b":2}}"#;
        assert_eq!(read(unread, true), Ok(Extent::Whole), "{dynamic}");
        let of_dot = read(r#"{"a.":1}"#, true);
        assert_eq!(of_dot == Ok(Extent::Whole), dynamic == false, "{dynamic}: {of_dot:?}");
    }
}

#[test]
fn nothing_is_below_a_field_where_fields_are_not_mapped_either() {
    let k = json!({"type": "keyword", "fields": {"t": {"type": "text"}}});
    let properties = json!({"k": k, "o": {"dynamic": false, "properties": {"k": k}}});
    let reader = Mapping::parse(&json!({"properties": properties})).unwrap();
    let read = |source: &str, is_new| reader.read(source.as_bytes(), is_new, &mut nowhere);
    for (source, to, at) in [
        (r#"{"k.x":[]}"#, "k.x", "k"),
        (r#"{"o.k.x":{"y":1}}"#, "o.k.x", "o.k"),
        (r#"{"o":{"k.t":"a"}}"#, "o.k.t", "o.k"),
        (r#"{"o":{"k.x.y":[[]]}}"#, "o.k.x.y", "o.k"),
    ] {
        let said = read(source, true).unwrap_err().reason;
        let why = format!("for field [{to}]. Existing mapping for [{at}] must be of type object");
        assert!(said.contains(&why), "{source}: {said}");
        assert_eq!(read(source, false), Ok(Extent::Whole), "it was accepted before");
    }
    for source in [r#"{"k.x":null}"#, r#"{"o.z.k":1,"o":{"kk.x":1}}"#] {
        assert_eq!(read(source, true), Ok(Extent::Whole), "{source}");
    }
}

#[test]
fn what_was_accepted_is_read_as_far_as_it_fits() {
    let json = json!({"properties": {
        "a": {"type": "long"}, "o": {"properties": {"b": {"type": "date"}}}, "t": {"type": "text"},
    }});
    let mapping = Mapping::parse(&json).unwrap();
    let source = br#"{"a":["x",7],"o":[5,{"b":"never"}],"t":{"u":1}}"#;
    assert!(mapping.read(source, true, &mut nowhere).is_err());
    for (source, values) in [(&source[..], 0), (br#"{"a":"x","t":"words"}"#, 1)] {
        let mut seen = 0;
        mapping.read(source, false, &mut |_, _| seen += 1).unwrap();
        assert_eq!(seen, values);
    }
}
