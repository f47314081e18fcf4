//! Exit codes: 0 done, 1 failed, 2 asked wrongly. A reader that went away (`| head`) is no failure. A node's process
//! has one more, for its runner alone: [`clusters::ADDRESS_TAKEN`].

use std::io;
use std::process::ExitCode;

use crate::terminal::{self, say};

/// What was asked cannot be done as it was asked: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

pub(crate) fn of_clap(error: &clap::Error) -> ExitCode {
    terminal::print_clap(error);
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

pub(crate) fn of(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.chain().any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    say!("narrows: {}", told(&error));
    ExitCode::from(match () {
        () if error.chain().any(is_usage) => 2,
        () if error.chain().any(is_taken) => clusters::ADDRESS_TAKEN,
        () => 1,
    })
}

/// The error and its causes, each once: some say their cause themselves.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| {
        match said.is_empty() {
            true => cause,
            false if said.ends_with(&cause) => said,
            false => format!("{said}: {cause}"),
        }
    })
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let io = cause.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A node could not listen because another process does.
fn is_taken(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref(),
        Some(engine::Error::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse
    )
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<Usage>()
        || cause.downcast_ref().is_some_and(lab::Error::is_usage)
        || cause.downcast_ref().is_some_and(clusters::Error::is_usage)
}
