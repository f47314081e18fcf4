//! What a run has changed on a cluster that was there, put back at its end or by `restore`, where the manager is slow.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use clusters::{
    Change, ClusterSpec, Clusters, Error, FollowApi, Journal, LiveClusters, SENT_TWICE,
    TopologySpec, restore,
};
use futures_util::future::{join, join3};
use record::observation::Scope;
use serde_json::{Value, json};

use crate::manager::{Asked, Cluster, LIMIT, QUICK, UNKNOWN, WATERMARKS, on_cluster};

const INDEX: &str = "narrows-1";

/// A run on a cluster, which is waited for so long.
async fn begin(cluster: &Cluster, patience: Duration) -> LiveClusters {
    begin_on(&[cluster], [patience, QUICK]).await
}

/// A run on a leader, or on a follower as well: how long it waits for an answer, and how long at its end.
pub async fn begin_on(clusters: &[&Cluster], patience: [Duration; 2]) -> LiveClusters {
    let mut live = Vec::new();
    for cluster in clusters {
        live.push(cluster.live(patience).await);
    }
    let mut run = LiveClusters::new(live, FollowApi::default());
    let site = |name: &&str| ClusterSpec::new(name, 1);
    let sites = ["leader", "follower"][..clusters.len()].iter().map(site).collect();
    run.start(&TopologySpec { clusters: sites, link: None, joined: false }).await.unwrap();
    run
}

/// Stops a run, which puts everything back.
pub async fn stop_well(run: &mut LiveClusters) {
    run.stop().await;
    assert_eq!(run.ended().unwrap().unwrap(), Vec::<String>::new());
}

async fn put(run: &LiveClusters, path: &str, body: &Value) -> Result<(), Error> {
    run.request("leader", "PUT", path, Bytes::from(body.to_string())).await.map(drop)
}

/// Nothing is left of it, also once the manager has made all that it was asked for.
#[track_caller]
fn everything_is_as_it_was(cluster: &Cluster, before: &BTreeMap<String, Value>) {
    cluster.manager.borrow_mut().make();
    assert_eq!(cluster.settings(), *before);
    assert_eq!(cluster.manager.borrow().indices, BTreeSet::new());
    assert!(!cluster.journal().exists());
}

/// What `restore` leaves.
async fn restored(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let (client, journal) = (cluster.client(QUICK), Journal::open(&cluster.journal()).unwrap());
    restore(&client, journal).await.unwrap().settle(&client).await
}

fn settings(value: &str) -> Value {
    json!({ "persistent": { LIMIT: value } })
}

#[test]
fn what_a_run_asked_for_last_is_put_back_though_it_is_made_later() {
    world::virtual_world::run(1, async |env| {
        for found in [None, Some("20mb")] {
            for (path, body) in [("/_cluster/settings", settings("1mb")), ("/narrows-1", json!({}))]
            {
                let cluster = Cluster::start(&env).await;
                let before: BTreeMap<String, Value> =
                    found.iter().map(|value| (LIMIT.to_owned(), Value::from(*value))).collect();
                cluster.manager.borrow_mut().set = before.clone();
                let mut run = begin(&cluster, QUICK).await;
                cluster.manager.borrow_mut().is_late = Some(false);
                let given_up = put(&run, path, &body).await;
                assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
                assert_eq!(cluster.manager.borrow().queued.len(), 1, "it is not made yet");
                stop_well(&mut run).await;
                everything_is_as_it_was(&cluster, &before);
            }
        }
    });
}

/// Whoever runs the cluster lowers a limit while a run goes on.
#[test]
fn what_somebody_else_changes_meanwhile_is_not_set_again_and_stays() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        for value in ["1mb", "2mb"] {
            put(&run, "/_cluster/settings", &settings(value)).await.unwrap();
        }
        let theirs = BTreeMap::from([(LIMIT.to_owned(), Value::from("3mb"))]);
        cluster.manager.borrow_mut().set = theirs.clone();
        for value in [Value::from("4mb"), Value::Null] {
            let body = json!({ "persistent": { LIMIT: value } });
            let refused = put(&run, "/_cluster/settings", &body).await.unwrap_err();
            assert!(matches!(refused, Error::ChangedMeanwhile { .. }), "{refused:?}");
            assert!(!refused.is_usage(), "the run has begun");
        }
        run.stop().await;
        let left = run.ended().unwrap().unwrap();
        assert!(left.len() == 1 && left[0].contains("\"3mb\" now"), "{left:?}");
        everything_is_as_it_was(&cluster, &theirs);
    });
}

