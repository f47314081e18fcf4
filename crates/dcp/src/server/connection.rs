//! One connection: packets in, packets out, timers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use world::{Time, Work};

use super::session::Session;
use super::shared::{ConnectionReport, NamedConnection, Shared, Side};
use crate::codec::{DecodeError, Kind, Packet, Response, Status};
use crate::consumer::{Consumer, NOOP_INTERVAL};
use crate::idle::{IdleTime, UnderWay};
use crate::policy::{Liveness, PausedReason};
use crate::producer::Producer;
use crate::wire::{Incoming, Outgoing, Wire};
use crate::{Error, Result};

/// Packets that are handled before the streams have their turn.
const BATCH_PACKETS: usize = 1024;
/// How long a peer may take to say who it is.
const AUTHENTICATION_PATIENCE: Duration = Duration::from_secs(60);
/// How long a peer that is turned away has for its first request.
const TURN_AWAY_PATIENCE: Duration = Duration::from_secs(1);
/// Answers are sent at the latest when so many bytes of them have gathered.
const GATHER_BYTES: usize = 256 << 10;

/// What a connection is used for, beside requests.
pub(super) enum Dcp {
    None,
    Producer(Box<Producer>),
    Consumer(Box<Consumer>),
}

/// One connection.
pub(super) struct Connection {
    pub shared: Rc<Shared>,
    pub id: u64,
    pub session: Session,
    /// By when the client has to be known; none once it was.
    known_by: Option<Time>,
    pub dcp: Dcp,
    /// The bucket and the name that it was opened with.
    pub name: Option<(String, String)>,
    /// Wakes it: there is more to send, or it has to close.
    pub notify: Rc<Notify>,
    pub close: Rc<Notify>,
    pub report: Rc<RefCell<ConnectionReport>>,
    pub out: Outgoing,
    /// There while a producer waits because its window is full, and that is counted.
    pub held_back: Option<UnderWay>,
}

/// What woke a connection.
enum Woken {
    Packet(Option<Packet>),
    Notified,
    Closed,
    Time,
}

/// A response that says no more than how it went.
pub(super) fn status_alone(opcode: u8, opaque: u32, status: Status) -> Packet {
    let vbucket_or_status = status.number();
    Packet { opaque, vbucket_or_status, ..Packet::new(Kind::Response, opcode) }
}

/// Answers the first request of a peer with EBUSY, and closes.
pub(super) async fn turn_away(shared: Rc<Shared>, wire: Wire) {
    let Wire { mut incoming, outgoing: mut out } = wire;
    incoming.limit_body(Session::default().max_body_bytes());
    let said = format!("{} was turned away: too many connections are open", out.address());
    *shared.last_error.borrow_mut() = Some(said);
    let answering = async {
        let asked = incoming.expect("before it was turned away").await?;
        out.put(status_alone(asked.opcode, asked.opaque, Status::Busy))?;
        out.flush().await
    };
    // It may be gone.
    let _ = shared.env.timeout(TURN_AWAY_PATIENCE, answering).await;
}

pub(super) async fn serve(shared: Rc<Shared>, id: u64, wire: Wire) {
    let Wire { incoming, outgoing } = wire;
    let connection = Connection {
        session: Session::default(),
        known_by: Some(shared.env.now() + AUTHENTICATION_PATIENCE),
        dcp: Dcp::None,
        name: None,
        notify: Rc::default(),
        close: Rc::default(),
        report: Rc::default(),
        out: outgoing,
        held_back: None,
        shared: shared.clone(),
        id,
    };
    if let Err(error) = connection.run(incoming).await {
        *shared.last_error.borrow_mut() = Some(error.to_string());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let mut named = self.shared.named.borrow_mut();
        if named.get(name).is_some_and(|NamedConnection { id, .. }| *id == self.id) {
            named.remove(name);
        }
    }
}

