//! Tests of the manager.

use serde_json::{Value, json};

use super::super::indices::{REPLICAS, SHARDS};
use super::super::{
    Alias, AliasAction, Aliases, FollowChange, FollowOrigin, Index, Made, RecoverySource, RollOver,
    Status, check, health,
};
use super::lab::{Lab, creation, node, update};
use super::*;

#[test]
fn an_index_is_created_started_and_deleted() {
    let mut lab = Lab::new(2);
    let changes = lab.create("logs", 1, 1);
    assert_eq!(changes[0], Change::Index { index: "logs".to_owned() });
    assert!(matches!(&changes[1], Change::Assigned { recovery: RecoverySource::EmptyStore, .. }));
    assert_eq!(changes.len(), 2, "the replica waits for the primary");
    let meta = lab.state.indices["logs"].clone();
    assert_eq!(meta.created_ms, lab.now_ms);
    assert_eq!(meta.settings[SHARDS], "1");

    lab.start_all();
    assert_eq!(health(&lab.state).status, Status::Green);
    assert_eq!(lab.shard("logs", 0).in_sync.len(), 2);

    let delete = Event::DeleteIndex { index: lab.state.meant("logs") };
    assert_eq!(lab.apply(delete.clone()), Ok(vec![Change::Other]));
    let copies = [(meta.uuid.clone(), 0)];
    assert_eq!(lab.state.obsolete("n1", lab.state.indices.keys(), &copies), copies);
    let never = Event::DeleteIndex { index: lab.state.meant("logs") };
    for late in [delete, never] {
        let said = lab.apply(late).unwrap_err();
        assert_eq!(said.rest(), (404, "index_not_found_exception"));
    }
}

#[test]
fn names_and_numbers_are_checked() {
    let mut lab = Lab::new(1);
    lab.create("logs", 1, 0);
    for name in ["", "..", "_a", "Logs", "a b", "a/b", "a\u{202e}", "a\x1b[2J", &"a".repeat(256)] {
        let said = lab.apply(creation(name, Update::new())).unwrap_err();
        assert_eq!(said.rest().1, "invalid_index_name_exception", "{name}");
    }
    let said = lab.apply(creation("logs", Update::new())).unwrap_err();
    assert_eq!(
        said.to_string(),
        "index [logs] already exists; delete it first or choose another name"
    );
    assert!(lab.apply(creation("b", update(&[(SHARDS, "0")]))).is_err());
    assert!(lab.apply(creation("b", update(&[("transport.compress", "true")]))).is_err());
    let said = lab.apply(Event::DeleteIndex { index: lab.state.meant("log") }).unwrap_err();
    assert_eq!(said.to_string(), "no such index [log]; did you mean \"logs\"?");
}

#[test]
fn only_members_join() {
    let mut lab = Lab::new(2);
    let stranger = Event::NodeJoined { node: node("n9"), found: Vec::new() };
    assert_eq!(
        lab.apply(stranger).unwrap_err().to_string(),
        "node [n9] is no member of this cluster; its members are n1, n2"
    );
    let moved = Node { http_address: "n1:9999".to_owned(), ..node("n1") };
    lab.apply(Event::NodeJoined { node: moved, found: Vec::new() }).unwrap();
    assert_eq!(lab.state.present_nodes().next().unwrap().http_address, "n1:9999");
    assert_eq!(lab.leave("n9"), [], "who is not there cannot leave");
}

#[test]
fn a_node_that_restarted_unnoticed_loses_its_primary() {
    let mut lab = Lab::started(2, (1, 1));
    let old = lab.shard("a", 0).primary().clone();
    lab.join(old.node.as_ref().unwrap());
    assert_ne!(lab.shard("a", 0).primary().node, old.node);
    assert_eq!(lab.shard("a", 0).primary_term, 2);
}

#[test]
fn after_a_restart_of_the_manager_everything_comes_back_from_disk() {
    let mut lab = Lab::started(3, (3, 1));
    lab.apply(Event::ManagerRestarted).unwrap();
    assert_eq!(health(&lab.state).unassigned_shards, 6);
    for name in ["n1", "n2", "n3"] {
        lab.join(name);
    }
    assert!(lab.initializing().len() >= 3);
    lab.start_all();
    assert_eq!(health(&lab.state).status, Status::Green);
    assert!(lab.state.shards().all(|(_, _, shard)| shard.primary_term == 2));
}

