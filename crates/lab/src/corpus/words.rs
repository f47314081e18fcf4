//! Words of English-like text, frequent ones first and short, drawn by Zipf's law.

use std::sync::LazyLock;

use super::random::Random;
use super::weighted::Weighted;

const FAMILY: u64 = 0x01;
const COUNT: usize = 30_000;

/// The most frequent words of the language, most frequent first.
const COMMON: [&str; 40] = [
    "the", "of", "and", "in", "to", "a", "with", "for", "was", "were", "is", "that", "by", "as",
    "on", "from", "are", "at", "this", "an", "we", "be", "or", "not", "which", "have", "these",
    "between", "been", "has", "than", "it", "also", "other", "using", "after", "both", "may",
    "however", "more",
];
/// Frequent in papers on medicine; those that the Rally track searches for are among them.
const MEDICAL: [&str; 40] = [
    "patients", "study", "cells", "data", "results", "analysis", "treatment", "protein", "gene",
    "group", "clinical", "expression", "human", "model", "levels", "disease", "health", "risk",
    "significant", "control", "response", "cancer", "blood", "tissue", "method", "sample",
    "effect", "infection", "population", "therapy", "mice", "receptor", "physician", "newspaper",
    "coverage", "surgery", "antibody", "trial", "tumor", "diagnosis",
];
const STARTS: [&str; 20] = [
    "a", "be", "co", "de", "e", "fi", "ge", "hy", "in", "ka", "lo", "me", "ne", "o", "pro", "re",
    "sta", "tri", "u", "vi",
];
const MIDDLES: [&str; 20] = [
    "ba", "ci", "do", "fer", "gra", "li", "mo", "na", "phe", "ra", "ri", "sa", "ste", "ta", "tro",
    "va", "lu", "mi", "nu", "pa",
];
const ENDS: [&str; 16] = [
    "n", "l", "tion", "ed", "s", "ment", "te", "ing", "r", "ne", "se", "ic", "al", "ity", "ly",
    "um",
];

/// A vocabulary and the law by which its words occur.
pub(super) struct Words {
    /// Words one after another, each with a space behind it.
    text: String,
    /// Where each begins, and the end.
    starts: Vec<u32>,
    law: Weighted,
}

/// The one vocabulary: the same for every seed, as a language is.
pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut words = Words { text: String::new(), starts: vec![0], law: Weighted::zipf(COUNT, 2.0) };
    for word in COMMON.iter().chain(&MEDICAL) {
        words.push(&[word]);
    }
    for n in words.starts.len() - 1..COUNT {
        let mut random = Random::new(0, FAMILY, n as u64);
        let middle = [random.pick(&MIDDLES), random.pick(&MIDDLES), random.pick(&MIDDLES)];
        // Rarer words are longer.
        let middles = if n < 600 { 1 } else { 1 + random.below(3) as usize };
        let mut parts = vec![*random.pick(&STARTS)];
        parts.extend(middle.into_iter().take(middles));
        parts.push(*random.pick(&ENDS));
        words.push(&parts);
    }
    words
});

impl Words {
    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.text.push_str(part);
        }
        self.text.push(' ');
        self.starts.push(self.text.len() as u32);
    }

    /// A word with the space behind it.
    pub(super) fn draw(&self, random: &mut Random) -> &[u8] {
        let word = self.law.draw(random);
        &self.text.as_bytes()[self.starts[word] as usize..self.starts[word + 1] as usize]
    }

    /// Appends `count` words with a space between.
    pub(super) fn write(&self, count: u32, random: &mut Random, out: &mut Vec<u8>) {
        for _ in 0..count {
            out.extend_from_slice(self.draw(random));
        }
        out.pop();
    }

    /// Appends sentences in paragraphs, escaped for JSON, until `bytes` have been added; the last
    /// sentence is finished.
    pub(super) fn write_sentences(&self, bytes: usize, random: &mut Random, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        while out.len() < end {
            let first = out.len();
            let count = 6 + random.below(24);
            self.write(count, random, out);
            out[first].make_ascii_uppercase();
            out.push(b'.');
            out.extend_from_slice(if random.below(7) == 0 { b"\\n" } else { b" " });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_shape_of_english() {
        let mut out = Vec::new();
        WORDS.write_sentences(1_000_000, &mut Random::new(3, 0, 0), &mut out);
        let text = String::from_utf8(out).unwrap().replace("\\n", " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let mean = text.len() as f64 / words.len() as f64;
        assert!((5.0..8.0).contains(&mean), "bytes a word with its space: {mean}");
        let share = words.iter().filter(|w| **w == "the").count() as f64 / words.len() as f64;
        assert!((0.02..0.08).contains(&share), "share of \"the\": {share}");
        let distinct: std::collections::BTreeSet<&str> = words.iter().copied().collect();
        assert!(distinct.len() > 15_000, "distinct words: {}", distinct.len());
    }
}
