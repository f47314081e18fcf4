//! Looks at a cluster that hangs, and at one that changes while somebody watches it for long.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{Address, Depth, LiveClient, LiveOptions, Sampler};
use record::observation::Observation;
use rest::RestRequest;
use world::{Env, Task};

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
pub const ROOT: &str =
    r#"{"cluster_name":"c","version":{"distribution":"opensearch","number":"2.19.1"}}"#;
pub const CALM: &str =
    r#"{"status":"green","initializing_shards":0,"relocating_shards":0,"unassigned_shards":0}"#;
pub const WAITS: &str =
    r#"{"status":"yellow","initializing_shards":1,"relocating_shards":0,"unassigned_shards":1}"#;
/// In place of a status: the connection is closed before an answer.
const CUT: u16 = 0;
pub const SHARDS: &str = r#"[{"state":"UNASSIGNED","index":"logs","shard":"0","prirep":"r"}]"#;

testbed::rest_host!();

/// A host that answers by path, without what follows a question mark, after so long: status and body, or never.
pub async fn host(
    env: &Env,
    name: &str,
    latency: impl Fn(&str) -> Duration + 'static,
    answer: impl Fn(&str) -> Option<(u16, &'static str)> + 'static,
) -> (String, Task<()>) {
    let host = env.host(name);
    let answer = async move |asked: RestRequest| {
        let path = asked.path.split('?').next().unwrap_or_default();
        let Some((status, body)) = answer(path) else { return std::future::pending().await };
        host.sleep(latency(path)).await;
        (status != CUT).then(|| (status, Bytes::from_static(body.as_bytes())))
    };
    rest_host(env, name, answer).await
}

async fn connect(env: &Env, hosts: &[String]) -> Sampler {
    let addresses = Address::parse_all(hosts.iter().map(String::as_str)).unwrap();
    let options = LiveOptions::anonymous(addresses, TIMEOUT);
    Sampler::connect(LiveClient::new(env, &options).unwrap()).await.unwrap()
}

/// A cluster of one host that answers at once or never.
pub async fn serve(
    env: &Env,
    answer: impl Fn(&str) -> Option<(u16, &'static str)> + 'static,
) -> (Sampler, Task<()>) {
    let (address, task) = host(env, "a", |_| Duration::ZERO, answer).await;
    (connect(env, &[address]).await, task)
}

pub fn gaps(look: &Observation) -> Vec<&str> {
    look.gaps.iter().map(|gap| gap.path.as_str()).collect()
}

/// A dozen questions hang, and each may take its time; but all of them together no more than three may.
#[test]
fn a_look_at_a_cluster_that_hangs_has_one_end() {
    world::virtual_world::run(1, async |env| {
        let answer = |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, WAITS)),
            _ => None,
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let began = env.now();
        let look = sampler.look(Depth::Deep).await.unwrap();
        let took = env.now() - began;
        assert!(took > TIMEOUT && took <= 3 * TIMEOUT, "{took:?}");
        for path in ["/_nodes/stats", "/_recovery", "/_cat/shards", "/_cluster/settings"] {
            assert!(gaps(&look).contains(&path), "{path} is not in {:?}", look.gaps);
        }
        // Whoever asks beside looks has all the time of one answer.
        let asked = env.now();
        sampler.client().get("/_recovery").await.unwrap_err();
        assert_eq!(env.now() - asked, TIMEOUT);
    });
}

/// Of a large cluster one host is given, which is no end of what recovers: it tells how far both ends are from it. Both
/// are asked at once, or a look at nodes far away would last.
#[test]
fn a_host_that_is_no_end_of_a_recovery_measures_the_way_to_both() {
    const RECOVERY: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","primary":false,
        "start_time_in_millis":1,"source":{"name":"b"},"target":{"name":"a"}}]}}"#;
    const STATS: &str =
        r#"{"nodes":{"id-a":{"name":"a"},"id-b":{"name":"b"},"id-h":{"name":"h"}}}"#;
    const LOCAL: &str = r#"{"nodes":{"id-h":{"name":"h"}}}"#;
    world::virtual_world::run(1, async |env| {
        let answer = |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_recovery" => Some((200, RECOVERY)),
            _ if path.starts_with("/_nodes/stats") => Some((200, STATS)),
            _ if path.ends_with("/stats/process") => Some((200, LOCAL)),
            _ => Some((404, "{}")),
        };
        let far = Duration::from_millis(300);
        let latency = move |path: &str| if path.contains("/id-") { far } else { Duration::ZERO };
        let (address, _server) = host(&env, "h", latency, answer).await;
        let mut sampler = connect(&env, &[address]).await;
        let began = env.now();
        let look = sampler.look(Depth::Light).await.unwrap();
        let trips = look.round_trips.iter();
        let trips = trips.map(|trip| (&*trip.from, &*trip.to, trip.rtt_ms.round()));
        assert_eq!(trips.collect::<Vec<_>>(), [("h", "a", 300.0), ("h", "b", 300.0)]);
        assert!(env.now() - began < 4 * far, "{:?}", look.cost);
    });
}

