//! The codec: every message there and back, and any bytes.

#[path = "../../fuzz/body.rs"]
mod body;

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use dcp::codec::*;

fn key() -> Bytes {
    Bytes::from_static(b"key")
}

fn value() -> Bytes {
    Bytes::from_static(b"a value")
}

/// Requests of every kind. The bytes of their numbers differ.
fn requests() -> Vec<Request> {
    let write = Write { flags: 0x0102_0304, expiry: 0x0506_0708, key: key(), value: value() };
    let (by_seqno, rev_seqno) = (0x1112_1314_1516_1718, 0x2122_2324_2526_2728);
    let version =
        || Version { by_seqno, rev_seqno, key: key(), value: value(), ..Version::default() };
    let time_s = 0x0506_0708;
    let bodies = [
        Body::Get { key: key() },
        Body::Set(write.clone()),
        Body::Add(write.clone()),
        Body::Replace(write),
        Body::Delete { key: key() },
        Body::Quit,
        Body::KvNoop,
        Body::Version,
        Body::Stat { group: Bytes::new() },
        Body::Stat { group: key() },
        Body::Hello { agent: key(), features: vec![0x0607, 0x0809] },
        Body::SaslList,
        Body::SaslAuth { mechanism: key(), data: value() },
        Body::SaslStep { mechanism: key(), data: Bytes::new() },
        Body::AllVbSeqnos { state: None },
        Body::AllVbSeqnos { state: Some(0x0102_0304) },
        Body::Open { flags: 0x0102_0304, name: key(), value: value() },
        Body::AddStream { flags: 0x0102_0304 },
        Body::CloseStream,
        Body::StreamRequest(StreamRequest {
            flags: 0x0102_0304,
            start: 0x1112_1314_1516_1718,
            end: 0x2122_2324_2526_2728,
            uuid: 0x3132_3334_3536_3738,
            snap_start: 0x4142_4344_4546_4748,
            snap_end: 0x5152_5354_5556_5758,
        }),
        Body::FailoverLog,
        Body::StreamEnd { reason: EndReason::BackfillFailed },
        Body::SnapshotMarker(Marker { start: by_seqno, end: rev_seqno, flags: 0x0102_0304 }),
        Body::Mutation(Version {
            flags: 0x0102_0304,
            time_s,
            lock_time: 0x090a_0b0c,
            nmeta: 0x0d0e,
            nru: 0x0f,
            ..version()
        }),
        Body::Deletion(Version { nmeta: 0x0d0e, ..version() }),
        Body::Deletion(Version { is_timed: true, time_s, ..version() }),
        Body::Expiration(Version { time_s, ..version() }),
        Body::SetVbucketState { state: VbucketState::Pending },
        Body::Noop,
        Body::BufferAck { bytes: 0x0102_0304 },
        Body::Control { name: key(), value: value() },
        Body::SelectBucket { name: key() },
        Body::GetClusterConfig,
        Body::SeqnoPersistence { seqno: by_seqno },
        Body::Manifest,
        Body::ErrorMap { version: 0x0102 },
    ];
    let (opaque, vbucket, cas) = (0x0a0b_0c0d, 0x0e0f, 0x6162_6364_6566_6768);
    let request = |body| Request { opaque, vbucket, cas, datatype: DATATYPE_SNAPPY, body };
    bodies.map(request).into()
}

fn wire(packet: &Packet) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet.put(&mut out).unwrap();
    out.to_vec()
}

/// Frames of every kind, changed at random.
#[test]
fn frames() {
    use testbed::fuzz::{self, Budget};

    let samples: Vec<Vec<u8>> = requests().into_iter().map(|one| wire(&one.packet())).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    fuzz::search("DCP frames", &samples, 50_000, Budget::default(), |bytes| {
        body::decode(bytes);
        let mut answer = bytes.to_vec();
        if let Some(magic) = answer.first_mut() {
            *magic = 0x81;
            body::decode(&answer);
        }
    });
}

#[test]
fn every_request_comes_back_as_it_was() {
    let kinds: BTreeSet<Opcode> = requests().iter().map(|one| one.body.opcode()).collect();
    assert_eq!(kinds.len(), Opcode::ALL.len());
    for request in requests() {
        for framing in [&b""[..], b"framing"] {
            let mut packet = request.clone().packet();
            packet.framing = Bytes::from_static(framing);
            let mut buffer = BytesMut::from(&wire(&packet)[..]);
            let back = Packet::take(&mut buffer, MAX_BODY_BYTES).unwrap().unwrap();
            assert_eq!(back, packet);
            assert_eq!(Request::parse(back).unwrap(), request);
        }
    }
}

#[test]
fn a_packet_cut_anywhere_waits_for_the_rest() {
    for request in requests() {
        let whole = wire(&request.packet());
        for end in 0..whole.len() {
            let mut buffer = BytesMut::from(&whole[..end]);
            assert_eq!(Packet::take(&mut buffer, MAX_BODY_BYTES), Ok(None));
        }
    }
}

