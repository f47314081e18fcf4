//! What would make a variant of a run faster: the setting or the action that lifts what held it, what that should
//! bring, and the evidence for both, out of the record alone. Where another variant of the run differs in that setting
//! alone, what it brought is said, too: that is measured.

mod evidence;
mod lift;
mod stream;

use record::{Limit, RunDir, units};
use serde::Serialize;

pub use self::evidence::OtherLimit;
use self::lift::Held;
use self::stream::Streamed;
use crate::bounds::Bounds;
use crate::diagnosis::{Evidence, GIVEN_BACK, Gain, Lift};
use crate::elapsed::Elapsed;
use crate::outside;
use crate::summary::Summary;
use crate::trace::{Files, Trace, Traces, traces};
use crate::variant::{Finished, Variant};
use crate::words;

/// Advice on one variant that finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The variant.
    pub variant: String,
    /// What held it; none where that is not known.
    pub limit: Option<Limit>,
    /// The share of the time that it took, 0 to 1; 0 where it is inferred.
    pub share: f64,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What verdict and advice rest on.
    pub evidence: Vec<Evidence>,
    /// What lifts the limit; none where what held is not known.
    pub lift: Option<Lift>,
    /// What lifting it should bring: predicted, from the account of the time.
    pub gain: Option<Gain>,
    /// What the run itself measured of it: variants that differ in that setting alone.
    pub measured: Vec<String>,
    /// All other limits, and what speaks against each.
    pub ruled_out: Vec<OtherLimit>,
}

/// Advice on every variant that finished, in the order of the plan. Loads have none.
pub fn advice(run: &RunDir, summary: &Summary<'_>) -> Vec<Advice> {
    let traces = traces(run);
    let is_load = |name: &str| summary.loads.iter().any(|load| load.variant == name);
    let finished = summary.finished().filter(|(variant, _)| !is_load(&variant.name));
    let judged: Vec<Judged<'_>> =
        finished.map(|(variant, figures)| Judged::of(run, &traces, variant, figures)).collect();
    judged.iter().map(|one| one.advice(&judged, summary)).collect()
}

/// A variant with the figures that it is judged by.
struct Judged<'a> {
    variant: &'a Variant,
    figures: Finished,
    bounds: Bounds,
    account: Option<Elapsed>,
    trace: Option<&'a Trace<'a>>,
    /// The share of the time in which copies were being made; 1 but for a twin, where copies also wait for their node.
    copying: f64,
}

impl<'a> Judged<'a> {
    fn of(
        run: &RunDir,
        traces: &'a Traces<'_>,
        variant: &'a Variant,
        figures: &Finished,
    ) -> Judged<'a> {
        let row = run
            .rows
            .iter()
            .find(|row| row.variant == variant.name && row.lap == figures.shown_lap)
            .expect("a finished variant has the row that is shown");
        let trace = traces.get(&(variant.name.as_str(), figures.shown_lap));
        let bounds = Bounds::read(&run.manifest, row, &variant.settings, trace);
        let account = match row.limits.is_empty() {
            true => outside::account(&run.manifest, &bounds, trace, row),
            false => None,
        };
        let files = trace.filter(|trace| !trace.following.is_empty()).and_then(Trace::files);
        let figures = match files {
            Some(files) => of_files(figures, files, &bounds),
            None => figures.clone(),
        };
        let twin = trace.filter(|_| run.manifest.question.is_some());
        let copying = twin.and_then(Trace::copying_share).unwrap_or(1.0);
        Judged { variant, figures, bounds, account, trace, copying }
    }

    fn advice(&self, all: &[Judged<'_>], summary: &Summary<'_>) -> Advice {
        let (settings, figures) = (&self.variant.settings, &self.figures);
        let (bounds, account) = (&self.bounds, self.account.clone());
        let held = Held { settings, figures, bounds, account, copying: self.copying };
        let stream = figures.stream.as_ref();
        let stream = stream.map(|stream| Streamed { settings, figures, stream });
        let (lift, gain) = match &stream {
            Some(stream) => stream.lifted(),
            None => held.lifted(),
        };
        let setting = lift.as_ref().and_then(|lift| lift.setting.as_deref());
        let others = all.iter().filter(|other| other.variant.name != self.variant.name);
        let mut tried: Vec<&Judged<'_>> = others.collect();
        tried.retain(|other| match setting {
            Some(name) => self.differs_in(name, other),
            // If all that a limit took came back, how far that goes is a guess, and any measurement says more.
            None => stream.is_none() && held.share() > GIVEN_BACK.value,
        });
        // What only counts is no promise for what keeps all that comes.
        tried.retain(|other| other.figures.measuring_device() == figures.measuring_device());
        let (mut evidence, mut ruled_out) = (held.evidence(self.trace, summary), held.ruled_out());
        if let Some(stream) = &stream {
            evidence.extend(stream.evidence());
            ruled_out = stream.ruled_out(ruled_out);
        }
        Advice {
            variant: self.variant.name.clone(),
            limit: figures.verdict.limit,
            share: figures.verdict.share,
            sentence: figures.verdict.text.clone(),
            evidence,
            measured: match setting {
                Some(name) => tried.iter().map(|other| self.beside(other, name)).collect(),
                None => Vec::new(),
            },
            gain: gain.map(|gain| self.at_least(gain, &tried, setting)),
            ruled_out,
            lift,
        }
    }

    /// Whether another variant differs from this one in a setting alone.
    fn differs_in(&self, setting: &str, other: &Judged<'_>) -> bool {
        let (own, theirs) = (&self.variant.settings, &other.variant.settings);
        let is_another = |(name, _): &(&String, &String)| *name != setting;
        own.iter().filter(is_another).eq(theirs.iter().filter(is_another))
            && own.get(setting) != theirs.get(setting)
    }

    fn value(&self, setting: &str) -> &str {
        self.variant.settings.get(setting).map_or("its default", String::as_str)
    }

    /// What a variant that differs in a setting brought.
    fn beside(&self, other: &Judged<'_>, setting: &str) -> String {
        let (own_s, other_s) = (self.figures.seconds, other.figures.seconds);
        format!(
            "{}, with {}, took {} in place of {}: {} the rate",
            other.variant.name,
            other.value(setting),
            units::show_seconds(other_s),
            units::show_seconds(own_s),
            words::times(own_s / other_s)
        )
    }

    /// A promise is no less than what another variant of the run reached.
    fn at_least(&self, gain: Gain, tried: &[&Judged<'_>], setting: Option<&str>) -> Gain {
        let rate = |one: &Judged<'_>| one.figures.bytes_per_s;
        let Some(most) = tried.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))) else {
            return gain;
        };
        let factor = rate(most) / rate(self);
        if factor.is_nan() || factor <= gain.factor {
            return gain;
        }
        let with = setting.map_or_else(String::new, |name| format!(", with {}", most.value(name)));
        let formula = format!(
            "{} measured that{with}; the shares of time alone give {}: {}",
            most.variant.name,
            words::times(gain.factor),
            gain.formula
        );
        Gain { factor, formula }
    }
}

/// The figures of a follower while its files were copied: what it did in the rest of the time is no recovery.
fn of_files(figures: &Finished, files: Files, bounds: &Bounds) -> Finished {
    let share = |carried: f64| Some(carried / bounds.link_bytes_per_s?);
    Finished {
        seconds: files.seconds,
        bytes: files.bytes,
        bytes_per_s: files.bytes_per_s(),
        link_share: files.carried_bytes_per_s.and_then(share),
        ..figures.clone()
    }
}
