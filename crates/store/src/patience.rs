//! Waits until the previous holder of a directory releases its lock.

use std::time::Duration;

use world::Env;

use crate::{Error, Result};

/// How long to wait for the previous handle, whose last work may still run on another thread. A child process that was
/// started at that moment may hold the lock a little longer, too.
const IN_USE_PATIENCE: Duration = Duration::from_secs(5);
const IN_USE_PAUSE: Duration = Duration::from_millis(20);

/// Tries again while the directory is in use.
pub(crate) async fn patiently<T>(env: &Env, attempt: impl AsyncFn() -> Result<T>) -> Result<T> {
    let give_up = env.now() + IN_USE_PATIENCE;
    loop {
        match attempt().await {
            Err(Error::InUse { .. }) if env.now() < give_up => env.sleep(IN_USE_PAUSE).await,
            result => return result,
        }
    }
}
