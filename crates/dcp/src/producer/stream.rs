//! One stream: a vbucket's history, from disk and then from memory.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use world::Time;

use super::backfill::{Backfill, Held, Progress, Room, Span};
use crate::bucket::{Bucket, CursorId, Item, ItemData, ItemKind, Take, Taken};
use crate::codec::{
    Body, EndReason, Marker, Request, SNAPSHOT_ACK, SNAPSHOT_CHECKPOINT, SNAPSHOT_DISK,
    SNAPSHOT_MEMORY, STREAM_ACTIVE_ONLY, STREAM_DISK_ONLY, STREAM_TAKEOVER, StreamRequest,
    VbucketState, Version,
};
use crate::policy::{Takeover, TakeoverStep};

/// What a connection hands to its streams.
#[derive(Clone)]
pub(super) struct Context {
    pub bucket: Bucket,
    /// Wakes the connection.
    pub notify: Rc<Notify>,
    /// For parts of backfills in memory.
    pub room: Room,
    /// Expirations are sent as such, not as deletions.
    pub expiry_opcode: bool,
    /// Deletions are sent with their time.
    pub delete_times: bool,
    /// Values are left out.
    pub no_value: bool,
}

/// A message that is to be sent.
enum Ready {
    Marker(Marker),
    FromMemory(Rc<Item>),
    FromDisk(Arc<ItemData>),
    State(VbucketState),
    End(EndReason),
}

/// How far a stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamReport {
    /// The last sequence number that was taken from the bucket.
    pub read_to: u64,
    /// The last one to send.
    pub end: u64,
    /// Messages that are ready and not sent.
    pub ready: u64,
    /// Whether it reads from disk.
    pub backfilling: bool,
}

impl StreamReport {
    /// Items to send, in a vbucket with this highest sequence number.
    pub fn remaining(&self, high_seqno: u64) -> u64 {
        high_seqno.min(self.end).saturating_sub(self.read_to) + self.ready
    }
}

/// A stream of a producer.
pub(super) struct Stream {
    vb: u16,
    /// That of its STREAM_REQ.
    pub opaque: u32,
    request: StreamRequest,
    cursor: CursorId,
    epoch: u64,
    /// The vbucket's newest history when it was opened.
    uuid: u64,
    /// The last sequence number that was taken from the bucket.
    read_to: u64,
    /// The end of the last snapshot marker that was sent.
    promised: u64,
    first_snapshot: bool,
    ready: VecDeque<Ready>,
    backfill: Option<Backfill>,
    held: Option<Held>,
    takeover: Option<Takeover>,
    /// Since when a takeover waits for an answer and none has come.
    unanswered_since: Option<Time>,
    opened: Time,
    /// Nothing follows the messages that are ready.
    pub over: bool,
}

impl Stream {
    /// A granted stream, which ends with the snapshot that `request.end` is in. None if the vbucket is gone.
    pub fn open(
        context: &Context,
        vb: u16,
        opaque: u32,
        mut request: StreamRequest,
    ) -> Option<Stream> {
        if request.start == request.snap_start {
            // Nothing of the snapshot has come: where it would end does not matter.
            request.snap_end = request.start;
        } else if request.start < request.end {
            request.end = request.end.max(request.snap_end);
        }
        let uuid = context.bucket.resume(vb)?.uuid;
        let open = context.bucket.open_stream(vb, request.start, &context.notify)?;
        let mut stream = Stream {
            vb,
            opaque,
            request,
            cursor: open.cursor,
            epoch: open.epoch,
            uuid,
            read_to: request.start,
            promised: request.start,
            first_snapshot: true,
            ready: VecDeque::new(),
            backfill: None,
            held: None,
            takeover: (request.flags & STREAM_TAKEOVER != 0).then(Takeover::default),
            unanswered_since: None,
            opened: context.bucket.env().now(),
            over: false,
        };
        stream.begin_backfill(context, open.from_disk);
        Some(stream)
    }

    /// Since when its consumer holds up others, where `full_since` is since when that one's window is full: it goes on,
    /// and reads from disk, has versions ready that are not sent, or may have clients wait.
    pub fn holds_up_since(&self, full_since: Option<Time>) -> Option<Time> {
        let is_item = |ready: &Ready| matches!(ready, Ready::FromMemory(_) | Ready::FromDisk(_));
        let reads = || self.backfill.is_some() || self.ready.iter().any(is_item);
        let holds = |_: &Time| self.takeover.is_some() || reads();
        let since = self.unanswered_since.into_iter().chain(full_since.filter(holds)).min();
        since.filter(|_| !self.over)
    }

