//! Copies that wait for a place.

use insight::diagnosis::{By, Class, Finding};
use record::observation::{Gap, Observation, Scope, WaitingCopy};

use super::{LIMIT, judge, looks_at, looks_at_rest, only};
use crate::common::{settings, settings_of, waiting};

/// A copy that a decider refuses on node a, and on node b, with these words.
fn refused(decider: &str, words: &[&str]) -> WaitingCopy {
    let nodes = [("a", decider, "NO"), ("b", decider, "NO")];
    let mut copy = waiting("no", &nodes[..words.len()]);
    for (decision, words) in copy.decisions.iter_mut().zip(words) {
        decision.explanation = (*words).to_owned();
    }
    copy
}

/// Looks at copies that wait, while nothing recovers.
fn while_waiting(copies: &[WaitingCopy]) -> Vec<(f64, Observation)> {
    looks_at_rest(|look, _| look.waiting = copies.into())
}

#[test]
fn slots_are_a_finding_of_their_own_only_where_there_is_room() {
    let queue =
        || waiting("throttled", &[("a", "same_shard", "NO"), ("b", "throttling", "THROTTLE")]);
    let finding = only(&while_waiting(&[queue()]));
    assert_eq!((finding.class, finding.place.as_str()), (Class::AllocationSlots, "b"));
    assert!(finding.strength > 0.8 && finding.gain.is_some());
    let counts =
        |finding: &Finding| finding.evidence.iter().any(|one| one.field.starts_with("active"));
    let mut untold = while_waiting(&[queue()]);
    let gap = Gap { path: "/_recovery".into(), ..Gap::default() };
    untold.iter_mut().for_each(|(_, look)| look.gaps = vec![gap.clone()]);
    assert!(counts(&finding) && !counts(&only(&untold)), "what is not told is not none");
    let throttled = looks_at(LIMIT, |look, s| {
        look.recoveries[0].target_throttle_ms = Some(s * 900);
        look.waiting = [queue()].into();
    });
    let diagnosis = judge(&throttled);
    let classes: Vec<Class> = diagnosis.findings.iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [Class::RateLimit, Class::AllocationSlots]);
    let slots = &diagnosis.findings[1];
    assert!(
        slots.strength < 0.5 && slots.gain.is_none() && slots.sentence.contains("lift that first")
    );
}

/// As the sources of OpenSearch write it, which counts the first replicas of a new index apart, and those of both.
#[test]
fn the_slots_that_the_decider_names_are_advised() {
    const ALLOCATION: &str = "cluster.routing.allocation";
    let lift = |setting: &str| {
        let mut copy = waiting("throttled", &[("b", "throttling", "THROTTLE")]);
        copy.decisions[0].explanation = format!(
            "reached the limit of incoming shard recoveries [4], cluster setting [{ALLOCATION}.{setting}"
        );
        let lift = only(&while_waiting(&[copy])).lift.unwrap();
        (lift.setting.unwrap().replace(&format!("{ALLOCATION}."), ""), lift.to.unwrap())
    };
    let advised = |name: &str, to: &str| (name.to_owned(), to.to_owned());
    for name in ["node_initial_primaries_recoveries", "node_initial_replicas_recoveries"] {
        assert_eq!(lift(&format!("{name}=4]")), advised(name, "8"));
    }
    let incoming = "node_concurrent_incoming_recoveries=2] (can also be set via \
                    [cluster.routing.allocation.node_concurrent_recoveries])";
    assert_eq!(lift(incoming), advised("node_concurrent_recoveries", "4"));
}

