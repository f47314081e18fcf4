//! The first success of several calls at once.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::patience::SILENT_PATIENCE;
use crate::core::Core;
use crate::transport::{
    CallError, Class, Failure, INDEX_NOT_FOUND, Request, Response, Result, UNAVAILABLE, unexpected,
};

/// Waits for several calls at once; the first success is the answer, and the other calls are dropped. If all fail, the
/// failure is that which says most ([`says`]). Once another node has answered, one that is silent is not waited for
/// until its call's limit: where the others say at once that it is not there, they are to be asked again soon.
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
    let mut failure: Option<CallError> = None;
    while let Some((source, answer)) = answered.recv().await {
        if matches!(answer, Err(CallError::Failed(_))) {
            heard.after(core.env.now() - began);
        }
        match answer {
            Ok(response) => return Ok((source, response)),
            Err(error) if failure.as_ref().is_none_or(|known| says(&error) >= says(known)) => {
                failure = Some(error);
            }
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

/// How much a failure says of what is asked for. A node that knows no such index may be one that has not heard of it
/// yet: others know better, also where they only say that they have not got it. A node that is out of reach may have
/// it, and whoever has it, or another one of that name, knows best why it is refused.
fn says(error: &CallError) -> u8 {
    match error {
        CallError::Failed(Failure { status: 404, kind, .. }) if kind == INDEX_NOT_FOUND => 0,
        CallError::Failed(failure) if failure.kind == UNAVAILABLE => 1,
        error if error.is_transient() => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_know_the_index_is_believed_last() {
        let failed = |status, kind| CallError::Failed(Failure::new(status, kind, "no"));
        let gone = CallError::Broken { address: "a".to_owned(), reason: "closed".to_owned() };
        let of_primary = failed(400, "illegal_state_exception");
        let recreated = CallError::Failed(Failure::another_index("b", "u1", "u2"));
        let unknown = CallError::Failed(Failure::no_such_index("b"));
        let order = [unknown, failed(503, UNAVAILABLE), gone, recreated, of_primary];
        assert!(order.is_sorted_by_key(says));
        assert_eq!(order.iter().map(says).max(), Some(3));
    }
}
