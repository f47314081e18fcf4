//! The words that an analyzer finds in a text, as `_analyze` shows them.

use query::mapping::Analyzer;

use super::analyzer::{FIRST_OF_ENGLISH, each_token, is_emoji, is_southeast_asian};

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalyzedWord {
    /// As it is searched for.
    pub text: String,
    /// Where it begins in the text, in units of UTF-16, as the field counts.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Its place among the words. One that is dropped leaves its place empty.
    pub position: usize,
    /// Its type, as Lucene's tokenizers name it.
    pub kind: &'static str,
}

/// The words of a text, `most` of them at most.
pub fn analyzed(analyzer: Analyzer, text: &str, most: usize) -> Vec<AnalyzedWord> {
    let first = if analyzer == Analyzer::English { FIRST_OF_ENGLISH } else { 0 };
    let is_by_unicode = matches!(analyzer, Analyzer::Standard | Analyzer::English);
    let (mut words, mut seen, mut units) = (Vec::new(), 0, 0);
    // Words come in their order, so that each part of the text is counted once.
    let mut units_to = |to: usize| {
        units += text[seen..to].encode_utf16().count();
        seen = to;
        units
    };
    each_token(analyzer, text, |token| {
        if words.len() < most {
            let word = &text[token.offset_from..token.offset_to];
            words.push(AnalyzedWord {
                text: token.text.clone(),
                from: units_to(token.offset_from),
                to: units_to(token.offset_to),
                position: token.position - first,
                kind: if is_by_unicode { kind(word) } else { "word" },
            });
        }
    });
    words
}

/// The type of a word as Lucene's `StandardTokenizer` names it.
fn kind(word: &str) -> &'static str {
    if is_emoji(word) || word.ends_with('\u{20e3}') {
        return "<EMOJI>";
    }
    let of_script = word.chars().next().and_then(script);
    let is_of_it = |char: char| script(char) == of_script || !char.is_alphanumeric();
    match of_script {
        Some(kind) if word.chars().all(is_of_it) => kind,
        _ if word.chars().any(char::is_alphabetic) => "<ALPHANUM>",
        _ => "<NUM>",
    }
}

/// The type of words of a script that has one of its own.
fn script(char: char) -> Option<&'static str> {
    Some(match char {
        _ if is_southeast_asian(char) => "<SOUTHEAST_ASIAN>",
        '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{ac00}'..='\u{d7fb}' => "<HANGUL>",
        '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' => "<HIRAGANA>",
        '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}' => "<KATAKANA>",
        '\u{2e80}'..='\u{2fd5}'
        | '\u{3005}'
        | '\u{3007}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => "<IDEOGRAPHIC>",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word with its type, and where it begins, ends and counts.
    fn shown(analyzer: Analyzer, text: &str) -> String {
        let words = analyzed(analyzer, text, 10).into_iter();
        let shown = words.map(|AnalyzedWord { text, from, to, position, kind }| {
            format!("{text}{kind}{from}-{to}:{position}")
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_shown_with_their_places_and_types() {
        for (analyzer, text, expected) in [
            (
                Analyzer::Standard,
                "👍 Don't 3.14 漢",
                "👍<EMOJI>0-2:0 don't<ALPHANUM>3-8:1 3.14<NUM>9-13:2 漢<IDEOGRAPHIC>14-15:3",
            ),
            (
                Analyzer::Standard,
                "かカナ 한국 1\u{fe0f}\u{20e3} x1",
                "か<HIRAGANA>0-1:0 カナ<KATAKANA>1-3:1 한국<HANGUL>4-6:2 \
                 1\u{fe0f}\u{20e3}<EMOJI>7-10:3 x1<ALPHANUM>11-13:4",
            ),
            (Analyzer::English, "the foxes", "fox<ALPHANUM>4-9:1"),
            (Analyzer::Simple, "É1b", "éword0-1:0 bword2-3:1"),
            (Analyzer::Keyword, "A b", "A bword0-3:0"),
        ] {
            assert_eq!(shown(analyzer, text), expected);
        }
        assert_eq!(analyzed(Analyzer::Standard, "a b c", 2).len(), 2);
    }
}