/// What no node may hold waits for no slot, and copies of one shard are named once.
#[test]
fn slots_count_those_alone_that_may_wait_for_one() {
    let slot = || waiting("throttled", &[("b", "throttling", "THROTTLE")]);
    let blocked = || waiting("no", &[("a", "same_shard", "NO"), ("b", "same_shard", "NO")]);
    let not_asked = || WaitingCopy { can_allocate: None, shard: 1, ..slot() };
    let said = |copies: &[WaitingCopy]| {
        let found = judge(&while_waiting(copies)).findings;
        found.into_iter().map(|finding| finding.sentence).collect::<Vec<_>>()
    };
    let both = said(&[blocked(), blocked(), slot()]);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].contains("hold the 2 replicas of w[0] (of 3 that wait): decider"), "{both:?}");
    assert!(both[1].starts_with("1 copy waits for a recovery slot"), "{both:?}");
    let not_asked_of = said(&[blocked(), slot(), not_asked()]);
    assert!(
        not_asked_of[1].starts_with("up to 2 copies wait for a recovery slot"),
        "{not_asked_of:?}"
    );
    let of_slots = said(&[slot(), not_asked()]);
    assert!(of_slots[0].starts_with("2 copies wait for a recovery slot"), "{of_slots:?}");
    // The trap: one of them came up since the list was asked for, and the health says so.
    let mut fewer = while_waiting(&[slot(), not_asked()]);
    fewer.iter_mut().for_each(|(_, look)| look.health.as_mut().unwrap().unassigned = Some(1));
    let said = only(&fewer).sentence;
    assert!(said.starts_with("1 copy waits for a recovery slot"), "{said}");
}

/// The trap: what holds recoveries of other nodes leaves room at those that throttle.
#[test]
fn slots_are_held_by_what_holds_at_the_nodes_that_throttle() {
    let throttled_by = |node: &str| {
        let found = judge(&looks_at(LIMIT, |look, s| {
            look.recoveries[0].target_throttle_ms = Some(s * 900);
            look.waiting = [waiting("throttled", &[(node, "throttling", "THROTTLE")])].into();
        }));
        let slots = found.findings.into_iter().find(|one| one.class == Class::AllocationSlots);
        let slots = slots.unwrap();
        (slots.sentence, slots.gain.map(|gain| gain.factor))
    };
    for end in ["a", "b"] {
        let (sentence, gain) = throttled_by(end);
        assert!(sentence.contains("what rate limit lets through"), "{sentence}");
        assert_eq!(gain, None);
    }
    let (sentence, gain) = throttled_by("c");
    assert!(sentence.ends_with("the recoveries that have one leave room"), "{sentence}");
    assert_eq!(gain, Some(1.5), "nor does the limiter of another node bound it: one copy waits");
}

/// The trap: of many small copies each comes in a moment, and waits for the manager to start it.
#[test]
fn slots_are_doubted_while_the_queue_of_the_manager_is_long() {
    let doubt = |tasks: u64| {
        let copy = waiting("throttled", &[("b", "throttling", "THROTTLE")]);
        let mut looks = while_waiting(&[copy]);
        for (_, look) in &mut looks {
            look.health.as_mut().unwrap().pending_tasks = Some(tasks);
        }
        only(&looks).doubt
    };
    assert!(doubt(500).is_some_and(|doubt| doubt.contains("more slots may bring nothing")));
    assert_eq!(doubt(2), None);
}

/// The trap: where the node of the primaries sends as many copies as it may, every other node answers that it would
/// take one, and those have room. As the sources of Elasticsearch and OpenSearch write it, which name it by its id.
#[test]
fn slots_that_the_node_of_the_primaries_lacks_are_its_own() {
    let found = |id: &str| {
        let mut copy = waiting(
            "throttled",
            &[("b", "throttling", "THROTTLE"), ("c", "throttling", "THROTTLE")],
        );
        for decision in &mut copy.decisions {
            decision.explanation = format!(
                "reached the limit of outgoing shard recoveries [2] on the node [{id}] which holds the primary, \
                 cluster setting [cluster.routing.allocation.node_concurrent_outgoing_recoveries=2]"
            );
        }
        only(&while_waiting(&[copy]))
    };
    let slots = found("id-a");
    assert_eq!((slots.class, slots.place.as_str()), (Class::AllocationSlots, "a"));
    let said = "1 copy waits for a recovery slot of a, which holds the primaries, and";
    assert!(slots.sentence.starts_with(said), "{}", slots.sentence);
    assert_eq!(slots.ruled_out[0].why, "b or c takes it once a slot is free");
    assert_eq!(found("of another one").place, "b", "nobody knows its name");
}

