//! Packets as a message of the virtual world.

use std::io;

use bytes::{Bytes, BytesMut};
use world::{Frame, Message};

use crate::codec::{MAX_BODY_BYTES, Packet};

/// Packets that are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets(pub Vec<Packet>);

fn bad(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl Message for Packets {
    fn encode(self) -> Frame {
        let mut out = BytesMut::new();
        for packet in &self.0 {
            // [`super::Outgoing`] has checked that they can be sent.
            let _ = packet.put(&mut out);
        }
        Frame { head: out.into(), tail: Bytes::new() }
    }

    fn decode(head: &[u8], _: Bytes) -> io::Result<Self> {
        let mut buffer = BytesMut::from(head);
        let mut packets = Vec::new();
        while let Some(packet) = Packet::take(&mut buffer, MAX_BODY_BYTES).map_err(bad)? {
            packets.push(packet);
        }
        if buffer.is_empty() { Ok(Packets(packets)) } else { Err(bad("a packet is not whole")) }
    }

    fn wire_bytes(&self) -> u64 {
        self.0.iter().map(|packet| packet.wire_bytes() as u64).sum()
    }
}
