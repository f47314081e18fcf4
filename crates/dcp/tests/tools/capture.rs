//! A connection recorded as a capture file: a forwarding proxy that keeps what passes, written as TCP over IPv4.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use world::{Env, Task};

/// The server's port in the capture.
pub const SERVER_PORT: u16 = 11210;
const CLIENT_PORT: u16 = 40_000;
/// Bytes of one recorded segment.
const SEGMENT_BYTES: usize = 1400;
/// Link type: IPv4 without a link.
const RAW_IPV4: u32 = 228;

/// Of each part whether the server sent it, and the bytes.
type Recorded = Vec<(bool, Vec<u8>)>;

/// One connection, recorded.
pub struct Capture {
    address: String,
    recorded: Rc<RefCell<Recorded>>,
    _task: Task<()>,
}

impl Capture {
    /// Forwards one connection to `to`.
    pub async fn start(env: &Env, to: &str) -> Capture {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let recorded = Rc::<RefCell<Recorded>>::default();
        let (to, kept) = (to.to_owned(), recorded.clone());
        let forwarding = async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(to).await.unwrap();
            let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
            loop {
                let (by_server, read) = tokio::select! {
                    read = client.read(&mut from_client) => (false, read),
                    read = server.read(&mut from_server) => (true, read),
                };
                let (Ok(count @ 1..), to) =
                    (read, if by_server { &mut client } else { &mut server })
                else {
                    return;
                };
                let bytes = if by_server { &from_server[..count] } else { &from_client[..count] };
                kept.borrow_mut().push((by_server, bytes.to_vec()));
                if to.write_all(bytes).await.is_err() {
                    return;
                }
            }
        };
        Capture { address, recorded, _task: env.spawn("records", forwarding) }
    }

    /// Where to connect.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What passed, as a capture file.
    pub fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0x0004_0000, RAW_IPV4] {
            file.extend(u32::to_le_bytes(word));
        }
        // Sequence numbers of the client and the server.
        let mut next = [1000, 5000];
        for (at, (by_server, bytes)) in self.recorded.borrow().iter().enumerate() {
            for segment in bytes.chunks(SEGMENT_BYTES) {
                let (own, other) = (usize::from(*by_server), usize::from(!*by_server));
                let packet = packet(*by_server, next[own], next[other], segment);
                let length = packet.len() as u32;
                for word in [at as u32 / 1000, at as u32 % 1000 * 1000, length, length] {
                    file.extend(word.to_le_bytes());
                }
                file.extend(packet);
                next[own] += segment.len() as u32;
            }
        }
        file
    }
}

fn packet(by_server: bool, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let (from, to) =
        if by_server { (SERVER_PORT, CLIENT_PORT) } else { (CLIENT_PORT, SERVER_PORT) };
    let (near, far) = if by_server { (2, 1) } else { (1, 2) };
    let mut packet = vec![0x45, 0];
    packet.extend((40 + payload.len() as u16).to_be_bytes());
    // Identification, don't fragment, time to live, TCP; checksums are not looked at.
    packet.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, near, 10, 0, 0, far]);
    packet.extend(from.to_be_bytes());
    packet.extend(to.to_be_bytes());
    packet.extend(seq.to_be_bytes());
    packet.extend(ack.to_be_bytes());
    // Header of five words; PSH and ACK; window; checksum; urgent pointer.
    packet.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}
