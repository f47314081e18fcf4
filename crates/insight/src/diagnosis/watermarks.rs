//! Disks beyond the cluster's watermarks, and what the cluster forbids meanwhile.

use record::observation::{IndexBlock, Node, Scope};
use record::roles::{FROZEN, holds_data, is_dedicated_to};
use record::units::parse_size;

use super::finding::LINES_SHOWN;
use super::series::Series;
use crate::words;

/// The watermark beyond which copies leave a disk, and its default.
pub(crate) const HIGH: (&str, &str) = ("cluster.routing.allocation.disk.watermark.high", "90%");
/// The one beyond which indices with a copy on the disk are written to no more.
const FLOOD_STAGE: (&str, &str) = ("cluster.routing.allocation.disk.watermark.flood_stage", "95%");
const ENABLED: (&str, &str) = ("cluster.routing.allocation.disk.threshold_enabled", "true");

/// Blocks of the whole cluster, and what they forbid.
const BLOCKS: [(&str, &str); 3] = [
    (
        "cluster.blocks.create_index",
        "no index can be created; OpenSearch sets it by itself while all disks are past the high watermark",
    ),
    ("cluster.blocks.read_only_allow_delete", "nothing can be written, only deleted"),
    ("cluster.blocks.read_only", "nothing can be written"),
];

/// Blocks of an index, and what they forbid.
const INDEX_BLOCKS: [(&str, &str); 5] = [
    ("index.blocks.read_only", "neither documents nor settings can be changed there"),
    ("index.blocks.read", "nothing can be read there"),
    ("index.blocks.write", "no document can be written there"),
    ("index.blocks.metadata", "neither settings nor mappings can be read or changed there"),
    (
        "index.blocks.read_only_allow_delete",
        "nothing can be written there, only deleted; a disk past its flood stage sets it, and it goes by itself",
    ),
];

/// The size of a node's disk, and what of it is free; none where no watermark counts. A node without a role of data has
/// no copies. A cache fills the disk of a node that is there for partially mounted indices alone, and Elasticsearch
/// neither moves copies from it for that nor blocks an index (`DiskThresholdMonitor`).
pub(crate) fn disk_bytes(node: &Node) -> Option<(f64, f64)> {
    let has_no_copies = !node.roles.is_empty() && !node.roles.iter().any(|role| holds_data(role));
    if has_no_copies || is_dedicated_to(&[FROZEN], &node.roles) {
        return None;
    }
    let (total, free) = (node.disk_total_bytes?, node.disk_available_bytes?);
    (total > 0).then_some((total as f64, free as f64))
}

/// The setting that a disk keeps too little free for, with its value. Elasticsearch since 8.5 bounds what a watermark
/// that is a share keeps free by a second setting; one that is below zero bounds nothing, nor does its default where
/// the watermark was set.
pub(crate) fn past(
    series: &Series<'_>,
    (name, default): (&str, &'static str),
    (total, free): (f64, f64),
) -> Option<String> {
    let value = series.value_or_default(name, default);
    let Some(most) = share(value) else {
        let kept = parse_size(value).ok()? as f64;
        return (free < kept).then(|| format!("{name} = {value}"));
    };
    let kept = total * (1.0 - most);
    let bound_name = format!("{name}.max_headroom");
    let is_set = |name: &str| series.setting(name).is_some_and(|one| one.scope != Scope::Default);
    let bound = series.setting(&bound_name).filter(|_| is_set(&bound_name) || !is_set(name));
    let bound = bound.map(|bound| bound.value.as_str());
    let bytes = bound.and_then(|bound| parse_size(bound).ok()).map_or(kept, |bytes| bytes as f64);
    match bound {
        Some(bound) if bytes < kept => (free < bytes).then(|| format!("{bound_name} = {bound}")),
        _ => (free < kept).then(|| format!("{name} = {}", words::percent(most))),
    }
}

/// `90%` or `0.9`; none of a watermark in bytes.
fn share(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.trim().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok(),
    }
}

/// What cannot be written, a sentence each. All copies may be started, and the health green.
pub(crate) fn forbidden(series: &Series<'_>) -> Vec<String> {
    flooded(series)
        .into_iter()
        .chain(BLOCKS.iter().filter_map(|one| blocked(series, *one)))
        .chain(series.last().into_iter().flat_map(|look| &look.index_blocks).filter_map(of_indices))
        .collect()
}

/// A block that indices have, with the request that takes it back.
fn of_indices(block: &IndexBlock) -> Option<String> {
    let name = &block.setting;
    let (_, forbids) = INDEX_BLOCKS.iter().find(|(known, _)| known == name)?;
    let shown = &block.indices[..block.indices.len().min(LINES_SHOWN)];
    let (more, others) = match block.count.saturating_sub(shown.len() as u64) {
        0 => (String::new(), ""),
        more => (format!(" and {more} more"), ", and the same of the others"),
    };
    (!shown.is_empty()).then(|| {
        format!(
            "{name} = true of {}{more}: {forbids}; where that is no longer meant, PUT {}/_settings \
             {{\"{name}\":null}}{others}",
            shown.join(", "),
            shown.join(",")
        )
    })
}

/// The disks past the flood stage. The embedded engine has none.
fn flooded(series: &Series<'_>) -> Option<String> {
    let is_on = series.value_or_default(ENABLED.0, ENABLED.1) == ENABLED.1;
    if !is_on || series.flavour() == "narrows" {
        return None;
    }
    let found = series.nodes().filter_map(|node| {
        let past = past(series, FLOOD_STAGE, node.latest(disk_bytes)?)?;
        Some((node.last().name.as_str(), past))
    });
    let found: Vec<(&str, String)> = found.collect();
    let (_, past) = found.first()?;
    let names: Vec<&str> = found.iter().take(LINES_SHOWN).map(|(name, _)| *name).collect();
    let more = match found.len() - names.len() {
        0 => String::new(),
        more => format!(" and of {more} more"),
    };
    Some(format!(
        "the disk of {}{more} is past {past}: indices with a copy there are written to no more \
         (index.blocks.read_only_allow_delete) until there is room again; add a node, or delete what is not needed",
        names.join(", of ")
    ))
}

/// A block that is set, with the request that takes it back.
fn blocked(series: &Series<'_>, (name, forbids): (&str, &str)) -> Option<String> {
    let found = series.setting(name).filter(|found| found.value == "true")?;
    let rank = if found.scope == Scope::Transient { "transient" } else { "persistent" };
    Some(format!(
        "{name} = true: {forbids}; where that is no longer meant, PUT _cluster/settings \
         {{\"{rank}\":{{\"{name}\":null}}}}"
    ))
}
