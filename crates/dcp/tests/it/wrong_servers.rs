//! Servers that grant less than is asked for, or do not keep to the protocol: our side goes on with less, or ends with
//! an error that names what was wrong.

use crate::common::options_to;
use bytes::{Bytes, BytesMut};
use dcp::Error;
use dcp::client::{Client, ClientOptions};
use dcp::codec::{
    Answer, Body, DecodeError, EndReason, FailoverEntry, Marker, Opcode, Packet, Request, Response,
    SNAPSHOT_MEMORY, Status, VbucketState, Version,
};
use dcp::consumer::{Consumer, ConsumerKind, Counts, Event, Follower, Sink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use world::Env;

testbed::real_world!(
    a_packet_that_breaks_off_is_an_error,
    a_stream_that_ends_for_an_unknown_reason_is_no_violation,
    a_second_answer_is_passed_over,
    a_server_that_sends_back_for_ever_is_left,
);

const WINDOW_BYTES: u32 = 4000;

/// What a server says to a request; none where it closes.
pub type Says = fn(&Request) -> Option<Vec<u8>>;

pub fn encoded(packet: Packet) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet.put(&mut out).unwrap();
    out.to_vec()
}

pub fn answer(request: &Request, status: Status, answer: Answer) -> Option<Vec<u8>> {
    let opcode = request.body.opcode();
    Some(encoded(Response::new(opcode, request.opaque, status, answer).packet()))
}

/// As a server that has all of it; a stream is granted and nothing comes.
pub fn well(request: &Request) -> Option<Vec<u8>> {
    let said = match &request.body {
        Body::Hello { features, .. } => Answer::Features(features.clone()),
        Body::SaslList => Answer::Value("PLAIN".into()),
        Body::AllVbSeqnos { .. } => Answer::Seqnos(vec![(0, 10)]),
        Body::StreamRequest(_) => Answer::FailoverLog(vec![FailoverEntry { uuid: 5, seqno: 0 }]),
        _ => Answer::Empty,
    };
    answer(request, Status::Success, said)
}

/// The answer of such a server to a packet, where that is a request.
pub fn answered_well(packet: Packet) -> Option<Packet> {
    let said = well(&Request::parse(packet).ok()?)?;
    Packet::take(&mut BytesMut::from(&said[..]), 1 << 16).unwrap()
}

/// As [`well`], but for one kind of request.
pub fn but(opcode: Opcode, says: Says) -> impl Fn(&Request) -> Option<Vec<u8>> {
    move |request| if request.body.opcode() == opcode { says(request) } else { well(request) }
}

/// As a server that does not know the request.
fn unknown(request: &Request) -> Option<Vec<u8>> {
    answer(request, Status::UnknownCommand, Answer::Empty)
}

async fn serve(mut stream: TcpStream, says: &impl Fn(&Request) -> Option<Vec<u8>>) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(packet) = Packet::take(&mut buffer, 1 << 16).unwrap() {
            let Ok(request) = Request::parse(packet) else { continue };
            let Some(bytes) = says(&request) else { return };
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
        if !stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
            return;
        }
    }
}

/// A server on loopback that says this to each connection, one after another.
pub async fn server(
    env: &Env,
    says: impl Fn(&Request) -> Option<Vec<u8>> + 'static,
) -> ClientOptions {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, &says).await;
        }
    };
    // It lives as long as the world.
    std::mem::forget(env.spawn("a scripted server", serving));
    options_to(address)
}

/// Connects, and asks for a stream; what comes of it up to the first error or refusal.
async fn follow(
    env: &Env,
    says: impl Fn(&Request) -> Option<Vec<u8>> + 'static,
) -> Result<Event, Error> {
    let options = server(env, says).await;
    let client = Client::connect(env, &options).await?;
    let sink = Sink::Count(Counts::default());
    let consumer = Consumer::new(env, ConsumerKind::Fast, sink, WINDOW_BYTES);
    let mut follower = Follower::open(env, client, "test", consumer, WINDOW_BYTES).await?;
    follower.add_stream(0, 0)?;
    loop {
        match follower.step().await? {
            None | Some(Event::Opened { .. }) => {}
            Some(event) => return Ok(event),
        }
    }
}

