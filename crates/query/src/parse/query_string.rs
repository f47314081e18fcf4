//! The language of `query_string` and `?q=`, as the field's library reads it: words, phrases, ranges and patterns, of
//! fields, with `AND`, `OR`, `NOT`, `+`, `-` and parentheses.

use super::limits::{Clauses, MAX_PARENTHESES};
use crate::error::{Result, SearchError, unfit};
use crate::query::{BoolQuery, FieldQuery, FieldsQuery, Query, QueryKind, RangeEnd, RangeQuery};
use crate::value::Literal;

/// What a text of this language is read with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryString {
    /// Fields, by patterns, and what their scores are multiplied by, where the text names none; none for those of the
    /// index.
    pub fields: Vec<(String, f32)>,
    /// `default_operator` is `AND`.
    pub all: bool,
    /// What does not fit the type of a field matches nothing in it; none for where the fields of the index are all
    /// that there are.
    pub lenient: Option<bool>,
    /// What the fields beside the best one add to a score.
    pub tie_breaker: f32,
    /// Patterns are to be read by the analyzers of their fields: none is then, but `*`.
    pub analyze_wildcard: bool,
}

impl QueryString {
    /// Reads a text.
    pub fn parse(&self, text: &str) -> Result<Query> {
        self.read(text, &mut Clauses::default())
    }

    /// Asks it of some fields; each of them is a clause.
    pub(super) fn ask(
        &self,
        fields: Vec<(String, f32)>,
        query: FieldQuery,
        tie_breaker: f32,
        clauses: &mut Clauses,
    ) -> Result<Query> {
        clauses.of_fields(&fields)?;
        let asked = FieldsQuery { fields, query, lenient: self.lenient, tie_breaker, drops: true };
        Ok(Query::of(QueryKind::Fields(Box::new(asked))))
    }

    /// Reads a text of a body that has these clauses besides.
    pub(super) fn read(&self, text: &str, clauses: &mut Clauses) -> Result<Query> {
        let wrong = |why| failed(text, why);
        let tokens = tokens(&decoded(text).map_err(wrong)?).map_err(wrong)?;
        let mut reader = Reader { of: self, text, tokens: &tokens, at: 0, clauses };
        if tokens.is_empty() {
            return Ok(Query::of(QueryKind::MatchNone));
        }
        let query = reader.query(None, 0)?;
        match reader.peek() {
            None => Ok(whole(query)),
            Some(_) => Err(reader.wrong("a parenthesis is closed that was not opened")),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    And,
    Or,
    Not,
    Plus,
    Minus,
    /// An operator with nothing behind it is a word, though most analyzers find none in it.
    Bare(char),
    Open,
    Close,
    Colon,
    Boost(f32),
    /// `~`, with or without a number.
    Tilde,
    /// A word as it was written, with its backslashes.
    Word(String),
    /// The same with `*` or `?` in it.
    Pattern(String),
    Quoted(String),
    Regexp(String),
    Range(FieldQuery),
}

const SPACE: [char; 5] = [' ', '\t', '\n', '\r', '\u{3000}'];
const SPECIAL: &str = "+-!():^[]\"{}~*?\\/";
const OPEN_QUOTE: &str = "a quote is not closed";
pub(super) const ANALYZED: &str =
    "[analyze_wildcard] is not supported by this engine where there is a pattern; leave it out";

fn failed(text: &str, why: &str) -> SearchError {
    unfit(format!("Failed to parse query [{text}]: {why}"))
}

/// What a text means beside clauses that are none of its own: without words it matches nothing, and is not left out.
pub(super) fn whole(mut query: Query) -> Query {
    if let QueryKind::Fields(asked) = &mut query.kind {
        asked.drops = false;
    }
    query
}

/// Takes `\x` for x.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        plain.extend(if char == '\\' { chars.next() } else { Some(char) });
    }
    plain
}

