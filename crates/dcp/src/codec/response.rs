//! Responses, typed.

use bytes::Bytes;

use super::error::DecodeError;
use super::fields::{Fields, Writer, records};
use super::opcode::Opcode;
use super::packet::{Kind, Packet};
use super::status::Status;

/// One entry of a failover log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverEntry {
    /// The history that began there.
    pub uuid: u64,
    /// The sequence number that it began after.
    pub seqno: u64,
}

/// What a response holds.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Empty,
    /// HELLO: the features granted.
    Features(Vec<u16>),
    /// STREAM_REQ and FAILOVER_LOG: the failover log, newest first.
    FailoverLog(Vec<FailoverEntry>),
    /// STREAM_REQ: the consumer has to go back to this sequence number.
    Rollback(u64),
    /// ADD_STREAM: the opaque of the stream.
    StreamOpaque(u32),
    /// ALL_VB_SEQNOS: vbucket and highest sequence number.
    Seqnos(Vec<(u16, u64)>),
    /// GET: flags and value.
    Document { flags: u32, value: Bytes },
    /// STAT: one statistic; both are empty at the end.
    Stat { name: Bytes, value: Bytes },
    /// Anything else: a text, JSON, or a message of an authentication.
    Value(Bytes),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The opcode of the request.
    pub opcode: Opcode,
    /// How it went; none if the status is not known here.
    pub status: Result<Status, u16>,
    /// The opaque of the request.
    pub opaque: u32,
    /// Version of the document.
    pub cas: u64,
    /// How the value is encoded.
    pub datatype: u8,
    /// What it holds.
    pub answer: Answer,
}

impl Response {
    /// A response without CAS and datatype.
    pub fn new(opcode: Opcode, opaque: u32, status: Status, answer: Answer) -> Response {
        Response { opcode, status: Ok(status), opaque, cas: 0, datatype: 0, answer }
    }

    /// Whether it says `status`.
    pub fn is(&self, status: Status) -> bool {
        self.status == Ok(status)
    }

    /// Reads a packet. Fails if it is no response, its opcode is not known, or a part does not have the length that it
    /// must have.
    pub fn parse(packet: Packet) -> Result<Response, DecodeError> {
        let opcode =
            Opcode::of(packet.opcode).ok_or(DecodeError::Opcode { found: packet.opcode })?;
        if packet.kind != Kind::Response {
            return Err(DecodeError::Kind { opcode: packet.opcode, expected: "response" });
        }
        let number = packet.vbucket_or_status;
        let status = Status::of(number).ok_or(number);
        Ok(Response {
            opcode,
            status,
            opaque: packet.opaque,
            cas: packet.cas,
            datatype: packet.datatype,
            answer: parse(opcode, status, packet)?,
        })
    }

    /// The packet of it.
    pub fn packet(self) -> Packet {
        let none = Bytes::new;
        let w = Writer::default;
        let (extras, key, value) = match self.answer {
            Answer::Empty => (none(), none(), none()),
            Answer::Features(features) => {
                (none(), none(), features.into_iter().fold(w(), Writer::u16).done())
            }
            Answer::FailoverLog(entries) => {
                let value = entries.into_iter().fold(w(), |w, e| w.u64(e.uuid).u64(e.seqno));
                (none(), none(), value.done())
            }
            Answer::Rollback(seqno) => (none(), none(), w().u64(seqno).done()),
            Answer::StreamOpaque(opaque) => (w().u32(opaque).done(), none(), none()),
            Answer::Seqnos(seqnos) => {
                let value = seqnos.into_iter().fold(w(), |w, (vb, seqno)| w.u16(vb).u64(seqno));
                (none(), none(), value.done())
            }
            Answer::Document { flags, value } => (w().u32(flags).done(), none(), value),
            Answer::Stat { name, value } => (none(), name, value),
            Answer::Value(value) => (none(), none(), value),
        };
        Packet {
            datatype: self.datatype,
            vbucket_or_status: self.status.map_or_else(|number| number, Status::number),
            opaque: self.opaque,
            cas: self.cas,
            extras,
            key,
            value,
            ..Packet::new(Kind::Response, self.opcode.number())
        }
    }
}

fn parse(
    opcode: Opcode,
    status: Result<Status, u16>,
    packet: Packet,
) -> Result<Answer, DecodeError> {
    let (code, value) = (packet.opcode, &packet.value);
    let plain = |value: Bytes| if value.is_empty() { Answer::Empty } else { Answer::Value(value) };
    if opcode == Opcode::StreamRequest && status == Ok(Status::Rollback) {
        return Ok(Answer::Rollback(Fields::part(code, "value", value, &[8])?.u64()));
    }
    if status != Ok(Status::Success) {
        return Ok(plain(packet.value));
    }
    Ok(match opcode {
        Opcode::Hello => Answer::Features(records(code, value, 2)?.map(|mut f| f.u16()).collect()),
        Opcode::StreamRequest | Opcode::FailoverLog => {
            let entry = |mut f: Fields<'_>| FailoverEntry { uuid: f.u64(), seqno: f.u64() };
            Answer::FailoverLog(records(code, value, 16)?.map(entry).collect())
        }
        Opcode::AddStream => Answer::StreamOpaque(Fields::extras(&packet, &[4])?.u32()),
        Opcode::AllVbSeqnos => {
            Answer::Seqnos(records(code, value, 10)?.map(|mut f| (f.u16(), f.u64())).collect())
        }
        Opcode::Get => {
            let flags = Fields::extras(&packet, &[4])?.u32();
            Answer::Document { flags, value: packet.value }
        }
        Opcode::Stat => Answer::Stat { name: packet.key, value: packet.value },
        _ => plain(packet.value),
    })
}
