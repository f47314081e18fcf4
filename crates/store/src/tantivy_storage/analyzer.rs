//! What cuts texts into words. The standard analyzer does by the rules of Unicode (UAX #29), in lower case.
//!
//! Lucene's `StandardTokenizer` follows the same rules, so that `don't`, `3.14` and `snake_case` are one word each, and
//! each ideograph is a word, each emoji, and each run of Thai, Lao, Khmer or Burmese, which have no spaces between
//! words. Words longer than 255 characters are cut into pieces, as there. They differ in the signs `#` and `*` on a
//! key, and in a mark after an emoji that has it drawn as text.

use std::sync::LazyLock;

use query::mapping::Analyzer;
use regex::Regex;
use tantivy::Index;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_segmentation::UnicodeSegmentation;

use super::english::{self, Letters};

/// The same, of fields that keep no lengths: a text without words has a mark in place of one, so that it is known to be
/// there.
pub(crate) const MARKED: &str = "standard_marked";
/// That mark. It comes before every word, and is none.
pub(crate) const NO_WORDS: &str = "\0\0\0\0\0\0\0\0";

/// Lucene's `StandardAnalyzer.DEFAULT_MAX_TOKEN_LENGTH`.
const MAX_WORD_CHARS: usize = 255;
const MAX_WORD_BYTES: usize = 4 * MAX_WORD_CHARS;
/// So much of a text is looked at for the next word, and more where that does not show its end.
const WINDOW_BYTES: usize = 2048;
/// What follows a word decides whether it goes on: so much of it is seen then.
const AHEAD_BYTES: usize = 64;
/// Where the words of a text without stop words begin. The library puts one place between the values of a field; with
/// these it is as far as Lucene's `position_increment_gap` of 100, so that a phrase with stop words in it, which leaves
/// places empty, does not reach from one value into the next.
pub(crate) const FIRST_OF_ENGLISH: usize = 99;

/// Makes the analyzers known to an index, by the names that schemas know them by: for words that are searched, and for
/// those of columns (`fielddata`).
pub(crate) fn register(index: &Index) {
    let named = [Analyzer::Standard, Analyzer::Whitespace, Analyzer::Simple, Analyzer::English];
    for known in [index.tokenizers(), index.fast_field_tokenizer()] {
        known.register(MARKED, WordAnalyzer::marked());
        for analyzer in named {
            if let Some(tokenizer) = tokenizer(analyzer) {
                known.register(analyzer.name(), tokenizer);
            }
        }
    }
}

/// The letters of a text in lower case, each by itself, as Lucene has it: that of Turkish `İ` is `i`, without a dot of
/// its own, and a sigma at the end of a word is as any other.
pub(crate) fn in_lower_case(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter_map(|letter| letter.to_lowercase().next())
}

/// Calls with each word of a text, and its position.
pub(crate) fn each_word(analyzer: Analyzer, text: &str, mut call: impl FnMut(usize, &str)) {
    each_token(analyzer, text, |token| call(token.position, &token.text));
}

/// Calls with each word of a text, its position, and where it stands.
pub(crate) fn each_token(analyzer: Analyzer, text: &str, mut call: impl FnMut(&Token)) {
    match tokenizer(analyzer) {
        None => {
            let (offset_from, offset_to) = (0, text.len());
            let (position, text) = (0, text.to_owned());
            call(&Token { offset_from, offset_to, position, text, position_length: 1 });
        }
        Some(mut tokenizer) => tokenizer.token_stream(text).process(&mut call),
    }
}

pub(crate) fn has_word(analyzer: Analyzer, text: &str) -> bool {
    // Of most texts the first letter tells.
    let is_plain = || text.bytes().any(|byte| byte.is_ascii_alphabetic());
    (analyzer != Analyzer::English && is_plain())
        || tokenizer(analyzer).is_none_or(|mut tokenizer| tokenizer.token_stream(text).advance())
}

/// None for the one that takes a text as it is.
fn tokenizer(analyzer: Analyzer) -> Option<WordAnalyzer> {
    let standard = WordAnalyzer::standard();
    match analyzer {
        Analyzer::Keyword => None,
        Analyzer::Standard => Some(standard),
        Analyzer::Simple => {
            Some(WordAnalyzer { next: |text, at| next_run(text, at, is_letter), ..standard })
        }
        Analyzer::Whitespace => Some(WordAnalyzer {
            next: |text, at| next_run(text, at, |char| !is_space(char)),
            lowers: false,
            ..standard
        }),
        Analyzer::English => Some(WordAnalyzer { letters: Some(Letters::default()), ..standard }),
    }
}

