//! When an answer is a good one, by what its beginning says; of many searches by all of it. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::Failure;

/// An answer's `_shards`, `timed_out` or `errors` come within so many bytes of its beginning, or of its scroll id.
const HEADLINE_BYTES: usize = 1024;

/// When an answer is a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Its status is 2xx.
    Status,
    /// As [`Check::Status`], or its status is one of these; 0 stands for none.
    StatusOr([u16; 4]),
    /// As [`Check::Status`], and no shard failed and the search did not time out.
    Search,
    /// As [`Check::Search`], or its status is one of these; 0 stands for none.
    SearchOr([u16; 4]),
    /// As [`Check::Status`], and each search of a `_msearch` is as [`Check::Search`] has it.
    Searches,
    /// As [`Check::Searches`], or the status of the whole is one of these; 0 stands for none.
    SearchesOr([u16; 4]),
    /// As [`Check::Status`], and no document was refused.
    Bulk,
    /// As [`Check::Bulk`], or its status is one of these; 0 stands for none.
    BulkOr([u16; 4]),
}

impl Check {
    /// The check of a request with this path.
    pub fn of(path: &str) -> Check {
        let (bare, parameters) = path.split_once('?').unwrap_or((path, ""));
        let is_bulk = bare.ends_with("/_bulk");
        let filter = parameters.split('&').find_map(|one| one.strip_prefix("filter_path="));
        // An answer that is filtered may say nothing of errors where there are some.
        let tells = filter.is_none_or(|filter| filter.split(',').any(|field| field == "errors"));
        // No name of an index begins with `_`; it may have `_search` further on.
        let asks =
            |api: &str| bare.split('/').any(|part| part.starts_with('_') && part.contains(api));
        match path {
            _ if is_bulk && tells => Check::Bulk,
            _ if is_bulk => Check::Status,
            _ if asks("_msearch") => Check::Searches,
            _ if asks("_search") => Check::Search,
            _ => Check::Status,
        }
    }

    /// This check, with these statuses as good as those of success; 0 stands for none.
    pub fn or(self, statuses: [u16; 4]) -> Check {
        match self {
            Check::Status => Check::StatusOr(statuses),
            Check::Search => Check::SearchOr(statuses),
            Check::Searches => Check::SearchesOr(statuses),
            Check::Bulk => Check::BulkOr(statuses),
            other => other,
        }
    }

    /// Whether it checks searches: to ask these twice does no harm.
    pub(crate) fn is_of_searches(self) -> bool {
        matches!(self, Check::Search | Check::SearchOr(_) | Check::Searches | Check::SearchesOr(_))
    }

    /// Judges an answer by its status and the beginning of its body; all of it for [`Check::Searches`].
    pub fn judge(self, status: u16, body: &[u8]) -> Result<(), Failure> {
        let is_ignored = match self {
            Check::StatusOr(ignored)
            | Check::SearchOr(ignored)
            | Check::SearchesOr(ignored)
            | Check::BulkOr(ignored) => ignored.contains(&status),
            Check::Status | Check::Search | Check::Searches | Check::Bulk => false,
        };
        if !(200..300).contains(&status) && !is_ignored {
            return Err(Failure::refused(status, &kind_of(body), &reason_of(body)));
        }
        let said = behind_scroll_id(body);
        let head = &said[..said.len().min(HEADLINE_BYTES)];
        match self {
            Check::Status | Check::StatusOr(_) => Ok(()),
            _ if is_ignored => Ok(()),
            Check::Search | Check::SearchOr(_) => {
                match after(after(head, b"\"_shards\""), b"\"failed\"").first() {
                    _ if !may_be_json(body) => Err(Failure::NotJson),
                    _ if after(head, b"\"timed_out\"").starts_with(b"true") => {
                        Err(Failure::TimedOut)
                    }
                    None | Some(b'0') => Ok(()),
                    Some(_) => Err(Failure::Partial),
                }
            }
            Check::Searches | Check::SearchesOr(_) => judge_searches(body),
            Check::Bulk | Check::BulkOr(_) => match after(head, b"\"errors\"") {
                said if said.starts_with(b"true") => Err(Failure::Items),
                said if said.starts_with(b"false") => Ok(()),
                _ => Err(Failure::NotJson),
            },
        }
    }
}

/// An answer of `_msearch`, as far as it is looked at.
#[derive(Deserialize)]
struct Searches {
    #[serde(default)]
    responses: Vec<Searched>,
}

/// The answer to one of its searches.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Searched {
    status: u16,
    error: Option<Value>,
    timed_out: bool,
    #[serde(rename = "_shards")]
    shards: Shards,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shards {
    failed: u64,
}

/// As clients of the field have it, which raise the first error among the answers.
fn judge_searches(body: &[u8]) -> Result<(), Failure> {
    let whole: Searches = serde_json::from_slice(body).map_err(|error| match error.is_eof() {
        true if !body.is_empty() => Failure::TooLong,
        _ => Failure::NotJson,
    })?;
    whole.responses.iter().try_for_each(Searched::judge)
}

