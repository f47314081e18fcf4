//! `narrows report`

use std::path::PathBuf;

use record::RunDir;

use crate::{runs, terminal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run: its id, its directory, or "last".
    #[arg(default_value = "last")]
    run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// Where to write the page; into the run's directory by default.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = runs::find(&args.runs, &args.run)?;
    let run = RunDir::open(&dir)?;
    let to = args.output.clone().unwrap_or_else(|| dir.join("report.html"));
    match &args.output {
        Some(_) => runs::write(&report::html(&run), &to)?,
        None => runs::write_page(&run, &to)?,
    }
    writeln!(terminal::out(), "{}", to.display())?;
    runs::check_manifest(&run, &dir)
}