/// A text with `\f` for `\u0066`.
fn decoded(text: &str) -> Result<String, &'static str> {
    let (mut decoded, mut chars) = (String::new(), text.chars());
    while let Some(sign) = chars.next() {
        decoded.push(sign);
        match (sign == '\\').then(|| chars.next()).flatten() {
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                decoded.push(code.and_then(char::from_u32).ok_or("[\\u] needs four hex digits")?);
            }
            next => decoded.extend(next),
        }
    }
    Ok(decoded)
}

/// The tokens of a text; else what is wrong with it.
fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let size = first.len_utf8();
        let after = &rest[size..];
        let mut used = size;
        match first {
            _ if SPACE.contains(&first) => {}
            '(' => tokens.push(Token::Open),
            ')' => tokens.push(Token::Close),
            ':' => tokens.push(Token::Colon),
            // Alone it is a word that no analyzer keeps.
            '+' | '-' | '!' if after.starts_with(SPACE) => tokens.push(Token::Bare(first)),
            '+' => tokens.push(Token::Plus),
            '-' => tokens.push(Token::Minus),
            '!' => tokens.push(Token::Not),
            '^' | '~' => {
                let is_number = |c: char| c.is_ascii_digit() || c == '.';
                let number = after.split(|c| !is_number(c)).next().unwrap_or_default();
                used += number.len();
                tokens.push(match (first, number.parse::<f32>()) {
                    ('~', _) => Token::Tilde,
                    (_, Ok(boost)) if boost.is_finite() => Token::Boost(boost),
                    _ => return Err("[^] stands before a number"),
                });
            }
            '"' => {
                let end = plain_at(after, |sign| sign == '"').ok_or(OPEN_QUOTE)?;
                tokens.push(Token::Quoted(unescaped(&after[..end])));
                used += end + 1;
            }
            '/' => {
                let end = plain_at(after, |sign| sign == '/').ok_or("[/] is not closed")?;
                tokens.push(Token::Regexp(after[..end].replace("\\/", "/")));
                used += end + 1;
            }
            '[' | '{' => {
                let (range, bytes) = range(after, first == '[')?;
                tokens.push(range);
                used += bytes;
            }
            ']' | '}' => return Err("a range is closed that was not opened"),
            _ => {
                used = word_bytes(rest);
                if used == 0 {
                    return Err("it ends with a backslash");
                }
                tokens.push(match &rest[..used] {
                    "AND" | "&&" => Token::And,
                    "OR" | "||" => Token::Or,
                    "NOT" => Token::Not,
                    word if plain_at(word, |sign| "*?".contains(sign)).is_some() => {
                        Token::Pattern(word.to_owned())
                    }
                    word => Token::Word(word.to_owned()),
                });
            }
        }
        rest = &rest[used..];
    }
    Ok(tokens)
}

/// Where the first of some signs stands that is not escaped.
pub(super) fn plain_at(text: &str, is_sign: impl Fn(char) -> bool) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, char)| {
        let is_plain = !escaped && is_sign(char);
        escaped = char == '\\' && !escaped;
        is_plain.then_some(at)
    })
}

/// Bytes of the word that a text begins with.
fn word_bytes(text: &str) -> usize {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' if chars.next().is_none() => return at,
            '\\' | '*' | '?' => {}
            '+' | '-' if at > 0 => {}
            _ if SPACE.contains(&char) || SPECIAL.contains(char) => return at,
            _ => {}
        }
    }
    text.len()
}

