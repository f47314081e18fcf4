//! What held a variant.

use record::Limit;

use crate::bounds::Ceiling;

/// What held a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limit with the largest share, as the target says it or as it is seen from outside, or the one inferred; none
    /// where it is not known.
    pub limit: Option<Limit>,
    /// Its share of the time, 0 to 1; 0 where it is inferred.
    pub share: f64,
    /// The most that this limit lets through, where settings and link say it.
    pub ceiling: Option<Ceiling>,
    /// The limit that would hold next if this one were widened, where its ceiling is known.
    pub next: Option<Ceiling>,
    /// The sentence.
    pub text: String,
}
