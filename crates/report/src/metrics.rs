//! What is watched as figures for Prometheus: OpenMetrics 1.0. What is not told has no sample: neither zero nor the
//! last that was known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use insight::diagnosis::{Diagnosis, NodePace, TimeToGreen, flows};
use record::observation::{Follower, Health};

use crate::screen::View;

/// The type of [`openmetrics`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is known of a cluster after a look.
pub struct Figures {
    /// Its name: the label `cluster` of every sample.
    pub cluster: String,
    /// What is shown of it.
    pub view: View,
    /// The diagnosis of the last look.
    pub diagnosis: Diagnosis,
    /// Its health.
    pub health: Option<Health>,
    /// Shards that follow another cluster's.
    pub followers: Vec<Follower>,
    /// Seconds since the last look that was answered.
    pub answered_s_ago: f64,
    /// Looks so far.
    pub looks: u64,
    /// Requests so far.
    pub requests: u64,
    /// Bytes of answers so far.
    pub answer_bytes: u64,
}

/// A figure by its name, with the labels that its samples have beside `cluster`.
pub struct Family {
    /// Its name; a counter's samples end in `_total`.
    pub name: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// Its unit, with which the name ends; empty where it counts things.
    pub unit: &'static str,
    /// Labels beside `cluster`.
    pub labels: &'static [&'static str],
    /// What it is.
    pub help: &'static str,
    samples: fn(&Figures, &mut Samples<'_>),
}

/// Samples of one family of one cluster.
struct Samples<'a> {
    cluster: &'a str,
    labels: &'static [&'static str],
    /// Each with the text of its labels.
    all: &'a mut Vec<(String, f64)>,
}

impl Samples<'_> {
    fn add(&mut self, values: &[&str], value: impl Into<Option<f64>>) {
        let Some(value) = value.into().filter(|value| value.is_finite()) else { return };
        let mut text = String::with_capacity(LABELS_BYTES);
        write_label(&mut text, "cluster", self.cluster);
        for (label, value) in self.labels.iter().zip(values) {
            text.push(',');
            write_label(&mut text, label, value);
        }
        self.all.push((text, value));
    }

    fn count(&mut self, values: &[&str], count: Option<u64>) {
        self.add(values, count.map(|count| count as f64));
    }

    /// One for each node that is there.
    fn nodes(&mut self, figures: &Figures, of: fn(&NodePace) -> Option<f64>) {
        for node in figures.view.nodes.iter().filter(|node| !node.gone) {
            self.add(&[&node.name], of(node));
        }
    }
}

/// Room for the labels of a sample, mostly.
const LABELS_BYTES: usize = 96;

