//! Bytes that a host's connections carry.

use std::cell::Cell;

/// Bytes that a host's connections carried since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetBytes {
    /// Received.
    pub rx_bytes: u64,
    /// Sent.
    pub tx_bytes: u64,
}

/// The counters of one host, shared by its connections.
#[derive(Debug, Default)]
pub(crate) struct NetCounters {
    rx_bytes: Cell<u64>,
    tx_bytes: Cell<u64>,
}

impl NetCounters {
    pub(crate) fn received(&self, bytes: u64) {
        self.rx_bytes.set(self.rx_bytes.get() + bytes);
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.tx_bytes.set(self.tx_bytes.get() + bytes);
    }

    pub(crate) fn bytes(&self) -> NetBytes {
        NetBytes { rx_bytes: self.rx_bytes.get(), tx_bytes: self.tx_bytes.get() }
    }
}
