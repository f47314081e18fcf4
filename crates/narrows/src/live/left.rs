//! The end of changes to a live cluster: they are taken back, and it is said what is left of them.

use std::io;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clusters::{BorrowedSettings, Error, PutBack, SENT_TWICE, late_wait_sentence};
use world::Env;

use crate::interrupt::listen;
use crate::terminal::say;

/// A cluster that does not answer at the end is asked again for so long, after pauses.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// Puts back what was changed, which the command `restore` does later. Where the cluster does not answer, that is tried
/// for a minute: it may be too busy for it because of what was changed. Whoever says stop once more does not want to
/// wait.
pub(crate) async fn patiently<T>(
    env: &Env,
    restore: &str,
    mut put_back: impl AsyncFnMut() -> Result<T, Error>,
) -> anyhow::Result<T> {
    // Whoever says stop during the first try is heard, and that is made all the same.
    let stop = listen();
    let mut done = put_back().await;
    let stop = stop?;
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
        () = stop => {}
    }
    done.with_context(|| {
        format!("settings could not be put back; once the cluster answers, say `{restore}`")
    })
}

/// Waits, once settings were put back, until no change comes any more, or until somebody says stop (`stop`) once more,
/// and removes the journal. Returns a sentence for each setting that somebody else has changed.
pub(crate) async fn settle(
    env: &Env,
    restore: &str,
    settings: BorrowedSettings,
    mut done: PutBack,
    stop: impl Future<Output = io::Result<()>>,
) -> anyhow::Result<Vec<String>> {
    tell_wait(settings.may_come_for(), restore);
    let settled = patiently(env, restore, async || settings.settle(&mut done).await);
    let stop = async {
        // So soon it is the signal that ended the work, sent twice.
        env.sleep(SENT_TWICE).await;
        stop.await
    };
    tokio::select! {
        biased;
        settled = settled => settled?,
        stop = stop => return Err(stop.map_or_else(anyhow::Error::from, |()| broken_off(restore))),
    }
    settings.finish()?;
    Ok(done.left)
}

/// Says why the end takes so long, and what ends that.
pub(crate) fn tell_wait(may_come_for: Duration, restore: &str) {
    if let Some(wait) = late_wait_sentence(may_come_for) {
        say!("narrows: {wait}; Ctrl-C leaves that to `{restore}`, which keeps no change");
    }
}

/// Somebody did not want to wait.
pub(crate) fn broken_off(restore: &str) -> anyhow::Error {
    anyhow!(
        "told to stop while a change might be made yet; say `{restore}`, which puts back every change, kept or not"
    )
}

/// Whether it does not help to ask a cluster again.
pub(crate) fn is_hopeless(error: &Error) -> bool {
    // A journal that cannot be written is no cluster that does not answer.
    matches!(
        error,
        Error::Unauthorized { .. }
            | Error::Forbidden { .. }
            | Error::Refused { status: 400 | 401, .. }
            | Error::Io { .. }
    )
}

/// Says which settings are not as they were because someone else has changed them in the meantime.
pub(crate) fn tell_left(left: &[String]) {
    for sentence in left {
        say!("narrows: {sentence}");
    }
}

/// How settings are at the end: a sentence of `left` for each that is not as it was, unless `told` names it. Where
/// `stays`, what was changed is kept.
pub(crate) fn at_the_end(left: &[String], told: &str, stays: bool) -> String {
    let (all, others) = match stays {
        true => ("it stays so", "the rest stays so"),
        false => ("every setting is as it was", "every other setting is as it was"),
    };
    if left.is_empty() {
        return all.to_owned();
    }
    let is_told =
        |sentence: &&str| sentence.split(' ').next().is_some_and(|setting| told.contains(setting));
    let untold = left.iter().map(String::as_str).filter(|sentence| !is_told(sentence));
    untold.chain([others]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use clusters::live::LiveClient;
    use clusters::{Head, Journal, Kept};
    use record::observation::{Scope, Setting};

    use super::*;
    use crate::live::{ConnectArgs, options};

    /// A host of a cluster that has no settings. Its URL.
    fn host(answers_changes: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                if !answers_changes && request[..read].starts_with(b"PUT") {
                    kept.push(stream);
                    continue;
                }
                let body = r#"{"persistent":{},"transient":{}}"#;
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n");
                let _ = write!(stream, "{head}connection: close\r\n\r\n{body}");
            }
        });
        url
    }

    #[test]
    fn the_end_names_what_somebody_else_has_changed() {
        assert_eq!(at_the_end(&[], "", false), "every setting is as it was");
        let left = ["limit is \"5mb\" now".to_owned()];
        let said = at_the_end(&left, "the time is over", false);
        assert_eq!(said, "limit is \"5mb\" now; every other setting is as it was");
        assert_eq!(at_the_end(&left, &left[0], true), "the rest stays so", "it is said once");
    }

    #[test]
    fn whoever_does_not_want_to_wait_is_told_what_to_run_and_the_journal_stays() {
        world::real_world::run(1, async |env| {
            let urls = [host(false), host(true)];
            let options = options(&urls, &ConnectArgs::default(), Duration::from_secs(2)).unwrap();
            let client = LiveClient::new(&env, &options).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("changes.jsonl");
            let journal = Journal::create(&path, Head::new("uuid".to_owned(), urls.to_vec()));
            let mut settings = BorrowedSettings::new(client, journal.unwrap());
            let found = Setting { value: "40mb".to_owned(), scope: Scope::Default };
            settings.set("limit", &found, "80mb").await.unwrap();
            let done = settings.put_back(&Kept::new()).await.unwrap();
            let began = env.now();
            assert!(!settings.may_come_for().is_zero(), "one host has not answered");
            let stop = std::future::ready(Ok(()));
            let ended = settle(&env, "narrows restore DIR", settings, done, stop).await;
            let said = ended.unwrap_err().to_string();
            assert!(said.contains("`narrows restore DIR`, which puts back every change"), "{said}");
            assert!(path.exists());
            assert!(
                env.now() - began >= SENT_TWICE,
                "a signal that comes twice ends the work alone"
            );
        });
    }
}