/// A name, or a balancer, that was turned to another cluster meanwhile.
#[test]
fn a_run_changes_no_other_cluster_that_answers_at_the_same_address() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        cluster.manager.borrow_mut().is_another = true;
        for (path, body) in [("/_cluster/settings", settings("1mb")), ("/narrows-1", json!({}))] {
            let refused = put(&run, path, &body).await;
            let Err(error @ Error::OtherCluster { .. }) = &refused else { panic!("{refused:?}") };
            assert!(!error.is_usage(), "the run has changed the cluster before");
        }
        cluster.manager.borrow_mut().is_another = false;
        stop_well(&mut run).await;
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// A cluster takes back all settings that begin so, and nobody would know what they were.
#[test]
fn a_setting_that_stands_for_many_is_not_sent() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        let body = json!({ "persistent": { "indices.recovery.*": null } });
        let refused = put(&run, "/_cluster/settings", &body).await.unwrap_err();
        assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
        stop_well(&mut run).await;
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// A cluster would change all of the indices that a path names.
#[test]
fn what_names_another_index_beside_its_own_is_not_sent() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        let is_refused = async |method: &str, path: &str| {
            let answer = run.request("leader", method, path, Bytes::new()).await;
            matches!(answer, Err(Error::NotOurs { .. }))
        };
        for (method, path) in [
            ("DELETE", "/narrows-1,logs"),
            ("PUT", "/narrows-1,logs"),
            ("PUT", "/narrows-1,logs/_settings"),
            ("POST", "/narrows-1,*/_delete_by_query"),
            ("POST", "/narrows-1,-logs/_close"),
            ("DELETE", "/narrows-1%2Clogs"),
            ("DELETE", "/narrows-1/../logs"),
            ("POST", "/narrows-1/_clone/logs"),
            ("POST", "/narrows-1/_rollover"),
            ("DELETE", "/_search/point_in_time/_all"),
        ] {
            assert!(is_refused(method, path).await, "{method} {path}");
        }
        for path in ["/narrows-1-*,-narrows-1-b/_flush", "/narrows-1/_doc/a%20b"] {
            assert!(!is_refused("POST", path).await, "{path}");
        }
        // By ids, which nobody else has.
        for path in ["/_search/scroll", "/_search/point_in_time", "/_pit"] {
            assert!(!is_refused("DELETE", path).await, "{path}");
        }
        stop_well(&mut run).await;
    });
}

/// A writer of a run that was interrupted would make the index anew.
#[test]
fn nothing_is_written_any_more_once_everything_is_put_back() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        put(&run, "/narrows-1", &json!({})).await.unwrap();
        let writer = run.asker("leader", QUICK).unwrap();
        let is_refused = async || {
            let answer = writer.ask("POST", "/narrows-1/_doc/a", Bytes::new()).await;
            matches!(answer, Err(Error::NotOurs { .. }))
        };
        assert!(!is_refused().await);
        stop_well(&mut run).await;
        assert!(is_refused().await);
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// A write that was sent before a run was interrupted would make the index anew, too, where it comes late.
#[test]
fn an_index_is_deleted_once_the_writes_to_it_have_ended() {
    on_cluster(async |env, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        put(&run, "/narrows-1", &json!({})).await.unwrap();
        let writer = run.asker("leader", QUICK).unwrap();
        cluster.manager.borrow_mut().is_late = Some(false);
        let stops = async {
            env.sleep(QUICK / 4).await;
            assert_eq!(cluster.manager.borrow().queued.len(), 1, "it is under way");
            stop_well(&mut run).await;
        };
        let comes = async {
            env.sleep(QUICK / 2).await;
            cluster.manager.borrow_mut().make();
        };
        let writes = writer.ask("POST", "/narrows-1/_bulk", Bytes::new());
        let (written, ..) = join3(writes, stops, comes).await;
        assert!(matches!(written, Err(Error::Timeout { .. })), "{}", written.is_ok());
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// Of `_cluster/reroute` nothing is sent but that replicas of indices are given up which are in the journal.
#[test]
fn only_copies_of_its_own_indices_are_given_up() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        let cancel = |index: &str| json!({ "cancel": { "index": index, "shard": 0, "node": "b" } });
        let primary = json!({ "cancel": { "index": INDEX, "allow_primary": true } });
        let moved = json!({ "move": { "index": INDEX, "shard": 0 } });
        let ask = async |query: &str, commands: &[Value]| {
            let body = Bytes::from(json!({ "commands": commands }).to_string());
            let path = format!("/_cluster/reroute{query}");
            run.request("leader", "POST", &path, body).await.map(drop)
        };
        let is_refused = |answer: Result<(), Error>| matches!(answer, Err(Error::NotOurs { .. }));
        assert!(is_refused(ask("", &[cancel(INDEX)]).await), "it is not made yet");
        put(&run, "/narrows-1", &json!({})).await.unwrap();
        ask("?filter_path=acknowledged", &[cancel(INDEX)]).await.unwrap();
        for (query, commands) in [
            ("", vec![cancel(INDEX), cancel("logs")]),
            ("", vec![cancel("narrows-*")]),
            ("", vec![primary]),
            ("", vec![moved]),
            ("", vec![]),
            ("?retry_failed=true", vec![cancel(INDEX)]),
        ] {
            assert!(is_refused(ask(query, &commands).await), "{query} {commands:?}");
        }
        run.stop().await;
    });
}

