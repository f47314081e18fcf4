//! One look at one cluster, as the page shows it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::repeat;
use std::sync::Arc;

use insight::diagnosis::{Alike, By, Class, Diagnosis, Evidence, Flow, NodePace, RuledOut, flows};
use insight::words;
use record::units::show_bytes;
use serde::Serialize;

use crate::screen::{
    Nodes, RecoveryCells, View, WAITING_MAX, node_cells, promised, recovery_cells, request,
};

/// Rows that are sent of each list; the others are counted. A page of thousands of lines tells nobody anything.
const HELD_MAX: usize = 6;
const RECOVERIES_MAX: usize = 25;
const FLOWS_MAX: usize = 60;
const SUBJECTS_MAX: usize = 12;

/// What the page is sent of one look.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    title: String,
    about: String,
    health: String,
    trouble: Option<String>,
    headline: String,
    totals: Totals,
    held: Vec<Held>,
    held_more: usize,
    healthy: Vec<String>,
    notes: Vec<String>,
    gaps: Vec<String>,
    flows: Vec<Flow>,
    flows_more: More,
    recoveries: Vec<RecoveryCells>,
    recoveries_more: usize,
    /// Bytes a second of recoveries that read from a node, and of those that it receives, by its name.
    node_rates: BTreeMap<String, [f64; 2]>,
    /// Written apart: one look after another has the same until they are asked for again.
    #[serde(skip)]
    pub(super) nodes: Arc<Nodes>,
    waiting: Vec<String>,
    waiting_more: usize,
    followers: Vec<String>,
}

/// The figures at the head of the page.
#[derive(Clone, Debug, Serialize)]
struct Totals {
    active: usize,
    /// Copies on no node; none where the health is not told.
    waiting: Option<u64>,
    rate: String,
    /// None while something recovers and nobody tells how fast.
    rate_bytes_per_s: Option<f64>,
    left: String,
    /// None while something recovers and nobody tells how much of it is left. Copies that wait have no size yet.
    left_bytes: Option<u64>,
    green: String,
    green_note: String,
}

/// Something that holds, with all that `explain` says of it.
#[derive(Clone, Debug, Serialize)]
struct Held {
    class: Cow<'static, str>,
    /// Whether it holds nothing now.
    over: bool,
    /// The colour of its limit.
    tint: &'static str,
    place: String,
    /// Where the same holds besides: what one setting lifts everywhere is shown once.
    also: Vec<String>,
    sentence: String,
    lift: Option<String>,
    action: Option<String>,
    how: Option<String>,
    gain: Option<String>,
    next: Option<String>,
    doubt: Option<String>,
    strength: f64,
    subjects: Vec<String>,
    subjects_more: usize,
    evidence: Vec<Evidence>,
    ruled_out: Vec<Against>,
}

/// A cause that does not hold, and why.
#[derive(Clone, Debug, Serialize)]
struct Against {
    class: &'static str,
    by: &'static str,
    why: String,
}

/// What is not shown of a list of flows.
#[derive(Clone, Debug, Default, Serialize)]
struct More {
    count: usize,
    bytes_per_s: f64,
}

/// The cells of a node's line.
#[derive(Serialize)]
struct NodeRow {
    cells: [String; 7],
    gone: bool,
}

impl Frame {
    /// The frame of a view and its diagnosis; `at_ms` is the time of the look, in milliseconds since 1970.
    pub fn of(at_ms: u64, view: &View, diagnosis: &Diagnosis) -> Frame {
        let active = || view.recoveries.iter().filter(|pace| !pace.ended);
        let rate: f64 = active().filter_map(|pace| pace.now_bytes_per_s).sum();
        let is_told = active().any(|pace| pace.now_bytes_per_s.is_some());
        let left: Vec<u64> = active()
            .filter_map(|pace| Some(pace.total_bytes?.saturating_sub(pace.done_bytes?)))
            .collect();
        let left_bytes: u64 = left.iter().sum();
        let is_left_told = !left.is_empty() || active().next().is_none();
        let mut flows = flows(&view.recoveries);
        let hidden = flows.split_off(flows.len().min(FLOWS_MAX));
        let rows = view.recoveries.iter().take(RECOVERIES_MAX).map(recovery_cells);
        let all = Alike::of(&diagnosis.findings);
        let shown = all.iter().take(HELD_MAX);
        // The words on what lifts a finding are those of the screen, which shows them in the same order.
        let lifts = view.found.iter().map(|found| found.lift.clone()).chain(repeat(None));
        Frame {
            at_ms,
            title: view.title.clone(),
            about: view.about.clone(),
            health: view.health.clone(),
            trouble: view.trouble.clone(),
            headline: claim(view).to_owned(),
            totals: Totals {
                active: active().count(),
                waiting: view.unassigned,
                rate: if is_told { words::rate(rate) } else { "-".to_owned() },
                rate_bytes_per_s: (is_told || active().next().is_none()).then_some(rate),
                left: if left.is_empty() { "-".to_owned() } else { show_bytes(left_bytes) },
                left_bytes: is_left_told.then_some(left_bytes),
                green: view.green.words(),
                green_note: view.green.note().to_owned(),
            },
            held: shown.zip(lifts).map(|(alike, lift)| held(alike, lift)).collect(),
            held_more: all.len().saturating_sub(HELD_MAX),
            healthy: diagnosis.healthy.iter().take(WAITING_MAX).cloned().collect(),
            notes: view.notes.clone(),
            gaps: diagnosis.gaps.clone(),
            flows_more: More {
                count: hidden.len(),
                bytes_per_s: hidden.iter().filter_map(|flow| flow.bytes_per_s).sum(),
            },
            node_rates: node_rates(view),
            nodes: view.nodes.clone(),
            flows,
            recoveries: rows.collect(),
            recoveries_more: view.recoveries.len().saturating_sub(RECOVERIES_MAX),
            waiting: view.waiting.iter().map(|line| line.text.clone()).collect(),
            waiting_more: view.waiting_more,
            followers: view.followers.iter().take(WAITING_MAX).cloned().collect(),
        }
    }

