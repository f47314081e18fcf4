//! Partial updates: what a body changes in a document. An update is a read of the primary and a write that is refused
//! where another came in between, so no copy knows of it but by the document that is written.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::error::{bad_body, bad_request, invalid, not_supported};
use engine::transport::{Failure, Result};

/// The body of an update, read.
pub(super) struct PartialUpdate<'a> {
    doc: Option<&'a str>,
    upsert: Option<&'a str>,
    doc_as_upsert: bool,
    detect_noop: bool,
    /// `_source`: what of the document is answered.
    pub(super) shown: Option<&'a str>,
    /// The name of a part that is about a script.
    script: Option<String>,
}

/// What an update comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// The document is as it is to be.
    Nothing,
    /// It is to be replaced by this.
    Replace(Bytes),
    /// There is none, and this is to be created.
    Create(Bytes),
}

const NO_OBJECT: &str = "the update is no JSON object, or has a name twice";

/// Objects within each other that are merged, at most. A document is not nested deeper.
const MAX_DEPTH: usize = 128;

impl<'a> PartialUpdate<'a> {
    /// Reads `{"doc", "upsert", "doc_as_upsert", "detect_noop", "_source"}`; where it does not say, `doc_as_upsert` is
    /// that of the request.
    pub(super) fn read(body: &'a [u8], doc_as_upsert: bool) -> Result<PartialUpdate<'a>> {
        let parts = std::str::from_utf8(body).ok().and_then(members);
        let parts = parts.ok_or_else(|| bad_body(NO_OBJECT))?;
        let mut update = PartialUpdate {
            doc: None,
            upsert: None,
            doc_as_upsert,
            detect_noop: true,
            shown: None,
            script: None,
        };
        for (name, part) in parts {
            // As in the field the words may be texts.
            let flag = || {
                let flag = part.trim_matches('"').parse::<bool>();
                flag.map_err(|_| bad_body(format!("[{name}] of an update is true or false")))
            };
            match name.as_str() {
                "doc" => update.doc = Some(object(&name, part)?),
                "upsert" => update.upsert = Some(object(&name, part)?),
                "doc_as_upsert" => update.doc_as_upsert = flag()?,
                "detect_noop" => update.detect_noop = flag()?,
                "_source" => update.shown = Some(part),
                "script" | "scripted_upsert" | "lang" | "params" => update.script = Some(name),
                _ => {
                    return Err(bad_body(format!(
                        "unknown field [{name}] of an update; write doc, upsert, doc_as_upsert, detect_noop or _source"
                    )));
                }
            }
        }
        match update.doc.is_some() || update.script.is_some() {
            true => Ok(update),
            false => Err(invalid("script or doc is missing")),
        }
    }

    /// Refuses scripts by name.
    pub(super) fn without_script(self) -> Result<PartialUpdate<'a>> {
        match &self.script {
            None => Ok(self),
            Some(name) => {
                let instead = "send what changes as [doc]";
                Err(not_supported(&format!("[{name}] of an update"), instead))
            }
        }
    }

    /// Refuses to answer with the document, as a bulk does.
    pub(super) fn check_shows_nothing(&self) -> Result<()> {
        match self.shown {
            None | Some("false") => Ok(()),
            Some(_) => Err(not_supported("[_source] of a bulk", "read the document after it")),
        }
    }

    /// Whether it creates a document where there is none.
    pub(super) fn may_create(&self) -> bool {
        self.upsert.is_some() || self.doc_as_upsert
    }

    /// What becomes of a document; none is there where `source` is none. Fails where the document is missing and
    /// nothing is to be put in its place.
    pub(super) fn apply(&self, id: &str, source: Option<&[u8]>) -> Result<Change> {
        let doc = self.doc.unwrap_or("{}");
        let Some(source) = source else {
            // As in the field `doc_as_upsert` stands above `upsert`.
            let upsert = if self.doc_as_upsert { Some(doc) } else { self.upsert };
            let missing = || {
                Failure::new(404, "document_missing_exception", format!("[{id}]: document missing"))
            };
            let created = upsert.ok_or_else(missing)?;
            return Ok(Change::Create(Bytes::copy_from_slice(created.as_bytes())));
        };
        if source.is_empty() {
            let why = "the virtual world keeps sizes and no documents; send whole documents";
            return Err(bad_request(why));
        }
        let source = std::str::from_utf8(source).map_err(|_| unreadable(id))?;
        let merged = merge(source, doc, 0).ok_or_else(|| unreadable(id))?;
        Ok(match merged {
            None if self.detect_noop => Change::Nothing,
            None => Change::Replace(Bytes::copy_from_slice(source.as_bytes())),
            Some(merged) => Change::Replace(Bytes::from(merged)),
        })
    }
}