/// A load gives its last request up, and the manager comes to it later.
#[test]
fn an_index_that_a_load_makes_late_is_put_back() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        run.will_make("leader", INDEX).unwrap();
        cluster.manager.borrow_mut().queued.push(Asked::Index(INDEX.to_owned()));
        stop_well(&mut run).await;
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// Until its leader has answered, a follower is in no queue of the manager.
#[test]
fn a_follower_that_is_still_being_begun_is_put_back() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        put(&run, "/narrows-1/_ccr/follow", &json!({})).await.unwrap_err();
        assert!(cluster.manager.borrow().follows.is_some(), "it is not made yet");
        stop_well(&mut run).await;
        assert_eq!(cluster.manager.borrow().follows, None);
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// The follower comes first, and an index that follows is still being begun there.
#[test]
fn settings_of_both_clusters_are_put_back_before_an_index_is_waited_for() {
    world::virtual_world::run(1, async |env| {
        let (leader, follower) = (Cluster::start(&env).await, Cluster::start(&env).await);
        let mut run = begin_on(&[&leader, &follower], [QUICK; 2]).await;
        put(&run, "/_cluster/settings", &settings("1mb")).await.unwrap();
        run.will_make("follower", INDEX).unwrap();
        follower.manager.borrow_mut().follows = Some((2, INDEX.to_owned()));
        let is_waited_for = async {
            while matches!(follower.manager.borrow().follows, Some((2, _))) {
                env.sleep(Duration::from_millis(1)).await;
            }
            leader.settings()
        };
        let ((), there) = join(run.stop(), is_waited_for).await;
        assert_eq!(there, BTreeMap::new());
        assert_eq!(run.ended().unwrap().unwrap(), Vec::<String>::new());
        for cluster in [&leader, &follower] {
            everything_is_as_it_was(cluster, &BTreeMap::new());
        }
    });
}

/// Whoever says stop is told what goes on, and need not wait for a cluster that hangs.
#[test]
fn the_second_time_that_somebody_says_stop_leaves_the_rest_in_the_journal() {
    world::virtual_world::run(1, async |env| {
        for is_told in [true, false] {
            let cluster = Cluster::start(&env).await;
            let live = cluster.live([QUICK, Duration::from_secs(3600)]).await;
            let mut run = LiveClusters::new(vec![live], FollowApi::default());
            cluster.manager.borrow_mut().is_silent = true;
            let (said, heard) = (RefCell::new(Vec::new()), Cell::new(u32::from(is_told)));
            let told = || {
                heard.set(heard.get() + 1);
                std::future::ready(std::io::Result::Ok(()))
            };
            let tell = |text: &str| said.borrow_mut().push(text.to_owned());
            let began = env.now();
            run.stop_until_told(is_told, told, tell).await;
            assert!(
                env.now() - began >= SENT_TWICE,
                "a signal that comes twice ends the work alone"
            );
            let (said, ended) = (said.into_inner(), run.ended().unwrap());
            assert!(matches!(ended, Err(Error::BrokenOff)), "{ended:?}");
            assert!(said.len() == 1 && said[0].contains("narrows restore"), "{said:?}");
            assert_eq!(heard.get(), 2, "the first time puts back, the second does not");
            assert!(cluster.journal().exists());
            cluster.manager.borrow_mut().is_silent = false;
            restored(&cluster).await.unwrap();
            everything_is_as_it_was(&cluster, &BTreeMap::new());
        }
    });
}

/// As after a kill -9: nobody knows what was answered.
#[test]
fn restore_puts_back_what_is_made_later() {
    world::virtual_world::run(1, async |env| {
        let one = |name: &str, value: Option<&str>| {
            BTreeMap::from([(name.to_owned(), value.map(str::to_owned))])
        };
        for last in [Asked::Settings(settings("1mb")), Asked::Index(INDEX.to_owned())] {
            let cluster = Cluster::start(&env).await;
            let mut journal = cluster.begin_journal();
            // The cluster has refused to set what it does not know, and refuses that again.
            for name in [UNKNOWN, LIMIT] {
                let (before, set) = (one(name, None), one(name, Some("1mb")));
                let scope = Scope::Persistent;
                journal.record(Change::Settings { scope, before, set }).unwrap();
            }
            journal.record(Change::Index { name: INDEX.to_owned() }).unwrap();
            drop(journal);
            cluster.manager.borrow_mut().queued.push(last);
            assert_eq!(restored(&cluster).await.unwrap(), Vec::<String>::new());
            everything_is_as_it_was(&cluster, &BTreeMap::new());
        }
    });
}

