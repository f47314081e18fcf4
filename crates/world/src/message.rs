//! Messages between nodes: typed, with a wire size.
//!
//! In the real world a message is framed over TCP; in the virtual world it is moved as it is, and only its
//! size travels.

use std::io;

use bytes::Bytes;

/// A head larger than this is refused, whatever its frame claims.
pub const MAX_HEAD_BYTES: usize = 256 << 20;
/// A tail larger than this is refused: the largest chunk (1 GiB) and what surrounds it.
pub const MAX_TAIL_BYTES: usize = (1 << 30) + (1 << 20);

/// A message in bytes: a head with its fields, and a tail that is never copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Fields.
    pub head: Vec<u8>,
    /// Bulk bytes, for example of a chunk.
    pub tail: Bytes,
}

/// Something that can be sent from node to node.
pub trait Message: Sized + 'static {
    /// The message as bytes, for the real world.
    fn encode(self) -> Frame;

    /// The message from the bytes of a peer; an error closes the connection.
    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self>;

    /// About how many bytes the message occupies on the wire.
    fn wire_bytes(&self) -> u64;

    /// Damages the bulk bytes, as a faulty link would, in the virtual world.
    fn damage(&mut self) {}
}
