//! Requests for documents, vbuckets, and DCP.

use std::time::Duration;

use bytes::Bytes;

use super::connection::{Connection, Dcp, status_alone};
use super::shared::NamedConnection;
use super::{cluster_config, stats};
use crate::Result;
use crate::bucket::{Bucket, Condition, Written};
use crate::codec::{
    Answer, Body, OPEN_DELETE_TIMES, OPEN_NO_VALUE, OPEN_PRODUCER, OPEN_XATTRS, Opcode, Packet,
    Request, Response, Status, VbucketState,
};
use crate::consumer::{Consumer, Sink};
use crate::policy::consumer_window_bytes;
use crate::producer::Producer;

/// How long SEQNO_PERSISTENCE waits before it answers TMPFAIL.
const PERSISTENCE_PATIENCE: Duration = Duration::from_secs(30);
/// The longest name of a connection.
const MAX_NAME_BYTES: usize = 200;
/// What OPEN may ask for. Extended attributes change nothing: no value has any here.
const OPEN_FLAGS: u32 = OPEN_PRODUCER | OPEN_XATTRS | OPEN_NO_VALUE | OPEN_DELETE_TIMES;

/// CAS, datatype and content of an answer, or why the request is refused.
type Answered = std::result::Result<(u64, u8, Answer), Status>;

fn done(answer: Answer) -> Answered {
    Ok((0, 0, answer))
}

fn of_status(status: Status) -> Answered {
    if status == Status::Success { done(Answer::Empty) } else { Err(status) }
}

impl Connection {
    /// Answers a request.
    pub(super) async fn request(&mut self, packet: Packet) -> Result<()> {
        let (opcode, opaque) = (packet.opcode, packet.opaque);
        let framed = !packet.framing.is_empty();
        let request = match Request::parse(packet) {
            // Flexible framing was not agreed on; its demands must not be ignored silently.
            Ok(_) if framed => return self.refuse_with(opcode, opaque, Status::Invalid),
            Ok(request) => request,
            Err(crate::codec::DecodeError::Opcode { .. }) => {
                return self.refuse_with(opcode, opaque, Status::UnknownCommand);
            }
            Err(_) => return self.refuse_with(opcode, opaque, Status::Invalid),
        };
        if !self.session.admits(&request.body) {
            return self.refuse_with(opcode, opaque, Status::Access);
        }
        if let Some((status, answer)) = self.session.answer(&self.shared, &request.body) {
            // Nothing is streamed to somebody who could not say anew who that is.
            let is_known = self.session.is_authenticated() || status == Status::AuthContinue;
            self.session.leaves |= !is_known && !matches!(self.dcp, Dcp::None);
            let opcode = request.body.opcode();
            return self.out.put(Response::new(opcode, opaque, status, answer).packet());
        }
        match &request.body {
            Body::BufferAck { bytes } => {
                return match &mut self.dcp {
                    // Success has no answer.
                    Dcp::Producer(producer) => producer.acknowledged(*bytes),
                    _ => self.refuse_with(opcode, opaque, Status::Invalid),
                };
            }
            Body::Stat { group } => {
                let group = String::from_utf8_lossy(group).into_owned();
                return self.stat(opaque, &group);
            }
            _ => {}
        }
        let opcode = request.body.opcode();
        let Some(answered) = self.answer(request).await? else { return Ok(()) };
        let response = match answered {
            Ok((cas, datatype, answer)) => {
                Response { cas, datatype, ..Response::new(opcode, opaque, Status::Success, answer) }
            }
            Err(status) => Response::new(opcode, opaque, status, Answer::Empty),
        };
        self.out.put(response.packet())
    }

    fn refuse_with(&mut self, opcode: u8, opaque: u32, status: Status) -> Result<()> {
        self.out.put(status_alone(opcode, opaque, status))
    }

