//! A request and an answer, and how they travel between the hosts of the virtual world.

use std::io;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use world::{Frame, Message};

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestRequest {
    /// `GET`, `PUT`, ...
    pub method: String,
    /// The path, percent-encoded, with `?` and the parameters where there are some.
    pub path: String,
    /// The body; empty for none.
    #[serde(skip)]
    pub body: Bytes,
}

/// The body of a request; none for `null`.
pub fn json_body(body: &Value) -> Bytes {
    if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) }
}

/// What it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestResponse {
    /// HTTP status.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// The path of a document that was created, for the header `Location`.
    pub location: Option<String>,
    /// The body; empty for none.
    #[serde(skip)]
    pub body: Bytes,
}

/// What a connection of the virtual world carries: requests one way, each answered before the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestMessage {
    /// From the client.
    Request(RestRequest),
    /// From the node.
    Response(RestResponse),
}

/// Bytes of an ordinary client's head beside the path, and of an answer's.
const REQUEST_HEAD_BYTES: u64 = 180;
const RESPONSE_HEAD_BYTES: u64 = 120;

impl RestMessage {
    fn body(&mut self) -> &mut Bytes {
        match self {
            RestMessage::Request(request) => &mut request.body,
            RestMessage::Response(response) => &mut response.body,
        }
    }
}

impl Message for RestMessage {
    fn encode(mut self) -> Frame {
        let tail = std::mem::take(self.body());
        let head = postcard::to_stdvec(&self).expect("messages are plain data");
        Frame { head, tail }
    }

    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self> {
        let mut message: RestMessage = postcard::from_bytes(head)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        *message.body() = tail;
        Ok(message)
    }

    fn wire_bytes(&self) -> u64 {
        match self {
            RestMessage::Request(request) => {
                REQUEST_HEAD_BYTES + (request.path.len() + request.body.len()) as u64
            }
            RestMessage::Response(response) => RESPONSE_HEAD_BYTES + response.body.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_comes() {
        let body = Bytes::from_static(b"{\"index\":{}}\n{}\n");
        let request = RestRequest { method: "POST".into(), path: "/a/_bulk".into(), body };
        let message = RestMessage::Request(request);
        assert_eq!(message.wire_bytes(), 180 + 8 + 16);
        let frame = message.clone().encode();
        assert_eq!(frame.tail.len(), 16, "the body is never copied");
        assert_eq!(RestMessage::decode(&frame.head, frame.tail).unwrap(), message);
        assert!(RestMessage::decode(&[9, 9], Bytes::new()).is_err());
    }
}
