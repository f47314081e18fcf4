//! A plan from what a live cluster consists of.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryCopy, InventoryNode};
use record::observation::{Scope, Setting};
use record::units::show_size_setting;
use toml::{Table, Value};

use super::TwinPlan;
use super::filters::{filters, is_filter, names};
use super::given::{self, Given, Known, put};
use crate::error::{Error, Result};
use crate::plan::{Twin, ZONE};

const DELAY: &str = "index.unassigned.node_left.delayed_timeout";
/// What the field waits for a node where an index does not say it.
const DELAY_OF_THE_FIELD: &str = "1m";
const PRIORITY: &str = "index.priority";
const EXPANDS: &str = "index.auto_expand_replicas";
/// More copies of a shard than an index of a twin has.
const COPIES_MAX: usize = 11;
/// A manager of the field misses a node as soon as its connection closes.
const ON_DISCONNECT: &str = "narrows.fault_detection.on_disconnect";
/// The field's own way of placing replicas on nodes that hold as few copies.
const REPLICA_RING: &str = "narrows.allocation.replica_ring";
/// Our own reads and hashes every copy before it opens it; the field opens it.
const CHECK: &str = "index.shard.check_on_startup";
/// What the field does where it says nothing else, and ours does not.
const OF_THE_FIELD: [(&str, &str); 5] = [
    (ON_DISCONNECT, "true"),
    (REPLICA_RING, "true"),
    // Of the cluster's settings, so that it is written once and not for each index.
    (CHECK, "false"),
    ("cluster.routing.rebalance.enable", "all"),
    ("cluster.routing.allocation.disk.threshold_enabled", "true"),
];
const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const SLOTS_OF_THE_FIELD: u64 = 2;
const SLOTS_MAX: u64 = 10_000;
const INCOMING: &str = "cluster.routing.allocation.node_concurrent_incoming_recoveries";
const OUTGOING: &str = "cluster.routing.allocation.node_concurrent_outgoing_recoveries";
const FORCED: &str = "cluster.routing.allocation.awareness.force.";
const AWARENESS: &str = "cluster.routing.allocation.awareness.attributes";
/// Attributes that name a node's zone, where awareness does not say which one does.
const ZONES: [&str; 4] = ["zone", "rack", "rack_id", "aws_availability_zone"];
/// Settings that decide how long recoveries take.
const RELEVANT: [&str; 4] = [
    "cluster.info.update.",
    "indices.recovery.",
    "cluster.routing.allocation.",
    "cluster.routing.rebalance.",
];
/// `index.recovery.file_based_threshold` where nobody set it.
const FILE_BASED_THRESHOLD: f64 = 0.1;
/// Elasticsearch since 8.5 bounds by it what a watermark that is a share keeps free; set or not, it counts.
const HEADROOM: &str = ".max_headroom";