/// Of a large cluster many hosts may be given: those that are called as an end of a recovery are among the few asked,
/// be it with a domain, which an address has not.
#[test]
fn round_trips_are_measured_from_a_few_hosts() {
    const RECOVERY: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","primary":false,
        "start_time_in_millis":1,"source":{"name":"10"},"target":{"name":"n11.example"}}]}}"#;
    const STATS: &str = r#"{"nodes":{"id-10":{"name":"10"},"id-n11":{"name":"n11.example"}}}"#;
    world::virtual_world::run(1, async |env| {
        let asked = Rc::new(RefCell::new(BTreeSet::new()));
        let (mut hosts, mut servers) = (Vec::new(), Vec::new());
        for number in 0..12 {
            let asked = asked.clone();
            let answer = move |path: &str| match path {
                "/" => Some((200, ROOT)),
                "/_recovery" => Some((200, RECOVERY)),
                "/_nodes/_local/stats/process" => {
                    asked.borrow_mut().insert(number);
                    Some((200, STATS))
                }
                _ if path.starts_with("/_nodes/") => Some((200, STATS)),
                _ => Some((404, "{}")),
            };
            let name = if number == 10 { "10.0.0.7".to_owned() } else { format!("n{number}") };
            let (address, server) = host(&env, &name, |_| Duration::ZERO, answer).await;
            hosts.push(address);
            servers.push(server);
        }
        let look = connect(&env, &hosts).await.look(Depth::Light).await.unwrap();
        assert_eq!(*asked.borrow(), BTreeSet::from([0, 1, 2, 3, 4, 5, 6, 11]));
        let gap = look.gaps.iter().find(|gap| gap.path == "round trips").unwrap();
        assert_eq!(gap.found, "8 of 12 hosts were asked");
    });
}

/// As where a proxy cuts what is long: whoever answers everything else is there.
#[test]
fn an_answer_that_is_cut_off_is_a_gap() {
    world::virtual_world::run(1, async |env| {
        let gone = Rc::new(Cell::new(false));
        let is_gone = gone.clone();
        let answer = move |path: &str| match path {
            _ if is_gone.get() => Some((CUT, "")),
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, CALM)),
            "/_cat/shards" => Some((200, "[]")),
            _ if path.starts_with("/_nodes/stats") => Some((CUT, "")),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let look = sampler.look(Depth::Full).await.unwrap();
        assert_eq!(gaps(&look), ["/_nodes/stats"]);
        let found = &look.gaps[0].found;
        assert!(found.contains("the connection broke during GET /_nodes/stats"), "{found}");
        gone.set(true);
        let over = sampler.look(Depth::Full).await.unwrap_err();
        assert!(matches!(over, clusters::Error::Broken { .. }), "{over}");
    });
}

/// A cluster is slow, and one question hangs: every other one has its answer, though all of them together take longer
/// than those may that are asked in vain.
#[test]
fn a_question_that_hangs_leaves_time_for_slow_answers() {
    const SLOW: Duration = Duration::from_secs(9);
    world::virtual_world::run(1, async |env| {
        let answer = |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, WAITS)),
            "/_cat/shards" => Some((200, SHARDS)),
            _ if path.starts_with("/_nodes/stats") => None,
            _ => Some((200, "{}")),
        };
        let (address, _server) = host(&env, "a", |_| SLOW, answer).await;
        let mut sampler = connect(&env, &[address]).await;
        let look = sampler.look(Depth::Full).await.unwrap();
        assert_eq!(gaps(&look), ["/_nodes/stats"]);
        assert!(look.cost.took_ms > 4.0 * TIMEOUT.as_secs_f64() * 1e3, "{:?}", look.cost);
    });
}

