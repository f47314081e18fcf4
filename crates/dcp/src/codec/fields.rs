//! Reading and writing the fields of one part.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::DecodeError;
use super::packet::Packet;

/// Reads numbers off a part whose length was checked.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The extras of a packet, which must have one of the given lengths.
    pub(super) fn extras(packet: &'a Packet, lengths: &[usize]) -> Result<Fields<'a>, DecodeError> {
        Fields::part(packet.opcode, "extras", &packet.extras, lengths)
    }

    /// A part of a packet, which must have one of the given lengths.
    pub(super) fn part(
        opcode: u8,
        part: &'static str,
        bytes: &'a [u8],
        lengths: &[usize],
    ) -> Result<Fields<'a>, DecodeError> {
        if lengths.contains(&bytes.len()) {
            Ok(Fields(bytes))
        } else {
            Err(DecodeError::Length { opcode, part, found: bytes.len() })
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.0.get_u8()
    }

    pub(super) fn u16(&mut self) -> u16 {
        self.0.get_u16()
    }

    pub(super) fn u32(&mut self) -> u32 {
        self.0.get_u32()
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.0.get_u64()
    }
}

/// Writes numbers.
#[derive(Default)]
pub(super) struct Writer(BytesMut);

impl Writer {
    /// Of so many bytes. Where all are written this costs one allocation, and streams are made of such parts.
    pub(super) fn of(bytes: usize) -> Writer {
        Writer(BytesMut::with_capacity(bytes))
    }

    pub(super) fn u8(mut self, value: u8) -> Self {
        self.0.put_u8(value);
        self
    }

    pub(super) fn u16(mut self, value: u16) -> Self {
        self.0.put_u16(value);
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.put_u32(value);
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Self {
        self.0.put_u64(value);
        self
    }

    pub(super) fn done(self) -> Bytes {
        self.0.freeze()
    }
}

/// The records of a value, of so many bytes each. Fails if the last one is not whole.
pub(super) fn records(
    opcode: u8,
    value: &[u8],
    bytes: usize,
) -> Result<impl Iterator<Item = Fields<'_>>, DecodeError> {
    match value.len().is_multiple_of(bytes) {
        true => Ok(value.chunks_exact(bytes).map(Fields)),
        false => Err(DecodeError::Length { opcode, part: "value", found: value.len() }),
    }
}
