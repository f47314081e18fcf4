//! The producer's side of a connection: its streams in rotation, within its consumer's window.

mod backfill;
mod stream;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use world::{Env, Time};

use crate::bucket::Bucket;
use crate::codec::{
    Answer, Body, EndReason, OPEN_DELETE_TIMES, OPEN_NO_VALUE, Opcode, Request, Response,
    STREAM_ACTIVE_ONLY, STREAM_DISK_ONLY, STREAM_TAKEOVER, STREAM_TO_LATEST, Status, StreamRequest,
    VbucketState,
};
use crate::policy::{Liveness, PausedReason, ProducerLiveness, StartDecision, StreamStart, Window};
use crate::wire::Outgoing;
use crate::{Error, Result};
use backfill::Room;
use stream::{Context, Stream};

pub(crate) use stream::StreamReport;

/// Bytes that a connection gathers before it sends and reads again.
const ROUND_BYTES: usize = 256 << 10;
/// Bytes that a stream sends before the next stream has its turn.
const TURN_BYTES: usize = 64 << 10;
/// Streams that hold files or memory for a consumer whose window is full end after so long without an acknowledgement;
/// a takeover that waits for an answer, after so long without one.
const SLOW_AFTER: Duration = Duration::from_secs(600);
/// What a STREAM_REQ may ask for.
const STREAM_FLAGS: u32 =
    STREAM_TAKEOVER | STREAM_DISK_ONLY | STREAM_TO_LATEST | STREAM_ACTIVE_ONLY;
/// The default of `set_noop_interval`.
const NOOP_INTERVAL: Duration = Duration::from_secs(180);

/// What a producer sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerStats {
    /// Items.
    pub items: u64,
    /// Bytes of all messages, headers too.
    pub bytes: u64,
    /// Bytes that the consumer acknowledged.
    pub acknowledged_bytes: u64,
    /// Rounds that ended because the consumer's window was full.
    pub window_full: u64,
    /// Whether backfills have as much in memory as they may have.
    pub backfill_full: bool,
}

/// How far streams are, by vbucket. Clones share it.
pub(crate) type StreamReports = Rc<RefCell<BTreeMap<u16, StreamReport>>>;

/// The producer's side of a connection.
pub(crate) struct Producer {
    env: Env,
    context: Context,
    window: Window,
    /// Since when its window is full and the consumer has acknowledged nothing.
    full_since: Option<Time>,
    noops: Option<ProducerLiveness>,
    noop_interval: Duration,
    streams: BTreeMap<u16, Stream>,
    /// The vbucket that was served last.
    hand: u16,
    end_on_close: bool,
    next_opaque: u32,
    /// How far each stream is.
    pub reports: StreamReports,
    stats: ProducerStats,
    /// Packets whose core time has not been charged yet.
    unpaid_packets: u64,
}

impl Producer {
    pub fn new(env: &Env, bucket: Bucket, open_flags: u32, notify: Rc<Notify>) -> Producer {
        let context = Context {
            bucket,
            notify,
            room: Room::new(),
            expiry_opcode: false,
            delete_times: open_flags & OPEN_DELETE_TIMES != 0,
            no_value: open_flags & OPEN_NO_VALUE != 0,
        };
        Producer {
            env: env.clone(),
            context,
            window: Window::default(),
            full_since: None,
            noops: None,
            noop_interval: NOOP_INTERVAL,
            streams: BTreeMap::new(),
            hand: 0,
            end_on_close: false,
            next_opaque: 0x1000_0000,
            reports: StreamReports::default(),
            stats: ProducerStats::default(),
            unpaid_packets: 0,
        }
    }

    /// What was sent.
    pub fn stats(&self) -> ProducerStats {
        let backfill_full = self.context.room.is_full();
        ProducerStats { backfill_full, ..self.stats }
    }

    /// Packets since the last call: their core time is still to be charged.
    pub fn unpaid_packets(&mut self) -> u64 {
        std::mem::take(&mut self.unpaid_packets)
    }

    /// Bytes that are sent and not acknowledged, and the window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// What it waits for, if the last round left nothing to do.
    pub fn waits_for(&self) -> PausedReason {
        match self.window.is_open() {
            true => PausedReason::ReadyListEmpty,
            false => PausedReason::BufferLogFull,
        }
    }