/// The trap: the decider names the setting of one side also where nobody set it, and then it takes the value of the
/// one for both sides.
#[test]
fn slots_of_one_side_are_raised_only_where_somebody_set_them() {
    const BOTH: &str = "cluster.routing.allocation.node_concurrent_recoveries";
    const INCOMING: &str = "cluster.routing.allocation.node_concurrent_incoming_recoveries";
    let raised = |scope: Scope| {
        let mut copy = waiting("throttled", &[("b", "throttling", "THROTTLE")]);
        copy.decisions[0].explanation = format!(
            "reached the limit of incoming shard recoveries [1], cluster setting [{INCOMING}=1] (can also be set via \
             [{BOTH}])"
        );
        let looks = looks_at_rest(|look, _| {
            look.settings = settings_of(scope, &[(INCOMING, "1")]);
            look.waiting = [copy.clone()].into();
        });
        let lift = only(&looks).lift.unwrap();
        (lift.setting.unwrap(), lift.now.unwrap(), lift.to.unwrap())
    };
    let change = |name: &str, now: &str, to: &str| (name.to_owned(), now.to_owned(), to.to_owned());
    assert_eq!(raised(Scope::Persistent), change(INCOMING, "1", "2"));
    assert_eq!(raised(Scope::Default), change(BOTH, "2", "4"));
    // None at all: nothing recovers that could go times as fast.
    let finding = only(&looks_at_rest(|look, _| {
        look.waiting = [waiting("throttled", &[("b", "throttling", "THROTTLE")])].into();
        look.settings = settings(&[(BOTH, "0")]);
    }));
    assert_eq!((finding.lift.unwrap().to.as_deref(), finding.gain), (Some("1"), None));
}

#[test]
fn a_block_names_its_decider_and_what_to_do() {
    for (decisions, decider, words) in [
        (
            &[("a", "same_shard", "NO"), ("b", "disk_threshold", "NO")][..],
            "disk_threshold",
            "watermark",
        ),
        (&[("a", "filter", "NO"), ("b", "filter", "NO")], "filter", "filters"),
        (&[("a", "max_retry", "NO"), ("b", "max_retry", "NO")], "max_retry", "retry_failed"),
        (&[("a", "same_shard", "NO"), ("b", "same_shard", "NO")], "same_shard", "add a node"),
        (&[("a", "of_tomorrow", "NO")], "of_tomorrow", "read what the cluster says"),
        // Every decider answers for every node: room on the disk of b alone would not place the copy, nor would it help
        // that a, which holds one, is refused by nothing else.
        (
            &[("a", "enable", "NO"), ("b", "enable", "NO"), ("b", "disk_threshold", "NO")],
            "enable",
            "turn it on",
        ),
        (
            &[("a", "same_shard", "NO"), ("b", "awareness", "NO"), ("b", "disk_threshold", "NO")],
            "disk_threshold",
            "watermark",
        ),
        (
            &[
                ("a", "disk_threshold", "NO"),
                ("a", "filter", "NO"),
                ("b", "awareness", "NO"),
                ("b", "filter", "NO"),
            ],
            "filter",
            "filters",
        ),
        (
            &[
                ("a", "filter", "NO"),
                ("a", "enable", "NO"),
                ("b", "filter", "NO"),
                ("b", "enable", "NO"),
                ("b", "disk_threshold", "NO"),
            ],
            "enable",
            "turn it on",
        ),
    ] {
        let finding = only(&while_waiting(&[waiting("no", decisions)]));
        assert_eq!((finding.class, finding.place.as_str()), (Class::AllocationBlock, decider));
        assert!(finding.lift.unwrap().action.contains(words));
    }
}

/// The trap: a node from which a filter keeps all copies of a shard takes one of them. The others have no place,
/// whatever becomes of the filter.
#[test]
fn copies_that_a_lifted_filter_would_not_place_say_so() {
    let found = |copies: usize, decisions: &[(&str, &str, &str)]| {
        judge(&while_waiting(&vec![waiting("no", decisions); copies])).findings
    };
    let excluded = [("a", "same_shard", "NO"), ("b", "same_shard", "NO"), ("c", "filter", "NO")];
    let both = found(3, &excluded);
    let [first, others] = &both[..] else { panic!("{both:#?}") };
    let says = "the replica of w[0] (of 3 that wait): decider filter";
    assert!(first.sentence.contains(says), "{}", first.sentence);
    let says = "the 2 replicas of w[0] (of 3 that wait): decider same_shard";
    assert!(others.sentence.contains(says), "{}", others.sentence);
    let action = |finding: &Finding| finding.lift.as_ref().unwrap().action.clone();
    let says = "to lift what else refuses them (filter) places other copies of the shard, and none of these";
    assert!(action(others).ends_with(says), "{}", action(others));
    assert!(!action(first).contains("to lift"), "{}", action(first));
    // Each of two free nodes takes one, by what refuses it there.
    let each =
        found(2, &[("a", "same_shard", "NO"), ("b", "filter", "NO"), ("c", "awareness", "NO")]);
    let places: Vec<&str> = each.iter().map(|one| &*one.place).collect();
    assert_eq!(places, ["awareness", "filter"]);
    // Where every node holds a copy, what else refuses it there does not matter, unless its node may come back.
    let held = [("a", "enable", "NO"), ("a", "same_shard", "NO")];
    assert_eq!(found(1, &held)[0].place, "same_shard");
    assert!(!action(&found(1, &held)[0]).contains("to lift"));
    let left = WaitingCopy { reason: Some("NODE_LEFT".into()), ..waiting("no", &held) };
    assert_eq!(only(&while_waiting(&[left])).place, "enable");
}

