//! Servers on this machine: one that answers by path, or takes a request and never answers it.

use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A cluster in which nothing recovers or waits, whatever it is asked.
pub const CALM: &str = r#"{"cluster_name":"c","status":"green","initializing_shards":0,
    "relocating_shards":0,"unassigned_shards":0,"number_of_nodes":0,
    "version":{"number":"2.19.1","distribution":"opensearch"}}"#;

/// Serves each connection on a thread of its own, as long as the test runs.
pub fn serving(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            // Whoever asked may have gone away.
            std::thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

/// Answers each path with this status and body as long as the test runs, and where it has none, never. Its URL.
pub fn answering(
    mut answer: impl FnMut(&str) -> Option<(&'static str, &'static str)> + Send + 'static,
) -> String {
    answering_heads(move |head| {
        let (status, body) = answer(head.split(' ').nth(1).unwrap_or_default())?;
        Some(in_http(status, body))
    })
}

/// The same for the heads of requests, in bytes.
pub fn answering_heads(answer: impl FnMut(&str) -> Option<Vec<u8>> + Send + 'static) -> String {
    let (answer, kept) = (Mutex::new(answer), Mutex::new(Vec::new()));
    let address = serving(move |mut stream| {
        // There is never a body to speak of.
        let mut head = [0; 4096];
        let read = stream.read(&mut head)?;
        let answer = &mut *answer.lock().unwrap();
        match answer(&String::from_utf8_lossy(&head[..read])) {
            Some(bytes) => stream.write_all(&bytes),
            None => {
                kept.lock().unwrap().push(stream);
                Ok(())
            }
        }
    });
    format!("http://{address}")
}

/// An answer after which the connection ends.
pub fn in_http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n");
    format!("{head}connection: close\r\n\r\n{body}").into_bytes()
}

/// A request or an answer, as it came: head, and a body of the length that it names.
pub fn message(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
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

/// A cluster that is calm until its health is asked for again, and silent from then on. `silent` is called each time.
pub fn falls_silent(mut silent: impl FnMut() + Send + 'static) -> String {
    let mut healths = 0;
    answering(move |path| {
        healths += u32::from(path.starts_with("/_cluster/health"));
        if healths >= 2 {
            silent();
        }
        (healths < 2).then_some(("200 OK", CALM))
    })
}
