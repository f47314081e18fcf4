//! What the `english` analyzer does with a word in lower case, as Lucene's `EnglishAnalyzer`: a possessive 's is taken
//! off, stop words are dropped, and what is left is cut to its stem.
//!
//! The stem is that of Porter, "An algorithm for suffix stripping", Program 14 (1980), with what its author changed
//! later (<https://tartarus.org/martin/PorterStemmer>): "bli" and "logi" in step 2, and words of one or two letters
//! stay as they are. Snowball's English stemmer is a later one, with other stems.

/// Lucene's `EnglishAnalyzer.ENGLISH_STOP_WORDS_SET`.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

type Rules = &'static [(&'static str, &'static str)];

const STEP_1A: Rules = &[("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")];
const STEP_2: Rules = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];
const STEP_3: Rules = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];
/// "ion" goes behind s and t alone.
const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// Makes a word its stem; false if it is to be dropped.
pub(super) fn keep_stem(word: &mut String, letters: &mut Letters) -> bool {
    let possessive = ["'s", "\u{2019}s", "\u{ff07}s"].into_iter();
    if let Some(bytes) = possessive.filter(|end| word.ends_with(end)).map(str::len).next() {
        word.truncate(word.len() - bytes);
    }
    if STOP_WORDS.contains(&word.as_str()) {
        return false;
    }
    letters.0.clear();
    letters.0.extend(word.encode_utf16());
    letters.stem();
    word.clear();
    // No rule parts the halves of a character: endings are of one half each, and of two equal letters one goes.
    word.extend(char::decode_utf16(letters.0.iter().copied()).flatten());
    true
}

/// The letters of a word, in UTF-16 as Lucene has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Letters(Vec<u16>);

impl Letters {
    fn stem(&mut self) {
        if self.0.len() < 3 {
            return;
        }
        self.replace(STEP_1A, None);
        self.step_1b();
        if let Some(at) = self.before("y")
            && has_vowel(&self.0[..at])
        {
            self.put(at, "i");
        }
        self.replace(STEP_2, Some(0));
        self.replace(STEP_3, Some(0));
        let found = STEP_4.into_iter().find_map(|end| Some((end, self.before(end)?)));
        if let Some((end, at)) = found
            && measure(&self.0[..at]) > 1
            && (end != "ion" || self.0[..at].last().is_some_and(|last| is_one(*last, "st")))
        {
            self.put(at, "");
        }
        self.step_5();
    }

    fn step_1b(&mut self) {
        if let Some(at) = self.before("eed") {
            if measure(&self.0[..at]) > 0 {
                self.0.pop();
            }
            return;
        }
        let at = self.before("ed").or_else(|| self.before("ing"));
        let Some(at) = at.filter(|at| has_vowel(&self.0[..*at])) else { return };
        self.put(at, "");
        if ["at", "bl", "iz"].into_iter().any(|end| self.before(end).is_some()) {
            self.put(at, "e");
        } else if ends_double(&self.0) {
            if !is_one(self.0[at - 1], "lsz") {
                self.0.pop();
            }
        } else if measure(&self.0) == 1 && ends_short(&self.0) {
            self.put(at, "e");
        }
    }

    fn step_5(&mut self) {
        if let Some(at) = self.before("e") {
            let stem = &self.0[..at];
            let measure = measure(stem);
            if measure > 1 || measure == 1 && !ends_short(stem) {
                self.put(at, "");
            }
        }
        if self.before("ll").is_some() && measure(&self.0) > 1 {
            self.0.pop();
        }
    }

    /// How many letters stand before an ending; none where the word does not end so.
    fn before(&self, end: &str) -> Option<usize> {
        let at = self.0.len().checked_sub(end.len())?;
        self.0[at..].iter().copied().eq(end.bytes().map(u16::from)).then_some(at)
    }

    /// Puts an ending in place of what stands from `at` on.
    fn put(&mut self, at: usize, end: &str) {
        self.0.truncate(at);
        self.0.extend(end.bytes().map(u16::from));
    }

