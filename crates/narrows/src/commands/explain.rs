//! `narrows explain`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::live::{LiveClient, is_transcript};
use insight::diagnosis::{
    Changes, Class, Diagnosis, NOTE_THRESHOLDS, Series, changes, diagnose, probe, recorded, untold,
};
use insight::{Summary, advice};
use record::RunDir;
use record::names::listed;
use record::units::{parse_duration, show_seconds};
use serde_json::json;
use world::Env;

use crate::exit::{Usage, refuse};
use crate::live::{self, ConnectArgs, Looking, Probing, client, greet, title};
use crate::on::is_address;
use crate::runs;
use crate::terminal::{self, say};

/// The format of `--json`, which docs/diagnosis/json.md describes.
const FORMAT: u32 = 1;
const SPAN: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(1);
/// Endings of files that people give in place of a run, and no host has.
const FILES: [&str; 8] = [".csv", ".gz", ".html", ".json", ".jsonl", ".ndjson", ".toml", ".txt"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A cluster (its hosts, repeated or joined by commas: http://a:9200,http://b:9200), a bucket of Couchbase
    /// (couchbase://HOST[:PORT]/BUCKET, or couchbases:// for TLS; its other data nodes are found by it), a run (its id,
    /// its directory, or "last"), or the directory of a transcript.
    #[arg(value_name = "URL|RUN", required_unless_present = "rules")]
    what: Vec<String>,
    /// How long to look at a cluster; 10s unless said otherwise.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    /// Time from one look to the next; 1s unless said otherwise.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Option<Duration>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Print the rules: what is recognised by what, with thresholds, and what lifts it.
    #[arg(long, conflicts_with_all = ["what", "span", "interval", "json", "probe", "record", "diff", "runs"])]
    rules: bool,
    /// Change settings, each for up to half a minute, to tell apart what looks the same, and put them back: a limit a
    /// fifth lower or, where few chunks pass, half of it, chunks doubled, one slot more. Each change is written to a
    /// journal in a run directory first, for `narrows restore`.
    #[arg(long)]
    probe: bool,
    /// Keep what the cluster is asked and answers in a new file there, with the times, so that `narrows explain DIR`
    /// looks again exactly so, without the cluster. It names hosts, nodes and indices, and holds no credentials.
    #[arg(long, value_name = "DIR", conflicts_with = "probe")]
    record: Option<PathBuf>,
    /// Say what changed since then as well: a run of `narrows watch`, or the directory of a transcript.
    #[arg(long, value_name = "RUN")]
    diff: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Args {
    fn span(&self) -> Duration {
        self.span.unwrap_or(SPAN)
    }

    fn interval(&self) -> Duration {
        self.interval.unwrap_or(INTERVAL)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.rules {
        args.connect.refuse_given("--rules asks none; leave it out")?;
        return print_rules();
    }
    if let [one] = &args.what[..]
        && is_over(args)
    {
        if args.probe || args.record.is_some() {
            refuse!("what is over can neither be probed nor recorded; give the URL of a cluster");
        }
        if args.span.is_some() || args.interval.is_some() {
            let text = "how long and how often somebody looked is over; --for and --interval want the URL of a cluster";
            refuse!("{text}");
        }
        args.connect.refuse_given("this is over; leave it out, or give the URL of a cluster")?;
        if is_transcript(Path::new(one)) {
            return world::real_world::run(0, async |env| of_transcript(&env, args, one).await);
        }
        return world::real_world::run(0, async |env| of_run(&env, args, one).await);
    }
    refuse_runs(args)?;
    if args.span() < args.interval() || args.interval() < Duration::from_millis(100) {
        let text = "--for must be at least --interval, and --interval at least 100ms: two looks are needed";
        refuse!("{text}");
    }
    if args.what.iter().any(|what| is_bucket(what)) {
        refuse_for_buckets(args)?;
        return world::real_world::run(0, async |env| of_bucket(&env, args).await);
    }
    world::real_world::run(0, async |env| of_cluster(&env, args).await)
}

/// Whether a run or a transcript is asked for, and not a cluster.
fn is_over(args: &Args) -> bool {
    matches!(&args.what[..], [one] if !is_address(one))
}

/// Several runs are compared, not explained; and a run is no host of a cluster.
fn refuse_runs(args: &Args) -> anyhow::Result<()> {
    let is_run = |what: &String| {
        let is_looked_at = || runs::is_named(&args.runs, what) || is_transcript(Path::new(what));
        !is_address(what) && is_looked_at()
    };
    let found: Vec<&str> =
        args.what.iter().filter(|what| is_run(what)).map(String::as_str).collect();
    let any_transcript = found.iter().any(|one| is_transcript(Path::new(one)));
    let text = match (found.as_slice(), args.what.len()) {
        ([], _) => return Ok(()),
        ([then, now, ..], all) if found.len() == all && any_transcript => format!(
            "these are {all} earlier looks, and explain judges one; `narrows explain {now} --diff {then}` says what \
             changed"
        ),
        (several, all) if several.len() == all => format!(
            "these are {all} runs, and explain looks at one; `narrows compare {}` sets them beside each other",
            several.join(" ")
        ),
        ([run, ..], _) => format!(
            "\"{run}\" is a run, and the rest is not; `narrows explain {run}` explains it, and hosts are those of one cluster"
        ),
    };
    Err(Usage(text).into())
}

/// Whether an argument is the address of a bucket.
fn is_bucket(text: &str) -> bool {
    ["couchbase://", "couchbases://"].iter().any(|scheme| text.starts_with(scheme))
}

/// What cannot be had of a bucket.
fn refuse_for_buckets(args: &Args) -> anyhow::Result<()> {
    let refused = [
        (args.probe, "--probe: nothing is changed there"),
        (args.record.is_some(), "--record: what it answers is not kept"),
        (args.diff.is_some(), "--diff: no earlier look at it is kept"),
        (args.connect.any_version(), "--any-version: its version is not looked at"),
    ];
    if let Some((_, why)) = refused.iter().find(|(is_asked_for, _)| *is_asked_for) {
        refuse!("a bucket of Couchbase has no {why}");
    }
    Ok(())
}

async fn of_bucket(env: &Env, args: &Args) -> anyhow::Result<()> {
    let mut looker = live::look_at_bucket(env, &args.what, &args.connect).await?;
    let title = title(looker.identity());
    if !args.json {
        say!("looking at {title} for {}", show_seconds(args.span().as_secs_f64()));
    }
    let history = live::look_for(env, &mut looker, args.span(), args.interval()).await?;
    let series = history.series();
    write(env, args, None, (&series, &diagnose(&series)), &title).await
}

async fn of_cluster(env: &Env, args: &Args) -> anyhow::Result<()> {
    // Nobody looks for minutes to be told that there is no such run. A probe leaves a run of its own, which would be
    // the last one afterwards.
    let earlier = earlier(args)?;
    let client = client(env, &args.what, &args.connect, args.connect.timeout())?;
    let sampler = greet(env, recorded_to(client, args)?, &args.connect).await?;
    let title = title(sampler.identity());
    if !args.json {
        say!("looking at {title} for {}", show_seconds(args.span().as_secs_f64()));
    }
    let mut looking = Looking::new(sampler, args.interval());
    let looked = looking.look_for(args.span()).await;
    let kept = looking.sampler.client().transcript().map(|path| path.map(Path::to_owned));
    if let Ok(Some(path)) = &kept {
        say!("narrows: everything that was asked and answered is in {}", path.display());
    }
    looked?;
    let mut diagnosis = judged(&looking);
    let mut probed = Ok(());
    if args.probe && diagnosis.looks >= 2 && looking.silence().is_none() {
        let aloud = !args.json;
        let (runs, urls, connect) = (&*args.runs, &*args.what, &args.connect);
        let probing = Probing { runs, urls, connect, aloud };
        probed = live::probe(env, &mut looking, &mut diagnosis, &probing).await;
    }
    write(env, args, earlier, (&looking.series(), &diagnosis), &title).await?;
    // What was found is not lost for want of a probe or of the record.
    probed?;
    still_answers(&looking)?;
    probed_to_the_end(&diagnosis)?;
    Ok(kept.map(drop)?)
}

/// What was seen, judged. What is missing says where nothing answers any more.
fn judged(looking: &Looking) -> Diagnosis {
    let mut diagnosis = diagnose(&looking.series());
    if let Some(why) = looking.silence() {
        // What was well at its last answer may no longer be so.
        if diagnosis.findings.is_empty() {
            diagnosis.headline = "unknown: the cluster does not answer any more".to_owned();
        }
        diagnosis.gaps.push(why);
    }
    diagnosis
}

/// Fails where nothing answers any more, for whoever goes by the exit code.
fn still_answers(looking: &Looking) -> anyhow::Result<()> {
    match looking.silence() {
        Some(why) => anyhow::bail!("{why}; what was seen before is judged"),
        None => Ok(()),
    }
}

/// Fails where a probe was given up, for whoever goes by the exit code.
fn probed_to_the_end(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let given_up = diagnosis.probes.iter().find_map(|one| match &one.reading {
        probe::Reading::GivenUp(why) => Some(why),
        _ => None,
    });
    match given_up {
        Some(why) => anyhow::bail!("a probe was given up: {why}; what looking showed is judged"),
        None => Ok(()),
    }
}

/// The client, which writes down everything where that is wanted.
fn recorded_to(client: LiveClient, args: &Args) -> anyhow::Result<LiveClient> {
    let Some(dir) = &args.record else { return Ok(client) };
    live::written(client, dir, args.span(), args.interval())
}

async fn of_transcript(env: &Env, args: &Args, dir: &str) -> anyhow::Result<()> {
    let looking = live::looked_again(env, Path::new(dir)).await?;
    if looking.has_broken_off() {
        say!("narrows: {dir} breaks off; what was seen up to there counts");
    }
    let (series, title) = (looking.series(), title(looking.sampler.identity()));
    write(env, args, earlier(args)?, (&series, &judged(&looking)), &title).await?;
    still_answers(&looking)
}

/// How a cluster is written of which the host or the port alone was given; nothing where it is neither.
fn as_cluster(name: &str) -> String {
    if name.parse::<u16>().is_ok() {
        return format!("; a cluster is written http://localhost:{name}");
    }
    let is_file = FILES.iter().any(|ending| name.ends_with(ending)) || Path::new(name).exists();
    match is_file || name.contains(['/', ' ']) || !name.contains(char::is_alphabetic) {
        true => String::new(),
        false => format!("; a cluster is written http://{name}:9200"),
    }
}

async fn of_run(env: &Env, args: &Args, name: &str) -> anyhow::Result<()> {
    let dir = runs::find_or(&args.runs, name, &as_cluster(name))?;
    let run = RunDir::open(&dir)?;
    let summary = Summary::of(&run);
    if let Some(diagnosis) = &summary.watched {
        let series = recorded(&run);
        let identity = series.last().map(|look| title(&look.cluster)).unwrap_or_default();
        let title = format!("{identity}, run {}", run.manifest.run);
        write(env, args, earlier(args)?, (&series, diagnosis), &title).await?;
        return runs::check_manifest(&run, &dir);
    }
    if args.diff.is_some() {
        refuse!(
            "{name} measured, and watched no cluster; `narrows compare` sets runs beside each other"
        );
    }
    of_measured(args, &run, &summary)?;
    runs::check_manifest(&run, &dir)
}

/// A run that measured: its accounting says what held each variant, and its plan what would lift that.
fn of_measured(args: &Args, run: &RunDir, summary: &Summary<'_>) -> anyhow::Result<()> {
    let mut out = terminal::out();
    let advice = advice(run, summary);
    if args.json {
        writeln!(
            out,
            "{}",
            json!({
                "run": run.manifest.run,
                "headline": summary.headline,
                "details": summary.details,
                "variants": advice,
            })
        )?;
        return Ok(());
    }
    for line in std::iter::once(&summary.headline).chain(&summary.details) {
        writeln!(out, "{line}")?;
    }
    if !summary.loads.is_empty() {
        writeln!(
            out,
            "\nthis run sends loads; `explain` judges recoveries, following and buckets: see `narrows report`"
        )?;
    }
    for one in &advice {
        write!(out, "\n{}", report::screen::advice(one, out.style()))?;
    }
    for gap in &summary.gaps {
        writeln!(out, "\nmissing: {gap}")?;
    }
    Ok(())
}

/// The run that `--diff` names; none where it names a transcript, or nothing.
fn earlier(args: &Args) -> anyhow::Result<Option<RunDir>> {
    let is_run = |what: &&String| !is_transcript(Path::new(what));
    let Some(what) = args.diff.as_ref().filter(is_run) else { return Ok(None) };
    let run = runs::open_whole(&runs::find(&args.runs, what)?)?;
    if recorded(&run).looks().is_empty() {
        refuse!("{what} measured, and watched no cluster: nothing there is to be found in one");
    }
    Ok(Some(run))
}

/// What changed since what `--diff` names, where it names something.
async fn since(
    env: &Env,
    args: &Args,
    earlier: Option<RunDir>,
    now: &Series<'_>,
) -> anyhow::Result<Option<(String, Changes)>> {
    let Some(what) = &args.diff else { return Ok(None) };
    let Some(run) = earlier else {
        let then = live::looked_again(env, Path::new(what)).await?;
        return Ok(Some((what.clone(), changes(&then.series(), now))));
    };
    Ok(Some((format!("run {}", run.manifest.run), changes(&recorded(&run), now))))
}

async fn write(
    env: &Env,
    args: &Args,
    earlier: Option<RunDir>,
    (series, diagnosis): (&Series<'_>, &Diagnosis),
    title: &str,
) -> anyhow::Result<()> {
    if diagnosis.looks < 2 {
        let headline = &diagnosis.headline;
        // What is over cannot be looked at for longer.
        let hint = if is_over(args) { "" } else { "; give a longer --for" };
        refuse!("{title}: {headline}{hint}");
    }
    let since = since(env, args, earlier, series).await?;
    let mut out = terminal::out();
    if args.json {
        let mut value = serde_json::to_value(diagnosis)?;
        value["format"] = json!(FORMAT);
        value["cluster"] = json!(title);
        if let Some((_, changes)) = &since {
            value["since"] = serde_json::to_value(changes)?;
        }
        writeln!(out, "{value}")?;
    } else {
        write!(out, "{}", report::screen::findings(diagnosis, title, out.style()))?;
        if let Some((since, changes)) = &since {
            write!(out, "{}", report::screen::changes(changes, since, out.style()))?;
        }
    }
    match untold(diagnosis, series) {
        // Scripts go by the exit code.
        Some(paths) => anyhow::bail!(
            "no verdict is possible: {} had no answer; what was found instead is told of each (`gaps` in --json)",
            listed(&paths)
        ),
        None => Ok(()),
    }
}

fn print_rules() -> anyhow::Result<()> {
    let mut out = terminal::out();
    for rule in Class::ALL.iter().map(|class| class.rule()) {
        writeln!(out, "{}", rule.label)?;
        writeln!(out, "  shows      {}", rule.signature)?;
        writeln!(out, "  read from  {}", rule.reads)?;
        for threshold in rule.thresholds {
            writeln!(out, "  threshold  {}: {}", threshold.what, threshold.value)?;
        }
        let default = if rule.default.is_empty() {
            String::new()
        } else {
            format!(" (default {})", rule.default)
        };
        writeln!(out, "  lifted by  {}{default}", rule.lift)?;
        if !rule.probe.is_empty() {
            writeln!(out, "  told apart {}", rule.probe)?;
        }
    }
    writeln!(out, "notes")?;
    for threshold in NOTE_THRESHOLDS {
        writeln!(out, "  threshold  {}: {}", threshold.what, threshold.value)?;
    }
    writeln!(out, "probes")?;
    for threshold in probe::THRESHOLDS {
        writeln!(out, "  threshold  {}: {}", threshold.what, threshold.value)?;
    }
    Ok(())
}