/// An analyzer that cuts a text into several words.
#[derive(Clone, Debug)]
struct WordAnalyzer {
    token: Token,
    /// Finds the next word of a text, from a place on.
    next: fn(&str, usize) -> Option<(usize, usize)>,
    lowers: bool,
    marks: bool,
    /// Space for a word of which a stem is made.
    letters: Option<Letters>,
}

impl WordAnalyzer {
    fn standard() -> Self {
        let token = Token::default();
        WordAnalyzer { token, next: next_word, lowers: true, marks: false, letters: None }
    }

    /// The analyzer that schemas know as [`MARKED`].
    fn marked() -> Self {
        WordAnalyzer { marks: true, ..WordAnalyzer::standard() }
    }
}

/// The next run of characters of one kind, from `at` on. Of a long one a piece is taken, as of long words.
fn next_run(text: &str, at: usize, is_of_word: fn(char) -> bool) -> Option<(usize, usize)> {
    let start = at + text[at..].find(is_of_word)?;
    let run = text[start..].chars().take_while(|char| is_of_word(*char)).take(MAX_WORD_CHARS);
    Some((start, start + run.map(char::len_utf8).sum::<usize>()))
}

/// Java's `Character.isLetter`: vowels that are marks at a letter are none, nor numerals, nor letters in a circle.
fn is_letter(char: char) -> bool {
    static OPENS_NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{ID_Start}").expect("the pattern is right"));
    let is_letter = char.is_alphabetic() && !char.is_numeric();
    // Marks begin behind the letters of Latin, which are told without the pattern: it takes much longer.
    is_letter && (char < '\u{300}' || OPENS_NAME.is_match(char.encode_utf8(&mut [0; 4])))
}

/// Java's `Character.isWhitespace`: spaces that hold words together are none.
fn is_space(char: char) -> bool {
    let holds_together = matches!(char, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}');
    matches!(char, '\u{1c}'..='\u{1f}') || (char.is_whitespace() && !holds_together)
}

impl Tokenizer for WordAnalyzer {
    type TokenStream<'a> = Words<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Words<'a> {
        self.token.reset();
        if self.letters.is_some() {
            self.token.position = FIRST_OF_ENGLISH - 1;
        }
        Words { text, at: 0, marks: self.marks, of: self }
    }
}

struct Words<'a> {
    text: &'a str,
    /// Where the next word is looked for.
    at: usize,
    /// Whether there is yet to be a word or a mark.
    marks: bool,
    of: &'a mut WordAnalyzer,
}

/// Characters that plain text is made of: what they do at the ends of words is simple.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Whether a part between two bounds of words is an emoji, or a flag: what Lucene gives the type `<EMOJI>`.
pub(super) fn is_emoji(part: &str) -> bool {
    static EMOJI: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"^(?:\p{Extended_Pictographic}|\p{Regional_Indicator}{2})";
        Regex::new(pattern).expect("the pattern is right")
    });
    !part.is_ascii() && EMOJI.is_match(part)
}

/// Letters and vowels of scripts that have no spaces between words (`LB=Complex_Context`).
pub(super) fn is_southeast_asian(char: char) -> bool {
    matches!(
        char,
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' // Thai
        | '\u{e81}'..='\u{ecd}' | '\u{edc}'..='\u{edf}' // Lao
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}'..='\u{17dd}' // Khmer
        | '\u{1950}'..='\u{1974}' | '\u{1980}'..='\u{19c9}' | '\u{1a20}'..='\u{1a7c}' // Tai
        | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}' | '\u{aa60}'..='\u{aac2}' | '\u{aadb}'..='\u{aadf}'
    )
}

/// Whether a sign makes a word of the part that it stands in: letters and digits do, and none of the numbers that are
/// signs of their own, as fractions are and those above the line.
fn makes_word(char: char) -> bool {
    // By the rules there is no bound between a letter and a digit.
    let is_digit = || String::from_iter(['a', char]).split_word_bounds().count() == 1;
    char.is_ascii_alphanumeric()
        || !char.is_ascii() && (char.is_alphabetic() || char.is_numeric() && is_digit())
}

