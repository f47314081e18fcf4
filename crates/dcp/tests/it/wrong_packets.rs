//! Peers that do not speak the protocol: they are told what the protocol has a word for, their connection ends,
//! and the server lives.

use std::time::Duration;

use crate::common::{Bench, PATIENCE, settings};
use dcp::client::Client;
use dcp::codec::{Body, HEADER_BYTES, Packet, Request, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::Env;

testbed::real_world!(the_server_outlives_them, noise_ends_connections_and_nothing_else);
testbed::virtual_world!(strangers_are_few_and_do_not_stay);

/// Sends bytes, closes this direction, and reads what comes until the server closes.
async fn say(env: &Env, bench: &Bench, bytes: &[u8]) -> Vec<Packet> {
    let mut stream = TcpStream::connect(bench.server.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answered = Vec::new();
    let read = env.timeout(PATIENCE, stream.read_to_end(&mut answered)).await;
    // A reset is an end, too: the server closed while something was unread.
    let _ = read.expect("the server did not close");
    let mut buffer = bytes::BytesMut::from(&answered[..]);
    let mut packets = Vec::new();
    while let Some(packet) = Packet::take(&mut buffer, 1 << 20).unwrap() {
        packets.push(packet);
    }
    packets
}

fn encoded(body: Body) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    Request::new(5, 0, body).packet().put(&mut out).unwrap();
    out.to_vec()
}

async fn the_server_outlives_them(env: Env) {
    let bench = Bench::start(&env, settings(2, 64 << 20)).await;
    let status = |packets: &[Packet]| packets.last().map(|p| p.vbucket_or_status);
    let http = say(&env, &bench, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").await;
    assert_eq!(status(&http), Some(Status::Invalid.number()));
    // Strangers may send little: more is refused before it has come.
    let body_bytes = |bytes: u32| {
        let mut packet = encoded(Body::Version);
        packet[8..12].copy_from_slice(&bytes.to_be_bytes());
        packet
    };
    for bytes in [u32::MAX, (64 << 10) + 1] {
        let large = say(&env, &bench, &body_bytes(bytes)).await;
        assert_eq!(status(&large), Some(Status::TooBig.number()));
    }
    assert_eq!(status(&say(&env, &bench, &body_bytes(64 << 10)).await), None);
    let known = bench.client().await.set(0, "large", vec![b'x'; 1 << 20].into()).await;
    assert_eq!(known.unwrap(), Ok(Status::Success));
    let mut parts = encoded(Body::Version);
    parts[4] = 200;
    assert_eq!(status(&say(&env, &bench, &parts).await), Some(Status::Invalid.number()));
    // A packet that breaks off is no packet, and what came before it is answered.
    let mut two = encoded(Body::Version);
    two.extend(&encoded(Body::SelectBucket { name: "example".into() })[..HEADER_BYTES + 3]);
    assert_eq!(status(&say(&env, &bench, &two).await), Some(Status::Success.number()));
    assert!(bench.server.last_error().unwrap().contains("in the middle of a packet"));
    // Nothing at all.
    assert!(say(&env, &bench, b"").await.is_empty());
    // Whole packets that mean nothing are answered, and the connection goes on.
    let mut unknown = encoded(Body::Version);
    unknown[1] = 0xd7;
    unknown.extend(encoded(Body::Version));
    let answered: Vec<u16> =
        say(&env, &bench, &unknown).await.iter().map(|p| p.vbucket_or_status).collect();
    assert_eq!(answered, [Status::UnknownCommand.number(), Status::Success.number()]);
    // An answer to what nobody asked.
    let mut answer = encoded(Body::Noop);
    answer[0] = 0x81;
    answer.extend(encoded(Body::Version));
    assert_eq!(status(&say(&env, &bench, &answer).await), Some(Status::Success.number()));
    assert_eq!(bench.client().await.get(0, "a").await.unwrap(), None);
}

async fn strangers_are_few_and_do_not_stay(env: Env) {
    let bench = Bench::start(&env, settings(2, 64 << 20)).await;
    let mut known = bench.client().await;
    let mut strangers = Vec::new();
    for _ in 0..4095 {
        strangers.push(bench.stranger().await);
    }
    let refused = Client::connect(&env, &bench.options()).await.err().expect("there is no room");
    assert!(refused.to_string().contains("refused the connection: EBUSY"), "{refused}");
    assert!(bench.server.last_error().unwrap().contains("was turned away"));
    env.sleep(Duration::from_secs(61)).await;
    let mut after = bench.client().await;
    assert_eq!(after.get(0, "a").await.unwrap(), None);
    assert_eq!(known.get(0, "a").await.unwrap(), None, "who is known may be silent");
}

/// Bytes from a generator, each beginning as a packet might.
async fn noise_ends_connections_and_nothing_else(env: Env) {
    let bench = Bench::start(&env, settings(2, 64 << 20)).await;
    for round in 0..200 {
        let mut bytes: Vec<u8> = (0..8).flat_map(|_| env.random_u64().to_le_bytes()).collect();
        bytes[0] = [0x80, 0x81, 0x08, 0x18][round % 4];
        bytes[8..11].fill(0);
        say(&env, &bench, &bytes).await;
    }
    assert_eq!(bench.server.stats().connections, 200);
    assert_eq!(bench.client().await.get(0, "a").await.unwrap(), None);
}
