//! `unified`: passages of whole sentences around words that were found, as Lucene's `UnifiedHighlighter` makes and
//! ranks them, and as OpenSearch bounds them (`BoundedBreakIteratorScanner`).

use std::collections::BTreeMap;
use std::ops::Range;

use query::HighlightField;

use super::breaks::{sentences, words};
use super::sought::{Sought, Text};
use super::tagged::{put, shown};

/// A word that was found; `term` numbers what it was found by.
struct Match {
    start: usize,
    end: usize,
    term: usize,
}

/// A part of one of the values, with some of the words that were found in it.
struct Passage {
    value: usize,
    part: (usize, usize),
    matches: Range<usize>,
    score: f32,
}

/// Lucene's `PassageScorer`: BM25 with passages as documents of a collection that is the text.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Characters of an average sentence.
const PIVOT: f32 = 87.0;

/// The fragments of a field's values; `is_whole` where each value is one.
pub(super) fn fragments(
    asked: &HighlightField,
    is_whole: bool,
    texts: &[Text],
    sought: &Sought<'_>,
) -> Vec<String> {
    let found: Vec<Vec<Match>> = texts.iter().map(|text| matches(text, sought)).collect();
    let mut frequencies: BTreeMap<usize, usize> = BTreeMap::new();
    for one in found.iter().flatten() {
        *frequencies.entry(one.term).or_default() += 1;
    }
    // The values of a field are one text to Lucene, with a character between each two.
    let length: usize = texts.iter().map(|text| text.units.len() + 1).sum();
    let length = length.saturating_sub(1);
    let (mut best, mut before): (Vec<Passage>, usize) = (Vec::new(), 0);
    for (value, (text, found)) in texts.iter().zip(&found).enumerate() {
        for mut passage in passages((asked, is_whole), value, text, found) {
            let within = &found[passage.matches.clone()];
            passage.score = score(&passage, within, before, (length, &frequencies));
            best.push(passage);
        }
        before += text.units.len() + 1;
    }
    if best.is_empty() {
        return beginning(asked, texts).into_iter().collect();
    }
    if asked.fragments > 0 && best.len() > asked.fragments {
        // Of equal ones Lucene keeps the last.
        best.reverse();
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.truncate(asked.fragments);
        best.sort_by_key(|passage| (passage.value, passage.matches.start));
    }
    if asked.by_score {
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    let written = best.iter().map(|passage| {
        let matches = &found[passage.value][passage.matches.clone()];
        written(asked, &texts[passage.value].units, passage.part, matches)
    });
    written.filter_map(|fragment| shown(&fragment)).collect()
}

/// The words of a text that were found, in their order.
fn matches(text: &Text, sought: &Sought<'_>) -> Vec<Match> {
    let mut in_phrases = vec![false; text.tokens.len()];
    sought.each_span(&text.tokens, |_, tokens| tokens.iter().for_each(|at| in_phrases[*at] = true));
    let mut found = Vec::new();
    for (token, in_phrase) in text.tokens.iter().zip(in_phrases) {
        let counts = |word: &usize| sought.alone[*word].is_some() || in_phrase;
        let fits = token.fits.iter().map(|number| sought.alone.len() + number);
        let terms = token.word.filter(counts).into_iter().chain(fits);
        found.extend(terms.map(|term| Match { start: token.start, end: token.end, term }));
    }
    found
}

/// The passages around the words that were found in a value: a word that lies behind one begins the next.
fn passages(
    (asked, is_whole): (&HighlightField, bool),
    value: usize,
    text: &Text,
    found: &[Match],
) -> Vec<Passage> {
    if found.is_empty() {
        return Vec::new();
    }
    let mut scanner = (!is_whole).then(|| Scanner::of(&text.units, asked.fragment_size));
    let mut passages: Vec<Passage> = Vec::new();
    for (at, one) in found.iter().enumerate() {
        match passages.last_mut().filter(|passage| one.start < passage.part.1) {
            Some(passage) => passage.matches.end = at + 1,
            None => {
                let whole = (0, text.units.len());
                let part = scanner.as_mut().map_or(whole, |scanner| scanner.around(one.start));
                passages.push(Passage { value, part, matches: at..at + 1, score: 0.0 });
            }
        }
    }
    passages
}

/// `before`: characters of the values before that of the passage; `length`: of all of them.
fn score(
    passage: &Passage,
    found: &[Match],
    before: usize,
    (length, frequencies): (usize, &BTreeMap<usize, usize>),
) -> f32 {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for one in found {
        *counts.entry(one.term).or_default() += 1;
    }
    let (from, to) = passage.part;
    let norm = K1 * ((1.0 - B) + B * ((to - from) as f32 / PIVOT));
    let documents = f64::from(1.0 + length as f32 / PIVOT);
    let of_term = |(term, count): (&usize, &usize)| {
        let frequency = frequencies[term] as f64;
        let weight = (K1 + 1.0) * (1.0 + (documents + 0.5) / (frequency + 0.5)).ln() as f32;
        let count = *count as f32;
        f64::from(count / (count + norm) * weight)
    };
    let sum: f64 = counts.iter().map(of_term).sum();
    let early = 1.0 + 1.0 / f64::from(PIVOT + (before + from) as f32).ln() as f32;
    (sum * f64::from(early)) as f32
}

/// A part of a text, with tags around what was found in it. What overlaps has them once.
fn written(
    asked: &HighlightField,
    units: &[u16],
    (from, to): (usize, usize),
    found: &[Match],
) -> String {
    let (mut text, mut at) = (String::new(), from);
    let mut found = found.iter().peekable();
    while let Some(Match { start, end, .. }) = found.next() {
        let mut end = *end;
        while let Some(next) = found.next_if(|next| next.start < end) {
            end = next.end;
        }
        put(&mut text, asked, &units[at..*start], false);
        at = end.min(to);
        put(&mut text, asked, &units[*start..at], true);
    }
    put(&mut text, asked, &units[at..to.max(at)], false);
    text
}

/// The beginning of the first value, where nothing was found and it is asked for.
fn beginning(asked: &HighlightField, texts: &[Text]) -> Option<String> {
    let Text { units, .. } = texts.iter().find(|text| !text.units.is_empty())?;
    let size = Some(asked.no_match_size).filter(|size| *size > 0)?;
    let end = match size < units.len() {
        true => words(units, (0, size + 1)).pop().unwrap_or(units.len()),
        false => units.len(),
    };
    shown(&written(asked, units, (0, end), &[]))
}

/// Finds the passages of a text, each behind the one before.
struct Scanner<'t> {
    units: &'t [u16],
    /// Characters that a passage has, about; 0 for one sentence each.
    size: usize,
    sentences: Vec<usize>,
    /// The last end that was found: it is looked for from there, or else backwards.
    known: Option<usize>,
    /// The sentences of the last passage.
    window: (usize, usize),
    /// The ends of their words, once these are asked for.
    words: Vec<usize>,
    /// The last passage.
    passage: (usize, usize),
}

