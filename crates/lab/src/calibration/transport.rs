//! Messages between two threads over a real connection on loopback: what each side's core does for it.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use engine::transport::{Envelope, Request, Response, SourcePhases, WireChunk};
use store::Chunk;
use world::{Connection, Env};

use super::clock::thread_time;
use super::measurement::{Measurement, failed, named};
use crate::error::Result;

/// Questions and answers in a lap.
const QUESTIONS: u64 = 10_000;
const CHUNKS: u64 = 400;
const CHUNK_BYTES: usize = 1 << 20;

/// What a side spent on small messages and on chunks.
struct Spent {
    questions: Duration,
    chunks: Duration,
}

/// Measures the cost of a message and of its bytes.
pub(super) fn measure(laps: u32) -> Result<Vec<Measurement>> {
    let mut message = named(
        "cores.message",
        "a question and its answer over loopback, one after another: a quarter of both sides' core time",
    );
    let mut send =
        named("cores.send_bytes_per_s", "chunks of 1 MiB over loopback, the sending thread");
    let mut receive = named("cores.receive_bytes_per_s", "the same chunks, the receiving thread");
    for _ in 0..laps {
        let (sender, receiver) = exchange()?;
        // Either side sends one message and receives one for each question.
        let both = (sender.questions + receiver.questions).as_secs_f64();
        let a_message = both / (4 * QUESTIONS) as f64;
        message.laps.push(a_message);
        let rate = |spent: Duration| {
            let fixed = a_message * CHUNKS as f64;
            let for_bytes = (spent.as_secs_f64() - fixed).max(spent.as_secs_f64() / 10.0);
            (CHUNKS as usize * CHUNK_BYTES) as f64 / for_bytes
        };
        send.laps.push(rate(sender.chunks));
        receive.laps.push(rate(receiver.chunks));
    }
    Ok(vec![message, send, receive])
}

/// One lap; what the sending side spent, and the receiving one.
fn exchange() -> Result<(Spent, Spent)> {
    let what = |error| failed("exchange messages over loopback", error);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            world::real_world::run(1, async |env: Env| {
                let mut listener = env.listen::<Envelope>(&env.any_address()).await?;
                let _ = tell.send(listener.address().to_owned());
                receive(listener.accept().await?).await
            })
        });
        // Without an address the listener has failed; its error is told below.
        let sent = told.recv().map(|address| {
            world::real_world::run(2, async |env: Env| send(env.connect(&address).await?).await)
        });
        let received = receiving.join().map_err(|_| what(panicked()))?.map_err(what)?;
        let sent = sent.map_err(|_| what(panicked()))?.map_err(what)?;
        Ok((sent, received))
    })
}

fn panicked() -> std::io::Error {
    std::io::Error::other("the other side has ended")
}

async fn send(mut connection: Connection<Envelope>) -> std::io::Result<Spent> {
    let began = thread_time();
    for n in 0..QUESTIONS {
        connection.sender.send(Envelope::Request(n, Request::Ping)).await?;
        connection.receiver.recv().await?.ok_or_else(panicked)?;
    }
    let questions = thread_time() - began;
    let bytes = Bytes::from(vec![0x5a; CHUNK_BYTES]);
    let began = thread_time();
    for n in 0..CHUNKS {
        let chunk = WireChunk {
            chunk: Chunk::Bytes(bytes.clone()),
            crc32c: 0,
            plain_len: None,
            wire_len: bytes.len() as u64,
            phases: SourcePhases::default(),
            pressure: false,
        };
        let answer = Envelope::Response(n, Ok(Response::Chunk(Box::new(chunk))));
        connection.sender.send(answer).await?;
    }
    // The last chunk is on its way when the other side says that it has it.
    connection.receiver.recv().await?.ok_or_else(panicked)?;
    Ok(Spent { questions, chunks: thread_time() - began })
}

async fn receive(mut connection: Connection<Envelope>) -> std::io::Result<Spent> {
    let began = thread_time();
    for _ in 0..QUESTIONS {
        let question = connection.receiver.recv().await?.ok_or_else(panicked)?;
        let Envelope::Request(n, _) = question else { return Err(panicked()) };
        connection.sender.send(Envelope::Response(n, Ok(Response::Done))).await?;
    }
    let questions = thread_time() - began;
    let began = thread_time();
    for _ in 0..CHUNKS {
        connection.receiver.recv().await?.ok_or_else(panicked)?;
    }
    let chunks = thread_time() - began;
    connection.sender.send(Envelope::Request(0, Request::Ping)).await?;
    // Until the other side has read that and goes.
    let _ = connection.receiver.recv().await;
    Ok(Spent { questions, chunks })
}