impl Searched {
    fn judge(&self) -> Result<(), Failure> {
        match self {
            Searched { error: Some(error), status, .. } => {
                let said = |of: &str| {
                    error["root_cause"][0][of].as_str().or(error[of].as_str()).unwrap_or_default()
                };
                Err(Failure::refused(*status, said("type"), said("reason")))
            }
            Searched { timed_out: true, .. } => Err(Failure::TimedOut),
            Searched { shards: Shards { failed: 0 }, .. } => Ok(()),
            _ => Err(Failure::Partial),
        }
    }
}

/// What an answer may begin with: an id with some 70 bytes for each shard.
const IDS: [&[u8]; 2] = [b"\"_scroll_id\"", b"\"pit_id\""];

/// The scroll id that an answer begins with, or that of a point in time, and what follows it; none where there is none,
/// or not all of it.
pub(super) fn scroll_id(body: &[u8]) -> Option<(&str, &[u8])> {
    let first = body.strip_prefix(b"{")?.trim_ascii_start();
    // Looked for at the beginning only: most answers have none.
    let value = IDS.iter().find_map(|name| first.strip_prefix(*name))?;
    let value = value.trim_ascii_start().strip_prefix(b":")?;
    let text = value.trim_ascii_start().strip_prefix(b"\"")?;
    let (id, rest) = text.split_at(text.iter().position(|byte| *byte == b'"')?);
    let id = std::str::from_utf8(id).ok().filter(|id| !id.contains('\\'))?;
    Some((id, rest))
}

/// What an answer says behind such an id; all of it where there is none.
pub(super) fn behind_scroll_id(body: &[u8]) -> &[u8] {
    scroll_id(body).map_or(body, |(_, rest)| rest)
}

/// The value of the first `"key":`, which may be printed with blanks, and what follows it; nothing where there is no
/// key.
pub(super) fn after<'a>(text: &'a [u8], key: &[u8]) -> &'a [u8] {
    let found = text.windows(key.len()).position(|window| window == key);
    let rest = found.map_or(&[][..], |at| text[at + key.len()..].trim_ascii_start());
    rest.strip_prefix(b":").unwrap_or_default().trim_ascii_start()
}

/// Whether a body is empty, as that of HEAD, or begins as an object: the page of a proxy does not.
fn may_be_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), None | Some(b'{'))
}

