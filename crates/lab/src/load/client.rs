//! What a driver sends its requests through.

use super::{Failure, Request};

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Sends requests one after another, over connections of its own that it keeps.
#[allow(async_fn_in_trait, reason = "clients live on one thread, as worlds do")]
pub trait Client: 'static {
    /// Asks a host, by its number, and reads the whole answer.
    async fn ask(&mut self, host: usize, request: &Request) -> Result<Reply, Failure>;

    /// The beginning of the last answer's body: a kilobyte of it at least, behind the scroll id where there is one; of
    /// `_msearch` some megabytes.
    fn body(&self) -> &[u8];

    /// Closes the connection to a host, whose answer was given up.
    fn give_up(&mut self, host: usize);
}
