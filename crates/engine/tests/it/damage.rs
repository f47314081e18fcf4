//! Damage at rest: files of a node are gone or are not what they were while it is down. Afterwards everything is whole,
//! or repaired from another copy, or refused by name; nothing is ever deleted that nobody asked to delete.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use world::model::{Disk, DiskScheduler};
use world::{Env, real_world, virtual_world};

use crate::common::{Cluster, eventually, raw};
use crate::waits::create_on;

testbed::both_worlds!(
    an_index_deleted_while_a_node_was_away_goes_from_its_disk,
    what_has_no_metadata_goes_once_nobody_needs_it,
    health_is_green_when_everything_is_found,
    an_accepted_loss_begins_a_history_that_every_copy_takes_over;
    real:
    without_its_state_a_cluster_deletes_nothing_and_imports_what_it_is_told_to,
    a_damaged_state_is_read_from_its_twin_and_two_are_refused,
    a_state_that_was_stored_by_half_is_taken_back,
    a_copy_that_could_not_be_removed_is_removed_once_the_disk_lets_it,
    leases_that_cannot_be_read_now_are_not_taken_for_none,
    a_copy_that_cannot_be_read_now_is_not_replaced,
    a_damaged_copy_is_replaced_and_that_is_said,
    a_recovery_whose_reads_panic_says_so_and_is_tried_again,
    what_an_index_was_goes_at_the_next_start_where_its_copies_are_gone,
    a_log_that_lost_its_end_and_has_no_other_copy_is_red_and_says_what_is_missing,
    a_log_without_its_checkpoint_is_opened_at_ones_word,
    exchanged_directories_of_two_shards_are_refused,
);

/// A node gives up after half a minute.
#[test]
fn a_node_without_its_manager_says_so() {
    virtual_world::run(7, a_node_that_has_not_joined_says_so);
}

async fn count(c: &Cluster, index: &str) -> (u16, Value) {
    let (status, answer) = c.ask("GET", &format!("/{index}/_count"), Value::Null).await;
    (status, answer["count"].clone())
}

/// Stops all nodes, has something done to their files, and starts them again.
async fn restart(c: &mut Cluster, damage: impl FnOnce(&[PathBuf])) {
    let dirs: Vec<PathBuf> = (0..c.nodes.len()).map(|number| c.data_dir(number)).collect();
    c.stop_all().await;
    damage(&dirs);
    c.start_all().await;
}

fn remove_states(dirs: &[PathBuf]) {
    for name in ["state.json", "state.second.json"] {
        fs::remove_file(dirs[0].join(name)).unwrap();
    }
}

/// What the nodes of this process warned of.
static WARNED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

fn note_warnings() {
    engine::core::print_warnings_with(|words| WARNED.lock().unwrap().push(words.to_owned()));
}

async fn without_its_state_a_cluster_deletes_nothing_and_imports_what_it_is_told_to(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    for index in ["kept", "unwanted"] {
        c.create(index, 2, 1).await;
        assert_eq!(c.index(index, 0, 50).await, 50);
    }
    let uuid = |c: &Cluster, index: &str| c.any().state().indices[index].uuid.clone();
    let (kept, unwanted) = (uuid(&c, "kept"), uuid(&c, "unwanted"));
    let digests = c.digests("kept").await;
    note_warnings();
    restart(&mut c, remove_states).await;
    eventually(&env, "it is said that what is here is dangling", async || {
        let warned = WARNED.lock().unwrap().join("\n");
        warned.contains("[c-1] index [kept] is dangling")
    })
    .await;
    assert_eq!(count(&c, "kept").await.0, 404);
    let health = c.get("/_cluster/health").await;
    assert_eq!((&health["status"], &health["dangling_indices"]), (&json!("green"), &json!(2)));
    let listed = c.get("/_dangling").await;
    let listed = listed["dangling_indices"].as_array().unwrap().clone();
    let of = |uuid: &str| listed.iter().find(|one| one["index_uuid"] == uuid).unwrap();
    assert_eq!(of(&kept)["index_name"], "kept");
    assert_eq!(of(&unwanted)["node_ids"], json!(["c-0", "c-1"]));

    let import = format!("/_dangling/{kept}");
    c.refuses(400, "accept_data_loss", "POST", &import, Value::Null).await;
    c.refuses(400, "[nothing]", "POST", "/_dangling/nothing?accept_data_loss=true", Value::Null)
        .await;
    c.answers(202, "POST", &format!("{import}?accept_data_loss=true"), Value::Null).await;
    c.green("kept").await;
    assert_eq!(c.digests("kept").await, digests, "every copy, to the document");
    assert_eq!(c.index("kept", 50, 60).await, 10);

    let dir = c.data_dir(1).join("indices").join(&unwanted);
    assert!(dir.exists());
    c.answers(202, "DELETE", &format!("/_dangling/{unwanted}?accept_data_loss=true"), Value::Null)
        .await;
    eventually(&env, "its files are deleted", async || !dir.exists()).await;
    assert_eq!(c.get("/_dangling").await["dangling_indices"], json!([]));
    restart(&mut c, |_| {}).await;
    c.green("kept").await;
    c.post("/kept/_refresh").await;
    assert_eq!(count(&c, "kept").await, (200, json!(60)));
}

