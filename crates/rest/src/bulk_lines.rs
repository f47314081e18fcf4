//! The body of `_bulk`: newline-delimited JSON, an action line and, but for deletes, a source line.

use std::fmt;
use std::io::BufRead;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::call::truth;
use super::document::{NO_PIPELINE, check_id};
use super::error::{bad_request, invalid, invalid_action};
use super::partial_update::PartialUpdate;
use super::unchanged::{Condition, External, Unchanged};
use engine::transport::{Failure, Result};

/// What is to be done to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Index,
    Create,
    Update,
    Delete,
}

impl Op {
    const ALL: [Op; 4] = [Op::Create, Op::Delete, Op::Index, Op::Update];

    /// The name in action lines and in items.
    pub(super) fn name(self) -> &'static str {
        match self {
            Op::Index => "index",
            Op::Create => "create",
            Op::Update => "update",
            Op::Delete => "delete",
        }
    }
}

/// One action of a bulk request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) op: Op,
    pub(super) index: Arc<str>,
    /// None where it is to be generated.
    pub(super) id: Option<Arc<str>>,
    /// None where it goes as the request says.
    pub(super) routing: Option<Arc<str>>,
    /// Empty with deletes.
    pub(super) source: Bytes,
    /// What it asks of the last write; an update nothing about the versions of its client.
    pub(super) condition: Option<Condition>,
    /// How often an update is tried again.
    pub(super) retries: u32,
    /// Whether its index has to be an alias; none where that is as the request says.
    pub(super) require_alias: Option<bool>,
}

/// Actions of one request: each takes some hundred bytes here and in the answer, however short its line is.
const ACTIONS_MAX: usize = 100_000;

/// What comes of a line takes beside its bytes: half of an action, of its write and of its result.
const LINE_BYTES: usize = 256;

/// What comes of a body takes beside its bytes.
pub(super) fn held_bytes(body: &[u8]) -> usize {
    lines_of(body) * LINE_BYTES
}

/// Lines of a body. With more than [`ACTIONS_MAX`] actions have it is refused.
fn lines_of(body: &[u8]) -> usize {
    body.iter().filter(|byte| **byte == b'\n').count().min(2 * ACTIONS_MAX)
}

