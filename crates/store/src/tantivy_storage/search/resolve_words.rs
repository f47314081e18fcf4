//! Queries about the words of a field: those of a text, and keywords, which are words of their own.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, InvertedIndexRangeQuery, Occur, PhraseQuery, RegexPhraseQuery, RegexQuery,
    TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy_fst::Regex;

use query::mapping::Analyzer;
use query::{FieldType, Fuzziness, Literal, MinimumShouldMatch, RangeEnd, illegal, unfit};

use super::failed::Result;
use super::fuzzy::{begun_words, near_words};
use super::indexed_field::IndexedField;
use super::pattern;
use super::resolve::{CLAUSE_BYTES, Resolved, Resolver, boosted, constant, nothing};
use super::statistics::{FieldCounts, Scored};
use super::wildcard;
use crate::tantivy_storage::analyzer::{each_word, in_lower_case};

/// Regular expressions in a search: each is compiled to as many as 1000 states of some kilobytes.
const MAX_REGEXPS: usize = 16;
/// Signs of one at most: `index.max_regex_length` of the field.
const MAX_SIGNS: usize = 1000;
/// What finds words near a word takes room for each of its letters, and time: 8 KB of them take about a second.
const FUZZY_BYTES_MAX: usize = 1024;
const BYTES_OF_FUZZY_BYTE: usize = 32 << 10;
/// What a letter of a regular expression is compiled to.
const BYTES_OF_PATTERN_BYTE: usize = 2 << 10;

