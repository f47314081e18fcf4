//! A server that answers by path, or takes a request and never answers it.

use std::io::{Read, Write};
use std::net::TcpListener;

/// A cluster in which nothing recovers or waits, whatever it is asked.
pub const CALM: &str = r#"{"cluster_name":"c","status":"green","initializing_shards":0,
    "relocating_shards":0,"unassigned_shards":0,"number_of_nodes":0,
    "version":{"number":"2.19.1","distribution":"opensearch"}}"#;

/// Answers each path with this status and body as long as the test runs, and where it has none, never. Its URL.
pub fn answering(
    mut answer: impl FnMut(&str) -> Option<(&'static str, &'static str)> + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            // The head of the request; there is never a body to speak of.
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]);
            match answer(head.split(' ').nth(1).unwrap_or_default()) {
                Some((status, body)) => {
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n");
                    // Whoever asked may have gone away.
                    let _ = write!(stream, "{head}connection: close\r\n\r\n{body}");
                }
                None => kept.push(stream),
            }
        }
    });
    url
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