/// Reads a whole body. `index` is that of the path. Sources are slices of the body.
///
/// Fails as a whole, in the field's words, where a line cannot be told apart from what follows.
pub(super) fn parse(body: &Bytes, index: Option<&str>) -> Result<Vec<Action>> {
    if body.last().is_none_or(|last| *last != b'\n') {
        return Err(match body.is_empty() {
            true => bad_request("request body is required"),
            false => bad_request("The bulk request must be terminated by a newline [\\n]"),
        });
    }
    let default: Option<Arc<str>> = index.map(Arc::from);
    let mut lines = Lines { body, at: 0, number: 0 };
    // Nearly all have a source.
    let mut actions: Vec<Action> = Vec::with_capacity(lines_of(body) / 2);
    while let Some((from, to)) = lines.next() {
        let line = &body[from..to];
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if actions.len() == ACTIONS_MAX {
            let reason =
                format!("more than [{ACTIONS_MAX}] actions in one request; send it in parts");
            return Err(Failure::new(413, "content_too_long_exception", reason));
        }
        let number = lines.number;
        let (op, meta) = read_action(line, number).map_err(|failure| match actions.last() {
            // As in the field an empty line is a document that cannot be read.
            Some(last) if last.op != Op::Delete && last.source.trim_ascii().is_empty() => {
                let reason = format!(
                    "{}; line [{}] stands for the document of the action above it, and is empty",
                    failure.reason,
                    number - 1
                );
                Failure { reason, ..failure }
            }
            _ => failure,
        })?;
        let (op, require_alias) = meta.read(op).map_err(|why| malformed(number, why))?;
        let index = match meta.index {
            None => default.clone(),
            // Usually the index of the action before.
            Some(name) => match actions.last() {
                Some(last) if *last.index == *name => Some(last.index.clone()),
                _ => Some(Arc::from(name)),
            },
        };
        let index = index.ok_or_else(|| invalid_action(actions.len() + 1, "index is missing"))?;
        let source = match op {
            Op::Delete => Bytes::new(),
            _ => {
                let (from, to) = lines.next().ok_or_else(|| {
                    let name = op.name();
                    invalid_action(
                        actions.len() + 1,
                        &format!("no source for [{name}] on line [{number}]"),
                    )
                })?;
                body.slice(from..to)
            }
        };
        if op == Op::Update {
            // As in the field the whole request is refused, before anything of it is written.
            let read = PartialUpdate::read(&source, false);
            read.and_then(|update| update.check_shows_nothing()).map_err(|failure| {
                let reason = format!("update on line [{}]: {}", lines.number, failure.reason);
                Failure { reason, ..failure }
            })?;
        }
        let id: Option<Arc<str>> = meta.id.map(|id| Arc::from(id.0));
        // As in the field an empty one, and one of a delete, fails alone.
        let checked = id.as_deref().filter(|id| !id.is_empty() && op != Op::Delete).map(check_id);
        if let Some(Err(failure)) = checked {
            return Err(invalid_action(actions.len() + 1, &failure.reason));
        }
        let routing = meta.routing.filter(|routing| !routing.0.is_empty());
        let routing = routing.map(|routing| Arc::from(routing.0));
        if id.is_none() && matches!(op, Op::Update | Op::Delete) {
            return Err(invalid_action(actions.len() + 1, "an id must be provided"));
        }
        let (seq_no, term) = (whole(meta.if_seq_no, number)?, whole(meta.if_primary_term, number)?);
        let unchanged = Unchanged::of(seq_no, term)?;
        let version = External::of(whole(meta.version, number)?, meta.version_type.as_deref())?;
        if version.is_some() && op == Op::Update {
            let instead = "Please use `if_seq_no` and `if_primary_term` instead";
            return Err(bad_request(format!(
                "Update requests do not support versioning. {instead}"
            )));
        }
        let condition = Condition::of(unchanged, version, op == Op::Create || id.is_none())?;
        let retries = whole(meta.retry_on_conflict, number)?.unwrap_or_default();
        actions.push(Action { op, index, id, routing, source, condition, retries, require_alias });
    }
    if actions.is_empty() {
        return Err(invalid("no requests added"));
    }
    Ok(actions)
}

fn malformed(line: usize, why: impl fmt::Display) -> Failure {
    bad_request(format!("Malformed action/metadata line [{line}]: {why}"))
}

struct Lines<'a> {
    body: &'a [u8],
    at: usize,
    /// Of the last line, from 1.
    number: usize,
}

impl Lines<'_> {
    /// Where the next line begins and ends, without what ends it.
    fn next(&mut self) -> Option<(usize, usize)> {
        let from = self.at;
        // Reading from memory cannot fail.
        let taken = (&self.body[from..]).skip_until(b'\n').unwrap_or(0);
        if taken == 0 {
            return None;
        }
        self.at += taken;
        self.number += 1;
        let line = &self.body[from..self.at];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some((from, from + line.len()))
    }
}

/// What an action line says beside the action.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(rename = "_index")]
    index: Option<String>,
    #[serde(rename = "_id")]
    id: Option<Id>,
    #[serde(alias = "_routing")]
    routing: Option<Id>,
    if_seq_no: Option<Id>,
    if_primary_term: Option<Id>,
    version: Option<Id>,
    version_type: Option<String>,
    retry_on_conflict: Option<Id>,
    op_type: Option<String>,
    pipeline: Option<String>,
    require_alias: Option<Value>,
    dynamic_templates: Option<IgnoredAny>,
    /// Every document has this type.
    _type: Option<IgnoredAny>,
}

