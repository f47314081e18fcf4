//! `narrows calibrate`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use insight::stats::median;
use lab::calibration::{Amount, Measurement, NotMeasured, calibrate, calibrate_target};
use record::Machine;
use record::text::visible_line;
use record::units::show_bytes;
use serde_json::{Value, json};

use crate::exit::{Usage, refuse};
use crate::live::{Calibrated, Calibrating, ConnectArgs, calibrate_there};
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::runs;
use crate::terminal::{self, say};

const TIMEOUT: &str = "How long the first answer of a cluster may take; later ones may take 5.5 minutes, or this \
                       where it is longer";

#[derive(clap::Args)]
#[command(mut_arg("timeout", |timeout| timeout.help(TIMEOUT)))]
pub(crate) struct Args {
    /// Repetitions of every measurement, some seconds each.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    laps: u32,
    /// Where files are written and read: on the disk that is to be measured.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Write the plan's table to a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// One JSON object on standard output, with every lap.
    #[arg(long)]
    json: bool,
    /// What is measured in place of this engine: opensearch, on two nodes that are started for it, or the URL of a
    /// cluster that is already there, with its hosts joined by commas. What a copy takes there, for twins of such
    /// clusters.
    #[arg(long, value_name = "TARGET", value_parser = parse_on, conflicts_with = "dir")]
    on: Option<On>,
    /// With a URL: make an index there, give up copies of it, and delete it at the end. Without this it is said what
    /// would be done.
    #[arg(long)]
    allow_changes: bool,
    /// With a URL: the part of the bytes and operations that is copied there, above 0 and at most 1.
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = parse_part)]
    scale: f64,
    /// With a URL: where the journal of changes is kept, in a run that `narrows restore` takes back after a kill.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

const THIS_ENGINE: &str = "there is opensearch, or the URL of a cluster, http://host:9200; without --on this engine is \
    measured on this machine";

/// What can be measured in place of this engine.
fn parse_on(text: &str) -> Result<On, String> {
    match On::parse(text)? {
        on @ (On::OpenSearch | On::Url(_)) => Ok(on),
        On::Embedded | On::Virtual => Err(THIS_ENGINE.to_owned()),
    }
}

fn parse_part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok().filter(|part| *part > 0.0 && *part <= 1.0);
    part.ok_or_else(|| "write a number above 0 and at most 1, for example --scale 0.1".to_owned())
}

/// A parameter with its median and the lowest and highest lap, as plans write them.
struct Figure {
    measured: Measurement,
    median: String,
    low: String,
    high: String,
}

impl Figure {
    fn of(measured: Measurement) -> anyhow::Result<Figure> {
        let of_laps = |pick: fn(f64, f64) -> f64| measured.laps.iter().copied().reduce(pick);
        let text = |value: Option<f64>| {
            measured.text(value.context("nothing was measured")?).map_err(anyhow::Error::from)
        };
        let (median, low, high) =
            (text(median(&measured.laps))?, text(of_laps(f64::min))?, text(of_laps(f64::max))?);
        Ok(Figure { measured, median, low, high })
    }
}

/// What was measured, on what, when.
struct Calibration {
    /// The target and its release, where it is not this engine.
    target: Option<String>,
    machine: Described,
    date: String,
    laps: u32,
    figures: Vec<Figure>,
    not_measured: Vec<NotMeasured>,
}

/// What something was measured on.
struct Described {
    /// In a line, and in short.
    line: String,
    short: String,
    json: Value,
    file_system: Option<String>,
}

impl Described {
    fn here(dir: &Path) -> Described {
        let machine = lab::machine::describe();
        let file_system = lab::machine::file_system(dir);
        let Machine { os, cpu, cores, memory_bytes } = &machine;
        let memory = show_bytes(*memory_bytes);
        Described {
            line: format!("{cpu}, {cores} cores, {memory}, {os}, {file_system}"),
            short: cpu.clone(),
            json: json!(machine),
            file_system: Some(file_system),
        }
    }

