//! Requests for streams, and the producer's answers.

use policy::failures::{Action, Component, action};

use super::stream::Stream;
use super::{Consumer, Event, Sink};
use crate::codec::{
    Answer, Body, FailoverEntry, Opcode, Request, Response, Status, StreamRequest, VbucketState,
    status_name,
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
        Some(Request::new(stream.opaque, vb, Body::CloseStream))
    }

    /// A response of the producer.
    pub(super) async fn answered(&mut self, response: Response, out: &mut Outgoing) -> Result<()> {
        if response.opcode != Opcode::StreamRequest {
            // A producer may refuse settings that it does not know.
            return Ok(());
        }
        // A second answer is one to nothing that was asked.
        let is_asked = |stream: &Stream| stream.opaque == response.opaque && !stream.granted;
        let asked = self.streams.iter().find(|(_, stream)| is_asked(stream));
        let Some(vb) = asked.map(|(vb, _)| *vb) else { return Ok(()) };
        match (response.status, response.answer) {
            (Ok(Status::Success), Answer::FailoverLog(log)) => self.opened(vb, log, out),
            (Ok(Status::Rollback), Answer::Rollback(to)) => self.roll_back(vb, to, out).await,
            (status, _) => self.refused(vb, status, out),
        }
    }

    fn opened(&mut self, vb: u16, log: Vec<FailoverEntry>, out: &mut Outgoing) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&vb) else { return Ok(()) };
        stream.granted = true;
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
                answer_add_stream(added_by, Status::Success, Answer::StreamOpaque(opaque), out)
            }
            Ok(false) => {
                let found = "a failover log that is none".to_owned();
                Err(Error::unexpected(out.address(), "STREAM_REQ", found))
            }
            // The vbucket changed while the producer was asked: it alone has no stream.
            Err(Error::Refused { status, .. }) => {
                out.put(Request::new(opaque, vb, Body::CloseStream).packet())?;
                self.refused(vb, Ok(status), out)
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
        let again = stream.rolled_back();
        match at {
            Some(at) if again => {
                let request = self.request(vb, at);
                out.put(request.packet())
            }
            _ => self.refused(vb, Ok(refusal), out),
        }
    }

    /// There is no stream: the caller and the ADD_STREAM that wanted it are told.
    fn refused(
        &mut self,
        vb: u16,
        status: std::result::Result<Status, u16>,
        out: &mut Outgoing,
    ) -> Result<()> {
        let added_by = self.streams.remove(&vb).and_then(|stream| stream.added_by);
        self.events.push_back(Event::Refused { vb, status: status_name(status) });
        answer_add_stream(added_by, status.unwrap_or(Status::Internal), Answer::Empty, out)
    }
}

/// Answers the ADD_STREAM that wanted a stream, if one did.
fn answer_add_stream(
    added_by: Option<u32>,
    status: Status,
    answer: Answer,
    out: &mut Outgoing,
) -> Result<()> {
    let Some(added_by) = added_by else { return Ok(()) };
    out.put(Response::new(Opcode::AddStream, added_by, status, answer).packet())
}
