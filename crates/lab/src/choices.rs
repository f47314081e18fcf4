//! The end of a message about an unknown name: the nearest, and all there are.

use record::names::{did_you_mean, told};

/// `said`, then the names of `known` nearest to `given`, then all of them, or the first of very many, under `heading`:
/// `unknown step "recovery"; did you mean "recover"? Steps: start, index, recover, verify`.
pub(crate) fn unknown(said: &str, given: &str, heading: &str, known: &[&str]) -> String {
    format!("{said} \"{given}\"{} {heading}: {}", near_or_stop(given, known), told(known))
}

/// The end of a sentence on an unknown name: the names of `known` nearest to it, or a full stop.
pub(crate) fn near_or_stop(given: &str, known: &[&str]) -> String {
    let near = did_you_mean(given, known.iter().copied());
    if near.is_empty() { ".".to_owned() } else { near }
}
