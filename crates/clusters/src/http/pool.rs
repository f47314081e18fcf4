//! Open connections between two requests, and when a request may be sent again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::Error;

/// Idle connections to one address, at most.
const IDLE_MAX: usize = 32;

/// Idle connections, by address.
pub(crate) struct ConnectionPool<C> {
    idle: RefCell<BTreeMap<String, Vec<C>>>,
    broken: Cell<u32>,
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        ConnectionPool { idle: RefCell::default(), broken: Cell::new(0) }
    }
}

impl<C> ConnectionPool<C> {
    /// Asks an address on the connection that was used last, or on a fresh one where there is none. Where the idle one
    /// turns out closed, it asks once more on a fresh one, unless that could do something twice. `ask` returns the
    /// answer, and the connection where that can serve again.
    pub(crate) async fn ask<A>(
        &self,
        address: &str,
        method: &str,
        open: impl AsyncFnOnce() -> io::Result<C>,
        ask: impl AsyncFn(C) -> Result<(A, Option<C>), Failure>,
    ) -> Result<A, Failure> {
        let keep = |(answer, connection): (A, Option<C>)| {
            connection.into_iter().for_each(|connection| self.put(address, connection));
            answer
        };
        let ask = async |connection| {
            let answered = ask(connection).await;
            if matches!(answered, Err(Failure::Broken(_))) {
                self.broken.set(self.broken.get() + 1);
            }
            answered
        };
        if let Some(connection) = self.take(address) {
            match ask(connection).await {
                Err(failure) if failure.may_retry(method) => self.close_all(address),
                answered => return answered.map(keep),
            }
        }
        ask(open().await.map_err(Failure::Unread)?).await.map(keep)
    }

    /// How often a connection broke after a node may have read what was asked on it.
    pub(crate) fn broken(&self) -> u32 {
        self.broken.get()
    }

    /// The connection to an address that was used last: the likeliest to be still open.
    fn take(&self, address: &str) -> Option<C> {
        self.idle.borrow_mut().get_mut(address)?.pop()
    }

    /// Keeps a connection on which no request is under way.
    fn put(&self, address: &str, connection: C) {
        let mut idle = self.idle.borrow_mut();
        let here = idle.entry(address.to_owned()).or_default();
        if here.len() < IDLE_MAX {
            here.push(connection);
        }
    }

    /// Closes all idle connections to an address: where one is dead, its node has been restarted.
    fn close_all(&self, address: &str) {
        let gone = self.idle.borrow_mut().remove(address);
        drop(gone);
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The node has certainly not read the request.
    Unread(io::Error),
    /// The node may have read the request, and done what it asks for.
    Broken(io::Error),
    /// The answer is larger than this many bytes.
    TooLarge(usize),
    /// There was none within this time.
    Late(Duration),
}

impl Failure {
    /// As the error of a request to this address.
    pub(crate) fn error(self, address: &str, method: &str, path: &str) -> Error {
        let (address, method, path) = (address.to_owned(), method.to_owned(), path.to_owned());
        match self {
            Failure::Unread(source) => Error::Connection { address, source },
            Failure::Broken(source) => Error::Broken { address, method, path, source },
            Failure::TooLarge(limit_bytes) => {
                Error::TooLarge { address, method, path, limit_bytes }
            }
            Failure::Late(limit) => Error::Timeout { address, method, path, limit },
        }
    }

    /// Whether the request can be sent again without doing something twice.
    fn may_retry(&self, method: &str) -> bool {
        match self {
            Failure::Unread(_) => true,
            Failure::Broken(_) => is_idempotent(method),
            Failure::TooLarge(_) | Failure::Late(_) => false,
        }
    }
}

/// Whether a request of this method has the same effect twice as once (RFC 9110, section 9.2.2).
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_used_comes_first_and_all_go_together() {
        let pool = ConnectionPool::default();
        for connection in 0..40 {
            pool.put("a", connection);
        }
        pool.put("b", 99);
        assert_eq!(pool.take("a"), Some(31));
        assert_eq!(pool.take("a"), Some(30));
        pool.close_all("a");
        assert_eq!(pool.take("a"), None);
        assert_eq!(pool.take("b"), Some(99));
        assert_eq!(pool.take("b"), None);
    }

    #[test]
    fn a_bulk_request_is_never_sent_twice() {
        let unread = || Failure::Unread(io::ErrorKind::ConnectionReset.into());
        let broken = || Failure::Broken(io::ErrorKind::ConnectionReset.into());
        assert!(unread().may_retry("POST") && broken().may_retry("GET"));
        assert!(!broken().may_retry("POST"));
        assert!(!Failure::TooLarge(1).may_retry("GET"));
    }
}
