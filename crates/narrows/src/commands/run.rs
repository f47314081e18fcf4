//! `narrows run`

mod overrides;
mod place;

use std::path::PathBuf;
use std::slice;

use anyhow::Context;
use insight::load::only_errors;
use lab::plan::Plan;
use lab::{Ended, Executed};

use super::show::{Form, write_table};
use crate::live::{ConnectArgs, checked_options};
use crate::on::On;
use crate::runs;
use crate::terminal::say;
use crate::track_args::TrackArgs;
use overrides::Overrides;
pub(super) use overrides::parse_scale;
use place::PlaceArgs;

const TIMEOUT: &str = "How long the first answer of a cluster may take; later ones may take 5 minutes, or this where \
                       it is longer";

#[derive(clap::Args)]
#[command(mut_arg("timeout", |timeout| timeout.help(TIMEOUT)))]
pub(crate) struct Args {
    /// A plan that comes with narrows (see `narrows plans`), or a path that ends in .toml; a track of Rally or a
    /// workload of OpenSearch Benchmark by its track.json or workload.json, or by their folder.
    plan: String,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// Also write the run into this Elasticsearch or OpenSearch, as Rally stores races, results and metrics. A store
    /// that is away is waited for two minutes; `narrows store` writes it later.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    connect: ConnectArgs,
    // Last: what follows would stand below its heading.
    #[command(flatten)]
    track: TrackArgs,
}

impl Args {
    /// Refuses what says how a cluster is reached where none is.
    fn refuse_unused(&self) -> anyhow::Result<()> {
        match &self.place.on {
            On::Url(_) => Ok(()),
            _ if self.store.is_some() => Ok(()),
            on => self.connect.refuse_given(&format!(
                "this run is on {on}; leave it out, or give --on URL or --store URL"
            )),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    runs::refuse_file(&args.runs)?;
    args.refuse_unused()?;
    let patience = crate::store::PATIENCE.max(args.connect.timeout());
    let kept = |url| checked_options(slice::from_ref(url), &args.connect, patience);
    let store = args.store.as_ref().map(kept).transpose()?;
    store.iter().for_each(crate::store::say_if_away);
    let executed = executed(args)?;
    let Executed { id, dir, run, ended, .. } = executed;
    let page = dir.join("report.html");
    // The table comes before whatever may fail: what was measured is not lost for want of a page.
    let written = runs::write_page(&run, &page);
    if ended.is_ok() || !run.rows.is_empty() {
        write_table(&run, &args.form, written.is_ok().then_some(&page))?;
    }
    let stored = match &store {
        Some(options) if !run.rows.is_empty() => {
            crate::store::write(&run, options).map(|written| say!("{written}"))
        }
        _ => Ok(()),
    };
    let dir = dir.display();
    let stored = stored.with_context(|| {
        format!(
            "run {id} is in {dir} and not in the store; `narrows store {id} --to URL` writes it"
        )
    });
    let ended = ended.with_context(|| format!("run {id} failed; its record is in {dir}"));
    // Neither hides the other.
    if let (Err(_), Err(error)) = (&ended, &stored) {
        say!("narrows: {error:#}");
    }
    let ended = ended?;
    written?;
    stored?;
    if ended == Ended::Interrupted {
        anyhow::bail!("interrupted; what was measured until then is in {dir}");
    }
    if let Some(lost) = only_errors(&run) {
        let (what, hint) = match run.manifest.challenge {
            Some(_) => ("tasks", "; --exclude-tasks leaves tasks out"),
            None => ("operations", ""),
        };
        anyhow::bail!(
            "no request of these {what} was answered well: {lost}{hint}. The record is in {dir}"
        );
    }
    Ok(())
}

/// Runs the plan, or the track.
fn executed(args: &Args) -> anyhow::Result<Executed> {
    let place = || args.place.resolve(&args.connect);
    let options = args.overrides.options(&args.runs);
    Ok(match args.track.open(&args.plan, args.overrides.scale, &args.place.on)? {
        Some(track) => lab::execute_track(track, args.track.nodes(), &place()?, &options)?,
        None => lab::execute(&Plan::open(&args.plan)?, &place()?, &options)?,
    })
}
