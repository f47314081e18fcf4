//! Work that must run to its end even where its caller was dropped.

use std::path::Path;

use world::Env;

use crate::Result;
use crate::error::FirstFailure;

/// Runs `work` as a task of its own and waits for it.
pub(crate) async fn to_its_end<T: 'static>(
    env: &Env,
    dir: &Path,
    name: &'static str,
    work: impl Future<Output = Result<T>> + 'static,
) -> Result<T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let task = async move {
        // Where this fails, nobody waits any more.
        let _ = tell.send(work.await);
    };
    env.spawn(name, task).detach();
    told.await.unwrap_or_else(|_| Err(FirstFailure::new("its node is going down").error(dir)))
}
