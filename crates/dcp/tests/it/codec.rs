//! The codec: every message there and back, and any bytes.

#[path = "../../fuzz/body.rs"]
mod body;

use bytes::{Bytes, BytesMut};
use dcp::codec::*;
use proptest::prelude::*;

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn key() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 1..250).prop_map(Bytes::from)
}

fn write() -> impl Strategy<Value = Write> {
    (any::<u32>(), any::<u32>(), key(), bytes(4000)).prop_map(|(flags, expiry, key, value)| Write {
        flags,
        expiry,
        key,
        value,
    })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    (any::<(u64, u64, u32, u32, u32, u16, u8)>(), key(), bytes(4000)).prop_map(
        |((by_seqno, rev_seqno, flags, expiry, lock_time, nmeta, nru), key, value)| Mutation {
            by_seqno,
            rev_seqno,
            flags,
            expiry,
            lock_time,
            nmeta,
            nru,
            key,
            value,
        },
    )
}

fn deletion() -> impl Strategy<Value = Deletion> {
    (any::<(u64, u64, Option<u32>, u16)>(), key(), bytes(400)).prop_map(
        |((by_seqno, rev_seqno, delete_time, nmeta), key, value)| Deletion {
            by_seqno,
            rev_seqno,
            delete_time,
            nmeta: if delete_time.is_some() { 0 } else { nmeta },
            key,
            value,
        },
    )
}

fn documents() -> impl Strategy<Value = Body> {
    prop_oneof![
        key().prop_map(|key| Body::Get { key }),
        write().prop_map(Body::Set),
        write().prop_map(Body::Add),
        write().prop_map(Body::Replace),
        key().prop_map(|key| Body::Delete { key }),
        mutation().prop_map(Body::Mutation),
        deletion().prop_map(Body::Deletion),
        (any::<(u64, u64, u32)>(), key(), bytes(40)).prop_map(|((by, rev, time), key, value)| {
            Body::Expiration(Expiration {
                by_seqno: by,
                rev_seqno: rev,
                delete_time: time,
                key,
                value,
            })
        }),
    ]
}

fn connections() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::Quit),
        Just(Body::KvNoop),
        Just(Body::Version),
        Just(Body::SaslList),
        Just(Body::GetClusterConfig),
        Just(Body::Manifest),
        bytes(30).prop_map(|group| Body::Stat { group }),
        (bytes(30), proptest::collection::vec(any::<u16>(), 0..20))
            .prop_map(|(agent, features)| Body::Hello { agent, features }),
        (key(), bytes(200)).prop_map(|(mechanism, data)| Body::SaslAuth { mechanism, data }),
        (key(), bytes(200)).prop_map(|(mechanism, data)| Body::SaslStep { mechanism, data }),
        key().prop_map(|name| Body::SelectBucket { name }),
        any::<u16>().prop_map(|version| Body::ErrorMap { version }),
        (any::<u32>(), key(), bytes(30)).prop_map(|(flags, name, value)| Body::Open {
            flags,
            name,
            value
        }),
        (key(), bytes(30)).prop_map(|(name, value)| Body::Control { name, value }),
    ]
}

fn streams() -> impl Strategy<Value = Body> {
    let reasons = (0..9_u32).prop_map(EndReason::of);
    let states = proptest::sample::select(VbucketState::ALL);
    prop_oneof![
        Just(Body::CloseStream),
        Just(Body::FailoverLog),
        Just(Body::Noop),
        any::<Option<u32>>().prop_map(|state| Body::AllVbSeqnos { state }),
        any::<u32>().prop_map(|flags| Body::AddStream { flags }),
        any::<(u32, u64, u64, u64, u64, u64)>().prop_map(
            |(flags, start, end, uuid, snap_start, snap_end)| Body::StreamRequest(StreamRequest {
                flags,
                start,
                end,
                uuid,
                snap_start,
                snap_end
            })
        ),
        reasons.prop_map(|reason| Body::StreamEnd { reason }),
        any::<(u64, u64, u32)>().prop_map(|(start, end, flags)| Body::SnapshotMarker(Marker {
            start,
            end,
            flags
        })),
        states.prop_map(|state| Body::SetVbucketState { state }),
        any::<u32>().prop_map(|bytes| Body::BufferAck { bytes }),
        any::<u64>().prop_map(|seqno| Body::SeqnoPersistence { seqno }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let body = prop_oneof![documents(), connections(), streams()];
    (any::<(u32, u16, u64)>(), 0u8..8, body).prop_map(|((opaque, vbucket, cas), datatype, body)| {
        Request { opaque, vbucket, cas, datatype, body }
    })
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

    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let samples: Vec<Vec<u8>> = (0..60)
        .map(|_| {
            let request = proptest::strategy::Strategy::new_tree(&request(), &mut runner).unwrap();
            wire(&proptest::strategy::ValueTree::current(&request).packet())
        })
        .collect();
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_request_comes_back_as_it_was(request in request(), framing in bytes(12)) {
        let mut packet = request.clone().packet();
        if packet.key.len() < 256 {
            packet.framing = framing;
        }
        let mut buffer = BytesMut::from(&wire(&packet)[..]);
        let back = Packet::take(&mut buffer, MAX_BODY_BYTES).unwrap().unwrap();
        prop_assert_eq!(&back, &packet);
        prop_assert_eq!(Request::parse(back).unwrap(), request);
    }

    #[test]
    fn a_packet_cut_anywhere_waits_for_the_rest(request in request(), cut in any::<proptest::sample::Index>()) {
        let whole = wire(&request.packet());
        let mut buffer = BytesMut::from(&whole[..cut.index(whole.len())]);
        prop_assert_eq!(Packet::take(&mut buffer, MAX_BODY_BYTES), Ok(None));
    }

    /// Headers that are nearly right reach further into the decoder than chance does.
    #[test]
    fn nearly_right_bytes_are_survived(
        request in request(),
        damage in proptest::collection::vec(any::<(proptest::sample::Index, u8)>(), 0..4),
        response in any::<bool>(),
    ) {
        let mut bytes = wire(&request.packet());
        if response {
            bytes[0] = 0x81;
            bytes[6..8].copy_from_slice(&[0, 0]);
        }
        for (place, byte) in damage {
            let at = place.index(bytes.len().min(60));
            bytes[at] = byte;
        }
        body::decode(&bytes);
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
