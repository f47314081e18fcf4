//! Who a client of the protocol is.

use dcp::auth::Credentials;

use crate::exit::refuse;

/// User and password; the protocol knows nothing else.
pub(crate) fn user_and_password(found: clusters::Credentials) -> anyhow::Result<Credentials> {
    match found {
        clusters::Credentials::Basic { user, password } => Ok(Credentials { user, password }),
        other => refuse!(
            "a bucket wants a user and a password, and was given {}: put both into NARROWS_USER and \
                 NARROWS_PASSWORD, or into a file given with --credentials",
            other.kind()
        ),
    }
}
