//! The fields that documents bring, mapped by their first values.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::document::{Extent, nowhere};
use super::dynamic::{Dynamic, adds};
use super::{Mapping, expand_dots};
use crate::json::{self, Member, Node, Value};
use crate::value::iso;
use crate::{DateFormat, Refusal};

/// Formats beside ISO 8601 in which a date is found, as the field has them.
const FOUND_DATES: &str = "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis";

/// Longer texts have no `keyword`.
const KEYWORD_CHARS: u64 = 256;

impl Mapping {
    /// How a field is mapped whose first value this is, neither null nor an array.
    fn type_of(&self, path: &str, value: &Value) -> Json {
        let (kind, default) = match value {
            Value::Bool(_) => ("boolean", json!({"type": "boolean"})),
            Value::Number(number) if number.is_f64() => ("double", json!({"type": "float"})),
            Value::Number(_) => ("long", json!({"type": "long"})),
            Value::Text(text) if !self.ignores_dates && is_iso_date(text) => {
                ("date", json!({"type": "date"}))
            }
            Value::Text(text) if !self.ignores_dates && is_date_with_slashes(text) => {
                ("date", json!({"type": "date", "format": FOUND_DATES}))
            }
            Value::Object(_) => ("object", json!({"type": "object"})),
            Value::Null | Value::List(_) | Value::Text(_) => {
                let keyword = json!({"type": "keyword", "ignore_above": KEYWORD_CHARS});
                ("string", json!({"type": "text", "fields": {"keyword": keyword}}))
            }
        };
        let Some(mut json) = self.templates.iter().find_map(|of| of.mapping(path, kind)) else {
            return default;
        };
        if let Some(mapped) = json.as_object_mut() {
            let own = default.get("type").cloned().unwrap_or_default();
            mapped.entry("type").or_insert(own);
        }
        json
    }

    /// Takes out what stands at a path and below it.
    fn forget(&mut self, path: &str) {
        forget(&mut self.fields, path);
        forget(&mut self.multi, path);
        forget(&mut self.objects, path);
    }
}

fn forget<T>(of: &mut BTreeMap<String, T>, path: &str) {
    of.remove(path);
    // The sign behind the dot ends what begins with the path and a dot.
    of.extract_if(format!("{path}.")..format!("{path}/"), |_, _| true).for_each(drop);
}

/// Whether a text is a date as `strict_date_optional_time` has it. Numbers are not, though a year is one.
fn is_iso_date(text: &str) -> bool {
    text.parse::<f64>().is_err() && iso(text).is_some()
}

fn is_date_with_slashes(text: &str) -> bool {
    let is_shaped = text.as_bytes().get(4) == Some(&b'/');
    let format = DateFormat::parse("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd");
    is_shaped && format.is_ok_and(|format| format.read_ms(text).is_some())
}

/// The fields that the documents of a request bring, each read after the ones before. What a document costs does not
/// grow with the fields that those before it brought.
pub struct NewFields<'a> {
    mapping: &'a Mapping,
    /// With the fields of the documents before. They have no numbers: nothing is indexed by it.
    grown: Option<Mapping>,
}

impl<'a> NewFields<'a> {
    /// Of documents that are read by this mapping.
    pub fn of(mapping: &'a Mapping) -> Self {
        NewFields { mapping, grown: None }
    }

    /// Maps the fields of a document that neither the mapping nor the documents before it have. Answers with what is to
    /// be merged into the mappings, none where nothing is; a document that does not fit even then adds nothing.
    pub fn meet(&mut self, source: &[u8]) -> std::result::Result<Option<Json>, Refusal> {
        let before = self.grown.as_ref().unwrap_or(self.mapping);
        if before.read(source, true, &mut nowhere)? == Extent::Whole {
            return Ok(None);
        }
        let document = json::document(source, None).map_err(Refusal::parsing)?;
        let mapping = self.grown.get_or_insert_with(|| self.mapping.clone());
        let (put, written) = (BTreeMap::new(), json::Written::new(source));
        let mut growing = Growing { mapping, put, written };
        let taken = match &document {
            Value::Object(members) => growing.members("", members),
            _ => Ok(()),
        };
        let Growing { mapping, put, .. } = growing;
        let read = taken.and_then(|()| mapping.read(source, true, &mut nowhere));
        if let Err(refusal) = read {
            put.keys().for_each(|path| mapping.forget(path));
            return Err(refusal);
        }
        let mut added = json!({ "properties": put });
        expand_dots(&mut added).map_err(Refusal::parsing)?;
        Ok(Some(added))
    }
}

