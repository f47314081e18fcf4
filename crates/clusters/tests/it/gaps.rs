//! Looks at a cluster that refuses some questions, or fails to answer them: what was known is kept, and what is lost is
//! said.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use clusters::live::Depth;

use crate::live_client::says;
use crate::looks::{CALM, ROOT, gaps, serve};

const ELASTICSEARCH: &str =
    r#"{"cluster_name":"c","version":{"number":"8.15.0"},"tagline":"You Know, for Search"}"#;

/// A cluster of which most is forbidden: looked at all the same, and what is lost is said. Without its recoveries there
/// is nothing to see.
#[test]
fn what_is_forbidden_becomes_a_gap() {
    world::virtual_world::run(1, async |env| {
        let health = Rc::new(Cell::new((200, CALM)));
        let told = health.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some(told.get()),
            _ => Some((403, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        assert_eq!(sampler.identity().flavour, "opensearch");
        sampler.check_version().unwrap();
        let look = sampler.look(Depth::Deep).await.unwrap();
        let lost: Vec<&str> = look.gaps.iter().map(|gap| gap.lost.as_str()).collect();
        assert!(lost.iter().any(|words| words.contains("memory of nodes")), "{lost:?}");
        assert!(look.nodes.is_empty() && look.settings.is_none() && look.health.is_some());
        health.set((403, "{}"));
        says(sampler.look(Depth::Light).await, &["/_recovery", "403", "monitor"]);
    });
}

/// Recoveries and copies that wait are asked for in vain: none has ended for that, and none has its place.
#[test]
fn a_question_that_fails_is_no_empty_answer() {
    const HEALTH: &str = r#"{"status":"yellow","number_of_nodes":2,"initializing_shards":1,"relocating_shards":0,"unassigned_shards":1}"#;
    const RECOVERY: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","primary":false,"start_time_in_millis":1,"source":{"name":"a"},"target":{"name":"b"}}]}}"#;
    const SHARDS: &str = r#"[{"state":"UNASSIGNED","index":"logs","shard":"1","prirep":"r"}]"#;
    world::virtual_world::run(1, async |env| {
        let (fails, health) = (Rc::new(Cell::new(false)), Rc::new(Cell::new((200, HEALTH))));
        let (failing, healthy) = (fails.clone(), health.clone());
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some(healthy.get()),
            "/_recovery" | "/_cat/shards" if failing.get() => Some((503, "{}")),
            "/_recovery" => Some((200, RECOVERY)),
            "/_cat/shards" => Some((200, SHARDS)),
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let before = sampler.look(Depth::Deep).await.unwrap();
        assert_eq!((before.recoveries.len(), before.waiting.len()), (1, 1));
        let both = ["/_cat/shards", "/_recovery"];
        assert!(both.iter().all(|path| !gaps(&before).contains(path)), "{:?}", before.gaps);
        fails.set(true);
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&unknown).contains(path)), "{:?}", unknown.gaps);
        assert!(unknown.recoveries.is_empty(), "{:?}", unknown.recoveries);
        assert!(Arc::ptr_eq(&unknown.waiting, &before.waiting));
        // Nor is anything known of them without a health.
        health.set((503, "{}"));
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(Arc::ptr_eq(&unknown.waiting, &before.waiting) && unknown.health.is_none());
        fails.set(false);
        health.set((200, HEALTH));
        let after = sampler.look(Depth::Deep).await.unwrap();
        assert_eq!((after.recoveries, after.waiting), (before.recoveries, before.waiting));
        fails.set(true);
        sampler.look(Depth::Deep).await.unwrap();
        // A health of zeros says that there are none of either.
        health.set((200, CALM));
        let calm = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| !gaps(&calm).contains(path)), "{:?}", calm.gaps);
        assert!(calm.recoveries[0].ended && calm.waiting.is_empty());
    });
}

