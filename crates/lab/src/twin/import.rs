//! A plan from what a live cluster consists of.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryNode};
use record::observation::Identity;
use record::roles::{FROZEN, is_dedicated_to};
use record::units::show_size_setting;
use toml::{Table, Value};

use super::TwinPlan;
use super::cluster_settings::{cluster_settings, zone_attribute};
use super::given::{self, Given, Known, put};
use super::indices::indices;
use super::left_out::{counted, of_copies};
use super::node_order::{as_the_allocator_has_them, bucket};
use super::voters::voters;
use super::writes;
use crate::error::{Error, Result};
use crate::plan::TwinNode;

/// Names the node from which copies may have to wait, as it applies each state after all others.
const HEARS_LAST: &str = "narrows.recovery.hears_last._name";

/// A plan of a cluster, nothing asked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The plan.
    pub plan: TwinPlan,
    /// What of the cluster is not in it, a sentence each.
    pub left_out: Vec<String>,
    /// The nodes that elect the manager; empty where that is not known, or one manages it without being elected.
    pub voters: Vec<TwinNode>,
}

/// A plan of what a cluster consists of. Fails if there is nothing to make a twin of.
pub fn import(seen: &Inventory, given: &Given) -> Result<Import> {
    let mut left_out: Vec<String> = seen.gaps.iter().map(|gap| gap.lost.clone()).collect();
    let holders: BTreeSet<&str> = seen.copies.iter().filter_map(|c| c.node.as_deref()).collect();
    let mut nodes: Vec<_> = seen
        .nodes
        .iter()
        .filter(|node| node.holds_data.unwrap_or(true) || holders.contains(node.name.as_str()))
        .collect();
    let indices = indices(seen, &nodes, &mut left_out);
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
    // The id of a node of ours is its name, and stays where names are hashed.
    nodes = match is_field {
        true => as_the_allocator_has_them(nodes, |node, count| bucket(&node.id, count)),
        false => as_the_allocator_has_them(nodes, |node, _| node.id.as_str()),
    };
    of_copies(seen, &nodes, &holders, &mut left_out);
    let zone = zone_attribute(seen);
    let telling = telling_attributes(&nodes);
    let node = |node: &&InventoryNode| {
        let mut row = Table::new();
        row.insert("name".to_owned(), node.name.as_str().into());
        if let Some(zone) = zone.as_ref().and_then(|zone| node.attributes.get(zone)) {
            row.insert("zone".to_owned(), zone.as_str().into());
        }
        if !seen.names_are_hashed {
            also_called(&mut row, node, &telling);
        }
        // What fills it is a cache, for which no copy leaves it.
        let disk = node.disk_bytes.filter(|_| !is_dedicated_to(&[FROZEN], &node.roles));
        if let Some((total, free)) = disk {
            row.insert("disk".to_owned(), show_size_setting(total).into());
            row.insert("disk_free".to_owned(), show_size_setting(free.min(total)).into());
        }
        Value::Table(row)
    };
    let mut twin = Table::new();
    twin.insert("node".to_owned(), nodes.iter().map(node).collect::<Vec<_>>().into());
    twin.insert("index".to_owned(), indices.into());
    twin.insert("uncertain".to_owned(), Value::Array(Vec::new()));
    let mut plan = head(seen, nodes.len());
    plan.insert("settings".to_owned(), cluster_settings(seen, &nodes, &mut left_out).into());
    plan.insert("twin".to_owned(), twin.into());
    machines(&mut plan, &nodes, &seen.round_trips_ms, &mut left_out);
    if let Some(documents_per_s) = &seen.documents_per_s {
        writes::see(&mut plan, documents_per_s, &mut left_out);
    }
    given::say(&mut plan, given);
    given::assume(&mut plan, is_field);
    given::raise(&mut plan, &seen.seen_rates);
    if let Some(manager) = nodes.iter().find(|node| node.manages)
        && let Some(Value::Table(settings)) = plan.get_mut("settings")
        && lets_copies_wait(&seen.cluster)
    {
        settings.insert(HEARS_LAST.to_owned(), manager.name.as_str().into());
        given::assume_unlisted(&mut plan);
    }
    let voters = if is_field { voters(seen, zone.as_deref()) } else { Vec::new() };
    Ok(Import { plan, left_out, voters })
}