/// A plan of a cluster, nothing asked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The plan.
    pub plan: TwinPlan,
    /// What of the cluster is not in it, a sentence each.
    pub left_out: Vec<String>,
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// A plan of what a cluster consists of.
///
/// # Errors
/// If there is nothing to make a twin of.
pub fn import(seen: &Inventory, given: &Given) -> Result<Import> {
    let mut left_out: Vec<String> = seen.gaps.iter().map(|gap| gap.lost.clone()).collect();
    let holders: BTreeSet<&str> = seen.copies.iter().filter_map(|c| c.node.as_deref()).collect();
    let mut nodes: Vec<_> = seen
        .nodes
        .iter()
        .filter(|node| node.holds_data.unwrap_or(true) || holders.contains(node.name.as_str()))
        .collect();
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let indices = indices(seen, &names, &mut left_out);
    if nodes.len() < 2 || indices.is_empty() {
        let why = format!(
            "{} has {} and {}; a twin needs two nodes and an index",
            seen.cluster.name,
            counted(nodes.len(), "node that holds data", "nodes that hold data"),
            counted(indices.len(), "index", "indices")
        );
        return Err(Error::Usage { why });
    }
    let is_field = seen.cluster.flavour != "narrows";
    if is_field {
        nodes = as_the_allocator_has_them(nodes);
    }
    let lagging = seen.copies.iter().filter(|copy| replays_too_much(copy)).count();
    if lagging > 0 {
        left_out.push(format!(
            "{lagging} copies whose retention leases lag by more than a tenth of their documents: where their node is \
             away when primaries renew leases, as every 30 s, they come back by files and not by operations; half a \
             minute after the last write none lags"
        ));
    }
    let zone = zone_attribute(seen);
    let node = |node: &&InventoryNode| {
        let mut row = Table::new();
        row.insert("name".to_owned(), node.name.as_str().into());
        if let Some(zone) = zone.as_ref().and_then(|zone| node.attributes.get(zone)) {
            row.insert("zone".to_owned(), zone.as_str().into());
        }
        if let Some((total, free)) = node.disk_bytes {
            row.insert("disk".to_owned(), show_size_setting(total).into());
            row.insert("disk_free".to_owned(), show_size_setting(free).into());
        }
        Value::Table(row)
    };
    let mut twin = Table::new();
    twin.insert("node".to_owned(), nodes.iter().map(node).collect::<Vec<_>>().into());
    twin.insert("index".to_owned(), indices.into());
    twin.insert("uncertain".to_owned(), Value::Array(Vec::new()));
    let mut plan = head(seen, nodes.len());
    plan.insert("settings".to_owned(), settings(seen, &nodes, &mut left_out).into());
    plan.insert("twin".to_owned(), twin.into());
    machines(&mut plan, &nodes, &seen.round_trips_ms, &mut left_out);
    given::say(&mut plan, given);
    given::assume(&mut plan, is_field);
    Ok(Import { plan, left_out })
}

/// Nodes in such an order that our allocator goes through those which hold as many copies as OpenSearch's does: as they
/// stand in a `HashMap` by their ids (`LocalShardsBalancer.buildModelFromAssigned`). Ours goes by names, of virtual
/// time.
fn as_the_allocator_has_them(mut nodes: Vec<&InventoryNode>) -> Vec<&InventoryNode> {
    let count = nodes.len();
    nodes.sort_by_key(|node| bucket(&node.id, count));
    let mut by_name: Vec<usize> = (0..count).collect();
    by_name.sort_by_key(|at| Twin::machine(*at));
    let mut ordered: Vec<_> = by_name.into_iter().zip(nodes).collect();
    ordered.sort_by_key(|(at, _)| *at);
    ordered.into_iter().map(|(_, node)| node).collect()
}

/// Where a key stands in a `HashMap` of Java with so many. The table doubles where it is three quarters full.
fn bucket(key: &str, count: usize) -> u32 {
    let hash = java_hash(key);
    let buckets = (count * 4).div_ceil(3).next_power_of_two().max(16);
    (hash ^ (hash >> 16)) & (u32::try_from(buckets).unwrap_or(1 << 31) - 1)
}

/// `String.hashCode` of Java.
fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// Whether the field rather copies a copy whole than by operations after its node was away. While a copy is missing,
/// its primary drops a lease that keeps more than `index.recovery.file_based_threshold` of the documents. It does so
/// where it renews the leases of the copies that are there, every `index.soft_deletes.retention_lease.sync_interval`
/// (`ReplicationTracker.getRetentionLeases`, `renewPeerRecoveryRetentionLeases`; elasticsearch pull request 45208).
fn replays_too_much(copy: &InventoryCopy) -> bool {
    let lag = copy.lease_lag.zip(copy.documents);
    lag.is_some_and(|(lag, documents)| {
        lag as f64 > (documents as f64 * FILE_BASED_THRESHOLD).ceil()
    })
}