    /// A setting of the connection.
    pub fn control(&mut self, name: &[u8], value: &[u8]) -> Status {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let flag = match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        match (name, flag) {
            (b"connection_buffer_size", _) => match text.parse() {
                Ok(bytes) => self.window.resize(bytes),
                Err(_) => return Status::Invalid,
            },
            (b"enable_noop", Some(on)) => {
                let noops = || ProducerLiveness::new(self.env.now(), self.noop_interval);
                self.noops = on.then(noops);
            }
            (b"set_noop_interval", _) => match text.parse::<f64>() {
                Ok(s) if (0.01..=86_400.0).contains(&s) => {
                    self.noop_interval = Duration::from_secs_f64(s);
                    if let Some(noops) = &mut self.noops {
                        noops.set_interval(self.noop_interval);
                    }
                }
                _ => return Status::Invalid,
            },
            (b"enable_expiry_opcode", Some(on)) => self.context.expiry_opcode = on,
            (b"send_stream_end_on_client_close_stream", Some(on)) => self.end_on_close = on,
            (b"supports_cursor_dropping" | b"supports_cursor_dropping_vulcan", Some(_))
            | (b"set_priority", _)
            | (b"consumer_name", _) => {}
            _ => return Status::Invalid,
        }
        Status::Success
    }

    /// Asks for a stream.
    pub fn open_stream(&mut self, opaque: u32, vb: u16, request: StreamRequest) -> Response {
        let (status, answer) = match self.try_open(opaque, vb, request) {
            Ok(log) => (Status::Success, log),
            Err(refused) => refused,
        };
        Response::new(Opcode::StreamRequest, opaque, status, answer)
    }

    fn try_open(
        &mut self,
        opaque: u32,
        vb: u16,
        mut request: StreamRequest,
    ) -> std::result::Result<Answer, (Status, Answer)> {
        let refuse = |status| Err((status, Answer::Empty));
        if request.flags & !STREAM_FLAGS != 0 {
            return refuse(Status::Invalid);
        }
        let bucket = &self.context.bucket;
        let here = (bucket.state(vb), bucket.failover_log(vb), bucket.high_seqno(vb));
        let (Some(state), Some(log), Some(high)) = here else {
            return refuse(Status::NotMyVbucket);
        };
        let only_active = request.flags & (STREAM_ACTIVE_ONLY | STREAM_TAKEOVER) != 0;
        if state == VbucketState::Dead || only_active && state != VbucketState::Active {
            return refuse(Status::NotMyVbucket);
        }
        if self.streams.contains_key(&vb) {
            return refuse(Status::Exists);
        }
        if request.flags & STREAM_TO_LATEST != 0 {
            request.end = high;
        }
        if request.flags & STREAM_DISK_ONLY != 0 {
            request.end = request.end.min(bucket.persisted_seqno(vb).unwrap_or(0));
        }
        let StreamRequest { start, end, uuid, snap_start, snap_end, .. } = request;
        let latest = request.flags & (STREAM_TO_LATEST | STREAM_DISK_ONLY) != 0;
        if start > end && !latest || snap_start > start || start > snap_end {
            return refuse(Status::Range);
        }
        let at = StreamStart { start, uuid, snap_start, snap_end };
        match bucket.decide_start(vb, at) {
            None => return refuse(Status::NotMyVbucket),
            Some(StartDecision::Rollback(to)) => {
                return Err((Status::Rollback, Answer::Rollback(to)));
            }
            Some(StartDecision::Go) => {}
        }
        let Some(stream) = Stream::open(&self.context, vb, opaque, request) else {
            return refuse(Status::NotMyVbucket);
        };
        self.reports.borrow_mut().insert(vb, stream.report());
        self.streams.insert(vb, stream);
        // Every stream sends something, at least STREAM_END.
        self.context.notify.notify_one();
        Ok(Answer::FailoverLog(log))
    }

    /// The consumer does not want a stream any more.
    pub fn close_stream(&mut self, vb: u16) -> Status {
        match self.streams.get_mut(&vb) {
            None => Status::NotFound,
            Some(stream) if self.end_on_close => {
                stream.end(&self.context.bucket, EndReason::Closed);
                self.context.notify.notify_one();
                Status::Success
            }
            Some(stream) => {
                stream.close(&self.context.bucket);
                self.streams.remove(&vb);
                self.reports.borrow_mut().remove(&vb);
                Status::Success
            }
        }
    }

