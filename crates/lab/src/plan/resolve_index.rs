//! Indices and steps of a plan, from plain data to values with units.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use record::units::parse_size;
use toml::{Spanned, Value};

use super::Plan;
use super::document::{FullTable, IndexTable};
use super::resolved::{Background, Cluster, Full, Index, Peers, Step};
use crate::Error;
use crate::choices::unknown;

const SHARDS: RangeInclusive<i64> = 1..=1024;
const DOCUMENTS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const SEGMENTS: RangeInclusive<i64> = 1..=1_000_000;
const SEGMENT_RATIOS: RangeInclusive<f64> = 0.01..=1.0;
/// What a tiered merge policy tends to leave.
const SEGMENT_RATIO: f64 = 0.5;
/// One byte to an exabyte.
const BYTES: RangeInclusive<u64> = 1..=1 << 60;
const DOCUMENTS_PER_S: RangeInclusive<i64> = 1..=1_000_000_000;
/// Shares are written with few digits, so they may miss one whole by this much.
const SHARE_TOLERANCE: f64 = 1e-3;

impl Plan {
    pub(super) fn indices(
        &self,
        leader: Cluster,
        documents: u64,
        scale: f64,
    ) -> Result<Vec<Index>, Error> {
        let tables = &self.document.index;
        let shares = self.shares(tables)?;
        let mut names = BTreeSet::new();
        let mut indices = Vec::new();
        let (mut below, mut from) = (0.0, 0);
        for (table, share) in tables.iter().zip(shares) {
            if table.name.get_ref().is_empty() || !names.insert(table.name.get_ref()) {
                let message = "each index has a name of its own; this one is empty or taken";
                return Err(self.error(table.name.span(), message));
            }
            below += share;
            let to = ((documents as f64 * below).round() as u64).clamp(from, documents);
            let full = table.full.as_ref().map(|full| self.full(full, scale)).transpose()?;
            indices.push(Index {
                name: table.name.get_ref().clone(),
                shards: self.number("shards", &table.shards, SHARDS)?,
                replicas: self.replicas(&table.replicas, leader)?,
                documents: Range { start: from, end: to },
                full,
            });
            from = to;
        }
        Ok(indices)
    }

    /// Copies of a shard never share a node.
    pub(super) fn replicas(&self, replicas: &Spanned<i64>, leader: Cluster) -> Result<u32, Error> {
        let what = format!("replicas on {} leader nodes", leader.nodes);
        self.number(&what, replicas, 0..=i64::from(leader.nodes) - 1)
    }

    /// What part of the corpus each index gets. An only one gets all unless it says otherwise.
    fn shares(&self, tables: &[IndexTable]) -> Result<Vec<f64>, Error> {
        let only = tables.len() == 1;
        let mut shares = Vec::new();
        for table in tables {
            let share = match &table.share {
                Some(share) => {
                    self.within("share", share, share.get_ref(), &(0.0..=1.0), f64::to_string)?;
                    *share.get_ref()
                }
                None if only => 1.0,
                None => {
                    let message = "of several indices each says its share of the corpus, 0 to 1";
                    return Err(self.error(table.name.span(), message));
                }
            };
            shares.push(share);
        }
        let sum: f64 = shares.iter().sum();
        if sum > 1.0 + SHARE_TOLERANCE {
            let message = format!("the shares of the indices sum to {sum:.4}; give at most 1");
            let last = &tables[tables.len() - 1].name;
            return Err(self.error(last.span(), message));
        }
        Ok(shares)
    }

    fn full(&self, full: &FullTable, scale: f64) -> Result<Full, Error> {
        let scaled = |whole: u64| ((whole as f64 * scale).round() as u64).max(1);
        let documents: u64 = self.number("documents", &full.documents, DOCUMENTS)?;
        let bytes = self.unit(&full.bytes, parse_size)?;
        self.within("bytes", &full.bytes, &bytes, &BYTES, |bytes| format!("{bytes}b"))?;
        let segments = self.number("segments", &full.segments, SEGMENTS)?;
        let mut segment_ratio = SEGMENT_RATIO;
        if let Some(ratio) = &full.segment_ratio {
            self.within("segment_ratio", ratio, ratio.get_ref(), &SEGMENT_RATIOS, f64::to_string)?;
            segment_ratio = *ratio.get_ref();
        }
        let (documents, bytes) = (scaled(documents), scaled(bytes));
        Ok(Full { documents, bytes, segments, segment_ratio })
    }

