//! `narrows store`

use std::path::PathBuf;
use std::slice;
use std::time::Duration;

use anyhow::Context;

use crate::live::{ConnectArgs, checked_options};
use crate::{runs, store, terminal};

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
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
    let options = checked_options(slice::from_ref(&args.to), &args.connect, TIMEOUT)?;
    let dir = runs::find(&args.runs, &args.run)?;
    let run = runs::open_whole(&dir)?;
    let id = &run.manifest.run;
    let count = store::write(&run, &options).with_context(|| {
        format!(
            "store {id}; its record stays in {}, and storing it again does no harm",
            dir.display()
        )
    })?;
    Ok(writeln!(
        terminal::out(),
        "{id}: {count} documents in rally-races-*, rally-results-* and rally-metrics-*"
    )?)
}