/// The trap: of a large disk Elasticsearch since 8.5 obeys a headroom in bytes. A watermark that somebody raises is no
/// longer bounded by it, and keeps more free than before.
#[test]
fn a_full_disk_is_advised_the_setting_that_its_decider_names() {
    const MARK: &str = "cluster.routing.allocation.disk.watermark";
    let (low, headroom) = (format!("{MARK}.low"), format!("{MARK}.low.max_headroom"));
    for (words, name, value) in [
        (format!("the node is above the low watermark cluster setting [{low}=85%]"), low, "85%"),
        (
            format!(
                "the node is above the low watermark cluster setting [{headroom}=200GB], having less than the minimum \
                 required [200gb] free space, actual free: [146gb], actual used: [98.5%]"
            ),
            headroom,
            "200GB",
        ),
        (
            format!(
                "allocating the shard to this node will bring the node above the high watermark cluster setting \
                 [{MARK}.high=90%] and cause it to have less than the minimum required [1gb] of free space"
            ),
            format!("{MARK}.high"),
            "90%",
        ),
    ] {
        let copy = refused("disk_threshold", &[&words]);
        let lift = only(&while_waiting(&[copy])).lift.unwrap();
        assert_eq!((lift.setting, lift.now.as_deref()), (Some(name), Some(value)));
        assert!(lift.action.contains("keep less free"), "{}", lift.action);
    }
}

/// The trap: a decider obeys the cluster's setting and the index's, and only the one that it names lifts the block.
#[test]
fn a_block_by_a_setting_of_the_index_names_none_of_the_cluster() {
    let lift = |by: &str| {
        let words = format!("no allocations are allowed due to {by}");
        only(&while_waiting(&[refused("enable", &[&words])])).lift.unwrap()
    };
    let of_index = lift("index setting [index.routing.allocation.enable=none]");
    assert!(of_index.setting.is_none() && of_index.action.contains("of the index"), "{of_index:?}");
    let of_cluster = lift("cluster setting [cluster.routing.allocation.enable=none]");
    let to = (of_cluster.setting.as_deref(), of_cluster.to.as_deref());
    assert_eq!(to, (Some("cluster.routing.allocation.enable"), Some("all")));
    assert_eq!(of_cluster.default.as_deref(), Some("all"));
}

/// The trap: in the middle of a restart, node by node, allocation is turned off on purpose.
#[test]
fn allocation_is_turned_on_once_a_node_that_is_restarted_is_back() {
    let action = |reason: &str| {
        let mut copy = waiting("no", &[("a", "enable", "NO")]);
        copy.reason = Some(reason.to_owned());
        only(&while_waiting(&[copy])).lift.unwrap().action
    };
    assert!(action("NODE_LEFT").contains("is being restarted, once it is back"));
    assert!(!action("REPLICA_ADDED").contains("restarted"));
}