/// One that stumbles is asked again, and one that says that it does not have it is not.
#[test]
fn what_fails_once_is_not_given_up() {
    const FOLLOWS: &str =
        r#"{"follow_stats":{"indices":[{"shards":[{"follower_index":"f","shard_id":0}]}]}}"#;
    world::virtual_world::run(1, async |env| {
        let (stumbles, snapshots) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
        let (stumbling, asked) = (stumbles.clone(), snapshots.clone());
        let answer = move |path: &str| match path {
            "/" => Some((200, ELASTICSEARCH)),
            "/_ccr/stats" | "/_remote/info" if stumbling.get() => Some((503, "{}")),
            "/_ccr/stats" => Some((200, FOLLOWS)),
            "/_remote/info" => Some((200, r#"{"leader":{"connected":true}}"#)),
            "/_snapshot/_status" => {
                asked.set(asked.get() + 1);
                Some((404, "{}"))
            }
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let both = ["/_ccr/stats", "/_remote/info"];
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&look).contains(path)), "{:?}", look.gaps);
        assert!(!gaps(&look).contains(&"/_snapshot/_status"), "{:?}", look.gaps);
        stumbles.set(false);
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| !gaps(&look).contains(path)), "{:?}", look.gaps);
        assert_eq!((look.followers.len(), look.remotes.len()), (1, 1));
        // What was told is kept.
        stumbles.set(true);
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&unknown).contains(path)), "{:?}", unknown.gaps);
        assert_eq!((unknown.followers, unknown.remotes), (look.followers, look.remotes));
        assert_eq!(snapshots.get(), 1);
    });
}

