//! Operation codes.

/// Declares an enum of wire numbers with its way back from a number.
macro_rules! wire_numbers {
    ($(#[$meta:meta])* $name:ident: $number:ty { $($(#[$each:meta])* $variant:ident = $value:literal,)+ }) => {
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
    Opcode: u8 {
        /// Reads a document.
        Get = 0x00,
        /// Writes a document.
        Set = 0x01,
        /// Writes a document that is not there.
        Add = 0x02,
        /// Writes a document that is there.
        Replace = 0x03,
        /// Deletes a document.
        Delete = 0x04,
        /// The client leaves.
        Quit = 0x07,
        /// Asks whether the server is there.
        KvNoop = 0x0a,
        /// The server's version.
        Version = 0x0b,
        /// Statistics, one response each, an empty one last.
        Stat = 0x10,
        /// Features that the client knows.
        Hello = 0x1f,
        /// Mechanisms of authentication.
        SaslList = 0x20,
        /// The first message of an authentication.
        SaslAuth = 0x21,
        /// A further one.
        SaslStep = 0x22,
        /// The highest sequence numbers of all vbuckets.
        AllVbSeqnos = 0x48,
        /// Opens a connection for DCP.
        Open = 0x50,
        /// Has a consumer ask its producer for a stream.
        AddStream = 0x51,
        /// Ends a stream.
        CloseStream = 0x52,
        /// Asks a producer for a stream.
        StreamRequest = 0x53,
        /// The failover log of a vbucket.
        FailoverLog = 0x54,
        /// The producer ends a stream.
        StreamEnd = 0x55,
        /// A snapshot begins.
        SnapshotMarker = 0x56,
        /// A document was written.
        Mutation = 0x57,
        /// A document was deleted.
        Deletion = 0x58,
        /// A document expired.
        Expiration = 0x59,
        /// The consumer's vbucket changes its state.
        SetVbucketState = 0x5b,
        /// Asks whether the consumer is there.
        Noop = 0x5c,
        /// The consumer has processed bytes.
        BufferAck = 0x5d,
        /// A setting of the connection.
        Control = 0x5e,
        /// Chooses the bucket.
        SelectBucket = 0x89,
        /// The cluster's configuration.
        GetClusterConfig = 0xb5,
        /// Answers when a sequence number is persisted.
        SeqnoPersistence = 0xb7,
        /// The manifest of collections.
        Manifest = 0xba,
        /// What statuses mean.
        ErrorMap = 0xfe,
    }
}

impl Opcode {
    /// The field's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Opcode::Get => "GET",
            Opcode::Set => "SET",
            Opcode::Add => "ADD",
            Opcode::Replace => "REPLACE",
            Opcode::Delete => "DELETE",
            Opcode::Quit => "QUIT",
            Opcode::KvNoop => "NOOP",
            Opcode::Version => "VERSION",
            Opcode::Stat => "STAT",
            Opcode::Hello => "HELLO",
            Opcode::SaslList => "SASL_LIST_MECHS",
            Opcode::SaslAuth => "SASL_AUTH",
            Opcode::SaslStep => "SASL_STEP",
            Opcode::AllVbSeqnos => "GET_ALL_VB_SEQNOS",
            Opcode::Open => "DCP_OPEN",
            Opcode::AddStream => "DCP_ADD_STREAM",
            Opcode::CloseStream => "DCP_CLOSE_STREAM",
            Opcode::StreamRequest => "DCP_STREAM_REQ",
            Opcode::FailoverLog => "DCP_GET_FAILOVER_LOG",
            Opcode::StreamEnd => "DCP_STREAM_END",
            Opcode::SnapshotMarker => "DCP_SNAPSHOT_MARKER",
            Opcode::Mutation => "DCP_MUTATION",
            Opcode::Deletion => "DCP_DELETION",
            Opcode::Expiration => "DCP_EXPIRATION",
            Opcode::SetVbucketState => "DCP_SET_VBUCKET_STATE",
            Opcode::Noop => "DCP_NOOP",
            Opcode::BufferAck => "DCP_BUFFER_ACKNOWLEDGEMENT",
            Opcode::Control => "DCP_CONTROL",
            Opcode::SelectBucket => "SELECT_BUCKET",
            Opcode::GetClusterConfig => "GET_CLUSTER_CONFIG",
            Opcode::SeqnoPersistence => "SEQNO_PERSISTENCE",
            Opcode::Manifest => "COLLECTIONS_GET_MANIFEST",
            Opcode::ErrorMap => "GET_ERROR_MAP",
        }
    }
}
