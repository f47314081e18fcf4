//! `narrows show`, and how results are written for `run` too.

use std::path::PathBuf;

use insight::Summary;
use record::RunDir;

use crate::runs;
use crate::terminal::{self, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run: its id, its directory, or "last".
    #[arg(default_value = "last")]
    run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// The form of a table.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct Form {
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Comma-separated values, a line for each lap.
    #[arg(long)]
    pub(crate) csv: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = runs::find(&args.runs, &args.run)?;
    let run = RunDir::open(&dir)?;
    let page = dir.join("report.html");
    write_table(&run, &args.form, page.is_file().then_some(&page))?;
    runs::check_manifest(&run, &dir)
}

/// Writes the table to standard output, in the form asked for.
pub(crate) fn write_table(run: &RunDir, form: &Form, page: Option<&PathBuf>) -> anyhow::Result<()> {
    let mut out = terminal::out();
    let summary = Summary::of(run);
    if form.json {
        writeln!(out, "{}", report::json(&summary))?;
    } else if form.csv {
        write!(out, "{}", report::csv(run))?;
        run.damage.iter().for_each(|sentence| say!("narrows: {sentence}"));
    } else {
        let page = page.map(PathBuf::as_path);
        writeln!(out, "{}", report::table(&summary, out.style(), page))?;
    }
    Ok(())
}
