//! The order in which small files are changed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives each change its turn. Who asked for a change may be gone while a thread still makes it, and it must not undo
/// what was asked for later.
#[derive(Default)]
pub(super) struct Turns {
    last: Cell<u64>,
    pub(super) files: RefCell<BTreeMap<PathBuf, Arc<Mutex<u64>>>>,
}

/// A change's turn at a file.
pub(super) struct Turn {
    pub(super) number: u64,
    /// The last change that was made.
    made: Arc<Mutex<u64>>,
}

impl Turns {
    pub(super) fn next(&self, path: &Path) -> Turn {
        let number = self.last.get() + 1;
        self.last.set(number);
        let made = self.files.borrow_mut().entry(path.to_owned()).or_default().clone();
        Turn { number, made }
    }

    /// Forgets files that nobody changes now.
    pub(super) fn forget(&self, paths: &[PathBuf]) {
        let mut files = self.files.borrow_mut();
        for path in paths {
            if files.get(path).is_some_and(|made| Arc::strong_count(made) == 1) {
                files.remove(path);
            }
        }
    }
}

impl Turn {
    /// Waits for a change that is being made; none where a later one was made already. This one counts as made once
    /// its number is put there: one that failed stands for no earlier one.
    pub(super) fn take(&self) -> Option<MutexGuard<'_, u64>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        (*made < self.number).then_some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_was_made_stands_for_those_before_it_and_one_that_failed_for_none() {
        let turns = Turns::default();
        let [first, second, third] = [0; 3].map(|_| turns.next(Path::new("file")));
        drop(third.take());
        *second.take().unwrap() = second.number;
        assert!(first.take().is_none() && third.take().is_some());
    }
}
