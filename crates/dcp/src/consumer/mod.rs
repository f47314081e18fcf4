//! The consumer's side of a connection: streams into a bucket, or counted and discarded.
//!
//! | kind | does |
//! | --- | --- |
//! | [`ConsumerKind::Mainstream`] | applies message by message, as `kv_engine` does |
//! | [`ConsumerKind::Batching`] | applies the messages of one read together, vbucket by vbucket |
//! | [`ConsumerKind::Fast`] | a measuring device: counts mutations, reports them as persisted, and keeps nothing |
//!
//! A server whose consumers are fast keeps no failover log either: once a stream was closed, the producer makes the
//! next one of that vbucket roll back.

mod counts;
mod follower;
mod negotiation;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use world::{Env, Time, Work};

use crate::bucket::{Bucket, ItemData};
use crate::codec::{
    Answer, Body, EndReason, Kind, Opcode, Packet, Request, Response, STREAM_TAKEOVER, Status,
};
use crate::policy::{AckPolicy, ConsumerLiveness, Liveness, RateCap, ReplicationPressure};
use crate::wire::Outgoing;
use crate::{Error, Result};

pub use counts::{Count, Counts};
pub use follower::Follower;
use stream::{Stream, item_of};

/// How often a consumer checks whether its bucket has memory again.
const MEMORY_CHECK_EVERY: Duration = Duration::from_millis(10);
/// A consumer that keeps to a rate acknowledges no more often.
const ACK_EVERY: Duration = Duration::from_millis(1);
/// The interval of NOOPs that a consumer asks for.
pub const NOOP_INTERVAL: Duration = Duration::from_secs(20);

/// How a consumer works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsumerKind {
    /// Message by message.
    #[default]
    Mainstream,
    /// The messages of one read together.
    Batching,
    /// Counts only: a measuring device.
    Fast,
}

/// Where a consumer puts items.
#[derive(Clone)]
pub enum Sink {
    /// Into a bucket.
    Bucket(Bucket),
    /// Nowhere; they are counted.
    Count(Counts),
}

/// Something that the caller of a consumer may want to know.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A stream was granted, after so many rollbacks.
    Opened {
        vb: u16,
        /// How often the consumer had to roll back first.
        rollbacks: u32,
    },
    /// A stream was refused.
    Refused { vb: u16, status: String },
    /// A stream ended.
    Ended { vb: u16, reason: EndReason },
}

/// What a consumer received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerStats {
    /// Mutations, deletions and expirations.
    pub items: u64,
    /// Bytes of all messages that count for flow control.
    pub bytes: u64,
    /// Bytes acknowledged.
    pub acknowledged_bytes: u64,
    /// Messages that are buffered because memory is short.
    pub buffered_items: u64,
    /// Times that it had to wait for memory.
    pub stops: u64,
    /// How long it waited for memory, without a stop that still lasts.
    pub stopped: Duration,
    /// The longest stop.
    pub longest_stop: Duration,
    /// Rollbacks.
    pub rollbacks: u64,
}

impl ConsumerStats {
    /// The sum of both; the longest stop is the longer of the two.
    #[must_use]
    pub fn and(self, other: &ConsumerStats) -> ConsumerStats {
        ConsumerStats {
            items: self.items + other.items,
            bytes: self.bytes + other.bytes,
            acknowledged_bytes: self.acknowledged_bytes + other.acknowledged_bytes,
            buffered_items: self.buffered_items + other.buffered_items,
            stops: self.stops + other.stops,
            stopped: self.stopped + other.stopped,
            longest_stop: self.longest_stop.max(other.longest_stop),
            rollbacks: self.rollbacks + other.rollbacks,
        }
    }
}

/// The consumer's side of a connection.
pub struct Consumer {
    env: Env,
    kind: ConsumerKind,
    sink: Sink,
    acks: AckPolicy,
    liveness: Option<ConsumerLiveness>,
    streams: BTreeMap<u16, Stream>,
    next_opaque: u32,
    /// Messages that arrived while memory was short.
    buffered: VecDeque<Request>,
    /// Bytes that were applied while memory was short, or that came earlier than the rate has it.
    withheld_bytes: usize,
    cap: Option<RateCap>,
    /// Applied items whose core time has not been charged yet.
    unpaid_items: u64,
    /// Since when it waits for memory.
    stopped: Option<Time>,
    events: VecDeque<Event>,
    stats: ConsumerStats,
}

