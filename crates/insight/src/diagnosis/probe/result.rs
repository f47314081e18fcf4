//! A probe, and what it said.

use record::observation::Setting;
use record::units::show_size_setting;
use serde::Serialize;

use super::meter::Meter;
use crate::words;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The limit is lowered by a fifth, or to half where few chunks pass: where the limiter is the bottleneck, the rate
    /// falls by as much.
    Brake,
    /// The recovery is limited to half its rate: a disk or cores that it keeps busy itself are half as busy then.
    Lull,
    /// Twice the chunks are in flight: where latency is the bottleneck, the rate doubles.
    Chunks,
    /// One more recovery slot: the sum of all rates rises, or more recoveries share the same sum.
    Slots,
}

/// A change of a setting for seconds, and what is measured meanwhile.
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
    /// The limit that the setting sets during the probe over the one that it sets today.
    pub factor: f64,
    /// Whether the setting is read when a recovery begins, so that only later recoveries obey it.
    pub later_only: bool,
    /// Where it is measured: a node; empty for all of them.
    pub place: String,
    /// How long what is in flight when the setting changes takes to pass, in milliseconds: until then the rate is a mix
    /// of both values.
    pub passes_in_ms: f64,
    /// How long the rate is measured during the change, at least.
    #[serde(skip)]
    pub(super) measure_ms: f64,
    #[serde(skip)]
    pub(super) meter: Meter,
    /// Of a lull the rate of which it leaves a half.
    #[serde(skip)]
    pub(super) of_rate: Option<Meter>,
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
    /// The measure follows the change: the limit that was changed is the bottleneck.
    Follows,
    /// The measure does not follow it.
    Stays,
    /// The probe does not tell, or was not tried: why, in words.
    Open(String),
    /// The change could not be made, or somebody else changes settings: why, in words.
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

/// A limit as it is set, in whole kilobytes.
pub(super) fn as_limit(bytes_per_s: f64) -> String {
    show_size_setting((bytes_per_s / 1024.0).ceil().max(1.0) as u64 * 1024)
}

impl Probe {
    /// Whether the recovery is slowed by it.
    pub(super) fn slows(&self) -> bool {
        matches!(self.kind, Kind::Brake | Kind::Lull)
    }
}

impl ProbeResult {
    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        format!("{} {}", self.probe.setting, self.of_setting())
    }

    /// The same where it is said before of which setting.
    pub(super) fn of_setting(&self) -> String {
        let Probe { found, to, kind, .. } = &self.probe;
        let change = format!("{} to {to}", found.value);
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
            (Reading::Follows, Kind::Brake) => "; the limiter is the bottleneck".to_owned(),
            (Reading::Stays, Kind::Brake) => "; the limiter is not the bottleneck".to_owned(),
            (Reading::Follows, Kind::Lull) => "; the recovery itself keeps it busy".to_owned(),
            (Reading::Stays, Kind::Lull) => "; it stays as busy as before".to_owned(),
            (Reading::Follows, Kind::Chunks) => "; latency is the bottleneck".to_owned(),
            (Reading::Stays, Kind::Chunks) => "; more in flight brings nothing".to_owned(),
            (Reading::Follows, Kind::Slots) => "; recovery slots are the bottleneck".to_owned(),
            (Reading::Stays, Kind::Slots) => "; one more shares what there is".to_owned(),
            (Reading::Open(why), _) => format!("; that tells nothing: {why}"),
            (Reading::GivenUp(why), _) => format!("; given up: {why}"),
        };
        format!("{change}{measured}{elasticity}{reading}")
    }
}