fn unreadable(id: &str) -> Failure {
    let why =
        "the document cannot be merged, or [doc] has a name twice in an object; send it whole";
    bad_request(format!("[{id}]: {why}"))
}

fn object<'a>(name: &str, part: &'a str) -> Result<&'a str> {
    match part.starts_with('{') {
        true => Ok(part),
        false => Err(bad_body(format!("[{name}] of an update is an object"))),
    }
}

/// An object with the members of another merged in: objects are merged, all else is replaced. None where that changes
/// nothing. What is not touched stays as it was written, to the digit.
///
/// Outside stands none where one of them is no object, or is nested too deep.
fn merge(into: &str, from: &str, depth: usize) -> Option<Option<String>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let (current, added) = (members(into)?, members(from)?);
    let mut changed: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in added {
        let merged = match current.get(&name).copied() {
            Some(before) if before.starts_with('{') && value.starts_with('{') => {
                merge(before, value, depth + 1)?
            }
            Some(before) if is_same(before, value) => None,
            _ => Some(value.to_owned()),
        };
        if let Some(merged) = merged {
            changed.insert(name, merged);
        }
    }
    if changed.is_empty() {
        return Some(None);
    }
    let mut text = String::with_capacity(into.len() + from.len());
    let new = changed.keys().filter(|name| !current.contains_key(*name));
    for name in current.keys().chain(new) {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        let kept = || current.get(name).copied().unwrap_or("null");
        text.push_str(changed.get(name).map_or_else(kept, String::as_str));
    }
    text.push('}');
    Some(Some(text))
}

