//! Statuses of responses.

use super::opcode::wire_numbers;

wire_numbers! {
    /// How a request went.
    #[allow(missing_docs, reason = "the names are the field's")]
    Status: u16 {
        Success = 0x00 => "SUCCESS",
        /// No such key, or no such stream.
        NotFound = 0x01 => "KEY_ENOENT",
        /// The key or the stream is there already, or has another CAS.
        Exists = 0x02 => "KEY_EEXISTS",
        TooBig = 0x03 => "E2BIG",
        Invalid = 0x04 => "EINVAL",
        /// The condition for storing was not met.
        NotStored = 0x05 => "NOT_STORED",
        /// The vbucket is not here, or not in a state for this.
        NotMyVbucket = 0x07 => "NOT_MY_VBUCKET",
        NoBucket = 0x08 => "NO_BUCKET",
        AuthError = 0x20 => "AUTH_ERROR",
        /// Authentication goes on with another message.
        AuthContinue = 0x21 => "AUTH_CONTINUE",
        Range = 0x22 => "ERANGE",
        /// The consumer has to roll back first.
        Rollback = 0x23 => "ROLLBACK",
        /// Not allowed.
        Access = 0x24 => "EACCESS",
        UnknownCommand = 0x81 => "UNKNOWN_COMMAND",
        NoMemory = 0x82 => "ENOMEM",
        NotSupported = 0x83 => "NOT_SUPPORTED",
        Internal = 0x84 => "EINTERNAL",
        Busy = 0x85 => "EBUSY",
        TemporaryFailure = 0x86 => "ETMPFAIL",
        UnknownCollection = 0x88 => "UNKNOWN_COLLECTION",
    }
}

/// A status in words, as the field writes it.
pub(crate) fn status_name(status: Result<Status, u16>) -> String {
    match status {
        Ok(status) => status.name().to_owned(),
        Err(number) => format!("status {number:#04x}"),
    }
}