fn failure(says: impl Fn(&Request) -> Option<Vec<u8>> + 'static) -> Error {
    world::real_world::run(7, async move |env| match follow(&env, says).await {
        Err(error) => error,
        Ok(event) => panic!("{event:?}"),
    })
}

#[test]
fn with_fewer_features_it_goes_on() {
    // None of those that are asked for; a server that does not know HELLO.
    let none: Says = |request| {
        let Body::Hello { features, .. } = &request.body else { unreachable!("{request:?}") };
        assert_eq!(features[..], [0x06, 0x08, 0x0b]);
        answer(request, Status::Success, Answer::Features(Vec::new()))
    };
    for says in [none, unknown] {
        world::real_world::run(7, async move |env| {
            let options = server(&env, but(Opcode::Hello, says)).await;
            let mut client = Client::connect(&env, &options).await.unwrap();
            assert_eq!(client.active_seqnos().await.unwrap(), [(0, 10)].into());
        });
    }
}

#[test]
fn without_what_is_needed_it_says_so() {
    let no_buckets = failure(but(Opcode::SelectBucket, unknown));
    assert!(no_buckets.to_string().contains("bucket \"example\""), "{no_buckets}");
    world::real_world::run(7, async |env| {
        let options = server(&env, but(Opcode::AllVbSeqnos, unknown)).await;
        let mut client = Client::connect(&env, &options).await.unwrap();
        let error = client.active_seqnos().await.unwrap_err();
        assert!(error.to_string().contains("has no DCP"), "{error}");
    });
    let no_flow_control =
        failure(but(Opcode::Control, |request| answer(request, Status::Invalid, Answer::Empty)));
    let said = no_flow_control.to_string();
    assert!(said.contains("a window of 4000 bytes") && said.contains("without end"), "{said}");
    let no_mechanism = failure(but(Opcode::SaslList, |request| {
        answer(request, Status::Success, Answer::Value("GSSAPI".into()))
    }));
    assert!(no_mechanism.to_string().contains("GSSAPI"), "{no_mechanism}");
}

#[test]
fn packets_that_are_none_end_the_connection_with_a_name() {
    // Four gigabytes are claimed: they are refused before there is room for them.
    let huge = failure(but(Opcode::StreamRequest, |request| {
        let mut bytes = well(request)?;
        bytes[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        Some(bytes)
    }));
    assert!(
        matches!(&huge, Error::Protocol { source: DecodeError::TooLarge { .. }, .. }),
        "{huge}"
    );
    let no_packet =
        failure(but(Opcode::SaslList, |_| Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())));
    assert!(
        matches!(&no_packet, Error::Protocol { source: DecodeError::Magic { found: b'H' }, .. }),
        "{no_packet}"
    );
    let answers_another = failure(but(Opcode::SelectBucket, |request| {
        let mut bytes = well(request)?;
        bytes[1] = Opcode::Version.number();
        Some(bytes)
    }));
    assert!(answers_another.to_string().contains("an answer to VERSION"), "{answers_another}");
    // It closes between a request and its answer.
    let closed = failure(but(Opcode::SelectBucket, |_| None));
    assert!(matches!(&closed, Error::Closed { .. }), "{closed}");
}

async fn a_packet_that_breaks_off_is_an_error(env: Env) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = env.spawn("breaks off", async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // What is unread when it closes would make a reset of the end.
        let mut buffer = BytesMut::new();
        let hello = loop {
            assert!(stream.read_buf(&mut buffer).await.unwrap() > 0);
            if let Some(packet) = Packet::take(&mut buffer, 1 << 16).unwrap() {
                break Request::parse(packet).unwrap();
            }
        };
        let mut bytes = well(&hello).unwrap();
        bytes[8..12].copy_from_slice(&99u32.to_be_bytes());
        stream.write_all(&bytes).await.unwrap();
    });
    let options = ClientOptions { address, ..server(&env, well).await };
    let error = Client::connect(&env, &options).await.err().expect("half a packet is none");
    assert!(error.to_string().contains("in the middle of a packet"), "{error}");
    serving.await.unwrap();
}

