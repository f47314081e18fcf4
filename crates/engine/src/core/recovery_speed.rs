//! How fast recoveries may go on this node: throttles, compression, and whether its users suffer.

use std::time::Duration;

use policy::transfer::compression::{AutoCompression, Shipment};

use super::shared::Core;
use super::throttles::Throttle;
use crate::settings::{Compress, CompressionScheme, Settings};

impl Core {
    /// Waits as a recovery must before it moves `bytes`; answers how long.
    pub(crate) async fn throttle(&self, throttle: Throttle, bytes: u64) -> Duration {
        self.throttles.wait(&self.env, throttle, bytes).await
    }

    /// Notes how long a client waited for an operation on this node.
    pub(crate) fn served_in(&self, latency: Duration) {
        self.foreground.borrow_mut().sample(self.env.now(), latency);
    }

    /// Whether this node's clients suffer, so that recoveries should give way.
    pub(crate) fn pressure(&self) -> bool {
        self.foreground.borrow_mut().pressure(self.env.now())
    }

    /// `compress` of a request to a cluster (none: this one) at this moment.
    pub(crate) fn compress(&self, remote: Option<&str>) -> u8 {
        let settings = self.settings();
        let is_on = match wanted(&settings, remote) {
            Compress::False => false,
            Compress::True => true,
            Compress::Auto => {
                let paths = self.compression.borrow();
                paths.get(&remote.map(str::to_owned)).is_some_and(AutoCompression::is_on)
            }
        };
        if !is_on {
            return 0;
        }
        match settings.transport_compression_scheme() {
            CompressionScheme::Lz4 => 1,
            CompressionScheme::Zstd => 2,
        }
    }

    /// Reports bytes that arrived from a cluster (none: this one).
    pub(crate) fn note_shipment(&self, remote: Option<&str>, shipment: Shipment) {
        if wanted(&self.settings(), remote) == Compress::Auto {
            let mut paths = self.compression.borrow_mut();
            let path = paths.entry(remote.map(str::to_owned)).or_default();
            path.arrived(self.env.now(), shipment);
        }
    }

    /// Clusters from which bytes come compressed now because that was found to be faster.
    pub(crate) fn compressed_paths(&self) -> Vec<String> {
        let settings = self.settings();
        let paths = self.compression.borrow();
        let is_on = |(remote, path): &(&Option<String>, &AutoCompression)| {
            path.is_on() && wanted(&settings, remote.as_deref()) == Compress::Auto
        };
        let name =
            |remote: &Option<String>| remote.as_ref().unwrap_or(&self.config.cluster).clone();
        paths.iter().filter(is_on).map(|(remote, _)| name(remote)).collect()
    }
}

/// `compress` as the settings say it for a path.
fn wanted(settings: &Settings, remote: Option<&str>) -> Compress {
    match remote {
        Some(alias) => settings.remote_compress(alias),
        None => settings.transport_compress(),
    }
}