impl Meta {
    /// What is done, as `op_type` may say, and whether its index has to be an alias. The error says what is refused.
    fn read(&self, op: Op) -> Result<(Op, Option<bool>), String> {
        if let Some(name) = self.pipeline.as_deref().filter(|name| *name != NO_PIPELINE) {
            return Err(format!(
                "[pipeline] is not supported by this engine, found [{name}]; leave it out, or write _none"
            ));
        }
        if self.dynamic_templates.is_some() {
            let said = "[dynamic_templates] is not supported by this engine; leave it out";
            return Err(said.to_owned());
        }
        let op = match (op, self.op_type.as_deref()) {
            (Op::Index, Some("create")) => Op::Create,
            (op, Some(said)) if said != op.name() => {
                return Err(format!(
                    "[op_type] of [{}] is [{said}]; [index] takes index or create",
                    op.name()
                ));
            }
            (op, _) => op,
        };
        let require_alias = match &self.require_alias {
            None | Some(Value::Null) => None,
            Some(given) => {
                let wrong = || format!("[require_alias] is true or false, not {given}");
                Some(truth(given).ok_or_else(wrong)?)
            }
        };
        Ok((op, require_alias))
    }
}

/// An id or a routing is a text, or a number that is taken for one. As in the field a number may be written as a text.
struct Id(String);

/// The number that a parameter of a line is.
fn whole<T: FromStr<Err = ParseIntError>>(given: Option<Id>, line: usize) -> Result<Option<T>> {
    let read = |Id(text): Id| {
        let failed = |error| malformed(line, format!("[{text}] is no such number: {error}"));
        text.parse::<T>().map_err(failed)
    };
    given.map(read).transpose()
}

fn read_action(line: &[u8], number: usize) -> Result<(Op, Meta)> {
    // What load generators send; no JSON parser need look at it.
    match line {
        b"{\"index\":{}}" => return Ok((Op::Index, Meta::default())),
        b"{\"create\":{}}" => return Ok((Op::Create, Meta::default())),
        _ => {}
    }
    serde_json::from_slice::<Line>(line)
        .map(|line| (line.op, line.meta))
        .map_err(|error| malformed(number, error))
}

