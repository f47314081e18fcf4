//! When an answer is a good one, by what its beginning says. Pure.

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
    /// As [`Check::Status`], and no document was refused.
    Bulk,
}

impl Check {
    /// Judges an answer by its status and the beginning of its body.
    pub fn judge(self, status: u16, body: &[u8]) -> Result<(), Failure> {
        let is_ignored = matches!(self, Check::StatusOr(ignored) | Check::SearchOr(ignored)
            if ignored.contains(&status));
        if !(200..300).contains(&status) && !is_ignored {
            return Err(Failure::Refused { status, kind: kind_of(body) });
        }
        let said = behind_scroll_id(body);
        let head = &said[..said.len().min(HEADLINE_BYTES)];
        match self {
            Check::Status | Check::StatusOr(_) => Ok(()),
            _ if is_ignored => Ok(()),
            Check::Search | Check::SearchOr(_) if !may_be_json(body) => Err(Failure::NotJson),
            Check::Search | Check::SearchOr(_)
                if after(head, b"\"timed_out\"").starts_with(b"true") =>
            {
                Err(Failure::TimedOut)
            }
            Check::Search | Check::SearchOr(_) => {
                match after(after(head, b"\"_shards\""), b"\"failed\"").first() {
                    None | Some(b'0') => Ok(()),
                    Some(_) => Err(Failure::Partial),
                }
            }
            Check::Bulk if after(head, b"\"errors\"").starts_with(b"true") => Err(Failure::Items),
            Check::Bulk if after(head, b"\"errors\"").starts_with(b"false") => Ok(()),
            Check::Bulk => Err(Failure::NotJson),
        }
    }
}

/// The scroll id that an answer begins with, and what follows it; none where there is none, or not all of it.
pub(super) fn scroll_id(body: &[u8]) -> Option<(&str, &[u8])> {
    let first = body.strip_prefix(b"{")?.trim_ascii_start();
    // Looked for at the beginning only: most answers have none.
    let value = first.strip_prefix(b"\"_scroll_id\"")?.trim_ascii_start().strip_prefix(b":")?;
    let text = value.trim_ascii_start().strip_prefix(b"\"")?;
    let (id, rest) = text.split_at(text.iter().position(|byte| *byte == b'"')?);
    let id = std::str::from_utf8(id).ok().filter(|id| !id.contains('\\'))?;
    Some((id, rest))
}

/// What an answer says behind its scroll id, which has some 70 bytes for each shard; all of it where there is none.
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
        let ignoring = Check::SearchOr([404, 0, 0, 0]);
        assert_eq!(ignoring.judge(404, b"{}"), Ok(()));
        assert_eq!(ignoring.judge(200, partial), Err(Failure::Partial));
        let id = "a".repeat(2000);
        let page = format!("{{ \"_scroll_id\" : \"{id}\", \"_shards\" : {{ \"failed\" : 1 }} }}");
        assert_eq!(Check::Search.judge(200, page.as_bytes()), Err(Failure::Partial));
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
}
