//! `narrows runs`

use std::path::{Path, PathBuf};

use insight::Summary;
use record::RunDir;
use report::Listed;

use crate::runs;
use crate::terminal::{self, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let listed: Vec<Listed> =
        runs::list(&args.runs)?.into_iter().map(|id| look_at(&args.runs.join(&id), id)).collect();
    let mut out = terminal::out();
    if args.json {
        return Ok(writeln!(out, "{}", report::listed_json(&listed))?);
    }
    if listed.is_empty() {
        say!("{}", runs::none_yet(&args.runs));
        return Ok(());
    }
    let (style, width) = (out.style(), out.line_width());
    Ok(write!(out, "{}", report::listed(&listed, style, width))?)
}

/// One run is read at a time: many of them may be large.
fn look_at(dir: &Path, id: String) -> Listed {
    match RunDir::open(dir) {
        Ok(run) => {
            let headline = Summary::of(&run).headline;
            let manifest = run.manifest;
            Listed {
                id,
                plan: manifest.plan,
                target: manifest.target,
                status: Some(manifest.status),
                started: manifest.started,
                headline,
            }
        }
        Err(error) => Listed {
            id,
            plan: "-".to_owned(),
            target: "-".to_owned(),
            status: None,
            started: String::new(),
            headline: error.to_string(),
        },
    }
}