/// The next word of a text, from `at` on.
fn next_word(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut start = at;
    // Spaces and punctuation between words, the quick way.
    while start < bytes.len()
        && bytes[start].is_ascii()
        && !is_plain(bytes[start])
        && bytes[start] != b'_'
    {
        start += 1;
    }
    // Of a longer word the first piece is taken, and the rest is looked at again: never all of it for each piece.
    let run = bytes[start..].iter().take(MAX_WORD_CHARS + 1);
    let plain = run.take_while(|byte| is_plain(**byte)).count();
    let end = start + plain;
    // A run of letters and digits that ends at a space, or at the end of the text, is a word whatever the rules.
    let ends = || {
        end == bytes.len() || matches!(bytes[end], b' ' | b'\n' | b'\t' | b'-' | b'/' | b'(' | b')')
    };
    if plain > MAX_WORD_CHARS || plain > 0 && ends() {
        return Some((start, end));
    }
    let mut window = WINDOW_BYTES;
    loop {
        let rest = &text[start..];
        let looked_at = &rest[..rest.floor_char_boundary(window)];
        let found = looked_at
            .split_word_bound_indices()
            .find(|(_, part)| part.chars().any(makes_word) || is_emoji(part));
        let is_sure = |(offset, part): &(usize, &str)| {
            offset + part.len() + AHEAD_BYTES <= looked_at.len() || part.len() > MAX_WORD_BYTES
        };
        if looked_at.len() == rest.len() || found.as_ref().is_some_and(is_sure) {
            return found.map(|(offset, part)| {
                let start = start + offset;
                // Letters of Latin have one byte or two, and are the most: they are not looked at again.
                if bytes[start] < 0xe0 {
                    return (start, start + part.len());
                }
                // The rules have a bound at each sign of these scripts.
                let run = text[start..].chars().take_while(|char| is_southeast_asian(*char));
                let run: usize = run.take(MAX_WORD_CHARS).map(char::len_utf8).sum();
                (start, start + part.len().max(run))
            });
        }
        window *= 2;
    }
}

