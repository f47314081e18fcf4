//! A variant of a run: its settings, how far it came, and its figures over laps.

use std::collections::BTreeMap;

use record::{FollowFigures, LimitShare, LoadFigures, StreamFigures};

use crate::stats::Interval;
use crate::trace::Met;
use crate::verdict::Verdict;

/// An operation under one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantLoad {
    /// Name of the variant.
    pub variant: String,
    /// Name of the operation.
    pub operation: String,
    /// The variant that it is compared with, where the plan says it.
    pub baseline: Option<String>,
    /// Each lap, in order.
    pub laps: Vec<LoadFigures>,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its settings, as resolved.
    pub settings: BTreeMap<String, String>,
    /// Seconds that the source documents publish.
    pub published_s: Option<f64>,
    /// Bytes that the published figure moved.
    pub published_bytes: Option<u64>,
    /// Published seconds of the baseline over published seconds of this variant.
    pub published_gain: Option<f64>,
    /// Whether copies of a twin find no place in it: its time is the one until all others are placed.
    pub never_green: bool,
    /// How far it came.
    pub progress: Progress,
}

/// How far a variant came.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// At least one lap finished.
    Finished(Box<Finished>),
    /// It began, but no lap finished.
    Partial {
        /// Time since its start, as far as samples go.
        seconds: f64,
        /// Bytes recovered at the last sample.
        recovered_bytes: u64,
        /// Bytes to recover, as known at the last sample.
        total_bytes: u64,
    },
    /// It never began.
    NotRun,
}

/// The figures of a variant; with several laps, medians over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Seconds of each lap, in order.
    pub laps_s: Vec<f64>,
    /// The lap whose time is nearest the median: charts show it.
    pub shown_lap: u32,
    /// Seconds.
    pub seconds: f64,
    /// Interval of the seconds, from three laps on.
    pub seconds_interval: Option<Interval>,
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Bytes a second of each receiving node; none where nodes were not measured apart.
    pub node_bytes_per_s: Option<f64>,
    /// Share of the link's rate, 0 to 1; none without a link.
    pub link_share: Option<f64>,
    /// Seconds of the baseline over seconds of this variant.
    pub gain: Option<f64>,
    /// Interval of the gain, from three laps of both on.
    pub gain_interval: Option<Interval>,
    /// Mean share of each limit, largest first.
    pub limits: Vec<LimitShare>,
    /// Whether both sides held the same documents in every lap.
    pub verified: bool,
    /// Live documents on the recovered side.
    pub documents: u64,
    /// Chunks that arrived damaged and were fetched again, over all laps.
    pub refetched_chunks: u64,
    /// Threads of its path and its consumer's memory, where documents were streamed; of the lap that is shown.
    pub stream: Option<StreamFigures>,
    /// What held it, and why.
    pub verdict: Verdict,
}

impl Finished {
    /// Whether its consumer only measures, and keeps nothing of what comes.
    pub fn measuring_device(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.measuring_device)
    }
}

impl Variant {
    /// The figures, if it finished.
    pub fn finished(&self) -> Option<&Finished> {
        match &self.progress {
            Progress::Finished(finished) => Some(finished),
            _ => None,
        }
    }

    /// Whether it left traces, and no figures.
    pub(crate) fn began(&self) -> bool {
        matches!(self.progress, Progress::Partial { .. })
    }
}

/// A variant of a plan that follows.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantFollow {
    /// Name of the variant.
    pub variant: String,
    /// Each lap, in order.
    pub laps: Vec<FollowFigures>,
    /// Where follower and leader met in the lap that charts show; none where they did not.
    pub met: Option<Met>,
}
