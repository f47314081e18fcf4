//! Operation codes.

/// Declares an enum of wire numbers, each with its name, and its way back from a number.
macro_rules! wire_numbers {
    ($(#[$meta:meta])* $name:ident: $number:ty {
        $($(#[$each:meta])* $variant:ident = $value:literal => $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The number on the wire.
            pub const fn number(self) -> $number {
                match self { $($name::$variant => $value,)+ }
            }

            /// The field's name for it, or what it means.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// What a number on the wire stands for; none if it is not known here.
            pub const fn of(number: $number) -> Option<Self> {
                match number { $($value => Some($name::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use wire_numbers;

wire_numbers! {
    /// What a packet is about.
    #[allow(missing_docs, reason = "the names are the field's")]
    Opcode: u8 {
        Get = 0x00 => "GET",
        Set = 0x01 => "SET",
        /// Writes a document that is not there.
        Add = 0x02 => "ADD",
        /// Writes a document that is there.
        Replace = 0x03 => "REPLACE",
        Delete = 0x04 => "DELETE",
        Quit = 0x07 => "QUIT",
        /// Asks whether the server is there.
        KvNoop = 0x0a => "NOOP",
        Version = 0x0b => "VERSION",
        /// Statistics, one response each, an empty one last.
        Stat = 0x10 => "STAT",
        /// Features that the client knows.
        Hello = 0x1f => "HELLO",
        /// Mechanisms of authentication.
        SaslList = 0x20 => "SASL_LIST_MECHS",
        /// The first message of an authentication.
        SaslAuth = 0x21 => "SASL_AUTH",
        /// A further one.
        SaslStep = 0x22 => "SASL_STEP",
        AllVbSeqnos = 0x48 => "GET_ALL_VB_SEQNOS",
        Open = 0x50 => "DCP_OPEN",
        /// Has a consumer ask its producer for a stream.
        AddStream = 0x51 => "DCP_ADD_STREAM",
        CloseStream = 0x52 => "DCP_CLOSE_STREAM",
        StreamRequest = 0x53 => "DCP_STREAM_REQ",
        FailoverLog = 0x54 => "DCP_GET_FAILOVER_LOG",
        /// The producer ends a stream.
        StreamEnd = 0x55 => "DCP_STREAM_END",
        SnapshotMarker = 0x56 => "DCP_SNAPSHOT_MARKER",
        Mutation = 0x57 => "DCP_MUTATION",
        Deletion = 0x58 => "DCP_DELETION",
        Expiration = 0x59 => "DCP_EXPIRATION",
        /// The consumer's vbucket changes its state.
        SetVbucketState = 0x5b => "DCP_SET_VBUCKET_STATE",
        /// Asks whether the consumer is there.
        Noop = 0x5c => "DCP_NOOP",
        /// The consumer has processed bytes.
        BufferAck = 0x5d => "DCP_BUFFER_ACKNOWLEDGEMENT",
        Control = 0x5e => "DCP_CONTROL",
        SelectBucket = 0x89 => "SELECT_BUCKET",
        GetClusterConfig = 0xb5 => "GET_CLUSTER_CONFIG",
        /// Answers when a sequence number is persisted.
        SeqnoPersistence = 0xb7 => "SEQNO_PERSISTENCE",
        Manifest = 0xba => "COLLECTIONS_GET_MANIFEST",
        /// What statuses mean.
        ErrorMap = 0xfe => "GET_ERROR_MAP",
    }
}

impl Opcode {
    /// Whether a producer sends a version of a document with it.
    pub(crate) fn is_item(self) -> bool {
        matches!(self, Opcode::Mutation | Opcode::Deletion | Opcode::Expiration)
    }
}