    /// The answer; none if it has been sent or comes later.
    async fn answer(&mut self, request: Request) -> Result<Option<Answered>> {
        let Request { opaque, vbucket: vb, cas, datatype, body } = request;
        let answered = match body {
            Body::Quit => {
                self.session.leaves = true;
                done(Answer::Empty)
            }
            Body::KvNoop => done(Answer::Empty),
            Body::Version => done(Answer::Value(VERSION.into())),
            Body::ErrorMap { version: 0 } => Err(Status::Invalid),
            Body::ErrorMap { .. } => done(Answer::Value(cluster_config::error_map().into())),
            Body::GetClusterConfig => {
                let config =
                    cluster_config::cluster_config(&self.shared, self.session.bucket().ok());
                Ok((0, crate::codec::DATATYPE_JSON, Answer::Value(config.into())))
            }
            body => match self.session.bucket().cloned() {
                Err(status) => Err(status),
                Ok(bucket) => match body {
                    Body::StreamRequest(_)
                    | Body::CloseStream
                    | Body::AddStream { .. }
                    | Body::Control { .. }
                    | Body::Open { .. }
                    | Body::Noop => return self.answer_dcp(&bucket, opaque, vb, body),
                    body => self.answer_of_bucket(&bucket, vb, (cas, datatype), body).await,
                },
            },
        };
        Ok(Some(answered))
    }

    /// Answers requests for the documents and vbuckets of a bucket.
    async fn answer_of_bucket(
        &self,
        bucket: &Bucket,
        vb: u16,
        (cas, datatype): (u64, u8),
        body: Body,
    ) -> Answered {
        let written = |written: Written| (written.cas, 0, Answer::Empty);
        let write =
            |write, condition| bucket.write(vb, write, cas, datatype, condition).map(written);
        match body {
            Body::Get { key } => {
                let found = bucket.get(vb, &key).await?;
                let answer = Answer::Document { flags: found.flags, value: found.value };
                Ok((found.cas, found.datatype, answer))
            }
            Body::Set(document) => write(document, Condition::Always),
            Body::Add(document) => write(document, Condition::Absent),
            Body::Replace(document) => write(document, Condition::Present),
            Body::Delete { key } => bucket.delete(vb, &key, cas).map(written),
            Body::AllVbSeqnos { state } => {
                let state = match state {
                    None | Some(0) => None,
                    Some(number) => {
                        let known = u8::try_from(number).ok().and_then(VbucketState::of);
                        Some(known.ok_or(Status::Invalid)?)
                    }
                };
                done(Answer::Seqnos(bucket.seqnos(state)))
            }
            Body::FailoverLog => {
                done(Answer::FailoverLog(bucket.failover_log(vb).ok_or(Status::NotMyVbucket)?))
            }
            Body::SetVbucketState { state } => {
                bucket.set_state(vb, state)?;
                done(Answer::Empty)
            }
            Body::SeqnoPersistence { seqno } => {
                if let Some(counts) = self.shared.fast(&bucket.settings().name) {
                    // A measuring device: it answers that items are persisted, and persists nothing.
                    return match counts.of(vb).at.last() >= seqno {
                        true => done(Answer::Empty),
                        false => Err(Status::TemporaryFailure),
                    };
                }
                bucket.wait_persisted(vb, seqno, PERSISTENCE_PATIENCE).await?;
                done(Answer::Empty)
            }
            Body::Manifest => Err(Status::NotSupported),
            _ => Err(Status::Invalid),
        }
    }