/// The attributes by which some of these nodes are told from others.
fn telling_attributes<'n>(nodes: &[&'n InventoryNode]) -> BTreeSet<&'n str> {
    let all = nodes.iter().flat_map(|node| node.attributes.keys());
    let mut names: BTreeSet<&str> = all.map(String::as_str).collect();
    names.retain(|name| {
        let first = nodes.first().and_then(|node| node.attributes.get(*name));
        nodes.iter().any(|node| node.attributes.get(*name) != first)
    });
    names
}

/// What a node may be called by besides its name.
fn also_called(row: &mut Table, node: &InventoryNode, telling: &BTreeSet<&str>) {
    if node.id != node.name {
        row.insert("id".to_owned(), node.id.as_str().into());
    }
    let own = node.attributes.iter().filter(|(name, _)| telling.contains(name.as_str()));
    let own: Table = own.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    if !own.is_empty() {
        row.insert("attributes".to_owned(), own.into());
    }
}

/// Whether a source lets a replica wait for a second that it has not heard of: in OpenSearch since 2, by
/// `RecoverySourceHandler.waitForAssignmentPropagate`. What others do about it was not measured.
fn lets_copies_wait(cluster: &Identity) -> bool {
    cluster.flavour == "opensearch" && !cluster.version.starts_with("1.")
}

