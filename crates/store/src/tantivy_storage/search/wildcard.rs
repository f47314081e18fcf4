//! `wildcard`: an automaton that holds the places of the pattern where a term may stand, one bit each. Every byte of a
//! term costs one pass over the bits and nothing is compiled, so that no pattern is dearer than its length. It is
//! 1.6 to 4.9 times as fast as the same by `regexp` (2026-12-01, docs/benchmarks/search_side_by_side.md).

use std::sync::Arc;

use query::illegal;
use tantivy::query::{AutomatonWeight, EnableScoring, Query as Library, Weight};
use tantivy::schema::Field;
use tantivy_fst::Automaton;

use super::failed::Result;

/// Patterns whose bytes fit into one word, and all others.
const SHORT: usize = 1;
const LONG: usize = 64;
/// The field knows no limit. Here the places of a pattern are kept for each byte of the term at hand.
const MAX_BYTES: usize = LONG * 64 - 1;

/// Terms that match a pattern: `*` is any text, `?` any character, and a backslash takes the sign behind it as it is.
/// `any_case`: letters of ASCII count as one in either case.
pub(super) fn of(pattern: &str, any_case: bool, field: Field) -> Result<Box<dyn Library>> {
    check(pattern)?;
    // The place at the end has a bit, too.
    Ok(if is_short(pattern) {
        Box::new(Wildcard::<SHORT>::of(pattern, any_case, field))
    } else {
        Box::new(Wildcard::<LONG>::of(pattern, any_case, field))
    })
}

/// Says of a word whether it fits.
pub(super) type Fits = Box<dyn Fn(&str) -> bool>;

/// Whether a term matches a pattern.
pub(super) fn fits(pattern: &str, any_case: bool) -> Result<Fits> {
    check(pattern)?;
    Ok(if is_short(pattern) {
        let matcher = Matcher::<SHORT>::of(pattern, any_case);
        Box::new(move |term: &str| accepts(&matcher, term))
    } else {
        let matcher = Matcher::<LONG>::of(pattern, any_case);
        Box::new(move |term: &str| accepts(&matcher, term))
    })
}

/// Whether an automaton accepts a term.
pub(super) fn accepts(automaton: &impl Automaton, term: &str) -> bool {
    let mut state = automaton.start();
    for byte in term.bytes() {
        if !automaton.can_match(&state) {
            return false;
        }
        state = automaton.accept(&state, byte);
    }
    automaton.is_match(&state)
}

fn check(pattern: &str) -> Result<()> {
    if pattern.len() > MAX_BYTES {
        let reason = format!(
            "the pattern of a [wildcard], or of a [term] or [prefix] with [case_insensitive], has more than \
             {MAX_BYTES} bytes"
        );
        return Err(illegal(reason).into());
    }
    Ok(())
}

fn is_short(pattern: &str) -> bool {
    pattern.len() < SHORT * 64
}

/// What a pattern takes: its places for each byte of a term.
pub(super) fn bytes(pattern: &str) -> usize {
    256 * 8 * if is_short(pattern) { SHORT } else { LONG }
}

/// Places before, between and behind the bytes of a pattern.
type Places<const WORDS: usize> = [u64; WORDS];

#[derive(Clone, Debug)]
struct Wildcard<const WORDS: usize> {
    field: Field,
    matcher: Arc<Matcher<WORDS>>,
}

#[derive(Debug)]
struct Matcher<const WORDS: usize> {
    /// By a byte of a term: the places that it leads on from.
    on: Vec<Places<WORDS>>,
    /// Places where any text may stand.
    any_text: Places<WORDS>,
    /// Places behind any character: more bytes of it may follow.
    within: Places<WORDS>,
    end: usize,
}

impl<const WORDS: usize> Wildcard<WORDS> {
    fn of(pattern: &str, any_case: bool, field: Field) -> Self {
        Wildcard { field, matcher: Arc::new(Matcher::of(pattern, any_case)) }
    }
}

