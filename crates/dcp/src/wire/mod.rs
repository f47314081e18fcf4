//! Connections that carry packets: bytes on sockets, plain or with TLS, in the real world; the packets themselves in
//! the virtual one, where their encoded size travels.
//!
//! One flush is one write on a socket, or one message in the virtual world.

mod incoming;
mod message;
mod outgoing;
mod peer;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use world::{Env, LocalFuture};

pub use incoming::Incoming;
pub use message::Packets;
pub use outgoing::Outgoing;
pub(crate) use peer::{PEER_PATIENCE, host_of, is_loopback};

use crate::{Error, Result};

/// Both ends of one side of a connection.
pub struct Wire {
    /// From the peer.
    pub incoming: Incoming,
    /// To the peer.
    pub outgoing: Outgoing,
}

/// Listens for connections.
pub struct PacketListener(Arm);

enum Arm {
    Socket { listener: TcpListener, address: String },
    Messages(world::Listener<Packets>),
}

impl PacketListener {
    /// Listens on `host:port`; port 0 takes a free one. Fails if the address is taken or not this host's.
    pub fn bind<'a>(env: &'a Env, address: &'a str) -> LocalFuture<'a, Result<PacketListener>> {
        Box::pin(async move {
            let tried = |error| Error::io("listen on", address, error);
            if env.is_virtual() {
                return Ok(PacketListener(Arm::Messages(
                    env.listen(address).await.map_err(tried)?,
                )));
            }
            let listener = TcpListener::bind(address).await.map_err(tried)?;
            let address = listener.local_addr().map_err(tried)?.to_string();
            Ok(PacketListener(Arm::Socket { listener, address }))
        })
    }

    /// The address to connect to.
    pub fn address(&self) -> &str {
        match &self.0 {
            Arm::Socket { address, .. } => address,
            Arm::Messages(listener) => listener.address(),
        }
    }

    /// The next connection. Fails if the operating system gives none; the listener stays as it is.
    pub async fn accept(&mut self) -> Result<Wire> {
        match &mut self.0 {
            Arm::Socket { listener, address } => {
                let accepted = listener.accept().await;
                let (stream, peer) = accepted.map_err(|e| Error::io("accept on", address, e))?;
                Wire::socket(stream, &peer.to_string())
            }
            Arm::Messages(listener) => {
                let address = listener.address().to_owned();
                let accepted = listener.accept().await;
                let connection = accepted.map_err(|e| Error::io("accept on", &address, e))?;
                Ok(Wire::messages(connection, "a peer"))
            }
        }
    }
}

impl Wire {
    /// Connects to `host:port`; with TLS where a configuration is given. Fails if the peer does not answer, or its
    /// certificate is not valid.
    pub fn connect<'a>(
        env: &'a Env,
        address: &'a str,
        tls: Option<Arc<ClientConfig>>,
    ) -> LocalFuture<'a, Result<Wire>> {
        Box::pin(async move {
            let tried = |error| Error::io("connect to", address, error);
            if env.is_virtual() {
                let connection = env.connect::<Packets>(address).await.map_err(tried)?;
                return Ok(Wire::messages(connection, address));
            }
            let stream = TcpStream::connect(address).await.map_err(tried)?;
            let Some(config) = tls else { return Wire::socket(stream, address) };
            stream.set_nodelay(true).map_err(tried)?;
            let host = host_of(address).to_owned();
            let name = ServerName::try_from(host.clone()).map_err(|_| {
                Error::Settings(format!("\"{host}\" is no name that a certificate could have"))
            })?;
            let stream = TlsConnector::from(config).connect(name, stream).await;
            let stream = stream.map_err(|error| Error::io("speak TLS with", address, error))?;
            let (read, write) = tokio::io::split(stream);
            Ok(Wire {
                incoming: Incoming::stream(read, address),
                outgoing: Outgoing::stream(write, address),
            })
        })
    }

    fn socket(stream: TcpStream, address: &str) -> Result<Wire> {
        stream.set_nodelay(true).map_err(|error| Error::io("connect to", address, error))?;
        let (read, write) = stream.into_split();
        Ok(Wire {
            incoming: Incoming::stream(read, address),
            outgoing: Outgoing::stream(write, address),
        })
    }

    fn messages(connection: world::Connection<Packets>, address: &str) -> Wire {
        Wire {
            incoming: Incoming::messages(connection.receiver, address),
            outgoing: Outgoing::messages(connection.sender, address),
        }
    }
}
