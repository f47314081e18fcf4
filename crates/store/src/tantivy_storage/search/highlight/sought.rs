//! Where the words that are looked for stand in a text.

use std::collections::BTreeMap;

use query::mapping::Analyzer;

use super::wanted::{Clause, Wanted};
use crate::tantivy_storage::analyzer::{FIRST_OF_ENGLISH, each_token};
use crate::tantivy_storage::search::wildcard::Fits;

/// A word of a text. Offsets count as Java's, in UTF-16.
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    /// As Lucene counts: 0 for the first word, or for a stop word in its place.
    pub(super) position: usize,
    pub(super) text: String,
    /// Its number, if it is one of the words that are looked for.
    pub(super) word: Option<usize>,
    /// What it fits of what words are to fit, by number.
    pub(super) fits: Vec<usize>,
}

/// A value of a field.
pub(super) struct Text {
    pub(super) units: Vec<u16>,
    pub(super) tokens: Vec<Token>,
}

/// What is looked for in a field, by whatever clauses.
#[derive(Default)]
pub(super) struct Sought<'a> {
    numbers: BTreeMap<&'a str, usize>,
    /// Of each word its boost; none where it counts in phrases alone.
    pub(super) alone: Vec<Option<f32>>,
    /// The places and numbers of their words, and their boosts.
    pub(super) phrases: Vec<(Vec<(usize, usize)>, f32)>,
    pub(super) fitting: Vec<(&'a Fits, f32)>,
}

impl<'a> Sought<'a> {
    pub(super) fn of(clauses: impl Iterator<Item = &'a Clause>) -> Self {
        let mut sought = Sought::default();
        for Clause { boost, wanted, .. } in clauses {
            match wanted {
                Wanted::Word(word) => {
                    let number = sought.number(word);
                    sought.alone[number] = Some(*boost);
                }
                Wanted::Phrase(words) => {
                    let words = words.iter().map(|(place, word)| (*place, sought.number(word)));
                    let words = words.collect();
                    sought.phrases.push((words, *boost));
                }
                Wanted::Fitting(fits) => sought.fitting.push((fits, *boost)),
            }
        }
        sought
    }

    fn number(&mut self, word: &'a str) -> usize {
        let next = self.alone.len();
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.alone.push(None);
        }
        number
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.fitting.is_empty()
    }

    /// What is done for each word of a text, about.
    pub(super) fn work(&self) -> usize {
        let of_phrases = self.phrases.iter().map(|(words, _)| words.len() + left_out(words));
        1 + self.fitting.len() + of_phrases.sum::<usize>()
    }

    /// Whether a word is one of a phrase.
    pub(super) fn is_in(&self, phrase: usize, token: &Token) -> bool {
        let words = &self.phrases[phrase].0;
        token.word.is_some_and(|word| words.iter().any(|(_, of)| *of == word))
    }

    /// A text with its words: all of them, or those that are looked for.
    pub(super) fn text(&self, analyzer: Analyzer, text: &str, all: bool) -> Text {
        let first = if analyzer == Analyzer::English { FIRST_OF_ENGLISH } else { 0 };
        let (mut bytes, mut units, mut tokens) = (0, 0, Vec::new());
        let mut units_to = |offset: usize| {
            units += text[bytes..offset].encode_utf16().count();
            bytes = offset;
            units
        };
        each_token(analyzer, text, |token| {
            let word = self.numbers.get(token.text.as_str()).copied();
            let fits = |number: &usize| (self.fitting[*number].0)(token.text.as_str());
            let fits: Vec<usize> = (0..self.fitting.len()).filter(fits).collect();
            if all || word.is_some() || !fits.is_empty() {
                tokens.push(Token {
                    start: units_to(token.offset_from),
                    end: units_to(token.offset_to),
                    position: token.position.saturating_sub(first),
                    text: token.text.clone(),
                    word,
                    fits,
                });
            }
        });
        Text { units: text.encode_utf16().collect(), tokens }
    }

    /// Calls with each place where a phrase stands: the phrase's number, and its tokens. As Lucene's `SpanNearQuery`
    /// finds them for its highlighters: in their order, with no more words between than the phrase leaves out.
    pub(super) fn each_span(&self, tokens: &[Token], mut call: impl FnMut(usize, &[usize])) {
        if self.phrases.is_empty() {
            return;
        }
        let mut standing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, token) in tokens.iter().enumerate() {
            if let Some(word) = token.word {
                standing.entry(word).or_default().push(at);
            }
        }
        let of = |word: usize| standing.get(&word).map_or(&[][..], Vec::as_slice);
        let mut span = Vec::new();
        for (number, (words, _)) in self.phrases.iter().enumerate() {
            let [(_, first), rest @ ..] = words.as_slice() else { continue };
            let between = left_out(words);
            for start in of(*first) {
                span.clear();
                span.push(*start);
                let (mut last, mut others) = (tokens[*start].position, 0);
                for (_, word) in rest {
                    let places = of(*word);
                    let behind = places.partition_point(|at| tokens[*at].position <= last);
                    let Some(next) = places.get(behind) else { break };
                    others += tokens[*next].position - last - 1;
                    last = tokens[*next].position;
                    span.push(*next);
                }
                if span.len() == words.len() && others <= between {
                    call(number, &span);
                }
            }
        }
    }
}

/// Words that a phrase leaves out, as stop words are.
fn left_out(words: &[(usize, usize)]) -> usize {
    let places = words.first().zip(words.last()).map_or(0, |((first, _), (last, _))| last - first);
    (places + 1).saturating_sub(words.len())
}