    /// The nodes tell of their machines what they tell; names and addresses are left out.
    fn there(line: String, nodes: &[Value]) -> Described {
        Described { short: line.clone(), line, json: json!({ "nodes": nodes }), file_system: None }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.on != Some(On::OpenSearch) {
        args.opensearch.refuse_elsewhere()?;
    }
    match &args.on {
        Some(On::Url(hosts)) if !args.allow_changes => {
            return Err(would_do(hosts, amount(args)).into());
        }
        Some(On::Url(_)) => {}
        _ => refuse_of_clusters(args)?,
    }
    if cfg!(debug_assertions) {
        say!("this is a debug build: its figures say nothing of a release build");
    }
    // Before anything is measured: a file that cannot be written is found now.
    args.write.as_deref().map_or(Ok(()), runs::check_written)?;
    if args.on.is_none() && lab::machine::is_in_memory(&args.dir) {
        say!(
            "{} is on {}, which is memory: nothing is measured of the disk; name a directory on it with --dir DIR",
            args.dir.display(),
            lab::machine::file_system(&args.dir)
        );
    }
    let tell = |what: &str| say!("measuring {what}");
    let (mut machine, mut not_measured) = (Described::here(&args.dir), Vec::new());
    let (target, measured) = match &args.on {
        Some(On::Url(hosts)) => {
            let asked = Calibrating {
                urls: hosts,
                connect: &args.connect,
                runs: &args.runs,
                amount: amount(args),
            };
            let there =
                world::real_world::run(0, async |env| calibrate_there(&env, &asked, tell).await)?;
            let Calibrated { release, nodes, found } = there;
            machine = Described::there(nodes.text(), nodes.machines());
            not_measured = found.not_measured;
            (Some(release), found.measured)
        }
        Some(target) => {
            let nodes = args.opensearch.nodes()?;
            let name = match nodes.name().strip_prefix("elasticsearch-") {
                Some(version) => format!("elasticsearch {version}"),
                None => format!("{target} {}", nodes.name()),
            };
            let found = calibrate_target(|env| nodes.clusters(env), args.laps, tell)?;
            not_measured = found.not_measured;
            (Some(name), found.measured)
        }
        None => (None, calibrate(&args.dir, args.laps, &tell)?),
    };
    let calibration = Calibration {
        target,
        machine,
        date: lab::now()[..10].to_owned(),
        laps: args.laps,
        figures: measured.into_iter().map(Figure::of).collect::<anyhow::Result<_>>()?,
        not_measured,
    };
    let mut out = terminal::out();
    if args.json {
        writeln!(out, "{}", calibration.json())?;
    }
    match &args.write {
        Some(path) => {
            runs::write(&calibration.toml(), path)?;
            say!("written to {}", path.display());
        }
        None if !args.json => write!(out, "{}", calibration.toml())?,
        None => {}
    }
    Ok(())
}

/// Refuses what says how a cluster is measured that is already there, where none is.
fn refuse_of_clusters(args: &Args) -> anyhow::Result<()> {
    let given = [
        ("--allow-changes", args.allow_changes),
        ("--scale", args.scale != 1.0),
        ("--runs", args.runs != Path::new(runs::DEFAULT_DIR)),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        refuse!("{option} is for a cluster that is already there; leave it out, or give --on URL");
    }
    args.connect.refuse_given("none is measured; leave it out, or give --on URL")
}

/// What would be done to a cluster of which nobody has said that it may be changed.
fn would_do(hosts: &[String], amount: Amount) -> Usage {
    Usage(format!(
        "nothing was asked of {}: on two of its data nodes an index of our own would be made, narrows-RUN, and deleted \
         at the end, also after Ctrl-C, and by `narrows restore` after a kill. There would be {}. Say \
         --allow-changes if that may be done",
        hosts.join(","),
        amount.what_is_done()
    ))
}

fn amount(args: &Args) -> Amount {
    Amount { laps: args.laps, scale: args.scale }
}

impl Calibration {
    /// The table `[virtual]` of a plan.
    fn toml(&self) -> String {
        let target = self.target.as_ref().map(|target| format!(" in {target}"));
        let target = target.unwrap_or_default();
        // Versions and machines are what others say: within a comment no line ends.
        let mut text = format!(
            "# What work costs{}, measured by `narrows calibrate` of narrows {} on {}.\n\
             # {}.\n\
             # {}; behind each, the lowest and the highest.\n\n[virtual]\n",
            visible_line(&target),
            env!("CARGO_PKG_VERSION"),
            self.date,
            visible_line(&self.machine.line),
            match self.laps {
                1 => "Of 1 lap".to_owned(),
                laps => format!("Medians of {laps} laps"),
            },
        );
        let source = json!(format!("measured{target} on {}, {}", self.machine.short, self.date));
        for Figure { measured, median, low, high } in &self.figures {
            let Measurement { parameter, how, .. } = measured;
            let row = format!("\"{parameter}\" = {{ value = \"{median}\", source = {source} }}");
            writeln!(text, "{row} # {low} to {high}: {how}").expect("a string takes it");
        }
        if !self.not_measured.is_empty() {
            text.push_str(
                "\n# Not measured, and assumed: each is what a plan or its test bed says.\n",
            );
        }
        for NotMeasured { parameter, why } in &self.not_measured {
            writeln!(text, "# \"{parameter}\": {why}.").expect("a string takes it");
        }
        text
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({
                "name": figure.measured.parameter,
                "unit": figure.measured.row().unit,
                "value": figure.median,
                "low": figure.low,
                "high": figure.high,
                "laps": figure.measured.laps,
                "how": figure.measured.how,
            })
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "target": self.target,
            "date": self.date,
            "machine": self.machine.json,
            "file_system": self.machine.file_system,
            "parameters": figures.collect::<Vec<_>>(),
            "not_measured": self.not_measured.iter().map(not_measured_json).collect::<Vec<_>>(),
        })
    }
}

fn not_measured_json(one: &NotMeasured) -> Value {
    json!({ "name": one.parameter, "is": "assumed", "why": one.why })
}
