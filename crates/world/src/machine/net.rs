//! Messages framed over TCP.
//!
//! | bytes | field |
//! | --- | --- |
//! | 4 | magic `NRW3` |
//! | 4 | length of the head, little-endian |
//! | 4 | length of the tail |
//! | 4 | CRC-32C of the twelve bytes before and of the head |
//!
//! The tail is not covered: chunks and operations carry their own checksums, which are checked where they are
//! used, so that a damaged chunk is fetched again and does not cost the connection.

use std::io;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::host::Host;
use crate::Message;
use crate::counters::NetCounters;
use crate::message::{Frame, MAX_HEAD_BYTES, MAX_TAIL_BYTES};

const MAGIC: [u8; 4] = *b"NRW3";
const PREFIX_BYTES: usize = 16;
/// Messages that wait in one connection before `send` waits.
const QUEUED_MESSAGES: usize = 4;
/// Frames up to this are gathered into one write.
const GATHER_BYTES: usize = 64 << 10;
/// A buffer grows by no more than this ahead of the bytes that really came.
const TRUST_BYTES: usize = 8 << 20;
/// A peer that takes not one byte for so long is given up: what waits for it holds memory that others need. A
/// recovery waits as long for a source that sends nothing.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(120);

/// Sends frames through a writer task, so that no caller can leave half a frame behind.
pub struct Sender<M> {
    frames: mpsc::Sender<Frame>,
    message: PhantomData<M>,
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Sender { frames: self.frames.clone(), message: PhantomData }
    }
}

impl<M: Message> Sender<M> {
    pub(crate) async fn send(&self, message: M) -> io::Result<()> {
        let frame = message.encode();
        let (head, tail) = (frame.head.len(), frame.tail.len());
        if head > MAX_HEAD_BYTES || tail > MAX_TAIL_BYTES {
            let text = format!(
                "a message of {head} bytes and {tail} bytes of bulk is too large to send: it may have {MAX_HEAD_BYTES} \
                 and {MAX_TAIL_BYTES}; ask for less at once, or send it in parts"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.frames.send(frame).await.map_err(|_| closed())
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection is closed")
}

/// The sending half of a connection.
struct Output {
    stream: OwnedWriteHalf,
    host: Rc<Host>,
    /// How long the peer may take nothing.
    patience: Duration,
}

impl Output {
    async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            tokio::select! {
                biased;
                written = self.stream.write(bytes) => match written? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => bytes = &bytes[written..],
                },
                () = self.host.sleep(self.patience) => {
                    let text = format!("the peer took nothing for {:?}", self.patience);
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
            }
        }
        Ok(())
    }
}

async fn write_frames(mut output: Output, mut frames: mpsc::Receiver<Frame>) -> io::Result<()> {
    let mut gathered = Vec::new();
    while let Some(frame) = frames.recv().await {
        put_frame(&mut output, &mut gathered, frame).await?;
        while gathered.len() < GATHER_BYTES {
            match frames.try_recv() {
                Ok(frame) => put_frame(&mut output, &mut gathered, frame).await?,
                Err(_) => break,
            }
        }
        output.write_all(&gathered).await?;
        gathered.clear();
        // The room of a large message is not kept for as long as the connection lasts.
        gathered.shrink_to(TRUST_BYTES);
    }
    output.stream.shutdown().await
}

async fn put_frame(output: &mut Output, gathered: &mut Vec<u8>, frame: Frame) -> io::Result<()> {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..4].copy_from_slice(&MAGIC);
    prefix[4..8].copy_from_slice(&(frame.head.len() as u32).to_le_bytes());
    prefix[8..12].copy_from_slice(&(frame.tail.len() as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), &frame.head);
    prefix[12..].copy_from_slice(&crc.to_le_bytes());
    gathered.extend_from_slice(&prefix);
    gathered.extend_from_slice(&frame.head);
    let total = PREFIX_BYTES + frame.head.len() + frame.tail.len();
    output.host.counters().sent(total as u64);
    if frame.tail.len() <= GATHER_BYTES / 4 {
        gathered.extend_from_slice(&frame.tail);
        return Ok(());
    }
    output.write_all(gathered).await?;
    gathered.clear();
    output.write_all(&frame.tail).await
}