fn head(seen: &Inventory, nodes: usize) -> TwinPlan {
    let cluster = &seen.cluster;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = cluster.name.chars().map(plain).collect();
    let about = format!("A twin of {}, {} {}.", cluster.name, cluster.flavour, cluster.version);
    let mut plan = Table::new();
    plan.insert("name".to_owned(), format!("twin-{}", name.trim_matches('-')).into());
    plan.insert("about".to_owned(), about.into());
    plan.insert("steps".to_owned(), vec![Value::from("start"), "what_if".into()].into());
    if let Some(bed) = crate::plan::target_bed(&cluster.flavour) {
        plan.insert("test_bed".to_owned(), bed.into());
    }
    let nodes = i64::try_from(nodes + 1).unwrap_or(i64::MAX);
    plan.insert("leader".to_owned(), Table::from_iter([("nodes".to_owned(), nodes.into())]).into());
    plan
}

/// The attribute that says where a node is.
fn zone_attribute(seen: &Inventory) -> Option<String> {
    let set = seen.settings.as_ref().and_then(|settings| settings.get(AWARENESS));
    let first = set.and_then(|setting| names(&setting.value).into_iter().next());
    let has = |name: &str| seen.nodes.iter().any(|node| node.attributes.contains_key(name));
    first.or_else(|| ZONES.into_iter().find(|name| has(name)).map(str::to_owned))
}

/// A setting of awareness as nodes in virtual time have it, where one attribute says where a node is; none where it
/// is about another.
fn awareness(name: &str, value: &str, zone: Option<&str>) -> Option<(String, String)> {
    if name == AWARENESS {
        return (names(value) == [zone?]).then(|| (name.to_owned(), ZONE.to_owned()));
    }
    let attribute = name.strip_prefix(FORCED)?.strip_suffix(".values")?;
    let values = names(value).join(",");
    (Some(attribute) == zone).then(|| (format!("{FORCED}{ZONE}.values"), values))
}

/// Every index with its shards, as far as they have a primary.
fn indices(seen: &Inventory, nodes: &BTreeSet<&str>, left_out: &mut Vec<String>) -> Vec<Value> {
    let mut by_index: BTreeMap<&str, BTreeMap<u32, Vec<&InventoryCopy>>> = BTreeMap::new();
    for copy in &seen.copies {
        by_index.entry(&copy.index).or_default().entry(copy.shard).or_default().push(copy);
    }
    let (mut found, mut red, mut assumed, mut empty) = (Vec::new(), 0, 0, 0);
    for (name, shards) in by_index {
        let copies = shards.values().map(Vec::len).max().unwrap_or(1);
        // The field gives it fewer copies where there are fewer nodes: none of them waits for a place.
        let expands = seen.indices.get(name).and_then(|own| own.get(EXPANDS));
        if expands.is_some_and(|range| range.ends_with("-all")) || copies > COPIES_MAX {
            left_out.push(format!("{name}, which has {copies} copies of each shard"));
            continue;
        }
        let one = |copies: &Vec<&InventoryCopy>| {
            let started = |copy: &&&InventoryCopy| {
                matches!(copy.state.as_str(), "STARTED" | "RELOCATING")
                    && copy.node.as_deref().is_some_and(|node| nodes.contains(node))
            };
            let primary = copies.iter().filter(started).find(|copy| copy.primary)?;
            let replicas = copies.iter().filter(started).filter(|copy| !copy.primary);
            let of = |copy: &&InventoryCopy| copy.node.as_deref().map(Value::from);
            let places: Vec<Value> =
                std::iter::once(primary).chain(replicas).filter_map(of).collect();
            let mut row = Table::new();
            let documents = i64::try_from(primary.documents.unwrap_or(0)).unwrap_or(i64::MAX);
            let segments = primary.segments.unwrap_or(10).clamp(1, 10_000);
            row.insert("bytes".to_owned(), show_size_setting(primary.bytes.unwrap_or(0)).into());
            row.insert("documents".to_owned(), documents.into());
            row.insert("segments".to_owned(), i64::try_from(segments).unwrap_or(1).into());
            row.insert("copies".to_owned(), places.into());
            Some((Value::Table(row), primary.segments.is_none(), primary.bytes.is_none()))
        };
        let rows: Vec<_> = shards.values().filter_map(one).collect();
        red += shards.len() - rows.len();
        assumed += rows.iter().filter(|(_, assumed, _)| *assumed).count();
        empty += rows.iter().filter(|(.., untold)| *untold).count();
        if rows.is_empty() {
            continue;
        }
        let mut index = Table::new();
        index.insert("name".to_owned(), name.into());
        index.insert("replicas".to_owned(), i64::try_from(copies - 1).unwrap_or(0).into());
        index.insert("settings".to_owned(), index_settings(seen, name, left_out).into());
        let rows: Vec<Value> = rows.into_iter().map(|(row, ..)| row).collect();
        index.insert("shard".to_owned(), rows.into());
        found.push(index.into());
    }
    if red > 0 {
        left_out.push(format!("{red} shards without a started primary"));
    }
    if assumed > 0 {
        left_out.push(format!("the segments of {assumed} shards: 10 are assumed"));
    }
    if empty > 0 {
        left_out.push(format!("the sizes of {empty} shards, which nobody tells: they are empty"));
    }
    found
}

