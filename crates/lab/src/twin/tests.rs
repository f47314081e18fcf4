//! From what a cluster consists of to a plan that is read again.

use std::collections::{BTreeMap, BTreeSet};

use record::inventory::{Inventory, InventoryCopy, InventoryNode, RateOf, SeenRate};
use record::observation::{Identity, Scope, Setting};

use super::import::HEARS_LAST;
use super::{Asked, Given, Import, TwinPlan, import};
use crate::experiments::STEPS;
use crate::plan::{Plan, Question, Resolved, Twin};
use crate::twin;

pub fn seen() -> Inventory {
    let node = |name: &str, zone: &str, data: bool| InventoryNode {
        id: name.to_owned(),
        name: name.to_owned(),
        holds_data: Some(data),
        manages: false,
        roles: Vec::new(),
        addresses: Vec::new(),
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
            ("indices.recovery.max_bytes_per_sec".to_owned(), setting("80mb", Scope::Persistent)),
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
        encrypts: Some(false),
        indices: BTreeMap::new(),
        round_trips_ms: vec![0.0, 2.0, 4.0],
        documents_per_s: None,
        seen_rates: Vec::new(),
        gaps: Vec::new(),
    }
}

fn check(name: &str, value: &str) -> Result<(), String> {
    engine::settings::check(name, value).map(drop).map_err(|error| error.to_string())
}

