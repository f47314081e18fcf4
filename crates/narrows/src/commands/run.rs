//! `narrows run`

mod place;

use std::path::PathBuf;
use std::rc::Rc;
use std::slice;
use std::time::Duration;

use anyhow::Context;
use lab::plan::Plan;
use lab::{Ended, Executed, Options};
use record::units::{parse_duration, parse_rate};

use super::show::{Form, write_table};
use crate::live::ConnectArgs;
use crate::progress::Progress;
use crate::track_args::TrackArgs;
use crate::{interrupt, runs};
use place::{PlaceArgs, patient_options};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A plan that comes with narrows (see `narrows plans`), or a path that ends in .toml; a track of Rally or a
    /// workload of OpenSearch Benchmark by its track.json or workload.json, or by their folder.
    plan: String,
    #[command(flatten)]
    place: PlaceArgs,
    /// Size of the corpus; 1 is the plan's own.
    #[arg(long, default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Repetitions of every variant, instead of the plan's.
    #[arg(long, value_name = "N")]
    laps: Option<u32>,
    /// Only these variants; may be given several times.
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Round trip of the link, instead of the plan's.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rtt: Option<Duration>,
    /// Rate of the link, instead of the plan's; for example 100mbit.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Seed of everything random, instead of the plan's.
    #[arg(long)]
    seed: Option<u64>,
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

/// A number; whoever writes it as a percentage is told the number. Its bounds are those of plans.
fn parse_scale(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|scale| scale.is_finite());
    match (number(text), text.strip_suffix('%').and_then(number)) {
        (Some(scale), _) => Ok(scale),
        (None, Some(percent)) => Err(format!("write --scale {}", percent / 100.0)),
        (None, None) => Err("write a number, for example --scale 0.1 for a tenth".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    runs::refuse_file(&args.runs)?;
    let kept = |url| patient_options(slice::from_ref(url), &args.connect);
    let store = args.store.as_ref().map(kept).transpose()?;
    let executed = executed(args)?;
    let Executed { id, dir, run, ended, .. } = executed;
    let page = dir.join("report.html");
    // The table comes before whatever may fail: what was measured is not lost for want of a page.
    let written = runs::write_page(&run, &page);
    if ended.is_ok() || !run.rows.is_empty() {
        write_table(&run, &args.form, written.is_ok().then_some(&page))?;
    }
    let stored = match &store {
        Some(options) if !run.rows.is_empty() => crate::store::write(&run, options).map(drop),
        _ => Ok(()),
    };
    let dir = dir.display();
    let ended = ended.with_context(|| format!("run {id} failed; its record is in {dir}"))?;
    written?;
    stored.with_context(|| {
        format!(
            "run {id} is in {dir} and not in the store; `narrows store {id} --to URL` writes it"
        )
    })?;
    if ended == Ended::Interrupted {
        anyhow::bail!("interrupted; what was measured until then is in {dir}");
    }
    Ok(())
}

/// Runs the plan, or the track.
fn executed(args: &Args) -> anyhow::Result<Executed> {
    let place = || args.place.resolve(&args.connect);
    Ok(match args.track.open(&args.plan, args.scale, &args.place.on)? {
        Some(track) => lab::execute_track(track, args.track.nodes(), &place()?, &options(args))?,
        None => lab::execute(&Plan::open(&args.plan)?, &place()?, &options(args))?,
    })
}

fn options(args: &Args) -> Options {
    Options {
        scale: args.scale,
        laps: args.laps,
        variants: args.variants.clone(),
        rtt: args.rtt,
        rate_bytes_per_s: args.rate,
        seed: args.seed,
        watch: Rc::new(Progress::new()),
        interrupt: || Box::pin(interrupt::told()),
        ..Options::new(&args.runs)
    }
}