    /// The consumer processed bytes.
    pub fn acknowledged(&mut self, bytes: u32) -> Result<()> {
        self.window.acknowledged(bytes)?;
        self.full_since = None;
        self.stats.acknowledged_bytes += u64::from(bytes);
        Ok(())
    }

    /// Ends streams whose consumer has acknowledged or answered nothing for too long: no file is compacted while one of
    /// them reads, what one has taken from memory stays there, and clients may wait for a takeover. They can be asked
    /// for again. Answers when to look again; none while none holds up anything.
    pub fn end_slow_streams(&mut self) -> Option<Time> {
        let now = self.env.now();
        self.full_since = (!self.window.is_open()).then(|| self.full_since.unwrap_or(now));
        let mut next: Option<Time> = None;
        for (vb, stream) in &mut self.streams {
            let Some(since) = stream.holds_up_since(self.full_since) else { continue };
            let due = since + SLOW_AFTER;
            if now < due {
                next = next.into_iter().chain([due]).min();
                continue;
            }
            stream.end(&self.context.bucket, EndReason::Slow);
            self.context.notify.notify_one();
            self.reports.borrow_mut().insert(*vb, stream.report());
        }
        next
    }

    /// The consumer answered a message. Fails if it refused a message that it must not refuse.
    pub fn answered(&mut self, response: &Response) -> Result<()> {
        if response.opcode == Opcode::Noop {
            if let Some(noops) = &mut self.noops {
                noops.answered();
            }
            return Ok(());
        }
        // A stream that has ended waits for no answer. The own copy must not become dead for a consumer whose copy will
        // not become active.
        let asked = |stream: &Stream| stream.opaque == response.opaque && !stream.over;
        let stream = self.streams.iter_mut().find(|(_, stream)| asked(stream));
        let Some((vb, stream)) = stream else { return Ok(()) };
        match (response.opcode, response.status) {
            (Opcode::SnapshotMarker, Ok(Status::Success)) => stream.marker_answered(),
            (Opcode::SetVbucketState, Ok(Status::Success)) => {
                stream.state_answered(&self.context.bucket);
            }
            (_, Ok(Status::Success)) => return Ok(()),
            (opcode, status) => {
                let what = format!("{} of vbucket {vb}", opcode.name());
                return Err(Error::refused("the consumer", what, status, None));
            }
        }
        self.context.notify.notify_one();
        Ok(())
    }

    /// What liveness demands now; none if the consumer did not ask for NOOPs.
    pub fn check_liveness(&mut self) -> Option<Liveness> {
        let now = self.env.now();
        self.noops.as_mut().map(|noops| noops.check(now))
    }

    /// A NOOP. It does not count for flow control.
    pub fn noop(&mut self) -> Request {
        self.next_opaque += 1;
        Request::new(self.next_opaque, 0, Body::Noop)
    }

    /// The interval of NOOPs.
    pub fn noop_interval(&self) -> Duration {
        self.noop_interval
    }

