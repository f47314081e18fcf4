//! A headline, and the sentences below it: what was found in few words, and what these have no room for.

/// Words of a headline at most: what stands between spaces. Names of variants count and are never cut; where they are
/// longer than most, the rest is as short as it can be.
const WORDS_MAX: usize = 14;

/// Figures that differ by less, as a factor, are called equal.
pub(crate) const WORTH_TELLING: f64 = 1.05;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The finding, without a full stop.
    pub text: String,
    /// What it has no room for, a sentence each.
    pub details: Vec<String>,
}

impl From<String> for Headline {
    fn from(text: String) -> Headline {
        Headline { text, details: Vec::new() }
    }
}

impl Headline {
    /// The whole where it is short enough. Otherwise the first of the shorter forms that is, or the last of them, and
    /// the whole below it.
    pub(crate) fn of(whole: String, shorter: impl IntoIterator<Item = String>) -> Headline {
        if is_short(&whole) {
            return Headline::from(whole);
        }
        let (mut text, mut details) = (whole.clone(), Vec::new());
        for form in shorter {
            details = vec![format!("{whole}.")];
            text = form;
            if is_short(&text) {
                break;
            }
        }
        Headline { text, details }
    }

    /// Adds a clause where there is room for it, and the sentence below where there is none.
    pub(crate) fn with(mut self, clause: &str, sentence: String) -> Headline {
        let text = format!("{}{clause}", self.text);
        match is_short(&text) {
            true => self.text = text,
            false => self.details.push(sentence),
        }
        self
    }
}

/// A name in a sentence: with a comma of its own it would read as two.
pub(crate) fn named(name: &str) -> String {
    if name.contains(',') { format!("\"{name}\"") } else { name.to_owned() }
}

fn is_short(text: &str) -> bool {
    text.split_whitespace().count() <= WORDS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_stands_below() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let forms = || [words(15), words(9), words(3)];
        assert_eq!(Headline::of(words(14), forms()), Headline::from(words(14)));
        let found = Headline::of(words(16), forms());
        assert_eq!((&found.text, &found.details), (&words(9), &vec![words(16) + "."]));
        let longest = Headline::of(words(16), [words(15)]).text;
        assert_eq!(longest, words(15), "names are never cut");
        assert_eq!(Headline::of(words(16), []), Headline::from(words(16)));
        let more = found.with("; and five more", "There are more.".to_owned());
        assert_eq!((more.text.ends_with("; and five more"), more.details.len()), (true, 1));
        let below = more.with(" and three more still", "There are more.".to_owned());
        assert_eq!(below.details[1], "There are more.");
    }
}