/// Too late is a gap where somebody is there.
#[test]
fn a_late_answer_is_told_from_silence() {
    for (late, hosts) in [
        ("/_nodes/stats", 1),
        ("/_nodes/stats", 2),
        ("/_cluster/health", 1),
        ("/_cluster/health", 2),
    ] {
        world::virtual_world::run(1, async move |env| {
            let answer = move |path: &str| match path {
                "/" => Some((200, ROOT)),
                _ if path.starts_with(late) => None,
                "/_cluster/health" => Some((200, CALM)),
                "/_recovery" | "/_cluster/settings" => Some((200, "{}")),
                _ if path.starts_with("/_nodes/stats") => Some((200, r#"{"nodes":{}}"#)),
                _ => Some((404, "{}")),
            };
            let (mut addresses, mut servers) = (Vec::new(), Vec::new());
            for name in ["a", "b"].into_iter().take(hosts) {
                let (address, server) = host(&env, name, |_| Duration::ZERO, answer).await;
                addresses.push(address);
                servers.push(server);
            }
            let look = connect(&env, &addresses).await.look(Depth::Light).await.unwrap();
            assert_eq!(gaps(&look), [late], "{hosts} hosts: {:?}", look.gaps);
        });
    }
}

/// It is the end of the observation where nobody is.
#[test]
fn silence_is_told_from_a_late_answer() {
    world::virtual_world::run(1, async |env| {
        let (silent, seen) = (Rc::new(Cell::new(false)), Rc::<RefCell<Vec<String>>>::default());
        let (is_silent, asked) = (silent.clone(), seen.clone());
        let answer = move |path: &str| {
            asked.borrow_mut().push(path.to_owned());
            (!is_silent.get()).then_some((200, ROOT))
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        silent.set(true);
        let said = sampler.look(Depth::Light).await.unwrap_err().to_string();
        assert!(said.contains("did not answer GET /_cluster/health"), "{said}");
        assert_eq!(*seen.borrow(), ["/", "/_cluster/health", "/"]);
    });
}

/// Of a large cluster many hosts may be given.
#[test]
fn a_few_hosts_tell_that_somebody_is_there() {
    world::virtual_world::run(1, async |env| {
        let asked = Rc::new(RefCell::new(BTreeSet::new()));
        let (mut hosts, mut servers) = (Vec::new(), Vec::new());
        for number in 0..20 {
            let asked = asked.clone();
            let answer = move |path: &str| match path {
                "/" => {
                    asked.borrow_mut().insert(number);
                    Some((200, ROOT))
                }
                _ => Some((503, "")),
            };
            let name = format!("n{number}");
            let (address, server) = host(&env, &name, |_| Duration::ZERO, answer).await;
            hosts.push(address);
            servers.push(server);
        }
        let mut sampler = connect(&env, &hosts).await;
        asked.borrow_mut().clear();
        let look = sampler.look(Depth::Light).await.unwrap();
        assert!(gaps(&look).contains(&"/_cluster/health"), "{:?}", look.gaps);
        assert_eq!(*asked.borrow(), (0..8).collect::<BTreeSet<_>>());
    });
}

/// A node that joins is asked for its cores as those before it were.
#[test]
fn a_node_that_joins_later_has_cores_too() {
    const ONE: &str = r#"{"nodes":{"1":{"name":"n1","os":{"allocated_processors":8}}}}"#;
    const TWO: &str = r#"{"nodes":{"1":{"name":"n1","os":{"allocated_processors":8}},
        "2":{"name":"n2","os":{"allocated_processors":4}}}}"#;
    world::virtual_world::run(1, async |env| {
        let nodes = Rc::new(Cell::new(ONE));
        let (there, asked) = (nodes.clone(), Rc::<RefCell<u32>>::default());
        let counted = asked.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, CALM)),
            "/_nodes/os" => {
                *counted.borrow_mut() += 1;
                Some((200, there.get()))
            }
            _ if path.starts_with("/_nodes/stats") => Some((200, there.get())),
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let both = vec![Some(8), Some(4)];
        for (told, cores, times) in
            [(ONE, vec![Some(8)], 1), (ONE, vec![Some(8)], 1), (TWO, both, 2)]
        {
            nodes.set(told);
            let look = sampler.look(Depth::Deep).await.unwrap();
            let found: Vec<Option<u64>> = look.nodes.iter().map(|node| node.cores).collect();
            assert_eq!((found, *asked.borrow()), (cores, times));
        }
    });
}