async fn a_damaged_state_is_read_from_its_twin_and_two_are_refused(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 20).await;
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "").unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        },
    ];
    for damage in damages {
        for name in ["state.json", "state.second.json"] {
            restart(&mut c, |dirs| damage(&dirs[0].join(name))).await;
            c.green("a").await;
            assert_eq!(count(&c, "a").await, (200, json!(20)), "{name}");
        }
    }
    c.stop_node(0).await;
    for name in ["state.json", "state.second.json"] {
        damages[3](&c.data_dir(0).join(name));
    }
    let error = rest::start(&env, c.config(0)).await.err().unwrap().to_string();
    assert!(error.contains("state.json") && error.contains("damaged"), "{error}");
    assert!(c.data_dir(0).join("indices").read_dir().unwrap().next().is_some());
}

/// One of its two files had been replaced when the other could not be: a start must not find what was refused.
async fn a_state_that_was_stored_by_half_is_taken_back(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 20).await;
    let second = c.data_dir(0).join("state.second.json");
    fs::remove_file(&second).unwrap();
    // No file takes the place of a directory.
    fs::create_dir(&second).unwrap();
    let (status, said) = c.ask("PUT", "/refused", Value::Null).await;
    assert!(status >= 500 && said.to_string().contains("nothing was changed"), "{said}");
    restart(&mut c, |_| fs::remove_dir(&second).unwrap()).await;
    c.green("a").await;
    assert_eq!(count(&c, "refused").await.0, 404);
    assert_eq!(count(&c, "a").await, (200, json!(20)));
}

/// No state follows that of the deletion: the node itself has it tried again.
async fn a_copy_that_could_not_be_removed_is_removed_once_the_disk_lets_it(env: Env) {
    let c = Cluster::holding(&env, "c", 1, ("a", 2, 0), 20).await;
    let index = c.data_dir(0).join("indices").join(&c.any().state().indices["a"].uuid);
    let metadata = [0, 1].map(|shard| index.join(format!("{shard}.copy.json")));
    for path in &metadata {
        fs::remove_file(path).unwrap();
        // Whoever removes a file removes no directory.
        fs::create_dir(path).unwrap();
    }
    c.delete("/a").await;
    env.sleep(Duration::from_millis(500)).await;
    assert!(index.join("0").exists() && index.join("1").exists());
    fs::remove_dir(&metadata[0]).unwrap();
    eventually(&env, "its files are deleted", async || !index.join("0").exists()).await;
    assert!(index.join("1").exists());
    // What is still to be removed keeps no node from stopping.
    c.stop().await;
}

/// What is kept for followers would go.
async fn leases_that_cannot_be_read_now_are_not_taken_for_none(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 20).await;
    let index = c.data_dir(0).join("indices").join(&c.any().state().indices["a"].uuid);
    let leases = index.join("0.leases.json");
    restart(&mut c, |_| {
        let _ = fs::remove_file(&leases);
        // Whoever reads a file reads no directory.
        fs::create_dir(&leases).unwrap();
    })
    .await;
    c.explains("cannot read the retention leases").await;
    fs::remove_dir(&leases).unwrap();
    c.post("/_cluster/reroute?retry_failed=true").await;
    c.green("a").await;
    assert_eq!(count(&c, "a").await, (200, json!(20)));
}

/// It may be the last one that is whole.
async fn a_copy_that_cannot_be_read_now_is_not_replaced(env: Env) {
    let mut c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 50).await;
    let digests = c.digests("a").await;
    let copy = c.copy_dir(1, &c.any().state().indices["a"].uuid, 0);
    let mut commit = PathBuf::new();
    restart(&mut c, |_| {
        let mut files = fs::read_dir(&copy).unwrap().map(|file| file.unwrap().path());
        commit = files.find(|file| file.extension().is_some_and(|e| e == "json")).unwrap();
        fs::rename(&commit, copy.join("kept")).unwrap();
        // Whoever reads a file reads no directory.
        fs::create_dir(&commit).unwrap();
    })
    .await;
    c.explains("how far it goes cannot be read: read ").await;
    fs::remove_dir(&commit).unwrap();
    fs::rename(copy.join("kept"), &commit).unwrap();
    c.post("/_cluster/reroute?retry_failed=true").await;
    c.green("a").await;
    assert_eq!(c.digests("a").await, digests);
}

