//! `narrows run`

use std::path::PathBuf;
use std::rc::Rc;
use std::slice;
use std::time::Duration;

use anyhow::Context;
use clusters::ClusterIdentity;
use clusters::live::LiveClient;
use lab::plan::Plan;
use lab::{Ended, Executed, LiveHosts, Options, Place};
use record::units::{parse_duration, parse_rate};

use super::show::{Form, write_table};
use crate::exit::Usage;
use crate::live::{ConnectArgs, checked_options, refuse_several_clusters, usage};
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::progress::Progress;
use crate::runs::write_page;
use crate::track_args::TrackArgs;
use crate::{interrupt, own_mounts, runs};

/// How long a live cluster may take to answer: a wait for health is one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(300);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A plan that comes with narrows (see `narrows plans`), or a path that ends in .toml; a track of Rally or a
    /// workload of OpenSearch Benchmark by its track.json or workload.json, or by their folder.
    plan: String,
    /// Where the clusters live: embedded (real processes on this machine), virtual (the same, simulated),
    /// opensearch (started for the run, one JVM a node; the first use fetches it with mvn), or the URL of a
    /// cluster that is already there, with its hosts joined by commas.
    #[arg(long, value_name = "WHERE", default_value_t = On::Embedded, value_parser = On::parse)]
    on: On,
    /// With a URL: the cluster that has the data, where a plan recovers from another one or follows one; the URL of
    /// --on is the one that follows.
    #[arg(long, value_name = "URL")]
    leader: Option<String>,
    /// With a URL: make an index and change settings there. Both are taken back at the end.
    #[arg(long)]
    allow_changes: bool,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
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
    track: TrackArgs,
    #[command(flatten)]
    connect: ConnectArgs,
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
    let kept = |url| checked_options(slice::from_ref(url), &args.connect, ANSWER_PATIENCE);
    let store = args.store.as_ref().map(kept).transpose()?;
    let executed = executed(args)?;
    let Executed { id, dir, run, ended, .. } = executed;
    let page = dir.join("report.html");
    // The table comes before whatever may fail: what was measured is not lost for want of a page.
    let written = write_page(&run, &page);
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
    Ok(match args.track.open(&args.plan, args.scale, &args.on)? {
        Some(track) => {
            lab::execute_track(track, args.track.nodes(), &place(args)?, &options(args))?
        }
        None => lab::execute(&Plan::open(&args.plan)?, &place(args)?, &options(args))?,
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

fn place(args: &Args) -> anyhow::Result<Place> {
    if args.leader.is_some() && !matches!(args.on, On::Url(_)) {
        return Err(Usage(lab::NO_LEADER.to_owned()).into());
    }
    let live = |urls: &[String]| checked_options(urls, &args.connect, ANSWER_PATIENCE);
    let leader = args.leader.as_ref().map(|url| live(slice::from_ref(url))).transpose()?;
    Ok(match &args.on {
        On::Embedded => Place::Embedded {
            program: std::env::current_exe()?,
            own_mounts: || own_mounts::ensure().map_err(|error| format!("{error:#}")),
        },
        On::Virtual => Place::VIRTUAL,
        On::OpenSearch => Place::OpenSearch(args.opensearch.nodes()?),
        On::Url(hosts) => {
            let live = LiveHosts {
                follower: live(hosts)?,
                leader,
                allow_changes: args.allow_changes,
                any_version: args.connect.any_version(),
            };
            if live.allow_changes {
                reach(&live, &args.connect)?;
            }
            Place::Live(Box::new(live))
        }
    })
}

/// Finds out whether anybody answers, before a record is begun. Hosts of several clusters are refused: where one does
/// not answer, another cluster would be changed.
fn reach(live: &LiveHosts, connect: &ConnectArgs) -> anyhow::Result<()> {
    world::real_world::run(0, async |env| {
        for hosts in live.leader.iter().chain([&live.follower]) {
            refuse_several_clusters(&env, &hosts.addresses, connect).await?;
            let client = LiveClient::new(&env, hosts).map_err(|error| usage(&error))?;
            ClusterIdentity::ask(&client).await.map_err(|error| usage(&error))?;
        }
        Ok(())
    })
}
