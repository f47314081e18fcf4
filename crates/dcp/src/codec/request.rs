//! Requests and the messages of streams, typed.

use std::fmt;

use bytes::Bytes;

use super::error::DecodeError;
use super::fields::{Fields, Writer, records};
use super::opcode::{Opcode, wire_numbers};
use super::packet::{Kind, Packet};

/// Flag of OPEN: the server is the producer.
pub const OPEN_PRODUCER: u32 = 1;
/// Flag of OPEN: values come with their extended attributes.
pub const OPEN_XATTRS: u32 = 4;
/// Flag of OPEN: values are left out.
pub const OPEN_NO_VALUE: u32 = 8;
/// Flag of OPEN: deletions come with their time (their second form).
pub const OPEN_DELETE_TIMES: u32 = 0x20;

/// Flag of a stream: the vbucket moves to the consumer.
pub const STREAM_TAKEOVER: u32 = 1;
/// Flag of a stream: only what is on disk.
pub const STREAM_DISK_ONLY: u32 = 2;
/// Flag of a stream: it ends with the snapshot that the vbucket's highest sequence number of now is in.
pub const STREAM_TO_LATEST: u32 = 4;
/// Flag of a stream: only if the vbucket is active.
pub const STREAM_ACTIVE_ONLY: u32 = 0x10;

/// Flag of a snapshot: it comes from memory.
pub const SNAPSHOT_MEMORY: u32 = 1;
/// Flag of a snapshot: it comes from disk and holds each document once.
pub const SNAPSHOT_DISK: u32 = 2;
/// Flag of a snapshot: the consumer begins a checkpoint.
pub const SNAPSHOT_CHECKPOINT: u32 = 4;
/// Flag of a snapshot: the consumer answers the marker.
pub const SNAPSHOT_ACK: u32 = 8;

/// Length of the extras of a mutation.
const MUTATION_EXTRAS_BYTES: usize = 31;

wire_numbers! {
    /// The state of a vbucket.
    VbucketState: u8 {
        /// Takes writes, and streams to others.
        Active = 1 => "active",
        /// Follows an active copy.
        Replica = 2 => "replica",
        /// Is about to become active.
        Pending = 3 => "pending",
        /// Is no longer in use.
        Dead = 4 => "dead",
    }
}

/// Why a stream ended.
#[allow(missing_docs, reason = "the texts of its `Display` say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Ok,
    Closed,
    State,
    Disconnected,
    Slow,
    BackfillFailed,
    Rollback,
    /// A number that is not known here; newer producers have more. It ends its stream as the others do.
    Other(u32),
}

impl EndReason {
    /// Those that are known here, each at the place of its number.
    const KNOWN: [EndReason; 7] = [
        EndReason::Ok,
        EndReason::Closed,
        EndReason::State,
        EndReason::Disconnected,
        EndReason::Slow,
        EndReason::BackfillFailed,
        EndReason::Rollback,
    ];

    /// The number on the wire.
    fn number(self) -> u32 {
        match self {
            EndReason::Other(number) => number,
            known => EndReason::KNOWN.iter().take_while(|one| **one != known).count() as u32,
        }
    }

    /// What a number on the wire stands for.
    pub fn of(number: u32) -> EndReason {
        EndReason::KNOWN.get(number as usize).copied().unwrap_or(EndReason::Other(number))
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndReason::Ok => "all was sent",
            EndReason::Closed => "the stream was closed",
            EndReason::State => "the vbucket moved or changed its state",
            EndReason::Disconnected => "the producer was disconnected",
            EndReason::Slow => "the consumer was too slow",
            EndReason::BackfillFailed => "the producer could not read its disk",
            EndReason::Rollback => "the producer rolled back",
            EndReason::Other(number) => {
                return write!(f, "the producer ended it, reason {number}");
            }
        })
    }
}

/// What a STREAM_REQ asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRequest {
    /// `STREAM_` flags.
    pub flags: u32,
    /// The last sequence number that the consumer has.
    pub start: u64,
    /// The last one that it wants.
    pub end: u64,
    /// The history that it has, by the newest entry of its failover table.
    pub uuid: u64,
    /// Where the snapshot begins that `start` is in.
    pub snap_start: u64,
    /// Where it ends.
    pub snap_end: u64,
}