/// A value as virtual nodes take it: a time of `0` needs no unit in the field. None where they do not have it.
fn accepted(name: &str, value: &str) -> Option<String> {
    let takes = |value: &str| engine::settings::check(name, value).is_ok();
    match value {
        _ if takes(value) => Some(value.to_owned()),
        "0" if takes("0s") => Some("0s".to_owned()),
        _ => None,
    }
}

fn index_settings(seen: &Inventory, index: &str, left_out: &mut Vec<String>) -> Table {
    let own = seen.indices.get(index);
    let of = |name: &str| own.and_then(|own| own.get(name)).map(String::as_str);
    let mut settings = Table::new();
    // The embedded engine does not wait.
    let without = (seen.cluster.flavour != "narrows").then_some(DELAY_OF_THE_FIELD);
    for (name, without) in [(DELAY, without), (PRIORITY, None)] {
        let own = of(name).and_then(|value| accepted(name, value));
        if let (Some(refused), None) = (of(name), &own) {
            left_out.push(format!("{name} = {refused} of {index}, which is not modelled"));
        }
        if let Some(value) = own.or(without.map(str::to_owned)) {
            settings.insert(name.to_owned(), value.into());
        }
    }
    if let Some(checked) = of(CHECK).filter(|checked| without.is_some() && *checked != "false") {
        left_out.push(format!("{CHECK} = {checked} of {index}: its copies are opened unread"));
    }
    settings
}

/// The cluster's settings, as far as virtual nodes have them. Those that somebody set and they have not are told.
fn settings(seen: &Inventory, nodes: &[&InventoryNode], left_out: &mut Vec<String>) -> Table {
    let untold = BTreeMap::new();
    let all = seen.settings.as_ref().unwrap_or(&untold);
    let zone = zone_attribute(seen);
    let relevant = |name: &str| RELEVANT.iter().any(|start| name.starts_with(start));
    let mut settings = filters(all, nodes, left_out);
    for (name, setting) in all.iter().filter(|(name, _)| relevant(name)) {
        let is_elsewhere = is_filter(name) || [INCOMING, OUTGOING].contains(&name.as_str());
        if setting.value.is_empty() || setting.value == "[]" || is_elsewhere {
            continue;
        }
        if name == AWARENESS || name.starts_with(FORCED) {
            match awareness(name, &setting.value, zone.as_deref()) {
                Some((name, value)) => drop(settings.insert(name, value.into())),
                None => left_out.push(format!(
                    "{name} = {}: copies are spread over one attribute of nodes, and the first is {}",
                    setting.value,
                    zone.as_deref().unwrap_or("none")
                )),
            }
            continue;
        }
        if let Some(value) = accepted(name, &setting.value) {
            settings.insert(name.clone(), value.into());
        } else if setting.scope != Scope::Default
            || (name.ends_with(HEADROOM) && setting.value != "-1")
        {
            left_out.push(format!("{name} = {}, which is not modelled", setting.value));
        }
    }
    slots(all, &mut settings, left_out);
    if seen.cluster.flavour != "narrows" {
        for (name, value) in OF_THE_FIELD {
            settings.entry(name).or_insert_with(|| value.into());
        }
    }
    settings
}