    /// Gathers one round of messages; answers whether more may be ready at once.
    pub fn pump(&mut self, out: &mut Outgoing) -> Result<bool> {
        let after = self.streams.range((Bound::Excluded(self.hand), Bound::Unbounded));
        let in_turn = after.chain(self.streams.range(..=self.hand));
        let in_turn: Vec<u16> = in_turn.map(|(vb, _)| *vb).collect();
        let mut more = false;
        for vb in in_turn {
            if out.gathered_bytes() >= ROUND_BYTES {
                return Ok(true);
            }
            self.hand = vb;
            let Some(stream) = self.streams.get_mut(&vb) else { continue };
            let turn_ends = out.gathered_bytes() + TURN_BYTES;
            loop {
                if !self.window.is_open() {
                    self.stats.window_full += 1;
                    self.reports.borrow_mut().insert(vb, stream.report());
                    return Ok(false);
                }
                if out.gathered_bytes() >= turn_ends {
                    more = true;
                    break;
                }
                let Some(message) = stream.next(&self.context) else { break };
                let is_item = message.body.opcode().is_item();
                let packet = message.packet();
                let bytes = packet.wire_bytes();
                self.window.sent(bytes);
                self.unpaid_packets += 1;
                self.stats.items += u64::from(is_item);
                self.stats.bytes += bytes as u64;
                out.put(packet)?;
            }
            self.reports.borrow_mut().insert(vb, stream.report());
            if stream.is_over() {
                self.streams.remove(&vb);
                self.reports.borrow_mut().remove(&vb);
            }
        }
        Ok(more)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        for stream in self.streams.values_mut() {
            stream.close(&self.context.bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bucket::{BucketSettings, Condition};
    use crate::codec::Write;

    async fn opened(env: &Env) -> Bucket {
        let settings = BucketSettings::new("example", 1, 512 << 20);
        Bucket::open(env, settings, Path::new("/data")).await.unwrap()
    }

    fn take_over(producer: &mut Producer, opaque: u32) {
        let request =
            StreamRequest { flags: STREAM_TAKEOVER, end: u64::MAX, ..StreamRequest::default() };
        assert!(producer.open_stream(opaque, 0, request).is(Status::Success));
    }

    /// The next message of its stream.
    fn next(producer: &mut Producer) -> Body {
        let Producer { streams, context, .. } = producer;
        streams.get_mut(&0).unwrap().next(context).unwrap().body
    }

    /// The consumer answers once it has closed the stream, whose STREAM_END is still to be sent.
    #[test]
    fn an_answer_after_the_end_of_a_takeover_changes_nothing() {
        world::virtual_world::run(7, async |env| {
            let bucket = opened(&env).await;
            let mut producer = Producer::new(&env, bucket.clone(), 0, Rc::default());
            producer.control(b"send_stream_end_on_client_close_stream", b"true");
            for (opaque, status) in [(1, Status::Success), (2, Status::NotFound)] {
                take_over(&mut producer, opaque);
                let asked = next(&mut producer);
                assert_eq!(asked, Body::SetVbucketState { state: VbucketState::Pending });
                assert_eq!(producer.close_stream(0), Status::Success);
                let answer = Response::new(Opcode::SetVbucketState, opaque, status, Answer::Empty);
                producer.answered(&answer).unwrap();
                assert_eq!(bucket.state(0), Some(VbucketState::Active));
                producer.streams.clear();
            }
        });
    }

    #[test]
    fn of_two_takeovers_one_has_the_vbucket() {
        world::virtual_world::run(7, async |env| {
            let bucket = opened(&env).await;
            let producer = || Producer::new(&env, bucket.clone(), 0, Rc::default());
            let mut both = [producer(), producer()];
            let state = |state| Body::SetVbucketState { state };
            for producer in &mut both {
                take_over(producer, 1);
                assert_eq!(next(producer), state(VbucketState::Pending));
            }
            for producer in &mut both {
                let done = Status::Success;
                let answer = Response::new(Opcode::SetVbucketState, 1, done, Answer::Empty);
                producer.answered(&answer).unwrap();
                assert_eq!(bucket.state(0), Some(VbucketState::Dead));
            }
            let ended = Body::StreamEnd { reason: EndReason::State };
            assert_eq!(both.each_mut().map(next), [state(VbucketState::Active), ended]);
        });
    }

    #[test]
    fn a_takeover_that_ended_slowly_gives_back_once_what_it_held() {
        world::virtual_world::run(7, async |env| {
            let bucket = opened(&env).await;
            let mut producer = Producer::new(&env, bucket.clone(), 0, Rc::default());
            producer.control(b"connection_buffer_size", b"1");
            take_over(&mut producer, 1);
            producer.window.sent(1);
            assert_eq!(producer.end_slow_streams(), Some(env.now() + SLOW_AFTER));
            env.sleep(SLOW_AFTER).await;
            assert_eq!(producer.end_slow_streams(), None);
            // Another has clients wait by now.
            bucket.hold_writes(0, true);
            drop(producer);
            let write = Write { flags: 0, expiry: 0, key: "key".into(), value: "x".into() };
            let written = bucket.write(0, write, 0, 0, Condition::Always);
            assert_eq!(written, Err(Status::TemporaryFailure));
        });
    }
}