/// A node that hangs keeps its figures from nobody else, and has not left.
#[test]
fn a_node_without_an_answer_is_a_gap_and_has_not_left() {
    const BOTH: &str = r#"{"_nodes":{"failed":0},"nodes":{"1":{"name":"n1"},"2":{"name":"n2"}}}"#;
    const SILENT: &str = r#"{"_nodes":{"failed":1},"nodes":{"1":{"name":"n1"}}}"#;
    const LEFT: &str = r#"{"_nodes":{"failed":0},"nodes":{"1":{"name":"n1"}}}"#;
    world::virtual_world::run(1, async |env| {
        let nodes = Rc::new(Cell::new(BOTH));
        let there = nodes.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, CALM)),
            _ if path.starts_with("/_nodes/stats") => Some((200, there.get())),
            _ => Some((404, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        for (told, are_silent, gone) in
            [(BOTH, false, vec![]), (SILENT, true, vec![]), (LEFT, false, vec!["n2"])]
        {
            nodes.set(told);
            env.sleep(Duration::from_secs(1)).await;
            let look = sampler.look(Depth::Full).await.unwrap();
            assert_eq!(gaps(&look).contains(&"/_nodes/stats"), are_silent, "{:?}", look.gaps);
            assert_eq!(look.gone, gone, "{told}");
        }
    });
}

/// What could not be asked once is no gap for ever.
#[test]
fn why_copies_wait_is_no_gap_once_it_is_told_or_none_waits() {
    world::virtual_world::run(1, async |env| {
        let (health, explain) = (Rc::new(Cell::new(WAITS)), Rc::new(Cell::new(503)));
        let (healthy, explaining) = (health.clone(), explain.clone());
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, healthy.get())),
            "/_cat/shards" => Some((200, SHARDS)),
            "/_cluster/allocation/explain" => Some((explaining.get(), "{}")),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        for (status, told, is_gap) in
            [(503, WAITS, true), (200, WAITS, false), (503, WAITS, true), (503, CALM, false)]
        {
            explain.set(status);
            health.set(told);
            let look = sampler.look(Depth::Deep).await.unwrap();
            let found = look.gaps.iter().any(|gap| gap.path == "/_cluster/allocation/explain");
            assert_eq!(found, is_gap, "{status} {told}: {:?}", look.gaps);
        }
    });
}

/// Three requests a look explain six copies in turn, and the two replicas of one shard by one request. The one that was
/// explained is explained again, so that what was found stays known.
#[test]
fn copies_that_wait_are_explained_in_turn() {
    const ROWS: &str = r#"[{"state":"UNASSIGNED","index":"a","shard":"0","prirep":"r"},
        {"state":"UNASSIGNED","index":"a","shard":"0","prirep":"r"},
        {"state":"UNASSIGNED","index":"b","shard":"0","prirep":"r"},
        {"state":"UNASSIGNED","index":"b","shard":"1","prirep":"r"},
        {"state":"UNASSIGNED","index":"b","shard":"2","prirep":"r"},
        {"state":"UNASSIGNED","index":"c","shard":"0","prirep":"r"}]"#;
    world::virtual_world::run(1, async |env| {
        let asked = Rc::new(Cell::new(0));
        let counted = asked.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, WAITS)),
            "/_cat/shards" => Some((200, ROWS)),
            "/_cluster/allocation/explain" => {
                counted.set(counted.get() + 1);
                Some((200, r#"{"can_allocate":"throttled"}"#))
            }
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        for expected in [["a0", "a0", "b0", "c0"], ["a0", "a0", "b1", "b2"]] {
            asked.set(0);
            let look = sampler.look(Depth::Deep).await.unwrap();
            let told = look.waiting.iter().filter(|copy| copy.can_allocate.is_some());
            let told: Vec<String> =
                told.map(|copy| format!("{}{}", copy.index, copy.shard)).collect();
            assert_eq!((&told[..], asked.get()), (&expected.map(String::from)[..], 3));
        }
    });
}

#[test]
fn a_look_says_how_old_its_list_of_copies_is() {
    world::virtual_world::run(1, async |env| {
        let health = Rc::new(Cell::new(WAITS));
        let told = health.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, told.get())),
            "/_cat/shards" => Some((200, SHARDS)),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let look = sampler.look(Depth::Light).await.unwrap();
        assert_eq!(look.waiting_age_ms, Some(0));
        env.sleep(Duration::from_secs(4)).await;
        let look = sampler.look(Depth::Light).await.unwrap();
        let age_ms = look.waiting_age_ms.unwrap();
        assert!((4000..5000).contains(&age_ms), "{age_ms}");
        health.set(CALM);
        assert_eq!(sampler.look(Depth::Full).await.unwrap().waiting_age_ms, None);
    });
}