    fn answer_dcp(
        &mut self,
        bucket: &Bucket,
        opaque: u32,
        vb: u16,
        body: Body,
    ) -> Result<Option<Answered>> {
        let answered = match (body, &mut self.dcp) {
            (Body::Open { flags, name, .. }, Dcp::None) => {
                let opened = self.open(bucket, flags, &name);
                match opened {
                    Ok(controls) => {
                        let opened =
                            Response::new(Opcode::Open, opaque, Status::Success, Answer::Empty);
                        self.out.put(opened.packet())?;
                        for control in controls {
                            self.out.put(control.packet())?;
                        }
                        return Ok(None);
                    }
                    Err(status) => Err(status),
                }
            }
            (Body::StreamRequest(request), Dcp::Producer(producer)) => {
                let response = producer.open_stream(opaque, vb, request);
                self.out.put(response.packet())?;
                return Ok(None);
            }
            (Body::CloseStream, Dcp::Producer(producer)) => of_status(producer.close_stream(vb)),
            (Body::Control { name, value }, Dcp::Producer(producer)) => {
                of_status(producer.control(&name, &value))
            }
            (Body::AddStream { flags }, Dcp::Consumer(consumer)) => {
                match consumer.add_stream(vb, flags, Some(opaque)) {
                    Ok(request) => {
                        self.out.put(request.packet())?;
                        return Ok(None);
                    }
                    Err(status) => Err(status),
                }
            }
            (Body::CloseStream, Dcp::Consumer(consumer)) => match consumer.close_stream(vb) {
                Some(request) => {
                    if let Some(counts) = self.shared.fast(&bucket.settings().name) {
                        counts.forget_history(vb);
                    }
                    self.out.put(request.packet())?;
                    done(Answer::Empty)
                }
                None => Err(Status::NotFound),
            },
            _ => Err(Status::Invalid),
        };
        Ok(Some(answered))
    }

    /// Opens the connection for DCP, and sends the peer its settings. Another connection of the same name is closed.
    fn open(
        &mut self,
        bucket: &Bucket,
        flags: u32,
        name: &Bytes,
    ) -> std::result::Result<Vec<Request>, Status> {
        let text = std::str::from_utf8(name).map_err(|_| Status::Invalid)?;
        if text.len() > MAX_NAME_BYTES || flags & !OPEN_FLAGS != 0 {
            return Err(Status::Invalid);
        }
        let of = bucket.settings().name.clone();
        let mut controls = Vec::new();
        let env = self.shared.env.clone();
        if flags & OPEN_PRODUCER != 0 {
            let producer = Producer::new(&env, bucket.clone(), flags, self.notify.clone());
            self.report.borrow_mut().streams = producer.reports.clone();
            self.dcp = Dcp::Producer(Box::new(producer));
        } else {
            let consumers = self.shared.consumers(&of) + 1;
            let window = consumer_window_bytes(bucket.settings().memory.quota_bytes, consumers);
            let sink = match self.shared.fast(&of) {
                Some(counts) => Sink::Count(counts.clone()),
                None => Sink::Bucket(bucket.clone()),
            };
            let kind = self.shared.settings.consumer;
            let mut consumer = Consumer::new(&env, kind, sink, window);
            controls = consumer.controls(window);
            self.dcp = Dcp::Consumer(Box::new(consumer));
        }
        let key = (of, text.to_owned());
        let named =
            NamedConnection { id: self.id, close: self.close.clone(), report: self.report.clone() };
        if let Some(before) = self.shared.named.borrow_mut().insert(key.clone(), named) {
            before.close.notify_one();
        }
        self.name = Some(key);
        Ok(controls)
    }

    fn stat(&mut self, opaque: u32, group: &str) -> Result<()> {
        let lines = match self.session.bucket() {
            Ok(bucket) => stats::stats(&self.shared, bucket, group),
            Err(status) => Err(status),
        };
        let lines = match lines {
            Ok(lines) => lines,
            Err(status) => return self.refuse_with(Opcode::Stat.number(), opaque, status),
        };
        let end = (String::new(), String::new());
        for (name, value) in lines.into_iter().chain([end]) {
            let answer = Answer::Stat { name: name.into(), value: value.into() };
            self.out.put(Response::new(Opcode::Stat, opaque, Status::Success, answer).packet())?;
        }
        Ok(())
    }
}

/// The server's version. Some clients take its first number for Couchbase's and want at least five.
const VERSION: &str = "7.6.0-narrows";
