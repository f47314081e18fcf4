//! `narrows dcp`

mod drain;
mod serve;

use ::dcp::auth::Credentials;

use crate::exit::Usage;

/// What to do with Couchbase's change protocol.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Read all changes of a bucket as fast as its producers send, keep nothing, and say how fast that was. Read-only.
    Drain(drain::Args),
    /// Serve a bucket of our own on this machine, for any client or tool to be pointed at.
    Serve(serve::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Drain(args) => drain::run(args),
        Command::Serve(args) => serve::run(args),
    }
}

/// User and password; the protocol knows nothing else.
fn user_and_password(found: clusters::Credentials) -> anyhow::Result<Credentials> {
    match found {
        clusters::Credentials::Basic { user, password } => Ok(Credentials { user, password }),
        other => {
            let text = format!(
                "{} will not do here: put user and password into NARROWS_USER and NARROWS_PASSWORD, or into a file given \
                 with --credentials",
                other.kind()
            );
            Err(Usage(text).into())
        }
    }
}
