//! Where sentences and words end, by the rules of Unicode (UAX 29). Java's `BreakIterator`, which the field's
//! highlighter asks, has older ones, which differ at abbreviations and signs.
//!
//! Offsets are of UTF-16.

use unicode_segmentation::UnicodeSegmentation;

/// So far behind the end of a part the end of its last word is looked for.
const LONGEST: usize = 256;

/// The ends of all sentences of a text, and its beginning.
pub(super) fn sentences(units: &[u16]) -> Vec<usize> {
    let text = String::from_utf16_lossy(units);
    ends(0, text.split_sentence_bounds())
}

/// The ends of all words of a part of a text, up to that of the word which its end is in; and its beginning.
pub(super) fn words(units: &[u16], (from, to): (usize, usize)) -> Vec<usize> {
    let reach = units.len().min(to + LONGEST);
    let text = String::from_utf16_lossy(&units[from..reach]);
    let mut ends = ends(from, text.split_word_bounds());
    ends.truncate(ends.partition_point(|end| *end < to) + 1);
    ends
}

fn ends<'t>(from: usize, parts: impl Iterator<Item = &'t str>) -> Vec<usize> {
    let end = |at: &mut usize, part: &str| {
        *at += part.encode_utf16().count();
        Some(*at)
    };
    [from].into_iter().chain(parts.scan(from, end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, of: impl Fn(&[u16]) -> Vec<usize>) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let ends = of(&units);
        let part = |pair: &[usize]| String::from_utf16(&units[pair[0]..pair[1]]).unwrap();
        ends.windows(2).map(part).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn sentences_and_words_end_where_utf_16_has_their_ends() {
        for expected in ["One. |Two.  |Three 😀", "He said no. then left", "漢字。|かな。|終", ""]
        {
            assert_eq!(parts(&expected.replace('|', ""), sentences), expected);
        }
        for expected in ["The| |quick|,| |😀|fox|.", "don't| |3.14", ""] {
            let text = expected.replace('|', "");
            assert_eq!(parts(&text, |units| words(units, (0, units.len()))), expected);
        }
        let units: Vec<u16> = "😀 fox".encode_utf16().collect();
        assert_eq!(words(&units, (3, 4)), [3, 6]);
        assert_eq!(words(&units, (0, 2)), [0, 2]);
    }
}
