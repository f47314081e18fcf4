//! `narrows load`

mod operation;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clusters::ClusterIdentity;
use clusters::wire::WireHost;
use lab::Watch;
use lab::load::{Arrival, Extent, Failure, Live, Load, Operation};
use record::LoadFigures;
use record::units::{parse_duration, parse_time_above_zero};
use world::Env;

use super::compare::parse_percent;
use crate::exit::refuse;
use crate::live::{ConnectArgs, client, options, usage};
use crate::progress::Progress;
use crate::{interrupt, terminal};
use operation::OperationArgs;

/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
#[command(mut_arg("any_version", |unused| unused.hide(true)))]
pub(crate) struct Args {
    /// The cluster: its hosts, repeated or joined by commas (http://a:9200,http://b:9200). Requests go to each in turn.
    #[arg(value_name = "URL", required = true)]
    hosts: Vec<String>,
    #[command(flatten)]
    operation: OperationArgs,
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
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time_above_zero)]
    duration: Duration,
    /// Requests that are measured in each lap, over all clients, instead of a time.
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    iterations: Option<u64>,
    /// What is sent before each lap is measured: a time (10s) or a number of requests.
    #[arg(long, value_name = "TIME|N", default_value = "0", value_parser = parse_extent)]
    warm_up: Extent,
    /// Repetitions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    laps: u32,
    /// Threads of the driver, each with one of the clients at least.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Seed of parameters, gaps and documents.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Send what changes the cluster, too.
    #[arg(long)]
    allow_changes: bool,
    /// Exit code 1 if more than this part of the requests failed, for example 1%; those that were not sent in time are
    /// among them. Without it, only if nothing was answered well.
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    fail_over: Option<f64>,
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

/// As in plans: a start that is due after the end of time could not be waited for.
fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=10e6).contains(rate));
    rate.ok_or_else(|| "write a number from 0.001 to 10000000, for example 500".to_owned())
}

/// A part of all requests, in percent: not more than all of them can fail.
fn parse_part(text: &str) -> Result<f64, String> {
    let wrong = || "write a percentage below 100, for example --fail-over 1%".to_owned();
    parse_percent(text).ok().filter(|percent| *percent < 100.0).ok_or_else(wrong)
}

