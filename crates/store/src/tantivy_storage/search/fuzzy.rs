//! The words of an index that are near one.

use std::collections::BTreeSet;

use tantivy::query::FuzzyTermQuery;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use query::Fuzziness;

use crate::tantivy_storage::analyzer::NO_WORDS;

/// The nearest words with their edits, the nearest first, and of these by their letters.
pub(super) fn near_words(
    searcher: &Searcher,
    field: Field,
    text: &str,
    of: &Fuzziness,
) -> tantivy::Result<Vec<(usize, String)>> {
    let prefix: String = text.chars().take(of.prefix_chars).collect();
    let word = Term::from_field_text(field, text);
    let near = FuzzyTermQuery::new(word, of.edits(text), of.transpositions);
    let mut found: BTreeSet<(usize, String)> = BTreeSet::new();
    let automaton = near.automaton()?;
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut words = index.terms().search(&automaton).into_stream()?;
        while words.advance() {
            let word = String::from_utf8_lossy(words.key()).into_owned();
            if word.starts_with(&prefix) && word != NO_WORDS {
                found.insert((edits(text, &word, of.transpositions), word));
            }
        }
    }
    Ok(found.into_iter().take(of.words_max.clamp(1, 1024)).collect())
}

/// Edits between two words: characters put in, taken out, changed, and neighbours that changed places.
fn edits(a: &str, b: &str, transpositions: bool) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if transpositions && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_the_fewest() {
        for (a, b, swapped, plain) in [
            ("abc", "abc", 0, 0),
            ("abc", "acb", 1, 2),
            ("été", "ete", 2, 2),
            ("", "ab", 2, 2),
            ("kitten", "sitting", 3, 3),
        ] {
            assert_eq!((edits(a, b, true), edits(a, b, false)), (swapped, plain), "{a} {b}");
        }
    }
}
