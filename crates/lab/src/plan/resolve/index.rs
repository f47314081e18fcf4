//! `[[index]]`.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use record::units::parse_size;
use toml::Spanned;

use super::values::scaled;
use crate::error::Error;
use crate::plan::document::{FullTable, IndexTable};
use crate::plan::file::Plan;
use crate::plan::index::{Full, Index};
use crate::plan::topology::Cluster;

const SHARDS: RangeInclusive<i64> = 1..=1024;
const DOCUMENTS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const SEGMENTS: RangeInclusive<i64> = 1..=1_000_000;
const SEGMENT_RATIOS: RangeInclusive<f64> = 0.01..=1.0;
/// What a tiered merge policy tends to leave: each segment half as large as the next larger one.
const SEGMENT_RATIO: f64 = 0.5;
/// From a byte to an exbibyte.
const BYTES: RangeInclusive<u64> = 1..=1 << 60;
/// Shares are written with few digits, so they may miss one whole by this much.
const SHARE_TOLERANCE: f64 = 1e-3;

impl Plan {
    pub(super) fn indices(
        &self,
        leader: Cluster,
        documents: u64,
        scale: f64,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Vec<Index>, Error> {
        let check_setting = |name: &str, value: &str| match name {
            "index.number_of_shards" | "index.number_of_replicas" => {
                Err("write shards and replicas beside the index's name".to_owned())
            }
            _ if name.starts_with("index.") => check_setting(name, value),
            _ => Err("an index has settings that begin with index.; others go into [settings]"
                .to_owned()),
        };
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
            engine::state::check_index_name(table.name.get_ref())
                .map_err(|why| self.error(table.name.span(), why.to_string()))?;
            below += share;
            let to = ((documents as f64 * below).round() as u64).clamp(from, documents);
            let full = table.full.as_ref().map(|full| self.full(full, scale)).transpose()?;
            indices.push(Index {
                name: table.name.get_ref().clone(),
                shards: self.number("shards", &table.shards, SHARDS)?,
                replicas: self.replicas(&table.replicas, leader)?,
                documents: Range { start: from, end: to },
                full,
                rollover: table.rollover.as_ref().map(|r| self.rollover(r)).transpose()?,
                settings: self.settings(&table.settings, &check_setting)?,
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
        let documents = self.scaled("documents", &full.documents, DOCUMENTS, scale)?;
        let bytes = self.unit(&full.bytes, parse_size)?;
        self.within("bytes", &full.bytes, &bytes, &BYTES, |bytes| format!("{bytes}b"))?;
        let segments = self.number("segments", &full.segments, SEGMENTS)?;
        let mut segment_ratio = SEGMENT_RATIO;
        if let Some(ratio) = &full.segment_ratio {
            self.within("segment_ratio", ratio, ratio.get_ref(), &SEGMENT_RATIOS, f64::to_string)?;
            segment_ratio = *ratio.get_ref();
        }
        Ok(Full { documents, bytes: scaled(bytes, scale), segments, segment_ratio })
    }
}