/// Other clusters are asked for every ten seconds, and each look between has them.
#[test]
fn a_remote_cluster_is_in_every_look_until_it_is_removed() {
    world::virtual_world::run(1, async |env| {
        let remotes = Rc::new(Cell::new(r#"{"eu":{"connected":false,"mode":"sniff"}}"#));
        let told = remotes.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, CALM)),
            "/_remote/info" => Some((200, told.get())),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let mut known = Vec::new();
        for _ in 0..3 {
            known.push(sampler.look(Depth::Light).await.unwrap().remotes.len());
            env.sleep(Duration::from_secs(6)).await;
            remotes.set("{}");
        }
        assert_eq!(known, [1, 1, 0]);
    });
}

/// Snapshots are asked for every ten seconds: the same question tells since when one stands still.
#[test]
fn a_snapshot_says_for_how_long_it_stands_still() {
    const AT: [&str; 2] = [
        r#"{"snapshots":[{"snapshot":"s","repository":"r","stats":{"processed":{"size_in_bytes":7}}}]}"#,
        r#"{"snapshots":[{"snapshot":"s","repository":"r","stats":{"processed":{"size_in_bytes":8}}}]}"#,
    ];
    world::virtual_world::run(1, async |env| {
        let (snapshots, asked) = (Rc::new(Cell::new(AT[0])), Rc::new(Cell::new(0)));
        let (told, counted) = (snapshots.clone(), asked.clone());
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, CALM)),
            "/_snapshot/_status" => {
                counted.set(counted.get() + 1);
                Some((200, told.get()))
            }
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        let mut still_s = Vec::new();
        for second in 0..=40 {
            if second == 35 {
                snapshots.set(AT[1]);
            }
            let look = sampler.look(Depth::Light).await.unwrap();
            still_s.push(look.snapshots[0].still_ms.map(|ms| (ms as f64 / 1e3).round()));
            env.sleep(Duration::from_secs(1)).await;
        }
        let at = [0, 10, 25, 30, 40].map(|second| still_s[second]);
        assert_eq!(at, [None, Some(10.0), Some(20.0), Some(30.0), None]);
        assert_eq!(asked.get(), 5);
    });
}

/// Of two recoveries that began after the first was seen, one was over before the next look; the other goes on, and one
/// was over long before. The short one is counted once.
#[test]
fn bytes_of_a_recovery_that_no_look_saw_are_told_once() {
    const FIRST: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","target":{"name":"b"},
        "start_time_in_millis":10,"index":{"size":{"recovered_in_bytes":50}}}]}}"#;
    const NEXT: &str = r#"{"logs":{"shards":[{"id":3,"type":"PEER","stage":"INDEX","target":{"name":"b"},
        "start_time_in_millis":30,"index":{"size":{"recovered_in_bytes":5}}}]}}"#;
    const ALL: &str = r#"{"logs":{"shards":[
        {"id":0,"type":"PEER","stage":"DONE","target":{"name":"b"},
         "start_time_in_millis":10,"index":{"size":{"recovered_in_bytes":90}}},
        {"id":1,"type":"PEER","stage":"DONE","target":{"name":"b"},
         "start_time_in_millis":5,"index":{"size":{"recovered_in_bytes":800}}},
        {"id":2,"type":"PEER","stage":"DONE","target":{"name":"b"},
         "start_time_in_millis":20,"index":{"size":{"recovered_in_bytes":70}}},
        {"id":3,"type":"PEER","stage":"INDEX","target":{"name":"b"},
         "start_time_in_millis":30,"index":{"size":{"recovered_in_bytes":5}}}]}}"#;
    world::virtual_world::run(1, async |env| {
        let active = Rc::new(Cell::new(FIRST));
        let now = active.clone();
        let answer = move |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, WAITS)),
            "/_recovery" => Some((200, now.get())),
            "/logs/_recovery" => Some((200, ALL)),
            _ => Some((200, "{}")),
        };
        let (mut sampler, _server) = serve(&env, answer).await;
        for (going_on, unseen_bytes) in [(FIRST, None), (NEXT, Some(70)), ("{}", None)] {
            active.set(going_on);
            let look = sampler.look(Depth::Full).await.unwrap();
            assert_eq!(look.unseen_bytes, unseen_bytes, "{:?}", look.recoveries);
        }
    });
}
