//! The nearest names to one that is not known, for error messages; names that match a pattern, and names in a sentence.

use std::borrow::Borrow;

/// Longer names are compared with none: what this costs grows with the product of the two lengths, and nobody mistypes
/// the like.
const MAX_BYTES: usize = 256;
/// Names that are there, where another one was meant: a cluster has thousands of indices, and nobody reads all.
const TOLD_MAX: usize = 100;

/// The names of `known` that are close to `given`, nearest first, three at most.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if given.len() > MAX_BYTES {
        return Vec::new();
    }
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .filter(|name| name.len() <= MAX_BYTES)
        .map(|name| (closeness(given, name), name))
        .filter(|(score, _)| *score > 0.72)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// A sentence to end an error with: `; did you mean "a" or "b"?`, or nothing.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near: Vec<String> = nearest(given, known).iter().map(|n| format!("\"{n}\"")).collect();
    match near.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub fn listed<S: Borrow<str>>(names: &[S]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => before.join(", ") + " and " + last.borrow(),
        names => names.join(""),
    }
}

/// The names that are there one after another, or the first of very many.
pub fn told<S: Borrow<str>>(names: &[S]) -> String {
    let (first, more) = names.split_at(names.len().min(TOLD_MAX));
    match more.len() {
        0 => first.join(", "),
        count => format!("{} and {count} more", first.join(", ")),
    }
}

/// Dotted names are compared as a whole and by their last part, so that `max_bytes_per_sec` finds
/// `indices.recovery.max_bytes_per_sec`.
fn closeness(given: &str, name: &str) -> f64 {
    let last = |s: &str| s.rsplit('.').next().unwrap_or(s).to_owned();
    let whole = likeness(given, name);
    let tail = likeness(&last(given), &last(name)) * 0.97;
    let contained = if given.len() >= 4 && name.contains(given) { 0.9 } else { 0.0 };
    whole.max(tail).max(contained)
}

/// How alike two names are, 0 to 1; 0 where more than half of the letters are others, whatever they begin with: nobody
/// who writes `compare` means `completions`.
fn likeness(a: &str, b: &str) -> f64 {
    let longer = a.chars().count().max(b.chars().count());
    if strsim::osa_distance(a, b) * 2 <= longer { strsim::jaro_winkler(a, b) } else { 0.0 }
}

/// Whether a name matches a pattern in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.len() >= last.len() && name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*b*", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("ab*ba", "aba", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    /// Stars are not tried in turn, which would go on for ever here.
    #[test]
    fn a_pattern_of_many_stars_costs_its_length() {
        let (pattern, name) = (format!("{}b", "*a".repeat(200)), "a".repeat(10_000));
        assert!(!matches(&pattern, &name));
    }

    #[test]
    fn the_last_of_many_is_joined_by_a_word() {
        let said = [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]].map(listed);
        assert_eq!(said, ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn of_very_many_the_first_are_told() {
        assert_eq!(told(&["a", "b", "c"]), "a, b, c");
        let many = ["a"; TOLD_MAX + 5];
        assert!(told(&many[..TOLD_MAX]).ends_with("a, a"));
        assert!(told(&many).ends_with("a, a and 5 more"));
    }

    #[test]
    fn offers_the_nearest_and_stays_silent_otherwise() {
        let known = ["remote-recovery", "replica-selection", "stability"];
        assert_eq!(did_you_mean("remote-recvery", known), "; did you mean \"remote-recovery\"?");
        assert_eq!(did_you_mean("zzz", known), "");
        assert_eq!(did_you_mean("compare", ["completions", "report"]), "");
        let long = "x".repeat(MAX_BYTES + 1);
        assert_eq!(nearest(&long, [long.as_str()]), Vec::<&str>::new());
        assert_eq!(nearest(&long[1..], [&long[1..], &long]), [&long[1..]]);
        let settings = ["indices.recovery.max_bytes_per_sec", "transport.compress"];
        assert_eq!(nearest("max_byte_per_sec", settings), [settings[0]]);
    }
}