/// The trap: what is said of the first copy is not true of all that the same decider refuses.
#[test]
fn a_block_shows_every_reason_that_its_decider_gives() {
    let blocked = |index: &str, words: &str| WaitingCopy {
        index: index.to_owned(),
        ..refused("enable", &[words, words])
    };
    let by_index =
        "no allocations are allowed due to index setting [index.routing.allocation.enable=none]";
    let by_cluster = "replica allocations are forbidden due to cluster setting \
                      [cluster.routing.allocation.enable=primaries]";
    let found = |copies: &[WaitingCopy]| only(&while_waiting(copies));
    let two = found(&[blocked("v", by_index), blocked("v", by_index), blocked("w", by_cluster)]);
    assert_eq!(two.subjects, ["replica of v[0]", "replica of w[0]"], "each once");
    let fields = two.evidence.iter().skip(1).map(|line| line.field.to_string());
    let of = |index: &str| format!("node_allocation_decisions of {index}[0], a, b");
    assert_eq!(fields.collect::<Vec<_>>(), [of("v"), of("w")]);
    let lift = two.lift.unwrap();
    assert!(lift.action.contains("(of 2 of them by a setting of the index"), "{lift:?}");
    assert_eq!(lift.setting.as_deref(), Some("cluster.routing.allocation.enable"));
    let limited = found(&[blocked("w", by_cluster)]).lift.unwrap().action;
    assert!(limited.starts_with("allocation is limited to primaries"), "{limited}");
    // What differs in figures alone is one reason.
    let full = |index: &str, free: &str| {
        let setting = "cluster.routing.allocation.disk.watermark.low=85%";
        blocked(index, &format!("above the low watermark [{setting}], actual free: [{free}]"))
    };
    assert_eq!(found(&[full("v", "8.1%"), full("w", "7.9%")]).evidence.len(), 2);
}

/// The trap: a decider that obeys several settings names the one which refuses, and others change nothing.
#[test]
fn a_block_names_the_setting_that_its_words_name() {
    const DISK: &str = "cluster.routing.allocation.disk.watermark";
    let lift = |decider: &str, words: &[&str]| {
        only(&while_waiting(&[refused(decider, words)])).lift.unwrap()
    };
    // The words of OpenSearch 2.19.1.
    let high = "the node is above the high watermark cluster setting \
                [cluster.routing.allocation.disk.watermark.high=300gb], having less than the minimum required";
    let low = "the node is above the low watermark cluster setting \
               [cluster.routing.allocation.disk.watermark.low=400gb], having less than the minimum required";
    let setting = |words: &[&str]| lift("disk_threshold", words).setting.unwrap();
    assert_eq!(setting(&[high, high]), format!("{DISK}.high"));
    assert_eq!(setting(&[high, low]), format!("{DISK}.low"), "the lower bar lets a copy onto b");
    assert_eq!(setting(&["no room", "no room"]), format!("{DISK}.low"));
    let without = "node does not contain the awareness attribute [rack]; required attributes cluster setting \
                   [cluster.routing.allocation.awareness.attributes=rack]";
    let full = "there are too many copies of the shard allocated to nodes with attribute [zone]";
    let action = |words: &[&str]| lift("awareness", words).action;
    assert!(action(&[without, without]).contains("node.attr"));
    assert!(action(&[full, without]).contains("add a node there"));
}

/// What is to be done before a retry depends on why the last try failed, which is told once, and of some blocks no
/// retry is of use. The words are those of the sources of Elasticsearch and OpenSearch.
#[test]
fn a_block_is_advised_by_the_reason_that_its_decider_gives() {
    let found = |decider: &str, words: &[&str]| only(&while_waiting(&[refused(decider, words)]));
    for (failure, advised) in [
        ("CorruptIndexException[checksum failed (hardware problem?)]", "restored from a snapshot"),
        ("CircuitBreakingException[[parent] Data too large]", "heap"),
        ("ShardLockObtainFailedException[[w][0]: obtaining shard lock", "had not closed yet"),
        ("IOException[No space left on device]", "make room"),
        ("IOException while reading synonyms_path: syn.txt", "put it on every node"),
        ("NodeDisconnectedException[[b][internal:index/shard]]", "see its last failure"),
    ] {
        let words = format!(
            "shard has exceeded the maximum number of retries [5] on failed allocation attempts - manually call [POST \
             /_cluster/reroute?retry_failed] to retry, [unassigned_info[details[{failure}]]]"
        );
        let finding = found("max_retry", &[&words, &words]);
        let action = finding.lift.unwrap().action;
        assert!(action.contains(advised) && action.contains("retry_failed"), "{failure}: {action}");
        let fields: Vec<&str> = finding.evidence.iter().map(|line| &*line.field).collect();
        assert_eq!(fields, ["can_allocate", "node_allocation_decisions, a, b"]);
    }
    let action = |decider: &str, words: &[&str]| found(decider, words).lift.unwrap().action;
    let holds = "a copy of this shard is already allocated to this node [[w][0]]";
    let host = "a copy of this shard is already allocated to host address [10.0.0.1], on node [n], and \
                [cluster.routing.allocation.same_shard.host] is [true]";
    assert!(action("same_shard", &[holds, host]).contains("add a host"));
    assert!(action("same_shard", &[holds, holds]).contains("add a node"));
    let made_of = "initial allocation of the shrunken index is only allowed on nodes [_id:\"n\"] that hold a copy of \
                   every shard in the index";
    assert!(action("filter", &[made_of, made_of]).contains("shrink, split or clone again"));
    let restored = action("restore_in_progress", &["shard has failed to be restored"]);
    assert!(restored.contains("restore it again"), "{restored}");
}