#[test]
fn a_copy_that_fails_five_times_stays_away_until_asked() {
    let mut lab = Lab::new(1);
    lab.create("a", 1, 0);
    for attempt in 1..=5 {
        let place = lab.initializing()[0].clone();
        lab.fail(&place, &format!("disk full {attempt}"));
        assert_eq!(lab.shard("a", 0).primary().failures, attempt);
        assert_eq!(lab.fail(&place, "again"), [], "a failure is counted once");
        let given_up = lab.shard("a", 0).primary().given_up();
        assert_eq!(given_up, (attempt == 5).then_some("disk full 5"));
    }
    assert_eq!(lab.initializing().len(), 0);
    let explanation = &super::super::explain(&lab.state, lab.now_ms)[0];
    let reason = explanation.reason.as_ref().unwrap();
    assert_eq!(reason.decider, "max_retry");
    assert!(reason.words.contains("5 times in a row, last with \"disk full 5\""), "{reason:?}");

    lab.apply(Event::RetryFailed).unwrap();
    lab.start_all();
    assert_eq!(health(&lab.state).status, Status::Green);
    assert_eq!(lab.shard("a", 0).primary().last_failure, None);
}

#[test]
fn a_copy_that_comes_while_another_is_tried_a_last_time_becomes_the_primary() {
    let mut lab = Lab::started(2, (1, 1));
    lab.apply(Event::ManagerRestarted).unwrap();
    lab.join("n1");
    for _ in 1..=4 {
        lab.fail_first("damaged");
    }
    let last_try = lab.initializing()[0].clone();
    lab.join("n2");
    lab.fail(&last_try, "damaged");
    assert_eq!(lab.shard("a", 0).primary().node.as_deref(), Some("n2"));
    lab.start_all();
    assert!(lab.shard("a", 0).primary().is_started());
}

#[test]
fn a_copy_without_room_is_tried_again_one_try_at_a_time() {
    let mut lab = Lab::new(1);
    lab.create("a", 1, 0);
    for _ in 1..=5 {
        lab.fail_first("no room");
    }
    let words =
        super::super::explain(&lab.state, lab.now_ms)[0].reason.as_ref().unwrap().words.clone();
    assert!(words.contains("tried again every cluster.info.update.interval"), "{words}");
    assert_eq!(lab.shard("a", 0).primary().given_up(), None);
    for _ in 0..3 {
        assert_eq!(lab.initializing().len(), 0);
        assert_eq!(lab.apply(Event::LookForRoom).unwrap()[0], Change::Other);
        lab.fail_first("no room");
    }
    lab.apply(Event::LookForRoom).unwrap();
    lab.fail_first("something else");
    assert_eq!(lab.apply(Event::LookForRoom).unwrap(), []);
    assert_eq!(lab.initializing().len(), 0, "only for want of room");
}

#[test]
fn a_failed_primary_is_tried_from_its_disk_or_another() {
    let mut lab = Lab::started(2, (1, 1));
    let nodes = ["n1", "n2"];
    nodes.iter().for_each(|name| drop(lab.leave(name)));
    lab.set("cluster.routing.allocation.enable", "none");
    nodes.iter().for_each(|name| drop(lab.join(name)));
    lab.set("cluster.routing.allocation.enable", "primaries");
    let first = lab.shard("a", 0).primary().clone();
    lab.fail_first("corrupt");
    let second = lab.shard("a", 0).primary().clone();
    assert_ne!(first.node, second.node, "both are in sync, so the other is tried");
    assert_eq!(second.recovery(), Some(&RecoverySource::ExistingStore));
}

#[test]
fn a_primary_takes_copies_out_of_sync() {
    let mut lab = Lab::started(2, (1, 1));
    let primary = lab.shard("a", 0).primary().allocation_id.clone();
    let replica = lab.shard("a", 0).replicas().next().unwrap().allocation_id.clone();
    lab.out_of_sync("a", 0, &replica).unwrap();
    let shard = lab.shard("a", 0);
    assert!(!shard.in_sync.contains(&replica));
    let again = shard.replicas().next().unwrap();
    assert!(matches!(again.recovery(), Some(RecoverySource::Peer { .. })), "it recovers again");
    assert_eq!(again.failures, 1);
    assert_eq!(lab.out_of_sync("a", 0, &replica), Ok(Vec::new()), "already done");

    let said = lab.out_of_sync("a", 0, &primary).unwrap_err();
    assert!(matches!(said, StateError::PrimaryInSync { .. }), "{said}");
    let said = lab.out_of_sync_at("a", 0, &replica, 0).unwrap_err();
    assert_eq!(said.rest(), (409, "no_longer_primary_shard_exception"));
    let said = lab.out_of_sync_at("a", 7, &replica, 1).unwrap_err();
    assert_eq!(said.to_string(), "no such shard [a][7]; the index has 1");
}

