//! A plan with everything in units: what is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clusters::FaultKind;
use record::units::show_bytes;

use super::action::Action;
use super::background::Background;
use super::bucket::BucketUse;
use super::corpus::CorpusUse;
use super::fault::{Fault, LINK};
use super::index::Index;
use super::models::models;
use super::parameter::ParameterScope;
use super::step::{Measured, Step};
use super::topology::{Cluster, FOLLOWER, LEADER, Link};
use super::twin::Twin;
use super::variant::Variant;
use crate::error::{Error, Result};
use crate::track::Track;

/// A corpus that is larger than this is not indexed document by document.
const REAL_BYTES_MAX: f64 = 200e9;

/// A plan, resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// Name of the plan.
    pub name: String,
    /// One sentence of the plan about itself.
    pub about: String,
    /// Which published experiment it repeats.
    pub source: Option<String>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// What happens in a plan that follows, one action after another, for each variant; empty in other plans.
    pub actions: Vec<Action>,
    /// Repetitions of every variant.
    pub laps: u32,
    /// Time between two samples; long recoveries are sampled less often as they go on.
    pub sample: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// What the documents were scaled by; 1 is the plan's own size.
    pub scale: f64,
    /// The cluster that holds the data.
    pub leader: Cluster,
    /// The cluster that recovers from it; none where nodes of one cluster recover from each other.
    pub follower: Option<Cluster>,
    /// Whether the follower's nodes are the leader's second site, and no cluster of their own.
    pub joined: bool,
    /// The path between the two.
    pub link: Option<Link>,
    /// What is indexed; none where a bucket's documents are streamed.
    pub corpus: Option<CorpusUse>,
    /// A cluster that was seen, in place of indices.
    pub twin: Option<Twin>,
    /// What is streamed from a server to another, in place of indices.
    pub bucket: Option<BucketUse>,
    /// Where the corpus is indexed, each index with a name of its own; at least one where there is no bucket.
    pub indices: Vec<Index>,
    /// Settings that every node starts with, as in its configuration file.
    pub node_settings: BTreeMap<String, String>,
    /// Variants in the order of the plan; at least one.
    pub variants: Vec<Variant>,
    /// What the place where it runs has changed of the plan, a sentence each.
    pub changes: Vec<String>,
    /// The track that is run, if one is: it makes its indices itself.
    pub track: Option<Track>,
}

impl Resolved {
    /// The step that each variant is measured in; none where the plan measures nothing.
    pub(crate) fn measured_step(&self) -> Option<&Measured> {
        self.steps.iter().find_map(|step| match step {
            Step::Measure(measured) => Some(measured),
            _ => None,
        })
    }

    /// Whether the corpus is indexed before anything is measured.
    pub fn indexes(&self) -> bool {
        self.steps.contains(&Step::Index)
    }

    /// Whether both sides are compared at the end.
    pub fn verifies(&self) -> bool {
        self.steps.contains(&Step::Verify)
    }

    pub(crate) fn cuts_nodes_off(&self) -> bool {
        self.faults().any(|fault| fault.kind == FaultKind::Cut && fault.node != LINK)
    }

    /// Renames the indices: a single one to `name`, each of several to `name-` and its old name. Operations are changed
    /// accordingly.
    pub(crate) fn name_indices(&mut self, name: &str) {
        if let Some(track) = &mut self.track {
            track.rename(&format!("{name}-"));
            return;
        }
        let before = self.index_names();
        match self.indices.as_mut_slice() {
            [only] => only.name = name.to_owned(),
            several => {
                several.iter_mut().for_each(|index| index.name = format!("{name}-{}", index.name))
            }
        }
        let mut renamed: BTreeMap<String, String> = before
            .split(',')
            .map(str::to_owned)
            .zip(self.indices.iter().map(|i| i.name.clone()))
            .collect();
        renamed.insert(before, self.index_names());
        let loads = self.variants.iter_mut().filter_map(|variant| variant.load.as_mut());
        for load in loads {
            let operations = load.operations.iter_mut().chain(&mut load.full.operations);
            operations.for_each(|operation| operation.rename_index(&renamed));
        }
    }

    /// Changes the plan to what it is in virtual time: at the size of the published run, with as many laps. The link
    /// has the rate of the test bed, where that says one: the rate in the plan is that of the emulated link.
    pub(crate) fn take_full_size(&mut self) {
        let laps = |variant: &Variant| variant.load.as_ref()?.full.laps;
        self.laps = self.variants.iter().filter_map(laps).max().unwrap_or(self.laps);
        self.bucket = self.bucket.as_ref().map(BucketUse::at_full_size);
        let rate = models(&self.variants[0], ParameterScope::Everywhere).link.rate_bytes_per_s;
        if let (Some(link), Some(rate)) = (&mut self.link, rate) {
            link.rate_bytes_per_s = rate;
        }
    }

    /// The names of the indices, as a path takes them: `leader1,leader2`.
    pub(crate) fn index_names(&self) -> String {
        let names: Vec<&str> = self.indices.iter().map(|index| index.name.as_str()).collect();
        names.join(",")
    }

    /// Primary shards of all indices.
    pub fn shards(&self) -> u32 {
        self.indices.iter().map(|index| index.shards).sum()
    }