/// What is left to do depends on whether any copy is there: none is no stale one.
#[test]
fn a_primary_without_a_good_copy_is_advised_by_what_is_there() {
    let action = |words: &str| {
        let copy = WaitingCopy {
            primary: true,
            explanation: Some(words.into()),
            ..waiting("no_valid_shard_copy", &[])
        };
        only(&while_waiting(&[copy])).lift.unwrap().action
    };
    // The words of OpenSearch 2.19.1.
    let gone = action(
        "cannot allocate because a previous copy of the primary shard existed but can no longer be found on the nodes \
         in the cluster",
    );
    assert!(
        gone.contains("bring back the node") && gone.contains("allocate_empty_primary"),
        "{gone}"
    );
    let bad =
        action("cannot allocate because all found copies of the shard are either stale or corrupt");
    assert!(bad.contains("from a snapshot") && bad.contains("allocate_stale_primary"), "{bad}");
}

/// The trap: the cluster counts a primary among the copies that wait for their node, and nobody makes it anew later.
#[test]
fn a_primary_whose_node_left_is_no_copy_that_another_node_takes_over() {
    let primary = || WaitingCopy {
        primary: true,
        reason: Some("NODE_LEFT".into()),
        ..waiting("no_valid_shard_copy", &[])
    };
    let healthy = |told: u64| {
        let looks = looks_at_rest(|look, _| {
            look.health.as_mut().unwrap().delayed = Some(told);
            look.waiting = [primary()].into();
        });
        judge(&looks).healthy
    };
    assert_eq!(healthy(1), [""; 0]);
    assert!(healthy(2)[0].starts_with("1 copy waits for a node"), "{:?}", healthy(2));
    assert!(healthy(5)[0].starts_with("4 copies wait for a node"), "{:?}", healthy(5));
}

/// A primary that no node may hold is a finding. Its replica comes once the primary is there, whatever else is said of
/// it.
#[test]
fn a_replica_below_a_primary_that_is_stuck_is_no_finding() {
    let primary = || WaitingCopy {
        primary: true,
        ..waiting("no", &[("a", "filter", "NO"), ("b", "filter", "NO")])
    };
    let below = "replica_after_primary_active";
    let decided = waiting("no", &[("a", below, "NO"), ("b", below, "NO")]);
    let in_words = WaitingCopy {
        explanation: Some("cannot allocate because the primary is not started".into()),
        ..waiting("no", &[])
    };
    let filtered = waiting(
        "no",
        &[("a", below, "NO"), ("a", "filter", "NO"), ("b", below, "NO"), ("b", "filter", "NO")],
    );
    for replica in [decided, in_words, filtered] {
        let both = judge(&while_waiting(&[primary(), replica.clone()]));
        let [finding] = &both.findings[..] else { panic!("{both:#?}") };
        assert_eq!(finding.class, Class::AllocationBlock);
        assert_eq!(finding.subjects, ["primary of w[0]"]);
        assert!(judge(&while_waiting(&[replica])).findings.is_empty());
    }
}

#[test]
fn copies_that_wait_say_what_they_do_not_wait_for() {
    let ruled_out = |can_allocate, decisions: &[(&str, &str, &str)]| {
        let copy = waiting(can_allocate, decisions);
        let finding = only(&while_waiting(&[copy]));
        let [one] = &finding.ruled_out[..] else { panic!("{finding:#?}") };
        (one.class, one.by, one.why.clone())
    };
    let slot = [("a", "same_shard", "NO"), ("b", "throttling", "THROTTLE")];
    assert_eq!(
        ruled_out("throttled", &slot),
        (Class::AllocationBlock, By::Figure, "b takes it once a slot is free".to_owned())
    );
    let blocked = [("a", "same_shard", "NO"), ("b", "disk_threshold", "NO")];
    let why = "of the nodes, 2 say NO and 0 THROTTLE".to_owned();
    assert_eq!(ruled_out("no", &blocked), (Class::AllocationSlots, By::Figure, why));
    let one = ruled_out("no", &[("a", "same_shard", "NO")]);
    assert_eq!(one.2, "of the nodes, 1 says NO and 0 THROTTLE");
    let (class, by, _) = ruled_out("no", &[]);
    assert_eq!((class, by), (Class::AllocationSlots, By::Untold));
}