/// A range behind its opening bracket, and the bytes that it takes.
fn range(after: &str, includes_low: bool) -> Result<(Token, usize), &'static str> {
    let mut ends: Vec<(String, bool)> = Vec::new();
    let is_to = |(word, quoted): &(String, bool)| word == "TO" && !quoted;
    let mut at = 0;
    loop {
        let rest = &after[at..];
        match rest.chars().next().ok_or("a range is not closed")? {
            ' ' => at += 1,
            last @ (']' | '}') => {
                let (low, high) = match ends.as_slice() {
                    [low, to, high] if is_to(to) => (&low.0, &high.0),
                    [low, high] if !is_to(low) && !is_to(high) => (&low.0, &high.0),
                    _ => return Err("a range is like [1 TO 2]"),
                };
                let end = |text: &String, included| {
                    let value = Literal::Text(text.clone());
                    (text != "*").then_some(RangeEnd { value, included })
                };
                let range = between(end(low, includes_low), end(high, last == ']'));
                return Ok((Token::Range(range), at + 1));
            }
            '"' => {
                let end = plain_at(&rest[1..], |sign| sign == '"').ok_or(OPEN_QUOTE)?;
                ends.push((unescaped(&rest[1..=end]), true));
                at += end + 2;
            }
            _ => {
                let end = rest.find([' ', ']', '}']).unwrap_or(rest.len());
                ends.push((unescaped(&rest[..end]), false));
                at += end;
            }
        }
    }
}

/// What lies between two ends, in the letters of the field's words.
fn between(lower: Option<RangeEnd>, upper: Option<RangeEnd>) -> FieldQuery {
    FieldQuery::Range(RangeQuery { lower, upper, analyzed: true, ..RangeQuery::default() })
}

struct Reader<'a> {
    of: &'a QueryString,
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    clauses: &'a mut Clauses,
}

