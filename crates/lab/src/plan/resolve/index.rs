//! `[[index]]`.

use std::collections::BTreeSet;
use std::ops::Range;

use record::units::counted;
use toml::Spanned;

use super::together::{Together, every};
use super::values::scaled;
use crate::choices::unknown;
use crate::error::Result;
use crate::plan::document::{FULL, FullTable, INDEX, IndexTable};
use crate::plan::file::Plan;
use crate::plan::index::{Full, Index};
use crate::plan::topology::Cluster;

/// What a request that creates an index may have below `mappings`.
const MAPPINGS: [&str; 10] = [
    "properties", "dynamic", "dynamic_templates", "_source", "_routing", "_meta", "date_detection",
    "numeric_detection", "dynamic_date_formats", "_field_names",
];
/// What a tiered merge policy tends to leave: each segment half as large as the next larger one.
const SEGMENT_RATIO: f64 = 0.5;
/// More documents cannot be multiplied by what each of them takes in files.
const SCALED_DOCUMENTS_MAX: u64 = 1 << 53;
const SCALED_BYTES_MAX: u64 = 1 << 60;
/// Shares are written with few digits, so they may miss one whole by this much.
const SHARE_TOLERANCE: f64 = 1e-3;

impl Plan {
    pub(super) fn indices(
        &self,
        leader: Cluster,
        documents: u64,
        scale: f64,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Vec<Index>> {
        let check_setting = |name: &str, value: &str| match name {
            "index.number_of_shards" | "index.number_of_replicas" => {
                Err("write shards and replicas beside the index's name".to_owned())
            }
            // The ledger knows where documents are in an index that was made without it.
            "index.number_of_routing_shards" => Err("leave it out of a plan".to_owned()),
            _ if name.starts_with("index.") => check_setting(name, value),
            _ => Err("an index has settings that begin with index.; others go into [settings]"
                .to_owned()),
        };
        let tables = &self.document.index;
        let shares = self.shares(tables);
        let mut names = BTreeSet::new();
        let (mut below, mut from) = (0.0, 0);
        let indices = tables.iter().enumerate().map(|(at, table)| {
            below += shares.as_ref().map_or(0.0, |shares| shares[at]);
            let to = ((documents as f64 * below).round() as u64).clamp(from, documents);
            let range = Range { start: from, end: to };
            from = to;
            let is_first = names.insert(table.name.get_ref());
            let full = table.full.as_ref().map(|full| self.full(full, scale));
            let rollover = table.rollover.as_ref().map(|rollover| self.rollover(rollover));
            let found = (
                self.index_name(table, is_first),
                self.number(&INDEX, "shards", &table.shards),
                self.replicas(&table.replicas, leader),
                full.transpose(),
                rollover.transpose(),
                self.settings(&table.settings, &check_setting),
                self.mappings(table),
            );
            let (name, shards, replicas, full, rollover, settings, mappings) = found.together()?;
            let documents = range;
            Ok(Index { name, shards, replicas, documents, full, rollover, settings, mappings })
        });
        let indices = every(indices);
        let (indices, _) = (indices, shares).together()?;
        Ok(indices)
    }

    fn index_name(&self, table: &IndexTable, is_first: bool) -> Result<String> {
        let name = table.name.get_ref();
        if name.is_empty() || !is_first {
            let other = if name.is_empty() { "logs".to_owned() } else { format!("{name}-2") };
            let message = format!(
                "each index has a name of its own; this one is empty or taken: write for example name = \"{other}\""
            );
            return Err(self.error(table.name.span(), message));
        }
        engine::state::check_index_name(name).map_err(|why| {
            // What names may not hold becomes a hyphen.
            let kept = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
            let fit: String = name.to_lowercase().chars().map(kept).collect();
            let fit = fit.trim_start_matches(['-', '_']);
            let hint = match engine::state::check_index_name(fit) {
                Ok(()) => format!("; write name = \"{fit}\""),
                Err(_) => String::new(),
            };
            self.error(table.name.span(), format!("{why}{hint}"))
        })?;
        Ok(name.clone())
    }

    /// Mappings as a request has them.
    fn mappings(&self, table: &IndexTable) -> Result<Option<serde_json::Value>> {
        let Some(mappings) = &table.mappings else { return Ok(None) };
        let found = serde_json::to_value(mappings.get_ref());
        let found = found.map_err(|error| self.error(mappings.span(), error.to_string()))?;
        let mut names = mappings.get_ref().keys();
        let Some(other) = names.find(|name| !MAPPINGS.contains(&name.as_str())) else {
            return Ok(Some(found));
        };
        if mappings.get_ref().contains_key(MAPPINGS[0]) {
            // Clusters know more of them than are listed here.
            return Ok(Some(found));
        }
        let said = unknown("mappings have no key", other, "Keys here", &MAPPINGS);
        let hint = "; fields stand below properties: properties = { title = { type = \"text\" } }";
        Err(self.error(mappings.span(), format!("{said}{hint}")))
    }

    /// Copies of a shard never share a node.
    pub(super) fn replicas(&self, replicas: &Spanned<i64>, leader: Cluster) -> Result<u32> {
        let nodes = counted(leader.nodes, "leader node", "leader nodes");
        let what = format!("replicas on {nodes}");
        self.number_within(&what, replicas, 0..=i64::from(leader.nodes) - 1)
    }

    /// What part of the corpus each index gets. An only one gets all unless it says otherwise.
    fn shares(&self, tables: &[IndexTable]) -> Result<Vec<f64>> {
        let only = tables.len() == 1;
        let mut shares = Vec::new();
        for table in tables {
            let share = match &table.share {
                Some(share) => self.real(&INDEX, "share", share)?,
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

    fn full(&self, full: &FullTable, scale: f64) -> Result<Full> {
        let ratio = full
            .segment_ratio
            .as_ref()
            .map_or(Ok(SEGMENT_RATIO), |ratio| self.real(&FULL, "segment_ratio", ratio));
        let found = (
            self.number(&FULL, "documents", &full.documents),
            self.size(&FULL, "bytes", &full.bytes),
            self.number(&FULL, "segments", &full.segments),
            ratio,
        );
        let (documents, bytes, segments, segment_ratio) = found.together()?;
        let unscaled = (documents, bytes);
        let (documents, bytes) = (scaled(documents, scale), scaled(bytes, scale));
        if documents > SCALED_DOCUMENTS_MAX || bytes > SCALED_BYTES_MAX {
            let message =
                format!("at --scale {scale} no store could hold this; give a smaller --scale");
            return Err(self.error(full.documents.span(), message));
        }
        Ok(Full { documents, bytes, unscaled, segments, segment_ratio })
    }
}