/// Both primaries have the first term. Whoever was told that it is done would acknowledge a write that nobody has.
#[test]
fn a_primary_of_an_index_that_was_made_anew_takes_no_copy_out_of_sync() {
    let mut lab = Lab::started(2, (1, 1));
    let index = lab.state.meant("a");
    let allocation_id = lab.shard("a", 0).replicas().next().unwrap().allocation_id.clone();
    lab.apply(Event::DeleteIndex { index: index.clone() }).unwrap();
    lab.create("a", 1, 1);
    lab.start_all();
    let (shard, primary_term, reason) = (0, 1, "a write failed".to_owned());
    let late = Event::CopyOutOfSync { index, shard, allocation_id, primary_term, reason };
    let said = lab.apply(late).unwrap_err();
    assert_eq!(said.rest(), (404, "index_not_found_exception"), "{said}");
}

#[test]
fn an_old_primary_cannot_take_the_new_one_out_of_sync() {
    let mut lab = Lab::started(2, (1, 1));
    let old = lab.shard("a", 0).primary().clone();
    lab.leave(old.node.as_ref().unwrap());
    let new = lab.shard("a", 0).primary().allocation_id.clone();
    let said = lab.out_of_sync_at("a", 0, &new, 1).unwrap_err();
    assert!(said.to_string().contains("must not acknowledge"), "{said}");
    // The new one writes, so the old one's copy is no longer good.
    let missing: Vec<String> = lab.shard("a", 0).missing_in_sync().map(str::to_owned).collect();
    assert_eq!(missing, std::slice::from_ref(&old.allocation_id));
    lab.out_of_sync("a", 0, &old.allocation_id).unwrap();
    assert_eq!(lab.shard("a", 0).in_sync, [new].into());
}

#[test]
fn replicas_come_and_go() {
    let mut lab = Lab::started(3, (2, 0));
    lab.replicas("a", 2);
    lab.start_all();
    assert_eq!(health(&lab.state).active_shards, 6);
    lab.replicas("a", 1);
    assert_eq!(health(&lab.state).active_shards, 4);
    assert!(lab.state.shards().all(|(_, _, shard)| shard.in_sync.len() == 2));
    assert_eq!(lab.replicas("a", 1), [], "the same again changes nothing");
    assert_eq!(lab.state.indices["a"].settings_version, 3);

    // What recovers goes before what is started.
    lab.replicas("a", 2);
    lab.replicas("a", 1);
    assert_eq!(health(&lab.state).active_shards, 4);

    let back: Update = [("index.*".to_owned(), None)].into();
    lab.apply(Event::PutIndexSettings { index: lab.state.meant("a"), settings: back }).unwrap();
    assert_eq!((lab.state.indices["a"].shards, lab.state.indices["a"].replicas), (2, 1));
    let fixed = update(&[(SHARDS, "4")]);
    let said = lab.apply(Event::PutIndexSettings { index: lab.state.meant("a"), settings: fixed });
    assert!(said.unwrap_err().to_string().contains("cannot change while running"));
}