/// The type of an error. That of the root cause comes first in the text, and says more.
fn kind_of(body: &[u8]) -> String {
    let value = after(body, b"\"type\"");
    let name = value.strip_prefix(b"\"").unwrap_or_default();
    let end = name.iter().position(|byte| *byte == b'"').unwrap_or(0).min(64);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// The reason of an error, that of its type; as far as it is there where the answer is longer than what is kept of it.
fn reason_of(body: &[u8]) -> String {
    let text = after(body, b"\"reason\"").strip_prefix(b"\"").unwrap_or_default();
    let mut is_escaped = false;
    let ends = |byte: &u8| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    };
    let end = text.iter().position(ends).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_what_they_say() {
        let good = br#"{"took":1,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":{"failed":3}}"#;
        assert_eq!(Check::Search.judge(200, good), Ok(()));
        let partial = br#"{"timed_out" : false, "_shards" : { "total" : 2, "failed" : 1 } }"#;
        assert_eq!(Check::Search.judge(200, b"{\"timed_out\": true}"), Err(Failure::TimedOut));
        assert_eq!(Check::Search.judge(200, partial), Err(Failure::Partial));
        assert_eq!(Check::Status.judge(200, partial), Ok(()));
        let ignoring = Check::StatusOr([404, 409, 0, 0]);
        assert_eq!(
            [200, 404, 409].map(|status| ignoring.judge(status, b"{}")),
            [Ok(()), Ok(()), Ok(())]
        );
        assert_eq!(ignoring.judge(429, b"{}").unwrap_err().to_string(), "429");
        let refused = |body: &[u8]| Check::Status.judge(400, body).unwrap_err();
        let whole =
            br#"{"error":{"root_cause":[{"type":"a","reason":"no \"b\" here"}],"reason":"c"}}"#;
        assert_eq!(refused(whole), Failure::refused(400, "a", "no \"b\" here"));
        let cut = br#"{"error":{"type":"a","reason":"no such"#;
        assert_eq!(refused(cut), Failure::refused(400, "a", "no such"));
        assert_eq!(Failure::refused(400, "a", &"r".repeat(201)), {
            let reason = format!("{}…", "r".repeat(200));
            Failure::Refused { status: 400, kind: "a".to_owned(), reason }
        });
        let ignoring = Check::SearchOr([404, 0, 0, 0]);
        assert_eq!(ignoring.judge(404, b"{}"), Ok(()));
        assert_eq!(ignoring.judge(200, partial), Err(Failure::Partial));
        let id = "a".repeat(2000);
        for name in ["_scroll_id", "pit_id"] {
            let page = format!("{{ \"{name}\" : \"{id}\", \"_shards\" : {{ \"failed\" : 1 }} }}");
            assert_eq!(Check::Search.judge(200, page.as_bytes()), Err(Failure::Partial));
        }
        assert_eq!(Check::Bulk.judge(200, br#"{"took":3,"errors":true}"#), Err(Failure::Items));
        assert_eq!(Check::Bulk.judge(200, br#"{"took":3,"errors":false}"#), Ok(()));
        let page = b"<html>please log in</html>";
        assert_eq!(Check::Search.judge(200, page), Err(Failure::NotJson));
        assert_eq!(Check::Bulk.judge(200, page), Err(Failure::NotJson));
        assert_eq!(
            Check::Bulk.judge(200, b"{}"),
            Err(Failure::NotJson),
            "nothing says how it went"
        );
        assert_eq!(Check::Search.judge(200, b""), Ok(()), "HEAD has no body");
        let full = br#"{"error":{"root_cause":[{"type":"es_rejected_execution_exception","reason":"x"}],"type":"search_phase_execution_exception"},"status":429}"#;
        let refused = Check::Search.judge(429, full).unwrap_err();
        assert_eq!(refused.to_string(), "429 es_rejected_execution_exception");
        assert_eq!(Check::Status.judge(502, b"<html>").unwrap_err().to_string(), "502");
    }

    #[test]
    fn documents_that_a_bulk_of_ones_own_writes_may_be_refused() {
        let refused = br#"{"took":3,"errors":true,"items":[]}"#;
        for path in ["/_bulk", "/a_search/_bulk?refresh=true", "/a/_bulk?filter_path=errors,took"] {
            assert_eq!(Check::of(path).judge(200, refused), Err(Failure::Items), "{path}");
        }
        let ignoring = Check::of("/a/_bulk").or([429, 0, 0, 0]);
        assert_eq!(ignoring.judge(200, refused), Err(Failure::Items));
        assert_eq!(
            (ignoring.judge(429, b"{}"), ignoring.judge(500, b"{}").is_err()),
            (Ok(()), true)
        );
        // What is left of a good answer here is nothing.
        for path in ["/a/_bulk?filter_path=items.*.error", "/errors/_bulk?filter_path=took"] {
            assert_eq!(Check::of(path).judge(200, b"{}"), Ok(()), "{path}");
        }
        assert_eq!(Check::of("/my_bulk/_doc/1"), Check::Status);
    }

    #[test]
    fn an_index_that_is_called_a_search_is_none() {
        for path in ["/my_search/_doc", "/my_search/_delete_by_query", "/a/_doc?routing=_search"] {
            assert_eq!(Check::of(path), Check::Status, "{path}");
        }
        for path in ["/my_msearch/_search?size=0", "/_search/scroll", "/a/_async_search"] {
            assert_eq!(Check::of(path), Check::Search, "{path}");
        }
        assert_eq!(Check::of("/my_search/_msearch/template"), Check::Searches);
    }

    #[test]
    fn one_search_of_many_that_fails_is_a_failure_of_all() {
        const GOOD: &str = r#"{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[{"_source":{"error":"x"}}]},"status":200}"#;
        const MISSING: &str = r#"{"error":{"root_cause":[{"type":"index_not_found_exception"}],"type":"x"},"status":404}"#;
        let judge = |check: Check, last: &str| {
            let body = format!("{{\"took\":3,\"responses\":[{GOOD},{GOOD},{last}]}}");
            check.judge(200, body.as_bytes())
        };
        let check = Check::of("/a/_msearch?pretty");
        assert_eq!(judge(check, GOOD), Ok(()), "a field of a document is no error");
        let missing = judge(check, MISSING).unwrap_err();
        assert_eq!(missing.to_string(), "404 index_not_found_exception");
        assert_eq!(judge(check.or([404; 4]), MISSING), Err(missing), "that is of the whole");
        assert_eq!(check.or([404; 4]).judge(404, b"{}"), Ok(()));
        assert_eq!(judge(check, r#"{"timed_out":true}"#), Err(Failure::TimedOut));
        assert_eq!(judge(check, r#"{"_shards":{"failed":1}}"#), Err(Failure::Partial));
        assert_eq!(judge(check, "{\"hits\":"), Err(Failure::NotJson));
        assert_eq!(check.judge(200, br#"{"responses":[{"hits":{"#), Err(Failure::TooLong));
        assert_eq!(check.judge(200, b"<html>"), Err(Failure::NotJson));
        assert_eq!(check.judge(500, b"{}").unwrap_err().to_string(), "500");
    }
}
