//! Regular expressions of the field's language as those of the index library.

use query::unfit;

use super::failed::Result;

/// Signs that mean something to the library.
const SIGNS: &str = "\\.+*?()|[]{}^$#&-~";

fn literal(pattern: &mut String, char: char) {
    if SIGNS.contains(char) {
        pattern.push('\\');
    }
    pattern.push(char);
}

/// Of `regexp`: what Lucene and the library write alike; Lucene's own operators are refused.
pub(super) fn of_regexp(text: &str) -> Result<String> {
    let refused = |what: char| {
        let reason = format!(
            "[regexp] [{text}]: [{what}] is not supported by this engine; put a backslash before it"
        );
        Err(unfit(reason).into())
    };
    let mut pattern = String::from("(?s)");
    let mut chars = text.chars().peekable();
    let mut in_class = false;
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
                in_class = false;
                pattern.push(']');
            }
            '-' if in_class => pattern.push('-'),
            char if in_class => literal(&mut pattern, char),
            '@' | '&' | '~' | '<' | '>' | '#' | '"' => return refused(char),
            // Lucene's patterns are of whole words: these signs are themselves.
            '^' | '$' => literal(&mut pattern, char),
            '(' if chars.peek() == Some(&'?') => return refused('?'),
            '+' | '*' | '?' | '}' if chars.peek() == Some(&'?') => return refused('?'),
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
            assert_eq!(of_regexp(text).ok().as_deref(), Some(pattern), "{text}");
        }
        for refused in ["a@", "~a", "<1-5>", "a&b", "\\d", "a\\", "(?i)a", "a+?", "\"a\""] {
            assert!(of_regexp(refused).is_err(), "{refused}");
        }
    }
}
