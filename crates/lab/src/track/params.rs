//! Parameters that are given to a track: `key:value,key:value`, a JSON object, or a file with one.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// The parameters of a track, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(BTreeMap<String, Value>);

impl Params {
    /// Reads what `--track-params` says. The error is a sentence that does not name the option.
    pub fn read(text: &str) -> Result<Params, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Params::default());
        }
        if text.starts_with('{') {
            return Params::json(text);
        }
        if text.ends_with(".json") {
            let said = std::fs::read_to_string(Path::new(text));
            let said = said.map_err(|error| format!("cannot read {text}: {error}"))?;
            return Params::json(&said).map_err(|error| format!("{text}: {error}"));
        }
        let mut found = BTreeMap::new();
        for pair in text.split(',') {
            let Some((name, value)) = pair.split_once(':') else {
                return Err(format!(
                    "\"{pair}\" has no value; write number_of_shards:1,bulk_size:500, or a JSON object"
                ));
            };
            found.insert(name.trim().to_owned(), value_of(value.trim()));
        }
        Ok(Params(found))
    }

    fn json(text: &str) -> Result<Params, String> {
        let read = serde_json::from_str::<BTreeMap<String, Value>>(text);
        read.map(Params)
            .map_err(|error| format!("{error}; write an object, {{\"bulk_size\": 500}}"))
    }

    /// The values as texts.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.0.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The values.
    pub fn values(&self) -> &BTreeMap<String, Value> {
        &self.0
    }
}

/// As Rally reads it: a number, a boolean or null where it looks like one, otherwise a text.
fn value_of(text: &str) -> Value {
    match text {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        "null" | "None" => Value::Null,
        _ => match serde_json::from_str::<serde_json::Number>(text) {
            Ok(number) => Value::Number(number),
            Err(_) => Value::from(text.trim_matches(['"', '\''])),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_pairs_or_an_object() {
        let read = |text: &str| serde_json::to_value(Params::read(text).unwrap().0).unwrap();
        let pairs =
            json!({ "bulk_size": 500, "cluster_health": "yellow", "merge": false, "share": 0.5 });
        assert_eq!(read("bulk_size:500, cluster_health:'yellow',merge:false,share:0.5"), pairs);
        assert_eq!(read("{\"a\": [1]}"), json!({ "a": [1] }));
        assert_eq!(read(""), json!({}));
        let said = Params::read("bulk_size=500").unwrap_err();
        assert!(said.starts_with("\"bulk_size=500\" has no value; write number_of"), "{said}");
        assert!(Params::read("{\"a\"").unwrap_err().contains("object"));
        assert!(Params::read("no/such.json").unwrap_err().contains("no/such.json"));
    }
}
