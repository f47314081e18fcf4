//! Queries about the words of a field: those of a text, and keywords, which are words of their own.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, InvertedIndexRangeQuery, Occur, PhraseQuery, RegexQuery, TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy_fst::Regex;

use query::{FieldType, Fuzziness, Literal, MinimumShouldMatch, illegal, unfit};

use super::failed::Result;
use super::fuzzy::near_words;
use super::indexed_field::IndexedField;
use super::pattern;
use super::resolve::{CLAUSE_BYTES, Resolved, Resolver, boosted, constant, nothing};
use super::statistics::{FieldCounts, Scored};
use super::wildcard::{self, MAX_SIGNS};
use crate::tantivy_storage::analyzer::{each_word, in_lower_case};

/// Regular expressions in a search: each is compiled to as many as 1000 states of some kilobytes.
const MAX_REGEXPS: usize = 16;
/// What finds words near a word takes room for each of its letters, and time: 8 KB of them take about a second.
const FUZZY_BYTES_MAX: usize = 1024;
const BYTES_OF_FUZZY_BYTE: usize = 32 << 10;

impl Resolver<'_> {
    /// `found_in`: the documents that a word counts as found in, if not in its own.
    fn scored(
        &self,
        indexed: &IndexedField,
        query: Resolved,
        found_in: Option<u64>,
    ) -> Result<Resolved> {
        if indexed.mapped.kind == FieldType::MatchOnlyText {
            return Ok(constant(query, 1.0));
        }
        let counts = self.counts(indexed)?;
        Ok(Box::new(Scored { counts, query: query.into(), found_in }))
    }

    pub(super) fn counts(&self, indexed: &IndexedField) -> tantivy::Result<FieldCounts> {
        self.findings.counts.of(self.searcher, indexed)
    }

    /// The words of a text, each with its position.
    pub(super) fn words(&self, indexed: &IndexedField, text: &str) -> Result<Vec<(usize, Term)>> {
        if indexed.mapped.kind == FieldType::Keyword {
            return Ok(vec![(0, Term::from_field_text(indexed.field, text))]);
        }
        self.spend(text.len())?;
        let mut words = Vec::new();
        each_word(indexed.mapped.analyzers.1, text, |position, word| {
            if self.spend(CLAUSE_BYTES).is_ok() {
                words.push((position, Term::from_field_text(indexed.field, word)));
            }
        });
        self.spend(0)?;
        Ok(words)
    }

    pub(super) fn match_words(
        &self,
        indexed: &IndexedField,
        value: &Literal,
        (all, minimum, fuzziness): (bool, Option<&MinimumShouldMatch>, Option<&Fuzziness>),
    ) -> Result<Resolved> {
        if !indexed.is_text() {
            if fuzziness.is_some() {
                self.only_texts(indexed, "fuzzy")?;
            }
            return self.term(indexed, value);
        }
        let words = self.words(indexed, &value.text())?;
        let mut clauses: Vec<(Occur, Resolved)> = Vec::new();
        let occur = if all { Occur::Must } else { Occur::Should };
        for (_, word) in words {
            let word = match (fuzziness, word.value().as_str()) {
                (Some(fuzziness), Some(text)) => self.fuzzy(indexed, text, fuzziness)?,
                _ => self.word(indexed, word, None)?,
            };
            clauses.push((occur, word));
        }
        if clauses.len() < 2 {
            return Ok(clauses.pop().map_or_else(nothing, |(_, word)| word));
        }
        // As in the field the minimum is one of the words that may be missing. With [and] there are none of these: one
        // that comes to 1 or more asks for more than there are, and nothing matches.
        let optional = if all { 0 } else { clauses.len() };
        let needed = minimum.and_then(|minimum| minimum.of(optional)).unwrap_or(0);
        let needed = needed.max(usize::from(!all));
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed)))
    }

    pub(super) fn word(
        &self,
        indexed: &IndexedField,
        word: Term,
        found_in: Option<u64>,
    ) -> Result<Resolved> {
        let option = match indexed.mapped.kind {
            FieldType::Text => IndexRecordOption::WithFreqs,
            _ => IndexRecordOption::Basic,
        };
        self.scored(indexed, Box::new(TermQuery::new(word, option)), found_in)
    }

    /// The words that are near one, the nearest first: each scores as if it were as frequent as the most frequent of
    /// them, and less the farther it is, as Lucene's `FuzzyQuery` does.
    pub(super) fn fuzzy(
        &self,
        indexed: &IndexedField,
        text: &str,
        of: &Fuzziness,
    ) -> Result<Resolved> {
        self.spend_fuzzy(text)?;
        let words = near_words(self.searcher, indexed.field, text, of)?;
        self.spend(words.len() * CLAUSE_BYTES)?;
        let term = |word: &str| Term::from_field_text(indexed.field, word);
        let found_in = words.iter().map(|(_, word)| self.searcher.doc_freq(&term(word)));
        let found_in = found_in.collect::<tantivy::Result<Vec<u64>>>()?.into_iter().max();
        let chars = |text: &str| text.chars().count();
        let clauses = words.iter().map(|(edits, word)| {
            let query = self.word(indexed, term(word), found_in)?;
            let nearness = 1.0 - *edits as f32 / chars(word).min(chars(text)).max(1) as f32;
            Ok((Occur::Should, boosted(query, nearness)))
        });
        Ok(Box::new(BooleanQuery::new(clauses.collect::<Result<_>>()?)))
    }

    /// Counts what finds the words near one.
    pub(super) fn spend_fuzzy(&self, text: &str) -> Result<()> {
        if text.len() > FUZZY_BYTES_MAX {
            let reason = format!("a fuzzy word has at most {FUZZY_BYTES_MAX} bytes; send [term]");
            return Err(illegal(reason).into());
        }
        self.spend(text.len() * BYTES_OF_FUZZY_BYTE)
    }

    pub(super) fn match_phrase(&self, indexed: &IndexedField, value: &Literal) -> Result<Resolved> {
        if !indexed.mapped.kind.has_words() {
            return self.match_words(indexed, value, (true, None, None));
        }
        let mut words = self.words(indexed, &value.text())?;
        match words.len() {
            0 => Ok(nothing()),
            1 => self.word(indexed, words.remove(0).1, None),
            _ => self.scored(indexed, Box::new(PhraseQuery::new_with_offset(words)), None),
        }
    }

    pub(super) fn only_texts(&self, indexed: &IndexedField, query: &str) -> Result<()> {
        if indexed.is_text() {
            return Ok(());
        }
        let (path, kind) = (indexed.path, indexed.mapped.kind.name());
        let reason = format!(
            "Can only use {query} queries on keyword and text fields - not on [{path}] which is of type [{kind}]"
        );
        Err(unfit(reason).into())
    }

    pub(super) fn wildcard(
        &self,
        indexed: &IndexedField,
        pattern: &str,
        analyzed: bool,
    ) -> Result<Resolved> {
        self.only_texts(indexed, "wildcard")?;
        if analyzed && pattern == "*" {
            return self.exists(indexed.path);
        }
        let letters = in_its_letters(indexed, pattern, analyzed);
        let pattern: &str = &letters;
        match pattern.strip_suffix('*').filter(|start| !start.contains(['*', '?', '\\'])) {
            Some(start) => self.prefix(indexed, start),
            None => {
                self.spend(wildcard::bytes(pattern))?;
                wildcard::of(pattern, indexed.field)
            }
        }
    }

    pub(super) fn regexp(&self, indexed: &IndexedField, pattern: &str) -> Result<Resolved> {
        self.only_texts(indexed, "regexp")?;
        Ok(Box::new(RegexQuery::from_regex(self.compiled(pattern)?, indexed.field)))
    }

    /// A regular expression, which is compiled once.
    pub(super) fn compiled(&self, pattern: &str) -> Result<Arc<Regex>> {
        if pattern.chars().count() > MAX_SIGNS {
            let reason = format!(
                "[regexp] has more than {MAX_SIGNS} signs (index.max_regex_length); send [wildcard] or [terms]"
            );
            return Err(illegal(reason).into());
        }
        let mut regexps = self.regexps.borrow_mut();
        match regexps.get(pattern) {
            Some(regex) => Ok(regex.clone()),
            None if regexps.len() == MAX_REGEXPS => {
                let reason = format!(
                    "the search has more than {MAX_REGEXPS} regular expressions; join them by [|], or send [wildcard] or [terms]"
                );
                Err(illegal(reason).into())
            }
            None => {
                let regex = Regex::new(&pattern::of_regexp(pattern)?);
                let refused = |error| unfit(format!("[regexp] cannot be read: {error}"));
                let regex = Arc::new(regex.map_err(refused)?);
                regexps.insert(pattern.to_owned(), regex.clone());
                Ok(regex)
            }
        }
    }

    pub(super) fn prefix(&self, indexed: &IndexedField, value: &str) -> Result<Resolved> {
        self.only_texts(indexed, "prefix")?;
        if value.is_empty() {
            return Ok(self.with_value(indexed));
        }
        let term = |text: &str| Term::from_field_text(indexed.field, text);
        let upper = match successor(value) {
            Some(next) => Bound::Excluded(term(&next)),
            None => Bound::Unbounded,
        };
        Ok(Box::new(InvertedIndexRangeQuery::new(Bound::Included(term(value)), upper)))
    }
}

/// A pattern in the letters of a field's words: those of a text are in lower case.
pub(super) fn in_its_letters<'p>(
    indexed: &IndexedField,
    pattern: &'p str,
    analyzed: bool,
) -> Cow<'p, str> {
    match analyzed && indexed.mapped.kind.has_words() {
        true => in_lower_case(pattern).collect::<String>().into(),
        false => pattern.into(),
    }
}

/// The least text that comes after all that begin with `prefix`; none if there is none.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // The surrogates between are no characters.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_prefix() {
        assert_eq!(successor("ab"), Some("ac".to_owned()));
        assert_eq!(successor("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(successor("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(successor("\u{10ffff}"), None);
    }
}
