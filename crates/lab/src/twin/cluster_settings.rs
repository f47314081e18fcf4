//! The settings of a cluster, as its twin has them.

use std::collections::{BTreeMap, BTreeSet};

use engine::settings::{Settings, Watermark, Watermarks};
use record::inventory::{Inventory, InventoryNode};
use record::observation::{Scope, Setting};
use record::roles::{COLD, FROZEN, is_dedicated_to};
use record::units::{parse_size, show_size_setting};
use toml::{Table, Value};

use super::filters::{OF_THE_CLUSTER, filters, is_filter, names};
use crate::plan::{DELAY, ZONE};

/// A manager of the field misses a node as soon as its connection closes.
const ON_DISCONNECT: &str = "narrows.fault_detection.on_disconnect";
/// The first by its nodes of an active shard's replicas is the field's next primary, and the highest shard of an index
/// is moved first for balance (`RoutingNodes.activeReplicaWithHighestVersion`, `LocalShardsBalancer.tryRelocateShard`).
const FIELD_ORDER: &str = "narrows.allocation.field_order";
/// What nodes of the field weigh by where copies are placed, in the words of a flavour.
const WEIGHTS: &str = "narrows.allocation.weights";
/// The field's own way of placing replicas on nodes that hold as few copies.
const REPLICA_RING: &str = "narrows.allocation.replica_ring";
/// The field gives up what is being made of a replica when a node comes back that has it.
const RETURN_TO_FILES: &str = "narrows.allocation.return_to_files";
/// A source of the field sends a copy's files in the order of their lengths, the smallest first
/// (`SegmentFileTransferHandler.createTransfer` in OpenSearch 2.19.1).
const SMALLEST_FIRST: &str = "narrows.recovery.smallest_first";
/// A source of the field asks its target for each step, one after another: files, a lease, `clean_files`,
/// `prepare_translog`, `translog_ops`, `finalize` (`RecoverySourceHandler.recoverToTarget` in OpenSearch 2.19.1).
const STEP_BY_STEP: &str = "narrows.recovery.step_by_step";
/// The embedded engine reads and hashes every copy before it opens it; the field opens it unread.
pub(super) const CHECK: &str = "index.shard.check_on_startup";
pub(super) const PRIORITY: &str = "index.priority";
pub(super) const LIMIT: &str = "index.routing.allocation.total_shards_per_node";
/// Defaults of the field that are not the embedded engine's.
const OF_THE_FIELD: [(&str, &str); 9] = [
    (ON_DISCONNECT, "true"),
    (FIELD_ORDER, "true"),
    (REPLICA_RING, "true"),
    (RETURN_TO_FILES, "true"),
    (SMALLEST_FIRST, "true"),
    (STEP_BY_STEP, "true"),
    // Of the cluster's settings, so that it is written once and not for each index.
    (CHECK, "false"),
    ("cluster.routing.rebalance.enable", "all"),
    ("cluster.routing.allocation.disk.threshold_enabled", "true"),
];
const RATE: &str = "indices.recovery.max_bytes_per_sec";
const BY_NAME: &str = "._name";
pub(super) const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
pub(super) const INCOMING: &str = "cluster.routing.allocation.node_concurrent_incoming_recoveries";
pub(super) const OUTGOING: &str = "cluster.routing.allocation.node_concurrent_outgoing_recoveries";
const FORCED: &str = "cluster.routing.allocation.awareness.force.";
const AWARENESS: &str = "cluster.routing.allocation.awareness.attributes";
/// Attributes that name a node's zone, where awareness does not say which one does.
const ZONES: [&str; 5] = ["zone", "availability_zone", "rack", "rack_id", "aws_availability_zone"];
/// Settings that decide how long recoveries take, and whether there may be so many copies.
const RELEVANT: [&str; 6] = [
    "cluster.info.update.", "indices.recovery.", "cluster.routing.allocation.",
    "cluster.routing.rebalance.", "narrows.allocation.", "cluster.max_shards_per_node",
];
/// Settings that decide as much, and are of indices, of our own nodes, or no part of what is read of a cluster.
const RELEVANT_WHERE_ASKED: [&str; 9] = [
    CHECK, DELAY, LIMIT, PRIORITY, "cluster.fault_detection.", "index.translog.",
    "narrows.fault_detection.", "narrows.recovery.", "transport.",
];
pub(super) const LOW: &str = "cluster.routing.allocation.disk.watermark.low";
pub(super) const HIGH: &str = "cluster.routing.allocation.disk.watermark.high";
/// Elasticsearch since 8.5 bounds by it what a watermark that is a share keeps free. Its default counts where nobody
/// set the watermark, and is shown where somebody did (`DiskThresholdSettings`).
const HEADROOM: &str = ".max_headroom";