/// A version of a document in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Sequence number in the vbucket.
    pub by_seqno: u64,
    /// How often the document was changed.
    pub rev_seqno: u64,
    /// The client's own flags, in a mutation.
    pub flags: u32,
    /// When the document expires, or was deleted: seconds since 1970; 0 never.
    pub time_s: u32,
    /// Whether a deletion has its time: the second form of the message.
    pub is_timed: bool,
    /// How long a mutation is locked.
    pub lock_time: u32,
    /// Bytes of extended metadata at the value's end; of a deletion in the first form alone.
    pub nmeta: u16,
    /// How recently a mutation was used.
    pub nru: u8,
    /// Key.
    pub key: Bytes,
    /// Value; without a document extended attributes that outlive it.
    pub value: Bytes,
}

/// A write of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The client's own flags.
    pub flags: u32,
    /// When it expires: seconds from now up to 30 days, seconds since 1970 above; 0 never.
    pub expiry: u32,
    /// Key.
    pub key: Bytes,
    /// Value.
    pub value: Bytes,
}

/// A snapshot of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its first sequence number.
    pub start: u64,
    /// Its last one; the view is consistent there.
    pub end: u64,
    /// `SNAPSHOT_` flags.
    pub flags: u32,
}

/// Declares what requests ask, each by the name of its opcode.
macro_rules! bodies {
    ($($name:ident $(($of:ty))? $({ $($field:ident: $type:ty),+ })?,)+) => {
        /// A request by what it asks.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is its opcode, and the fields are those of the types")]
        pub enum Body { $($name $(($of))? $({ $($field: $type),+ })?,)+ }

        impl Body {
            /// The opcode of it.
            pub fn opcode(&self) -> Opcode {
                match self { $(Body::$name { .. } => Opcode::$name,)+ }
            }
        }
    };
}

bodies! {
    Get { key: Bytes },
    Set(Write),
    Add(Write),
    Replace(Write),
    Delete { key: Bytes },
    Quit,
    KvNoop,
    Version,
    Stat { group: Bytes },
    Hello { agent: Bytes, features: Vec<u16> },
    SaslList,
    SaslAuth { mechanism: Bytes, data: Bytes },
    SaslStep { mechanism: Bytes, data: Bytes },
    AllVbSeqnos { state: Option<u32> },
    Open { flags: u32, name: Bytes, value: Bytes },
    AddStream { flags: u32 },
    CloseStream,
    StreamRequest(StreamRequest),
    FailoverLog,
    StreamEnd { reason: EndReason },
    SnapshotMarker(Marker),
    Mutation(Version),
    Deletion(Version),
    Expiration(Version),
    SetVbucketState { state: VbucketState },
    Noop,
    BufferAck { bytes: u32 },
    Control { name: Bytes, value: Bytes },
    SelectBucket { name: Bytes },
    GetClusterConfig,
    SeqnoPersistence { seqno: u64 },
    Manifest,
    ErrorMap { version: u16 },
}

/// A request, or a message of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Repeated in the answer; in a stream's messages the opaque that the stream was asked for with.
    pub opaque: u32,
    /// The vbucket that it concerns.
    pub vbucket: u16,
    /// Version of the document.
    pub cas: u64,
    /// How the value is encoded.
    pub datatype: u8,
    /// What is asked.
    pub body: Body,
}

impl Request {
    /// A request without CAS and datatype.
    pub fn new(opaque: u32, vbucket: u16, body: Body) -> Request {
        Request { opaque, vbucket, cas: 0, datatype: 0, body }
    }

    /// Reads a packet. Fails if it is no request, its opcode is not known, or a part does not have the length that the
    /// opcode has.
    pub fn parse(packet: Packet) -> Result<Request, DecodeError> {
        let opcode =
            Opcode::of(packet.opcode).ok_or(DecodeError::Opcode { found: packet.opcode })?;
        if packet.kind != Kind::Request {
            return Err(DecodeError::Kind { opcode: packet.opcode, expected: "request" });
        }
        Ok(Request {
            opaque: packet.opaque,
            vbucket: packet.vbucket_or_status,
            cas: packet.cas,
            datatype: packet.datatype,
            body: parse(opcode, packet)?,
        })
    }

    /// The packet of it.
    pub fn packet(self) -> Packet {
        let opcode = self.body.opcode();
        let (extras, key, value) = parts(self.body);
        Packet {
            datatype: self.datatype,
            vbucket_or_status: self.vbucket,
            opaque: self.opaque,
            cas: self.cas,
            extras,
            key,
            value,
            ..Packet::new(Kind::Request, opcode.number())
        }
    }
}

/// Whether key and value must, may or must not be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    No,
    May,
    Must,
}

