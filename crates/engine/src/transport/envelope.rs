//! A request or an answer with its number, and its form in bytes.

use std::io;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use world::{Frame, Message};

use super::Result;
use super::message::{Request, Response};

/// The version of what nodes say to each other. Raise it with every change of a message, or of what is in one: the
/// bytes do not say what they are, so that builds of two versions would take one thing for another.
pub const WIRE_VERSION: u8 = 16;
/// Every frame begins with this and the version. Those of builds before there was one begin with 0 or 1.
const MARK: u8 = b'n';

/// The peer's build is another.
fn other_version(says: &str) -> io::Error {
    let text = format!(
        "its build of narrows {says} of the protocol between nodes, and this one speaks version {WIRE_VERSION}; run \
         the same build on every node"
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Whether a message could not be read because the peer's build is another.
pub(super) fn is_other_version(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// What a connection between nodes carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Envelope {
    /// A question.
    Request(u64, Request),
    /// The answer to the question of that number.
    Response(u64, Result<Response>),
}

impl Message for Envelope {
    fn encode(mut self) -> Frame {
        let tail = match &mut self {
            Envelope::Response(_, Ok(Response::Chunk(chunk))) => {
                chunk.chunk.bytes().cloned().unwrap_or_default()
            }
            _ => Bytes::new(),
        };
        let head = postcard::to_stdvec(&(MARK, WIRE_VERSION, &self));
        let head = head.expect("messages are plain data");
        Frame { head, tail }
    }

    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self> {
        let message = match head {
            [MARK, WIRE_VERSION, message @ ..] => message,
            [MARK, other, ..] => return Err(other_version(&format!("speaks version {other}"))),
            _ => return Err(other_version("does not say which version it speaks")),
        };
        let mut envelope: Envelope = store::received::from_bytes(message)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if let Envelope::Response(_, Ok(Response::Chunk(chunk))) = &mut envelope {
            chunk.chunk = store::Chunk::Bytes(tail);
        }
        Ok(envelope)
    }

    fn wire_bytes(&self) -> u64 {
        16 + match self {
            Envelope::Request(_, request) => request.wire_bytes(),
            Envelope::Response(_, Ok(response)) => response.wire_bytes(),
            Envelope::Response(_, Err(failure)) => 32 + failure.reason.len() as u64,
        }
    }

    fn damage(&mut self) {
        if let Envelope::Response(_, Ok(Response::Chunk(chunk))) = self {
            chunk.chunk = chunk.chunk.clone().with_a_flipped_bit();
        }
    }
}