/// Whether a twin's nodes obey a setting that it is asked with. Filters are lists of the names of nodes there.
pub fn models(setting: &str) -> bool {
    let mut starts = RELEVANT.iter().chain(&RELEVANT_WHERE_ASKED);
    match is_filter(setting) {
        true => setting.ends_with(BY_NAME),
        false => starts.any(|start| setting.starts_with(start)),
    }
}

/// The attribute that says where a node is. Of several that copies are spread over it is the first that nodes share:
/// where each has a value of its own, copies are apart anyway.
pub(super) fn zone_attribute(seen: &Inventory) -> Option<String> {
    let set = seen.settings.as_ref().and_then(|settings| settings.get(AWARENESS));
    let named = set.map(|setting| names(&setting.value)).unwrap_or_default();
    let data = || seen.nodes.iter().filter(|node| node.holds_data.unwrap_or(true));
    let is_shared = |name: &&String| {
        let mut values = BTreeSet::new();
        !data().filter_map(|node| node.attributes.get(*name)).all(|value| values.insert(value))
    };
    let first = named.iter().find(is_shared).or(named.first()).cloned();
    let has = |name: &str| seen.nodes.iter().any(|node| node.attributes.contains_key(name));
    first.or_else(|| ZONES.into_iter().find(|name| has(name)).map(str::to_owned))
}

/// A setting of awareness as nodes in virtual time have it, where one attribute says where a node is; none where it
/// is about another.
fn awareness(name: &str, value: &str, zone: Option<&str>) -> Option<(String, String)> {
    if name == AWARENESS {
        return zone.is_some().then(|| (name.to_owned(), ZONE.to_owned()));
    }
    let attribute = name.strip_prefix(FORCED)?.strip_suffix(".values")?;
    let values = names(value).join(",");
    (Some(attribute) == zone).then(|| (format!("{FORCED}{ZONE}.values"), values))
}

/// A value as virtual nodes take it: a time of `0` needs no unit in the field. None where they do not have it.
pub(super) fn accepted(name: &str, value: &str) -> Option<String> {
    let takes = |value: &str| engine::settings::check(name, value).is_ok();
    match value {
        _ if takes(value) => Some(value.to_owned()),
        "0" if takes("0s") => Some("0s".to_owned()),
        _ => None,
    }
}

