//! What can go wrong.

use std::io;
use std::time::Duration;

use crate::codec::{DecodeError, Status, status_name};
use crate::policy::{OutOfOrder, OverAcknowledged};

/// What every fallible call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong with buckets, streams and connections.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The network.
    #[error("{what} {address}: {source}{}", nobody_listens(.source))]
    Io { what: &'static str, address: String, source: io::Error },
    #[error("{address} sent what is not right: {source}")]
    Protocol { address: String, source: DecodeError },
    #[error("{address} closed the connection {when}")]
    Closed { address: String, when: &'static str },
    #[error("{address} answered {what} with something else: {found}")]
    Unexpected { address: String, what: &'static str, found: String },
    /// The peer refused.
    #[error("{address} refused {what}: {status}{}", .hint.map(|hint| format!("; {hint}")).unwrap_or_default())]
    Status { address: String, what: String, status: String, hint: Option<&'static str> },
    #[error("nothing came from {address} for {silent_s} s; it is taken for gone")]
    Silent { address: String, silent_s: u64 },
    #[error(
        "{address} did not prove that it knows the password ({reason}); nothing more is sent to it"
    )]
    Imposter { address: String, reason: &'static str },
    /// A consumer acknowledged too much.
    #[error(transparent)]
    OverAcknowledged(#[from] OverAcknowledged),
    /// A message does not fit its stream.
    #[error("vbucket {vbucket}: {source}")]
    Stream { vbucket: u16, source: OutOfOrder },
    /// The state of the vbucket does not allow this.
    #[error("vbucket {vbucket} refused: {}", .status.name())]
    Refused { vbucket: u16, status: Status },
    #[error("vbucket {vbucket} is not persisted: {}", .status.name())]
    NotPersisted { vbucket: u16, status: Status },
    /// A wrong setting.
    #[error("{0}")]
    Settings(String),
}

fn nobody_listens(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; nobody listens there: data nodes do at port 11210, with TLS at 11207"
        }
        _ => "",
    }
}

impl Error {
    /// `what` was tried with `address`: "connect to".
    pub(crate) fn io(what: &'static str, address: &str, source: io::Error) -> Error {
        Error::Io { what, address: address.to_owned(), source }
    }

    /// Nothing came from `address` for this time.
    pub(crate) fn silent(address: &str, time: Duration) -> Error {
        Error::Silent { address: address.to_owned(), silent_s: time.as_secs().max(1) }
    }

    /// `address` refused `what`.
    pub(crate) fn refused(
        address: &str,
        what: String,
        status: std::result::Result<Status, u16>,
        hint: Option<&'static str>,
    ) -> Error {
        Error::Status { address: address.to_owned(), what, status: status_name(status), hint }
    }

    /// `address` answered `what` with something else.
    pub(crate) fn unexpected(address: &str, what: &'static str, found: String) -> Error {
        Error::Unexpected { address: address.to_owned(), what, found }
    }
}
