//! An end of TLS before a server that has none.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::answering::{message, serving};

/// Ends TLS on a port of its own, asks for credentials, and hands on to `upstream`, as long as the test runs. Answers
/// with its address.
pub fn guarded_end(
    upstream: &str,
    authorization: &'static str,
    config: Arc<ServerConfig>,
) -> String {
    let upstream = upstream.to_owned();
    let address = serving(move |stream| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        hand_on(StreamOwned::new(connection, stream), &upstream, authorization)
    });
    format!("localhost:{}", address.port())
}

fn hand_on(client: impl Read + Write, upstream: &str, authorization: &str) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let upstream = TcpStream::connect(upstream)?;
    upstream.set_nodelay(true)?;
    let mut upstream = BufReader::new(upstream);
    loop {
        let request = message(&mut client)?;
        let head = String::from_utf8_lossy(&request).to_lowercase();
        if !head.contains(&format!("authorization: {}", authorization.to_lowercase())) {
            let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}";
            client.get_mut().write_all(refusal.as_bytes())?;
            client.get_mut().flush()?;
            continue;
        }
        upstream.get_mut().write_all(&request)?;
        let response = message(&mut upstream)?;
        client.get_mut().write_all(&response)?;
        client.get_mut().flush()?;
    }
}