impl Connection {
    async fn run(mut self, mut incoming: Incoming) -> Result<()> {
        incoming.limit_body(self.session.max_body_bytes());
        let mut more = false;
        loop {
            let until = self.timers().await?;
            self.update_report();
            if let Err(error) = self.flush().await {
                if matches!((&error, &self.dcp), (Error::Io { .. }, Dcp::Consumer(_))) {
                    self.take_rest(&mut incoming).await;
                }
                return Err(error);
            }
            if !more {
                self.note_pause(true);
            }
            let woken = self.wait(&mut incoming, until, more).await;
            if !more {
                self.note_pause(false);
            }
            match woken {
                Ok(Woken::Packet(Some(packet))) => self.packets(packet, &mut incoming).await?,
                Ok(Woken::Packet(None) | Woken::Closed) => return Ok(()),
                Ok(Woken::Notified | Woken::Time) => {}
                Err(error) => return self.refuse(error).await,
            }
            if self.session.leaves {
                return self.flush().await;
            }
            more = match &mut self.dcp {
                Dcp::Producer(producer) => producer.pump(&mut self.out)?,
                _ => false,
            };
        }
    }

    /// What a producer sent before it was gone counts. One that takes nothing may send without end.
    async fn take_rest(&mut self, incoming: &mut Incoming) {
        let end = self.shared.env.now() + NOOP_INTERVAL;
        while self.shared.env.now() < end
            && let Ok(Woken::Packet(Some(packet))) = self.wait(incoming, Some(end), false).await
            && self.packets(packet, incoming).await.is_ok()
        {
            // The answers have nobody to go to.
            let _ = self.flush().await;
        }
    }

    /// What was gathered is sent, and a producer begins to wait, or goes on.
    fn note_pause(&mut self, begins: bool) {
        let Dcp::Producer(producer) = &self.dcp else { return };
        let (now, reason) = (self.shared.env.now(), producer.waits_for());
        let pauses = &mut self.report.borrow_mut().pauses;
        if begins {
            pauses.begin(now, reason)
        } else {
            pauses.end(now)
        }
        self.held_back = match begins && reason == PausedReason::BufferLogFull {
            true => self.shared.flow_control.borrow().as_ref().map(IdleTime::begin),
            false => None,
        };
    }

    /// Waits for whatever comes first; not at all where there is `more` to send.
    async fn wait(
        &mut self,
        incoming: &mut Incoming,
        until: Option<Time>,
        more: bool,
    ) -> Result<Woken> {
        let env = self.shared.env.clone();
        let (notify, close) = (self.notify.clone(), self.close.clone());
        tokio::select! {
            biased;
            () = close.notified() => Ok(Woken::Closed),
            packet = incoming.next() => packet.map(Woken::Packet),
            () = std::future::ready(()), if more => Ok(Woken::Notified),
            () = notify.notified() => Ok(Woken::Notified),
            () = env.sleep_until_due(until) => Ok(Woken::Time),
        }
    }

    /// Sends what has gathered; a peer that leaves it unread for too long counts as gone.
    async fn flush(&mut self) -> Result<()> {
        if self.out.gathered_bytes() == 0 {
            return Ok(());
        }
        let env = self.shared.env.clone();
        if let Dcp::Producer(producer) = &mut self.dcp {
            env.work(Work::SendPackets { packets: producer.unpaid_packets() }, || ()).await;
        }
        self.out.flush_in_time(&env).await
    }

    /// Does what is due, and answers when to come back.
    async fn timers(&mut self) -> Result<Option<Time>> {
        if self.session.is_authenticated() {
            self.known_by = None;
        }
        match &mut self.dcp {
            Dcp::None if self.known_by.is_some_and(|by| by <= self.shared.env.now()) => {
                Err(Error::silent(self.out.address(), AUTHENTICATION_PATIENCE))
            }
            Dcp::None => Ok(self.known_by),
            Dcp::Consumer(consumer) => consumer.run_due(&mut self.out).await,
            Dcp::Producer(producer) => loop {
                let slow = producer.end_slow_streams();
                match producer.check_liveness() {
                    None => return Ok(slow),
                    Some(Liveness::Wait(until)) => {
                        return Ok(Some(slow.map_or(until, |slow| slow.min(until))));
                    }
                    Some(Liveness::SendNoop) => {
                        let noop = producer.noop();
                        self.out.put(noop.packet())?;
                    }
                    Some(Liveness::Gone) => {
                        return Err(Error::Silent {
                            address: self.out.address().to_owned(),
                            silent_s: producer.noop_interval().as_secs(),
                        });
                    }
                }
            },
        }
    }