/// Who paused is asked for where another cluster is known: once none is, the last answer is no longer true.
#[test]
fn a_paused_follower_that_is_deleted_with_its_remote_cluster_is_forgotten() {
    const PAUSED: &str =
        r#"{"follower_indices":[{"follower_index":"f","remote_cluster":"eu","status":"paused"}]}"#;
    world::virtual_world::run(1, async |env| {
        let is_there = Rc::new(Cell::new(true));
        let there = is_there.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ELASTICSEARCH)),
            "/_cluster/health" => Some((200, CALM)),
            "/_remote/info" if there.get() => Some((200, r#"{"eu":{"connected":true}}"#)),
            "/_all/_ccr/info" if there.get() => Some((200, PAUSED)),
            "/_all/_ccr/info" => Some((200, r#"{"follower_indices":[]}"#)),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        assert_eq!(sampler.look(Depth::Deep).await.unwrap().followers.len(), 1);
        is_there.set(false);
        assert!(sampler.look(Depth::Deep).await.unwrap().followers.is_empty());
    });
}

/// Where another cluster is known, a role that may not ask for followers leaves a gap, and a license without them none.
#[test]
fn followers_that_a_role_keeps_from_us_are_a_gap() {
    const ROLE: &str =
        r#"{"error":{"reason":"action [cluster:monitor/ccr/stats] is unauthorized"}}"#;
    const LICENSE: &str = r#"{"error":{"reason":"current license is non-compliant for [ccr]"}}"#;
    for (said, remotes, is_gap) in [
        (ROLE, r#"{"eu":{"connected":true}}"#, true),
        (ROLE, "{}", false),
        (LICENSE, r#"{"eu":{"connected":true}}"#, false),
    ] {
        world::virtual_world::run(1, async move |env| {
            let answer = move |path: &str| match path {
                "/" => Some((200, ELASTICSEARCH)),
                "/_ccr/stats" => Some((403, said)),
                "/_remote/info" => Some((200, remotes)),
                _ => Some((404, "{}")),
            };
            let (mut sampler, _server) = serve(&env, answer).await;
            for _ in 0..2 {
                let look = sampler.look(Depth::Deep).await.unwrap();
                assert_eq!(gaps(&look).contains(&"/_ccr/stats"), is_gap, "{:?}", look.gaps);
            }
        });
    }
}

/// Amazon's service answers 401 whoever asks for what it offers to nobody. Made after what its users report.
#[test]
fn what_a_service_offers_to_nobody_ends_no_look() {
    const KEPT: &str = r#"{"Message":"Your request: '/_remote/info' is not allowed."}"#;
    world::virtual_world::run(1, async |env| {
        let answer = |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_remote/info" => Some((401, KEPT)),
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(!gaps(&look).contains(&"/_remote/info"), "{:?}", look.gaps);
    });
}

/// The limit of a repository is asked for until it is told; and a recording may answer for a recovery that has ended
/// what it was before.
#[test]
fn what_is_told_late_counts_and_what_is_told_again_does_not() {
    const EARLIER: &str = r#"{"logs":{"shards":[{"id":0,"type":"SNAPSHOT","stage":"INDEX","primary":true,"start_time_in_millis":1,"source":{"repository":"backups"},"target":{"name":"b"},"index":{"size":{"recovered_in_bytes":3}}}]}}"#;
    const LATER: &str = r#"{"logs":{"shards":[{"id":0,"type":"SNAPSHOT","stage":"INDEX","primary":true,"start_time_in_millis":1,"source":{"repository":"backups"},"target":{"name":"b"},"index":{"size":{"recovered_in_bytes":5}}}]}}"#;
    const REPOSITORY: &str = r#"{"backups":{"settings":{"max_restore_bytes_per_sec":"1mb"}}}"#;
    world::virtual_world::run(1, async |env| {
        let (repository, recovery) = (Rc::new(Cell::new((503, "{}"))), Rc::new(Cell::new(LATER)));
        let (told, recovering) = (repository.clone(), recovery.clone());
        let asked = Rc::new(Cell::new(0));
        let counted = asked.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_recovery" => Some((200, recovering.get())),
            "/logs/_recovery" => Some((200, EARLIER)),
            "/_snapshot/backups" => {
                counted.set(counted.get() + 1);
                Some(told.get())
            }
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        assert!(sampler.look(Depth::Light).await.unwrap().restore_limits.is_empty());
        repository.set((200, REPOSITORY));
        for _ in 0..2 {
            let look = sampler.look(Depth::Light).await.unwrap();
            assert_eq!(look.restore_limits["backups"], "1mb");
        }
        recovery.set("{}");
        let ended = sampler.look(Depth::Light).await.unwrap().recoveries.remove(0);
        assert_eq!((ended.ended, ended.recovered_bytes), (true, Some(5)));
        assert_eq!(asked.get(), 2);
    });
}

/// An old version that does not know a part of the node stats is asked again without it.
#[test]
fn parts_that_a_version_lacks_are_left_out() {
    const UNKNOWN: &str = r#"{"error":{"type":"illegal_argument_exception","reason":"request [/_nodes/stats/x] contains unrecognized metric: [indexing_pressure]"},"status":400}"#;
    const STATS: &str = r#"{"nodes":{"id":{"name":"n1","timestamp":1}}}"#;
    world::virtual_world::run(1, async |env| {
        let asked = Rc::<RefCell<Vec<bool>>>::default();
        let noted = asked.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ELASTICSEARCH)),
            _ if path.starts_with("/_nodes/stats") => {
                let is_unknown = path.contains("indexing_pressure,");
                noted.borrow_mut().push(is_unknown);
                Some(if is_unknown { (400, UNKNOWN) } else { (200, STATS) })
            }
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let look = sampler.look(Depth::Light).await.unwrap();
        assert_eq!(look.nodes[0].name, "n1");
        assert_eq!(*asked.borrow(), [true, false]);
    });
}

/// What search backpressure cancelled is asked of releases that have it, and one that refuses the question tells of its
/// nodes all the same.
#[test]
fn searches_that_were_cancelled_are_asked_of_releases_that_tell() {
    const STATS: &str = r#"{"nodes":{"id":{"name":"n1"}}}"#;
    const TOLD: &str = r#"{"nodes":{"id":{"search_backpressure":{"mode":"enforced","search_task":{
        "resource_tracker_stats":{"cpu_usage_tracker":{"cancellation_count":3}}}}}}}"#;
    const OLD: &str =
        r#"{"cluster_name":"c","version":{"distribution":"opensearch","number":"2.3.0"}}"#;
    for (root, told, times, count) in [
        (ROOT, (200, TOLD), 1, Some(3)),
        (ROOT, (400, "{}"), 1, None),
        (OLD, (200, TOLD), 0, None),
        (ELASTICSEARCH, (200, TOLD), 0, None),
    ] {
        world::virtual_world::run(1, async move |env| {
            let asked = Rc::new(Cell::new(0));
            let counted = asked.clone();
            let answer = move |path: &str| match path {
                "/" => Some((200, root)),
                "/_nodes/stats/search_backpressure" => {
                    counted.set(counted.get() + 1);
                    Some(told)
                }
                _ if path.starts_with("/_nodes/stats") => Some((200, STATS)),
                _ => Some((200, "{}")),
            };
            let (mut sampler, _server) = serve(&env, answer).await;
            let look = sampler.look(Depth::Light).await.unwrap();
            assert_eq!(look.nodes[0].name, "n1");
            assert_eq!(look.nodes[0].searches_cancelled.get("cpu_usage").copied(), count);
            assert_eq!((asked.get(), gaps(&look).contains(&"/_nodes/stats")), (times, false));
        });
    }
}
