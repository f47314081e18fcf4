//! The language of `simple_query_string`, as Lucene's `SimpleQueryParser` reads it: `+`, `|`, `-`, phrases, prefixes
//! and parentheses. Nothing of it is wrong: what cannot be an operator is passed over.

use crate::error::{SearchError, illegal};
use crate::query::{BoolQuery, FieldQuery, FieldsQuery, Query, QueryKind};
use crate::value::Literal;

type Result<T> = std::result::Result<T, SearchError>;

/// Parentheses within each other, and clauses, at most.
const MAX_DEPTH: usize = 20;
const MAX_CLAUSES: usize = 1024;

/// What a text of this language is read with.
pub(super) struct SimpleQueryString {
    pub(super) fields: Vec<(String, f32)>,
    /// `default_operator` is `AND`.
    pub(super) all: bool,
    pub(super) lenient: Option<bool>,
}

impl SimpleQueryString {
    /// Reads a text. Fails where it asks for what this engine does not have.
    pub(super) fn parse(&self, text: &str) -> Result<Query> {
        let mut reader = Reader { of: self, rest: text };
        let query = reader.query(0)?;
        Ok(query.unwrap_or_else(|| Query::of(QueryKind::MatchNone)))
    }

    fn asked(&self, query: FieldQuery) -> Query {
        let (fields, lenient) = (self.fields.clone(), self.lenient);
        // As in the field: every field counts, not the best alone.
        let asked =
            FieldsQuery { fields, query, lenient, tie_breaker: 0.0, sums: true, drops: true };
        Query::of(QueryKind::Fields(Box::new(asked)))
    }
}

struct Reader<'a> {
    of: &'a SimpleQueryString,
    rest: &'a str,
}

/// Clauses so far, and whether each of them must match.
#[derive(Default)]
struct Clauses {
    all: Option<bool>,
    queries: Vec<Query>,
}

impl Clauses {
    fn query(mut self) -> Option<Query> {
        if self.queries.len() < 2 {
            return self.queries.pop();
        }
        let (must, should) = match self.all {
            Some(true) => (self.queries, Vec::new()),
            _ => (Vec::new(), self.queries),
        };
        let query = BoolQuery { must, should, ..BoolQuery::default() };
        Some(Query::of(QueryKind::Bool(Box::new(query))))
    }

    /// Another operator than before takes all that stands before it as one clause.
    fn add(&mut self, query: Query, all: bool) {
        if self.all.is_some_and(|before| before != all) {
            let before = std::mem::take(self).query();
            self.queries.extend(before);
        }
        if !self.queries.is_empty() {
            self.all = Some(all);
        }
        self.queries.push(query);
    }
}

fn negated(query: Query) -> Query {
    let (should, must_not) = (vec![Query::match_all()], vec![query]);
    Query::of(QueryKind::Bool(Box::new(BoolQuery { should, must_not, ..BoolQuery::default() })))
}