/// Reads frames.
pub struct Receiver {
    stream: BufReader<OwnedReadHalf>,
    counters: Rc<NetCounters>,
}

impl Receiver {
    pub(crate) async fn recv<M: Message>(&mut self) -> io::Result<Option<M>> {
        let mut prefix = [0; PREFIX_BYTES];
        if self.stream.read(&mut prefix[..1]).await? == 0 {
            return Ok(None);
        }
        self.stream.read_exact(&mut prefix[1..]).await?;
        let word = |at: usize| {
            u32::from_le_bytes(prefix[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let (head_len, tail_len) = (word(4), word(8));
        if prefix[..4] != MAGIC || head_len > MAX_HEAD_BYTES || tail_len > MAX_TAIL_BYTES {
            return Err(bad("the peer does not speak this protocol"));
        }
        let head = self.read_bytes(head_len).await?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), &head);
        if crc as usize != word(12) {
            return Err(bad("a message was damaged on the way"));
        }
        let tail = self.read_bytes(tail_len).await?;
        let total = PREFIX_BYTES + head_len + tail_len;
        self.counters.received(total as u64);
        M::decode(&head, tail).map(Some)
    }

    async fn read_bytes(&mut self, len: usize) -> io::Result<Bytes> {
        let mut buffer = BytesMut::with_capacity(len.min(TRUST_BYTES));
        while buffer.len() < len {
            let missing = len - buffer.len();
            if buffer.capacity() == buffer.len() {
                buffer.reserve(missing.min(TRUST_BYTES));
            }
            let mut part = (&mut self.stream).take(missing as u64);
            if part.read_buf(&mut buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(buffer.freeze())
    }
}

fn bad(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn framed<M: Message>(stream: TcpStream, host: &Rc<Host>) -> io::Result<(Sender<M>, Receiver)> {
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    let (frames, queue) = mpsc::channel(QUEUED_MESSAGES);
    let counters = host.counters().clone();
    // The task ends by itself when the last sender is dropped, or the connection breaks; the receiver then
    // sees the break too.
    let output = Output { stream: write, host: host.clone(), patience: OUTPUT_PATIENCE };
    tokio::task::spawn_local(write_frames(output, queue));
    let stream = BufReader::with_capacity(16 << 10, read);
    Ok((Sender { frames, message: PhantomData }, Receiver { stream, counters }))
}

/// Accepts TCP connections.
pub struct Listener {
    listener: TcpListener,
    address: String,
    host: Rc<Host>,
}

impl Listener {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) async fn accept<M: Message>(&mut self) -> io::Result<(Sender<M>, Receiver)> {
        let (stream, _) = self.listener.accept().await?;
        framed(stream, &self.host)
    }
}

pub(crate) async fn listen(host: &Rc<Host>, address: &str) -> io::Result<Listener> {
    let listener = TcpListener::bind(address).await.map_err(|e| tried("listen on", address, &e))?;
    let address = listener.local_addr()?.to_string();
    Ok(Listener { listener, address, host: host.clone() })
}

pub(crate) async fn connect<M: Message>(
    host: &Rc<Host>,
    address: &str,
) -> io::Result<(Sender<M>, Receiver)> {
    let stream = TcpStream::connect(address).await.map_err(|e| tried("connect to", address, &e))?;
    framed(stream, host)
}

pub(super) fn tried(what: &str, address: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Arm;

    #[test]
    fn a_peer_that_takes_nothing_is_given_up() {
        crate::real_world::run(7, async |env| {
            let Arm::Real(host) = &env.arm else { unreachable!("it is the real world") };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let deaf = listener.accept().await.unwrap();
            let (_, write) = stream.into_split();
            let patience = Duration::from_millis(50);
            let (frames, queue) = mpsc::channel(QUEUED_MESSAGES);
            let output = Output { stream: write, host: host.clone(), patience };
            let writing = tokio::task::spawn_local(write_frames(output, queue));
            let frame = || Frame { head: Vec::new(), tail: vec![0; 1 << 20].into() };
            let talks = async { while frames.send(frame()).await.is_ok() {} };
            env.timeout(Duration::from_secs(60), talks).await.expect("it is given up");
            let error = writing.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
            drop(deaf);
        });
    }
}
