//! `narrows store`

use std::path::PathBuf;
use std::slice;

use anyhow::Context;

use crate::live::{ConnectArgs, checked_options};
use crate::{runs, store, terminal};

// A store takes its time: as long as at the end of a run.
#[derive(clap::Args)]
#[command(mut_arg("timeout", |timeout| timeout.default_value("30s")))]
#[command(mut_arg("any_version", |unused| unused.hide(true)))]
pub(crate) struct Args {
    /// The run: its id, its directory, or "last".
    #[arg(default_value = "last")]
    run: String,
    /// The Elasticsearch or OpenSearch that it is written to.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.connect.refuse_any_version()?;
    let timeout = args.connect.timeout();
    let options = checked_options(slice::from_ref(&args.to), &args.connect, timeout)?;
    let dir = runs::find(&args.runs, &args.run)?;
    let run = runs::open_whole(&dir)?;
    let id = &run.manifest.run;
    let written = store::write(&run, &options).with_context(|| {
        format!(
            "store {id} in {}; its record stays in {}, and storing it again does no harm",
            args.to,
            dir.display()
        )
    })?;
    Ok(writeln!(terminal::out(), "{written}")?)
}
