//! A proxy between a producer and a consumer, as a cluster manager runs one for each connection.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use world::{Env, LocalFuture, Task, Time, Work};

use crate::Error;
use crate::client::Client;
use crate::codec::{
    Body, EndReason, Kind, OPEN_PRODUCER, Opcode, Packet, Request, Response, Status,
};
use crate::wire::{Incoming, Outgoing, PEER_PATIENCE, Wire};

/// Bytes that the decoding path reads at a time, as `ns_server` sets its sockets.
const SOCKET_BYTES: usize = 64 << 10;
/// Bytes that the plain path passes on together.
const FORWARD_BYTES: usize = 256 << 10;
/// Requests of the manager itself have opaques from here on; those of consumers stay below.
const OWN_OPAQUES: u32 = 0x7000_0000;
/// A copy stands still after so long without an item, or without an answer of the consumer; both peers may be alive.
pub(super) const STILL_AFTER: Duration = Duration::from_secs(600);

/// How packets are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Every packet is decoded and passed on on its own, as by `ns_server`'s proxy: `rebalance`.
    Decoding,
    /// Bytes are passed on as they arrive: `data-copy`.
    Plain,
}

/// What a bridge passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeStats {
    /// Packets from the producer.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What the manager knows of a bridge while it runs.
#[derive(Default)]
struct Seen {
    stats: Cell<BridgeStats>,
    /// When the last item came from the producer.
    last_item: Cell<Time>,
    /// Streams that ended, and why.
    ended: RefCell<BTreeMap<u16, EndReason>>,
    /// The last answer to a request of the manager, which makes one at a time.
    answer: Cell<Option<(u32, Result<Status, u16>)>>,
    failure: RefCell<Option<Error>>,
    changed: Notify,
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// A connection to a producer and one to a consumer, joined: vbuckets are copied over it.
pub struct Bridge {
    env: Env,
    commands: mpsc::UnboundedSender<Packet>,
    seen: Rc<Seen>,
    next_opaque: u32,
    _tasks: [Task<()>; 2],
}

impl Bridge {
    /// Opens both connections under a name, and joins them.
    pub(super) fn open<'a>(
        env: &'a Env,
        mut source: Client,
        mut destination: Client,
        name: &'a str,
        path: Path,
    ) -> LocalFuture<'a, Result<Bridge>> {
        Box::pin(async move {
            let open = |flags| Body::Open {
                flags,
                name: name.to_owned().into(),
                value: bytes::Bytes::new(),
            };
            source.require(0, open(OPEN_PRODUCER)).await?;
            destination.require(0, open(0)).await?;
            let (source, destination) = (source.into_wire(), destination.into_wire());
            let (commands, asked) = mpsc::unbounded_channel();
            let seen = Rc::<Seen>::default();
            let Wire { incoming, outgoing } = source;
            let incoming = match path {
                Path::Decoding => incoming.with_read_bytes(SOCKET_BYTES),
                Path::Plain => incoming,
            };
            let out =
                pass_items(env.clone(), incoming, destination.outgoing, asked, path, seen.clone());
            let back = pass_answers(env.clone(), destination.incoming, outgoing, seen.clone());
            let tasks = [env.spawn("passes items on", out), env.spawn("passes answers back", back)];
            let (env, next_opaque) = (env.clone(), OWN_OPAQUES);
            Ok(Bridge { env, commands, seen, next_opaque, _tasks: tasks })
        })
    }

    /// What was passed on so far.
    pub fn stats(&self) -> BridgeStats {
        self.seen.stats.get()
    }

    /// When it passed the last item on; long ago if it has passed on none.
    pub(super) fn last_item(&self) -> Time {
        self.seen.last_item.get()
    }

    /// Asks the consumer, and waits for its answer, which may take as long as a rollback does.
    pub(super) async fn ask(&mut self, vb: u16, body: Body) -> Result<()> {
        self.next_opaque += 1;
        let opaque = self.next_opaque;
        let what = body.opcode().name();
        // If the task is gone, its failure is the error to report.
        let _ = self.commands.send(Request::new(opaque, vb, body).packet());
        let answered = self.until(|seen| seen.answer.get().filter(|(of, _)| *of == opaque));
        let answered = self.env.timeout(STILL_AFTER, answered).await;
        let nothing = |_| {
            let found = format!("nothing for {} s", STILL_AFTER.as_secs());
            Err(Error::unexpected("the consumer", what, found))
        };
        match answered.unwrap_or_else(nothing)?.1 {
            Ok(Status::Success) => Ok(()),
            status => {
                let what = format!("{what} of vbucket {vb}");
                Err(Error::refused("the consumer", what, status, None))
            }
        }
    }

    /// Waits until the stream of a vbucket has ended.
    pub(super) async fn ended(&self, vb: u16) -> Result<EndReason> {
        self.until(|seen| seen.ended.borrow_mut().remove(&vb)).await
    }

    /// Waits until one of its connections fails or one of its streams ends.
    pub async fn failure(&self) -> Error {
        match self.until(|seen| seen.ended.borrow_mut().pop_first()).await {
            Err(failure) => failure,
            Ok((vb, reason)) => {
                let found = format!("the end of that of vbucket {vb}: {reason}");
                Error::unexpected("the producer", "a stream", found)
            }
        }
    }

    async fn until<T>(&self, look: impl Fn(&Seen) -> Option<T>) -> Result<T> {
        loop {
            let changed = self.seen.changed.notified();
            if let Some(found) = look(&self.seen) {
                return Ok(found);
            }
            if let Some(failure) = self.seen.failure.borrow_mut().take() {
                return Err(failure);
            }
            changed.await;
        }
    }
}

