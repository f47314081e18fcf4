//! `plain`: pieces of about one size, as Lucene's `Highlighter` cuts them with its `SimpleSpanFragmenter`, and ranks
//! them by the words that were found in each.

use std::collections::{BTreeMap, BTreeSet};

use query::HighlightField;

use super::sought::{Sought, Text, Token};
use super::tagged::put;

/// A piece of a value.
#[derive(Default)]
struct Fragment {
    text: String,
    score: f32,
}

/// The fragments of a field's values, of which `texts` have all words.
pub(super) fn fragments(
    asked: &HighlightField,
    texts: &[Text],
    sought: &Sought<'_>,
) -> Vec<String> {
    let most = asked.fragments.max(1);
    let mut best: Vec<Fragment> = Vec::new();
    for text in texts {
        let mut pieces = pieces(asked, text, sought);
        // The best come first, whatever the order that is asked for.
        pieces.sort_by(|a, b| b.score.total_cmp(&a.score));
        pieces.truncate(most);
        best.extend(pieces.into_iter().filter(|piece| piece.score > 0.0));
    }
    if asked.by_score {
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    if asked.fragments > 0 || texts.len() == 1 {
        best.truncate(most);
    }
    match best.is_empty() {
        true => beginning(asked, texts).into_iter().collect(),
        false => best.into_iter().map(|piece| piece.text).collect(),
    }
}

/// Where phrases stand in a value.
struct Phrases {
    /// What each word counts for as a part of one.
    weights: Vec<f32>,
    /// By the position of their first words: the phrase's number, and the position of its last word.
    begun: BTreeMap<usize, Vec<(usize, usize)>>,
}

impl Phrases {
    fn of(tokens: &[Token], sought: &Sought<'_>) -> Self {
        let mut phrases = Phrases { weights: vec![0.0; tokens.len()], begun: BTreeMap::new() };
        sought.each_span(tokens, |phrase, found| {
            let [first, .., last] = found else { return };
            let ends = (tokens[*first].position, tokens[*last].position);
            phrases.begun.entry(ends.0).or_default().push((phrase, ends.1));
            // Between its words one of them may stand once more, and counts, too.
            let within = *first..=*last;
            for (token, weight) in tokens[within.clone()].iter().zip(&mut phrases.weights[within]) {
                if sought.is_in(phrase, token) {
                    *weight = sought.phrases[phrase].1;
                }
            }
        });
        phrases
    }

    /// The last position of a phrase that begins at `first`, if a word is in it.
    fn last(&self, first: usize, token: &Token, sought: &Sought<'_>) -> Option<usize> {
        let mut begun = self.begun.get(&first)?.iter();
        begun.find(|(phrase, _)| sought.is_in(*phrase, token)).map(|(_, last)| *last)
    }
}

/// Cuts a value into pieces.
fn pieces(asked: &HighlightField, text: &Text, sought: &Sought<'_>) -> Vec<Fragment> {
    let Text { units, tokens } = text;
    let phrases = Phrases::of(tokens, sought);
    let mut cutter = Cutter { size: asked.fragment_size, cuts: 1, waits_for: None };
    let mut pieces = Vec::new();
    let (mut piece, mut at) = (Fragment::default(), 0);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (number, token) in tokens.iter().enumerate() {
        if number > 0 && asked.fragments > 0 {
            // Lucene does not count the first word there, and so takes each phrase to begin one word later.
            let position = token.position - tokens[0].position;
            let begun = position.checked_sub(1).and_then(|at| phrases.last(at, token, sought));
            if cutter.cuts_before(position, begun, (token.end, units.len())) {
                pieces.push(std::mem::take(&mut piece));
                seen.clear();
            }
        }
        let alone = token.word.and_then(|word| sought.alone[word]);
        let fitting = token.fits.last().map(|number| sought.fitting[*number].1);
        let weight = alone.or(fitting).unwrap_or(phrases.weights[number]);
        if weight > 0.0 && seen.insert(token.text.as_str()) {
            piece.score += weight;
        }
        put(&mut piece.text, asked, &units[at..token.start], false);
        put(&mut piece.text, asked, &units[token.start..token.end], weight > 0.0);
        at = token.end;
    }
    put(&mut piece.text, asked, &units[at..], false);
    pieces.push(piece);
    pieces
}

/// Lucene's `SimpleSpanFragmenter`.
struct Cutter {
    size: usize,
    /// The next cut is behind so many times the size.
    cuts: usize,
    /// The position behind a phrase, within which nothing is cut.
    waits_for: Option<usize>,
}

impl Cutter {
    /// Whether a piece begins with a word. `begun`: the last position of a phrase that begins with it, as far as Lucene
    /// sees that; `ends`: of the word, and of the text.
    fn cuts_before(
        &mut self,
        position: usize,
        begun: Option<usize>,
        (end, text_end): (usize, usize),
    ) -> bool {
        // Positions are those of Lucene and one.
        self.waits_for = self.waits_for.filter(|until| *until >= position);
        if self.waits_for.is_some() {
            return false;
        }
        if let Some(last) = begun {
            self.waits_for = Some(last + 1);
        }
        let cuts = end >= self.size.saturating_mul(self.cuts) && text_end - end >= self.size / 2;
        self.cuts += usize::from(cuts);
        cuts
    }
}

/// The beginning of the first value up to the end of a word, where nothing was found and it is asked for.
fn beginning(asked: &HighlightField, texts: &[Text]) -> Option<String> {
    let Text { units, tokens } = texts.first()?;
    let ends = tokens.iter().map(|token| token.end);
    // The word of an empty keyword ends where it begins.
    let end = ends.take_while(|end| *end <= asked.no_match_size).last().filter(|end| *end > 0)?;
    Some(String::from_utf16_lossy(&units[..end]))
}