async fn a_damaged_copy_is_replaced_and_that_is_said(env: Env) {
    let mut c = Cluster::holding(&env, "replaced", 2, ("a", 1, 1), 50).await;
    c.post("/a/_flush").await;
    let digests = c.digests("a").await;
    let copy = c.copy_dir(1, &c.any().state().indices["a"].uuid, 0);
    note_warnings();
    c.stop_node(1).await;
    let file = store::damage_largest_file(&env, &copy).await.unwrap();
    c.start_node(1).await;
    c.green("a").await;
    assert_eq!(c.digests("a").await, digests);
    let warned = WARNED.lock().unwrap().clone();
    let is_it = |line: &String| line.starts_with("[replaced-1] ") && line.contains(&file);
    assert!(warned.iter().any(is_it), "{warned:?}");
}

/// In a process of a library, which goes on; one that is a node's own ends.
async fn a_recovery_whose_reads_panic_says_so_and_is_tried_again(env: Env) {
    let c = Cluster::start(&env, "c", 2).await;
    create_on(&c, "a", "c-0").await;
    c.must("PUT", "/a/_doc/1?refresh=true", json!({ "n": 1 })).await;
    let host = &c.nodes["c-1"].core().env;
    // No time is as long as both waits of a read together.
    let (seek, scheduler) = (Duration::MAX, DiskScheduler::Cfq);
    host.emulate_disk(Some(Disk { seek, scheduler, ..Disk::default() }));
    let settings =
        json!({ "index.number_of_replicas": 1, "index.routing.allocation.require._name": null });
    c.must("PUT", "/a/_settings", settings).await;
    c.explains("it panicked").await;
    host.emulate_disk(None);
    c.post("/_cluster/reroute?retry_failed=true").await;
    c.green("a").await;
    c.has(2, 1).await;
}

/// The node was killed in between.
async fn what_an_index_was_goes_at_the_next_start_where_its_copies_are_gone(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 20).await;
    let indices = c.data_dir(0).join("indices");
    let kept = indices.join(&c.any().state().indices["a"].uuid).join("index.json");
    eventually(&env, "what the index is has been written", async || kept.exists()).await;
    let gone = indices.join("gone");
    restart(&mut c, |_| {
        fs::create_dir(&gone).unwrap();
        fs::write(gone.join("index.json"), "what it was").unwrap();
    })
    .await;
    assert!(kept.exists() && !gone.exists());
    c.green("a").await;
    assert_eq!(count(&c, "a").await, (200, json!(20)));
}

/// The files of the log of a node's copies.
fn logs(dir: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for index in fs::read_dir(dir.join("indices")).unwrap().map(Result::unwrap) {
        for copy in fs::read_dir(index.path()).unwrap().map(Result::unwrap) {
            let Ok(files) = fs::read_dir(copy.path()) else { continue };
            let files = files.map(|file| file.unwrap().path());
            logs.extend(files.filter(|file| file.extension().is_some_and(|e| e == "log")));
        }
    }
    logs
}

fn cut_in_half(path: &Path) {
    let len = fs::metadata(path).unwrap().len();
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len / 2).unwrap();
}

#[test]
fn a_log_that_lost_its_end_is_repaired_from_another_copy() {
    let damages: [fn(&Path); 3] =
        [|path| fs::remove_file(path).unwrap(), |path| fs::write(path, "").unwrap(), cut_in_half];
    for damage in damages {
        for node in 0..2 {
            real_world::run(7, move |env| async move {
                let mut c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 200).await;
                let digests = c.digests("a").await;
                restart(&mut c, |dirs| logs(&dirs[node]).iter().for_each(|log| damage(log))).await;
                c.green("a").await;
                assert_eq!(c.digests("a").await, digests);
                c.stop().await;
            });
        }
    }
}

async fn a_log_that_lost_its_end_and_has_no_other_copy_is_red_and_says_what_is_missing(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 200).await;
    restart(&mut c, |dirs| logs(&dirs[0]).iter().for_each(|log| cut_in_half(log))).await;
    c.explains(" to 199 are missing").await;
    assert_eq!(c.get("/_cluster/health").await["status"], "red");
    assert_eq!(count(&c, "a").await.0, 503);
}