#[derive(Clone, Copy, PartialEq)]
enum Occurs {
    Must,
    Should,
    MustNot,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, token: &Token) -> bool {
        let is_it = self.peek() == Some(token);
        self.at += usize::from(is_it);
        is_it
    }

    fn wrong(&self, why: &str) -> SearchError {
        failed(self.text, why)
    }

    /// Clauses up to the end, or to the parenthesis that closes them.
    fn query(&mut self, field: Option<&str>, depth: usize) -> Result<Query> {
        if depth > MAX_PARENTHESES {
            return Err(self.wrong("its parentheses are nested too deep"));
        }
        let mut clauses: Vec<(Occurs, Query)> = Vec::new();
        while !matches!(self.peek(), None | Some(Token::Close)) {
            let words = self.words();
            if words.len() > 1 {
                self.at += words.len();
                let occurs = if self.of.all { Occurs::Must } else { Occurs::Should };
                clauses.push((occurs, self.matched(field, &words.join(" "))?));
                continue;
            }
            let and = !clauses.is_empty() && self.takes(&Token::And);
            let or = !clauses.is_empty() && !and && self.takes(&Token::Or);
            let required = self.takes(&Token::Plus);
            let prohibited = !required && (self.takes(&Token::Minus) || self.takes(&Token::Not));
            let query = self.clause(field, depth)?;
            // `AND` binds what stands before it, too; with AND as the default, `OR` frees it.
            if let Some((occurs, _)) = clauses.last_mut().filter(|(o, _)| *o != Occurs::MustNot) {
                match (and, or && self.of.all) {
                    (true, _) => *occurs = Occurs::Must,
                    (_, true) => *occurs = Occurs::Should,
                    _ => {}
                }
            }
            let is_must = if self.of.all { !or } else { required || and };
            let occurs = match prohibited {
                true => Occurs::MustNot,
                false if is_must => Occurs::Must,
                false => Occurs::Should,
            };
            clauses.push((occurs, query));
        }
        Ok(match clauses.as_slice() {
            [] => {
                return Err(
                    self.wrong("something is to stand between parentheses, and around operators")
                );
            }
            [(occurs, _)] if *occurs != Occurs::MustNot => clauses.remove(0).1,
            _ => {
                let of = |occurs| {
                    let clauses = clauses.iter().filter(move |(o, _)| *o == occurs);
                    clauses.map(|(_, query)| query.clone()).collect()
                };
                let (must, should) = (of(Occurs::Must), of(Occurs::Should));
                let must_not = of(Occurs::MustNot);
                let query = BoolQuery { must, should, must_not, ..BoolQuery::default() };
                Query::of(QueryKind::Bool(Box::new(query)))
            }
        })
    }

    /// Words that stand one after another are one text: the last of them is not, where something is said of it alone.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for at in self.at.. {
            let Some(Token::Word(word)) = self.tokens.get(at) else { break };
            let next = self.tokens.get(at + 1);
            let is_alone = matches!(
                next,
                Some(Token::And | Token::Or | Token::Colon | Token::Boost(_) | Token::Tilde)
            );
            if is_alone {
                break;
            }
            words.push(unescaped(word));
        }
        words
    }

    fn clause(&mut self, field: Option<&str>, depth: usize) -> Result<Query> {
        let named = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Token::Word(name) | Token::Pattern(name)), Some(Token::Colon)) => {
                Some(unescaped(name))
            }
            _ => None,
        };
        self.at += 2 * usize::from(named.is_some());
        let field = named.as_deref().or(field);
        let query = match self.takes(&Token::Open) {
            true => {
                let query = self.query(field, depth + 1)?;
                if !self.takes(&Token::Close) {
                    return Err(self.wrong("a parenthesis is not closed"));
                }
                query
            }
            false => self.leaf(field)?,
        };
        if self.takes(&Token::Tilde) {
            return Err(
                self.wrong("[~] is not supported by this engine; send the words without it")
            );
        }
        let Some(Token::Boost(boost)) = self.peek() else { return Ok(query) };
        let boost = *boost;
        self.at += 1;
        Ok(Query { boost: query.boost * boost, ..query })
    }

    fn leaf(&mut self, field: Option<&str>) -> Result<Query> {
        let token = self.peek().cloned();
        self.at += 1;
        Ok(match token {
            Some(Token::Word(word)) => {
                let text = unescaped(&word);
                match (of_metadata(field, &text), field, one_sided(&word)) {
                    (Some(kind), ..) => self.of_no_field(kind)?,
                    (_, Some(_), Some(range)) => self.asked(field, range)?,
                    _ => self.matched(field, &text)?,
                }
            }
            Some(Token::Quoted(text)) => match of_metadata(field, &text) {
                Some(kind) => self.of_no_field(kind)?,
                None => self.asked(field, FieldQuery::MatchPhrase(Literal::Text(text)))?,
            },
            Some(Token::Bare(sign)) => self.matched(field, sign.encode_utf8(&mut [0; 4]))?,
            Some(Token::Pattern(pattern)) if pattern == "*" => {
                let fields = &self.of.fields;
                let of_all = !fields.is_empty() && fields.iter().all(|(of, _)| of == "*");
                match field {
                    Some("*") => self.of_no_field(QueryKind::MatchAll)?,
                    None if of_all => self.of_no_field(QueryKind::MatchAll)?,
                    Some(field) => self.of_no_field(QueryKind::Exists(field.to_owned()))?,
                    None => self.wildcard(None, pattern)?,
                }
            }
            Some(Token::Pattern(pattern)) => self.wildcard(field, pattern)?,
            Some(Token::Regexp(regexp)) => {
                self.asked(field, FieldQuery::Regexp { pattern: regexp, any_case: false })?
            }
            Some(Token::Range(range)) => self.asked(field, range)?,
            _ => return Err(self.wrong("a word is missing where an operator stands")),
        })
    }

    fn wildcard(&mut self, field: Option<&str>, pattern: String) -> Result<Query> {
        if self.of.analyze_wildcard && pattern != "*" {
            return Err(self.wrong(ANALYZED));
        }
        self.asked(field, FieldQuery::Wildcard { pattern, analyzed: true, any_case: false })
    }

    fn matched(&mut self, field: Option<&str>, text: &str) -> Result<Query> {
        self.asked(field, FieldQuery::words(text, self.of.all))
    }

    fn of_no_field(&mut self, kind: QueryKind) -> Result<Query> {
        self.clauses.add(1)?;
        Ok(Query::of(kind))
    }

    /// Asked of the field that the text names, or of those that it need not name.
    fn asked(&mut self, field: Option<&str>, query: FieldQuery) -> Result<Query> {
        let fields = match field {
            Some(field) => vec![(field.to_owned(), 1.0)],
            None => self.of.fields.clone(),
        };
        self.of.ask(fields, query, self.of.tie_breaker, self.clauses)
    }
}

