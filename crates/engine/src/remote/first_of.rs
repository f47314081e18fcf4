//! The first success of several calls at once.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::patience::SILENT_PATIENCE;
use crate::core::Core;
use crate::transport::{CallError, Class, Request, Response, Result, unexpected};

/// Waits for several calls at once; the first success is the answer, and the other calls are dropped. If all fail, any
/// other failure is preferred to "not here". Once another node has answered, one that is silent is not waited for until
/// its call's limit: where the others say at once that it is not there, they are to be asked again soon.
pub(crate) async fn first_of<S, F>(
    core: &Rc<Core>,
    calls: Vec<(S, F)>,
    address: fn(&S) -> &str,
) -> Result<(S, Response), CallError>
where
    S: 'static,
    F: Future<Output = Result<Response, CallError>> + 'static,
{
    let (answers, mut answered) = mpsc::unbounded_channel();
    let heard = Rc::new(Heard::default());
    let began = core.env.now();
    let tasks: Vec<_> = calls
        .into_iter()
        .map(|(source, call)| {
            let (core2, answers, heard) = (core.clone(), answers.clone(), heard.clone());
            core.env.spawn("asks one of several", async move {
                let answer = tokio::select! {
                    biased;
                    answer = call => answer,
                    error = until_silent(&core2, address(&source), heard) => Err(error),
                };
                let _ = answers.send((source, answer));
            })
        })
        .collect();
    drop(answers);
    let mut failure = None;
    while let Some((source, answer)) = answered.recv().await {
        if matches!(answer, Err(CallError::Failed(_))) {
            heard.after(core.env.now() - began);
        }
        match answer {
            Ok(response) => return Ok((source, response)),
            Err(error) if failure.is_none() || !is_elsewhere(&error) => failure = Some(error),
            Err(_) => {}
        }
    }
    drop(tasks);
    Err(failure.unwrap_or_else(|| CallError::Failed(unexpected())))
}

/// How long the first of several took to answer. Those who wait for it are woken in the order in which they came, so
/// that a seed has one trace.
#[derive(Default)]
struct Heard {
    took: Cell<Option<Duration>>,
    is_known: Notify,
}

impl Heard {
    fn after(&self, took: Duration) {
        if self.took.get().is_none() {
            self.took.set(Some(took));
            self.is_known.notify_waiters();
        }
    }

    async fn took(&self) -> Duration {
        loop {
            if let Some(took) = self.took.get() {
                return took;
            }
            self.is_known.notified().await;
        }
    }
}

/// Waits until a node does not answer a ping, once another has answered its call after `heard`. One that only takes
/// long for the call answers a ping, and so does one behind a full link: there all that is asked takes as long as that.
async fn until_silent(core: &Core, address: &str, heard: Rc<Heard>) -> CallError {
    let patience = SILENT_PATIENCE.max(heard.took().await * 2);
    loop {
        core.env.sleep(patience).await;
        match core.call(address, Class::Control, Request::Ping, patience).await {
            Err(error @ (CallError::Broken { .. } | CallError::Timeout { .. })) => return error,
            Ok(_) | Err(CallError::Failed(_)) => {}
        }
    }
}

fn is_elsewhere(error: &CallError) -> bool {
    matches!(error, CallError::Failed(failure) if failure.kind == "unavailable_shards_exception")
}