async fn an_accepted_loss_begins_a_history_that_every_copy_takes_over(env: Env) {
    let mut c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 100).await;
    let uuid = c.any().state().indices["a"].uuid.clone();
    let histories = async |c: &Cluster| {
        let mut histories = Vec::new();
        for node in 0..2 {
            let (host, dir) = (env.host(&c.config(node).name), c.copy_dir(node, &uuid, 0));
            let commit = store::committed(&host, &dir).await.unwrap();
            histories.push(commit.unwrap().history_uuid);
        }
        histories
    };
    c.kill_all().await;
    let before = histories(&c).await;
    assert_eq!(before[0], before[1]);
    c.accept_data_loss(0, &uuid, 0);
    c.start_node(0).await;
    eventually(&env, "the primary is alone", async || {
        c.get("/_cluster/health").await["status"] == "yellow"
    })
    .await;
    assert_eq!(c.index("a", 100, 110).await, 10);
    c.start_node(1).await;
    c.green("a").await;
    let digests = c.digests("a").await;
    assert_eq!(digests.iter().map(|copy| copy.1).collect::<Vec<_>>(), [110, 110]);
    c.kill_all().await;
    let after = histories(&c).await;
    assert!(after[0] == after[1] && after[0] != before[0], "{before:?} {after:?}");
    c.start_all().await;
    c.green("a").await;
    assert_eq!(c.digests("a").await, digests);
}

/// Where no other copy exists, only somebody's explicit word opens a log of whose end nobody knows.
async fn a_log_without_its_checkpoint_is_opened_at_ones_word(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 1, 0), 200).await;
    let digests = c.digests("a").await;
    let checkpoint = |dirs: &[PathBuf]| logs(&dirs[0])[0].with_file_name("oplog.ckp");
    restart(&mut c, |dirs| fs::remove_file(checkpoint(dirs)).unwrap()).await;
    c.explains("write accept_data_loss into it").await;
    assert_eq!(count(&c, "a").await.0, 503);
    restart(&mut c, |dirs| fs::write(checkpoint(dirs), "accept_data_loss\n").unwrap()).await;
    c.green("a").await;
    assert_eq!(c.digests("a").await, digests);
    assert_eq!(c.index("a", 200, 210).await, 10);
    restart(&mut c, |_| {}).await;
    c.green("a").await;
    assert_eq!(count(&c, "a").await, (200, json!(210)));
}

async fn exchanged_directories_of_two_shards_are_refused(env: Env) {
    let mut c = Cluster::holding(&env, "c", 1, ("a", 2, 0), 50).await;
    let uuid = c.any().state().indices["a"].uuid.clone();
    restart(&mut c, |dirs| {
        let dir = dirs[0].join("indices").join(uuid);
        fs::rename(dir.join("0"), dir.join("x")).unwrap();
        fs::rename(dir.join("1"), dir.join("0")).unwrap();
        fs::rename(dir.join("x"), dir.join("1")).unwrap();
    })
    .await;
    c.explains("another shard").await;
    assert_eq!(count(&c, "a").await.0, 503);
}

/// A node that is away while an index is deleted hears of it when it comes back.
async fn an_index_deleted_while_a_node_was_away_goes_from_its_disk(env: Env) {
    let mut c = Cluster::start(&env, "c", 3).await;
    for index in ["gone", "stays"] {
        c.create(index, 1, 2).await;
        assert_eq!(c.index(index, 0, 10).await, 10);
    }
    let uuid = c.any().state().indices["gone"].uuid.clone();
    c.stop_node(2).await;
    c.delete("/gone").await;
    c.start_node(2).await;
    c.green("stays").await;
    let dir = c.node(2).copy_dir(&uuid, 0);
    let host = env.host("c-2");
    eventually(&env, "its files are deleted", async || {
        !store::holds_anything(&host, &dir).await.unwrap()
    })
    .await;
    assert_eq!(c.get("/_dangling").await["dangling_indices"], json!([]));
}

