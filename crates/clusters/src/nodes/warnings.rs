//! What a node's process says on its standard error and its operator is to read: the node's warnings.

use std::collections::BTreeSet;

/// So many warnings of one process are printed.
const WARNINGS_MAX: usize = 20;

/// The warnings of one process. Each is printed once, and there is an end to them.
pub(super) struct Warnings {
    beginning: String,
    seen: BTreeSet<String>,
}

impl Warnings {
    /// None yet.
    pub(super) fn of(node: &str) -> Warnings {
        Warnings { beginning: engine::core::beginning_of_warnings(node), seen: BTreeSet::new() }
    }

    /// What is to be printed where its process says this line.
    pub(super) fn hear(&mut self, line: &str) -> Option<String> {
        let is_over = self.seen.len() > WARNINGS_MAX;
        if is_over || !line.starts_with(&self.beginning) || !self.seen.insert(line.to_owned()) {
            return None;
        }
        Some(match self.seen.len() <= WARNINGS_MAX {
            true => line.to_owned(),
            false => {
                format!("{}has over {WARNINGS_MAX} warnings: no more are shown", self.beginning)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_printed_once_and_there_is_an_end_to_them() {
        let mut warnings = Warnings::of("c-0");
        for line in ["panicked at", "WARNING: a JVM", "[c-1] of another", "[2026-11-21][WARN ]"] {
            assert_eq!(warnings.hear(line), None);
        }
        for n in 0..2 * WARNINGS_MAX {
            let line = format!("[c-0] warning {n}");
            let printed = warnings.hear(&line);
            match n {
                0..WARNINGS_MAX => assert_eq!(printed, Some(line.clone())),
                WARNINGS_MAX => {
                    assert_eq!(printed.unwrap(), "[c-0] has over 20 warnings: no more are shown")
                }
                _ => assert_eq!(printed, None),
            }
            assert_eq!(warnings.hear(&line), None, "said before");
        }
    }
}
