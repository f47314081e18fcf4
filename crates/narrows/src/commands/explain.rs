//! `narrows explain`

use std::path::PathBuf;
use std::time::Duration;

use insight::Summary;
use insight::diagnosis::{Class, Diagnosis, diagnose, probe, recorded};
use record::RunDir;
use record::units::{parse_duration, show_seconds};
use serde_json::json;
use world::Env;

use crate::exit::Usage;
use crate::live::{self, ConnectArgs, Looking, Probing, connect, title};
use crate::runs;
use crate::terminal::{self, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A cluster (its hosts, repeated or joined by commas: http://a:9200,http://b:9200), or a run: its id, its
    /// directory, or "last".
    #[arg(value_name = "URL|RUN", required_unless_present = "rules")]
    what: Vec<String>,
    /// How long to look at a cluster.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    span: Duration,
    /// Time from one look to the next.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Print the rules: what is recognised by what, with thresholds, and what lifts it.
    #[arg(long)]
    rules: bool,
    /// Change settings for seconds, to tell apart what looks the same, and put them back: a limit a fifth lower, chunks
    /// doubled, one slot more. Each change is written to a journal in a run directory first, for `narrows restore`.
    #[arg(long)]
    probe: bool,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.rules {
        return print_rules();
    }
    if let [one] = &args.what[..]
        && !is_address(one)
    {
        if args.probe {
            let text = "a run is over, so there is nothing to probe; give the URL of a cluster";
            return Err(Usage(text.to_owned()).into());
        }
        return of_run(args, one);
    }
    if args.span < args.interval || args.interval < Duration::from_millis(100) {
        let text = "--for must be at least --interval, and --interval at least 100ms: two looks are needed";
        return Err(Usage(text.to_owned()).into());
    }
    world::real_world::run(0, async |env| of_cluster(&env, args).await)
}

/// Whether an argument is a cluster's address and not the name of a run.
fn is_address(text: &str) -> bool {
    let has_port = |text: &str| {
        text.rsplit_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
    };
    text.contains("://")
        || text.contains(',')
        || text.contains('@')
        || has_port(text)
        || text == "localhost"
}

async fn of_cluster(env: &Env, args: &Args) -> anyhow::Result<()> {
    let sampler = connect(env, &args.what, &args.connect).await?;
    let title = title(sampler.identity());
    if !args.json {
        say!("looking at {title} for {}", show_seconds(args.span.as_secs_f64()));
    }
    let mut looking = Looking::new(env, sampler, args.interval);
    looking.look_for(args.span).await?;
    let mut diagnosis = diagnose(&looking.series());
    if args.probe && diagnosis.looks >= 2 {
        let aloud = !args.json;
        let (runs, urls, connect) = (&*args.runs, &*args.what, &args.connect);
        let probing = Probing { runs, urls, connect, aloud };
        live::probe(env, &mut looking, &mut diagnosis, &probing).await?;
    }
    write(args, &diagnosis, &title)
}

fn of_run(args: &Args, name: &str) -> anyhow::Result<()> {
    let dir = runs::find(&args.runs, name)?;
    let run = RunDir::open(&dir)?;
    let summary = Summary::of(&run);
    if let Some(diagnosis) = &summary.watched {
        let identity = recorded(&run).last().map(|look| title(&look.cluster)).unwrap_or_default();
        return write(args, diagnosis, &format!("{identity}, run {}", run.manifest.run));
    }
    of_measured(args, &run, &summary)
}

/// A run that measured: its accounting already says what held each variant.
fn of_measured(args: &Args, run: &RunDir, summary: &Summary<'_>) -> anyhow::Result<()> {
    let mut out = terminal::out();
    if args.json {
        let rows: Vec<_> = summary
            .finished()
            .map(|(variant, figures)| {
                json!({
                    "variant": variant.name,
                    "limit": figures.verdict.limit,
                    "share": figures.verdict.share,
                    "sentence": figures.verdict.text,
                })
            })
            .collect();
        writeln!(
            out,
            "{}",
            json!({ "run": run.manifest.run, "headline": summary.headline, "variants": rows })
        )?;
        return Ok(());
    }
    writeln!(out, "{}", summary.headline)?;
    for (variant, figures) in summary.finished() {
        writeln!(out, "\n{}\n  {}", variant.name, figures.verdict.text)?;
    }
    for gap in &summary.gaps {
        writeln!(out, "\nmissing: {gap}")?;
    }
    Ok(())
}

fn write(args: &Args, diagnosis: &Diagnosis, title: &str) -> anyhow::Result<()> {
    if diagnosis.looks < 2 {
        return Err(Usage(format!("{title}: {}; give a longer --for", diagnosis.headline)).into());
    }
    let mut out = terminal::out();
    if args.json {
        let mut value = serde_json::to_value(diagnosis)?;
        value["cluster"] = json!(title);
        writeln!(out, "{value}")?;
    } else {
        write!(out, "{}", report::screen::findings(diagnosis, title, out.style()))?;
    }
    Ok(())
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
    writeln!(out, "probes")?;
    for threshold in probe::THRESHOLDS {
        writeln!(out, "  threshold  {}: {}", threshold.what, threshold.value)?;
    }
    Ok(())
}
