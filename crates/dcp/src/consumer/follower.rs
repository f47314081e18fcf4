//! A consumer that drives its own connection to a producer.

use world::{Env, LocalFuture};

use super::{Consumer, Event, NOOP_INTERVAL};
use crate::client::Client;
use crate::codec::{Body, OPEN_PRODUCER, Packet, Status};
use crate::wire::{Incoming, Outgoing};
use crate::{Error, Result};

/// The most packets that are handled together.
const BATCH_PACKETS: usize = 1024;

/// A connection for streams.
pub struct Follower {
    env: Env,
    consumer: Consumer,
    incoming: Incoming,
    out: Outgoing,
}

impl Follower {
    /// Opens a connection under a name, with a window for flow control; 0 is without. Fails if the producer refuses the
    /// connection or the window: without one it would send too much.
    pub fn open<'a>(
        env: &'a Env,
        mut client: Client,
        name: &'a str,
        mut consumer: Consumer,
        window_bytes: u32,
    ) -> LocalFuture<'a, Result<Follower>> {
        Box::pin(async move {
            let name = name.to_owned().into();
            let body = Body::Open { flags: OPEN_PRODUCER, name, value: bytes::Bytes::new() };
            client.require(0, body).await?;
            for control in consumer.controls(window_bytes) {
                let Body::Control { name, .. } = &control.body else { continue };
                let vital = name.as_ref() == b"connection_buffer_size";
                let answered = client.ask(0, control.body).await?;
                if vital && !answered.is(Status::Success) {
                    let what = format!("a window of {window_bytes} bytes");
                    let hint = Some("a producer without flow control would send without end");
                    return Err(Error::refused(client.address(), what, answered.status, hint));
                }
            }
            let wire = client.into_wire();
            let (incoming, out) = (wire.incoming, wire.outgoing);
            Ok(Follower { env: env.clone(), consumer, incoming, out })
        })
    }

    /// Waits until what has come would have come at the rate; not at all without one.
    pub(crate) async fn wait_for_rate(&self) {
        if let Some(due) = self.consumer.cap_due() {
            self.env.sleep_until(due).await;
        }
    }

    /// The consumer.
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.consumer.event()
    }

    /// Requests a stream of a vbucket, from its position on. Fails if there is one, or the vbucket takes none.
    pub fn add_stream(&mut self, vb: u16, flags: u32) -> Result<()> {
        let request = self.consumer.add_stream(vb, flags, None);
        let request = request.map_err(|status| Error::Refused { vbucket: vb, status })?;
        self.out.put(request.packet())
    }

    /// Sends what is due and handles the next packets; answers the events. Dropping the future while it waits is
    /// allowed only if the connection is dropped, too. Fails if the connection breaks or the producer violates the
    /// protocol.
    pub async fn step(&mut self) -> Result<Option<Event>> {
        if let Some(event) = self.consumer.event() {
            return Ok(Some(event));
        }
        let until = self.consumer.run_due(&mut self.out).await?;
        if let Err(error) = self.out.flush_in_time(&self.env).await {
            // What came before the producer was gone counts. One that reads nothing may send without end.
            let may_have_come = matches!(error, Error::Io { .. });
            return match self.env.timeout(NOOP_INTERVAL, self.incoming.next()).await {
                Ok(Ok(Some(packet))) if may_have_come => {
                    self.take(packet).await?;
                    Ok(self.consumer.event())
                }
                _ => Err(error),
            };
        }
        let first = {
            let (env, incoming) = (&self.env, &mut self.incoming);
            tokio::select! {
                biased;
                packet = incoming.next() => Some(packet?),
                () = env.sleep_until_due(until) => None,
            }
        };
        match first {
            None => return Ok(None),
            Some(None) => {
                let address = self.incoming.address().to_owned();
                return Err(Error::Closed { address, when: "in the middle of streams" });
            }
            Some(Some(packet)) => self.take(packet).await?,
        }
        Ok(self.consumer.event())
    }

    async fn take(&mut self, first: Packet) -> Result<()> {
        let mut packets = vec![first];
        while packets.len() < BATCH_PACKETS
            && let Some(packet) = self.incoming.buffered()?
        {
            packets.push(packet);
        }
        self.consumer.take(packets, &mut self.out).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::codec::{Answer, EndReason, FailoverEntry, Kind, Opcode, Request, Response};
    use crate::consumer::{ConsumerKind, Counts, Sink};
    use crate::wire::{PacketListener, Wire};

    /// A follower, and what its producer has.
    async fn joined(env: &Env) -> (Follower, Wire) {
        let mut listener = PacketListener::bind(env, &env.any_address()).await.unwrap();
        let address = listener.address().to_owned();
        let (wire, producer) = tokio::join!(Wire::connect(env, &address, None), listener.accept());
        let Wire { incoming, outgoing: out } = wire.unwrap();
        let consumer = Consumer::new(env, ConsumerKind::Fast, Sink::Count(Counts::default()), 0);
        (Follower { env: env.clone(), consumer, incoming, out }, producer.unwrap())
    }

    #[test]
    fn a_producer_that_takes_no_answers_is_left() {
        world::virtual_world::run(7, async |env| {
            let (mut follower, _producer) = joined(&env).await;
            // More than finds room on the way: what is left waits as answers would.
            let fill = async {
                loop {
                    let value = vec![0_u8; 1 << 20].into();
                    let packet = Packet { value, ..Packet::new(Kind::Request, 0) };
                    follower.out.put(packet).unwrap();
                    follower.out.flush().await.unwrap();
                }
            };
            assert!(env.timeout(Duration::from_secs(1), fill).await.is_err());
            let left = env.timeout(Duration::from_secs(3600), follower.step()).await;
            let error = left.expect("it waits for ever").unwrap_err();
            assert!(error.to_string().contains("taken for gone"), "{error}");
        });
    }

    #[test]
    fn what_came_before_the_producer_was_gone_counts() {
        world::virtual_world::run(7, async |env| {
            let (mut follower, mut producer) = joined(&env).await;
            follower.add_stream(0, 0).unwrap();
            let log = Answer::FailoverLog(vec![FailoverEntry { uuid: 5, seqno: 0 }]);
            let granted = Response::new(Opcode::StreamRequest, 1, Status::Success, log);
            let reason = EndReason::Ok;
            let ended = Request::new(1, 0, Body::StreamEnd { reason });
            for packet in [granted.packet(), ended.packet()] {
                producer.outgoing.put(packet).unwrap();
                producer.outgoing.flush().await.unwrap();
            }
            drop(producer);
            let opened = Event::Opened { vb: 0, rollbacks: 0 };
            assert_eq!(follower.step().await.unwrap(), Some(opened));
            assert_eq!(follower.step().await.unwrap(), Some(Event::Ended { vb: 0, reason }));
            assert!(follower.step().await.is_err());
        });
    }
}
