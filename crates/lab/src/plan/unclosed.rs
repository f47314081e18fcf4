//! What a plan's text opens and does not close: the reader of TOML then calls each later line wrong.

use std::ops::Range;

/// The first list, inline table or text that is not closed: where it begins, and what to write.
pub(super) fn unclosed(text: &str) -> Option<(Range<usize>, String)> {
    let list = "this list is not closed; write ] at its end";
    let (mut open, mut is_value, mut at) = (Vec::<(u8, usize)>::new(), false, 0);
    let said = |from: usize, what: &str| Some((from..from + 1, what.to_owned()));
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        let in_list = matches!(open.last(), Some((b'[', _)));
        match byte {
            b'#' => at = end_of_line(text, at) - 1,
            b'\n' if open.is_empty() => is_value = false,
            // The head of a table, which is closed on its line or not at all.
            b'[' if !is_value => at = end_of_line(text, at) - 1,
            // A key: the list above was over.
            b'=' if in_list => return said(open.pop()?.1, list),
            b'=' => is_value = true,
            b'[' | b'{' => open.push((byte, at)),
            b'}' if in_list => return said(open.pop()?.1, list),
            b']' | b'}' => drop(open.pop()),
            b'"' | b'\'' => match end_of_text(text, at) {
                Ok(end) => at = end - 1,
                Err(mark) => {
                    let what = format!("this text is not closed; write {mark} at its end");
                    return Some((at..at + mark.len(), what));
                }
            },
            _ => {}
        }
        at += 1;
    }
    match open.pop()? {
        (b'[', from) => said(from, list),
        (_, from) => said(from, "this table is not closed; write } at its end"),
    }
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length)
}

/// Behind the text that begins at `at`; the mark that it lacks where it does not end.
fn end_of_text(text: &str, at: usize) -> Result<usize, &str> {
    let quote = &text[at..=at];
    let is_long = text[at..].starts_with(&quote.repeat(3));
    let mark = &text[at..at + if is_long { 3 } else { 1 }];
    let begin = at + mark.len();
    let end = if is_long { text.len() } else { end_of_line(text, at) };
    let mut escaped = false;
    for (offset, character) in text[begin..end].char_indices() {
        if !escaped && text[begin + offset..end].starts_with(mark) {
            return Ok(begin + offset + mark.len());
        }
        escaped = !escaped && character == '\\' && quote == "\"";
    }
    Err(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_closed_is_found_where_it_begins() {
        for (text, from, says) in [
            ("a = [1,\n2\nb = 3\n[c]\nd = 4", "[1", "write ] at its end"),
            ("a = [[1], [2]\n[[b]]\nc = 3", "[[1", "write ] at its end"),
            ("a = [1, 2", "[1", "write ] at its end"),
            ("a = { b = [1, 2 }", "[1", "write ] at its end"),
            ("a = { b = 1", "{ b", "write } at its end"),
            ("a = \"x\nb = \"y\"", "\"x", "write \" at its end"),
            ("a = 'x\\'\nb = 'y", "'y", "write ' at its end"),
            ("a = \"\"\"x\ny", "\"\"\"x", "write \"\"\" at its end"),
        ] {
            let (span, said) = unclosed(text).unwrap_or_else(|| panic!("{text}"));
            assert!(text[span.start..].starts_with(from), "{text}: {span:?}");
            assert!(said.ends_with(says), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_closed_is_left_alone() {
        for text in [
            "a = [1, # it's ] open\n 2,\n]\n[b]\nc = { d = [\"]\", '['] }\n[[e.\"f\"]]\ng = 1",
            "a = \"\\\"]\"\nb = '\\'\nc = \"\"\"\n\"x\" [\n\"\"\"\nd = '''it's\n'''",
            "a = [{ b = 1 }, { c = [2] }]\nd = \"“ü”\"",
            "",
        ] {
            assert_eq!(unclosed(text), None, "{text}");
        }
        for plan in crate::plan::bundled() {
            assert_eq!(unclosed(plan.text), None, "{}", plan.name);
        }
    }
}