#[test]
fn a_follower_recovers_from_remote() {
    let mut lab = Lab::new(2);
    lab.create("other", 1, 0);
    lab.start_all();
    let follow = |cluster: &str, settings| Event::CreateFollower {
        index: "copy".to_owned(),
        leader: FollowOrigin {
            remote_cluster: cluster.to_owned(),
            leader_index: "logs".to_owned(),
            leader_uuid: "u".to_owned(),
            following: Default::default(),
        },
        shards: 2,
        routing_shards: Some(6),
        made: Made {
            settings,
            mappings: json!({"properties": {"a": {"type": "long"}}}),
            aliases: Aliases::from([
                ("all".to_owned(), Alias { filter: Some("{}".to_owned()), ..Alias::default() }),
                ("other".to_owned(), Default::default()),
            ]),
        },
    };
    let said = lab.apply(follow("eu", Update::new())).unwrap_err();
    assert_eq!(said.to_string(), "no remote cluster [eu]; set cluster.remote.eu.seeds first");
    lab.set("cluster.remote.eu.seeds", "h:9300");
    let said = lab.apply(follow("eu", update(&[(SHARDS, "3")]))).unwrap_err();
    assert!(said.to_string().ends_with("as its leader, which has 2"), "{said}");
    let own = update(&[("index.number_of_routing_shards", "4")]);
    let said = lab.apply(follow("eu", own)).unwrap_err();
    assert!(said.to_string().contains("the routing shards of its leader"), "{said}");
    let mut wrong = follow("eu", Update::new());
    if let Event::CreateFollower { routing_shards, .. } = &mut wrong {
        *routing_shards = Some(7);
    }
    let said = lab.apply(wrong).unwrap_err();
    assert!(said.to_string().contains("a multiple of index.number_of_shards"), "{said}");
    let mut deep = follow("eu", Update::new());
    if let Event::CreateFollower { made, .. } = &mut deep {
        made.mappings = nested(21);
    }
    let said = lab.apply(deep).unwrap_err().to_string();
    assert!(said.contains("Limit of mapping depth [20]"), "{said}");

    lab.apply(follow("eu", update(&[(REPLICAS, "0")]))).unwrap();
    assert_eq!(lab.state.indices["copy"].routing_shards, Some(6));
    let aliases = &lab.state.indices["copy"].aliases;
    let read_only = Alias { is_write_index: Some(false), filter: Some("{}".to_owned()) };
    let expected = Aliases::from([("all".to_owned(), read_only)]);
    assert_eq!(*aliases, expected, "those of the leader that no index here has for its name");
    let remote = |shard| RecoverySource::Remote {
        cluster: "eu".to_owned(),
        index: "logs".to_owned(),
        shard,
    };
    for shard in [0, 1] {
        assert_eq!(lab.shard("copy", shard).primary().recovery(), Some(&remote(shard)));
    }
    lab.fail_first("session timed out");
    assert_eq!(lab.shard("copy", 0).primary().recovery(), Some(&remote(0)), "and again");
    lab.start_all();
    let node = lab.shard("copy", 0).primary().node.clone().unwrap();
    lab.leave(&node);
    lab.join(&node);
    let source = lab.shard("copy", 0).primary().recovery().cloned();
    assert_eq!(source, Some(RecoverySource::ExistingStore), "it holds its own documents now");

    lab.start_all();
    let allocation_id = lab.shard("copy", 0).primary().allocation_id.clone();
    let copy = lab.state.meant("copy");
    let fall_back = |allocation_id: &str| Event::SetFollowing {
        index: copy.clone(),
        change: FollowChange::FallBack {
            shard: 0,
            allocation_id: allocation_id.to_owned(),
            reason: "gone".to_owned(),
        },
    };
    assert!(lab.apply(fall_back("of another life")).unwrap().is_empty());
    let set = |change| Event::SetFollowing { index: copy.clone(), change };
    lab.apply(set(FollowChange::Pause)).unwrap();
    let paused = lab.apply(fall_back(&allocation_id)).unwrap();
    assert!(paused.is_empty(), "it keeps what it has, with which it may be unfollowed");
    lab.apply(set(FollowChange::Resume { parameters: Default::default() })).unwrap();
    lab.apply(fall_back(&allocation_id)).unwrap();
    assert_eq!(
        lab.shard("copy", 0).primary().recovery(),
        Some(&remote(0)),
        "from the leader again"
    );
    assert_eq!(lab.shard("copy", 1).primary().recovery(), None, "the other shard stays");
    check(&lab.state).unwrap();
}

/// Mappings of a field within so many objects.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"type": "long"}), |inner, _| json!({"properties": {"y": inner}}))
}