/// A stream is granted, and these messages come.
fn granted(request: &Request, messages: impl IntoIterator<Item = Body>) -> Option<Vec<u8>> {
    let mut bytes = well(request)?;
    for body in messages {
        bytes.extend(encoded(Request::new(request.opaque, request.vbucket, body).packet()));
    }
    Some(bytes)
}

#[test]
fn a_stream_that_is_out_of_order_ends_with_its_vbucket() {
    // An item without a snapshot, one twice, one beyond the snapshot, a snapshot that goes back, one after which no
    // number would be left.
    type Snapshot = Option<(u64, u64)>;
    let cases: [(Snapshot, &'static [u64]); 5] = [
        (None, &[1]),
        (Some((0, 9)), &[1, 2, 2]),
        (Some((0, 2)), &[1, 3]),
        (Some((9, 2)), &[]),
        (Some((0, u64::MAX)), &[u64::MAX]),
    ];
    for (marker, seqnos) in cases {
        let marker = marker.map(|(start, end)| Marker { start, end, flags: SNAPSHOT_MEMORY });
        let item = |by_seqno: &u64| {
            let (by_seqno, key) = (*by_seqno, Bytes::from_static(b"key"));
            Body::Mutation(Version { by_seqno, key, ..Version::default() })
        };
        let error = failure(move |request| match request.body {
            Body::StreamRequest(_) => {
                let marker = marker.map(Body::SnapshotMarker).into_iter();
                granted(request, marker.chain(seqnos.iter().map(item)))
            }
            _ => well(request),
        });
        assert!(matches!(error, Error::Stream { vbucket: 0, .. }), "{error}");
    }
}

#[test]
fn a_vbucket_that_does_not_move_keeps_its_state() {
    let error = failure(but(Opcode::StreamRequest, |request| {
        granted(request, [Body::SetVbucketState { state: VbucketState::Active }])
    }));
    assert!(error.to_string().contains("DCP_SET_VBUCKET_STATE"), "{error}");
}

#[test]
fn a_rollback_that_leads_forward_is_refused() {
    let error = failure(but(Opcode::StreamRequest, |request| {
        answer(request, Status::Rollback, Answer::Rollback(7))
    }));
    assert!(error.to_string().contains("a rollback of vbucket 0 to 7"), "{error}");
}

/// Newer producers know more reasons.
async fn a_stream_that_ends_for_an_unknown_reason_is_no_violation(env: Env) {
    let says: Says = |request| granted(request, [Body::StreamEnd { reason: EndReason::Other(9) }]);
    let ended = follow(&env, but(Opcode::StreamRequest, says)).await.unwrap();
    assert_eq!(ended, Event::Ended { vb: 0, reason: EndReason::Other(9) });
}

async fn a_second_answer_is_passed_over(env: Env) {
    let says: Says = |request| {
        let mut bytes = well(request)?;
        bytes.extend(answer(request, Status::NotMyVbucket, Answer::Empty)?);
        bytes.extend(granted(request, [Body::StreamEnd { reason: EndReason::Ok }])?);
        Some(bytes)
    };
    let ended = follow(&env, but(Opcode::StreamRequest, says)).await.unwrap();
    assert_eq!(ended, Event::Ended { vb: 0, reason: EndReason::Ok });
}

async fn a_server_that_sends_back_for_ever_is_left(env: Env) {
    let says: Says = |request| answer(request, Status::Rollback, Answer::Rollback(0));
    let ended = follow(&env, but(Opcode::StreamRequest, says)).await.unwrap();
    assert!(
        matches!(&ended, Event::Refused { vb: 0, status } if status == Status::Rollback.name())
    );
}
