//! A question that is asked of many nodes at once.
//!
//! The manager asks every node every second whether it is there. Where connections are open, that takes no task, no
//! channel and no time limit for each: of a thousand nodes in virtual time these were a third of all work.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use super::envelope::Envelope;
use super::message::Request;
use super::pool::{Answer, CallError, Class, Forget, Pool, Waiter};

/// Answers by the places of those who were asked.
pub(super) struct Round {
    answers: RefCell<Vec<Option<Answer>>>,
    missing: Cell<usize>,
    complete: Notify,
}

impl Round {
    fn of(asked: usize) -> Rc<Round> {
        let answers = RefCell::new((0..asked).map(|_| None).collect());
        Rc::new(Round { answers, missing: Cell::new(asked), complete: Notify::new() })
    }

    pub(super) fn answered(&self, at: usize, answer: Answer) {
        if self.answers.borrow_mut()[at].replace(answer).is_none() {
            self.missing.set(self.missing.get() - 1);
            if self.missing.get() == 0 {
                self.complete.notify_one();
            }
        }
    }

    async fn completed(&self) {
        while self.missing.get() > 0 {
            self.complete.notified().await;
        }
    }
}

/// What a future that need not wait has to say.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl Pool {
    /// Asks all of these the same, and waits for the answers, no longer than `limit`. Answers are in the order of the
    /// addresses.
    pub(crate) async fn call_each(
        &self,
        addresses: &[String],
        class: Class,
        request: &Request,
        limit: Duration,
    ) -> Vec<Answer> {
        let round = Round::of(addresses.len());
        let (mut asked, mut connecting) = (Vec::new(), Vec::new());
        for (at, address) in addresses.iter().enumerate() {
            match self.ask_at_once(address, class, request, (&round, at)) {
                Some(forget) => asked.push(forget),
                None => {
                    let (pool, round) = (self.clone(), round.clone());
                    let (address, request) = (address.clone(), request.clone());
                    connecting.push(self.env().spawn("asks one of many", async move {
                        let answer = pool.call_without_limit(&address, class, request).await;
                        round.answered(at, answer);
                    }));
                }
            }
        }
        // What is missing then is told below.
        let _ = self.env().timeout(limit, round.completed()).await;
        drop((asked, connecting));
        let answers = round.answers.take();
        let late = |address: &String| CallError::Timeout { address: address.clone(), limit };
        let with_address = answers.into_iter().zip(addresses);
        with_address.map(|(answer, address)| answer.unwrap_or_else(|| Err(late(address)))).collect()
    }

    /// Asks over a connection that is open and has room; none where there is no such connection.
    fn ask_at_once(
        &self,
        address: &str,
        class: Class,
        request: &Request,
        (round, at): (&Rc<Round>, usize),
    ) -> Option<Forget> {
        at_once(self.partition().passes())?;
        let channel = self.open_channel(address, class)?;
        let (id, forget) = channel.wait(self.next_id(), Waiter::OneOfMany(round.clone(), at));
        // Where it fails, the slow way finds out why.
        let sent = at_once(channel.sender.send(Envelope::Request(id, request.clone())))?;
        sent.is_ok().then_some(forget)
    }
}