fn check(
    packet: &Packet,
    part: &'static str,
    bytes: &Bytes,
    need: Need,
) -> Result<(), DecodeError> {
    let wrong = match need {
        Need::No => !bytes.is_empty(),
        Need::May => false,
        Need::Must => bytes.is_empty(),
    };
    match wrong {
        true => Err(DecodeError::Length { opcode: packet.opcode, part, found: bytes.len() }),
        false => Ok(()),
    }
}

/// Lengths that the extras of an opcode may have, and whether it has a key and a value.
fn shape(opcode: Opcode) -> (&'static [usize], Need, Need) {
    use Need::{May, Must, No};
    match opcode {
        Opcode::Get | Opcode::Delete | Opcode::SelectBucket => (&[0], Must, No),
        Opcode::Set | Opcode::Add | Opcode::Replace | Opcode::Open => (&[8], Must, May),
        Opcode::Stat | Opcode::Hello => (&[0], May, May),
        Opcode::SaslAuth | Opcode::SaslStep | Opcode::Control => (&[0], Must, May),
        Opcode::Mutation => (&[MUTATION_EXTRAS_BYTES], Must, May),
        Opcode::Deletion => (&[18, 21], Must, May),
        Opcode::Expiration => (&[20], Must, May),
        Opcode::StreamRequest => (&[48], No, May),
        Opcode::ErrorMap => (&[0], No, May),
        Opcode::AddStream | Opcode::StreamEnd | Opcode::BufferAck => (&[4], No, No),
        Opcode::SnapshotMarker => (&[20], No, No),
        Opcode::SetVbucketState => (&[1], No, No),
        Opcode::AllVbSeqnos => (&[0, 4], No, No),
        Opcode::SeqnoPersistence => (&[8], No, No),
        _ => (&[0], No, No),
    }
}

fn parse(opcode: Opcode, packet: Packet) -> Result<Body, DecodeError> {
    let (lengths, needs_key, needs_value) = shape(opcode);
    check(&packet, "key", &packet.key, needs_key)?;
    check(&packet, "value", &packet.value, needs_value)?;
    let Packet { opcode: code, extras, key, value, .. } = packet;
    let mut f = Fields::part(code, "extras", &extras, lengths)?;
    let unknown = |field, found: u64| DecodeError::Number { opcode: code, field, found };
    Ok(match opcode {
        Opcode::Get => Body::Get { key },
        Opcode::Set => Body::Set(Write { flags: f.u32(), expiry: f.u32(), key, value }),
        Opcode::Add => Body::Add(Write { flags: f.u32(), expiry: f.u32(), key, value }),
        Opcode::Replace => Body::Replace(Write { flags: f.u32(), expiry: f.u32(), key, value }),
        Opcode::Delete => Body::Delete { key },
        Opcode::Quit => Body::Quit,
        Opcode::KvNoop => Body::KvNoop,
        Opcode::Version => Body::Version,
        Opcode::Stat => Body::Stat { group: key },
        Opcode::Hello => {
            let features = records(code, &value, 2)?.map(|mut f| f.u16()).collect();
            Body::Hello { agent: key, features }
        }
        Opcode::SaslList => Body::SaslList,
        Opcode::SaslAuth => Body::SaslAuth { mechanism: key, data: value },
        Opcode::SaslStep => Body::SaslStep { mechanism: key, data: value },
        Opcode::AllVbSeqnos => Body::AllVbSeqnos { state: (!f.is_empty()).then(|| f.u32()) },
        Opcode::Open => {
            f.u32();
            Body::Open { flags: f.u32(), name: key, value }
        }
        Opcode::AddStream => Body::AddStream { flags: f.u32() },
        Opcode::CloseStream => Body::CloseStream,
        Opcode::StreamRequest => {
            let flags = f.u32();
            f.u32();
            let (start, end, uuid) = (f.u64(), f.u64(), f.u64());
            let (snap_start, snap_end) = (f.u64(), f.u64());
            Body::StreamRequest(StreamRequest { flags, start, end, uuid, snap_start, snap_end })
        }
        Opcode::FailoverLog => Body::FailoverLog,
        Opcode::StreamEnd => Body::StreamEnd { reason: EndReason::of(f.u32()) },
        Opcode::SnapshotMarker => {
            Body::SnapshotMarker(Marker { start: f.u64(), end: f.u64(), flags: f.u32() })
        }
        Opcode::Mutation => Body::Mutation(Version {
            by_seqno: f.u64(),
            rev_seqno: f.u64(),
            flags: f.u32(),
            time_s: f.u32(),
            is_timed: false,
            lock_time: f.u32(),
            nmeta: f.u16(),
            nru: f.u8(),
            key,
            value,
        }),
        Opcode::Deletion => {
            let (by_seqno, rev_seqno, is_timed) = (f.u64(), f.u64(), extras.len() == 21);
            let (time_s, nmeta) = if is_timed { (f.u32(), 0) } else { (0, f.u16()) };
            let version = Version { by_seqno, rev_seqno, time_s, key, value, ..Version::default() };
            Body::Deletion(Version { is_timed, nmeta, ..version })
        }
        Opcode::Expiration => {
            let (by_seqno, rev_seqno, time_s) = (f.u64(), f.u64(), f.u32());
            let version = Version { by_seqno, rev_seqno, time_s, key, value, ..Version::default() };
            Body::Expiration(version)
        }
        Opcode::SetVbucketState => {
            let number = f.u8();
            let state = VbucketState::of(number);
            Body::SetVbucketState { state: state.ok_or_else(|| unknown("state", number.into()))? }
        }
        Opcode::Noop => Body::Noop,
        Opcode::BufferAck => Body::BufferAck { bytes: f.u32() },
        Opcode::Control => Body::Control { name: key, value },
        Opcode::SelectBucket => Body::SelectBucket { name: key },
        Opcode::GetClusterConfig => Body::GetClusterConfig,
        Opcode::SeqnoPersistence => Body::SeqnoPersistence { seqno: f.u64() },
        Opcode::Manifest => Body::Manifest,
        Opcode::ErrorMap => {
            Body::ErrorMap { version: Fields::part(code, "value", &value, &[2])?.u16() }
        }
    })
}

