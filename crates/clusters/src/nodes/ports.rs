//! Free ports.

use std::net::TcpListener;

use crate::{Error, Result};

/// Different ports of this machine that nobody listens on. They may be taken before they are used: then the caller asks
/// for others.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let io = |source| Error::Io { what: "find a free port on", path: "127.0.0.1".into(), source };
    let held: Result<Vec<TcpListener>, _> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    held.map_err(io)?
        .iter()
        .map(|listener| listener.local_addr().map(|address| address.port()).map_err(io))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let mut ports = free_ports(20).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
