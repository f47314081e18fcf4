//! `narrows steer`

use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::steering::{Bounds, Marks, WrongBound};
use record::units::{parse_duration, parse_time_above_zero};
use serde_json::Value;

use crate::exit::{Usage, refuse};
use crate::live::{ConnectArgs, Entry, Steer, steer};
use crate::{runs, terminal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster's hosts, repeated or joined by commas: http://a:9200,http://b:9200.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Say what it would do and why, and change nothing; so it is without --apply.
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,
    /// Do it. Each change is written to a journal in a run directory first, for `narrows restore`, and taken back at
    /// the end.
    #[arg(long)]
    apply: bool,
    /// Leave at the end what helped, in place of putting it back.
    #[arg(long, requires = "apply")]
    keep: bool,
    /// Never raise a setting above this value; may be given several times. Without it a limiter rises to 8 times what
    /// was found and at most 1gb, chunks to 4mb, slots to 4 times what was found and at most 16.
    #[arg(long = "max", value_name = "NAME=VALUE")]
    max: Vec<String>,
    /// A query that says how well users are, sent five times a second: logs/_search?q=error.
    #[arg(long, value_name = "PATH")]
    guard: Option<String>,
    /// The body of that query.
    #[arg(long, value_name = "JSON", requires = "guard")]
    guard_body: Option<String>,
    /// Give way where the slowest in a hundred of these queries take longer; twice what they took before, without it.
    #[arg(long, value_name = "TIME", requires = "guard", value_parser = parse_time_above_zero)]
    guard_p99: Option<Duration>,
    /// Give way where the cores of a node are busier than this, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u8).range(1..=100))]
    guard_cpu: u8,
    /// Time from one look to the next.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// Stop by itself after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time_above_zero)]
    span: Option<Duration>,
    /// One JSON object a step.
    #[arg(long)]
    json: bool,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // The lease is renewed between looks, and stands for 35 s.
    if args.interval < Duration::from_millis(250) || args.interval > Duration::from_secs(10) {
        refuse!(
            "--interval must be from 250ms to 10s: looking costs the cluster, and users wait for two looks"
        );
    }
    if !args.apply && args.runs != Path::new(runs::DEFAULT_DIR) {
        refuse!(
            "--runs is where --apply keeps its journal, and a dry run keeps none: add --apply, or leave --runs out"
        );
    }
    if args.guard.as_ref().is_some_and(|guard| guard.contains("://") || !guard.contains("/_")) {
        refuse!("--guard wants a path on that cluster, for example logs/_search?q=error");
    }
    let guard_body = args.guard_body.as_deref().map_or(Ok(Value::Null), serde_json::from_str);
    let guard_body =
        guard_body.map_err(|error| Usage(format!("--guard-body is no JSON: {error}")))?;
    let asked = Steer {
        urls: &args.urls,
        connect: &args.connect,
        bounds: bounds(&args.max)?,
        marks: Marks {
            p99_ms: args.guard_p99.map(|p99| p99.as_secs_f64() * 1e3),
            cpu: f64::from(args.guard_cpu) / 100.0,
        },
        guard: args.guard.as_deref(),
        guard_body,
        interval: args.interval,
        span: args.span,
        runs: args.apply.then_some(&*args.runs),
        keep: args.keep,
    };
    world::real_world::run(0, async |env| {
        let mut write = |entry: &Entry| {
            let (mut out, now) = (terminal::out(), lab::now());
            if args.json {
                return Ok(writeln!(out, "{}", entry.json(&now))?);
            }
            // `2026-11-25T00:12:03Z`: the day is known to whoever reads it in the morning.
            let time = now.get(11..19).unwrap_or(&now);
            let label = format!("{time} ");
            let line = report::labelled(&label, &entry.text(), out.line_width());
            Ok(writeln!(out, "{line}")?)
        };
        steer(&env, &asked, &mut write).await
    })
}

fn bounds(said: &[String]) -> anyhow::Result<Bounds> {
    let mut bounds = Bounds::default();
    for pair in said {
        let Some((name, value)) = pair.split_once('=') else {
            refuse!("--max {pair}: write NAME=VALUE, as indices.recovery.max_bytes_per_sec=400mb");
        };
        bounds.at_most(name.trim(), value.trim()).map_err(|wrong| {
            Usage(match wrong {
                WrongBound::Unknown(hint) => {
                    format!("--max {name}: steer touches no setting of this name{hint}")
                }
                WrongBound::Value(what) => format!("--max {name}={value}: {what}"),
                WrongBound::Twice => format!("--max {name} is given twice; give the value that is meant"),
                WrongBound::TooHigh(most) => {
                    format!("--max {name}={value}: no release takes more than {most}; write that or less")
                }
            })
        })?;
    }
    Ok(bounds)
}