impl Seen {
    fn fail(&self, ended: Result<()>, when: &'static str, address: &str) {
        let closed = || Error::Closed { address: address.to_owned(), when };
        let failure = ended.err().unwrap_or_else(closed);
        self.failure.borrow_mut().get_or_insert(failure);
        self.changed.notify_waiters();
        // Later callers find it, too.
        self.changed.notify_one();
    }
}

/// From the producer to the consumer, with the manager's requests in between.
async fn pass_items(
    env: Env,
    mut from: Incoming,
    mut to: Outgoing,
    mut asked: mpsc::UnboundedReceiver<Packet>,
    path: Path,
    seen: Rc<Seen>,
) {
    let address = from.address().to_owned();
    let passing = async {
        loop {
            let packet = tokio::select! {
                biased;
                // The consumer has had it send NOOPs.
                packet = env.timeout(PEER_PATIENCE, from.next()) => {
                    packet.unwrap_or_else(|_| Err(Error::silent(&address, PEER_PATIENCE)))?
                }
                command = asked.recv() => {
                    let Some(command) = command else { return Ok(()) };
                    to.put(command)?;
                    to.flush_in_time(&env).await?;
                    continue;
                }
            };
            let Some(packet) = packet else { return Ok(()) };
            match path {
                Path::Decoding => decode_and_pass(&env, packet, &mut to, &seen).await?,
                Path::Plain => {
                    let mut next = Some(packet);
                    while let Some(packet) = next.take() {
                        note(&env, &packet, &seen);
                        to.put(packet)?;
                        if to.gathered_bytes() < FORWARD_BYTES {
                            next = from.buffered()?;
                        }
                    }
                    env.work(Work::Copy { bytes: to.gathered_bytes() as u64 }, || ()).await;
                    to.flush_in_time(&env).await?;
                }
            }
        }
    };
    let ended: Result<()> = passing.await;
    seen.fail(ended, "while it was streaming", &address);
}

/// Decodes one packet and passes it on.
async fn decode_and_pass(env: &Env, packet: Packet, to: &mut Outgoing, seen: &Seen) -> Result<()> {
    note(env, &packet, seen);
    let wrong = |source| Error::Protocol { address: "the producer".to_owned(), source };
    let again = match packet.kind {
        Kind::Request => Request::parse(packet).map_err(wrong)?.packet(),
        Kind::Response => Response::parse(packet).map_err(wrong)?.packet(),
    };
    env.work(Work::RelayPackets { packets: 1 }, || ()).await;
    to.put(again)?;
    to.flush_in_time(env).await
}

fn note(env: &Env, packet: &Packet, seen: &Seen) {
    let mut stats = seen.stats.get();
    stats.packets += 1;
    stats.bytes += packet.wire_bytes() as u64;
    seen.stats.set(stats);
    if packet.kind == Kind::Response {
        return;
    }
    if Opcode::of(packet.opcode).is_some_and(Opcode::is_item) {
        seen.last_item.set(env.now());
    }
    if packet.opcode == Opcode::StreamEnd.number() {
        let vb = packet.vbucket_or_status;
        if let Ok(Request { body: Body::StreamEnd { reason }, .. }) = Request::parse(packet.clone())
        {
            seen.ended.borrow_mut().insert(vb, reason);
            seen.changed.notify_waiters();
        }
    }
}

/// From the consumer to the producer, except for answers to the manager.
async fn pass_answers(env: Env, mut from: Incoming, mut to: Outgoing, seen: Rc<Seen>) {
    let address = from.address().to_owned();
    let passing = async {
        while let Some(packet) = from.next().await? {
            let own = packet.kind == Kind::Response
                && packet.opaque >= OWN_OPAQUES
                && matches!(
                    Opcode::of(packet.opcode),
                    Some(Opcode::AddStream | Opcode::CloseStream)
                );
            if own {
                let number = packet.vbucket_or_status;
                let status = Status::of(number).ok_or(number);
                seen.answer.set(Some((packet.opaque, status)));
                seen.changed.notify_waiters();
                continue;
            }
            if packet.kind == Kind::Request && packet.opcode == Opcode::CloseStream.number() {
                // The manager wanted it so, or the consumer's vbucket takes no stream any more.
                seen.ended.borrow_mut().insert(packet.vbucket_or_status, EndReason::Closed);
                seen.changed.notify_waiters();
            }
            to.put(packet)?;
            to.flush_in_time(&env).await?;
        }
        Ok(())
    };
    let ended: Result<()> = passing.await;
    seen.fail(ended, "while it was taking items in", &address);
}
