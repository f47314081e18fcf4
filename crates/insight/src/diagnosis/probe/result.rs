//! A probe, and what it said.

use record::observation::Setting;
use serde::Serialize;

use super::meter::Meter;
use crate::words;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The limiter a fifth lower: a rate that it holds falls by a fifth.
    Brake,
    /// The recovery at half its rate: what it keeps busy itself is half as busy.
    Lull,
    /// Twice the chunks in flight: a rate that latency holds doubles.
    Chunks,
    /// One more slot: the sum of all rates rises, or is only shared among more.
    Slots,
}

/// A change for seconds, and what to look at meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// What is tried.
    pub kind: Kind,
    /// The setting.
    pub setting: String,
    /// Its value today, and where it is set.
    pub found: Setting,
    /// Its value during the probe.
    pub to: String,
    /// What the setting allows during the probe over what it allows today.
    pub factor: f64,
    /// Whether only recoveries that begin after it is set have it.
    pub later_only: bool,
    /// Where it is measured: a node; empty for all of them.
    pub place: String,
    #[serde(skip)]
    pub(super) meter: Meter,
}

/// How much of the change the measure followed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Elasticity {
    /// Lower end of the interval, 95 %.
    pub low: f64,
    /// Of the means.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// What a probe says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The measure follows: what was changed holds.
    Follows,
    /// It does not.
    Stays,
    /// Neither is sure; why, in words.
    Open(String),
    /// The probe did not take place, or was given up: why, in words.
    GivenUp(String),
}

/// A probe that is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeResult {
    /// What was tried.
    #[serde(flatten)]
    pub probe: Probe,
    /// Mean before and after: bytes a second; for [`Kind::Lull`] the use of the busy part, 0 to 1.
    pub before: Option<f64>,
    /// Mean during the change.
    pub during: Option<f64>,
    /// How much of the change the measure followed.
    pub elasticity: Option<Elasticity>,
    /// What it says.
    pub reading: Reading,
}

impl ProbeResult {
    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let Probe { setting, found, to, kind, .. } = &self.probe;
        let change = format!("{setting} {} to {to}", found.value);
        let show = |value: f64| match kind {
            Kind::Lull => words::percent(value),
            _ => words::rate(value),
        };
        let (before, during) = match (self.before, self.during) {
            (Some(before), Some(during)) => (show(before), show(during)),
            _ => (String::new(), String::new()),
        };
        let measured = match kind {
            _ if before.is_empty() => String::new(),
            Kind::Brake => format!(": the rate went from {before} to {during}"),
            Kind::Lull => format!(", half the rate: what is busy went from {before} to {during}"),
            Kind::Chunks if self.probe.later_only => {
                format!(": a recovery that began with it went at {during} instead of {before}")
            }
            Kind::Chunks => format!(": the rate went from {before} to {during}"),
            Kind::Slots => format!(": all recoveries together went from {before} to {during}"),
        };
        let elasticity = self.elasticity.map_or_else(String::new, |elasticity| {
            let Elasticity { low, mid, high } = elasticity;
            format!(" (elasticity {mid:.2}, {low:.2} to {high:.2})")
        });
        let reading = match (&self.reading, kind) {
            (Reading::Follows, Kind::Brake) => "; the limiter holds".to_owned(),
            (Reading::Stays, Kind::Brake) => "; the limiter does not hold".to_owned(),
            (Reading::Follows, Kind::Lull) => "; the recovery itself keeps it busy".to_owned(),
            (Reading::Stays, Kind::Lull) => "; something else keeps it busy".to_owned(),
            (Reading::Follows, Kind::Chunks) => "; chunks that travel hold".to_owned(),
            (Reading::Stays, Kind::Chunks) => "; more in flight brings nothing".to_owned(),
            (Reading::Follows, Kind::Slots) => "; slots hold".to_owned(),
            (Reading::Stays, Kind::Slots) => "; one more shares what there is".to_owned(),
            (Reading::Open(why), _) => format!("; that tells nothing: {why}"),
            (Reading::GivenUp(why), _) => format!("; given up: {why}"),
        };
        format!("{change}{measured}{elasticity}{reading}")
    }
}