impl Consumer {
    /// A consumer with a window of so many bytes; 0 is without flow control.
    pub fn new(env: &Env, kind: ConsumerKind, sink: Sink, window_bytes: u32) -> Consumer {
        Consumer {
            env: env.clone(),
            kind,
            sink,
            acks: AckPolicy::new(env.now(), window_bytes),
            liveness: None,
            streams: BTreeMap::new(),
            next_opaque: 0,
            buffered: VecDeque::new(),
            withheld_bytes: 0,
            cap: None,
            unpaid_items: 0,
            stopped: None,
            events: VecDeque::new(),
            stats: ConsumerStats::default(),
        }
    }

    /// What it received.
    pub fn stats(&self) -> ConsumerStats {
        ConsumerStats { buffered_items: self.buffered.len() as u64, ..self.stats }
    }

    /// Limits the rate from now on. What comes is taken at once, NOOPs too, and acknowledged late.
    pub(crate) fn cap(&mut self, rate_bytes_per_s: f64) {
        self.cap = Some(RateCap::new(self.env.now(), rate_bytes_per_s));
    }

    /// When what has come would have come at the rate; none without a rate.
    pub(crate) fn cap_due(&self) -> Option<Time> {
        self.cap.map(|cap| cap.due())
    }

    /// Vbuckets with a stream.
    pub fn streams(&self) -> impl Iterator<Item = u16> {
        self.streams.keys().copied()
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn opaque(&mut self) -> u32 {
        self.next_opaque += 1;
        self.next_opaque
    }

    /// The settings that it sends to its producer.
    pub fn controls(&mut self, window_bytes: u32) -> Vec<Request> {
        self.liveness = Some(ConsumerLiveness::new(self.env.now(), NOOP_INTERVAL));
        let window = window_bytes.to_string();
        let interval = NOOP_INTERVAL.as_secs().to_string();
        let settings = [
            ("connection_buffer_size", window.as_str()),
            ("enable_noop", "true"),
            ("set_noop_interval", interval.as_str()),
            ("enable_expiry_opcode", "true"),
        ];
        let settings = settings.map(|(name, value)| {
            let (name, value) = (name.to_owned().into(), value.to_owned().into());
            Request::new(self.opaque(), 0, Body::Control { name, value })
        });
        settings.into()
    }

    /// Handles the packets of one read; answers go to `out`. Fails if the producer violated the protocol: the
    /// connection has to end.
    pub async fn take(&mut self, packets: Vec<Packet>, out: &mut Outgoing) -> Result<()> {
        if let Some(liveness) = &mut self.liveness {
            liveness.heard(self.env.now());
        }
        // The caller has read the connection once.
        let work = Work::ReceivePackets { reads: 1, packets: packets.len() as u64 };
        self.env.work(work, || ()).await;
        // Consecutive items of one vbucket.
        let mut batch: (u16, Vec<ItemData>) = (0, Vec::new());
        for packet in packets {
            if packet.kind == Kind::Response {
                self.apply(&mut batch, out)?;
                let response = Response::parse(packet).map_err(|e| protocol(out, e))?;
                self.answered(response, out).await?;
                continue;
            }
            let bytes = packet.wire_bytes();
            let request = Request::parse(packet).map_err(|e| protocol(out, e))?;
            self.count(&request, bytes);
            self.check_window(out)?;
            let buffers = self.throttled() == Some(ReplicationPressure::Buffer);
            if buffers && !matches!(request.body, Body::Noop) {
                self.buffered.push_back(request);
                continue;
            }
            self.process(request, &mut batch, out)?;
        }
        self.apply(&mut batch, out)?;
        self.pay().await;
        self.acknowledge(out)
    }

    /// Charges the core time of applied items.
    async fn pay(&mut self) {
        let items = std::mem::take(&mut self.unpaid_items);
        if items > 0 {
            self.env.work(Work::ApplyItems { items }, || ()).await;
        }
    }

    fn count(&mut self, request: &Request, bytes: usize) {
        let vb = request.vbucket;
        let (mutation, deletion) = match request.body {
            Body::Mutation(_) => (1, 0),
            Body::Deletion(_) | Body::Expiration(_) => (0, 1),
            Body::Noop => return,
            _ => (0, 0),
        };
        self.stats.items += mutation + deletion;
        self.stats.bytes += bytes as u64;
        if let Sink::Count(counts) = &self.sink {
            counts.change(vb, |count| {
                count.mutations += mutation;
                count.deletions += deletion;
                count.bytes += bytes as u64;
            });
        }
        if let Some(cap) = &mut self.cap {
            cap.received(self.env.now(), bytes);
        }
        match self.throttled() {
            None if self.cap.is_none() => self.acks.processed(bytes),
            _ => self.withheld_bytes += bytes,
        }
    }

    /// What waits for memory has no bound but the window, and that none if the producer does not keep to it.
    fn check_window(&self, out: &Outgoing) -> Result<()> {
        match self.waits_for_memory() && self.acks.is_overrun(self.withheld_bytes) {
            true => {
                let found = format!("{} bytes, which nobody acknowledged", self.withheld_bytes);
                Err(Error::unexpected(out.address(), "a full window", found))
            }
            false => Ok(()),
        }
    }

    /// What the consumer has to do because memory is short; none if there is enough.
    fn throttled(&mut self) -> Option<ReplicationPressure> {
        let Sink::Bucket(bucket) = &self.sink else { return None };
        let short = bucket.throttles_replication() || !self.buffered.is_empty();
        match self.stopped {
            None if short => {
                self.stats.stops += 1;
                self.stopped = Some(self.env.now());
            }
            Some(since) if !short => {
                let took = self.env.now() - since;
                self.stats.stopped += took;
                self.stats.longest_stop = self.stats.longest_stop.max(took);
                self.stopped = None;
            }
            _ => {}
        }
        short.then_some(bucket.settings().memory.replication_pressure)
    }

    /// Whether what came waits because memory is short.
    pub(crate) fn waits_for_memory(&self) -> bool {
        self.stopped.is_some()
    }

    fn process(
        &mut self,
        request: Request,
        batch: &mut (u16, Vec<ItemData>),
        out: &mut Outgoing,
    ) -> Result<()> {
        let (vb, opaque) = (request.vbucket, request.opaque);
        if matches!(request.body, Body::Noop) {
            return answer(out, Opcode::Noop, opaque, Status::Success);
        }
        let is_item = request.body.opcode().is_item();
        if !is_item {
            self.apply(batch, out)?;
        }
        // Messages of a closed stream that were still on their way are dropped.
        if self.streams.get(&vb).is_none_or(|stream| stream.opaque != opaque) {
            return match request.body {
                Body::SetVbucketState { .. } => {
                    answer(out, Opcode::SetVbucketState, opaque, Status::NotFound)
                }
                _ => Ok(()),
            };
        }
        if !is_item {
            return self.process_other(vb, opaque, request.body, out);
        }
        let item = item_of(request);
        let whole = self.arrived(vb, item.by_seqno)?;
        if batch.0 != vb {
            self.apply(batch, out)?;
            batch.0 = vb;
        }
        batch.1.push(item);
        if whole || self.kind == ConsumerKind::Mainstream {
            self.apply(batch, out)?;
        }
        if whole {
            self.answer_marker(vb, out)?;
        }
        Ok(())
    }

    fn process_other(
        &mut self,
        vb: u16,
        opaque: u32,
        body: Body,
        out: &mut Outgoing,
    ) -> Result<()> {
        match body {
            Body::SnapshotMarker(marker) => {
                if let Some(stream) = self.streams.get_mut(&vb) {
                    let fits = stream.marker(marker);
                    fits.map_err(|source| Error::Stream { vbucket: vb, source })?;
                }
                let began = match &self.sink {
                    Sink::Bucket(bucket) => bucket.begin_snapshot(vb, marker),
                    Sink::Count(counts) => counts
                        .change(vb, |count| count.at.marker(marker))
                        .map_err(|source| Error::Stream { vbucket: vb, source }),
                };
                self.leave_if_refused(vb, began, out)?;
                self.answer_marker(vb, out)
            }
            Body::SetVbucketState { state } if self.takes_over(vb) => {
                let status = match &self.sink {
                    Sink::Bucket(bucket) => bucket.set_state(vb, state).err(),
                    Sink::Count(_) => None,
                };
                answer(out, Opcode::SetVbucketState, opaque, status.unwrap_or(Status::Success))
            }
            Body::StreamEnd { reason } => {
                self.streams.remove(&vb);
                self.events.push_back(Event::Ended { vb, reason });
                Ok(())
            }
            other => {
                let found = other.opcode().name().to_owned();
                Err(Error::unexpected(out.address(), "a stream", found))
            }
        }
    }

    fn takes_over(&self, vb: u16) -> bool {
        self.streams.get(&vb).is_some_and(|stream| stream.flags & STREAM_TAKEOVER != 0)
    }

    /// An item arrived; answers whether it completes its snapshot.
    fn arrived(&mut self, vb: u16, seqno: u64) -> Result<bool> {
        let wrong = |source| Error::Stream { vbucket: vb, source };
        if let Sink::Count(counts) = &self.sink {
            counts.change(vb, |count| count.at.item(seqno)).map_err(wrong)?;
        }
        match self.streams.get_mut(&vb) {
            Some(stream) => stream.item(seqno).map_err(wrong),
            None => Ok(false),
        }
    }

    /// Answers markers that asked for an answer, once a snapshot is whole.
    fn answer_marker(&mut self, vb: u16, out: &mut Outgoing) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&vb) else { return Ok(()) };
        for _ in 0..stream.owed_answers() {
            answer(out, Opcode::SnapshotMarker, stream.opaque, Status::Success)?;
        }
        Ok(())
    }

    fn apply(&mut self, batch: &mut (u16, Vec<ItemData>), out: &mut Outgoing) -> Result<()> {
        // The batch keeps its room for the next items.
        let (vb, items) = (batch.0, &mut batch.1);
        match &self.sink {
            Sink::Bucket(bucket) if !items.is_empty() => {
                self.unpaid_items += items.len() as u64;
                let applied = bucket.apply_all(vb, items.drain(..));
                self.leave_if_refused(vb, applied, out)
            }
            _ => {
                items.clear();
                Ok(())
            }
        }
    }

    /// A vbucket that has become active or dead, or is rolled back, takes no stream any more. Its own ends; the
    /// connection goes on with the others.
    fn leave_if_refused(&mut self, vb: u16, done: Result<()>, out: &mut Outgoing) -> Result<()> {
        if !matches!(done, Err(Error::Refused { .. })) {
            return done;
        }
        let Some(request) = self.close_stream(vb) else { return Ok(()) };
        self.events.push_back(Event::Ended { vb, reason: EndReason::State });
        out.put(request.packet())
    }

    /// Acknowledges bytes if that is due.
    fn acknowledge(&mut self, out: &mut Outgoing) -> Result<()> {
        if self.withheld_bytes > 0 && self.throttled().is_none() {
            let early = self.cap.map_or(0, |cap| cap.early_bytes(self.env.now()));
            let early = early.min(self.withheld_bytes);
            self.acks.processed(self.withheld_bytes - early);
            self.withheld_bytes = early;
        }
        while let Some(bytes) = self.acks.due(self.env.now()) {
            self.stats.acknowledged_bytes += u64::from(bytes);
            let opaque = self.opaque();
            out.put(Request::new(opaque, 0, Body::BufferAck { bytes }).packet())?;
        }
        Ok(())
    }

    /// Does what is due: buffered messages, acknowledgements. Returns when to come back; none if nothing is waited for.
    /// Fails if the producer is gone.
    pub async fn run_due(&mut self, out: &mut Outgoing) -> Result<Option<Time>> {
        let mut batch = (0, Vec::new());
        while let Sink::Bucket(bucket) = &self.sink
            && !bucket.throttles_replication()
            && let Some(request) = self.buffered.pop_front()
        {
            self.process(request, &mut batch, out)?;
            self.apply(&mut batch, out)?;
        }
        if let Sink::Bucket(bucket) = &self.sink
            && bucket.throttles_replication()
        {
            bucket.free_memory();
        }
        self.pay().await;
        self.acknowledge(out)?;
        let now = self.env.now();
        let mut next = self.acks.due_at().map(|at| at.max(now + MEMORY_CHECK_EVERY));
        if self.withheld_bytes > 0 || !self.buffered.is_empty() {
            let step = self.cap.map(|cap| cap.takes(self.acks.step_bytes().into()).max(ACK_EVERY));
            next = Some(now + step.unwrap_or(MEMORY_CHECK_EVERY));
        }
        match self.liveness.as_ref().map(|liveness| liveness.check(now)) {
            Some(Liveness::Gone) => Err(Error::silent(out.address(), 2 * NOOP_INTERVAL)),
            Some(Liveness::Wait(until)) => Ok(Some(next.map_or(until, |next| next.min(until)))),
            _ => Ok(next),
        }
    }
}

/// Answers with a status alone.
fn answer(out: &mut Outgoing, opcode: Opcode, opaque: u32, status: Status) -> Result<()> {
    out.put(Response::new(opcode, opaque, status, Answer::Empty).packet())
}

fn protocol(out: &Outgoing, source: crate::codec::DecodeError) -> Error {
    Error::Protocol { address: out.address().to_owned(), source }
}
