//! The end of a message about an unknown name: the nearest, and all there are.

use record::names::did_you_mean;

/// `said`, then the names of `known` nearest to `given`, then all of them under `heading`:
/// `unknown step "recovery"; did you mean "recover"? Steps: start, index, recover, verify`.
pub(crate) fn unknown(said: &str, given: &str, heading: &str, known: &[&str]) -> String {
    let near = did_you_mean(given, known.iter().copied());
    let end = if near.is_empty() { "." } else { &near };
    format!("{said} \"{given}\"{end} {heading}: {}", known.join(", "))
}
