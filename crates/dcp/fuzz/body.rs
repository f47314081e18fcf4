//! What is fuzzed; an ordinary test runs the same for a short time.

use bytes::BytesMut;
use dcp::codec::{HEADER_BYTES, Packet, Request, Response};

/// Bodies above this are refused.
pub const MAX_BODY_BYTES: usize = 1 << 16;

/// Decodes any bytes as a connection would: nothing panics, nothing is read twice or beyond what came, and what is
/// understood means the same after it was written and read again.
pub fn decode(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    let mut consumed = 0;
    while let Ok(Some(packet)) = Packet::take(&mut buffer, MAX_BODY_BYTES) {
        consumed += packet.wire_bytes();
        assert!(packet.body_bytes() <= MAX_BODY_BYTES);
        assert_eq!(consumed + buffer.len(), bytes.len());
        again(&packet);
    }
    assert!(buffer.len() < HEADER_BYTES || consumed < bytes.len());
}

fn again(packet: &Packet) {
    let mut out = BytesMut::new();
    packet.put(&mut out).expect("what was read can be written");
    assert_eq!(out.len(), packet.wire_bytes());
    assert_eq!(Packet::take(&mut out, MAX_BODY_BYTES).as_ref(), Ok(&Some(packet.clone())));
    assert!(out.is_empty());
    if let Ok(request) = Request::parse(packet.clone()) {
        assert_eq!(Request::parse(request.clone().packet()), Ok(request));
    }
    if let Ok(response) = Response::parse(packet.clone()) {
        assert_eq!(Response::parse(response.clone().packet()), Ok(response));
    }
}
