//! A request or an answer with its number, and its form in bytes.

use std::io;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use world::{Frame, Message};

use super::Result;
use super::message::{Request, Response};

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
        let head = postcard::to_stdvec(&self).expect("messages are plain data");
        Frame { head, tail }
    }

    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self> {
        let mut envelope: Envelope = store::received::from_bytes(head)
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