impl Reader<'_> {
    /// Clauses up to the end, or to the parenthesis that closes them.
    fn query(&mut self, depth: usize) -> Result<Option<Query>> {
        if depth > MAX_DEPTH {
            return Err(illegal("[simple_query_string] has parentheses nested too deep"));
        }
        let (mut clauses, mut operator, mut not) = (Clauses::default(), None, false);
        while let Some(sign) = self.rest.chars().next() {
            let after = &self.rest[sign.len_utf8()..];
            let found = match sign {
                '+' | '|' => {
                    // The first of several operators counts, and none before the first clause.
                    if !clauses.queries.is_empty() {
                        operator = operator.or(Some(sign == '+'));
                    }
                    self.rest = after;
                    continue;
                }
                '-' => {
                    not = !not;
                    self.rest = after;
                    continue;
                }
                ')' if depth > 0 => break,
                // One that closes nothing is passed over.
                _ if sign == ')' || sign.is_whitespace() => {
                    self.rest = after;
                    continue;
                }
                '(' => {
                    self.rest = after;
                    let query = self.query(depth + 1)?;
                    self.rest = self.rest.strip_prefix(')').unwrap_or(self.rest);
                    query
                }
                '"' => self.phrase()?,
                _ => self.word()?,
            };
            if let Some(query) = found {
                let query = if not { negated(query) } else { query };
                clauses.add(query, operator.take().unwrap_or(self.of.all));
                not = false;
                if clauses.queries.len() > MAX_CLAUSES {
                    return Err(illegal("[simple_query_string] has more than 1024 clauses"));
                }
            }
        }
        Ok(clauses.query())
    }

    /// Takes what stands before one of `ends` that no backslash escapes; without the backslashes.
    fn take(&mut self, ends: impl Fn(char) -> bool) -> (String, Option<char>) {
        let mut taken = String::new();
        let mut chars = self.rest.chars();
        loop {
            self.rest = chars.as_str();
            match chars.next() {
                Some('\\') => taken.extend(chars.next()),
                Some(sign) if ends(sign) => return (taken, Some(sign)),
                Some(sign) => taken.push(sign),
                None => return (taken, None),
            }
        }
    }

    fn phrase(&mut self) -> Result<Option<Query>> {
        let whole = self.rest;
        self.rest = &whole[1..];
        let (text, end) = self.take(|sign| sign == '"');
        if end.is_none() {
            // What is not closed is not opened.
            self.rest = &whole[1..];
            return Ok(None);
        }
        self.rest = &self.rest[1..];
        self.refuse_tilde()?;
        let phrase = FieldQuery::MatchPhrase(Literal::Text(text.clone()));
        Ok((!text.is_empty()).then(|| self.of.asked(phrase)))
    }

    fn refuse_tilde(&self) -> Result<()> {
        match self.rest.strip_prefix('~').and_then(|rest| rest.chars().next()) {
            Some(next) if next.is_ascii_digit() => Err(illegal(
                "[simple_query_string] with [~] is not supported by this engine; send the words without it",
            )),
            _ => Ok(()),
        }
    }

    fn word(&mut self) -> Result<Option<Query>> {
        let begin = self.rest;
        let (text, _) = self.take(|sign| sign.is_whitespace() || "+|()\"~".contains(sign));
        let written = &begin[..begin.len() - self.rest.len()];
        if self.rest.starts_with('~') {
            self.refuse_tilde()?;
            self.rest = &self.rest[1..];
        }
        if text.is_empty() {
            return Ok(None);
        }
        let prefix = text.strip_suffix('*').filter(|_| !written.ends_with("\\*"));
        Ok(Some(self.of.asked(match prefix {
            Some(prefix) => FieldQuery::Wildcard { pattern: escaped(prefix), analyzed: true },
            None => FieldQuery::Match {
                value: Literal::Text(text),
                all: self.of.all,
                minimum: None,
                lenient: false,
                fuzziness: None,
            },
        })))
    }
}

/// A pattern of what begins with a text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for char in text.chars() {
        if matches!(char, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('*');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &Query) -> String {
        match &query.kind {
            QueryKind::MatchAll => "*".to_owned(),
            QueryKind::MatchNone => "none".to_owned(),
            QueryKind::Bool(query) => {
                let BoolQuery { must, should, must_not, .. } = &**query;
                let all = [("+", must), ("", should), ("-", must_not)];
                let all = all.into_iter().flat_map(|(sign, clauses)| {
                    clauses.iter().map(move |query| format!("{sign}{}", shown(query)))
                });
                format!("({})", all.collect::<Vec<_>>().join(" "))
            }
            QueryKind::Fields(fields) => match &fields.query {
                FieldQuery::Match { value, .. } => value.text(),
                FieldQuery::MatchPhrase(value) => format!("{:?}", value.text()),
                FieldQuery::Wildcard { pattern, .. } => format!("~{pattern}"),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn reads_as_lucene_does() {
        for (text, any, all) in [
            ("a", "a", "a"),
            ("a b c", "(a b c)", "(+a +b +c)"),
            ("a + b | c", "((+a +b) c)", "((+a +b) c)"),
            ("a b + c", "(+(a b) +c)", "(+a +b +c)"),
            ("a -b", "(a (* -b))", "(+a +(* -b))"),
            ("\"a b\" c", "(\"a b\" c)", "(+\"a b\" +c)"),
            ("a* b\\*", "(~a* b*)", "(+~a* +b*)"),
            ("(a | b) + c", "(+(a b) +c)", "(+(a b) +c)"),
            ("a ) b", "(a b)", "(+a +b)"),
            ("\"a", "a", "a"),
            ("+ | a", "a", "a"),
            ("a-b", "a-b", "a-b"),
            ("()", "none", "none"),
            ("", "none", "none"),
        ] {
            let read = |all| {
                let of =
                    SimpleQueryString { fields: vec![("f".to_owned(), 1.0)], all, lenient: None };
                shown(&of.parse(text).unwrap())
            };
            assert_eq!((read(false), read(true)), (any.to_owned(), all.to_owned()), "{text}");
        }
        let of = SimpleQueryString { fields: Vec::new(), all: false, lenient: None };
        assert!(of.parse("roam~1").unwrap_err().reason.contains("[~]"));
        assert!(of.parse(&"(".repeat(50)).unwrap_err().reason.contains("too deep"));
        assert!(of.parse(&"a ".repeat(1025)).unwrap_err().reason.contains("1024 clauses"));
    }
}