fn write_label(text: &mut String, label: &str, value: &str) {
    text.push_str(label);
    text.push_str("=\"");
    match value.contains(['\\', '"', '\n']) {
        true => text.push_str(&escaped(value)),
        false => text.push_str(value),
    }
    text.push('"');
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Declares the table: type, name, unit, labels beside `cluster`, what it is, and its samples.
macro_rules! families {
    ($($kind:ident $name:literal $unit:literal $labels:expr, $help:literal, $samples:expr;)+) => {
        /// Every figure; those but the first five are there only while the cluster answers.
        pub const FAMILIES: &[Family] = &[$(Family {
            name: $name,
            kind: stringify!($kind),
            unit: $unit,
            labels: &$labels,
            help: $help,
            samples: $samples,
        }),+];
    };
}

families! {
    gauge "narrows_up" "" [], "whether the last look was answered", |figures, samples| {
        samples.add(&[], if figures.view.trouble.is_none() { 1.0 } else { 0.0 });
    };
    gauge "narrows_answer_age_seconds" "seconds" [], "time since the last look that was answered",
        |figures, samples| samples.add(&[], figures.answered_s_ago);
    counter "narrows_looks" "" [], "looks at the cluster",
        |figures, samples| samples.count(&[], Some(figures.looks));
    counter "narrows_requests" "" [], "requests that the looks took",
        |figures, samples| samples.count(&[], Some(figures.requests));
    counter "narrows_answers_bytes" "bytes" [], "bytes of their answers",
        |figures, samples| samples.count(&[], Some(figures.answer_bytes));
    gauge "narrows_health" "" ["status"],
        "1 for the status that the cluster has, 0 for the others: green, yellow, red", |figures, samples| {
            let Some(health) = &figures.health else { return };
            for status in ["green", "yellow", "red"] {
                samples.add(&[status], if health.status == status { 1.0 } else { 0.0 });
            }
        };
    gauge "narrows_copies" "" ["state"],
        "copies of shards that are not started: initializing, relocating, unassigned, delayed", |figures, samples| {
            let Some(health) = &figures.health else { return };
            let states = [
                ("initializing", health.initializing),
                ("relocating", health.relocating),
                ("unassigned", health.unassigned),
                ("delayed", health.delayed),
            ];
            for (state, count) in states {
                samples.count(&[state], count);
            }
        };
    gauge "narrows_recoveries" "" [], "recoveries that go on", |figures, samples| {
        let active = figures.view.recoveries.iter().filter(|pace| !pace.ended).count();
        samples.add(&[], active as f64);
    };
    gauge "narrows_recovery_bytes_per_second" "bytes_per_second" ["source", "target"],
        "rate of all recoveries from one node to another", |figures, samples| {
            for flow in flows(&figures.view.recoveries) {
                samples.add(&[&flow.source, &flow.target], flow.bytes_per_s);
            }
        };
    gauge "narrows_recovery_left_bytes" "bytes" ["source", "target"], "bytes still to recover", |figures, samples| {
        for flow in flows(&figures.view.recoveries) {
            samples.count(&[&flow.source, &flow.target], flow.left_bytes);
        }
    };
    gauge "narrows_time_to_green_seconds" "seconds" ["bound"],
        "when the cluster will be green: soon and late; no sample while that is unknown or no node may hold a copy",
        |figures, samples| match figures.view.green {
            TimeToGreen::Now => {
                samples.add(&["soon"], 0.0);
                samples.add(&["late"], 0.0);
            }
            TimeToGreen::Within { soon_s, late_s, .. } => {
                samples.add(&["soon"], soon_s);
                samples.add(&["late"], late_s);
            }
            TimeToGreen::Partly { .. } | TimeToGreen::Unknown { .. } => {}
        };
    gauge "narrows_finding_strength_ratio" "ratio" ["class", "place"],
        "what holds, and where: the share of the time or of the ceiling that the evidence shows", |figures, samples| {
            // A scrape has each series once: of several findings the strongest, which stands first.
            let mut told = BTreeSet::new();
            for finding in &figures.diagnosis.findings {
                if told.insert((finding.class.label(), &finding.place)) {
                    samples.add(&[finding.class.label(), &finding.place], finding.strength);
                }
            }
        };
    gauge "narrows_follower_lag_operations" "operations" ["index", "shard"],
        "operations that a follower is behind its leader", |figures, samples| {
            for follower in &figures.followers {
                let shard = follower.shard.map_or_else(String::new, |shard| shard.to_string());
                samples.count(&[&follower.index, &shard], follower.lag_ops());
            }
        };
    gauge "narrows_node_gone" "" ["node"],
        "1 for a node that answered before and does not now, 0 for the others", |figures, samples| {
            for node in figures.view.nodes.iter() {
                samples.add(&[&node.name], if node.gone { 1.0 } else { 0.0 });
            }
        };
    gauge "narrows_node_recoveries" "" ["node", "side"],
        "recoveries that read from a node (source) or go to it (target)", |figures, samples| {
            for node in figures.view.nodes.iter().filter(|node| !node.gone) {
                samples.count(&[&node.name, "source"], node.as_source);
                samples.count(&[&node.name, "target"], node.as_target);
            }
        };
    gauge "narrows_node_cpu_ratio" "ratio" ["node"], "CPU of a node's machine, as a share of all its cores",
        |figures, samples| samples.nodes(figures, |node| node.cpu.filter(|_| node.cpu_of_all));
    gauge "narrows_node_disk_busy_ratio" "ratio" ["node"], "share of the time that a node's disks are busy",
        |figures, samples| samples.nodes(figures, |node| node.disk_busy);
    gauge "narrows_node_disk_free_ratio" "ratio" ["node"], "room on a node's disks",
        |figures, samples| samples.nodes(figures, |node| node.disk_free);
    gauge "narrows_node_read_bytes_per_second" "bytes_per_second" ["node"], "what a node's disks read",
        |figures, samples| samples.nodes(figures, |node| node.read_bytes_per_s);
    gauge "narrows_node_write_bytes_per_second" "bytes_per_second" ["node"], "what a node's disks write",
        |figures, samples| samples.nodes(figures, |node| node.write_bytes_per_s);
    gauge "narrows_node_received_bytes_per_second" "bytes_per_second" ["node"], "what a node receives by transport",
        |figures, samples| samples.nodes(figures, |node| node.rx_bytes_per_s);
    gauge "narrows_node_sent_bytes_per_second" "bytes_per_second" ["node"], "what a node sends by transport",
        |figures, samples| samples.nodes(figures, |node| node.tx_bytes_per_s);
    gauge "narrows_node_paused_ratio" "ratio" ["node"],
        "pauses for the recovery limiter over time, summed over threads: may exceed 1",
        |figures, samples| samples.nodes(figures, |node| node.paused);
    gauge "narrows_node_heap_ratio" "ratio" ["node"], "heap in use",
        |figures, samples| samples.nodes(figures, |node| node.heap);
}

/// Figures of the tool itself, which are told while the cluster does not answer.
const ALWAYS: usize = 5;

/// Figures whose names begin so are made of nodes alone.
const OF_NODES: &str = "narrows_node_";

impl Family {
    /// Its samples of one cluster as lines.
    fn lines(&self, figures: &Figures) -> String {
        let mut found = Vec::new();
        let mut samples =
            Samples { cluster: &figures.cluster, labels: self.labels, all: &mut found };
        (self.samples)(figures, &mut samples);
        // A sample may be there once. Nodes come in the order of their names, so that hardly anything is to be sorted.
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.dedup_by(|later, first| later.0 == first.0);
        let total = if self.kind == "counter" { "_total" } else { "" };
        let mut text = String::new();
        for (labels, value) in found {
            let _ = writeln!(text, "{}{total}{{{labels}}} {value}", self.name);
        }
        text
    }
}

/// The text that Prometheus reads, of every cluster.
pub fn openmetrics<'f>(all: impl Iterator<Item = &'f Figures>) -> String {
    let all: Vec<&Figures> = all.collect();
    let mut text = String::new();
    for (at, family) in FAMILIES.iter().enumerate() {
        let Family { name, kind, unit, help, .. } = family;
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        for figures in all.iter().filter(|one| at < ALWAYS || one.view.trouble.is_none()) {
            match name.starts_with(OF_NODES) {
                true => text.push_str(&of_nodes(figures)[name]),
                false => text.push_str(&family.lines(figures)),
            }
        }
    }
    text.push_str("# EOF\n");
    text
}

/// The lines of all figures on nodes, which stay until nodes are asked for again.
fn of_nodes(figures: &Figures) -> &BTreeMap<&'static str, String> {
    figures.view.nodes.samples(|| {
        let families = FAMILIES.iter().filter(|family| family.name.starts_with(OF_NODES));
        families.map(|family| (family.name, family.lines(figures))).collect()
    })
}
