//! How a cluster is reached.

use std::time::Duration;

use super::{Address, TlsOptions};
use crate::Credentials;

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Its hosts; any of them may answer.
    pub addresses: Vec<Address>,
    /// The credentials that are sent.
    pub credentials: Credentials,
    /// How TLS is spoken.
    pub tls: TlsOptions,
    /// How long one answer may take.
    pub timeout: Duration,
}

impl LiveOptions {
    /// Without credentials, and trusting the authorities that everybody does.
    pub fn anonymous(addresses: Vec<Address>, timeout: Duration) -> Self {
        let (credentials, tls) = (Credentials::None, TlsOptions::default());
        LiveOptions { addresses, credentials, tls, timeout }
    }
}
