//! The binary protocol, pure: bytes to packets, packets to typed messages, and back.
//!
//! The decoder never panics and allocates nothing for bytes that have not come: the parts of a packet share the
//! buffer that it was read from. A header that claims more than the limit is refused before anything is read.

mod error;
mod fields;
mod opcode;
mod packet;
mod request;
mod response;
mod status;
mod time_text;

pub use error::DecodeError;
pub use opcode::Opcode;
pub use packet::{
    DATATYPE_JSON, DATATYPE_SNAPPY, DATATYPE_XATTR, HEADER_BYTES, Kind, MAX_BODY_BYTES, Packet,
};
pub use request::{
    Body, EndReason, Marker, OPEN_DELETE_TIMES, OPEN_NO_VALUE, OPEN_PRODUCER, OPEN_XATTRS, Request,
    SNAPSHOT_ACK, SNAPSHOT_CHECKPOINT, SNAPSHOT_DISK, SNAPSHOT_MEMORY, STREAM_ACTIVE_ONLY,
    STREAM_DISK_ONLY, STREAM_TAKEOVER, STREAM_TO_LATEST, StreamRequest, VbucketState, Version,
    Write,
};
pub use response::{Answer, FailoverEntry, Response};
pub use status::Status;
pub(crate) use status::status_name;
pub use time_text::{parse_time_text, time_text};