/// What the cluster does not take back, as of a plugin that is gone, keeps nothing else from being put back.
#[test]
fn a_setting_that_cannot_be_put_back_keeps_the_journal_and_nothing_else() {
    on_cluster(async |_, cluster| {
        let mut journal = cluster.begin_journal();
        let of = |value: &str| {
            let of = |name: &str| (name.to_owned(), Some(value.to_owned()));
            BTreeMap::from([of(UNKNOWN), of(LIMIT)])
        };
        let (scope, before, set) = (Scope::Persistent, of("1mb"), of("2mb"));
        journal.record(Change::Settings { scope, before, set }).unwrap();
        journal.record(Change::Index { name: INDEX.to_owned() }).unwrap();
        drop(journal);
        let found = |limit: &str| {
            [(UNKNOWN, "2mb"), (LIMIT, limit)].map(|(name, value)| (name.to_owned(), json!(value)))
        };
        cluster.manager.borrow_mut().set = BTreeMap::from(found("2mb"));
        cluster.manager.borrow_mut().indices.insert(INDEX.to_owned());
        let error = restored(&cluster).await.unwrap_err();
        assert!(matches!(error, Error::Refused { status: 400, .. }), "{error}");
        assert_eq!(cluster.settings(), BTreeMap::from(found("1mb")));
        assert_eq!(cluster.manager.borrow().indices, BTreeSet::new());
        assert!(cluster.journal().exists());
    });
}

/// Beside one that is refused each is sent alone, and the high watermark cannot go below the low one of now.
#[test]
fn values_that_depend_on_each_other_go_back_one_by_one() {
    on_cluster(async |_, cluster| {
        let mut journal = cluster.begin_journal();
        let [high, low] = WATERMARKS;
        let of = |values: [&'static str; 3]| {
            BTreeMap::from_iter([high, low, UNKNOWN].map(str::to_owned).into_iter().zip(values))
        };
        let changed = |values| -> BTreeMap<String, Option<String>> {
            of(values).into_iter().map(|(name, value)| (name, Some(value.to_owned()))).collect()
        };
        let (before, set) = (changed(["85%", "80%", "1mb"]), changed(["95%", "90%", "2mb"]));
        journal.record(Change::Settings { scope: Scope::Persistent, before, set }).unwrap();
        drop(journal);
        let there = |values| -> BTreeMap<String, Value> {
            of(values).into_iter().map(|(name, value)| (name, value.into())).collect()
        };
        cluster.manager.borrow_mut().set = there(["95%", "90%", "2mb"]);
        let error = restored(&cluster).await.unwrap_err();
        assert!(matches!(error, Error::Refused { status: 400, .. }), "{error}");
        assert_eq!(cluster.settings(), there(["85%", "80%", "2mb"]));
        assert!(cluster.journal().exists());
    });
}

/// Where nobody can tell whether an index will be made, the journal stays.
#[test]
fn a_manager_that_stays_busy_keeps_the_journal() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, QUICK).await;
        cluster.manager.borrow_mut().is_late = Some(false);
        put(&run, "/narrows-1", &json!({})).await.unwrap_err();
        cluster.manager.borrow_mut().is_busy = true;
        run.stop().await;
        let error = run.ended().unwrap().unwrap_err();
        assert!(matches!(&error, Error::Busy { index } if index == INDEX), "{error}");
        assert!(cluster.journal().exists());
        cluster.manager.borrow_mut().is_busy = false;
        assert_eq!(restored(&cluster).await.unwrap(), Vec::<String>::new());
        everything_is_as_it_was(&cluster, &BTreeMap::new());
    });
}

/// A run waits for minutes for one answer. Whoever ends it does not.
#[test]
fn the_end_of_a_run_does_not_wait_as_long_as_the_run() {
    on_cluster(async |_, cluster| {
        let mut run = begin(&cluster, Duration::from_secs(3600)).await;
        cluster.manager.borrow_mut().is_silent = true;
        run.stop().await;
        let ended = run.ended().unwrap();
        assert!(matches!(ended, Err(Error::Timeout { limit, .. }) if limit == QUICK), "{ended:?}");
        assert!(cluster.journal().exists());
    });
}