fn head(seen: &Inventory, nodes: usize) -> TwinPlan {
    let cluster = &seen.cluster;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = cluster.name.chars().map(plain).collect();
    let mut about = format!("A twin of {}, {} {}", cluster.name, cluster.flavour, cluster.version);
    let written: f64 = seen.documents_per_s.iter().flat_map(BTreeMap::values).sum();
    if written >= 1.0 {
        about.push_str(&format!(", to which {written:.0} documents a second were written"));
    }
    about.push('.');
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
pub(super) mod tests {
    use record::inventory::{InventoryCopy, RateOf, SeenRate};
    use record::observation::{Scope, Setting};

    use super::*;
    use crate::experiments::STEPS;
    use crate::plan::{Plan, Question, Resolved, Twin};
    use crate::twin::{self, Asked};

    pub fn seen() -> Inventory {
        let node = |name: &str, zone: &str, data: bool| InventoryNode {
            id: name.to_owned(),
            name: name.to_owned(),
            holds_data: Some(data),
            manages: false,
            roles: Vec::new(),
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
            names_are_hashed: false,
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
            documents_per_s: None,
            seen_rates: Vec::new(),
            gaps: Vec::new(),
        }
    }

    pub fn resolved(plan: &TwinPlan) -> Resolved {
        let text = twin::text(plan);
        let check = |name: &str, value: &str| {
            engine::settings::check(name, value).map(drop).map_err(|e| e.to_string())
        };
        let plan =
            Plan::parse("twin.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        plan.resolve(1.0, STEPS, check).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    pub fn asked(seen: &Inventory, given: &Given, lost: &str) -> (TwinPlan, Vec<String>) {
        let Import { mut plan, left_out, .. } = import(seen, given).unwrap();
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
        let of_the_field =
            ["narrows.fault_detection.on_disconnect", "narrows.allocation.replica_ring"];
        assert!(of_the_field.iter().all(|name| settings[*name] == "true"));
        assert_eq!(twin.attributes()[2]["zone"], "r2", "the manager is the first");
        assert_eq!(index.lost, BTreeSet::from([2]));
        let says = "1 shard without a started primary, lost already: logs-of--today-[2]";
        assert!(left_out.iter().any(|one| one == says), "{left_out:?}");
    }

    #[test]
    fn what_is_said_or_seen_is_not_assumed() {
        let given = Given { link: Some("25gbit".to_owned()), ..Given::default() };
        let (mut plan, _) = asked(&seen(), &given, "a");
        let assumed = |plan: &TwinPlan| -> Vec<String> {
            twin::assumptions(plan).into_iter().map(|one| one.what).collect()
        };
        let lost = ["disk.read_bytes_per_s", "disk.write_bytes_per_s", "recovery.open_copy"];
        assert_eq!(assumed(&plan), lost, "the round trip was seen, and no node has just started");
        let uncertain = resolved(&plan).twin.unwrap().uncertain;
        assert_eq!(uncertain.len(), 4);
        twin::ask(&mut plan, &Asked::Restart { nodes: Vec::new(), down: None, flush: false });
        assert!(assumed(&plan).contains(&"recovery.first_copy".to_owned()));
        let said =
            Given { disk_read: Some("1GB/s".into()), disk_write: Some("1GB/s".into()), ..given };
        let (plan, _) = asked(&seen(), &said, "a");
        assert_eq!(assumed(&plan), ["recovery.open_copy"], "what copies take is assumed");
        let mut ours = seen();
        ours.cluster.flavour = "narrows".to_owned();
        let (plan, _) = asked(&ours, &said, "a");
        assert_eq!(twin::assumptions(&plan), []);
    }

    #[test]
    fn copies_from_a_manager_that_holds_data_may_have_to_wait() {
        let of = |(flavour, version): (&str, &str), manager: &str| {
            let mut seen = seen();
            (seen.cluster.flavour, seen.cluster.version) = (flavour.to_owned(), version.to_owned());
            seen.nodes.iter_mut().for_each(|node| node.manages = node.name == manager);
            let resolved = resolved(&asked(&seen, &Given::default(), "a").0);
            let mut uncertain = resolved.twin.as_ref().unwrap().uncertain.iter();
            let drawn = uncertain.find(|one| one.parameter == "recovery.unlisted_copy");
            let bounds = drawn.map(|one| (one.least, one.most));
            (resolved.variants[0].settings.get(HEARS_LAST).cloned(), bounds)
        };
        let found = of(("opensearch", "2.19.1"), "b");
        assert_eq!(found, (Some("b".to_owned()), Some((0.001, 1.0))));
        assert_eq!(of(("opensearch", "2.19.1"), "m"), (None, None), "m holds no data");
        for other in [("opensearch", "1.3.13"), ("elasticsearch", "8.9.0"), ("narrows", "2.19.1")] {
            assert_eq!(of(other, "b"), (None, None), "{other:?}");
        }
    }

    #[test]
    fn what_was_measured_there_is_not_assumed_and_gives_way_to_what_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("there.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            twin::calibration(&file).map_err(|error| error.to_string())
        };
        let rows = "[virtual]\n\
            \"recovery.open_copy\" = { value = \"410ms\", source = \"measured\" } # 400ms to 420ms\n\
            \"recovery.new_copy\" = { value = \"50ms\", source = \"measured\" }\n\
            \"recovery.first_copy\" = { value = \"1200ms\", source = \"measured\" }\n";
        let calibration = read(rows).unwrap();
        let given =
            Given { calibration, new_copy: Some("70ms".parse().unwrap()), ..Given::default() };
        let (plan, _) = asked(&seen(), &given, "a");
        let assumed = twin::assumptions(&plan);
        assert!(assumed.iter().all(|one| !one.what.starts_with("recovery.")), "{assumed:?}");
        let uncertain = resolved(&plan).twin.unwrap().uncertain;
        assert!(uncertain.iter().all(|one| !one.parameter.starts_with("recovery.")));
        let of = |name: &str| plan["virtual"][name]["value"].as_str().unwrap();
        assert_eq!((of("recovery.open_copy"), of("recovery.new_copy")), ("410ms", "70ms"));
        let (open_copy, first_copy) = ("300ms..700ms".parse().ok(), "1s..2s".parse().ok());
        let within = Given { open_copy, first_copy, ..given };
        let (plan, _) = asked(&seen(), &within, "a");
        assert_eq!(plan["virtual"]["recovery.open_copy"]["value"].as_str(), Some("500ms"));
        assert_eq!(plan["virtual"]["recovery.first_copy"]["value"].as_str(), Some("1500ms"));
        let uncertain = resolved(&plan).twin.unwrap().uncertain;
        let of = |name: &str| uncertain.iter().find(|one| one.parameter == name);
        let bounds = |name: &str| of(name).map(|one| (one.least, one.most));
        assert_eq!(bounds("recovery.open_copy"), Some((0.3, 0.7)), "each lap draws it");
        assert_eq!(bounds("recovery.first_copy"), Some((1.0, 2.0)));
        for (text, said) in [
            ("a = 1", "no [virtual]"),
            ("[virtual]\n\"disk.seek\" = 3", "no value"),
            ("[virtual]\n\"disk.sek\" = { value = \"1ms\", source = \"x\" }", "disk.seek"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(said) && refused.contains("narrows calibrate"), "{refused}");
        }
    }

    #[test]
    fn what_was_seen_raises_what_is_assumed_and_not_what_is_said() {
        let mut seen = seen();
        let rate = |of, mb: u64| SeenRate {
            of,
            bytes_per_s: mb * 1_000_000 + 7,
            seen_in: "a recovery".to_owned(),
        };
        seen.seen_rates = vec![rate(RateOf::Link, 5000), rate(RateOf::DiskWrite, 300)];
        let given = Given { link: Some("1gbit".to_owned()), ..Given::default() };
        let of = |given: &Given, parameter: &str| {
            let (plan, _) = asked(&seen, given, "a");
            // It is read again, as it is from a file.
            let uncertain = resolved(&plan).twin.unwrap().uncertain;
            let bounds = uncertain.iter().find(|one| one.parameter == parameter);
            let bounds = bounds.map(|one| (one.least, one.most));
            let assumed = twin::assumptions(&plan).into_iter().find(|one| one.what == parameter);
            (assumed.map(|one| (one.value, one.seen)), bounds)
        };
        let at_least = |mb: u64| Some(format!("at least {mb}MB/s, in a recovery"));
        let link = "card.bytes_per_s";
        let raised = Some(("5000MB/s".to_owned(), at_least(5000)));
        assert_eq!(of(&Given::default(), link), (raised, Some((5e9, 5e9))));
        assert_eq!(of(&given, link), (None, None), "what is said holds");
        let slower = Some(("400MB/s".to_owned(), at_least(300)));
        assert_eq!(of(&given, "disk.write_bytes_per_s"), (slower, Some((3e8, 1.5e9))));
        let unseen = Some(("500MB/s".to_owned(), None));
        assert_eq!(of(&given, "disk.read_bytes_per_s"), (unseen, Some((1.5e8, 2e9))));
        seen.seen_rates = vec![SeenRate { bytes_per_s: 1_640_000, ..rate(RateOf::DiskRead, 0) }];
        let (plan, _) = asked(&seen, &Given::default(), "a");
        assert!(twin::text(&plan).contains("at least 1.6MB/s, in a recovery"));
    }

    #[test]
    fn what_is_written_is_written_to_hashed_names_too() {
        let mut seen = seen();
        seen.documents_per_s = Some(BTreeMap::from([(seen.copies[0].index.clone(), 12.5)]));
        for seen in [seen.clone(), twin::anonymous(&seen, 7)] {
            let (plan, _) = asked(&seen, &Given::default(), &seen.nodes[0].name);
            assert_eq!(twin::documents_per_s(&plan), 12.5);
            assert_eq!(resolved(&plan).twin.unwrap().indices[0].documents_per_s, 12.5);
        }
        let given = Given { documents_per_s: Some(0.0), ..Given::default() };
        assert_eq!(twin::documents_per_s(&asked(&seen, &given, "a").0), 0.0);
    }

    #[test]
    fn nodes_are_meant_by_their_ids_and_by_any_attribute_that_tells_them_apart() {
        let mut seen = seen();
        seen.nodes[0].id = "K3x".to_owned();
        for (node, tier) in seen.nodes.iter_mut().zip(["hot", "warm"]) {
            let own = [("box.type", tier), ("shared", "true")];
            node.attributes.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        for (lost, name) in [("K3x", "a"), ("rack=r2", "b"), ("box.type=hot", "a"), ("r1", "a")] {
            let (plan, _) = asked(&seen, &Given::default(), lost);
            let text = twin::text(&plan);
            assert!(!text.contains("shared"), "{text}");
            let twin = resolved(&plan).twin.unwrap();
            let Question::Lose(found) = &twin.question else { panic!("{lost}") };
            let names: Vec<&str> = found.iter().map(|at| &twin.nodes[*at].name[..]).collect();
            assert_eq!(names, [name], "{lost}");
        }
        let (plan, _) = asked(&seen, &Given::default(), "rack=r9");
        let plan = Plan::parse("twin.toml", &twin::text(&plan)).unwrap();
        let check = |name: &str, value: &str| {
            engine::settings::check(name, value).map(drop).map_err(|e| e.to_string())
        };
        let refused = plan.resolve(1.0, STEPS, check).err().unwrap().to_string();
        assert!(refused.contains("is called \"rack=r9\""), "{refused}");
        for known in ["a, ", "r2, ", "box.type=warm", "rack=r1"] {
            assert!(refused.contains(known), "{known}: {refused}");
        }
    }

    #[test]
    fn names_are_hidden_and_sizes_are_not() {
        let mut seen = seen();
        seen.nodes[0].id = "K3x".to_owned();
        let hidden = twin::anonymous(&seen, 7);
        let lost = twin::anonymous_name("node", "b", 7);
        let (plan, _) = asked(&hidden, &Given::default(), &lost);
        let text = twin::text(&plan);
        for name in ["My logs", "my-logs", "logs-of", "\"a\"", "\"r1\"", "K3x", "rack"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert_eq!(resolved(&plan).twin.unwrap().question, Question::Lose(vec![1]));
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
        assert!(assumed.iter().all(|one| one.what != "cores.count"), "{assumed:?}");
    }

    #[test]
    fn what_nodes_do_not_tell_of_themselves_is_assumed_and_told() {
        let mut seen = seen();
        for node in &mut seen.nodes {
            (node.cores, node.holds_data) = (None, None);
        }
        let (plan, left_out) = asked(&seen, &Given::default(), "a");
        let assumed = twin::assumptions(&plan);
        let cores = assumed.iter().find(|one| one.what == "cores.count").unwrap();
        assert_eq!((&cores.value[..], &cores.between), ("4", &None));
        assert_eq!(resolved(&plan).twin.unwrap().nodes.len(), 3, "m may hold copies");
        assert!(left_out.iter().any(|one| one.starts_with("the roles of 1 nodes")), "{left_out:?}");
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
    fn nodes_of_ours_are_gone_through_by_their_names() {
        let mut ours = seen();
        ours.cluster.flavour = "narrows".to_owned();
        let like = ours.nodes[0].clone();
        ours.nodes = (0..12)
            .map(|number| {
                let name = format!("narrows-{number}");
                InventoryNode { id: name.clone(), name, ..like.clone() }
            })
            .collect();
        for copy in &mut ours.copies {
            let hosts = |node: String| if node == "a" { "narrows-10" } else { "narrows-2" };
            copy.node = copy.node.take().map(|node| hosts(node).to_owned());
        }
        let plan = import(&ours, &Given::default()).unwrap().plan;
        let rows = plan["twin"]["node"].as_array().unwrap().iter().enumerate();
        let mut names: Vec<(String, String)> = rows
            .map(|(at, row)| (Twin::machine(at), row["name"].as_str().unwrap().to_owned()))
            .collect();
        names.sort();
        assert!(names.is_sorted_by_key(|(_, name)| name), "{names:?}");
    }

    #[test]
    fn copies_that_are_under_way_are_said_to_begin_anew() {
        let told = |seen: &Inventory| {
            let left_out = import(seen, &Given::default()).unwrap().left_out;
            left_out.into_iter().find(|one| one.contains("begin anew")).unwrap_or_default()
        };
        let mut seen = seen();
        assert_eq!(told(&seen), "", "what moves, and what has no place, is not being made");
        (seen.copies[3].state, seen.copies[3].node) = ("INITIALIZING".into(), Some("a".into()));
        assert!(told(&seen).starts_with("what there is of 1 copy that is under way"));
    }

    #[test]
    fn a_cluster_of_one_node_has_no_twin() {
        let mut one = seen();
        one.nodes.truncate(1);
        let said = import(&one, &Given::default()).unwrap_err().to_string();
        assert!(said.contains("two nodes"), "{said}");
    }
}