    /// Whether everything was sent, STREAM_END included.
    pub fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }

    /// How far it is.
    pub fn report(&self) -> StreamReport {
        StreamReport {
            read_to: self.read_to,
            end: self.request.end,
            ready: self.ready.len() as u64,
            backfilling: self.backfill.is_some(),
        }
    }

    /// Gives back what it holds of the bucket, unless it is over: another takeover may have clients wait by then.
    pub fn close(&mut self, bucket: &Bucket) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        if self.takeover.is_some() {
            bucket.hold_writes(self.vb, false);
        }
        bucket.close_stream(self.vb, self.cursor);
    }

    /// Ends the stream without sending more items. Nobody may ever read that it has ended.
    pub fn end(&mut self, bucket: &Bucket, reason: EndReason) {
        self.close(bucket);
        self.ready.clear();
        self.held = None;
        self.backfill = None;
        self.ready.push_back(Ready::End(reason));
    }

    /// The consumer answered a marker.
    pub fn marker_answered(&mut self) {
        self.unanswered_since = None;
        if let Some(takeover) = &mut self.takeover {
            takeover.marker_answered();
        }
    }

    /// The consumer's vbucket changed its state; the own copy changes accordingly. If it is no longer active, another
    /// consumer may have it.
    pub fn state_answered(&mut self, bucket: &Bucket) {
        self.unanswered_since = None;
        let is_active = bucket.state(self.vb) == Some(VbucketState::Active);
        let takeover = self.takeover.as_mut().filter(|it| is_active || it.has_let_go());
        if takeover.is_some_and(Takeover::state_answered) {
            // A stream exists only for vbuckets that this bucket can have.
            let _ = bucket.set_state(self.vb, VbucketState::Dead);
        }
    }

    /// The next message; none if there is nothing yet, or never again.
    pub fn next(&mut self, context: &Context) -> Option<Request> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(self.message(context, ready));
            }
            self.held = None;
            if self.over || !self.fill(context) {
                return None;
            }
        }
    }

    fn begin_backfill(&mut self, context: &Context, from_disk: Option<u64>) {
        let disk_only = self.request.flags & STREAM_DISK_ONLY != 0;
        let floor = match from_disk {
            _ if disk_only => self.request.end,
            Some(floor) => floor,
            None => return,
        };
        if floor > self.read_to {
            let span = Span { vb: self.vb, from: self.read_to, floor, end: self.request.end };
            let (room, notify) = (context.room.clone(), context.notify.clone());
            self.backfill = Some(Backfill::start(&context.bucket, span, room, notify));
        }
    }

    /// Begins a snapshot, unless the last marker covers it. It is sent whole, also beyond the end that was asked for: a
    /// part of it lacks what its rest replaces.
    fn snapshot(&mut self, mut start: u64, mut end: u64, flags: u32) {
        if std::mem::take(&mut self.first_snapshot) {
            // A consumer that has a part of a snapshot is consistent only at that snapshot's end.
            start = start.min(self.request.snap_start);
            end = end.max(self.request.snap_end);
        } else if end <= self.promised {
            return;
        }
        self.promised = end;
        self.request.end = self.request.end.max(end);
        let ack = match &mut self.takeover {
            Some(takeover) => {
                takeover.marker_sent();
                SNAPSHOT_ACK
            }
            None => 0,
        };
        self.ready.push_back(Ready::Marker(Marker { start, end, flags: flags | ack }));
    }

    /// Makes messages ready; false if there is nothing to send.
    fn fill(&mut self, context: &Context) -> bool {
        let bucket = &context.bucket;
        let state = bucket.state(self.vb);
        let moving = self.takeover.is_some();
        let gone = match state {
            None => true,
            Some(VbucketState::Active) => false,
            Some(VbucketState::Dead) => !self.takeover.as_ref().is_some_and(Takeover::has_let_go),
            Some(_) => moving || self.request.flags & STREAM_ACTIVE_ONLY != 0,
        };
        if gone {
            self.end(bucket, EndReason::State);
            return true;
        }
        if bucket.epoch(self.vb) != Some(self.epoch) {
            self.end(bucket, EndReason::Rollback);
            return true;
        }
        // A replica that has become active goes on with a history of its own.
        if bucket.resume(self.vb).map(|at| at.uuid) != Some(self.uuid) {
            self.end(bucket, EndReason::State);
            return true;
        }
        if self.read_to >= self.request.end {
            self.end(bucket, EndReason::Ok);
            return true;
        }
        if self.backfill.is_some() {
            return self.take_from_disk(bucket);
        }
        match bucket.take(self.vb, self.cursor) {
            Some(Take::Some(taken)) => {
                let slow = bucket.env().now() - self.opened > bucket.settings().takeover_max_time;
                if moving && slow {
                    bucket.hold_writes(self.vb, true);
                }
                self.take_from_memory(taken, state == Some(VbucketState::Active));
                true
            }
            Some(Take::Dropped) => {
                // The cursor was dropped to free memory: the rest comes from disk.
                let Some(open) = bucket.open_stream(self.vb, self.read_to, &context.notify) else {
                    return false;
                };
                self.cursor = open.cursor;
                self.begin_backfill(context, open.from_disk);
                self.backfill.is_none()
            }
            Some(Take::Nothing) | None => self.step(bucket),
        }
    }

    fn take_from_disk(&mut self, bucket: &Bucket) -> bool {
        let Some(backfill) = &mut self.backfill else { return false };
        match backfill.next() {
            Some(None) => return false,
            Some(Some(Progress::Begins(end))) => {
                self.snapshot(self.read_to, end, SNAPSHOT_DISK | SNAPSHOT_CHECKPOINT);
            }
            Some(Some(Progress::Part(part, held))) => {
                self.read_to = part.read_to;
                self.held = Some(held);
                self.ready.extend(part.items.into_iter().map(Ready::FromDisk));
            }
            Some(Some(Progress::Failed)) => self.end(bucket, EndReason::BackfillFailed),
            None => {
                bucket.advance(self.vb, self.cursor, self.read_to);
                self.backfill = None;
            }
        }
        true
    }

    fn take_from_memory(&mut self, taken: Taken, active: bool) {
        let last = taken.items.last().map_or(taken.end, |item| item.by_seqno);
        // In an active vbucket, a snapshot that an earlier producer left unfinished ends where it broke off.
        let snap_end = if active { last } else { taken.end };
        let from_disk = taken.bounds.is_some_and(|bounds| bounds.disk);
        let kind = if from_disk { SNAPSHOT_DISK } else { SNAPSHOT_MEMORY };
        let checkpoint = if taken.begins { SNAPSHOT_CHECKPOINT } else { 0 };
        if !taken.items.is_empty() {
            self.snapshot(taken.start, snap_end, kind | checkpoint);
        }
        self.read_to = self.read_to.max(last);
        self.ready.extend(taken.items.into_iter().map(Ready::FromMemory));
    }

    /// The vbucket has nothing new: the next step of a takeover.
    fn step(&mut self, bucket: &Bucket) -> bool {
        match self.takeover.as_mut().map(Takeover::step) {
            Some(TakeoverStep::SendState(state)) => self.ready.push_back(Ready::State(state)),
            Some(TakeoverStep::End) => self.end(bucket, EndReason::Ok),
            Some(TakeoverStep::Await) => {
                self.unanswered_since.get_or_insert(bucket.env().now());
                return false;
            }
            None => return false,
        }
        true
    }

    fn message(&self, context: &Context, ready: Ready) -> Request {
        let (cas, datatype, body) = match ready {
            Ready::Marker(marker) => (0, 0, Body::SnapshotMarker(marker)),
            Ready::State(state) => (0, 0, Body::SetVbucketState { state }),
            Ready::End(reason) => (0, 0, Body::StreamEnd { reason }),
            Ready::FromMemory(item) => item_body(context, &item),
            Ready::FromDisk(item) => item_body(context, &item),
        };
        Request { opaque: self.opaque, vbucket: self.vb, cas, datatype, body }
    }
}

fn item_body(context: &Context, item: &ItemData) -> (u64, u8, Body) {
    let ItemData { kind, key, mut value, by_seqno, rev_seqno, cas, flags, time_s, mut datatype } =
        item.clone();
    if context.no_value {
        (value, datatype) = (bytes::Bytes::new(), 0);
    }
    let is_timed = context.delete_times;
    let default = Version::default();
    let version = Version { by_seqno, rev_seqno, flags, time_s, is_timed, key, value, ..default };
    let body = match kind {
        ItemKind::Mutation => Body::Mutation(version),
        ItemKind::Expiration if context.expiry_opcode => Body::Expiration(version),
        ItemKind::Deletion | ItemKind::Expiration => Body::Deletion(version),
    };
    (cas, datatype, body)
}