    /// Replaces the first ending that the word has, if there is one and what stands before it measures more than
    /// `least`.
    fn replace(&mut self, rules: Rules, least: Option<usize>) {
        let found = rules.iter().find_map(|(end, by)| Some((self.before(end)?, by)));
        if let Some((at, by)) = found
            && least.is_none_or(|least| measure(&self.0[..at]) > least)
        {
            self.put(at, by);
        }
    }
}

fn is_one(letter: u16, of: &str) -> bool {
    of.bytes().any(|one| u16::from(one) == letter)
}

/// A `y` is a consonant at the beginning, and behind a vowel.
fn is_consonant(word: &[u16], at: usize) -> bool {
    match is_one(word[at], "y") {
        true => at == 0 || !is_consonant(word, at - 1),
        false => !is_one(word[at], "aeiou"),
    }
}

fn has_vowel(word: &[u16]) -> bool {
    (0..word.len()).any(|at| !is_consonant(word, at))
}

/// Porter's m: how often a consonant follows a vowel.
fn measure(word: &[u16]) -> usize {
    (1..word.len()).filter(|at| is_consonant(word, *at) && !is_consonant(word, at - 1)).count()
}

/// Porter's *d: whether it ends with the same consonant twice.
fn ends_double(word: &[u16]) -> bool {
    matches!(word, [.., a, b] if a == b) && is_consonant(word, word.len() - 1)
}

/// Porter's *o: whether it ends with a consonant, a vowel, and a consonant other than w, x and y.
fn ends_short(word: &[u16]) -> bool {
    let Some(at) = word.len().checked_sub(3) else { return false };
    is_consonant(word, at)
        && !is_consonant(word, at + 1)
        && is_consonant(word, at + 2)
        && !is_one(word[at + 2], "wxy")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(word: &str) -> Option<String> {
        let mut word = word.to_owned();
        keep_stem(&mut word, &mut Letters::default()).then_some(word)
    }

    /// The examples of Porter's paper, carried through all steps as in the vocabulary that he publishes with it.
    #[test]
    fn stems_are_those_that_porter_published() {
        for pair in "caresses:caress ponies:poni ties:ti cats:cat feed:feed agreed:agre plastered:plaster bled:bled \
            motoring:motor sing:sing conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall \
            hissing:hiss fizzed:fizz failing:fail filing:file happy:happi sky:sky relational:relat conditional:condit \
            rational:ration valenci:valenc hesitanci:hesit digitizer:digit conformabli:conform radicalli:radic \
            differentli:differ vileli:vile analogousli:analog vietnamization:vietnam predication:predic \
            operator:oper feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous formaliti:formal \
            sensitiviti:sensit sensibiliti:sensibl triplicate:triplic formative:form formalize:formal \
            electriciti:electr electrical:electr hopeful:hope goodness:good revival:reviv allowance:allow \
            inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust defensible:defens \
            irritant:irrit replacement:replac adjustment:adjust dependent:depend adoption:adopt homologou:homolog \
            communism:commun activate:activ angulariti:angular homologous:homolog effective:effect \
            bowdlerize:bowdler probate:probat rate:rate cease:ceas controll:control roll:roll \
            generalizations:gener oscillators:oscil"
            .split_whitespace()
        {
            let (word, stem) = pair.split_once(':').unwrap();
            assert_eq!(kept(word).as_deref(), Some(stem), "{word}");
        }
    }

    /// Each of these has another stem in Snowball's English stemmer, or none at all by the letter of the paper.
    #[test]
    fn it_is_the_stemmer_of_lucene() {
        for (word, stem) in [
            ("skies", "ski"),
            ("dying", "dy"),
            ("generously", "gener"),
            ("possibly", "possibl"),
            ("archaeology", "archaeolog"),
            ("is", ""),
            ("as's", ""),
            ("us", "us"),
            ("yes", "ye"),
            ("say", "sai"),
            ("toys", "toi"),
            ("fox's", "fox"),
            ("fox\u{2019}s", "fox"),
            ("o'neil", "o'neil"),
            ("it's", ""),
            ("cafés", "café"),
            ("aééed", "aé"),
            ("x\u{10400}s", "x\u{10400}"),
            ("2024", "2024"),
        ] {
            assert_eq!(kept(word).unwrap_or_default(), stem, "{word}");
        }
    }
}