fn parse_extent(text: &str) -> Result<Extent, String> {
    match text.parse::<u64>() {
        Ok(requests) => Ok(Extent::Requests(requests)),
        Err(_) => parse_duration(text).map(Extent::Time).map_err(|error| error.to_string()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.connect.refuse_any_version()?;
    let operation = args.operation.operation(args.seed)?;
    if !args.allow_changes && !operation.is_read_only() {
        refuse!(
            "\"{}\" changes the cluster; say --allow-changes if it may. Without it only GET, HEAD and searches are sent",
            operation.name
        );
    }
    if args.threads > args.clients {
        let (threads, clients) = (args.threads, args.clients);
        refuse!(
            "--threads {threads}: each has one client at least, and there are {clients}; give --clients {threads}"
        );
    }
    let live = options(&args.hosts, &args.connect, args.connect.timeout()).map_err(usage)?;
    let hosts = WireHost::all(&live).map_err(usage)?;
    let addresses = live.addresses.iter().map(ToString::to_string).collect();
    let measured = args.iterations.map_or(Extent::Time(args.duration), Extent::Requests);
    let load = Load {
        arrival: match (args.rate, args.arrival) {
            (None, _) => Arrival::Closed,
            (Some(rate_per_s), Spacing::Deterministic) => Arrival::Deterministic { rate_per_s },
            (Some(rate_per_s), Spacing::Poisson) => Arrival::Poisson { rate_per_s },
        },
        warm_up: args.warm_up,
        timeout: args.connect.timeout(),
        ..Load::closed(addresses, args.clients, measured, args.seed)
    };
    let (laps, interrupted) = world::real_world::run(args.seed, async |env| {
        reach(&env, args).await?;
        drive(&env, args, &load, &operation, &hosts).await
    })?;
    write_out(args, &laps)?;
    check_answers(&laps)?;
    check_failures(&laps, args.fail_over)?;
    match interrupted {
        true => anyhow::bail!("interrupted; the last lap is shorter than the others"),
        false => Ok(()),
    }
}

/// Finds out whether anybody answers, and says it in words where nobody does.
async fn reach(env: &Env, args: &Args) -> anyhow::Result<()> {
    use clusters::Error::{NotJson, Refused, Unfamiliar};
    let client = client(env, &args.hosts, &args.connect, args.connect.timeout())?;
    match ClusterIdentity::ask(&client).await {
        // Something answers: what it does with the load is counted.
        Ok(_) | Err(NotJson { .. } | Refused { .. } | Unfamiliar { .. }) => Ok(()),
        Err(error) => Err(usage(error)),
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
    let mut told = pin!(interrupt::listen()?);
    let mut laps = Vec::new();
    for lap in 1..=args.laps {
        let live = Arc::new(Live::default());
        let running = lab::load::start(&of_lap(load, lap), operation, hosts, args.threads, &live)?;
        let title = (args.laps > 1).then(|| format!("lap {lap}"));
        progress.begin(&operation.name, title.as_deref(), args.iterations, "requests");
        let mut interrupted = false;
        let mut figures = pin!(running.figures());
        let ended = loop {
            tokio::select! {
                biased;
                figures = &mut figures => break figures,
                () = &mut told, if !interrupted => {
                    interrupted = true;
                    live.stop();
                }
                () = env.sleep(SHOW_EVERY) => progress.progress(live.sent(), None),
            }
        };
        progress.end();
        let mut measured = ended.with_context(|| format!("send {}", operation.name))?;
        // Single requests are for metrics stores.
        measured.samples.clear();
        laps.push(measured);
        if interrupted {
            return Ok((laps, true));
        }
    }
    Ok((laps, false))
}

/// A lap like the others: the same requests, in gaps of its own.
fn of_lap(load: &Load, lap: u32) -> Load {
    Load { gaps: u64::from(lap - 1), ..load.clone() }
}

/// A load of which nothing was answered well has measured nothing.
fn check_answers(laps: &[LoadFigures]) -> anyhow::Result<()> {
    if laps.iter().any(|lap| lap.requests > lap.failed() || lap.requests == 0) {
        return Ok(());
    }
    let kinds = laps.iter().flat_map(|lap| &lap.errors);
    // A request that was not sent in time tells nothing of answers: any other kind says more.
    let unsent = Failure::NotSent.to_string();
    let most = kinds.max_by_key(|(kind, count)| (**kind != unsent, **count));
    let Some((kind, _)) = most else { return Ok(()) };
    let hint = match kind.as_str() {
        kind if kind.starts_with("404") => {
            "is there such an index or path? --index NAME searches one"
        }
        kind if kind.starts_with("401") || kind.starts_with("403") => {
            "give credentials that may do this: NARROWS_USER and NARROWS_PASSWORD, or --credentials FILE"
        }
        kind if kind.starts_with("400") => {
            "the cluster does not understand the request: look at --body and --operation"
        }
        kind if kind.starts_with("429") => {
            "the cluster is full: fewer --clients, or a lower --rate"
        }
        "timeout" => "the cluster takes longer than --timeout",
        _ => "`narrows explain URL` says what holds the cluster",
    };
    anyhow::bail!("nothing was answered well, most of it \"{kind}\"; {hint}")
}

/// Whether no more of the requests failed than whoever sent them lets pass, in percent.
fn check_failures(laps: &[LoadFigures], fail_over: Option<f64>) -> anyhow::Result<()> {
    let Some(percent) = fail_over else { return Ok(()) };
    let failed: u64 = laps.iter().map(LoadFigures::failed).sum();
    let requests: u64 = laps.iter().map(|lap| lap.requests).sum();
    if failed as f64 * 100.0 <= percent * requests as f64 {
        return Ok(());
    }
    let not_sent = Failure::NotSent.to_string();
    let unsent: u64 = laps.iter().filter_map(|lap| lap.errors.get(&not_sent)).sum();
    let hint = match unsent {
        0 => String::new(),
        unsent => format!("; {unsent} were {not_sent}: give more --clients, or a lower --rate"),
    };
    anyhow::bail!("{failed} of {requests} requests failed, more than {percent} %{hint}")
}

fn write_out(args: &Args, laps: &[LoadFigures]) -> anyhow::Result<()> {
    let table = report::load(laps, terminal::out().style());
    Ok(terminal::print(args.json, report::load_json(laps), table)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_a_time_or_a_number_of_requests() {
        assert_eq!(parse_extent("10s"), Ok(Extent::Time(Duration::from_secs(10))));
        assert_eq!(parse_extent("500"), Ok(Extent::Requests(500)));
    }

    #[test]
    fn a_part_of_the_requests_that_may_fail_is_less_than_all() {
        assert_eq!((parse_part("1%"), parse_part("99.9")), (Ok(1.0), Ok(99.9)));
        for wrong in ["100%", "200%", "-1%", "x"] {
            assert!(parse_part(wrong).unwrap_err().contains("--fail-over 1%"), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_one_that_can_be_waited_for() {
        assert!(["0", "1e-320", "nan"].iter().all(|wrong| parse_rate(wrong).is_err()));
        assert_eq!(parse_rate("1e7"), Ok(10e6));
        assert!(parse_rate("1e8").unwrap_err().contains("0.001 to 10000000"));
    }

    #[test]
    fn what_was_not_sent_counts_among_what_failed() {
        let lap = |unsent: u64, timeouts: u64| {
            let errors = [("not sent in time", unsent), ("timeout", timeouts)];
            let errors = errors.map(|(kind, count)| (kind.to_owned(), count)).into();
            LoadFigures { requests: 100, errors, ..LoadFigures::default() }
        };
        let laps = [lap(2, 0), lap(1, 1)];
        for passes in [None, Some(2.0)] {
            assert!(check_failures(&laps, passes).is_ok(), "{passes:?}");
        }
        let error = check_failures(&laps, Some(1.5)).unwrap_err().to_string();
        assert!(
            error.starts_with("4 of 200 requests failed, more than 1.5 %; 3 were not sent"),
            "{error}"
        );
        let answered = check_failures(&[lap(0, 5)], Some(0.0)).unwrap_err().to_string();
        assert_eq!(answered, "5 of 100 requests failed, more than 0 %");
    }

    #[test]
    fn laps_send_the_same_requests_in_gaps_of_their_own() {
        let load = Load::closed(vec!["a:9200".to_owned()], 1, Extent::Requests(1), 7);
        let (first, second) = (of_lap(&load, 1), of_lap(&load, 2));
        assert_eq!((first.seed, second.seed), (7, 7));
        assert_ne!(first.gaps, second.gaps);
    }
}