/// A mapping that takes the fields of one document.
struct Growing<'a> {
    mapping: &'a mut Mapping,
    /// What it took: how each path is mapped.
    put: BTreeMap<String, Json>,
    written: json::Written<'a>,
}

impl Growing<'_> {
    fn members(&mut self, above: &str, members: &[Member<'_>]) -> std::result::Result<(), Refusal> {
        members.iter().try_for_each(|Member { name, node, .. }| {
            let path = json::join(above, name);
            self.value(&path, node)
        })
    }

    fn value(&mut self, path: &str, node: &Node<'_>) -> std::result::Result<(), Refusal> {
        let value = &node.value;
        if let Value::List(items) = value {
            return items.iter().try_for_each(|item| self.value(path, item));
        }
        let is_mapped = self.mapping.field(path).is_some_and(|field| !field.is_multi);
        if !adds(value) || (is_mapped && !self.put.contains_key(path)) {
            return Ok(());
        }
        if is_mapped || !self.mapping.objects.contains_key(path) {
            if !is_mapped && self.mapping.dynamic_within(path) != Dynamic::True {
                return Ok(());
            }
            // A dot in a name stands for an object.
            for (end, _) in path.match_indices('.') {
                self.object(&path[..end], path)?;
            }
            // `-0` and what has more than 64 bits are whole numbers in the field, and not as they are read here.
            let whole = Value::Number(0.into());
            let first = if self.written.is_whole(node) { &whole } else { value };
            self.put(path, self.mapping.type_of(path, first))?;
        }
        match value {
            Value::Object(members) if self.mapping.objects.contains_key(path) => {
                self.members(path, members)
            }
            _ => Ok(()),
        }
    }

    /// Has an object at a path, on the way to a field.
    fn object(&mut self, path: &str, to: &str) -> std::result::Result<(), Refusal> {
        self.mapping.check_object(path, to)?;
        match self.mapping.objects.contains_key(path) {
            true => Ok(()),
            false => self.put(path, json!({"type": "object"})),
        }
    }

    /// Maps what stands at a path, within objects that are mapped. As in the field all values that a document has there
    /// are mapped alike, so that none is cut to the type of the first.
    fn put(&mut self, path: &str, json: Json) -> std::result::Result<(), Refusal> {
        if let Some(first) = self.put.get(path) {
            return if *first == json { Ok(()) } else { Err(other_type(path, first, &json)) };
        }
        let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.put.insert(path.to_owned(), json.clone());
        self.mapping.add(above, Some(&json!({ name: json })), true).map_err(Refusal::parsing)
    }
}

