//! Requests for streams, and the producer's answers.

use policy::failures::{Action, Component, action};

use super::stream::Stream;
use super::{Consumer, Event, Sink};
use crate::codec::{
    Answer, Body, FailoverEntry, Opcode, Request, Response, Status, StreamRequest, VbucketState,
};
use crate::policy::{SnapshotCursor, StreamStart};
use crate::wire::Outgoing;
use crate::{Error, Result};

impl Consumer {
    /// Requests a stream of a vbucket, from its position on. `added_by` is the opaque of the ADD_STREAM that wants it.
    /// Fails with [`Status::Exists`] if there is one, [`Status::NotMyVbucket`] if the vbucket takes no streams.
    pub fn add_stream(
        &mut self,
        vb: u16,
        flags: u32,
        added_by: Option<u32>,
    ) -> std::result::Result<Request, Status> {
        if self.streams.contains_key(&vb) {
            return Err(Status::Exists);
        }
        let start = match &self.sink {
            Sink::Count(counts) => counts.of(vb).resume(),
            Sink::Bucket(bucket) => match bucket.state(vb) {
                Some(VbucketState::Replica | VbucketState::Pending) => {
                    bucket.resume(vb).ok_or(Status::NotMyVbucket)?
                }
                _ => return Err(Status::NotMyVbucket),
            },
        };
        self.streams.insert(vb, Stream::new(flags, added_by));
        Ok(self.request(vb, start))
    }

    fn request(&mut self, vb: u16, at: StreamStart) -> Request {
        let opaque = self.opaque();
        self.by_opaque.insert(opaque, vb);
        let flags = self.streams.get_mut(&vb).map_or(0, |stream| {
            stream.begin(opaque, at);
            stream.flags
        });
        let StreamStart { start, uuid, snap_start, snap_end } = at;
        // An empty vbucket has no history.
        let uuid = if start == 0 { 0 } else { uuid };
        let request = StreamRequest { flags, start, end: u64::MAX, uuid, snap_start, snap_end };
        Request::new(opaque, vb, Body::StreamRequest(request))
    }

    /// Closes a stream that is no longer wanted.
    pub fn close_stream(&mut self, vb: u16) -> Option<Request> {
        let stream = self.streams.remove(&vb)?;
        self.by_opaque.remove(&stream.opaque);
        Some(Request::new(stream.opaque, vb, Body::CloseStream))
    }

    /// A response of the producer.
    pub(super) async fn answered(&mut self, response: Response, out: &mut Outgoing) -> Result<()> {
        if response.opcode != Opcode::StreamRequest {
            // A producer may refuse settings that it does not know.
            return Ok(());
        }
        let Some(vb) = self.by_opaque.get(&response.opaque).copied() else { return Ok(()) };
        let name = response.status_name();
        match (response.status, response.answer) {
            (Ok(Status::Success), Answer::FailoverLog(log)) => self.opened(vb, log, out),
            (Ok(Status::Rollback), Answer::Rollback(to)) => self.roll_back(vb, to, out).await,
            (status, _) => {
                let added_by = self.streams.remove(&vb).and_then(|stream| stream.added_by);
                self.by_opaque.remove(&response.opaque);
                self.events.push_back(Event::Refused { vb, status: name });
                self.answer_add_stream(added_by, status.unwrap_or(Status::Internal), 0, out)
            }
        }
    }

    /// Answers the ADD_STREAM that wanted a stream, if one did. `opaque` is that of the stream.
    fn answer_add_stream(
        &self,
        added_by: Option<u32>,
        status: Status,
        opaque: u32,
        out: &mut Outgoing,
    ) -> Result<()> {
        let Some(added_by) = added_by else { return Ok(()) };
        let answer = match status {
            Status::Success => Answer::StreamOpaque(opaque),
            _ => Answer::Empty,
        };
        out.put(Response::new(Opcode::AddStream, added_by, status, answer).packet())
    }

    fn opened(&mut self, vb: u16, log: Vec<FailoverEntry>, out: &mut Outgoing) -> Result<()> {
        let Some(stream) = self.streams.get(&vb) else { return Ok(()) };
        let (added_by, opaque, rollbacks) = (stream.added_by, stream.opaque, stream.rollbacks);
        let taken = match &self.sink {
            Sink::Bucket(bucket) => bucket.adopt_failover(vb, stream.last(), log),
            Sink::Count(counts) => {
                let history = log.first().map_or(0, |newest| newest.uuid);
                counts.change(vb, |count| count.history = history);
                Ok(true)
            }
        };
        match taken {
            Ok(true) => {
                self.events.push_back(Event::Opened { vb, rollbacks });
                self.answer_add_stream(added_by, Status::Success, opaque, out)
            }
            Ok(false) => {
                let found = "a failover log that is none".to_owned();
                Err(Error::unexpected(out.address(), "STREAM_REQ", found))
            }
            // The vbucket changed while the producer was asked: it alone has no stream.
            Err(Error::Refused { status, .. }) => {
                if let Some(request) = self.close_stream(vb) {
                    out.put(request.packet())?;
                }
                self.refused(vb, added_by, status, out)
            }
            Err(error) => Err(error),
        }
    }

    async fn roll_back(&mut self, vb: u16, to: u64, out: &mut Outgoing) -> Result<()> {
        let Some(last) = self.streams.get(&vb).map(Stream::last) else { return Ok(()) };
        // Whoever went there would never ask for what is between.
        if to > last {
            let found =
                format!("a rollback of vbucket {vb} to {to}, which has come to {last} alone");
            return Err(Error::unexpected(out.address(), "STREAM_REQ", found));
        }
        self.stats.rollbacks += 1;
        let mut refusal = Status::Rollback;
        let at = match &self.sink {
            Sink::Bucket(bucket) => match bucket.roll_back(vb, to).await {
                // The vbucket changed while the producer was asked: it alone has no stream.
                Err(Error::Refused { .. }) => None,
                // Nothing has changed, and it can be asked for again.
                Err(Error::Store(failed))
                    if action(Component::Flusher, failed.kind()) == Action::TryAgain =>
                {
                    refusal = Status::TemporaryFailure;
                    None
                }
                rolled_back => {
                    rolled_back?;
                    bucket.resume(vb)
                }
            },
            Sink::Count(counts) => Some(counts.change(vb, |count| {
                count.at = SnapshotCursor::new(to, to, to);
                count.rollbacks += 1;
                count.resume()
            })),
        };
        let Some(stream) = self.streams.get_mut(&vb) else { return Ok(()) };
        self.by_opaque.remove(&stream.opaque);
        let again = stream.rolled_back();
        match at {
            Some(at) if again => {
                let request = self.request(vb, at);
                out.put(request.packet())
            }
            _ => {
                let added_by = self.streams.remove(&vb).and_then(|stream| stream.added_by);
                self.refused(vb, added_by, refusal, out)
            }
        }
    }

    /// There is no stream: the caller and the ADD_STREAM that wanted it are told.
    fn refused(
        &mut self,
        vb: u16,
        added_by: Option<u32>,
        status: Status,
        out: &mut Outgoing,
    ) -> Result<()> {
        self.events.push_back(Event::Refused { vb, status: status.name().to_owned() });
        self.answer_add_stream(added_by, status, 0, out)
    }
}
