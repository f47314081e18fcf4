//! Locks, however their last holder ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock is taken all the same: the mark of a failed copy protects what the lock does.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
