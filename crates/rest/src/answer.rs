//! Answers, and how they are written.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::error::{bad_request, error_json};
use super::filter::Filter;
use super::message::RestResponse;
use super::parameters::Query;
use engine::transport::Result;

const JSON: &str = "application/json; charset=UTF-8";
const TEXT: &str = "text/plain; charset=UTF-8";

/// What a handler answers.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    /// HTTP status.
    pub(super) status: u16,
    pub(super) body: Body,
    /// The path of a document that was created, for the header `Location`.
    pub(super) location: Option<String>,
}

/// The body of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    /// JSON.
    Json(Value),
    /// JSON that is written already.
    Written(Vec<u8>),
    /// Text for people.
    Text(String),
}

impl Reply {
    pub(super) fn with(status: u16, value: Value) -> Reply {
        Reply { status, body: Body::Json(value), location: None }
    }

    pub(super) fn written(status: u16, json: Vec<u8>) -> Reply {
        Reply { status, body: Body::Written(json), location: None }
    }

    pub(super) fn text(text: String) -> Reply {
        Reply { status: 200, body: Body::Text(text), location: None }
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Reply {
        Reply::with(200, value)
    }
}

/// An object of these members, of two by one name the later. Each `collect` into an object has the compiler write a
/// sort for its own kind of iterator.
pub(super) fn object_of(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut object = Map::new();
    object.extend(members);
    Value::Object(object)
}

/// An object with one more member, which is written already.
pub(super) fn with_member(object: &Value, name: &str, member: &[u8]) -> Vec<u8> {
    let mut text = object.to_string().into_bytes();
    text.pop();
    text.extend_from_slice(format!(",\"{name}\":").as_bytes());
    text.extend_from_slice(member);
    text.push(b'}');
    text
}

/// How an answer is to look.
#[derive(Debug, Default)]
pub(super) struct Look {
    pretty: bool,
    filter: Option<Filter>,
}

impl Look {
    /// Reads it from the request. `format` is JSON but for `_cat`, which reads it itself.
    pub(super) fn read(query: &Query, is_cat: bool) -> Result<Look> {
        match query.get("format") {
            None | Some("" | "json") => {}
            Some(_) if is_cat => {}
            Some(other) => {
                return Err(bad_request(format!(
                    "format [{other}] is not written here; ask for [json]"
                )));
            }
        }
        let filter = query.get("filter_path").filter(|paths| !paths.is_empty()).map(Filter::parse);
        Ok(Look { pretty: query.flag("pretty", false)?, filter })
    }

    fn json(&self, value: Value) -> Vec<u8> {
        let value = match &self.filter {
            Some(filter) => filter.apply(value),
            None => value,
        };
        let written = if self.pretty {
            serde_json::to_vec_pretty(&value)
        } else {
            serde_json::to_vec(&value)
        };
        let mut text = written.expect("a JSON value can be written");
        if self.pretty {
            text.push(b'\n');
        }
        text
    }

    /// Writes an answer. A `HEAD` gets none of its body.
    pub(super) fn render(&self, mut reply: Result<Reply>, is_head: bool) -> RestResponse {
        let location = reply.as_mut().ok().and_then(|reply| reply.location.take());
        let plain = !self.pretty && self.filter.is_none();
        let (status, content_type, body) = match reply {
            // An error is sent whole: a filter that hides it helps nobody.
            Err(failure) => {
                let look = Look { pretty: self.pretty, filter: None };
                (failure.status, JSON, look.json(error_json(&failure)))
            }
            Ok(Reply { status, body: Body::Json(value), .. }) => (status, JSON, self.json(value)),
            Ok(Reply { status, body: Body::Written(json), .. }) if plain => (status, JSON, json),
            Ok(Reply { status, body: Body::Written(json), .. }) => {
                match serde_json::from_slice(&json) {
                    Ok(value) => (status, JSON, self.json(value)),
                    // Documents may be nested as deep as can be read, and lie deeper in the answer.
                    Err(_) => (status, JSON, json),
                }
            }
            Ok(Reply { status, body: Body::Text(text), .. }) => (status, TEXT, text.into_bytes()),
        };
        let body = if is_head { Bytes::new() } else { Bytes::from(body) };
        RestResponse { status, content_type: content_type.to_owned(), location, body }
    }
}

#[cfg(test)]
mod tests {
    use engine::transport::Failure;
    use serde_json::json;

    use super::*;

    fn look(query: &str) -> Look {
        Look::read(&Query::parse(query).unwrap(), false).unwrap()
    }

    #[test]
    fn writes_plain_pretty_and_filtered() {
        let reply = || Ok(Reply::from(json!({"a": 1, "b": 2})));
        assert_eq!(look("").render(reply(), false).body, "{\"a\":1,\"b\":2}");
        assert_eq!(look("pretty&filter_path=b").render(reply(), false).body, "{\n  \"b\": 2\n}\n");
        let written = || Ok(Reply::written(201, b"{\"a\":1,\"b\":2}".to_vec()));
        let rendered = look("filter_path=a").render(written(), false);
        assert_eq!((rendered.status, rendered.body), (201, Bytes::from_static(b"{\"a\":1}")));
        assert!(look("").render(written(), true).body.is_empty());
    }

    #[test]
    fn an_error_is_never_filtered() {
        let failure = Failure::no_such_index("a");
        let rendered = look("filter_path=took").render(Err(failure), false);
        assert_eq!(rendered.status, 404);
        assert!(String::from_utf8_lossy(&rendered.body).contains("no such index [a]"));
        let yaml = Query::parse("format=yaml").unwrap();
        assert!(Look::read(&yaml, false).unwrap_err().reason.contains("[yaml]"));
        assert!(Look::read(&yaml, true).is_ok());
    }
}
