//! The words of an index that are near one, and those that begin as one does.

use std::collections::BTreeSet;

use tantivy::query::FuzzyTermQuery;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use query::Fuzziness;

use super::wildcard::accepts;
use crate::tantivy_storage::analyzer::NO_WORDS;

/// In how many parts a word is taken to be to compare shares of words.
const SHARE_OF_WORD: usize = 1 << 20;

/// The nearest words with their edits, the nearest first, and of these by their letters: as in Lucene an edit of a long
/// word counts for less than one of a short word.
pub(super) fn near_words(
    searcher: &Searcher,
    field: Field,
    text: &str,
    of: &Fuzziness,
) -> tantivy::Result<Vec<(usize, String)>> {
    let prefix: String = text.chars().take(of.prefix_chars).collect();
    let word = Term::from_field_text(field, text);
    let within = |edits| FuzzyTermQuery::new(word.clone(), edits, of.transpositions).automaton();
    // As in the field nothing is near a text without letters.
    let edits = if text.is_empty() { 0 } else { of.edits(text) };
    let (all, one_edit) = (within(edits)?, within(1)?);
    let chars = text.chars().count();
    let mut found: BTreeSet<(usize, String, usize)> = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut words = index.terms().search(&all).into_stream()?;
        while words.advance() {
            let word = String::from_utf8_lossy(words.key()).into_owned();
            if word.starts_with(&prefix) && word != NO_WORDS {
                // No word has more than two.
                let edits = match word == text {
                    true => 0,
                    false => 2 - usize::from(accepts(&one_edit, &word)),
                };
                let shorter = word.chars().count().min(chars);
                let share = match edits {
                    0 => 0,
                    // Of a word without letters any edit is more than of every other.
                    _ => (edits * SHARE_OF_WORD).checked_div(shorter).unwrap_or(usize::MAX),
                };
                found.insert((share, word, edits));
            }
        }
    }
    let nearest = found.into_iter().take(of.words_max.clamp(1, 1024));
    Ok(nearest.map(|(_, word, edits)| (edits, word)).collect())
}

/// The first words that begin so.
pub(super) fn begun_words(
    searcher: &Searcher,
    field: Field,
    start: &str,
    most: usize,
) -> tantivy::Result<Vec<String>> {
    let mut found = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut words = index.terms().range().ge(start).into_stream()?;
        let mut left = most;
        while left > 0 && words.advance() && words.key().starts_with(start.as_bytes()) {
            found.insert(String::from_utf8_lossy(words.key()).into_owned());
            left -= 1;
        }
    }
    Ok(found.into_iter().take(most).collect())
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{STRING, Schema};
    use tantivy::{Index, doc};

    use super::*;
    use crate::tantivy_storage::in_memory::searcher;

    #[test]
    fn the_nearest_words_come_first() {
        let mut schema = Schema::builder();
        let field = schema.add_text_field("f", STRING);
        let index = Index::create_in_ram(schema.build());
        let words = ["abc", "acb", "ab", "abxy", "été", "ete", "far", "", "p"];
        let searcher = searcher(&index, words.map(|word| doc!(field => word)).to_vec());
        let some = |word: &str, transpositions, words_max| {
            let edits_from = (0, 0);
            let of = Fuzziness { edits_from, prefix_chars: 0, words_max, transpositions };
            let found = near_words(&searcher, field, word, &of).unwrap();
            let shown = found.iter().map(|(edits, word)| format!("{edits} {word}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        let near = |word: &str, transpositions| some(word, transpositions, 50);
        assert_eq!(near("abc", true), "0 abc, 1 acb, 1 ab, 2 abxy");
        assert_eq!(near("abc", false), "0 abc, 1 ab, 2 abxy, 2 acb");
        assert_eq!(near("été", true), "0 été, 2 ete");
        assert_eq!(some("abcd", true, 2), "1 abc, 2 abxy", "and not ab, which is half of it");
        assert_eq!(near("pq", true), "2 ab, 1 p, 2 ", "what has no letters comes last");
        assert_eq!(near("", true), "0 ");
    }
}
