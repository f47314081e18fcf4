//! `narrows dcp`

mod drain;
mod serve;

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
