//! Text from elsewhere, as it may be shown, and the hosts and ports of addresses. A name out of a cluster's answer, a
//! plan or a damaged record may hold what a terminal obeys: escape sequences, carriage returns, characters that turn
//! the direction of what follows.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with every character that a terminal or a reader would obey rather than show written as `\u001b`. Line breaks
/// and tabs stay. Within JSON it is the same string as before: such characters stand in strings alone.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut after = text.chars();
    escaped(text, |c| {
        after.next();
        // A carriage return before a line feed is a part of the line break.
        c != '\n' && c != '\t' && !(c == '\r' && after.as_str().starts_with('\n')) && is_hidden(c)
    })
}

/// As [`visible`], in one line: line breaks and tabs are written out, too.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Whether a name holds what cannot be seen.
pub fn has_hidden(name: &str) -> bool {
    name.contains(is_hidden)
}

/// An address without the user and password before its last `@`. They may hold anything, `://` too.
pub fn without_user(address: &str) -> String {
    let Some((before, after)) = address.rsplit_once('@') else { return address.to_owned() };
    match before.split_once("://") {
        Some((scheme, _)) if !scheme.contains([':', '@']) => format!("{scheme}://{after}"),
        _ => after.to_owned(),
    }
}

/// The host of `host:port`, `[host]:port` or a host alone, without brackets, and its port. None where what stands
/// behind the host is no port.
pub fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if rest.is_empty() {
        return Some((host, None));
    }
    let port: u16 = rest.strip_prefix(':')?.parse().ok()?;
    (port > 0).then_some((host, Some(port)))
}

/// Whether a host may be called so: a name, or an address of IP without brackets.
pub fn is_host(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    !name.is_empty() && name.chars().all(fits)
}

/// `host:port`, with brackets where the host is an IPv6 address.
pub fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn escaped(text: &str, mut escapes: impl FnMut(char) -> bool) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if escapes(c) {
            shown.push_str(&text[from..at]);
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
            from = at + c.len_utf8();
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

/// Control characters of all kinds, marks and overrides of the direction, line separators, what has no width, and tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        let hostile = "a\x1b]0;title\x07b\rc\u{9b}31m\u{202e}d\u{e0041}";
        let shown = "a\\u001b]0;title\\u0007b\\u000dc\\u009b31m\\u202ed\\udb40\\udc41";
        assert_eq!(visible(hostile), shown);
        assert_eq!(visible_line(hostile), shown);
        assert!(has_hidden(hostile) && !has_hidden("größe 1"));
    }

    #[test]
    fn lines_and_tabs_stay_where_there_are_lines() {
        assert_eq!(visible("a\n\tb\r\nc\r"), "a\n\tb\r\nc\\u000d");
        assert_eq!(visible_line("a\n\tb"), "a\\u000a\\u0009b");
        assert!(matches!(visible("größe 🙂"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_host_and_its_port_are_read_as_they_are_written() {
        for (text, host, port) in [("a", "a", None), ("[::1]", "::1", None), ("[]", "", None)] {
            assert_eq!(host_and_port(text), Some((host, port)));
        }
        for (text, host) in [("a.b-c:9", "a.b-c"), ("[fe80::1%0]:9", "fe80::1%0")] {
            assert_eq!(host_and_port(text), Some((host, Some(9))));
            assert!(is_host(host));
            assert_eq!(authority(host, 9), text);
        }
        for text in ["a:", "a:0", "a:b", "a:65536", "::1", "[::1", "[::1]9", "[::1]:"] {
            assert_eq!(host_and_port(text), None, "{text}");
        }
        assert!(!is_host("") && !is_host("a b") && !is_host("[a]"));
    }

    #[test]
    fn json_means_the_same_as_before() {
        let value = serde_json::json!({ "name\u{202e}": "a\u{7f}\u{9b}\u{e0041}\x1b" });
        let shown = visible(&value.to_string()).into_owned();
        assert!(!shown.contains(is_hidden));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
