//! `narrows load`

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clusters::ClusterIdentity;
use clusters::wire::WireHost;
use lab::corpus::Source;
use lab::load::{Arrival, Check, Content, Draw, Extent, Live, Load, Operation};
use lab::runner::Watch;
use record::LoadFigures;
use record::units::parse_duration;
use report::Style;
use world::Env;

use super::show::terminal_width;
use crate::exit::Usage;
use crate::live::{ConnectArgs, client, options, usage};
use crate::progress::Progress;

/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster: its hosts, repeated or joined by commas (http://a:9200,http://b:9200). Requests go to each in turn.
    #[arg(value_name = "URL", required = true)]
    hosts: Vec<String>,
    /// What is sent: a path (/_cluster/health), a file with a search body (.json) or one on each line (.ndjson, in
    /// turn), or `bulk`, which indexes documents. Without it, searches of --body.
    #[arg(long, value_name = "WHAT")]
    operation: Option<String>,
    /// The body of the searches, or of what is sent to a path.
    #[arg(long, value_name = "JSON")]
    body: Option<String>,
    /// The index to search or to fill; all of them without it.
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Method of a path; GET, or POST where there is a body.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// A parameter that paths and bodies name as {{NAME}}, drawn for each request: a range of numbers (1..100) or words
    /// joined by commas. May be given several times.
    #[arg(long = "parameter", value_name = "NAME=VALUES", value_parser = parse_parameter)]
    parameters: Vec<(String, Draw)>,
    /// Documents for `bulk`: geopoint, http_logs, pmc, nginx, or a .json, .json.gz or .json.zst file.
    #[arg(long, value_name = "NAME", default_value = "http_logs")]
    corpus: String,
    /// How many of them.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    documents: u64,
    /// Documents in a bulk request.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    bulk_documents: u64,
    /// Requests that are under way at once; with --rate the most that may be.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,
    /// Starts a second, whatever the cluster does. Without it, each client sends its next request when the one before
    /// was answered.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    rate: Option<f64>,
    /// How starts follow each other at a rate.
    #[arg(long, value_enum, default_value_t = Spacing::Deterministic, requires = "rate")]
    arrival: Spacing,
    /// How long each lap is measured.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,
    /// Requests that are measured in each lap, over all clients, instead of a time.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    iterations: Option<u64>,
    /// What is sent before each lap is measured: a time (10s) or a number of requests.
    #[arg(long, value_name = "TIME|N", default_value = "0", value_parser = parse_extent)]
    warm_up: Extent,
    /// Repetitions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    laps: u32,
    /// Threads of the driver.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Seed of parameters, gaps and documents.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Send what changes the cluster, too.
    #[arg(long)]
    allow_changes: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// How starts of an open loop follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Spacing {
    /// Equally spaced.
    Deterministic,
    /// Independent of each other.
    Poisson,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 10e6 => Ok(rate),
        _ => Err("write a number above 0, for example 500".to_owned()),
    }
}

fn parse_extent(text: &str) -> Result<Extent, String> {
    match text.parse::<u64>() {
        Ok(requests) => Ok(Extent::Requests(requests)),
        Err(_) => parse_duration(text).map(Extent::Time).map_err(|error| error.to_string()),
    }
}

fn parse_parameter(text: &str) -> Result<(String, Draw), String> {
    let wrong = || "write NAME=1..100 or NAME=word,word".to_owned();
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) || values.is_empty() {
        return Err(wrong());
    }
    let draw = match values.split_once("..").map(|(from, to)| (from.parse(), to.parse())) {
        Some((Ok(from), Ok(to))) if from <= to => Draw::Integer { from, to },
        Some((Ok(_), Ok(_))) => return Err("a range goes from the less to the more".to_owned()),
        _ => Draw::Choice(values.split(',').map(str::to_owned).collect()),
    };
    Ok((name.to_owned(), draw))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let operation = operation(args)?;
    if !args.allow_changes && !operation.is_read_only() {
        let text = format!(
            "\"{}\" changes the cluster; say --allow-changes if it may. Without it only GET, HEAD and searches are sent",
            operation.name
        );
        return Err(Usage(text).into());
    }
    let live = options(&args.hosts, &args.connect, args.connect.timeout())
        .map_err(|error| usage(&error))?;
    let hosts = WireHost::all(&live).map_err(|error| usage(&error))?;
    let load = Load {
        hosts: live.addresses.iter().map(ToString::to_string).collect(),
        clients: args.clients,
        arrival: match (args.rate, args.arrival) {
            (None, _) => Arrival::Closed,
            (Some(rate_per_s), Spacing::Deterministic) => Arrival::Deterministic { rate_per_s },
            (Some(rate_per_s), Spacing::Poisson) => Arrival::Poisson { rate_per_s },
        },
        warm_up: args.warm_up,
        measured: args.iterations.map_or(Extent::Time(args.duration), Extent::Requests),
        timeout: args.connect.timeout(),
        window: Duration::from_secs(1),
        seed: args.seed,
    };
    let (laps, interrupted) = world::real_world::run(args.seed, async |env| {
        reach(&env, args).await?;
        drive(&env, args, &load, &operation, &hosts).await
    })?;
    write_out(args, &laps)?;
    match interrupted {
        true => anyhow::bail!("interrupted; the last lap is shorter than the others"),
        false => Ok(()),
    }
}