impl<const WORDS: usize> Matcher<WORDS> {
    fn of(pattern: &str, any_case: bool) -> Self {
        let nowhere = [0; WORDS];
        let mut on = vec![nowhere; 256];
        let (mut any_text, mut within, mut at) = (nowhere, nowhere, 0);
        let mut chars = pattern.chars();
        while let Some(char) = chars.next() {
            match char {
                '*' => set(&mut any_text, at),
                '?' => {
                    let firsts = (0..=u8::MAX).filter(|byte| !goes_on(*byte));
                    firsts.for_each(|byte| set(&mut on[usize::from(byte)], at));
                    at += 1;
                    set(&mut within, at);
                }
                char => {
                    let literal = if char == '\\' { chars.next().unwrap_or('\\') } else { char };
                    for byte in literal.encode_utf8(&mut [0; 4]).bytes() {
                        set(&mut on[usize::from(byte)], at);
                        if any_case {
                            set(&mut on[usize::from(byte.to_ascii_lowercase())], at);
                            set(&mut on[usize::from(byte.to_ascii_uppercase())], at);
                        }
                        at += 1;
                    }
                }
            }
        }
        Matcher { on, any_text, within, end: at }
    }
}

/// Whether a byte of UTF-8 is part of the character before it.
fn goes_on(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn set<const WORDS: usize>(places: &mut Places<WORDS>, at: usize) {
    places[at / 64] |= 1 << (at % 64);
}

fn has<const WORDS: usize>(places: &Places<WORDS>, at: usize) -> bool {
    places[at / 64] & (1 << (at % 64)) != 0
}

impl<const WORDS: usize> Automaton for Matcher<WORDS> {
    type State = Places<WORDS>;

    fn start(&self) -> Self::State {
        let mut start = [0; WORDS];
        set(&mut start, 0);
        start
    }

    fn is_match(&self, state: &Self::State) -> bool {
        has(state, self.end)
    }

    fn can_match(&self, state: &Self::State) -> bool {
        state.iter().any(|word| *word != 0)
    }

    fn will_always_match(&self, state: &Self::State) -> bool {
        has(state, self.end) && has(&self.any_text, self.end)
    }

    fn accept(&self, state: &Self::State, byte: u8) -> Self::State {
        let on = &self.on[usize::from(byte)];
        let (mut next, mut carried) = ([0; WORDS], 0);
        for (at, next) in next.iter_mut().enumerate() {
            let led_on = state[at] & on[at];
            let stays = self.any_text[at] | if goes_on(byte) { self.within[at] } else { 0 };
            *next = led_on << 1 | carried | state[at] & stays;
            carried = led_on >> 63;
        }
        next
    }
}

impl<const WORDS: usize> Library for Wildcard<WORDS> {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(AutomatonWeight::<Matcher<WORDS>>::new(self.field, self.matcher.clone())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_match<const WORDS: usize>(pattern: &str, term: &str) -> bool {
        accepts(&Matcher::<WORDS>::of(pattern, false), term)
    }

    /// As it is meant: the first sign of the pattern, then the rest.
    fn expected(pattern: &[char], term: &[char]) -> bool {
        match pattern {
            [] => term.is_empty(),
            ['*', rest @ ..] => (0..=term.len()).any(|from| expected(rest, &term[from..])),
            ['?', rest @ ..] => !term.is_empty() && expected(rest, &term[1..]),
            ['\\', sign, rest @ ..] | [sign, rest @ ..] => {
                term.first() == Some(sign) && expected(rest, &term[1..])
            }
        }
    }

    proptest! {
        #[test]
        fn terms_match_as_by_trying_everything(pattern in r"[ab*?éx\\]{0,7}", term in r"[abéx€\\]{0,7}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let (signs, letters) = (chars(&pattern), chars(&term));
            let wanted = expected(&signs, &letters);
            prop_assert_eq!(is_match::<SHORT>(&pattern, &term), wanted);
            prop_assert_eq!(is_match::<LONG>(&pattern, &term), wanted);
            let any_case = Matcher::<SHORT>::of(&pattern.to_uppercase().replace('É', "é"), true);
            prop_assert_eq!(accepts(&any_case, &term), wanted);
        }
    }

    #[test]
    fn long_patterns_go_over_words() {
        for pattern in ["€".repeat(1000), format!("*{}*", "?".repeat(900)), "*a".repeat(500)] {
            assert!(is_match::<LONG>(&pattern, &"€".repeat(1000)) != pattern.contains('a'));
            assert_eq!(is_match::<LONG>(&pattern, &"a".repeat(900)), !pattern.contains('€'));
        }
        let longest = "a".repeat(MAX_BYTES);
        assert!(is_match::<LONG>(&longest, &longest) && !is_match::<LONG>(&longest, "a"));
        assert!(of(&longest, false, Field::from_field_id(0)).is_ok());
        assert!(of(&(longest + "a"), false, Field::from_field_id(0)).is_err());
    }
}