impl<'t> Scanner<'t> {
    fn of(units: &'t [u16], size: usize) -> Self {
        let (window, words, passage) = ((0, 0), Vec::new(), (0, 0));
        let sentences = sentences(units);
        Scanner { units, size, sentences, known: None, window, words, passage }
    }

    /// The passage around a word that begins at `start`, behind the last one: as many sentences as its size allows, or
    /// of a longer sentence the words before and behind.
    fn around(&mut self, start: usize) -> (usize, usize) {
        let (offset, size) = (start + 1, self.size);
        if self.window.0 < offset && offset < self.window.1 {
            self.passage = (self.passage.1, self.window.1);
        } else {
            let from = self.sentence_before(offset);
            let mut to = self.sentence_after(start).unwrap_or(self.units.len());
            while to - from < size
                && let Some(next) = self.sentence_after(to).filter(|next| next - from <= size)
            {
                to = next;
            }
            (self.window, self.passage) = ((from, to), (from, to));
            self.words.clear();
        }
        if size == 0 || self.passage.1 - self.passage.0 <= size {
            return self.passage;
        }
        if self.words.is_empty() {
            self.words = words(self.units, self.window);
        }
        if offset.saturating_sub(size) > self.passage.0 {
            let before = self.words.partition_point(|end| *end < offset - size);
            let before = before.checked_sub(1).map_or(self.window.0, |at| self.words[at]);
            self.passage.0 = self.passage.0.max(before);
        }
        let reach = offset + size.saturating_sub(offset - self.passage.0);
        if reach < self.window.1 {
            let behind = self.words.partition_point(|end| *end <= reach);
            let behind = self.words.get(behind).copied().unwrap_or(self.window.1);
            self.passage.1 = self.window.1.min(behind);
        }
        self.passage
    }

    fn sentence_before(&mut self, offset: usize) -> usize {
        let at = self.sentences.partition_point(|end| *end < offset);
        let end = self.sentences[at.saturating_sub(1)];
        let found = match self.known.filter(|known| *known < offset) {
            Some(known) => known.max(end),
            None => end,
        };
        self.known = Some(found);
        found
    }

    fn sentence_after(&mut self, offset: usize) -> Option<usize> {
        let at = self.sentences.partition_point(|end| *end <= offset);
        self.known = self.sentences.get(at).copied();
        self.known
    }
}