/// The slots of a node where those of a direction are set by themselves: virtual nodes have as many for both. Where
/// they are defaults they say nothing: the field shows them without what is set of [`SLOTS`].
fn slots(all: &BTreeMap<String, Setting>, settings: &mut Table, left_out: &mut Vec<String>) {
    let set = |name: &str| {
        all.get(name).filter(|one| one.scope != Scope::Default)?.value.parse::<u64>().ok()
    };
    let (incoming, outgoing) = (set(INCOMING), set(OUTGOING));
    if incoming.or(outgoing).is_none() {
        return;
    }
    let both = settings.get(SLOTS).and_then(Value::as_str).and_then(|both| both.parse().ok());
    let both: u64 = both.unwrap_or(SLOTS_OF_THE_FIELD);
    let (incoming, outgoing) = (incoming.unwrap_or(both), outgoing.unwrap_or(both));
    let slots = incoming.min(outgoing).min(SLOTS_MAX);
    settings.insert(SLOTS.to_owned(), slots.to_string().into());
    left_out.push(format!(
        "that a node's slots are {incoming} for copies that it receives and {outgoing} for those that it sends, each \
         with a setting of its own: {SLOTS} = {slots} stands for both, and on the cluster those two are to be changed"
    ));
}

/// What was seen of the machines that the twin has.
fn machines(
    plan: &mut TwinPlan,
    nodes: &[&InventoryNode],
    round_trips_ms: &[f64],
    left_out: &mut Vec<String>,
) {
    let mut cores: Vec<u64> = nodes.iter().filter_map(|node| node.cores).collect();
    cores.sort_unstable();
    if let Some(median) = cores.get(cores.len() / 2) {
        let median = i64::try_from(*median).unwrap_or(1);
        put(plan, "cores.count", median.clamp(1, 4096), Known::Seen);
        if cores.first() != cores.last() {
            left_out.push(format!("how cores differ from node to node: each has {median}"));
        }
    }
    let mut trips = round_trips_ms.to_vec();
    trips.sort_by(f64::total_cmp);
    // One of 0 is too short to be measured: where most are, the assumption covers them.
    if let Some(ms) = trips.get(trips.len() / 2).filter(|ms| **ms > 0.0) {
        put(plan, "card.delay", format!("{}ns", (ms * 1e6 / 4.0) as u64), Known::Seen);
    }
}

#[cfg(test)]
mod tests {
    use record::observation::Identity;

    use super::*;
    use crate::experiments::STEPS;
    use crate::plan::{Plan, Question, Resolved};
    use crate::twin::{self, Asked};

