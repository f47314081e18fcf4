//! Connections that are kept for the next question, and when a question may be asked again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

/// ConnectionPool connections of one address.
const KEPT_MAX: usize = 32;

/// Open connections by address, of which none is in use.
pub(crate) struct ConnectionPool<C> {
    open: RefCell<BTreeMap<String, Vec<C>>>,
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        ConnectionPool { open: RefCell::default() }
    }
}

impl<C> ConnectionPool<C> {
    /// The connection to an address that was used last: the likeliest to be still open.
    pub(crate) fn take(&self, address: &str) -> Option<C> {
        self.open.borrow_mut().get_mut(address)?.pop()
    }

    /// Keeps a connection on which nothing is under way.
    pub(crate) fn put(&self, address: &str, connection: C) {
        let mut open = self.open.borrow_mut();
        let kept = open.entry(address.to_owned()).or_default();
        if kept.len() < KEPT_MAX {
            kept.push(connection);
        }
    }

    /// Closes all that are kept to an address: where one is dead, its node has been restarted.
    pub(crate) fn forget(&self, address: &str) {
        let gone = self.open.borrow_mut().remove(address);
        drop(gone);
    }
}

/// Why a question got no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The node has certainly not read it.
    Unread(io::Error),
    /// The node may have read it, and done what it asks for.
    Broken(io::Error),
    /// The answer is larger than this many bytes.
    TooLarge(usize),
}

impl Failure {
    /// Whether asking again cannot do something twice.
    pub(crate) fn may_ask_again(&self, method: &str) -> bool {
        match self {
            Failure::Unread(_) => true,
            Failure::Broken(_) => is_idempotent(method),
            Failure::TooLarge(_) => false,
        }
    }
}

/// Whether doing it twice is the same as doing it once (RFC 9110, section 9.2.2).
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_used_comes_first_and_all_go_together() {
        let kept = ConnectionPool::default();
        for connection in 0..40 {
            kept.put("a", connection);
        }
        kept.put("b", 99);
        assert_eq!(kept.take("a"), Some(31));
        assert_eq!(kept.take("a"), Some(30));
        kept.forget("a");
        assert_eq!(kept.take("a"), None);
        assert_eq!(kept.take("b"), Some(99));
        assert_eq!(kept.take("b"), None);
    }

    #[test]
    fn a_bulk_request_is_never_sent_twice() {
        let unread = || Failure::Unread(io::ErrorKind::ConnectionReset.into());
        let broken = || Failure::Broken(io::ErrorKind::ConnectionReset.into());
        assert!(unread().may_ask_again("POST") && broken().may_ask_again("GET"));
        assert!(!broken().may_ask_again("POST"));
        assert!(!Failure::TooLarge(1).may_ask_again("GET"));
    }
}