pub fn resolved(plan: &TwinPlan) -> Resolved {
    let text = twin::text(plan);
    let plan = Plan::parse("twin.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
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
    assert_eq!((&index.shards[0].nodes[..], &index.shards[1].nodes[..]), (&[0, 1][..], &[1][..]));
    assert_eq!(index.settings["index.unassigned.node_left.delayed_timeout"], "1m");
    assert_eq!(resolved.variants[0].settings["indices.recovery.max_bytes_per_sec"], "80mb");
    let names: Vec<&str> = resolved.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names[1], "indices.recovery.max_bytes_per_sec = 320mb");
    assert_eq!(*names.last().unwrap(), "all of these");
    let settings = &resolved.variants[0].settings;
    assert_eq!(settings["cluster.routing.allocation.awareness.attributes"], "zone");
    assert_eq!(settings["cluster.routing.allocation.awareness.force.zone.values"], "r1,r2");
    assert_eq!(settings["cluster.routing.rebalance.enable"], "none");
    let of_the_field = ["narrows.fault_detection.on_disconnect", "narrows.allocation.replica_ring"];
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
    assert_eq!(uncertain.len(), 5);
    twin::ask(&mut plan, &Asked::Restart { nodes: Vec::new(), down: None, flush: false });
    assert!(assumed(&plan).contains(&"recovery.first_copy".to_owned()));
    let said = Given { disk_read: Some("1GB/s".into()), disk_write: Some("1GB/s".into()), ..given };
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
        let uncertain = &resolved.twin.as_ref().unwrap().uncertain;
        let drawn = |name: &str| uncertain.iter().find(|one| one.parameter == name);
        let bounds = |name: &str| drawn(name).map(|one| (one.least, one.most));
        let races = ["recovery.unlisted_copy", "recovery.unmarked_share"].map(bounds);
        (resolved.variants[0].settings.get(HEARS_LAST).cloned(), races)
    };
    let (wait, share) = (Some((0.001, 1.0)), Some((0.08, 0.47)));
    let found = of(("opensearch", "2.19.1"), "b");
    assert_eq!(found, (Some("b".to_owned()), [wait, share]));
    let found = of(("opensearch", "2.19.1"), "m");
    assert_eq!(found, (None, [None, share]), "m holds no data, and primaries move as before");
    for other in [("opensearch", "1.3.13"), ("elasticsearch", "8.9.0"), ("narrows", "2.19.1")] {
        assert_eq!(of(other, "b"), (None, [None, None]), "{other:?}");
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
        \"recovery.each_file\" = { value = \"4ms\", source = \"measured\" }\n\
        \"recovery.first_copy\" = { value = \"1200ms\", source = \"measured\" }\n";
    let calibration = read(rows).unwrap();
    let given = Given { calibration, new_copy: Some("70ms".parse().unwrap()), ..Given::default() };
    let (plan, _) = asked(&seen(), &given, "a");
    let assumed = twin::assumptions(&plan);
    assert!(assumed.iter().all(|one| !one.what.starts_with("recovery.")), "{assumed:?}");
    let uncertain = resolved(&plan).twin.unwrap().uncertain;
    let of_copies = uncertain.iter().filter(|one| one.parameter.starts_with("recovery."));
    let names: Vec<&str> = of_copies.map(|one| one.parameter.as_str()).collect();
    assert_eq!(names, ["recovery.unmarked_share"], "it is a race all the same");
    let of = |name: &str| plan["virtual"][name]["value"].as_str().unwrap();
    assert_eq!((of("recovery.open_copy"), of("recovery.new_copy")), ("410ms", "70ms"));
    let open_copy = "300ms..700ms".parse().ok();
    let (plan, _) = asked(&seen(), &Given { open_copy, ..Given::default() }, "a");
    let file = twin::assumptions(&plan).into_iter().find(|one| one.option == "--each-file");
    assert_eq!(
        file.map(|one| (one.what, one.value)),
        Some(("recovery.each_file".to_owned(), "5ms".to_owned()))
    );
    let (mut saved, _) = asked(&seen(), &Given::default(), "a");
    assert!(saved["virtual"].get("recovery.each_file").is_none());
    twin::say(&mut saved, &Given { open_copy, ..Given::default() });
    assert_eq!(saved["virtual"], plan["virtual"], "a saved twin is asked as the cluster is");
    let first_copy = "1s..2s".parse().ok();
    let within = Given { open_copy, first_copy, ..given };
    let (plan, _) = asked(&seen(), &within, "a");
    assert_eq!(plan["virtual"]["recovery.open_copy"]["value"].as_str(), Some("500ms"));
    assert_eq!(plan["virtual"]["recovery.first_copy"]["value"].as_str(), Some("1.5s"));
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
fn tls_between_nodes_costs_where_they_have_it() {
    let of = |encrypts: Option<bool>, calibration: &str| {
        let seen = Inventory { encrypts, ..seen() };
        let calibration: toml::Table = calibration.parse().unwrap();
        let (plan, _) = asked(&seen, &Given { calibration, ..Given::default() }, "a");
        let drawn = resolved(&plan).twin.unwrap().uncertain;
        let is_drawn = drawn.iter().any(|one| one.parameter == "cores.encrypt_bytes_per_s");
        let is_assumed =
            twin::assumptions(&plan).iter().any(|one| one.what == "cores.encrypt_bytes_per_s");
        let row = plan["virtual"].get("cores.encrypt_bytes_per_s");
        let value = row.map(|row| row["value"].as_str().unwrap().to_owned());
        (value.unwrap_or_default(), is_assumed, is_drawn)
    };
    let measured = "\"cores.receive_bytes_per_s\" = { value = \"2GB/s\", source = \"measured\" }\n";
    let both = format!(
        "{measured}\"cores.encrypt_bytes_per_s\" = {{ value = \"7GB/s\", source = \"measured\" }}"
    );
    let is = |value: &str, is_assumed, is_drawn| (value.to_owned(), is_assumed, is_drawn);
    let (assumed, is_assumed, is_drawn) = of(Some(true), "");
    assert!(is_assumed && is_drawn && assumed.ends_with("B/s"), "{assumed}");
    assert_eq!(of(Some(true), &both), is("7GB/s", false, false));
    let with_tls = of(Some(true), measured);
    assert_eq!(with_tls, is("unlimited", false, false), "it is in what was measured");
    assert_eq!(of(Some(false), &both), is("", false, false));
    for calibration in ["", both.as_str()] {
        assert_eq!(of(None, calibration), is("unlimited", true, false), "nothing tells it");
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
    assert_eq!((&cores.value[..], &cores.between, cores.option), ("4", &None, "--assume"));
    assert_eq!(resolved(&plan).twin.unwrap().nodes.len(), 3, "m may hold copies");
    assert!(left_out.iter().any(|one| one.starts_with("the roles of 1 node,")), "{left_out:?}");
}

#[test]
fn what_has_no_option_of_its_own_is_said_by_its_name() {
    let mut seen = seen();
    seen.nodes.iter_mut().for_each(|node| node.manages = node.name == "b");
    let parameters = [("cores.count", "16"), ("recovery.unlisted_copy", "2ms")];
    let said = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let given = Given { parameters: parameters.map(said).to_vec(), ..Given::default() };
    let (plan, _) = asked(&seen, &given, "a");
    let assumed = twin::assumptions(&plan);
    let uncertain = resolved(&plan).twin.unwrap().uncertain;
    for (name, value) in parameters {
        assert_eq!(twin::check_parameter(name, value), Ok(()));
        assert_eq!(plan["virtual"][name]["value"].as_str(), Some(value));
        assert!(assumed.iter().all(|one| one.what != name), "{assumed:?}");
        assert!(uncertain.iter().all(|one| one.parameter != name), "no lap draws {name}");
    }
    let refused = |name: &str, value: &str| twin::check_parameter(name, value).unwrap_err();
    assert!(refused("cores.cout", "16").contains("cores.count"));
    assert!(refused("cores.count", "0").contains("1 to 4096"));
    assert!(refused("card.bytes_per_s", "1gbit").contains("--link"));
    assert!(refused("recovery.new_copy", "50ms").contains("--new-copy"));
}

#[test]
fn leases_that_lag_are_told() {
    let lagging = |lag: u64| {
        let mut seen = seen();
        seen.copies[1].lease_lag = Some(lag);
        asked(&seen, &Given::default(), "a").1.iter().any(|one| one.starts_with("1 copy whose"))
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
fn copies_that_move_and_copies_that_wait_are_told() {
    let told = |seen: &Inventory, start: &str| {
        let left_out = import(seen, &Given::default()).unwrap().left_out;
        left_out.iter().filter(|one| one.starts_with(start)).count()
    };
    let (moves, waits) = ("what has come of 1 copy that is being moved", "why 1 copy has no node");
    let mut seen = seen();
    // Those of shard 2 have no primary to come from.
    assert_eq!((told(&seen, moves), told(&seen, waits)), (1, 1));
    seen.copies[2].state = "STARTED".to_owned();
    (seen.copies[3].state, seen.copies[3].node) = ("STARTED".to_owned(), Some("a".to_owned()));
    assert_eq!((told(&seen, "what has come of"), told(&seen, "why ")), (0, 0));
}

#[test]
fn a_cluster_of_one_node_has_a_twin_and_one_of_none_has_not() {
    let mut one = seen();
    one.nodes.truncate(1);
    let plan = import(&one, &Given::default()).unwrap().plan;
    assert_eq!(twin::node_names(&plan), ["a"]);
    one.nodes.clear();
    let said = import(&one, &Given::default()).unwrap_err().to_string();
    assert!(said.contains("one of each"), "{said}");
}