    /// What is indexed while variants are measured, if anything.
    pub fn background(&self) -> Option<Background> {
        self.steps.iter().find_map(|step| match step {
            Step::IndexInBackground(background) => Some(*background),
            _ => None,
        })
    }

    /// Whether a variant leaves the indices other than it found them, so that each variant needs them anew.
    pub fn spoils_indices(&self) -> bool {
        self.background().is_some()
            || self.measured_step().is_some_and(|measured| measured.spoils_indices)
    }

    /// Refuses a corpus that only the virtual world has room for, or one that is too small there. `target` is the
    /// place's name.
    pub fn check_size(&self, target: &'static str, is_virtual: bool) -> Result<()> {
        if is_virtual && self.full_bytes().is_some() {
            return self.check_full_sizes();
        }
        let bytes = self.written_one_by_one(is_virtual);
        if bytes <= REAL_BYTES_MAX {
            return Ok(());
        }
        // The power of ten at which it is a GB or less.
        let scale = 10f64.powf((self.scale * 1e9 / bytes).log10().floor());
        let (plan, size) = (&self.name, show_bytes(bytes as u64));
        let fits_virtual =
            self.full_bytes().is_some() || self.written_one_by_one(true) <= REAL_BYTES_MAX;
        let there = if fits_virtual { "with --on virtual, or " } else { "" };
        Err(Error::usage(format!(
            "plan {plan} indexes {size} of documents, too much for {target}; run it {there}smaller: --scale {scale}"
        )))
    }

    /// Refuses a scale at which the files of an index have no room for its documents.
    fn check_full_sizes(&self) -> Result<()> {
        let too_small = |index: &Index| index.full?.least_scale(index.shards);
        let Some(least) = self.indices.iter().filter_map(too_small).reduce(f64::max) else {
            return Ok(());
        };
        // Rounded up to one digit.
        let ten = least.log10().floor();
        let digit = (least / 10f64.powf(ten)).ceil();
        Err(Error::usage(format!(
            "plan {} at scale {}: segments would have no room for their documents; it can be run from --scale {} on",
            self.name,
            self.scale,
            digit / 10f64.powf(-ten)
        )))
    }

    /// Bytes of all documents that are written one by one, before and while something is measured.
    fn written_one_by_one(&self, is_virtual: bool) -> f64 {
        let before = match (&self.corpus, &self.bucket) {
            (_, Some(bucket)) => bucket.items as f64 * bucket.item_bytes as f64,
            (Some(corpus), None) => corpus.documents as f64 * corpus.document_bytes(),
            (None, None) => 0.0,
        };
        before + self.written_in_background(is_virtual)
    }

    /// Bytes of the documents that the plan waits for, where they are written one by one.
    fn written_in_background(&self, is_virtual: bool) -> f64 {
        let by_the_run = |action: &Action| matches!(action, Action::IndexInBackground(rate) if rate.full.is_some());
        if is_virtual && self.actions.iter().any(by_the_run) {
            return 0.0;
        }
        let written = self.actions.iter().map(|action| match action {
            Action::WaitForDocuments(written) => written.of(is_virtual) as f64,
            _ => 0.0,
        });
        let document_bytes = self.corpus.as_ref().map_or(0.0, CorpusUse::document_bytes);
        written.sum::<f64>() * document_bytes
    }

    /// Every fault, of variants and of actions.
    fn faults(&self) -> impl Iterator<Item = &Fault> {
        let of_variants = self.variants.iter().flat_map(|variant| &variant.faults);
        let of_actions = self.actions.iter().filter_map(|action| match action {
            Action::Fault { fault, .. } => Some(fault),
            _ => None,
        });
        of_variants.chain(of_actions)
    }

    /// Refuses faults that `target` does not have: only the virtual world moves clocks, and it and the embedded engine
    /// fill disks.
    pub(crate) fn check_faults(&self, target: &'static str, is_virtual: bool) -> Result<()> {
        let what = self.faults().find_map(|fault| match fault.kind {
            FaultKind::FullDisk { .. } if target != "embedded" => Some("fill a disk"),
            FaultKind::Clock { .. } => Some("move a node's clock"),
            _ => None,
        });
        match what {
            Some(what) if !is_virtual => Err(clusters::Error::VirtualOnly { target, what }.into()),
            _ => Ok(()),
        }
    }

    /// The nodes whose disks are filled.
    pub fn full_disks(&self) -> BTreeSet<String> {
        let full = self.faults().filter(|fault| matches!(fault.kind, FaultKind::FullDisk { .. }));
        full.flat_map(|fault| self.nodes_called(&fault.node)).collect()
    }

    /// The nodes of a cluster, where a fault names one; the node otherwise.
    pub(crate) fn nodes_called(&self, name: &str) -> Vec<String> {
        let count = match name {
            LEADER => self.leader.nodes,
            FOLLOWER => self.follower.map_or(0, |follower| follower.nodes),
            node => return vec![node.to_owned()],
        };
        (0..count).map(|n| format!("{name}-{n}")).collect()
    }

    /// Bytes that the primaries hold in the published run; none where an index does not say it.
    pub(crate) fn full_bytes(&self) -> Option<u64> {
        self.indices.iter().map(|index| Some(index.full?.bytes)).sum()
    }
}