#[test]
fn mappings_grow_and_never_conflict() {
    let mut lab = Lab::new(1);
    lab.create("a", 1, 0);
    let put_any = |index: &Index, mappings: &Value| Event::PutMapping {
        index: index.clone(),
        mappings: mappings.clone(),
    };
    let a = lab.state.meant("a");
    let put = |kind: &str| put_any(&a, &json!({"properties": {"x": {"type": kind}}}));
    assert_eq!(lab.apply(put("long")).unwrap().len(), 1);
    assert_eq!(lab.apply(put("long")), Ok(Vec::new()));
    assert!(lab.apply(put("text")).is_err());
    assert_eq!(lab.state.indices["a"].mapping_version, 2);
    let said = lab.apply(put_any(&a, &nested(21))).unwrap_err().to_string();
    assert!(said.contains("Limit of mapping depth [20]"), "{said}");
    let meta = (0..64).fold(json!(1), |inner, _| json!([inner]));
    let said = lab.apply(put_any(&a, &json!({"_meta": {"deep": meta}}))).unwrap_err().to_string();
    assert!(said.contains("nested deeper than 64"), "{said}");
    assert!(lab.apply(put_any(&a, &json!({"properties": {"-z": {"type": "long"}}}))).is_err());
    assert_eq!(lab.state.indices["a"].mapping_version, 2);
}

/// Whoever asked for it meant the one that was there.
#[test]
fn a_change_that_comes_late_is_not_for_an_index_that_was_made_anew() {
    let mut lab = Lab::new(1);
    lab.create("a", 1, 0);
    let (index, alias) = (lab.state.meant("a"), "of-a".to_owned());
    let add = |index: &Index| AliasAction::Add {
        index: index.clone(),
        alias: alias.clone(),
        properties: Alias::default(),
    };
    lab.apply(Event::ChangeAliases { actions: vec![add(&index)] }).unwrap();
    let delete = Event::DeleteIndex { index: index.clone() };
    lab.apply(delete.clone()).unwrap();
    lab.create("a", 1, 0);
    lab.apply(Event::ChangeAliases { actions: vec![add(&lab.state.meant("a"))] }).unwrap();
    let before = lab.state.clone();
    let index = || index.clone();
    let roll_over =
        RollOver { alias: alias.clone(), from: index(), to: "c".to_owned(), made: Made::default() };
    for late in [
        Event::PutIndexSettings { index: index(), settings: update(&[(REPLICAS, "1")]) },
        Event::PutMapping {
            index: index(),
            mappings: json!({"properties": {"x": {"type": "long"}}}),
        },
        Event::ChangeAliases { actions: vec![add(&index())] },
        Event::ChangeAliases {
            actions: vec![AliasAction::Remove { index: index(), alias: alias.clone() }],
        },
        Event::SetFollowing { index: index(), change: FollowChange::Pause },
        Event::SetFollowing { index: index(), change: FollowChange::Unfollow },
        Event::RollOver(Box::new(roll_over)),
        Event::ChangeAliases { actions: vec![AliasAction::RemoveIndex { index: index() }] },
        delete,
    ] {
        let said = lab.apply(late.clone()).unwrap_err();
        assert_eq!(said.rest(), (404, "index_not_found_exception"), "{late:?}");
    }
    assert_eq!(lab.state, before);
}

#[test]
fn settings_of_both_kinds_are_checked_before_either_is_set() {
    let mut lab = Lab::new(1);
    let event = Event::PutClusterSettings {
        persistent: update(&[("indices.recovery.chunk_size", "1mb")]),
        transient: update(&[("indices.recovery.chunk_size", "1tb")]),
    };
    let said = lab.apply(event).unwrap_err().to_string();
    assert!(said.ends_with("it must be from 1b to 100mb"), "{said}");
    assert!(lab.state.persistent.is_empty());
    lab.set("indices.recovery.chunk_size", "2048kb");
    assert_eq!(lab.state.settings().recovery_chunk_size(), 2 << 20);
}

#[test]
fn the_state_survives_both_formats() {
    let mut lab = Lab::new(2);
    lab.create("a", 2, 1);
    let event = Event::PutMapping {
        index: lab.state.meant("a"),
        mappings: json!({"properties": {"x": {"type": "text"}}}),
    };
    let bytes = postcard::to_stdvec(&event).unwrap();
    assert_eq!(postcard::from_bytes::<Event>(&bytes).unwrap(), event);
    lab.apply(event).unwrap();
    lab.set("cluster.remote.eu.seeds", "h:9300");
    let text = serde_json::to_string(&lab.state).unwrap();
    assert_eq!(serde_json::from_str::<ClusterState>(&text).unwrap(), lab.state);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["indices"]["a"]["mappings"]["properties"]["x"]["type"], "text");
    let bytes = postcard::to_stdvec(&lab.state).unwrap();
    assert_eq!(postcard::from_bytes::<ClusterState>(&bytes).unwrap(), lab.state);
}
