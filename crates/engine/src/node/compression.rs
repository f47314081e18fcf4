//! Whether a node asks for compressed bytes: as the settings say, or, where they say `auto`, as was measured.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Node;
use crate::settings::{Compress, CompressionScheme, Settings};
use policy::compression::{AutoCompression, Shipment};

/// What is known of each path by the alias of the cluster at its end; none is this one.
pub(super) type Paths = RefCell<BTreeMap<Option<String>, AutoCompression>>;

fn wanted(settings: &Settings, remote: Option<&str>) -> Compress {
    match remote {
        Some(alias) => settings.remote_compress(alias),
        None => settings.transport_compress(),
    }
}

impl Node {
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
        match settings.transport_compression_scheme() {
            _ if !is_on => 0,
            CompressionScheme::Lz4 => 1,
            CompressionScheme::Zstd => 2,
        }
    }

    /// Notes what came from a cluster (none: this one).
    pub(crate) fn note_shipment(&self, remote: Option<&str>, shipment: Shipment) {
        if wanted(&self.settings(), remote) == Compress::Auto {
            let mut paths = self.compression.borrow_mut();
            let path = paths.entry(remote.map(str::to_owned)).or_default();
            path.arrived(self.env.now(), shipment);
        }
    }

    /// Clusters from which bytes come compressed now because that was found to be faster.
    pub(super) fn compressed_paths(&self) -> Vec<String> {
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