    /// Handles a packet and those that arrived with it.
    async fn packets(&mut self, first: Packet, incoming: &mut Incoming) -> Result<()> {
        let mut next = Some(first);
        let mut streamed = Vec::new();
        let mut handled = 0;
        let mut wrong = None;
        while let Some(packet) = next.take() {
            if self.is_streamed(&packet) {
                streamed.push(packet);
            } else {
                self.take_streamed(&mut streamed).await?;
                self.handle(packet).await?;
            }
            handled += 1;
            incoming.limit_body(self.session.max_body_bytes());
            if self.session.leaves || handled == BATCH_PACKETS {
                break;
            }
            if self.out.gathered_bytes() >= GATHER_BYTES {
                self.flush().await?;
            }
            match incoming.buffered() {
                Ok(packet) => next = packet,
                Err(error) => wrong = Some(error),
            }
        }
        self.take_streamed(&mut streamed).await?;
        match wrong {
            Some(error) => self.refuse(error).await,
            None => Ok(()),
        }
    }

    /// Whether a packet is for the consumer: an answer to it, or what its producer sends.
    fn is_streamed(&self, packet: &Packet) -> bool {
        use crate::codec::Opcode as Op;
        let sent = matches!(
            Op::of(packet.opcode),
            Some(
                Op::Mutation
                    | Op::Deletion
                    | Op::Expiration
                    | Op::SnapshotMarker
                    | Op::StreamEnd
                    | Op::SetVbucketState
                    | Op::Noop
            )
        );
        matches!(self.dcp, Dcp::Consumer(_)) && (packet.kind == Kind::Response || sent)
    }

    async fn take_streamed(&mut self, packets: &mut Vec<Packet>) -> Result<()> {
        let Dcp::Consumer(consumer) = &mut self.dcp else { return Ok(()) };
        if packets.is_empty() {
            return Ok(());
        }
        consumer.take(std::mem::take(packets), &mut self.out).await?;
        // Events of streams are not needed here: the client that asked for the streams has its answers.
        while consumer.event().is_some() {}
        Ok(())
    }

    async fn handle(&mut self, packet: Packet) -> Result<()> {
        if packet.kind == Kind::Response {
            return match (&mut self.dcp, Response::parse(packet)) {
                (Dcp::Producer(producer), Ok(response)) => producer.answered(&response),
                // An answer to nothing that was asked.
                (_, Ok(_)) => Ok(()),
                (_, Err(source)) => {
                    Err(Error::Protocol { address: self.out.address().to_owned(), source })
                }
            };
        }
        self.request(packet).await
    }

    /// The connection ends with an error. After a malformed packet the peer gets a status first, if the protocol has
    /// one.
    async fn refuse(&mut self, error: Error) -> Result<()> {
        if let Error::Protocol { source, .. } = &error {
            let status = match source {
                DecodeError::TooLarge { .. } => Status::TooBig,
                _ => Status::Invalid,
            };
            self.out.put(status_alone(0, 0, status))?;
            // The peer may be gone; the first error is the one to report.
            let _ = self.flush().await;
        }
        Err(error)
    }

    /// Updates the report of this connection.
    fn update_report(&self) {
        let mut report = self.report.borrow_mut();
        match &self.dcp {
            Dcp::None => {}
            Dcp::Producer(producer) => {
                report.side = Side::Producer(producer.stats(), *producer.window());
            }
            Dcp::Consumer(consumer) => {
                let streams = consumer.streams().count();
                report.side =
                    Side::Consumer(consumer.stats(), streams, consumer.waits_for_memory());
            }
        }
    }
}