    fn seen() -> Inventory {
        let node = |name: &str, zone: &str, data: bool| InventoryNode {
            id: name.to_owned(),
            name: name.to_owned(),
            holds_data: Some(data),
            attributes: BTreeMap::from([("rack".to_owned(), zone.to_owned())]),
            cores: Some(8),
            disk_bytes: (name == "a").then_some((100 << 30, 12 << 30)),
        };
        let copy = |shard: u32, primary: bool, state: &str, node: Option<&str>| InventoryCopy {
            index: "Logs of \"today\"".to_lowercase().replace([' ', '"'], "-"),
            shard,
            primary,
            state: state.to_owned(),
            node: node.map(str::to_owned),
            documents: node.map(|_| 1000),
            bytes: node.map(|_| 5_000_000),
            segments: node.map(|_| 7),
            lease_lag: node.map(|_| 100),
        };
        let setting = |value: &str, scope| Setting { value: value.to_owned(), scope };
        Inventory {
            cluster: Identity {
                name: "My logs".into(),
                flavour: "opensearch".into(),
                version: "2.19.1".into(),
            },
            nodes: vec![node("a", "r1", true), node("b", "r2", true), node("m", "r1", false)],
            copies: vec![
                copy(0, true, "STARTED", Some("a")),
                copy(0, false, "STARTED", Some("b")),
                copy(1, true, "RELOCATING", Some("b")),
                copy(1, false, "UNASSIGNED", None),
                copy(2, true, "UNASSIGNED", None),
                copy(2, false, "UNASSIGNED", None),
            ],
            settings: Some(BTreeMap::from([
                (
                    "indices.recovery.max_bytes_per_sec".to_owned(),
                    setting("80mb", Scope::Persistent),
                ),
                (
                    "cluster.routing.allocation.awareness.attributes".to_owned(),
                    setting("rack", Scope::Persistent),
                ),
                (
                    "cluster.routing.allocation.awareness.force.rack.values".to_owned(),
                    setting("[r1, r2]", Scope::Persistent),
                ),
                ("cluster.routing.rebalance.enable".to_owned(), setting("none", Scope::Persistent)),
            ])),
            indices: BTreeMap::new(),
            round_trips_ms: vec![0.0, 2.0, 4.0],
            indexed_per_s: None,
            gaps: Vec::new(),
        }
    }

    fn resolved(plan: &TwinPlan) -> Resolved {
        let text = twin::text(plan);
        let check = |name: &str, value: &str| {
            engine::settings::check(name, value).map(drop).map_err(|e| e.to_string())
        };
        let plan =
            Plan::parse("twin.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        plan.resolve(1.0, STEPS, check).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn asked(seen: &Inventory, given: &Given, lost: &str) -> (TwinPlan, Vec<String>) {
        let Import { mut plan, left_out } = import(seen, given).unwrap();
        twin::ask(&mut plan, &Asked::Lose(vec![lost.to_owned()]));
        twin::as_it_is(&mut plan);
        twin::trials(&mut plan);
        (plan, left_out)
    }

    #[test]
    fn a_cluster_becomes_a_plan_that_is_read_again() {
        let (plan, left_out) = asked(&seen(), &Given::default(), "r2");
        let resolved = resolved(&plan);
        let twin = resolved.twin.as_ref().unwrap();
        assert_eq!(twin.question, Question::Lose(vec![1]), "r2 is where b is");
        assert_eq!((twin.nodes.len(), resolved.leader.nodes), (2, 3), "m holds no data");
        assert_eq!(twin.nodes[0].disk, Some((100 << 30, 12 << 30)));
        assert_eq!((twin.nodes[1].disk, twin.disks().len()), (None, 1), "nothing is known of b's");
        let [index] = &twin.indices[..] else { panic!("{:?}", twin.indices) };
        assert_eq!((index.replicas, index.shards.len()), (1, 2), "shard 2 has no primary");
        assert_eq!(
            (&index.shards[0].nodes[..], &index.shards[1].nodes[..]),
            (&[0, 1][..], &[1][..])
        );
        assert_eq!(index.settings["index.unassigned.node_left.delayed_timeout"], "1m");
        assert_eq!(resolved.variants[0].settings["indices.recovery.max_bytes_per_sec"], "80mb");
        let names: Vec<&str> =
            resolved.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names[1], "indices.recovery.max_bytes_per_sec = 320mb");
        assert_eq!(*names.last().unwrap(), "all of these");
        let settings = &resolved.variants[0].settings;
        assert_eq!(settings["cluster.routing.allocation.awareness.attributes"], "zone");
        assert_eq!(settings["cluster.routing.allocation.awareness.force.zone.values"], "r1,r2");
        assert_eq!(settings["cluster.routing.rebalance.enable"], "none");
        assert!([ON_DISCONNECT, REPLICA_RING].iter().all(|name| settings[*name] == "true"));
        assert_eq!(twin.attributes()[2]["zone"], "r2", "the manager is the first");
        assert!(left_out.iter().any(|one| one.starts_with("1 shards without")), "{left_out:?}");
    }

