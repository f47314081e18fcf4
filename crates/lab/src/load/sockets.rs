//! A client of the real world: HTTP/1.1 over a connection of its own to each host.

use std::rc::Rc;

use clusters::wire::{WireConnection, WireFailure, WireHost};

use super::{Client, Failure, Reply, Request};

/// The client.
pub struct SocketClient {
    hosts: Rc<[WireHost]>,
    /// To each host, and the one that was asked last.
    connections: Vec<Option<Box<WireConnection>>>,
    asked: usize,
}

impl SocketClient {
    /// A client that has connected to nobody yet.
    pub fn new(hosts: &Rc<[WireHost]>) -> Self {
        let connections = hosts.iter().map(|_| None).collect();
        SocketClient { hosts: hosts.clone(), connections, asked: 0 }
    }
}

impl Client for SocketClient {
    async fn ask(&mut self, host: usize, request: &Request) -> Result<Reply, Failure> {
        self.asked = host;
        let (target, kept) = (&self.hosts[host], &mut self.connections[host]);
        if kept.as_ref().is_some_and(|connection| !connection.keeps()) {
            *kept = None;
        }
        let mut fresh = kept.is_none();
        loop {
            // In its place while it is used: what is given up is dropped there.
            let connection = match kept {
                Some(connection) => connection,
                None => {
                    let opened = WireConnection::open(target).await;
                    kept.insert(Box::new(opened.map_err(|_| Failure::Unreachable)?))
                }
            };
            let asked = connection.ask(target, &request.method, &request.path, &request.body);
            match asked.await {
                Ok(answer) => {
                    return Ok(Reply { status: answer.status, bytes: answer.body_bytes });
                }
                Err(failure) => {
                    *kept = None;
                    match failure {
                        // A kept connection may have been closed by its node; that is no failure of this request.
                        WireFailure::Closed { untouched: true }
                            if !fresh && may_repeat(request) =>
                        {
                            fresh = true;
                        }
                        WireFailure::Closed { .. } => return Err(Failure::Closed),
                        WireFailure::Malformed(_) => return Err(Failure::Malformed),
                    }
                }
            }
        }
    }

    fn body(&self) -> &[u8] {
        self.connections[self.asked].as_ref().map_or(&[], |connection| connection.body())
    }

    fn give_up(&mut self, host: usize) {
        self.connections[host] = None;
    }
}

/// Whether asking twice does no harm.
fn may_repeat(request: &Request) -> bool {
    request.check.is_of_searches() || matches!(&*request.method, "GET" | "HEAD")
}