/// A kill leaves directories without metadata: of a copy that was being made or deleted, or whose first files had come.
async fn what_has_no_metadata_goes_once_nobody_needs_it(env: Env) {
    let mut c = Cluster::holding(&env, "c", 4, ("a", 1, 1), 50).await;
    let state = c.any().state();
    let shard = state.shard("a", 0).unwrap();
    let free = (1..4).find(|number| shard.on_node(&format!("c-{number}")).is_none()).unwrap();
    let uuids = [state.indices["a"].uuid.as_str(), "received", "unknown"];
    let [known, received, unknown] = uuids.map(|uuid| c.node(free).copy_dir(uuid, 0));
    c.stop_node(free).await;
    let host = env.host(&format!("c-{free}"));
    for dir in [&known, &unknown] {
        let (mapping, options) = (query::Mapping::default(), store::Options::default());
        let copy = store::Shard::create(&host, dir, &mapping, options).await.unwrap();
        copy.close().await.unwrap();
    }
    let commit = store::committed(&host, &known).await.unwrap().unwrap();
    drop(store::Incoming::begin(&host, &received, commit).await.unwrap());
    c.start_node(free).await;
    for dir in [known, received] {
        eventually(&env, "what nobody needs is deleted", async || {
            !store::holds_anything(&host, &dir).await.unwrap()
        })
        .await;
    }
    // It may be all that there is of its index.
    assert!(store::holds_operations(&host, &unknown).await.unwrap());
    assert_eq!(count(&c, "a").await, (200, json!(50)));
}

/// A node whose manager is not there knows of nothing, which is not the same as that there is nothing.
async fn a_node_that_has_not_joined_says_so(env: Env) {
    let mut c = Cluster::holding(&env, "c", 2, ("a", 1, 1), 10).await;
    c.stop_node(1).await;
    let config = c.config(1);
    c.stop_node(0).await;
    let host = env.host("c-1");
    let serve = |node: &engine::Node| {
        let (node, env) = (node.clone(), env.clone());
        node.core().clone().keep("asks", async move {
            loop {
                let (status, health) =
                    raw(&node, "GET", "/_cluster/health", Default::default()).await;
                assert_eq!((status, &health["status"]), (200, &json!("red")), "{health}");
                for path in ["/a/_count", "/_cat/indices", "/a/_search", "/_cluster/state"] {
                    let (status, said) = raw(&node, "GET", path, Default::default()).await;
                    let is_blocked = said["error"]["type"] == "cluster_block_exception";
                    assert!(status == 503 && is_blocked, "{path}: {said}");
                }
                env.sleep(Duration::from_millis(100)).await;
            }
        });
    };
    let node = engine::Node::start(&host, config, "nowhere:0".to_owned(), Box::new(serve));
    let error = node.await.err().unwrap().to_string();
    assert!(error.contains("could not join"), "{error}");
}

/// From the first answer after a start on: while health is not red a count finds everything, and until then it says
/// which
/// shards it lacks.
async fn health_is_green_when_everything_is_found(env: Env) {
    let mut c = Cluster::start(&env, "c", 2).await;
    for index in ["a", "b"] {
        c.create(index, 2, 1).await;
        assert_eq!(c.index(index, 0, 100).await, 100);
    }
    let mut seen = Vec::new();
    c.stop_node(1).await;
    c.stop_node(0).await;
    c.start_node(0).await;
    for round in 0..if env.is_virtual() { 2000 } else { 100_000 } {
        if round == 20 {
            c.start_node(1).await;
        }
        let health = c.get("/_cluster/health").await;
        let status = health["status"].as_str().unwrap().to_owned();
        if !env.is_virtual() {
            // Where disks are slow, the other node may hear late of what the manager knows.
            let version = c.node(0).state().version;
            let has_heard = |node: &engine::Node| node.state().version >= version;
            eventually(&env, "both have heard", async || c.nodes.values().all(has_heard)).await;
        }
        for node in c.nodes.values() {
            for index in ["a", "b"] {
                let path = format!("/{index}/_count");
                let (answered, found) = raw(node, "GET", &path, Default::default()).await;
                // An answer that lacks a shard says so, and there is none of that once it is no longer red.
                if status != "red" || answered == 200 && found["_shards"]["failed"] == 0 {
                    assert_eq!(answered, 200, "{status}: {found}");
                    assert_eq!(found["count"], 100, "{status}: {found}");
                }
            }
        }
        if seen.last() != Some(&status) {
            seen.push(status.clone());
        }
        if status == "green" {
            break;
        }
        env.sleep(Duration::from_millis(2)).await;
    }
    let rank = |status: &String| ["red", "yellow", "green"].iter().position(|one| one == status);
    assert!(seen.is_sorted_by_key(rank), "from red to yellow to green: {seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("green"));

    // So does whoever waits for it.
    c.stop_node(1).await;
    c.stop_node(0).await;
    c.start_node(0).await;
    c.start_node(1).await;
    let path = "/_cluster/health?wait_for_status=green&timeout=300s";
    assert_eq!(c.get(path).await["status"], "green");
    for index in ["a", "b"] {
        let found = c.counted(index).await;
        assert_eq!((&found["count"], &found["_shards"]["failed"]), (&json!(100), &json!(0)));
    }
}