    pub(super) fn steps(&self, leader: Cluster) -> Result<Vec<Step>, Error> {
        let written = &self.document.steps;
        if written.get_ref().is_empty() {
            return Err(self.error(written.span(), "a plan has at least one step"));
        }
        let mut steps = Vec::new();
        for entry in written.get_ref() {
            let step = self.step(entry, leader)?;
            if steps.iter().any(|other: &Step| other.name() == step.name()) {
                let message = format!("the step \"{}\" stands here twice", step.name());
                return Err(self.error(entry.span(), message));
            }
            steps.push(step);
        }
        let has = |name: &str| steps.iter().any(|step| step.name() == name);
        let measured: Vec<&str> = Step::NAMES
            .into_iter()
            .filter(|name| Step::MEASURED.contains(name) && has(name))
            .collect();
        let lacks_follower = self.document.follower.is_none() || self.document.link.is_none();
        let wrong = match measured.as_slice() {
            [one, other, ..] => {
                Some(format!("a plan has the step \"{one}\" or \"{other}\", not both"))
            }
            [_] if has("move") != self.document.bucket.is_some() => {
                Some("the step \"move\" and a [bucket] need each other".to_owned())
            }
            [across] if !matches!(*across, "recover_peers" | "load" | "move") && lacks_follower => {
                Some(format!("the step \"{across}\" needs a [follower] and a [link]"))
            }
            _ if has("load") && !self.has_load() => {
                Some("the step \"load\" needs a [load] that says which".to_owned())
            }
            _ if has("index_in_background") && !has("recover") => Some(
                "the step \"index_in_background\" goes on while \"recover\" does; add that"
                    .to_owned(),
            ),
            _ => None,
        };
        match wrong {
            Some(message) => Err(self.error(written.span(), message)),
            None => Ok(steps),
        }
    }

    /// Whether the plan or one of its variants says what load is sent.
    fn has_load(&self) -> bool {
        let of_variants = self.document.variant.get_ref();
        self.document.load.is_some() || of_variants.iter().any(|variant| variant.load.is_some())
    }

    fn step(&self, entry: &Spanned<Value>, leader: Cluster) -> Result<Step, Error> {
        let wrong = |message: String| self.error(entry.span(), message);
        let (name, options) = match entry.get_ref() {
            Value::String(name) => (name.as_str(), None),
            Value::Table(table) => match table.iter().next() {
                Some((name, Value::Table(options))) if table.len() == 1 => {
                    (name.as_str(), Some(options))
                }
                _ => {
                    let example = "{ recover_peers = { restart = 4 } }";
                    return Err(wrong(format!(
                        "a step is a name, or a table of one name with its options, as {example}"
                    )));
                }
            },
            other => {
                let found = other.type_str();
                return Err(wrong(format!("a step is a name or a table, found {found}")));
            }
        };
        let known: &[&str] = match name {
            "index_in_background" => &["documents_per_s"],
            "recover_peers" => &["restart"],
            _ => &[],
        };
        let mut number = None;
        for (key, value) in options.into_iter().flatten() {
            if !known.contains(&key.as_str()) {
                let said = format!("the step \"{name}\" has no option");
                let message = match known {
                    [] => format!("{said}s, found \"{key}\""),
                    known => unknown(&said, key, "Options", known),
                };
                return Err(wrong(message));
            }
            let whole = value.as_integer();
            let whole = whole.ok_or_else(|| wrong(format!("{key} is a whole number")))?;
            number = Some(Spanned::new(entry.span(), whole));
        }
        Ok(match name {
            "start" => Step::Start,
            "index" => Step::Index,
            "recover" => Step::Recover,
            "add_replica" => Step::AddReplica,
            "restore" => Step::Restore,
            "load" => Step::Load,
            "fill" => Step::Fill,
            "move" => Step::Move,
            "verify" => Step::Verify,
            "index_in_background" => {
                let rate = number.ok_or_else(|| {
                    let example = "{ index_in_background = { documents_per_s = 80_000 } }";
                    wrong(format!("say how many documents a second, as {example}"))
                })?;
                let documents_per_s = self.number("documents_per_s", &rate, DOCUMENTS_PER_S)?;
                Step::IndexInBackground(Background { documents_per_s })
            }
            "recover_peers" => Step::RecoverPeers(match number {
                None => Peers::Replicas,
                Some(nodes) => {
                    // The first node manages and stays up.
                    let what =
                        format!("restart on {} nodes, of which the first stays up", leader.nodes);
                    let nodes = self.number(&what, &nodes, 1..=i64::from(leader.nodes) - 1)?;
                    Peers::Restart { nodes }
                }
            }),
            _ => return Err(wrong(unknown("unknown step", name, "Steps", &Step::NAMES))),
        })
    }
}