/// The cluster's settings, as far as virtual nodes have them. Those that somebody set and they have not are told.
pub(super) fn cluster_settings(
    seen: &Inventory,
    nodes: &[&InventoryNode],
    left_out: &mut Vec<String>,
) -> Table {
    let untold = BTreeMap::new();
    let all = seen.settings.as_ref().unwrap_or(&untold);
    let zone = zone_attribute(seen);
    let relevant = |name: &str| RELEVANT.iter().any(|start| name.starts_with(start));
    let pairs: Vec<(&str, &str)> =
        all.iter().map(|(name, setting)| (name.as_str(), setting.value.as_str())).collect();
    let mut settings = filters(OF_THE_CLUSTER, &pairs, nodes, |one| left_out.push(one));
    let in_bytes = in_bytes(all, nodes);
    for (name, setting) in all.iter().filter(|(name, _)| relevant(name)) {
        // The field shows the defaults of both directions as if the one of both were not set.
        let is_shown =
            setting.scope == Scope::Default && [INCOMING, OUTGOING].contains(&name.as_str());
        if setting.value.is_empty() || setting.value == "[]" || is_filter(name) || is_shown {
            continue;
        }
        if name == AWARENESS || name.starts_with(FORCED) {
            let modelled = awareness(name, &setting.value, zone.as_deref());
            if modelled.is_none() || name == AWARENESS && names(&setting.value).len() > 1 {
                left_out.push(format!(
                    "{name} = {}: copies are spread over one attribute of nodes alone, {}",
                    setting.value,
                    zone.as_deref().unwrap_or("and none is there")
                ));
            }
            if let Some((name, value)) = modelled {
                settings.insert(name, value.into());
            }
            continue;
        }
        let is_headroom = [LOW, HIGH].iter().any(|mark| name.strip_prefix(mark) == Some(HEADROOM));
        let counts = if is_headroom { in_bytes.is_none() } else { setting.scope != Scope::Default };
        if let Some(value) = accepted(name, &setting.value) {
            settings.insert(name.clone(), value.into());
        } else if counts {
            left_out.push(format!("{name} = {}, which is not modelled", setting.value));
        }
    }
    settings.extend(in_bytes.into_iter().flatten());
    // `RecoverySettings.DEFAULT_MAX_BYTES_PER_SEC` of Elasticsearch.
    if seen.cluster.flavour == "elasticsearch"
        && all.get(RATE).is_none_or(|rate| rate.scope == Scope::Default)
        && nodes.iter().any(|node| is_dedicated_to(&[COLD, FROZEN], &node.roles))
    {
        left_out.push(format!(
            "that nodes of cold and frozen tiers alone have a rate limit by their memory, up to 250mb, where {RATE} is \
             not set: in the twin it is the same for all nodes, and --set {RATE}=RATE asks with another"
        ));
    }
    if seen.cluster.flavour != "narrows" {
        for (name, value) in OF_THE_FIELD {
            settings.entry(name).or_insert_with(|| value.into());
        }
        if let Some(value) = accepted(WEIGHTS, &seen.cluster.flavour) {
            settings.entry(WEIGHTS).or_insert_with(|| value.into());
        }
    }
    settings
}

