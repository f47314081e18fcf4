//! Why bytes are no packet, or a packet no message.

/// Bytes that are no packet, or a packet that is no message.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error(
        "a packet begins with {found:#04x}, which is no magic of the binary protocol; is this its port?"
    )]
    Magic { found: u8 },
    #[error("a packet claims a body of {found} bytes; at most {limit} are accepted")]
    TooLarge { found: usize, limit: usize },
    #[error("a packet claims {parts} bytes of extras and key in a body of {body}")]
    PartsExceedBody { parts: usize, body: usize },
    /// A datatype bit that is not known.
    #[error(
        "a packet has datatype {found:#04x}; only JSON (1), Snappy (2) and XATTR (4) are known"
    )]
    Datatype { found: u8 },
    #[error("{part} of {found} bytes cannot be sent, at most {limit}")]
    PartTooLong { part: &'static str, found: usize, limit: usize },
    /// An opcode that is not known.
    #[error("opcode {found:#04x} is not known here")]
    Opcode { found: u8 },
    #[error("opcode {opcode:#04x}: {part} of {found} bytes is not right")]
    Length { opcode: u8, part: &'static str, found: usize },
    #[error("opcode {opcode:#04x}: {field} {found} is not known")]
    Number { opcode: u8, field: &'static str, found: u64 },
    #[error("opcode {opcode:#04x}: expected a {expected}")]
    Kind { opcode: u8, expected: &'static str },
}
