//! What answers at an address that is to be a seed, before it is one.

use std::io::ErrorKind;
use std::time::Duration;

use world::{Env, LocalFuture};

use crate::transport::{Envelope, Request};

/// How long a seed is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an address cannot be a seed: what answers there is no node that this one understands. None where nobody answers:
/// a seed may be down. In the virtual world nobody mistakes a port, and nothing is asked.
pub fn why_no_seed<'a>(env: &'a Env, address: &'a str) -> LocalFuture<'a, Option<String>> {
    Box::pin(async move {
        if env.is_virtual() {
            return None;
        }
        let asks = async {
            let mut connection = env.connect::<Envelope>(address).await.ok()?;
            connection.sender.send(Envelope::Request(1, Request::Hello)).await.ok()?;
            connection.receiver.recv().await.err()
        };
        let error = env.timeout(PATIENCE, asks).await.ok().flatten()?;
        let is_other = matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Unsupported);
        is_other.then(|| error.to_string())
    })
}