struct Line {
    op: Op,
    meta: Meta,
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineVisitor;
        impl<'de> Visitor<'de> for LineVisitor {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
                use serde::de::Error;
                let Some(name) = map.next_key::<String>()? else {
                    return Err(A::Error::custom("expected an action, found none"));
                };
                let op = Op::ALL.into_iter().find(|op| op.name() == name).ok_or_else(|| {
                    let known = Op::ALL.map(|op| format!("[{}]", op.name())).join(", ");
                    A::Error::custom(format!("expected one of {known}, found [{name}]"))
                })?;
                let meta = map.next_value()?;
                match map.next_key::<String>()? {
                    None => Ok(Line { op, meta }),
                    Some(more) => Err(A::Error::custom(format!("[{more}] after the action"))),
                }
            }
        }
        deserializer.deserialize_map(LineVisitor)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GTE: &str = "external_gte";

    fn read(text: &str, index: Option<&str>) -> Result<Vec<Action>, String> {
        parse(&Bytes::from(text.to_owned()), index).map_err(|failure| failure.reason)
    }

    /// The action of a line, with a document behind it where it has one.
    fn one(line: &str) -> Result<Action, String> {
        let source = match line.split('"').nth(1) {
            Some("delete") => "",
            Some("update") => "{\"doc\":{}}\n",
            _ => "{}\n",
        };
        read(&format!("{line}\n{source}"), Some("a")).map(|mut actions| actions.remove(0))
    }

    fn action(op: Op, index: &str, id: Option<&str>, source: &'static str) -> Action {
        Action {
            op,
            index: index.into(),
            id: id.map(Arc::from),
            routing: None,
            source: Bytes::from_static(source.as_bytes()),
            condition: None,
            retries: 0,
            require_alias: None,
        }
    }

    #[test]
    fn a_request_has_so_many_actions_and_no_more() {
        let lines = |count: usize| Bytes::from("{\"delete\":{\"_id\":\"a\"}}\n".repeat(count));
        assert_eq!(parse(&lines(ACTIONS_MAX), Some("a")).unwrap().len(), ACTIONS_MAX);
        assert_eq!(parse(&lines(ACTIONS_MAX + 1), Some("a")).unwrap_err().status, 413);
    }

    #[test]
    fn reads_the_routing_of_an_action() {
        for (line, expected) in [
            (r#"{"delete":{"_id":1,"routing":"r"}}"#, Some("r")),
            (r#"{"delete":{"_id":1,"_routing":7}}"#, Some("7")),
            (r#"{"index":{"routing":""}}"#, None),
            (r#"{"index":{"routing":null}}"#, None),
        ] {
            assert_eq!(one(line).unwrap().routing.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn an_action_may_have_a_version_of_its_client() {
        for (line, expected) in [
            (r#"{"index":{"_id":1,"version":7,"version_type":"external"}}"#, Some((7, "external"))),
            (r#"{"delete":{"_id":1,"version":"8","version_type":"external_gte"}}"#, Some((8, GTE))),
            (r#"{"index":{"_id":1,"version_type":"internal"}}"#, None),
        ] {
            let of = |(version, kind)| External::of(Some(version), Some(kind)).unwrap().unwrap();
            let expected = expected.map(of).map(Condition::External);
            assert_eq!(one(line).map(|action| action.condition), Ok(expected), "{line}");
        }
        for (version, why) in [
            (r#"{"index":{"_id":1,"version":7}}"#, "internal versioning"),
            (r#"{"create":{"_id":1,"version":7,"version_type":"external"}}"#, "create operations"),
            (r#"{"index":{"version":7,"version_type":"external"}}"#, "create operations"),
            (r#"{"update":{"_id":1,"version":7,"version_type":"external"}}"#, "Update requests do"),
            (r#"{"index":{"_id":1,"version":"x"}}"#, "line [1]"),
        ] {
            let said = one(version).unwrap_err();
            assert!(said.contains(why), "{version}: {said}");
        }
    }

    #[test]
    fn an_action_may_create_and_require_an_alias() {
        for (line, expected) in [
            (r#"{"index":{"op_type":"create"}}"#, (Op::Create, None)),
            (r#"{"index":{"op_type":"index","pipeline":"_none"}}"#, (Op::Index, None)),
            (r#"{"create":{"op_type":null,"require_alias":true}}"#, (Op::Create, Some(true))),
            (r#"{"delete":{"_id":1,"require_alias":"false"}}"#, (Op::Delete, Some(false))),
        ] {
            let action = one(line).unwrap();
            assert_eq!((action.op, action.require_alias), expected, "{line}");
        }
    }

    #[test]
    fn reads_every_action() {
        let text = "{\"index\":{}}\n{\"a\":1}\n\
                    { \"create\" : { \"_index\": \"b\", \"_id\" : 7 } }\r\n{\"a\":2}\r\n\
                    \n\
                    {\"delete\":{\"_index\":\"b\",\"_id\":\"x\\\"y\",\"_type\":\"_doc\"}}\n\
                    {\"update\":{\"_id\":\"u\",\"retry_on_conflict\":\"3\",\"if_seq_no\":\"5\",\"if_primary_term\":2}}\n{\"doc\":{}}\n";
        assert_eq!(
            read(text, Some("a")).unwrap(),
            [
                action(Op::Index, "a", None, "{\"a\":1}"),
                action(Op::Create, "b", Some("7"), "{\"a\":2}"),
                action(Op::Delete, "b", Some("x\"y"), ""),
                Action {
                    retries: 3,
                    condition: Some(Condition::Unchanged(Unchanged { seq_no: 5, primary_term: 2 })),
                    ..action(Op::Update, "a", Some("u"), "{\"doc\":{}}")
                },
            ]
        );
    }

    /// Bodies that nobody would write.
    #[test]
    fn bodies() {
        let samples: [&[u8]; 3] = [
            b"{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"x\":1}\n{\"delete\":{\"_id\":\"2\"}}\n",
            b"{ \"create\" : { \"_index\": \"b\", \"_id\" : 7 } }\r\n{\"a\":[2,{\"b\":null}]}\r\n\n",
            b"{\"update\":{\"_id\":\"u\",\"retry_on_conflict\":3,\"if_seq_no\":5,\"if_primary_term\":2}}\n{\"doc\":{}}\n",
        ];
        let budget = testbed::fuzz::Budget::default();
        testbed::fuzz::search("bulk lines", &samples, 20_000, budget, |bytes| {
            let body = Bytes::copy_from_slice(bytes);
            for index in [None, Some("a")] {
                let Ok(actions) = parse(&body, index) else { continue };
                let sources: usize = actions.iter().map(|action| action.source.len()).sum();
                assert!(sources < bytes.len(), "each source is a part of the body of its own");
            }
        });
    }

    #[test]
    fn sources_are_slices_of_the_body() {
        let body = Bytes::from(b"{\"index\":{}}\n{\"a\":1}\n".to_vec());
        let actions = parse(&body, Some("a")).unwrap();
        assert_eq!(actions[0].source.as_ptr(), body[13..].as_ptr());
    }

    #[test]
    fn fails_in_the_words_of_the_field() {
        for (text, said) in [
            ("", "request body is required"),
            ("{\"index\":{}}\n{}", "The bulk request must be terminated by a newline [\\n]"),
            ("\n", "Validation Failed: 1: no requests added;"),
            ("{\"index\":{}}\n", "Validation Failed: 1: no source for [index] on line [1];"),
            ("{\"delete\":{}}\n", "Validation Failed: 1: an id must be provided;"),
        ] {
            assert_eq!(read(text, Some("a")).unwrap_err(), said);
        }
        let missing = read("{\"index\":{}}\n{}\n", None).unwrap_err();
        assert_eq!(missing, "Validation Failed: 1: index is missing;");
        let of = |op: &str| format!("{{\"{op}\":{{\"_id\":\"{}\"}}}}\n{{}}\n", "x".repeat(513));
        let long = parse(&Bytes::from(of("index")), Some("a")).unwrap_err().reason;
        assert!(long.ends_with("no longer than 512 bytes but was: 513;"), "{long}");
    }

    #[test]
    fn names_the_line_that_is_malformed() {
        for (line, said) in [
            (r#"{"idnex":{}}"#, "one of [create], [delete], [index], [update], found [idnex]"),
            ("{}", "expected an action"),
            ("[]", "line [1]"),
            (r#"{"index":{"_idx":1}}"#, "unknown field `_idx`"),
            (r#"{"index":{"pipeline":"a"}}"#, "[pipeline] is not supported"),
            (r#"{"index":{"op_type":"delete"}}"#, "[op_type] of [index] is [delete]"),
            (r#"{"create":{"op_type":"index"}}"#, "[op_type] of [create] is [index]"),
            (r#"{"index":{"require_alias":1}}"#, "[require_alias] is true or false, not 1"),
            (r#"{"index":{"_id":1,"_id":2}}"#, "duplicate field `_id`"),
            (r#"{"index":{"_id":{}}}"#, "expected a text or a whole number"),
            (r#"{"index":[]}"#, "line [1]"),
            (r#"{"index":{},"x":1}"#, "[x] after the action"),
            (r#"{"index":{}"#, "line [1]"),
            (r#"{"index":{"_id":1,"if_seq_no":1}}"#, "go together"),
            (r#"{"index":{"_id":1,"if_seq_no":-1}}"#, "line [1]"),
            (r#"{"create":{"_id":1,"if_seq_no":1,"if_primary_term":1}}"#, "what is created"),
        ] {
            let found = one(line).unwrap_err();
            assert!(found.contains(said), "{line}: {found}");
        }
        let update = r#"{"update":{"_id":1}}"#;
        for (lines, said) in [
            ("{\"index\":{}}\n{}\n[]\n", "line [3]"),
            ("{\"index\":{}}\n\n{\"n\":1}\n", "; line [2] stands for the document of the action"),
            (&format!("{update}\n{{\"doc\":{{}}\n"), "update on line [2]: the update is no JSON"),
            (&format!("{update}\n{{\"docs\":{{}}}}\n"), "unknown field [docs]"),
            (&format!("{update}\n{{}}\n"), "script or doc is missing"),
        ] {
            let found = read(lines, Some("a")).unwrap_err();
            assert!(found.contains(said), "{lines}: {found}");
        }
    }
}