/// The members of an object, each value as it is written; none where the text is no object, or has a name twice.
fn members(text: &str) -> Option<BTreeMap<String, &str>> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut members = BTreeMap::new();
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let (mut name, mut from) = (String::new(), 0);
    for (at, byte) in inside.bytes().enumerate().chain([(inside.len(), b',')]) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                name = serde_json::from_str(&inside[from..at]).ok()?;
                from = at + 1;
            }
            b',' if depth == 0 && !inside[from..at].trim().is_empty() => {
                let before = members.insert(std::mem::take(&mut name), inside[from..at].trim());
                if before.is_some() {
                    return None;
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    Some(members)
}

/// Whether two values are the same. Numbers that a float does not hold are compared by their digits.
fn is_same(a: &str, b: &str) -> bool {
    let is_exact = |text: &str| {
        let mut digits = 0;
        text.bytes().all(|byte| {
            digits = if byte.is_ascii_digit() || byte == b'.' { digits + 1 } else { 0 };
            digits <= 15
        })
    };
    let value = |text| serde_json::from_str::<Value>(text).ok();
    a == b || is_exact(a) && is_exact(b) && value(a).is_some_and(|a| Some(a) == value(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(body: &str, source: Option<&str>) -> Result<Change, String> {
        let update =
            PartialUpdate::read(body.as_bytes(), false).and_then(PartialUpdate::without_script);
        let update = update.map_err(|failure| failure.reason)?;
        update.apply("x", source.map(str::as_bytes)).map_err(|failure| failure.reason)
    }

    fn replaced(text: &'static str) -> Result<Change, String> {
        Ok(Change::Replace(Bytes::from_static(text.as_bytes())))
    }

    /// Updates that nobody would write, each of a document that nobody would: a line each.
    #[test]
    fn updates() {
        let deep = |leaf: u8| format!("{}{leaf}{}", "{\"a\":".repeat(100), "}".repeat(100));
        let deep = format!("{{\"doc\":{}}}\n{}", deep(1), deep(2));
        let samples: [&[u8]; 4] = [
            b"{\"doc\":{\"a\":{\"x\":2,\"z\":[3]},\"n\":null}}\n{\"a\":{\"x\":1,\"y\":1.50},\"l\":[1,2]}",
            b"{\"doc\":{\"q\\\"\":\"\\\\\"},\"upsert\":{\"b\":2},\"detect_noop\":false}\n{\"q\\\"\":0}",
            b"{\"doc\":{\"a\":123456789012345678901},\"doc_as_upsert\":true}\n{}",
            deep.as_bytes(),
        ];
        let budget = testbed::fuzz::Budget::default();
        testbed::fuzz::search("partial updates", &samples, 5_000, budget, |bytes| {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let source = bytes.get(line.len() + 1..).unwrap_or_default();
            let Ok(update) = PartialUpdate::read(line, false) else { return };
            let is_object =
                |text: &[u8]| serde_json::from_slice::<Value>(text).is_ok_and(|v| v.is_object());
            // A number that is none is written as it came, and refused as that of any document is.
            if let Ok(Change::Replace(merged)) = update.apply("x", Some(source))
                && is_object(line)
                && is_object(source)
            {
                assert!(is_object(&merged), "{}", merged.escape_ascii());
            }
            let _ = update.apply("x", None);
        });
    }

    #[test]
    fn merges_objects_and_replaces_the_rest() {
        let body = r#"{"doc":{"a":{"x":2,"z":[3]},"l":[1],"n":null,"q\"":0}}"#;
        let source = r#"{"a":{"x":1,"y":1.50},"l":[1,2],"big":123456789012345678901234567890}"#;
        assert_eq!(
            applied(body, Some(source)),
            replaced(
                r#"{"a":{"x":2,"y":1.50,"z":[3]},"big":123456789012345678901234567890,"l":[1],"n":null,"q\"":0}"#
            )
        );
        assert_eq!(
            applied(r#"{"doc":{"a":{"b":1}}}"#, Some(r#"{"a":7}"#)),
            replaced(r#"{"a":{"b":1}}"#)
        );
        assert_eq!(applied(r#"{"doc":{"a":7}}"#, Some(r#"{"a":{"b":1}}"#)), replaced(r#"{"a":7}"#));
    }

    #[test]
    fn what_changes_nothing_is_found_out() {
        let source = Some(r#"{"a":{"x":1.0},"l":[1, 2]}"#);
        assert_eq!(applied(r#"{"doc":{"l":[1,2],"a":{"x":1.0}}}"#, source), Ok(Change::Nothing));
        assert_eq!(applied(r#"{"doc":{}}"#, source), Ok(Change::Nothing));
        let forced = applied(r#"{"doc":{},"detect_noop":false}"#, source);
        assert_eq!(forced, replaced(r#"{"a":{"x":1.0},"l":[1, 2]}"#));
        // As floats the two are one.
        let (one, other) = ("123456789012345678901", "123456789012345678902");
        let changed =
            applied(&format!("{{\"doc\":{{\"n\":{one}}}}}"), Some(&format!("{{\"n\":{other}}}")));
        assert_ne!(changed, Ok(Change::Nothing));
    }

    #[test]
    fn a_missing_document_is_created_where_that_is_asked_for() {
        let created = |text: &'static str| Ok(Change::Create(Bytes::from_static(text.as_bytes())));
        assert_eq!(applied(r#"{"doc":{"a":1},"upsert":{"b":2}}"#, None), created(r#"{"b":2}"#));
        assert_eq!(applied(r#"{"doc":{"a":1},"doc_as_upsert":true}"#, None), created(r#"{"a":1}"#));
        let both = r#"{"doc":{"a":1},"upsert":{"b":2},"doc_as_upsert":true}"#;
        assert_eq!(applied(both, None), created(r#"{"a":1}"#));
        assert!(applied(r#"{"doc":{"a":1}}"#, None).unwrap_err().contains("document missing"));
        let text = r#"{"doc":{"a":1},"doc_as_upsert":"true"}"#;
        assert_eq!(applied(text, None), created(r#"{"a":1}"#));
    }

    #[test]
    fn refuses_what_is_no_update() {
        for (body, why) in [
            ("{}", "script or doc is missing"),
            ("[]", "no JSON object"),
            (r#"{"doc":{"a":1},"doc":{"a":2}}"#, "has a name twice"),
            (r#"{"script":{"source":"x"}}"#, "[script] of an update is not supported"),
            (r#"{"doc":[]}"#, "[doc] of an update is an object"),
            (r#"{"doc":{},"docs":1}"#, "unknown field [docs]"),
            (r#"{"doc":{},"detect_noop":"no"}"#, "true or false"),
        ] {
            let said = applied(body, None).unwrap_err();
            assert!(said.contains(why), "{body}: {said}");
        }
        let twice = applied(r#"{"doc":{"o":{"a":1,"a":2}}}"#, Some(r#"{"o":{"a":0}}"#));
        assert!(twice.unwrap_err().contains("a name twice"));
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        let other = deep.replace('1', "2");
        assert!(applied(&format!("{{\"doc\":{other}}}"), Some(&deep)).is_err());
        assert!(applied(r#"{"doc":{"a":1}}"#, Some("")).unwrap_err().contains("virtual world"));
    }
}
