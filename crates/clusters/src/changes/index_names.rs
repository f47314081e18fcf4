//! The names of the indices that runs create.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Names of indices that a run creates begin with this; no other index is ever removed.
pub(super) const INDEX_PREFIX: &str = "narrows-";

/// A name for what the run `run` creates. Nobody else has it: another machine may begin the same run in the same
/// second. A run may be called as no index may, as by the folder of its track: other characters become `-`, capitals
/// small.
pub fn index_of_run(run: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let run = run.to_ascii_lowercase().replace(|c| !allowed(c), "-");
    // Names have at most 255 bytes, and some get an end of their own.
    let run = &run[..run.len().min(150)];
    format!("{INDEX_PREFIX}{run}-{:08x}", drawn())
}

/// A number that nobody else draws.
pub(super) fn drawn() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

/// Whether this is the name of one index as runs call theirs. A cluster takes `narrows-a,logs` and `narrows-*` for
/// several, and may read `%2C` as a comma.
pub(super) fn is_of_a_run(name: &str) -> bool {
    name.starts_with(INDEX_PREFIX) && !name.contains([',', '*', '%', '/', '?', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_may_be_called_as_its_run_is_named() {
        for (run, named) in [
            ("20261128-052355-remote-recovery", "narrows-20261128-052355-remote-recovery-"),
            ("20261128-052355-My Track, ä#2", "narrows-20261128-052355-my-track----2-"),
        ] {
            let index = index_of_run(run);
            let letters = index.strip_prefix(named);
            assert!(letters.is_some_and(|letters| letters.len() == 8), "{index}");
        }
        assert!(index_of_run(&"é".repeat(500)).len() < 200);
    }
}
