//! The end of changes to a live cluster: they are taken back, and it is said what is left of them.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clusters::Error;
use world::Env;

use crate::interrupt::listen;
use crate::terminal::say;

/// A cluster that does not answer at the end is asked again for so long, after pauses.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// Puts back what was changed, as its journal in `dir` has it. Where the cluster does not answer, that is tried for a
/// minute: it may be too busy for it because of what was changed. Whoever says stop once more does not want to wait.
pub(crate) async fn patiently<T>(
    env: &Env,
    dir: &Path,
    mut put_back: impl AsyncFnMut() -> Result<T, Error>,
) -> anyhow::Result<T> {
    // Whoever says stop during the first try is heard, and that is made all the same.
    let told = listen();
    let mut done = put_back().await;
    let told = told?;
    let gives_up = env.now() + PATIENCE;
    let tries = async {
        if let Err(error) = &done
            && !is_hopeless(error)
        {
            say!(
                "narrows: settings are not put back yet: {error}; that is tried again for a minute, or until somebody \
                 says stop once more"
            );
        }
        while let Err(error) = &done
            && !is_hopeless(error)
            && env.now() < gives_up
        {
            env.sleep(PAUSE).await;
            done = put_back().await;
        }
    };
    tokio::select! {
        biased;
        () = tries => {}
        () = told => {}
    }
    done.with_context(|| {
        let dir = dir.display();
        format!(
            "settings could not be put back; once the cluster answers, say `narrows restore {dir}`"
        )
    })
}

/// Whether it does not help to ask a cluster again.
pub(crate) fn is_hopeless(error: &Error) -> bool {
    // A journal that cannot be written is no cluster that does not answer.
    matches!(
        error,
        Error::Unauthorized { .. }
            | Error::Forbidden { .. }
            | Error::Refused { status: 400, .. }
            | Error::Io { .. }
    )
}

/// Says which settings are not as they were because someone else has changed them in the meantime.
pub(crate) fn tell_left(left: &[String]) {
    for sentence in left {
        say!("narrows: {sentence}");
    }
}

/// How a cluster is where so much is left.
pub(crate) fn as_it_was(left: &[String]) -> &'static str {
    match left.is_empty() {
        true => "every setting is as it was",
        false => "every setting but what somebody else has changed is as it was",
    }
}