/// Of a phrase whose last word is only begun: the words before it, with their places; its place and the beginning; and
/// the first words that begin so.
type Begun = (Vec<(usize, String)>, (usize, String), Vec<String>);

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
        (all, prefix, minimum, fuzziness): (
            bool,
            bool,
            Option<&MinimumShouldMatch>,
            Option<&Fuzziness>,
        ),
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
        let count = words.len();
        for (_, word) in words {
            let is_begun = prefix && clauses.len() + 1 == count;
            let word = match (fuzziness, word.value().as_str()) {
                (_, Some(start)) if is_begun => constant(self.prefix(indexed, start)?, 1.0),
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
            // A word of fewer letters than it has edits is found, and takes nothing from a score.
            Ok((Occur::Should, boosted(query, nearness.max(0.0))))
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
            return self.match_words(indexed, value, (true, false, None, None));
        }
        let mut words = self.words(indexed, &value.text())?;
        match words.len() {
            0 => Ok(nothing()),
            1 => self.word(indexed, words.remove(0).1, None),
            _ => {
                has_positions(indexed)?;
                self.scored(indexed, Box::new(PhraseQuery::new_with_offset(words)), None)
            }
        }
    }

    /// None where the text has no words, or nothing begins as the last does.
    pub(super) fn begun(
        &self,
        indexed: &IndexedField,
        value: &Literal,
        most: usize,
    ) -> Result<Option<Begun>> {
        if !indexed.mapped.kind.has_words() {
            let (path, kind) = (indexed.path, indexed.mapped.kind.name());
            let reason = "Can only use phrase prefix queries on text fields - not on";
            return Err(unfit(format!("{reason} [{path}] which is of type [{kind}]")).into());
        }
        let words = self.words(indexed, &value.text())?.into_iter();
        let text = |(place, word): (usize, Term)| Some((place, word.value().as_str()?.to_owned()));
        let mut words: Vec<(usize, String)> = words.filter_map(text).collect();
        let Some(last) = words.pop() else { return Ok(None) };
        let ends = begun_words(self.searcher, indexed.field, &last.1, most)?;
        self.spend(ends.len() * CLAUSE_BYTES)?;
        Ok((!ends.is_empty()).then_some((words, last, ends)))
    }

    /// A phrase whose last word may be any of some. The library finds it; its score is made that of all these words
    /// together, as that of Lucene's `MultiPhraseQuery` is.
    pub(super) fn phrase_prefix(
        &self,
        indexed: &IndexedField,
        value: &Literal,
        most: usize,
    ) -> Result<Resolved> {
        let Some((words, (place, start), ends)) = self.begun(indexed, value, most)? else {
            return Ok(nothing());
        };
        let term = |word: &str| Term::from_field_text(indexed.field, word);
        let found: Resolved = if words.is_empty() {
            let one = |word: &String| Ok((Occur::Should, self.word(indexed, term(word), None)?));
            Box::new(BooleanQuery::new(ends.iter().map(one).collect::<Result<_>>()?))
        } else {
            has_positions(indexed)?;
            let counts = self.counts(indexed)?;
            let mut idf = 0.0;
            for word in words.iter().map(|(_, word)| word).chain(&ends) {
                idf += counts.idf(self.searcher.doc_freq(&term(word))?);
            }
            let mut parts = Vec::new();
            let patterns = words.iter().map(|(place, word)| (*place, regex::escape(word)));
            let any_end = match ends.len() < most {
                true => format!("(?s){}.*", regex::escape(&start)),
                false => ends.iter().map(|end| regex::escape(end)).collect::<Vec<_>>().join("|"),
            };
            for (place, pattern) in patterns.chain([(place, any_end)]) {
                self.spend(pattern.len() * BYTES_OF_PATTERN_BYTE)?;
                let too_long = |error| {
                    let instead = "send more letters of the last word, or less [max_expansions]";
                    illegal(format!("[match_phrase_prefix] has too many words: {error}; {instead}"))
                };
                parts.push((
                    place,
                    pattern.clone(),
                    Arc::new(Regex::new(&pattern).map_err(too_long)?),
                ));
            }
            let per_word = counts.idf(1) * parts.len() as f32;
            let mut query = RegexPhraseQuery::from_regexes(indexed.field, parts, 0);
            query.set_max_expansions(u32::MAX);
            boosted(self.scored(indexed, Box::new(query), Some(1))?, idf / per_word)
        };
        Ok(match indexed.mapped.kind {
            FieldType::MatchOnlyText => constant(found, 1.0),
            _ => found,
        })
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
        (analyzed, any_case): (bool, bool),
    ) -> Result<Resolved> {
        let query = match any_case {
            true => "case-insensitive term, prefix and wildcard",
            false => "wildcard",
        };
        self.only_texts(indexed, query)?;
        if analyzed && pattern == "*" {
            return self.exists(indexed.path);
        }
        let letters = in_its_letters(indexed, pattern, analyzed);
        let pattern: &str = &letters;
        let is_plain = |start: &&str| {
            let has_case = any_case && start.contains(|char: char| char.is_ascii_alphabetic());
            !has_case && !start.contains(['*', '?', '\\'])
        };
        match pattern.strip_suffix('*').filter(is_plain) {
            Some(start) => self.prefix(indexed, start),
            None => {
                self.spend(wildcard::bytes(pattern))?;
                wildcard::of(pattern, any_case, indexed.field)
            }
        }
    }

    pub(super) fn regexp(
        &self,
        indexed: &IndexedField,
        pattern: &str,
        any_case: bool,
    ) -> Result<Resolved> {
        self.only_texts(indexed, "regexp")?;
        let regex = self.compiled(pattern, any_case)?;
        Ok(Box::new(RegexQuery::from_regex(regex, indexed.field)))
    }

    /// A regular expression, which is compiled once.
    pub(super) fn compiled(&self, pattern: &str, any_case: bool) -> Result<Arc<Regex>> {
        if pattern.chars().count() > MAX_SIGNS {
            let reason = format!(
                "[regexp] has more than {MAX_SIGNS} signs (index.max_regex_length); send [wildcard] or [terms]"
            );
            return Err(illegal(reason).into());
        }
        let mut regexps = self.regexps.borrow_mut();
        let key = (pattern.to_owned(), any_case);
        match regexps.get(&key) {
            Some(regex) => Ok(regex.clone()),
            None if regexps.len() == MAX_REGEXPS => {
                let reason = format!(
                    "the search has more than {MAX_REGEXPS} regular expressions; join them by [|], or send [wildcard] or [terms]"
                );
                Err(illegal(reason).into())
            }
            None => {
                let regex = Regex::new(&pattern::of_regexp(pattern, any_case)?);
                let refused = |error| unfit(format!("[regexp] cannot be read: {error}"));
                let regex = Arc::new(regex.map_err(refused)?);
                regexps.insert(key, regex.clone());
                Ok(regex)
            }
        }
    }

    pub(super) fn prefix(&self, indexed: &IndexedField, value: &str) -> Result<Resolved> {
        self.only_texts(indexed, "prefix")?;
        if value.is_empty() {
            return Ok(self.with_value(indexed));
        }
        let first = Term::from_field_text(indexed.field, value);
        // No text has such a byte: this comes behind all that begin so.
        let mut behind = first.clone();
        behind.append_bytes(&[u8::MAX]);
        let (first, behind) = (Bound::Included(first), Bound::Excluded(behind));
        Ok(Box::new(InvertedIndexRangeQuery::new(first, behind)))
    }
}

/// Refuses a phrase where the mapping has no places of words.
fn has_positions(indexed: &IndexedField) -> Result<()> {
    if indexed.mapped.has_positions {
        return Ok(());
    }
    let path = indexed.path;
    let reason =
        format!("field:[{path}] was indexed without position data; cannot run PhraseQuery");
    Err(unfit(reason).into())
}

/// A pattern in the letters of a field's words: those of most texts are in lower case.
pub(super) fn in_its_letters<'p>(
    indexed: &IndexedField,
    pattern: &'p str,
    analyzed: bool,
) -> Cow<'p, str> {
    let keeps_case = matches!(indexed.mapped.analyzers.1, Analyzer::Whitespace | Analyzer::Keyword);
    match analyzed && indexed.mapped.kind.has_words() && !keeps_case {
        true => in_lower_case(pattern).collect::<String>().into(),
        false => pattern.into(),
    }
}

/// The same of an end of a range.
pub(super) fn end_in_its_letters(
    indexed: &IndexedField,
    end: Option<&RangeEnd>,
    analyzed: bool,
) -> Option<RangeEnd> {
    let RangeEnd { value, included } = end?.clone();
    let value = match value {
        Literal::Text(text) => Literal::Text(in_its_letters(indexed, &text, analyzed).into_owned()),
        value => value,
    };
    Some(RangeEnd { value, included })
}
