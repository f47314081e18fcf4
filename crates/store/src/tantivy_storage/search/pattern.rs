//! Regular expressions of the field's language as those of the index library.

use query::unfit;

use super::failed::Result;

fn literal(pattern: &mut String, char: char) {
    pattern.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
}

/// Of `regexp`: what Lucene and the library write alike; Lucene's own operators are refused. `any_case`: letters of
/// ASCII count as one in either case, but in ranges, as in Lucene.
pub(super) fn of_regexp(text: &str, any_case: bool) -> Result<String> {
    let refused = |what: char| {
        let reason = format!(
            "[regexp] [{text}]: [{what}] is not supported by this engine; put a backslash before it"
        );
        Err(unfit(reason).into())
    };
    let mut pattern = String::from("(?s)");
    let mut chars = text.chars().peekable();
    let (mut in_class, mut in_range) = (false, false);
    let either = |char: char| [char.to_ascii_lowercase(), char.to_ascii_uppercase()];
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped) if escaped.is_alphanumeric() => {
                    let reason = format!(
                        "[regexp] [{text}]: [\\{escaped}] means different things; write a class"
                    );
                    return Err(unfit(reason).into());
                }
                Some(escaped) => literal(&mut pattern, escaped),
                None => {
                    return Err(unfit(format!("[regexp] [{text}] ends with a backslash")).into());
                }
            },
            '[' if in_class => literal(&mut pattern, char),
            '[' => {
                in_class = true;
                pattern.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    pattern.push('^');
                }
            }
            ']' => {
                (in_class, in_range) = (false, false);
                pattern.push(']');
            }
            '-' if in_class => pattern.push('-'),
            char if in_class => {
                let is_end = std::mem::take(&mut in_range);
                in_range = !is_end && chars.peek() == Some(&'-');
                match any_case && char.is_ascii_alphabetic() && !is_end && !in_range {
                    true => pattern.extend(either(char)),
                    false => literal(&mut pattern, char),
                }
            }
            '@' | '&' | '~' | '<' | '>' | '#' | '"' => return refused(char),
            // Lucene's patterns are of whole words: these signs are themselves.
            '^' | '$' => literal(&mut pattern, char),
            '(' if chars.peek() == Some(&'?') => return refused('?'),
            '+' | '*' | '?' | '}' if chars.peek() == Some(&'?') => return refused('?'),
            char if any_case && char.is_ascii_alphabetic() => {
                pattern.push('[');
                pattern.extend(either(char));
                pattern.push(']');
            }
            char => pattern.push(char),
        }
    }
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions() {
        for (text, pattern) in
            [("a(b|c)+[^d-f.]{2,3}", "(?s)a(b|c)+[^d-f\\.]{2,3}"), ("^a$\\.", "(?s)\\^a\\$\\.")]
        {
            assert_eq!(of_regexp(text, false).ok().as_deref(), Some(pattern), "{text}");
        }
        let any_case = of_regexp("Aé[xb-d-y]{2}", true).ok();
        assert_eq!(any_case.as_deref(), Some("(?s)[aA]é[xXb-d-yY]{2}"));
        for refused in ["a@", "~a", "<1-5>", "a&b", "\\d", "a\\", "(?i)a", "a+?", "\"a\""] {
            assert!(of_regexp(refused, false).is_err(), "{refused}");
        }
    }
}