/// The watermarks in bytes, where a headroom bounds what they keep free and that is the same for all disks; nothing
/// where it bounds none. None where disks differ in that: virtual nodes have the same watermarks.
fn in_bytes(
    all: &BTreeMap<String, Setting>,
    nodes: &[&InventoryNode],
) -> Option<Vec<(String, Value)>> {
    let value = |name: &str| Some((name.to_owned(), all.get(name)?.value.clone()));
    let given: BTreeMap<String, String> = [LOW, HIGH].into_iter().filter_map(value).collect();
    let Watermarks { low, high } = Settings::resolve(&[&given]).disk_watermarks();
    let disks = nodes.iter().filter(|node| !is_dedicated_to(&[FROZEN], &node.roles));
    let totals: Vec<u64> =
        disks.filter_map(|node| node.disk_bytes.map(|(total, _)| total)).collect();
    let (mut marks, mut is_bound, mut is_same) = (Vec::new(), false, true);
    for (name, mark) in [(LOW, low), (HIGH, high)] {
        let is_set = |name: &str| all.get(name).is_some_and(|one| one.scope != Scope::Default);
        let own = format!("{name}{HEADROOM}");
        let bound = all.get(&own).filter(|_| is_set(&own) || !is_set(name));
        let bound = bound.and_then(|bound| parse_size(&bound.value).ok());
        let bound = bound.filter(|_| matches!(mark, Watermark::Used(_))).unwrap_or(u64::MAX);
        let free = |total: &u64| mark.free_bytes(*total).min(bound);
        is_bound |= totals.iter().any(|total| mark.free_bytes(*total) > bound);
        let kept: BTreeSet<u64> = totals.iter().map(free).collect();
        is_same &= kept.len() == 1;
        let marked = |free| (name.to_owned(), Value::from(show_size_setting(free)));
        marks.extend(kept.into_iter().map(marked));
    }
    match (is_bound, is_same) {
        (false, _) => Some(Vec::new()),
        (true, true) => Some(marks),
        (true, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::import::{Import, import};
    use super::super::tests::{asked, resolved, seen};
    use super::*;
    use crate::twin::{self, Given};

    fn set(seen: &mut Inventory, name: &str, value: &str) {
        let setting = Setting { value: value.to_owned(), scope: Scope::Persistent };
        seen.settings.as_mut().unwrap().insert(name.to_owned(), setting);
    }

    fn setting(seen: &Inventory, name: &str) -> String {
        let settings = import(seen, &Given::default()).unwrap().plan["settings"].clone();
        settings.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    #[test]
    fn what_the_field_does_by_itself_is_in_the_plan() {
        let mut seen = seen();
        assert_eq!(setting(&seen, "cluster.routing.rebalance.enable"), "none", "as it is told");
        // A twin with more copies for each node than ours may have is asked for replicas, too.
        set(&mut seen, "cluster.max_shards_per_node", "3000");
        assert_eq!(setting(&seen, "cluster.max_shards_per_node"), "3000");
        set(&mut seen, REPLICA_RING, "false");
        assert_eq!(setting(&seen, REPLICA_RING), "false", "as a node of ours tells it");
        seen.settings = None;
        assert_eq!(setting(&seen, WEIGHTS), "opensearch");
        let found = OF_THE_FIELD.map(|(name, _)| setting(&seen, name));
        assert_eq!(found, OF_THE_FIELD.map(|(_, value)| value.to_owned()));
        let (plan, _) = asked(&seen, &Given::default(), "a");
        assert_eq!(resolved(&plan).variants[0].settings[CHECK], "false");
        seen.cluster.flavour = "narrows".to_owned();
        assert!(OF_THE_FIELD.iter().all(|(name, _)| setting(&seen, name).is_empty()));
    }

    #[test]
    fn what_a_twin_reads_of_a_cluster_and_what_its_nodes_obey_besides_is_modelled() {
        let modelled = [
            SLOTS,
            DELAY,
            PRIORITY,
            "indices.recovery.max_bytes_per_sec",
            "cluster.routing.rebalance.enable",
            "cluster.max_shards_per_node",
            "cluster.routing.allocation.disk.watermark.low",
            "cluster.routing.allocation.exclude._name",
            "cluster.routing.allocation.total_shards_per_node",
            LIMIT,
            "index.routing.allocation.require._name",
            "transport.compress",
        ];
        for name in modelled {
            assert!(models(name) && engine::settings::find(name).is_some(), "{name}");
        }
        let not_modelled = [
            "cluster.routing.allocation.exclude._ip",
            "index.routing.allocation.include._host",
            "index.codec",
            "index.refresh_interval",
            "search.max_buckets",
            "cluster.metadata.anything",
        ];
        for name in not_modelled {
            assert!(!models(name) && engine::settings::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn of_several_attributes_copies_are_spread_over_the_first_that_nodes_share() {
        let mut seen = seen();
        let like = seen.nodes[0].clone();
        seen.nodes.push(InventoryNode { id: "c".into(), name: "c".into(), ..like });
        for node in &mut seen.nodes {
            node.attributes.insert("host".to_owned(), format!("host-of-{}", node.name));
        }
        let spread = |seen: &Inventory| {
            let Import { plan, left_out, .. } = import(seen, &Given::default()).unwrap();
            let told =
                left_out.iter().any(|one| one.contains("one attribute of nodes alone, rack"));
            let forced =
                plan["settings"].get("cluster.routing.allocation.awareness.force.zone.values");
            (plan["settings"][AWARENESS].as_str() == Some(ZONE), forced.is_some(), told)
        };
        assert_eq!(spread(&seen), (true, true, false));
        let mut in_a_cloud = seen.clone();
        in_a_cloud.settings = None;
        in_a_cloud.nodes[0].attributes.insert("availability_zone".to_owned(), "z1".to_owned());
        assert_eq!(zone_attribute(&in_a_cloud).as_deref(), Some("availability_zone"));
        set(&mut seen, AWARENESS, "host,rack");
        assert_eq!(spread(&seen), (true, true, true), "each has a host of its own");
    }

    #[test]
    fn that_cold_nodes_are_limited_by_their_memory_is_told_where_nobody_set_it() {
        let mut seen = seen();
        let told = |seen: &Inventory| {
            let left_out = import(seen, &Given::default()).unwrap().left_out;
            left_out.iter().any(|one| one.starts_with("that nodes of cold and frozen tiers"))
        };
        seen.cluster.flavour = "elasticsearch".to_owned();
        seen.nodes[1].roles = vec![COLD.to_owned()];
        assert!(!told(&seen), "80mb is set for all");
        seen.settings.as_mut().unwrap().remove(RATE);
        assert!(told(&seen));
        seen.nodes[1].roles.push("data_hot".to_owned());
        assert!(!told(&seen));
    }

    #[test]
    fn a_headroom_bounds_what_watermarks_keep_free_where_it_does_so_for_all_disks() {
        let with = |seen: &Inventory, gigabytes: [u64; 2], headrooms: [&str; 2]| {
            let mut seen = seen.clone();
            for (node, total) in seen.nodes.iter_mut().zip(gigabytes) {
                node.disk_bytes = Some((total << 30, total << 29));
            }
            for (mark, headroom) in [LOW, HIGH].into_iter().zip(headrooms) {
                let setting = Setting { value: headroom.to_owned(), scope: Scope::Default };
                seen.settings.as_mut().unwrap().insert(format!("{mark}{HEADROOM}"), setting);
            }
            let left_out = import(&seen, &Given::default()).unwrap().left_out;
            let told = left_out.iter().filter(|one| one.contains(HEADROOM)).count();
            ([LOW, HIGH].map(|mark| setting(&seen, mark)), told)
        };
        let of = |low: &str, high: &str| [low.to_owned(), high.to_owned()];
        let mut seen = seen();
        let of_the_field = ["200GB", "150GB"];
        assert_eq!(with(&seen, [4000, 2000], of_the_field), (of("200gb", "150gb"), 0));
        assert_eq!(with(&seen, [1400, 1400], of_the_field), (of("200gb", "140gb"), 0));
        assert_eq!(with(&seen, [1000, 500], of_the_field), (of("", ""), 0), "the shares are less");
        assert_eq!(with(&seen, [4000, 500], of_the_field), (of("", ""), 2));
        assert_eq!(with(&seen, [4000, 500], ["-1", "-1"]), (of("", ""), 0));
        set(&mut seen, LOW, "80%");
        set(&mut seen, HIGH, "85%");
        let by_default = with(&seen, [4000, 2000], of_the_field);
        assert_eq!(by_default, (of("80%", "85%"), 0), "no default bounds what somebody set");
    }

    #[test]
    fn slots_of_each_direction_are_those_that_were_set() {
        let with = |scope: Scope| {
            let mut seen = seen();
            for (name, value) in [(SLOTS, "6"), (INCOMING, "1"), (OUTGOING, "4")] {
                let setting = Setting { value: value.to_owned(), scope };
                seen.settings.as_mut().unwrap().insert(name.to_owned(), setting);
            }
            [SLOTS, INCOMING, OUTGOING].map(|name| setting(&seen, name))
        };
        assert_eq!(with(Scope::Persistent), ["6", "1", "4"]);
        assert_eq!(with(Scope::Default), ["6", "", ""], "they are shown as if 6 were not there");
    }

    #[test]
    fn filters_name_nodes_hidden_or_not() {
        let mut seen = seen();
        let exclude = "cluster.routing.allocation.exclude._name";
        set(&mut seen, exclude, "b*");
        assert_eq!(setting(&seen, exclude), "b");
        let hidden = twin::anonymous(&seen, 7);
        assert_eq!(setting(&hidden, exclude), twin::anonymous_name("node", "b", 7));
        set(&mut seen, "cluster.routing.allocation.exclude._ip", "10.0.0.7");
        let left_out = import(&seen, &Given::default()).unwrap().left_out;
        assert!(left_out.iter().any(|one| one.contains("exclude._ip = 10.0.0.7")), "{left_out:?}");
        seen.nodes[0].addresses = vec!["10.0.0.7".to_owned()];
        assert_eq!(setting(&seen, exclude), "a,b");
        let mut names = ["a", "b"].map(|name| twin::anonymous_name("node", name, 7));
        names.sort();
        let hidden = twin::anonymous(&seen, 7);
        assert_eq!(setting(&hidden, exclude), names.join(","));
        assert!(!twin::text(&import(&hidden, &Given::default()).unwrap().plan).contains("10.0.0"));
        seen.nodes[1].addresses = vec!["10.0.0.8".to_owned()];
        set(&mut seen, "cluster.routing.allocation.include._ip", "10.0.0.7,10.0.0.9");
        let kept_to =
            setting(&twin::anonymous(&seen, 7), "cluster.routing.allocation.include._name");
        assert_eq!(kept_to, twin::anonymous_name("node", "a", 7), "the other one is gone");
    }
}
