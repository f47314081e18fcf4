//! Packets to a peer.

use bytes::BytesMut;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use world::Env;

use super::message::Packets;
use super::peer::PEER_PATIENCE;
use crate::codec::Packet;
use crate::{Error, Result};

enum Arm {
    /// A socket, or TLS over one.
    Stream(Box<dyn AsyncWrite + Unpin>),
    Messages(world::Sender<Packets>),
}

/// Sends packets in order: they gather until they are flushed.
pub struct Outgoing {
    arm: Arm,
    address: String,
    gathered: BytesMut,
    packets: Vec<Packet>,
    packet_bytes: usize,
}

impl Outgoing {
    fn new(arm: Arm, address: &str) -> Outgoing {
        Outgoing {
            arm,
            address: address.to_owned(),
            gathered: BytesMut::new(),
            packets: Vec::new(),
            packet_bytes: 0,
        }
    }

    pub(super) fn stream(write: impl AsyncWrite + Unpin + 'static, address: &str) -> Outgoing {
        Outgoing::new(Arm::Stream(Box::new(write)), address)
    }

    pub(super) fn messages(sender: world::Sender<Packets>, address: &str) -> Outgoing {
        Outgoing::new(Arm::Messages(sender), address)
    }

    /// The peer.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Adds a packet to what the next flush sends. Fails if a part is longer than its length field allows; then nothing
    /// of it is sent.
    pub fn put(&mut self, packet: Packet) -> Result<()> {
        match self.arm {
            Arm::Messages(_) => {
                self.packet_bytes += packet.wire_bytes();
                self.packets.push(packet);
                Ok(())
            }
            _ => packet
                .put(&mut self.gathered)
                .map_err(|source| Error::Protocol { address: "this side".to_owned(), source }),
        }
    }

    /// Bytes that the next flush sends.
    pub fn gathered_bytes(&self) -> usize {
        self.gathered.len() + self.packet_bytes
    }

    /// As [`Outgoing::flush`]; fails, too, if the peer leaves sent bytes unread for too long.
    pub(crate) async fn flush_in_time(&mut self, env: &Env) -> Result<()> {
        let flushed = env.timeout(PEER_PATIENCE, self.flush()).await;
        flushed.unwrap_or_else(|_| Err(Error::silent(&self.address, PEER_PATIENCE)))
    }

    /// Sends what was gathered. After dropping the future while it waits, the connection must not be used any more.
    /// Fails if the connection is broken.
    pub async fn flush(&mut self) -> Result<()> {
        if self.gathered_bytes() == 0 {
            return Ok(());
        }
        let sent = match &mut self.arm {
            Arm::Stream(stream) => match stream.write_all(&self.gathered).await {
                Ok(()) => stream.flush().await,
                failed => failed,
            },
            Arm::Messages(sender) => sender.send(Packets(std::mem::take(&mut self.packets))).await,
        };
        self.gathered.clear();
        self.packet_bytes = 0;
        sent.map_err(|error| Error::io("send to", &self.address, error))
    }
}
