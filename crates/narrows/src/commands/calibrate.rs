//! `narrows calibrate`

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use anyhow::Context;
use insight::stats::median;
use lab::calibration::{Measurement, calibrate, calibrate_target};
use record::Machine;
use record::units::show_bytes;
use serde_json::json;

use crate::opensearch_args::OpenSearchArgs;
use crate::terminal::{self, say};

#[derive(clap::Args)]
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
    /// What is measured in place of this engine: opensearch, on two nodes that are started for it. What a copy takes
    /// there, for twins of such clusters.
    #[arg(long, value_name = "TARGET", value_parser = ["opensearch"], conflicts_with = "dir")]
    on: Option<String>,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
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
    machine: Machine,
    file_system: String,
    date: String,
    laps: u32,
    figures: Vec<Figure>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        say!("this is a debug build: its figures say nothing of a release build");
    }
    let written = |path: &Path| {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        let hint =
            dir.map_or_else(String::new, |dir| format!(" (first mkdir -p {})", dir.display()));
        format!("write {}{hint}", path.display())
    };
    // Before anything is measured: a file that cannot be written is found now.
    if let Some(path) = &args.write {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.with_context(|| written(path))?;
    }
    if args.on.is_none() && lab::machine::is_in_memory(&args.dir) {
        say!(
            "{} is on {}, which is memory: nothing is measured of the disk; name a directory on it with --dir DIR",
            args.dir.display(),
            lab::machine::file_system(&args.dir)
        );
    }
    let tell = |what: &str| say!("measuring {what}");
    let (target, measured) = match &args.on {
        None => (None, calibrate(&args.dir, args.laps, tell)?),
        Some(target) => {
            let nodes = args.opensearch.nodes()?;
            let name = format!("{target} {}", nodes.name());
            (Some(name), calibrate_target(|env| nodes.clusters(env), args.laps, tell)?)
        }
    };
    let calibration = Calibration {
        target,
        machine: lab::machine::describe(),
        file_system: lab::machine::file_system(&args.dir),
        date: lab::now()[..10].to_owned(),
        laps: args.laps,
        figures: measured.into_iter().map(Figure::of).collect::<anyhow::Result<_>>()?,
    };
    let mut out = terminal::out();
    if args.json {
        writeln!(out, "{}", calibration.json())?;
    }
    match &args.write {
        Some(path) => {
            std::fs::write(path, calibration.toml()).with_context(|| written(path))?;
            say!("written to {}", path.display());
        }
        None if !args.json => write!(out, "{}", calibration.toml())?,
        None => {}
    }
    Ok(())
}

impl Calibration {
    /// The table `[virtual]` of a plan.
    fn toml(&self) -> String {
        let Machine { os, cpu, cores, memory_bytes } = &self.machine;
        let target = self.target.as_ref().map(|target| format!(" in {target}"));
        let target = target.unwrap_or_default();
        let mut text = format!(
            "# What work costs{target}, measured by `narrows calibrate` of narrows {} on {}.\n\
             # {cpu}, {cores} cores, {}, {os}, {}.\n\
             # Medians of {} laps; behind each, the lowest and the highest.\n\n[virtual]\n",
            env!("CARGO_PKG_VERSION"),
            self.date,
            show_bytes(*memory_bytes),
            self.file_system,
            self.laps,
        );
        let source = json!(format!("measured{target} on {cpu}, {}", self.date));
        for Figure { measured, median, low, high } in &self.figures {
            let Measurement { parameter, how, .. } = measured;
            let row = format!("\"{parameter}\" = {{ value = \"{median}\", source = {source} }}");
            writeln!(text, "{row} # {low} to {high}: {how}").expect("a string takes it");
        }
        text
    }

    fn json(&self) -> serde_json::Value {
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
            "machine": self.machine,
            "file_system": self.file_system,
            "parameters": figures.collect::<Vec<_>>(),
        })
    }
}
