//! Packets from a peer.

use std::collections::VecDeque;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::message::Packets;
use crate::codec::{MAX_BODY_BYTES, Packet};
use crate::{Error, Result};

/// Buffer space for each read. No more is allocated before bytes arrive, whatever a header claims.
const READ_BYTES: usize = 256 << 10;

enum Arm {
    /// A socket, or TLS over one.
    Stream(Box<dyn AsyncRead + Unpin>),
    Messages(world::Receiver<Packets>),
}

/// Receives packets in order.
pub struct Incoming {
    arm: Arm,
    address: String,
    buffer: BytesMut,
    packets: VecDeque<Packet>,
    max_body_bytes: usize,
    read_bytes: usize,
}

impl Incoming {
    fn new(arm: Arm, address: &str) -> Incoming {
        Incoming {
            arm,
            address: address.to_owned(),
            buffer: BytesMut::new(),
            packets: VecDeque::new(),
            max_body_bytes: MAX_BODY_BYTES,
            read_bytes: READ_BYTES,
        }
    }

    pub(super) fn stream(read: impl AsyncRead + Unpin + 'static, address: &str) -> Incoming {
        Incoming::new(Arm::Stream(Box::new(read)), address)
    }

    pub(super) fn messages(receiver: world::Receiver<Packets>, address: &str) -> Incoming {
        Incoming::new(Arm::Messages(receiver), address)
    }

    /// Limits the bytes of each read.
    #[must_use]
    pub(crate) fn with_read_bytes(mut self, bytes: usize) -> Incoming {
        self.read_bytes = bytes.max(1);
        self
    }

    /// Limits the body of each packet that comes from now on.
    pub(crate) fn limit_body(&mut self, bytes: usize) {
        self.max_body_bytes = bytes;
    }

    /// The peer.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The next packet that has arrived already. Fails if the bytes are no packet: where the next one begins is unknown
    /// then.
    pub fn buffered(&mut self) -> Result<Option<Packet>> {
        if let Arm::Messages(_) = self.arm {
            return Ok(self.packets.pop_front());
        }
        let taken = Packet::take(&mut self.buffer, self.max_body_bytes);
        taken.map_err(|source| Error::Protocol { address: self.address.clone(), source })
    }

    /// The next packet; none once the peer has closed between two packets. The future may be dropped while it waits;
    /// nothing is lost. Fails if the connection breaks or closes within a packet, and as [`Incoming::buffered`].
    pub async fn next(&mut self) -> Result<Option<Packet>> {
        loop {
            if let Some(packet) = self.buffered()? {
                return Ok(Some(packet));
            }
            if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Reads once; false once the peer has closed.
    async fn read(&mut self) -> Result<bool> {
        let broken = |address: &str, error| Error::io("read from", address, error);
        let stream = match &mut self.arm {
            Arm::Stream(stream) => stream,
            Arm::Messages(receiver) => {
                let received = receiver.recv().await.map_err(|e| broken(&self.address, e))?;
                return Ok(received.map(|Packets(packets)| self.packets.extend(packets)).is_some());
            }
        };
        let room = self.read_bytes;
        if self.buffer.capacity() - self.buffer.len() < room.min(READ_BYTES / 4) {
            self.buffer.reserve(room);
        }
        let read = stream.take(room as u64).read_buf(&mut self.buffer).await;
        match read.map_err(|error| broken(&self.address, error))? {
            0 if self.buffer.is_empty() => Ok(false),
            0 => Err(Error::Closed {
                address: self.address.clone(),
                when: "in the middle of a packet",
            }),
            _ => Ok(true),
        }
    }

    /// The next packet, which must come. Fails as [`Incoming::next`], and if the peer closes.
    pub async fn expect(&mut self, when: &'static str) -> Result<Packet> {
        let next = self.next().await?;
        next.ok_or_else(|| Error::Closed { address: self.address.clone(), when })
    }
}