/// What a word or a phrase asks under a name that is no field's.
fn of_metadata(name: Option<&str>, text: &str) -> Option<QueryKind> {
    match name {
        Some("_exists_") => Some(QueryKind::Exists(text.to_owned())),
        Some("_id") => Some(QueryKind::Ids(vec![text.to_owned()])),
        _ => None,
    }
}

/// `>5`, `<=7`.
fn one_sided(word: &str) -> Option<FieldQuery> {
    let (sign, rest) = word.split_at_checked(1).filter(|(sign, _)| matches!(*sign, "<" | ">"))?;
    let value = rest.strip_prefix('=').unwrap_or(rest);
    let included = value.len() < rest.len();
    let end = RangeEnd { value: Literal::Text(unescaped(value)), included };
    let (lower, upper) = if sign == ">" { (Some(end), None) } else { (None, Some(end)) };
    (!value.is_empty()).then(|| between(lower, upper))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A query as Lucene shows it.
    pub(in crate::parse) fn shown(query: &Query) -> String {
        let text = match &query.kind {
            QueryKind::MatchAll => "*:*".to_owned(),
            QueryKind::MatchNone => "none".to_owned(),
            QueryKind::Exists(field) => format!("exists({field})"),
            QueryKind::Ids(ids) => format!("ids({})", ids.join(" ")),
            QueryKind::Bool(query) => {
                let BoolQuery { must, should, must_not, .. } = &**query;
                let all = [("+", must), ("", should), ("-", must_not)];
                let all = all.into_iter().flat_map(|(sign, clauses)| {
                    clauses.iter().map(move |query| format!("{sign}{}", shown(query)))
                });
                format!("({})", all.collect::<Vec<_>>().join(" "))
            }
            QueryKind::Fields(fields) => {
                let asked = match &fields.query {
                    FieldQuery::Match { value, all, .. } => {
                        value.text().replace(' ', if *all { "&" } else { "|" })
                    }
                    FieldQuery::MatchPhrase(value) => format!("{:?}", value.text()),
                    FieldQuery::Wildcard { pattern, .. } => format!("~{pattern}"),
                    FieldQuery::Regexp { pattern, .. } => format!("/{pattern}/"),
                    FieldQuery::Range(RangeQuery { lower, upper, .. }) => {
                        let end = |end: &Option<RangeEnd>, closed: char, open: char| match end {
                            None => "*".to_owned(),
                            Some(end) => {
                                format!(
                                    "{}{}",
                                    end.value.text(),
                                    if end.included { closed } else { open }
                                )
                            }
                        };
                        format!("{}..{}", end(lower, '[', '{'), end(upper, ']', '}'))
                    }
                    other => format!("{other:?}"),
                };
                format!(
                    "{}:{asked}",
                    fields.fields.first().map_or("*", |(field, _)| field.as_str())
                )
            }
            other => format!("{other:?}"),
        };
        if query.boost == 1.0 { text } else { format!("{text}^{}", query.boost) }
    }

    fn read(text: &str, all: bool) -> String {
        let of = QueryString { all, ..QueryString::default() };
        of.parse(text).map_or_else(|error| format!("! {}", error.reason), |query| shown(&query))
    }

    #[test]
    fn reads_as_lucene_does() {
        for (text, any, all) in [
            ("a", "*:a", "*:a"),
            ("a b c", "*:a|b|c", "*:a&b&c"),
            ("a AND b", "(+*:a +*:b)", "(+*:a +*:b)"),
            ("a && b || c", "(+*:a +*:b *:c)", "(+*:a *:b *:c)"),
            ("a OR b AND c", "(+*:b +*:c *:a)", "(+*:b +*:c *:a)"),
            ("a b c AND d", "(+*:c +*:d *:a|b)", "(+*:a&b +*:c +*:d)"),
            ("+a -b c", "(+*:a *:c -*:b)", "(+*:a +*:c -*:b)"),
            ("a NOT b", "(*:a -*:b)", "(+*:a -*:b)"),
            ("!a", "(-*:a)", "(-*:a)"),
            ("a - b", "(*:a *:- *:b)", "(+*:a +*:- +*:b)"),
            ("x:a b", "(x:a *:b)", "(+x:a +*:b)"),
            ("x:(a b) y:c^2", "(x:a|b y:c^2)", "(+x:a&b +y:c^2)"),
            ("(a OR b)^3 c", "((*:a *:b)^3 *:c)", "(+(*:a *:b)^3 +*:c)"),
            ("\"a b\" c", "(*:\"a b\" *:c)", "(+*:\"a b\" +*:c)"),
            ("x:[1 TO 5}", "x:1[..5}", "x:1[..5}"),
            ("x:{* TO \"5 6\"]", "x:*..5 6]", "x:*..5 6]"),
            ("x:>=5 y:<a z:>", "(x:5[..* y:*..a} z:>)", "(+x:5[..* +y:*..a} +z:>)"),
            ("a* x:b?c", "(*:~a* x:~b?c)", "(+*:~a* +x:~b?c)"),
            ("*", "*:~*", "*:~*"),
            ("*:*", "*:*", "*:*"),
            ("x:*", "exists(x)", "exists(x)"),
            ("x.*:*", "exists(x.*)", "exists(x.*)"),
            ("_exists_:x.y", "exists(x.y)", "exists(x.y)"),
            ("_exists_:\"x y\"", "exists(x y)", "exists(x y)"),
            ("_id:3 _id:\"4\"", "(ids(3) ids(4))", "(+ids(3) +ids(4))"),
            ("/a.\\/b/", "*:/a./b/", "*:/a./b/"),
            ("a\\ \\u0062\\:c\\u002a", "*:a|b:c*", "*:a&b:c*"),
            ("2020-01-01 a+b", "*:2020-01-01|a+b", "*:2020-01-01&a+b"),
            ("andy OReilly", "*:andy|OReilly", "*:andy&OReilly"),
            (" ", "none", "none"),
        ] {
            assert_eq!(read(text, false), any, "{text}");
            assert_eq!(read(text, true), all, "{text} with AND");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (text, why) in [
            ("(a", "not closed"),
            ("a)", "not opened"),
            ("()", "between parentheses"),
            ("\"a", "quote"),
            ("[1 TO", "not closed"),
            ("[1 TO 2 3]", "like [1 TO 2]"),
            ("x:]", "not opened"),
            ("a AND", "missing"),
            ("x:", "missing"),
            ("a^b", "number"),
            ("a~2", "[~] is not supported"),
            ("\"a b\"~3", "[~] is not supported"),
            ("a\\", "backslash"),
            ("a\\u006", "four hex digits"),
            (&"(".repeat(50), "too deep"),
            (&"a OR ".repeat(50_000), "more than 1024 clauses"),
            (&"x:* ".repeat(50_000), "more than 1024 clauses"),
            (&format!("{}:a", "x".repeat(1025)), "at most 1024 bytes"),
        ] {
            let said = read(text, false);
            assert!(said.starts_with("! ") && said.contains(why), "{text}: {said}");
            let is_of_text = !why.contains("1024");
            assert_eq!(said.starts_with("! Failed to parse query ["), is_of_text, "{said}");
        }
    }
}
