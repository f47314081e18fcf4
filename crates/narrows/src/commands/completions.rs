//! `narrows completions`

use std::io;

use clap_complete::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, cli: &mut clap::Command) -> anyhow::Result<()> {
    clap_complete::generate(args.shell, cli, "narrows", &mut io::stdout());
    Ok(())
}
