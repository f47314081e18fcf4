//! An end of TLS before a server that has none.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Ends TLS on a port of its own, asks for credentials, and hands on to `upstream`, as long as the test runs. Answers
/// with its address.
pub fn guarded_end(
    upstream: &str,
    authorization: &'static str,
    config: Arc<ServerConfig>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let upstream = upstream.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (config, upstream) = (config.clone(), upstream.clone());
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).unwrap();
                // A client that does not trust us, or has enough, goes away in between.
                let _ = hand_on(StreamOwned::new(connection, stream?), &upstream, authorization);
                io::Result::Ok(())
            });
        }
    });
    address
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

/// A request or an answer, as it came: head, and a body of the length that it names.
fn message(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let (mut whole, mut length) = (Vec::new(), 0);
    loop {
        let began = whole.len();
        if from.read_until(b'\n', &mut whole)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&whole[began..]).to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let body = whole.len();
    whole.resize(body + length, 0);
    from.read_exact(&mut whole[body..])?;
    Ok(whole)
}
