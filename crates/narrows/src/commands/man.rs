//! `narrows man`

use std::path::PathBuf;

use anyhow::Context;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where they are written: narrows.1, narrows-run.1 and so on.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, cli: clap::Command) -> anyhow::Result<()> {
    let tried = || format!("write manual pages into {}", args.dir.display());
    std::fs::create_dir_all(&args.dir).with_context(tried)?;
    clap_mangen::generate_to(cli, &args.dir).with_context(tried)
}