fn other_type(path: &str, first: &Json, json: &Json) -> Refusal {
    let name = |json: &Json| json["type"].as_str().unwrap_or("object").to_owned();
    let (from, to) = (name(first), name(json));
    let change = match from == to {
        // Dynamic templates may map two kinds of values to one type.
        true => format!("to type [{to}] with other parameters"),
        false => format!("from type [{from}] to [{to}]"),
    };
    let reason = format!(
        "mapper [{path}] cannot be changed {change}; map the field first, or send values of one type"
    );
    Refusal { status: 400, kind: "illegal_argument_exception".to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(mapping: Json, sources: &[&str]) -> Vec<std::result::Result<Option<Json>, String>> {
        let mapping = Mapping::parse(&mapping).unwrap();
        let mut fields = NewFields::of(&mapping);
        let meet = |source: &&str| fields.meet(source.as_bytes()).map_err(|refusal| refusal.reason);
        sources.iter().map(meet).collect()
    }

    fn brings(mapping: Json, source: &str) -> Json {
        met(mapping, &[source]).remove(0).unwrap().unwrap_or_default()
    }

    #[test]
    fn a_field_has_the_type_of_its_first_value() {
        let text = json!({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}});
        let found_date = json!({"type": "date", "format": FOUND_DATES});
        let texts = [
            r#""word""#, r#""""#, r#""12""#, r#""2020""#, r#""2020-02-30""#,
            r#""2020-05-06 07:08:09""#, r#""20-05-06""#,
        ];
        let floats = [
            "[0.5, 1.0, null]", "[-0.0, 1.5, -0e1, \n-1e19]", "-0.0", "-0e0", "1.0", "1e20",
            "100000000000000000000.0",
        ];
        let longs = ["1", "-5", "-0", "[ -0, 2]", "[-0, -0 ,\n-0]", "[null, [], [3]]"];
        let dates = [r#""2020-05""#, r#""2020-05-06""#, r#""2020-05-06T07:08:09.123+02:00""#];
        for (expected, values) in [
            (&text, &texts[..]),
            (&json!({"type": "float"}), &floats),
            (&json!({"type": "long"}), &longs),
            (&json!({"type": "date"}), &dates),
            (&found_date, &[r#""2020/05/06""#, r#""2020/05/06 07:08:09""#]),
            (&json!({"type": "boolean"}), &["true"]),
            (&json!({"type": "object"}), &["{}"]),
        ] {
            for value in values {
                let found = brings(json!({}), &format!("{{\"f\":{value}}}"));
                assert_eq!(found, json!({"properties": {"f": expected}}), "{value}");
            }
        }
        for nothing in ["null", "[]", "[null,[]]"] {
            assert_eq!(brings(json!({}), &format!("{{\"f\":{nothing}}}")), Json::Null);
        }
        let undated = json!({"date_detection": false});
        assert_eq!(brings(undated, r#"{"f":"2020-05-06"}"#), json!({"properties": {"f": text}}));
    }

    #[test]
    fn values_of_one_document_are_mapped_alike() {
        for (values, from, to) in [
            ("[1,2.5]", "long", "float"),
            ("[2.5,1]", "float", "long"),
            ("[-0,2.5]", "long", "float"),
            ("[\"a\",1]", "text", "long"),
            ("[1,\"2\"]", "long", "text"),
            ("[null,[true],\"true\"]", "boolean", "text"),
            ("[\"a\",\"2020-05-06\"]", "text", "date"),
            ("[1,{}]", "long", "object"),
        ] {
            for source in
                [format!("{{\"f\":{values}}}"), format!("{{\"o\":{{\"f\":{values}}},\"a\":1}}")]
            {
                let said = met(json!({}), &[&source]).remove(0).unwrap_err();
                let expected = format!("f] cannot be changed from type [{from}] to [{to}]");
                assert!(said.contains(&expected), "{source}: {said}");
            }
        }
        let objects = met(json!({}), &[r#"{"o":[{"f":1},{"f":2.5}]}"#]).remove(0);
        assert!(objects.unwrap_err().starts_with("mapper [o.f] cannot be changed"));
        let keywords =
            json!({"dynamic_templates": [{"k": {"match": "f", "mapping": {"type": "keyword"}}}]});
        let all = brings(keywords, r#"{"f":["a",1,2.5]}"#);
        assert_eq!(all, json!({"properties": {"f": {"type": "keyword"}}}));
        let doubles = json!({"dynamic_templates": [
            {"whole": {"match_mapping_type": "long", "mapping": {"type": "double"}}},
            {"other": {"match_mapping_type": "double", "mapping": {"type": "double", "coerce": true}}},
        ]});
        let said = met(doubles, &[r#"{"f":[1,2.5]}"#]).remove(0).unwrap_err();
        assert!(said.contains("[f] cannot be changed to type [double] with other"), "{said}");
        let points = json!({"dynamic_templates": [{"p": {"match": "p*", "mapping": {"type": "geo_point"}}}]});
        for source in [r#"{"p":[{"lat":1,"lon":2.5},{"lat":0.5,"lon":2}]}"#, r#"{"p":[1,2.5]}"#] {
            let of = brings(points.clone(), source);
            assert_eq!(of, json!({"properties": {"p": {"type": "geo_point"}}}), "{source}");
        }
    }

    #[test]
    fn objects_and_dots_are_the_same() {
        let expected = json!({"properties": {"a": {"properties": {
            "b": {"properties": {"c": {"type": "long"}}}, "d": {"type": "boolean"},
        }}}});
        for source in [
            r#"{"a":{"b":{"c":1},"d":true}}"#,
            r#"{"a.b.c":1,"a.d":true}"#,
            r#"{"a":[{"b.c":1},{"d":[true]}]}"#,
        ] {
            assert_eq!(brings(json!({}), source), expected, "{source}");
        }
        let known = json!({"properties": {"a": {"properties": {"x": {"type": "long"}}}}});
        assert_eq!(brings(known, r#"{"a":{"b":{"c":1},"d":false}}"#), expected);
    }

    #[test]
    fn a_document_that_does_not_fit_adds_nothing() {
        let text = json!({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}});
        let many = format!("{{\"{}\":1}}", ["a"; 50_000].join("."));
        let deep = format!("{}1{}", "{\"a\":".repeat(21), "}".repeat(21));
        let documents = [
            (r#"{"l":"x","new":1}"#, Err("[x] is no value for field [l] of type [long]")),
            (r#"{"x":[1,"word"]}"#, Err("mapper [x] cannot be changed from type [long] to [text]")),
            (r#"{"x":"word"}"#, Ok(Some(json!({"properties": {"x": text}})))),
            (r#"{"x":5,"y":5}"#, Ok(Some(json!({"properties": {"y": {"type": "long"}}})))),
            (r#"{"y":"word","z":1}"#, Err("[word] is no value for field [y] of type [long]")),
            (
                r#"{"x.y":1}"#,
                Err("Existing mapping for [x] must be of type object but found [text]"),
            ),
            (
                r#"{"l.m":1}"#,
                Err("Existing mapping for [l] must be of type object but found [long]"),
            ),
            (r#"{"":1}"#, Err("field name cannot be an empty string")),
            (r#"{"a..b":1}"#, Err("makes object resolution ambiguous: [a..b]")),
            (r#"{"_id":"x"}"#, Err("metadata field")),
            (r#"{"big":18446744073709551615}"#, Err("is no value for field [big] of type [long]")),
            (r#"{"y":[null]}"#, Ok(None)),
            (r#"{"-x":1}"#, Err("does not begin with")),
            (r#"{"a\u0000b":1}"#, Err("control characters")),
            (&many, Err("Limit of mapping depth [20] has been exceeded")),
            (&deep, Err("Limit of mapping depth [20] has been exceeded")),
            (
                r#"{"huge":-100000000000000000000}"#,
                Err("is no value for field [huge] of type [long]"),
            ),
        ];
        let said = met(
            json!({"properties": {"l": {"type": "long"}}}),
            &documents.each_ref().map(|(source, _)| *source),
        );
        for ((source, expected), said) in documents.into_iter().zip(said) {
            match expected {
                Ok(_) => assert_eq!(said, expected.map_err(str::to_owned), "{source}"),
                Err(why) => {
                    let refused = said.unwrap_err();
                    assert!(refused.contains(why), "{source}: {refused}");
                }
            }
        }
    }

    #[test]
    fn templates_say_how_fields_are_mapped() {
        let mapping = json!({"dynamic_templates": [
            {"ips": {"match": "ip", "match_mapping_type": "string", "mapping": {"type": "ip"}}},
            {"named": {"path_match": "tags.*", "unmatch": "x*", "mapping": {"type": "{dynamic_type}", "copy_to": "all"}}},
            {"strings": {"match_mapping_type": "string", "mapping": {"type": "keyword", "ignore_above": 9}}},
        ], "properties": {"all": {"type": "keyword"}, "tags": {"properties": {}}}});
        let source =
            r#"{"a":"x","ip":"10.0.0.1","o":{"ip":"::1"},"tags":{"n":5,"t":"a","x1":5},"f":1.5}"#;
        let keyword = json!({"type": "keyword", "ignore_above": 9});
        assert_eq!(
            brings(mapping.clone(), source),
            json!({"properties": {
                "a": keyword, "f": {"type": "float"}, "ip": {"type": "ip"},
                "o": {"properties": {"ip": {"type": "ip"}}},
                "tags": {"properties": {
                    "n": {"type": "long", "copy_to": "all"}, "t": {"type": "text", "copy_to": "all"},
                    "x1": {"type": "long"},
                }},
            }})
        );
        let fields = json!({"{name}_kw": {"type": "keyword"}});
        let template =
            json!({"match": "*", "mapping": {"type": "{dynamicType}", "fields": fields}});
        let named = json!({"type": "text", "fields": {"z_kw": {"type": "keyword"}}});
        assert_eq!(
            brings(json!({"dynamic_templates": [{"t": template}]}), r#"{"z":"u"}"#),
            json!({"properties": {"z": named}})
        );
        let refused = |template: Json| {
            Mapping::parse(&json!({"dynamic_templates": [{"t": template}]}))
                .unwrap_err()
                .to_string()
        };
        assert!(refused(json!({"match": "a"})).contains("no [mapping]"));
        assert!(
            refused(json!({"match_pattern": "regex", "mapping": {}})).contains("[match_pattern]")
        );
    }

    /// Where no value that a template is for could be mapped by it, it is refused before documents come.
    #[test]
    fn templates_that_would_refuse_every_document_are_refused_by_name() {
        for (template, why) in [
            (json!({"path_match": "*", "mapping": {"type": "nested"}}), "objects are flattened"),
            (json!({"match": "a", "mapping": {"type": "keywrd"}}), "did you mean \"keyword\""),
            (json!({"match": "*", "mapping": {"type": "object", "enabled": 0}}), "enabled"),
            (json!({"unmatch": "a", "mapping": {}}), "it must have [match], [path_match] or"),
            (json!({"match_mapping_type": "text", "mapping": {"type": "long"}}), "called [text]"),
            (json!({"match_mapping_type": "object", "mapping": {"index": false}}), "index"),
            (
                json!({"match": "*", "mapping": {"type": "text", "fields": {"f": {"type": "join"}}}}),
                "join",
            ),
        ] {
            let first = json!({"match": "*", "mapping": {}});
            let json = json!({"dynamic_templates": [{"first": first}, {"t": template}]});
            let said = Mapping::parse(&json).unwrap_err().to_string();
            let named = said.contains("dynamic template [t] has invalid content [{");
            assert!(named && said.contains(why), "{template}: {said}");
            assert!(Mapping::stored(&json).is_ok(), "an earlier build accepted it: {template}");
        }
        for template in [
            json!({"match": "*", "mapping": {"index": false}}),
            json!({"match": "*", "mapping": {"type": "object", "enabled": false}}),
            json!({"match": "*", "mapping": {"type": "{dynamic_type}", "copy_to": "{name}_too"}}),
            json!({"match_mapping_type": "*", "mapping": {"type": "scaled_float", "scaling_factor": 10}}),
        ] {
            let json = json!({"dynamic_templates": [{"t": template}]});
            assert!(Mapping::parse(&json).is_ok(), "{template}");
        }
    }

    #[test]
    fn nothing_below_an_object_that_is_not_enabled_is_looked_at() {
        let off = json!({"type": "object", "enabled": false});
        let mapping = json!({"properties": {
            "a": {"enabled": false},
            "b": {"enabled": "false", "properties": {"n": {"type": "long"}, "c": {"dynamic": true, "properties": {}}}},
        }});
        let source = r#"{"a":{"x":1},"b":[{"n":"none","c":{"x":1}},"text"],"d":1}"#;
        let expected = json!({"properties": {"d": {"type": "long"}}});
        assert_eq!(brings(mapping.clone(), source), expected);
        let read = Mapping::parse(&mapping).unwrap().read(source.as_bytes(), false, &mut nowhere);
        assert_eq!(read, Ok(Extent::Whole));
        let said = Mapping::parse(&json!({"properties": {"a": {"type": "object", "enabled": 1}}}));
        assert!(said.unwrap_err().to_string().contains("\"enabled\" is true or false, not 1"));
        assert_eq!(brings(json!({"enabled": false}), source), Json::Null);
        let template = json!({"match_mapping_type": "object", "mapping": off});
        let all = brings(json!({"dynamic_templates": [{"t": template}]}), r#"{"o":{"x":1}}"#);
        assert_eq!(all, json!({"properties": {"o": off}}));
    }

    #[test]
    fn each_object_says_whether_it_grows() {
        let mapping = json!({"dynamic": false, "properties": {
            "open": {"dynamic": true, "properties": {"shut": {"dynamic": "false", "properties": {}}}},
            "strict": {"dynamic": "strict", "properties": {}},
        }});
        assert!(Mapping::parse(&mapping).unwrap().may_grow());
        let source = r#"{"a":1,"open":{"b":1,"shut":{"c":1}},"open.shut.d":1}"#;
        let expected = json!({"properties": {"open": {"properties": {"b": {"type": "long"}}}}});
        assert_eq!(brings(mapping.clone(), source), expected);
        let refused = met(mapping, &[r#"{"open":{"b":1},"strict":{"c":null}}"#]).remove(0);
        assert!(refused.unwrap_err().contains("introduction of [c] within [strict]"));
        assert!(!Mapping::parse(&json!({"dynamic": "strict"})).unwrap().may_grow());
    }
}