#[test]
fn every_answer_comes_back_as_it_was() {
    let entries = vec![FailoverEntry { uuid: 7, seqno: 9 }, FailoverEntry { uuid: 1, seqno: 0 }];
    let cases = [
        (Opcode::Hello, Status::Success, Answer::Features(vec![6, 7, 0x12])),
        (Opcode::StreamRequest, Status::Success, Answer::FailoverLog(entries.clone())),
        (Opcode::FailoverLog, Status::Success, Answer::FailoverLog(entries)),
        (Opcode::StreamRequest, Status::Rollback, Answer::Rollback(0x0102_0304_0506_0708)),
        (Opcode::StreamRequest, Status::NotMyVbucket, Answer::Empty),
        (Opcode::AddStream, Status::Success, Answer::StreamOpaque(77)),
        (Opcode::AllVbSeqnos, Status::Success, Answer::Seqnos(vec![(0, 5), (1023, 1 << 40)])),
        (
            Opcode::Get,
            Status::Success,
            Answer::Document { flags: 3, value: Bytes::from_static(b"v") },
        ),
        (Opcode::Get, Status::NotFound, Answer::Value(Bytes::from_static(b"no such key"))),
        (
            Opcode::Stat,
            Status::Success,
            Answer::Stat { name: Bytes::from_static(b"n"), value: Bytes::from_static(b"1") },
        ),
        (Opcode::SaslAuth, Status::AuthContinue, Answer::Value(Bytes::from_static(b"r=x"))),
        (Opcode::Version, Status::Success, Answer::Value(Bytes::from_static(b"7.6.0"))),
    ];
    for (opcode, status, answer) in cases {
        let response = Response::new(opcode, 12, status, answer);
        let mut buffer = BytesMut::from(&wire(&response.clone().packet())[..]);
        let back = Packet::take(&mut buffer, MAX_BODY_BYTES).unwrap().unwrap();
        assert_eq!(Response::parse(back).unwrap(), response);
    }
}

/// The layouts of the protocol's own documentation, byte by byte.
#[test]
fn the_bytes_are_where_the_protocol_has_them() {
    let open =
        Body::Open { flags: OPEN_PRODUCER, name: Bytes::from_static(b"b"), value: Bytes::new() };
    let mut expected = vec![0x80, 0x50, 0, 1, 8, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
    expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'b']);
    assert_eq!(wire(&Request::new(1, 0, open).packet()), expected);

    let marker = Body::SnapshotMarker(Marker { start: 1, end: 0x0200, flags: SNAPSHOT_DISK });
    let bytes = wire(&Request::new(0xdead_beef, 5, marker).packet());
    assert_eq!(bytes[..12], [0x80, 0x56, 0, 0, 20, 0, 0, 5, 0, 0, 0, 20]);
    assert_eq!(bytes[12..16], [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(bytes[24..], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2]);
}

#[test]
fn what_a_header_claims_is_not_believed() {
    let header = |magic: u8, key: u16, extras: u8, datatype: u8, body: u32| {
        let mut bytes = vec![magic, 0x57];
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes.extend_from_slice(&[extras, datatype, 0, 0]);
        bytes.extend_from_slice(&body.to_be_bytes());
        bytes.resize(HEADER_BYTES, 0);
        BytesMut::from(&bytes[..])
    };
    let take = |mut buffer: BytesMut| {
        let before = buffer.capacity();
        let taken = Packet::take(&mut buffer, 1000);
        assert!(buffer.capacity() <= before, "it allocated for bytes that have not come");
        taken.map(|packet| packet.is_some())
    };
    assert_eq!(take(header(0x80, 1, 31, 0, 1000)), Ok(false));
    assert_eq!(
        take(header(0x80, 1, 31, 0, 1001)),
        Err(DecodeError::TooLarge { found: 1001, limit: 1000 })
    );
    assert_eq!(
        take(header(0x80, 1, 31, 0, u32::MAX)),
        Err(DecodeError::TooLarge { found: u32::MAX as usize, limit: 1000 })
    );
    assert_eq!(
        take(header(0x80, 900, 101, 0, 1000)),
        Err(DecodeError::PartsExceedBody { parts: 1001, body: 1000 })
    );
    assert_eq!(take(header(0x47, 0, 0, 0, 0)), Err(DecodeError::Magic { found: 0x47 }));
    assert_eq!(take(header(0x80, 1, 31, 8, 40)), Err(DecodeError::Datatype { found: 8 }));
}

#[test]
fn parts_of_the_wrong_length_are_named() {
    let mut packet = Request::new(1, 0, Body::BufferAck { bytes: 1 }).packet();
    packet.extras = Bytes::from_static(&[0; 5]);
    let error = Request::parse(packet).unwrap_err();
    assert_eq!(error, DecodeError::Length { opcode: 0x5d, part: "extras", found: 5 });
    let packet = Packet::new(Kind::Request, Opcode::Get.number());
    let error = Request::parse(packet).unwrap_err();
    assert_eq!(error, DecodeError::Length { opcode: 0, part: "key", found: 0 });
    let end = Request::new(1, 0, Body::StreamEnd { reason: EndReason::Ok });
    let mut packet = end.packet();
    packet.extras = Bytes::from_static(&[0, 0, 0, 9]);
    let reason = EndReason::Other(9);
    assert_eq!(Request::parse(packet).unwrap().body, Body::StreamEnd { reason });
    let state = Request::new(1, 0, Body::SetVbucketState { state: VbucketState::Active });
    let mut packet = state.packet();
    packet.extras = Bytes::from_static(&[9]);
    let error = Request::parse(packet).unwrap_err();
    assert_eq!(error, DecodeError::Number { opcode: 0x5b, field: "state", found: 9 });
}
