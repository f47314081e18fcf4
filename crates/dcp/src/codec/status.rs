//! Statuses of responses.

use super::opcode::wire_numbers;

wire_numbers! {
    /// How a request went.
    Status: u16 {
        /// Done.
        Success = 0x00 => "SUCCESS",
        /// No such key, or no such stream.
        NotFound = 0x01 => "KEY_ENOENT",
        /// The key or the stream is there already, or has another CAS.
        Exists = 0x02 => "KEY_EEXISTS",
        /// The value is too large.
        TooBig = 0x03 => "E2BIG",
        /// The request is not right.
        Invalid = 0x04 => "EINVAL",
        /// The condition for storing was not met.
        NotStored = 0x05 => "NOT_STORED",
        /// The vbucket is not here, or not in a state for this.
        NotMyVbucket = 0x07 => "NOT_MY_VBUCKET",
        /// No bucket is chosen.
        NoBucket = 0x08 => "NO_BUCKET",
        /// Authentication failed.
        AuthError = 0x20 => "AUTH_ERROR",
        /// Authentication goes on with another message.
        AuthContinue = 0x21 => "AUTH_CONTINUE",
        /// A number is out of its range.
        Range = 0x22 => "ERANGE",
        /// The consumer has to roll back first.
        Rollback = 0x23 => "ROLLBACK",
        /// Not allowed.
        Access = 0x24 => "EACCESS",
        /// No such command.
        UnknownCommand = 0x81 => "UNKNOWN_COMMAND",
        /// No memory is left.
        NoMemory = 0x82 => "ENOMEM",
        /// The server does not do this.
        NotSupported = 0x83 => "NOT_SUPPORTED",
        /// The server failed.
        Internal = 0x84 => "EINTERNAL",
        /// The server is busy.
        Busy = 0x85 => "EBUSY",
        /// Not now; try again.
        TemporaryFailure = 0x86 => "ETMPFAIL",
        /// No such collection.
        UnknownCollection = 0x88 => "UNKNOWN_COLLECTION",
    }
}