impl TokenStream for Words<'_> {
    fn advance(&mut self) -> bool {
        while let Some((start, mut end)) = (self.of.next)(self.text, self.at) {
            if end - start > MAX_WORD_CHARS
                && let Some((cut, _)) = self.text[start..end].char_indices().nth(MAX_WORD_CHARS)
            {
                end = start + cut;
            }
            self.at = end;
            let WordAnalyzer { token, lowers, letters, .. } = &mut *self.of;
            token.position = token.position.wrapping_add(1);
            (token.offset_from, token.offset_to) = (start, end);
            token.text.clear();
            let word = &self.text[start..end];
            if !*lowers {
                token.text.push_str(word);
            } else if word.is_ascii() {
                token.text.push_str(word);
                token.text.make_ascii_lowercase();
            } else {
                token.text.extend(in_lower_case(word));
            }
            // A word that is dropped leaves its place empty.
            let letters = letters.as_mut();
            if letters.is_none_or(|letters| english::keep_stem(&mut token.text, letters)) {
                self.marks = false;
                return true;
            }
        }
        let token = &mut self.of.token;
        token.position = token.position.wrapping_add(1);
        token.text.clear();
        token.text.push_str(NO_WORDS);
        std::mem::take(&mut self.marks)
    }

    fn token(&self) -> &Token {
        &self.of.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.of.token
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut analyzer = WordAnalyzer::standard();
        let mut stream = analyzer.token_stream(text);
        let mut words = Vec::new();
        while stream.advance() {
            assert_eq!(stream.token().position, words.len());
            words.push(stream.token().text.clone());
        }
        words
    }

    #[test]
    fn cuts_as_lucene_does() {
        for (text, expected) in [
            (
                "The 2 QUICK Brown-Foxes jumped over the lazy dog's bone.",
                "the 2 quick brown foxes jumped over the lazy dog's bone",
            ),
            ("3.14 1,000 a.b 10.0.0.1", "3.14 1,000 a.b 10.0.0.1"),
            ("snake_case _private x=y", "snake_case _private x y"),
            ("e-mail: me@example.org/path", "e mail me example.org path"),
            ("Zürich ΑΣ", "zürich ας"),
            ("漢字 かな", "漢 字 か な"),
            ("  ... !? ", ""),
            // As `StandardTokenizer` of Lucene 9.12.1 cuts them.
            ("a © ™ ✓ b → ‼", "a © ™ b ‼"),
            ("x🦊y 🦊🦊 👍🏽 ❤️", "x 🦊 y 🦊 🦊 👍🏽 ❤️"),
            ("10 m² ½ a²b ③ ٣", "10 m a b ٣"),
            ("สวัสดี ครับ2 aກb ភាសា", "สวัสดี ครับ 2 a ກ b ភាសា"),
            ("\u{a9e0}\u{a9e1} \u{aadb}\u{aadc}", "\u{a9e0}\u{a9e1} \u{aadb}\u{aadc}"),
            (
                "👨\u{200d}👩\u{200d}👧 🇩🇪🇫🇷 🇪 1\u{fe0f}\u{20e3}",
                "👨\u{200d}👩\u{200d}👧 🇩🇪 🇫🇷 1\u{fe0f}\u{20e3}",
            ),
        ] {
            let found = words(text).join(" ").replace("ασ", "ας");
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(
            words(&"a".repeat(600)).iter().map(String::len).collect::<Vec<_>>(),
            [255, 255, 90]
        );
    }

    #[test]
    fn every_byte_of_a_long_text_is_looked_at_a_few_times_only() {
        // All of the rest for each piece would be 10^11 bytes.
        let parts = [
            ("a", 15_687),
            ("é", 15_687),
            ("a'", 31_250),
            ("_", 0),
            ("漢", 4_000_000),
            ("ก", 15_687),
        ];
        for (part, pieces) in parts {
            let text = part.repeat(4_000_000);
            let mut analyzer = WordAnalyzer::standard();
            let mut stream = analyzer.token_stream(&text);
            let mut found = 0;
            while stream.advance() {
                found += 1;
            }
            assert_eq!(found, pieces, "{part}");
        }
    }

    #[test]
    fn other_analyzers() {
        for (analyzer, expected) in [
            (Analyzer::Simple, "it|s|été|x"),
            (Analyzer::Whitespace, "It's|2|Été,|x-3"),
            (Analyzer::Keyword, "It's 2 Été, x-3"),
            (Analyzer::English, "2|été|x|3"),
        ] {
            let mut words = Vec::new();
            each_word(analyzer, "It's 2 Été, x-3", |_, word| words.push(word.to_owned()));
            assert_eq!(words.join("|"), expected);
        }
        for analyzer in [Analyzer::Simple, Analyzer::Whitespace, Analyzer::English] {
            let mut lengths = Vec::new();
            each_word(analyzer, &"b".repeat(70_000), |_, word| lengths.push(word.len()));
            assert_eq!((lengths.len(), lengths[0], lengths[274]), (275, 255, 130), "{analyzer:?}");
        }
        for (analyzer, text, expected) in [
            (Analyzer::Whitespace, "a\u{3000}b\u{a0}c\u{b}d", "a|b\u{a0}c|d"),
            (Analyzer::Simple, "สวัสดี Ⅷ Ⓐ ªé漢", "สว|สด|ªé漢"),
        ] {
            let mut words = Vec::new();
            each_word(analyzer, text, |_, word| words.push(word.to_owned()));
            assert_eq!(words.join("|"), expected);
        }
    }

    /// As Java's `Character.toLowerCase` has them.
    #[test]
    fn letters_are_in_lower_case_each_by_itself() {
        assert_eq!(words("İstanbul ΟΔΟΣ ÉTÉ"), ["istanbul", "οδοσ", "été"]);
    }

    #[test]
    fn stop_words_leave_their_places_empty() {
        let mut found = Vec::new();
        each_word(Analyzer::English, "The Dog's bones and the FOXES are it", |position, word| {
            found.push(format!("{position} {word}"));
        });
        assert_eq!(found.join(", "), "100 dog, 101 bone, 104 fox");
        for (analyzer, text, has) in [
            (Analyzer::English, "It is", false),
            (Analyzer::English, "It is so", true),
            (Analyzer::Standard, "It is", true),
            (Analyzer::Standard, "... 2", true),
            (Analyzer::Standard, "...", false),
            (Analyzer::Simple, "... 2", false),
            (Analyzer::Keyword, "", true),
        ] {
            assert_eq!(has_word(analyzer, text), has, "{analyzer:?} {text}");
        }
    }

    #[test]
    fn a_text_without_words_may_have_a_mark() {
        let mut analyzer = WordAnalyzer::marked();
        for (text, expected) in [("", NO_WORDS), ("...", NO_WORDS), ("a. B", "a b")] {
            let mut stream = analyzer.token_stream(text);
            let mut words = Vec::new();
            stream.process(&mut |token| words.push(token.text.clone()));
            assert_eq!(words.join(" "), expected, "{text}");
        }
    }

    proptest! {
        /// The quick way finds the same words as the rules alone.
        #[test]
        fn the_quick_way_changes_nothing(text in "[a-c1-3 _.,'é/()漢-]{0,24}") {
            let plain: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
            let ours = words(&text);
            // An underscore alone is no word to the rules of unicode_words either.
            prop_assert_eq!(ours, plain, "{}", text);
        }

        /// And so do long texts, of which a part is looked at.
        #[test]
        fn the_window_changes_nothing(parts in proptest::collection::vec("([a-c]{0,90}|[_.,' ]{0,90}|[éè.]{0,90}|漢{0,3})", 0..80)) {
            let text = parts.concat();
            let short = |word: &&str| word.chars().count() <= MAX_WORD_CHARS;
            prop_assume!(text.unicode_words().all(|word| short(&word)));
            let plain: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
            prop_assert_eq!(words(&text), plain);
        }
    }
}