    #[test]
    fn an_index_with_a_copy_on_every_node_is_left_out_and_told() {
        let mut seen = seen();
        let copies = seen.copies.clone();
        seen.copies.extend(
            copies.into_iter().map(|copy| InventoryCopy { index: ".everywhere".into(), ..copy }),
        );
        let everywhere = BTreeMap::from([(EXPANDS.to_owned(), "0-all".to_owned())]);
        seen.indices.insert(".everywhere".to_owned(), everywhere);
        for seen in [seen.clone(), twin::anonymous(&seen, 7)] {
            let Import { plan, left_out } = import(&seen, &Given::default()).unwrap();
            let says = "which has 2 copies of each shard";
            assert!(left_out.iter().any(|one| one.contains(says)), "{left_out:?}");
            assert!(!twin::text(&plan).contains("everywhere"));
        }
    }

    #[test]
    fn what_is_said_or_seen_is_not_assumed() {
        let given = Given { link: Some("25gbit".to_owned()), ..Given::default() };
        let (plan, _) = asked(&seen(), &given, "a");
        let assumed: Vec<String> =
            twin::assumptions(&plan).into_iter().map(|one| one.what).collect();
        assert_eq!(
            assumed,
            ["disk.read_bytes_per_s", "disk.write_bytes_per_s", "recovery.open_copy"],
            "the round trip was seen"
        );
        let uncertain = resolved(&plan).twin.unwrap().uncertain;
        assert_eq!(uncertain.len(), 3);
        let said =
            Given { disk_read: Some("1GB/s".into()), disk_write: Some("1GB/s".into()), ..given };
        let (plan, _) = asked(&seen(), &said, "a");
        assert_eq!(twin::assumptions(&plan).len(), 1, "what a copy takes is fitted");
        let mut ours = seen();
        ours.cluster.flavour = "narrows".to_owned();
        let (plan, _) = asked(&ours, &said, "a");
        assert_eq!(twin::assumptions(&plan), []);
    }

