//! What is done otherwise than the plan says, as the command line says it.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use lab::Options;
use record::units::{parse_duration, parse_rate};

use crate::interrupt;
use crate::progress::Progress;

#[derive(clap::Args)]
pub(super) struct Overrides {
    /// Size of the corpus; 1 is the plan's own.
    #[arg(long, default_value_t = 1.0, value_parser = parse_scale)]
    pub(super) scale: f64,
    /// Repetitions of every variant, instead of the plan's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
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
}

/// A number; whoever writes it as a percentage is told the number. Its bounds are those of plans.
pub(in crate::commands) fn parse_scale(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|scale| scale.is_finite());
    match (number(text), text.strip_suffix('%').and_then(number)) {
        (Some(scale), _) => Ok(scale),
        (None, Some(percent)) => Err(format!("write --scale {}", percent / 100.0)),
        (None, None) => Err("write a number, for example --scale 0.1 for a tenth".to_owned()),
    }
}

impl Overrides {
    /// The options of a run that is kept below `runs`, and that people watch and may interrupt.
    pub(super) fn options(&self, runs: &Path) -> Options {
        Options {
            scale: self.scale,
            laps: self.laps,
            variants: self.variants.clone(),
            rtt: self.rtt,
            rate_bytes_per_s: self.rate,
            seed: self.seed,
            watch: Rc::new(Progress::new()),
            interrupt: Rc::new(|| Box::pin(interrupt::told_to_stop())),
            ..Options::new(runs)
        }
    }
}
