//! Work that must run to its end even where its caller was dropped.

use std::path::Path;

use world::Env;

use crate::Result;
use crate::error::FirstFailure;

/// Runs what `make` answers with as a task of its own, which begins now; what this answers with waits for it. The work
/// is made where it stays: the future of a write has nearly two thousand bytes, and each move copies them.
pub(crate) fn to_its_end<T: 'static, F: Future<Output = Result<T>> + 'static>(
    env: &Env,
    dir: &Path,
    name: &'static str,
    make: impl FnOnce() -> F + 'static,
) -> impl Future<Output = Result<T>> {
    let task = env.spawn_with(name, make).into_waiter();
    async move {
        task.await.unwrap_or_else(|_| {
            let reason = format!("{name} (it panicked, or its node is going down)");
            Err(FirstFailure::new(reason).error(dir))
        })
    }
}