    /// Figures of which the last hour is kept: kilobytes a second of the cluster (`"total"`), and of each node that
    /// recoveries read from (`"out NAME"`) or go to (`"in NAME"`); kilobytes that are `"left"`, and copies that are
    /// `"waiting"`. Names of nodes stand after a space, so that no node is taken for the cluster.
    pub(super) fn figures(&self) -> Vec<(String, f64)> {
        // What is shown is then of earlier.
        if self.trouble.is_some() {
            return Vec::new();
        }
        let Totals { rate_bytes_per_s, left_bytes, waiting, .. } = &self.totals;
        let totals = [
            ("total", rate_bytes_per_s.map(|rate| rate / 1e3)),
            ("left", left_bytes.map(|bytes| bytes as f64 / 1e3)),
            ("waiting", waiting.map(|copies| copies as f64)),
        ];
        let known =
            totals.into_iter().filter_map(|(name, figure)| Some((name.to_owned(), figure?)));
        let mut all: Vec<(String, f64)> = known.collect();
        for (name, rates) in &self.node_rates {
            for (way, rate) in ["out", "in"].into_iter().zip(rates).filter(|(_, rate)| **rate > 0.0)
            {
                all.push((format!("{way} {name}"), rate / 1e3));
            }
        }
        all
    }

    /// Bytes a second of all recoveries together, as far as they are told.
    pub(super) fn rate_bytes_per_s(&self) -> f64 {
        self.totals.rate_bytes_per_s.unwrap_or(0.0)
    }
}

/// Nodes, as the page reads them.
///
/// # Panics
/// Never: texts can be written as JSON.
pub(super) fn nodes_json(nodes: &Nodes) -> &str {
    nodes.json(|| {
        let row = |node: &NodePace| NodeRow { cells: node_cells(node), gone: node.gone };
        let rows: Vec<NodeRow> = nodes.iter().map(row).collect();
        serde_json::to_string(&rows).expect("texts")
    })
}

/// Of nodes that are there; a repository has none.
fn node_rates(view: &View) -> BTreeMap<String, [f64; 2]> {
    let mut all = BTreeMap::<String, [f64; 2]>::new();
    for pace in view.recoveries.iter().filter(|pace| !pace.ended) {
        let Some(rate) = pace.now_bytes_per_s else { continue };
        for (end, name) in [&pace.source, &pace.target].into_iter().enumerate() {
            if let Some(node) = name.as_ref().and_then(|name| view.nodes.present(name)) {
                all.entry(node.name.clone()).or_default()[end] += rate;
            }
        }
    }
    all
}

/// The headline: what holds, without its figures, which stand below beside all that is found.
fn claim(view: &View) -> &str {
    let figures = view.verdict.match_indices(": ").nth(1).filter(|_| !view.found.is_empty());
    figures.map_or(view.verdict.as_str(), |(at, _)| &view.verdict[..at])
}

fn held(alike: &Alike<'_>, lift: Option<String>) -> Held {
    let finding = alike.first;
    let mut ruled_out: Vec<_> = finding.ruled_out.iter().collect();
    ruled_out.sort_by_key(|one| one.by);
    let against = |one: &&RuledOut| Against {
        class: one.class.label(),
        by: By::label(one.by),
        why: one.why.clone(),
    };
    Held {
        class: finding.label(),
        over: finding.over,
        tint: tint(finding.class),
        place: finding.place.clone(),
        also: alike.also.iter().map(|other| other.place.clone()).collect(),
        sentence: finding.sentence.clone(),
        lift,
        action: finding.lift.as_ref().map(|lift| lift.action.clone()),
        how: finding.lift.as_ref().and_then(request),
        gain: finding.gain.as_ref().map(|gain| format!("{} ({})", promised(gain), gain.formula)),
        next: finding.next.sentence.clone(),
        doubt: finding.doubt.clone(),
        strength: finding.strength.clamp(0.0, 1.0),
        subjects: alike.subjects().take(SUBJECTS_MAX).cloned().collect(),
        subjects_more: alike.subjects().count().saturating_sub(SUBJECTS_MAX),
        evidence: finding.evidence.clone(),
        ruled_out: ruled_out.iter().map(against).collect(),
    }
}

/// The colour of a cause: that of the limit that it is, as on the page of a run.
fn tint(class: Class) -> &'static str {
    match class {
        Class::RateLimit | Class::MergeThrottle => "throttle",
        Class::Latency | Class::ReplicaRouting => "latency",
        Class::Bandwidth => "link-rate",
        Class::Cpu | Class::CpuQuota | Class::ThreadCpu | Class::NoisyNeighbour => "cpu",
        Class::Disk | Class::DcpProducer => "disk-read",
        Class::OperationReplay
        | Class::FollowerWriter
        | Class::FollowerReader
        | Class::DcpConsumer => "disk-write",
        Class::AllocationSlots | Class::AllocationBlock | Class::FollowerStopped => "slots",
        Class::Gc | Class::Memory | Class::DcpMemory => "memory",
        Class::Proxy => "proxy",
        Class::Unknown => "neutral",
    }
}
