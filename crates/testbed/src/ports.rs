//! Ports that a test gives to what it starts.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port with room for three more above it, and for as many 100 above. Below the range from which the system gives out
/// ports for connections, so that no other test's connection takes it meanwhile; another one for every call.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + std::process::id() % 97 * 200;
    loop {
        let number = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + (first + number * 200) % 20_000).expect("below 30 000");
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (port..port + 4).all(|port| is_free(port) && is_free(port + 100)) {
            return port;
        }
    }
}