/// A node that left may come back: nothing is to be done, and how long that lasts is said.
#[test]
fn copies_that_wait_for_their_node_say_how_long() {
    let judged = |copies: u32, told: u64, age_ms: Option<u64>| {
        let copy = |shard: u32| WaitingCopy {
            shard,
            delay_left_ms: Some(42_300),
            ..waiting("allocation_delayed", &[])
        };
        let diagnosis = judge(&looks_at_rest(|look, _| {
            look.health.as_mut().unwrap().delayed = Some(told);
            look.waiting = (0..copies).map(copy).collect();
            look.waiting_age_ms = age_ms;
        }));
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.headline.contains(&diagnosis.healthy[0]));
        diagnosis.healthy[0].clone()
    };
    let one = judged(1, 1, None);
    assert!(one.starts_with("replica of w[0] waits for a node to come back"), "{one}");
    assert!(one.contains("delayed_timeout") && one.contains("43.0 s left"), "{one}");
    // Time goes on while the cluster is not asked again.
    let later = judged(1, 1, Some(30_000));
    assert!(later.contains("13.0 s left"), "{later}");
    assert!(judged(2, 2, None).starts_with("replica of w[0], replica of w[1] wait for"));
    assert!(
        judged(2, 700, None).starts_with("700 copies wait for"),
        "a cluster explains only some"
    );
}

/// Which node does not answer is not told: one that hangs does not tell its statistics either.
#[test]
fn a_primary_that_nodes_are_asked_about_says_what_to_do() {
    let advised = |is_silent: bool, was_seen: bool| {
        let finding = only(&looks_at_rest(move |look, s| {
            let asked = waiting("awaiting_info", &[]);
            look.waiting = [WaitingCopy { primary: true, ..asked }].into();
            if is_silent && (s > 4 || !was_seen) {
                look.nodes.retain(|node| node.name != "b");
                let found = "nodes without an answer within 3 s: 1".to_owned();
                look.gaps = vec![Gap { path: "/_nodes/stats".into(), found, ..Gap::default() }];
            }
        }));
        assert_eq!(finding.class, Class::AllocationBlock);
        finding.lift.unwrap().action
    };
    let all_answer = advised(false, true);
    assert!(all_answer.starts_with("wait a minute or two: "), "{all_answer}");
    assert!(all_answer.contains("number_of_in_flight_fetch"), "{all_answer}");
    let both =
        [0, 1].map(|shard| WaitingCopy { shard, primary: true, ..waiting("awaiting_info", &[]) });
    let both = only(&while_waiting(&both)).sentence;
    assert!(both.starts_with("primary of w[0], primary of w[1] wait: the manager"), "{both}");
    let named = advised(true, true);
    assert!(named.starts_with("look at the disks and the logs of b, which told"), "{named}");
    let unnamed = advised(true, false);
    assert!(unnamed.contains("GET _cat/nodes names all nodes"), "{unnamed}");
}

#[test]
fn what_is_about_to_be_placed_is_no_finding() {
    for can_allocate in ["yes", "awaiting_info", "allocation_delayed"] {
        assert!(judge(&while_waiting(&[waiting(can_allocate, &[])])).findings.is_empty());
    }
    let asked = judge(&while_waiting(&[waiting("awaiting_info", &[])])).healthy;
    assert!(asked[0].starts_with("replica of w[0] waits: the manager asks nodes"), "{asked:?}");
    assert!(judge(&while_waiting(&[waiting("yes", &[])])).healthy.is_empty());
    // Nor is what has only just begun to wait.
    let looks = looks_at_rest(|look, s| {
        if s == 10 {
            look.waiting = [waiting("no", &[("a", "filter", "NO")])].into();
        }
    });
    assert!(judge(&looks).findings.is_empty());
}
