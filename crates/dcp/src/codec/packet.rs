//! One packet of the binary protocol: a header of 24 bytes, then framing extras, extras, key and value.
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | magic: 80 request, 81 response; 08 and 18 the same with flexible framing |
//! | 1 | opcode |
//! | 2 | key length u16; with flexible framing the length of framing extras u8, then key length u8 |
//! | 4 | extras length |
//! | 5 | datatype: bits 1 JSON, 2 Snappy, 4 extended attributes |
//! | 6 | vbucket of a request, status of a response, u16 |
//! | 8 | length of all that follows the header, u32 |
//! | 12 | opaque u32: the response repeats it |
//! | 16 | CAS u64 |
//!
//! All numbers are big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::DecodeError;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// The largest body accepted by default: a document of 20 MiB, its key and its metadata.
pub const MAX_BODY_BYTES: usize = 21 << 20;
/// Datatype bit: the value is JSON.
pub const DATATYPE_JSON: u8 = 1;
/// Datatype bit: the value is compressed.
pub const DATATYPE_SNAPPY: u8 = 2;
/// Datatype bit: the value begins with extended attributes.
pub const DATATYPE_XATTR: u8 = 4;
const KNOWN_DATATYPES: u8 = DATATYPE_JSON | DATATYPE_SNAPPY | DATATYPE_XATTR;

const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;
const FLEXIBLE_REQUEST: u8 = 0x08;
const FLEXIBLE_RESPONSE: u8 = 0x18;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request, or a message of a stream.
    Request,
    /// The answer to one.
    Response,
}

/// One packet, its parts not yet interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Which way it goes.
    pub kind: Kind,
    /// The operation code; not every one is an [`super::Opcode`].
    pub opcode: u8,
    /// How the value is encoded.
    pub datatype: u8,
    /// The vbucket of a request, the status of a response.
    pub vbucket_or_status: u16,
    /// Chosen in the request, repeated in the response.
    pub opaque: u32,
    /// Version of the document.
    pub cas: u64,
    /// Framing extras; where there are some the packet is sent with flexible framing.
    pub framing: Bytes,
    /// Fields.
    pub extras: Bytes,
    /// Key.
    pub key: Bytes,
    /// Value.
    pub value: Bytes,
}

/// The lengths that a header claims, checked against each other.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    framing: usize,
    extras: usize,
    key: usize,
    body: usize,
}

impl Lengths {
    fn of(header: &[u8; HEADER_BYTES], max_body_bytes: usize) -> Result<Lengths, DecodeError> {
        let (framing, key) = match header[0] {
            REQUEST | RESPONSE => (0, usize::from(u16::from_be_bytes([header[2], header[3]]))),
            FLEXIBLE_REQUEST | FLEXIBLE_RESPONSE => (header[2].into(), header[3].into()),
            found => return Err(DecodeError::Magic { found }),
        };
        let extras = usize::from(header[4]);
        let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        if body > max_body_bytes {
            return Err(DecodeError::TooLarge { found: body, limit: max_body_bytes });
        }
        let parts = framing + extras + key;
        if parts > body {
            return Err(DecodeError::PartsExceedBody { parts, body });
        }
        Ok(Lengths { framing, extras, key, body })
    }
}

impl Packet {
    /// A packet with nothing in it.
    pub fn new(kind: Kind, opcode: u8) -> Packet {
        Packet {
            kind,
            opcode,
            datatype: 0,
            vbucket_or_status: 0,
            opaque: 0,
            cas: 0,
            framing: Bytes::new(),
            extras: Bytes::new(),
            key: Bytes::new(),
            value: Bytes::new(),
        }
    }

    /// Bytes of all that follows the header.
    pub fn body_bytes(&self) -> usize {
        self.framing.len() + self.extras.len() + self.key.len() + self.value.len()
    }

    /// Bytes on the wire; what flow control counts.
    pub fn wire_bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes()
    }

    /// Takes the next packet off the front of `buffer`; none while it is not whole. Nothing is allocated for bytes that
    /// have not come: the parts share the buffer. Fails if the header is malformed. The buffer cannot be used any more
    /// then: where the next packet begins is unknown.
    pub fn take(
        buffer: &mut BytesMut,
        max_body_bytes: usize,
    ) -> Result<Option<Packet>, DecodeError> {
        let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = *header;
        let lengths = Lengths::of(&header, max_body_bytes)?;
        if header[5] & !KNOWN_DATATYPES != 0 {
            return Err(DecodeError::Datatype { found: header[5] });
        }
        if buffer.len() < HEADER_BYTES + lengths.body {
            return Ok(None);
        }
        let mut body = buffer.split_to(HEADER_BYTES + lengths.body).freeze();
        body.advance(HEADER_BYTES);
        let mut part = |len: usize| match len {
            0 => Bytes::new(),
            _ => body.split_to(len),
        };
        let (framing, extras, key) =
            (part(lengths.framing), part(lengths.extras), part(lengths.key));
        let request = matches!(header[0], REQUEST | FLEXIBLE_REQUEST);
        Ok(Some(Packet {
            kind: if request { Kind::Request } else { Kind::Response },
            opcode: header[1],
            datatype: header[5],
            vbucket_or_status: u16::from_be_bytes([header[6], header[7]]),
            opaque: u32::from_be_bytes([header[12], header[13], header[14], header[15]]),
            cas: (&header[16..]).get_u64(),
            framing,
            extras,
            key,
            value: body,
        }))
    }

    /// Appends the packet's bytes. Fails if a part is longer than its length field can say.
    pub fn put(&self, out: &mut BytesMut) -> Result<(), DecodeError> {
        let flexible = !self.framing.is_empty();
        check("framing extras", self.framing.len(), 0xff)?;
        check("extras", self.extras.len(), 0xff)?;
        check("key", self.key.len(), if flexible { 0xff } else { 0xffff })?;
        check("value", self.body_bytes(), u32::MAX as usize)?;
        out.reserve(self.wire_bytes());
        out.put_u8(match (self.kind, flexible) {
            (Kind::Request, false) => REQUEST,
            (Kind::Response, false) => RESPONSE,
            (Kind::Request, true) => FLEXIBLE_REQUEST,
            (Kind::Response, true) => FLEXIBLE_RESPONSE,
        });
        out.put_u8(self.opcode);
        if flexible {
            out.put_u8(self.framing.len() as u8);
            out.put_u8(self.key.len() as u8);
        } else {
            out.put_u16(self.key.len() as u16);
        }
        out.put_u8(self.extras.len() as u8);
        out.put_u8(self.datatype);
        out.put_u16(self.vbucket_or_status);
        out.put_u32(self.body_bytes() as u32);
        out.put_u32(self.opaque);
        out.put_u64(self.cas);
        for part in [&self.framing, &self.extras, &self.key, &self.value] {
            out.put_slice(part);
        }
        Ok(())
    }
}

fn check(part: &'static str, found: usize, limit: usize) -> Result<(), DecodeError> {
    if found <= limit { Ok(()) } else { Err(DecodeError::PartTooLong { part, found, limit }) }
}