    #[test]
    fn names_are_hidden_and_sizes_are_not() {
        let hidden = twin::anonymous(&seen(), 7);
        let lost = twin::anonymous_name("node", "b", 7);
        let (plan, _) = asked(&hidden, &Given::default(), &lost);
        let text = twin::text(&plan);
        for name in ["My logs", "my-logs", "logs-of", "\"a\"", "\"r1\""] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert_eq!(resolved(&plan).twin.unwrap().question, Question::Lose(vec![1]));
    }

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
        seen.settings = None;
        let found = OF_THE_FIELD.map(|(name, _)| setting(&seen, name));
        assert_eq!(found, OF_THE_FIELD.map(|(_, value)| value.to_owned()));
        let (plan, _) = asked(&seen, &Given::default(), "a");
        assert_eq!(resolved(&plan).variants[0].settings[CHECK], "false");
        seen.cluster.flavour = "narrows".to_owned();
        assert!(OF_THE_FIELD.iter().all(|(name, _)| setting(&seen, name).is_empty()));
    }

    #[test]
    fn settings_of_indices_are_taken_as_the_field_writes_them() {
        let with = |name: &str, value: &str| {
            let mut seen = seen();
            let index = seen.copies[0].index.clone();
            let own = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            seen.indices.insert(index, own);
            let (plan, left_out) = asked(&seen, &Given::default(), "a");
            let delay = resolved(&plan).twin.unwrap().indices[0].settings[DELAY].clone();
            (delay, left_out.iter().any(|one| one.starts_with(name)))
        };
        assert_eq!(with(DELAY, "5m"), ("5m".to_owned(), false));
        assert_eq!(with(DELAY, "0"), ("0s".to_owned(), false));
        assert_eq!(with(DELAY, "soon"), ("1m".to_owned(), true));
        assert_eq!(with(PRIORITY, "high"), ("1m".to_owned(), true));
        assert_eq!(with(CHECK, "true"), ("1m".to_owned(), true));
    }

    #[test]
    fn slots_of_each_direction_become_those_of_both() {
        let with = |incoming: &str, outgoing: &str| {
            let mut seen = seen();
            set(&mut seen, INCOMING, incoming);
            set(&mut seen, OUTGOING, outgoing);
            let left_out = import(&seen, &Given::default()).unwrap().left_out;
            assert!(left_out.iter().any(|one| one.contains("stands for both")), "{left_out:?}");
            setting(&seen, SLOTS)
        };
        assert_eq!([with("10", "10"), with("1", "4")], ["10", "1"]);
        assert_eq!(with("10", ""), "2", "what the field has without");
    }

    #[test]
    fn machines_are_those_of_the_nodes_that_are_in_the_twin() {
        let mut seen = seen();
        for node in &mut seen.nodes {
            node.cores = Some(if node.name == "m" { 2 } else { 32 });
        }
        seen.round_trips_ms = vec![0.0, 0.0, 0.0, 1.3];
        let (plan, left_out) = asked(&seen, &Given::default(), "a");
        assert_eq!(plan["virtual"]["cores.count"]["value"].as_integer(), Some(32));
        assert!(!left_out.iter().any(|one| one.contains("cores differ")), "{left_out:?}");
        let assumed = twin::assumptions(&plan);
        assert!(assumed.iter().any(|one| one.what == "card.delay"), "{assumed:?}");
    }

    #[test]
    fn sizes_that_nobody_tells_are_told() {
        let mut seen = seen();
        seen.copies[0].bytes = None;
        let (_, left_out) = asked(&seen, &Given::default(), "a");
        let says = "the sizes of 1 shards";
        assert!(left_out.iter().any(|one| one.starts_with(says)), "{left_out:?}");
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
    }

    #[test]
    fn leases_that_lag_are_told() {
        let lagging = |lag: u64| {
            let mut seen = seen();
            seen.copies[1].lease_lag = Some(lag);
            asked(&seen, &Given::default(), "a")
                .1
                .iter()
                .any(|one| one.starts_with("1 copies whose"))
        };
        assert!(lagging(101) && !lagging(100), "a tenth of 1000 documents is replayed");
    }

    #[test]
    fn nodes_are_gone_through_as_the_allocator_does() {
        assert_eq!(java_hash("hello"), 99_162_322);
        // The upper half of a hash counts, too: it moves "AaBB" from bucket 0 to bucket 15.
        let ids = ["AaBB", "1", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let node = |id: &str| InventoryNode { id: id.to_owned(), ..InventoryNode::default() };
        let nodes = ids.map(node);
        let mut ordered: Vec<(String, &str)> = as_the_allocator_has_them(nodes.iter().collect())
            .into_iter()
            .enumerate()
            .map(|(at, node)| (Twin::machine(at), node.id.as_str()))
            .collect();
        assert_eq!(ordered[1].1, "d", "leader-10 and leader-11 come before leader-2");
        ordered.sort();
        let ids: Vec<&str> = ordered.into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, ["1", "b", "c", "d", "e", "f", "g", "h", "i", "j", "AaBB"]);
    }

    #[test]
    fn a_cluster_of_one_node_has_no_twin() {
        let mut one = seen();
        one.nodes.truncate(1);
        let said = import(&one, &Given::default()).unwrap_err().to_string();
        assert!(said.contains("two nodes"), "{said}");
    }
}
