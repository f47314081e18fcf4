//! Free ports.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Result};

/// Below the ports that the system gives to connections (from 32768 on Linux), so that no connection takes one between
/// the look here and the node that listens there.
const PORTS: Range<u16> = 30_000..32_768;

/// Different ports of this machine that nobody listens on, others at every call. Each process begins elsewhere, so that
/// processes that look at once rarely find the same.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(37);
    let next = |_| {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        PORTS.start + (number % PORTS.len() as u32) as u16
    };
    let free = (0..PORTS.len()).map(next).filter(|port| is_free(*port));
    let ports: Vec<u16> = free.take(count).collect();
    if ports.len() < count {
        let what = "find a free port from 30000 to 32767 on";
        let source = std::io::Error::from(std::io::ErrorKind::AddrInUse);
        return Err(Error::Io { what, path: "127.0.0.1".into(), source });
    }
    Ok(ports)
}

/// Whether nobody on this machine listens on a port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_while_nobody_listens() {
        let port = free_ports(1).unwrap()[0];
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(!is_free(port));
        drop(listener);
        assert!(is_free(port));
    }

    #[test]
    fn free_ports_differ_and_no_connection_is_given_one() {
        let mut ports = [free_ports(20).unwrap(), free_ports(20).unwrap()].concat();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 40);
        assert!(ports.iter().all(|port| PORTS.contains(port)));
    }
}
