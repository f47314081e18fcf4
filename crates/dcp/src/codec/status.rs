//! Statuses of responses.

use super::opcode::wire_numbers;

wire_numbers! {
    /// How a request went.
    Status: u16 {
        /// Done.
        Success = 0x00,
        /// No such key, or no such stream.
        NotFound = 0x01,
        /// The key or the stream is there already, or has another CAS.
        Exists = 0x02,
        /// The value is too large.
        TooBig = 0x03,
        /// The request is not right.
        Invalid = 0x04,
        /// The condition for storing was not met.
        NotStored = 0x05,
        /// The vbucket is not here, or not in a state for this.
        NotMyVbucket = 0x07,
        /// No bucket is chosen.
        NoBucket = 0x08,
        /// Authentication failed.
        AuthError = 0x20,
        /// Authentication goes on with another message.
        AuthContinue = 0x21,
        /// A number is out of its range.
        Range = 0x22,
        /// The consumer has to roll back first.
        Rollback = 0x23,
        /// Not allowed.
        Access = 0x24,
        /// No such command.
        UnknownCommand = 0x81,
        /// No memory is left.
        NoMemory = 0x82,
        /// The server does not do this.
        NotSupported = 0x83,
        /// The server failed.
        Internal = 0x84,
        /// The server is busy.
        Busy = 0x85,
        /// Not now; try again.
        TemporaryFailure = 0x86,
        /// No such collection.
        UnknownCollection = 0x88,
    }
}

impl Status {
    /// The field's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Success => "SUCCESS",
            Status::NotFound => "KEY_ENOENT",
            Status::Exists => "KEY_EEXISTS",
            Status::TooBig => "E2BIG",
            Status::Invalid => "EINVAL",
            Status::NotStored => "NOT_STORED",
            Status::NotMyVbucket => "NOT_MY_VBUCKET",
            Status::NoBucket => "NO_BUCKET",
            Status::AuthError => "AUTH_ERROR",
            Status::AuthContinue => "AUTH_CONTINUE",
            Status::Range => "ERANGE",
            Status::Rollback => "ROLLBACK",
            Status::Access => "EACCESS",
            Status::UnknownCommand => "UNKNOWN_COMMAND",
            Status::NoMemory => "ENOMEM",
            Status::NotSupported => "NOT_SUPPORTED",
            Status::Internal => "EINTERNAL",
            Status::Busy => "EBUSY",
            Status::TemporaryFailure => "ETMPFAIL",
            Status::UnknownCollection => "UNKNOWN_COLLECTION",
        }
    }
}