/// What is to be sent.
fn operation(args: &Args) -> anyhow::Result<Operation> {
    let parameters: BTreeMap<String, Draw> = args.parameters.iter().cloned().collect();
    let pattern = |name: &str, method: &str, path: String, bodies: Vec<String>, check: Check| {
        let (method, name) = (method.to_owned(), name.to_owned());
        let content =
            Content::Pattern { method, path, bodies, parameters: parameters.clone(), check };
        Operation { name, content }
    };
    let search = |name: &str, bodies: Vec<String>| {
        let index = args.index.as_deref().map_or_else(String::new, |index| format!("/{index}"));
        pattern(name, "POST", format!("{index}/_search"), bodies, Check::Search)
    };
    let operation = match args.operation.as_deref() {
        None => search("search", args.body.iter().cloned().collect()),
        Some("bulk") => {
            let index =
                args.index.clone().ok_or_else(|| Usage("bulk needs --index NAME".to_owned()))?;
            let source = Source::named(&args.corpus, None).map_err(Usage)?;
            let (documents, bulk_documents) = (0..args.documents, args.bulk_documents.max(1));
            let content = Content::Bulk { index, source, documents, bulk_documents };
            Operation { name: "bulk".to_owned(), content }
        }
        Some(path) if path.starts_with('/') && !Path::new(path).is_file() => {
            let default = if args.body.is_some() { "POST" } else { "GET" };
            let method = args.method.as_deref().unwrap_or(default).to_uppercase();
            let check = if path.contains("_search") { Check::Search } else { Check::Status };
            pattern(path, &method, path.to_owned(), args.body.iter().cloned().collect(), check)
        }
        Some(file) => search(&stem(file), bodies(Path::new(file))?),
    };
    // Parameters that are named and not given are found before anything is asked.
    operation.requests(args.seed, 0, 1)?;
    Ok(operation)
}

fn stem(file: &str) -> String {
    Path::new(file)
        .file_stem()
        .map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The search bodies of a file: one, or one on each line.
fn bodies(path: &Path) -> anyhow::Result<Vec<String>> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let lines = matches!(ending, "ndjson" | "jsonl");
    if !lines && ending != "json" {
        let text = format!(
            "--operation {}: give a path that begins with /, a file that ends in .json, .ndjson or .jsonl, or `bulk`",
            path.display()
        );
        return Err(Usage(text).into());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
    let bodies: Vec<String> = match lines {
        true => text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
        false => vec![text],
    };
    match bodies.is_empty() {
        true => Err(Usage(format!("{} has no search body in it", path.display())).into()),
        false => Ok(bodies),
    }
}

/// Finds out whether anybody answers, and says it in words where nobody does.
async fn reach(env: &Env, args: &Args) -> anyhow::Result<()> {
    let client = client(env, &args.hosts, &args.connect, args.connect.timeout())?;
    match ClusterIdentity::ask(&client).await {
        // Something answers: what it does with the load is counted.
        Ok(_) | Err(clusters::Error::NotJson { .. } | clusters::Error::Refused { .. }) => Ok(()),
        Err(error) => Err(usage(&error)),
    }
}

/// Every lap; whether the user ended it before the last was whole.
async fn drive(
    env: &Env,
    args: &Args,
    load: &Load,
    operation: &Operation,
    hosts: &[WireHost],
) -> anyhow::Result<(Vec<LoadFigures>, bool)> {
    let progress = Progress::new();
    let mut laps = Vec::new();
    for lap in 1..=args.laps {
        let live = Arc::new(Live::default());
        // A lap like the others: the same requests, in gaps of its own.
        let running = lab::load::start(load, operation, hosts, args.threads, &live)?;
        let title = (args.laps > 1).then(|| format!("lap {lap}"));
        progress.begin(&operation.name, title.as_deref(), args.iterations, "requests");
        let mut interrupted = false;
        let mut figures = std::pin::pin!(running.figures());
        let ended = loop {
            tokio::select! {
                biased;
                figures = &mut figures => break figures,
                _ = tokio::signal::ctrl_c(), if !interrupted => {
                    interrupted = true;
                    live.stop();
                }
                () = env.sleep(SHOW_EVERY) => progress.progress(live.sent(), None),
            }
        };
        progress.end();
        laps.push(ended.with_context(|| format!("send {}", operation.name))?);
        if interrupted {
            return Ok((laps, true));
        }
    }
    Ok((laps, false))
}

fn write_out(args: &Args, laps: &[LoadFigures]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", report::load_json(laps))?;
    } else {
        let no_color = std::env::var_os("NO_COLOR");
        let style = Style::detect(out.is_terminal(), no_color.as_deref(), terminal_width());
        write!(out, "{}", report::load(laps, style))?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_ranges_or_words() {
        let (name, draw) = parse_parameter("year=1998..2004").unwrap();
        assert_eq!((name.as_str(), draw), ("year", Draw::Integer { from: 1998, to: 2004 }));
        let words = parse_parameter("q=a..b,c").unwrap().1;
        assert_eq!(words, Draw::Choice(vec!["a..b".to_owned(), "c".to_owned()]));
        for wrong in ["year", "=1", "a b=1", "n=", "n=5..1"] {
            assert!(parse_parameter(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_extent("10s"), Ok(Extent::Time(Duration::from_secs(10))));
        assert_eq!(parse_extent("500"), Ok(Extent::Requests(500)));
    }
}
