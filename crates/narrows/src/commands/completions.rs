//! `narrows completions`

use clap_complete::Shell;

use crate::terminal;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, cli: &mut clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, cli, "narrows", &mut script);
    Ok(write!(terminal::out(), "{}", String::from_utf8_lossy(&script))?)
}