/// Extras, key and value of a body.
fn parts(body: Body) -> (Bytes, Bytes, Bytes) {
    let none = Bytes::new;
    let w = Writer::default;
    match body {
        Body::Get { key } | Body::Delete { key } => (none(), key, none()),
        Body::Set(write) | Body::Add(write) | Body::Replace(write) => {
            (w().u32(write.flags).u32(write.expiry).done(), write.key, write.value)
        }
        Body::Stat { group } => (none(), group, none()),
        Body::Hello { agent, features } => {
            let value = features.into_iter().fold(w(), Writer::u16).done();
            (none(), agent, value)
        }
        Body::SaslAuth { mechanism, data } | Body::SaslStep { mechanism, data } => {
            (none(), mechanism, data)
        }
        Body::AllVbSeqnos { state } => {
            (state.map_or_else(none, |s| w().u32(s).done()), none(), none())
        }
        Body::Open { flags, name, value } => (w().u32(0).u32(flags).done(), name, value),
        Body::AddStream { flags } => (w().u32(flags).done(), none(), none()),
        Body::StreamRequest(r) => {
            let extras = w().u32(r.flags).u32(0).u64(r.start).u64(r.end).u64(r.uuid);
            (extras.u64(r.snap_start).u64(r.snap_end).done(), none(), none())
        }
        Body::StreamEnd { reason } => (w().u32(reason.number()).done(), none(), none()),
        Body::SnapshotMarker(m) => {
            (w().u64(m.start).u64(m.end).u32(m.flags).done(), none(), none())
        }
        Body::Mutation(m) => {
            let extras = Writer::of(MUTATION_EXTRAS_BYTES).u64(m.by_seqno).u64(m.rev_seqno);
            let extras = extras.u32(m.flags).u32(m.time_s);
            (extras.u32(m.lock_time).u16(m.nmeta).u8(m.nru).done(), m.key, m.value)
        }
        Body::Deletion(d) => {
            let extras = w().u64(d.by_seqno).u64(d.rev_seqno);
            let extras = match d.is_timed {
                true => extras.u32(d.time_s).u8(0),
                false => extras.u16(d.nmeta),
            };
            (extras.done(), d.key, d.value)
        }
        Body::Expiration(e) => {
            let extras = w().u64(e.by_seqno).u64(e.rev_seqno).u32(e.time_s);
            (extras.done(), e.key, e.value)
        }
        Body::SetVbucketState { state } => (w().u8(state.number()).done(), none(), none()),
        Body::BufferAck { bytes } => (w().u32(bytes).done(), none(), none()),
        Body::Control { name, value } => (none(), name, value),
        Body::SelectBucket { name } => (none(), name, none()),
        Body::SeqnoPersistence { seqno } => (w().u64(seqno).done(), none(), none()),
        Body::ErrorMap { version } => (none(), none(), w().u16(version).done()),
        // Their opcode says it all.
        _ => (none(), none(), none()),
    }
}
