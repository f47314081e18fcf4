//! What is left of changes to a live cluster once they were taken back.

use crate::terminal::say;

/// Says which settings are not as they were because someone else has changed them in the meantime.
pub(crate) fn tell_left(left: &[String]) {
    for sentence in left {
        say!("narrows: {sentence}");
    }
}
