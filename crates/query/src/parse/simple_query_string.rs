//! The language of `simple_query_string`, as Lucene's `SimpleQueryParser` reads it: `+`, `|`, `-`, phrases, prefixes
//! and parentheses. Nothing of it is wrong: what cannot be an operator is passed over.

use super::limits::{Clauses, MAX_PARENTHESES};
use super::query_string::{ANALYZED, QueryString, plain_at, unescaped, whole};
use crate::error::{Result, illegal};
use crate::query::{BoolQuery, FieldQuery, Query, QueryKind};
use crate::value::Literal;

/// Clauses within each other, at most: parentheses are, a `-`, and what stands before each change between `+` and `|`.
const MAX_NESTED: usize = 64;

/// A pattern of a text alone.
pub(super) fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for char in text.chars() {
        if matches!(char, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

impl QueryString {
    /// Reads a text of this language, of a body that has these clauses besides. Fails where it asks for what this
    /// engine does not have.
    pub(super) fn read_simple(&self, text: &str, clauses: &mut Clauses) -> Result<Query> {
        // Alone it stands for all documents, whatever their fields; beside others it is a word.
        if text.trim() == "*" {
            return Ok(Query::match_all());
        }
        let mut reader = Reader { of: self, rest: text, clauses };
        Ok(reader.query(0)?.map_or_else(|| Query::of(QueryKind::MatchNone), whole))
    }
}

struct Reader<'a> {
    of: &'a QueryString,
    rest: &'a str,
    clauses: &'a mut Clauses,
}

/// Clauses within another clause.
fn nested(of: BoolQuery) -> Query {
    Query::of(QueryKind::Bool(Box::new(BoolQuery { drops: true, ..of })))
}

/// How many clauses stand around the innermost one of a query that was made here.
fn depth(query: &Query) -> usize {
    let QueryKind::Bool(of) = &query.kind else { return 0 };
    let clauses = [&of.must, &of.should, &of.must_not].into_iter().flatten();
    1 + clauses.map(depth).max().unwrap_or(0)
}

/// Clauses so far, whether each of them must match, and how deep the deepest is.
#[derive(Default)]
struct Joined {
    all: Option<bool>,
    queries: Vec<Query>,
    depth: usize,
}

impl Joined {
    fn query(mut self) -> Option<Query> {
        if self.queries.len() < 2 {
            return self.queries.pop();
        }
        let (must, should) = match self.all {
            Some(true) => (self.queries, Vec::new()),
            _ => (Vec::new(), self.queries),
        };
        Some(nested(BoolQuery { must, should, ..BoolQuery::default() }))
    }

    /// Another operator than before takes all that stands before it as one clause.
    fn add(&mut self, of: Query, all: bool) -> Result<()> {
        if self.all.is_some_and(|before| before != all) {
            let before = std::mem::take(self).query();
            self.depth = before.as_ref().map_or(0, depth);
            self.queries.extend(before);
        }
        if !self.queries.is_empty() {
            self.all = Some(all);
        }
        self.depth = self.depth.max(depth(&of));
        self.queries.push(of);
        if self.depth >= MAX_NESTED {
            return Err(illegal(format!(
                "[simple_query_string] has more than {MAX_NESTED} clauses within each other: each change between [+] \
                 and [|] takes what stands before it as one; send [bool], or what belongs together in parentheses"
            )));
        }
        Ok(())
    }
}

fn negated(of: Query) -> Query {
    let (should, must_not) = (vec![Query::match_all()], vec![of]);
    nested(BoolQuery { should, must_not, ..BoolQuery::default() })
}

impl Reader<'_> {
    /// Clauses up to the end, or to the parenthesis that closes them.
    fn query(&mut self, depth: usize) -> Result<Option<Query>> {
        if depth > MAX_PARENTHESES {
            return Err(illegal("[simple_query_string] has parentheses nested too deep"));
        }
        let (mut joined, mut operator, mut not) = (Joined::default(), None, false);
        while let Some(sign) = self.rest.chars().next() {
            let after = &self.rest[sign.len_utf8()..];
            let found = match sign {
                ')' if depth > 0 => break,
                _ if "+|-)".contains(sign) || sign.is_whitespace() => {
                    self.rest = after;
                    // It counts where a clause follows at once, and a second one takes it back.
                    not = sign == '-' && !not;
                    // The first of several operators counts, and none before the first clause.
                    if "+|".contains(sign) && !joined.queries.is_empty() {
                        operator = operator.or(Some(sign == '+'));
                    }
                    // A parenthesis that closes nothing is passed over.
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
            if let Some(of) = found {
                let of = if not { negated(of) } else { of };
                joined.add(of, operator.take().unwrap_or(self.of.all))?;
            }
            not = false;
        }
        Ok(joined.query())
    }

    /// As in the field: of words every field counts, of a phrase the best alone.
    fn asked(&mut self, query: FieldQuery) -> Result<Option<Query>> {
        let tie_breaker = if matches!(query, FieldQuery::MatchPhrase(_)) { 0.0 } else { 1.0 };
        self.of.ask(self.of.fields.clone(), query, tie_breaker, self.clauses).map(Some)
    }

    fn phrase(&mut self) -> Result<Option<Query>> {
        let after = &self.rest[1..];
        self.rest = after;
        // What is not closed is not opened.
        let Some(end) = plain_at(after, |sign| sign == '"') else { return Ok(None) };
        self.rest = &after[end + 1..];
        self.refuse_tilde()?;
        match unescaped(&after[..end]) {
            text if text.is_empty() => Ok(None),
            text => self.asked(FieldQuery::MatchPhrase(Literal::Text(text))),
        }
    }

    /// Behind a word or a phrase it asks for others that are like it, also without a number.
    fn refuse_tilde(&self) -> Result<()> {
        if self.rest.starts_with('~') {
            return Err(illegal(
                "[simple_query_string] with [~] is not supported by this engine; send the words without it",
            ));
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Option<Query>> {
        let is_end = |sign: char| sign.is_whitespace() || "+|()\"~".contains(sign);
        // A `~` that opens a word is one of its signs.
        let first = usize::from(self.rest.starts_with('~'));
        let end = plain_at(&self.rest[first..], is_end).map_or(self.rest.len(), |end| first + end);
        let (written, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.refuse_tilde()?;
        let text = unescaped(written);
        if text.is_empty() {
            return Ok(None);
        }
        let is_prefix = |prefix: &&str| !prefix.is_empty() && !written.ends_with("\\*");
        let prefix = text.strip_suffix('*').filter(is_prefix);
        let (all, analyze) = (self.of.all, self.of.analyze_wildcard);
        self.asked(match prefix {
            Some(_) if analyze => return Err(illegal(ANALYZED)),
            Some(prefix) => FieldQuery::Wildcard {
                pattern: escaped(prefix) + "*",
                analyzed: true,
                any_case: false,
            },
            None => FieldQuery::words(&text, all),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::query_string;
    use super::*;

    /// As Lucene shows it, without the field.
    fn shown(query: &Query) -> String {
        query_string::tests::shown(query).replace("f:", "").replace("*:*", "*")
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
            ("- a", "a", "a"),
            ("--a", "a", "a"),
            ("-+a", "a", "a"),
            ("-\"a", "a", "a"),
            ("*", "*", "*"),
            ("a * ** ~b", "(a * ~\\** ~b)", "(+a +* +~\\** +~b)"),
            ("()", "none", "none"),
            ("", "none", "none"),
        ] {
            let read = |all| {
                let fields = vec![("f".to_owned(), 1.0)];
                let of = QueryString { fields, all, ..QueryString::default() };
                shown(&of.read_simple(text, &mut Clauses::default()).unwrap())
            };
            assert_eq!((read(false), read(true)), (any.to_owned(), all.to_owned()), "{text}");
        }
        for (text, why) in [
            ("roam~1", "[~]"),
            ("a roam~ b", "[~]"),
            ("\"a b\"~", "[~]"),
            (&"(".repeat(50), "too deep"),
            (&"a ".repeat(1025), "1024 clauses"),
            (&"(a b) ".repeat(513), "1024 clauses"),
        ] {
            let read = QueryString::default().read_simple(text, &mut Clauses::default());
            assert!(read.unwrap_err().reason.contains(why), "{text}");
        }
    }

    #[test]
    fn patterns_are_not_analyzed() {
        let of = QueryString { analyze_wildcard: true, ..QueryString::default() };
        let read = |text: &str| of.read_simple(text, &mut Clauses::default());
        assert!(read("*").is_ok() && read("a | b").is_ok());
        assert!(read("a b*").unwrap_err().reason.contains("[analyze_wildcard]"));
    }

    /// What is made of a text is walked by functions that call themselves, its end of life included.
    #[test]
    fn clauses_are_nested_no_deeper_than_the_bound() {
        let of = QueryString::default();
        let read = |text: &str| of.read_simple(text, &mut Clauses::default());
        let groups = |times: usize| format!("{}a{}", "b|-(c+".repeat(times), ")".repeat(times));
        let (long, mut deepest) = ("a+b|".repeat(40), 0);
        for words in 1..80 {
            match read(&long[..2 * words - 1]) {
                Ok(query) => deepest = deepest.max(depth(&query)),
                Err(error) => assert!(error.reason.contains("within each other"), "{error}"),
            }
        }
        assert_eq!(deepest, MAX_NESTED);
        assert_eq!(depth(&read(&groups(20)).unwrap()), 41);
        for text in ["a+b|".repeat(50_000), "a+b|".repeat(1000), "a|-b+".repeat(50_000)] {
            assert!(read(&text).unwrap_err().reason.contains("within each other"));
        }
    }
}
