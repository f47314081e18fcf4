//! A log, or all of a copy, that was put back as it was earlier while its node was down. The copies in sync are asked:
//! what was acknowledged is there, or it is refused by name, and no copy that is whole is replaced by one that is not.

use std::fs;
use std::path::Path;

use world::{Env, real_world, virtual_world};

use crate::common::{Cluster, eventually};
use crate::every_file::{Files, read_all, write_all};

#[derive(Clone, Copy, Debug)]
enum What {
    Log,
    Directory,
}

type Digests = Vec<(u64, u64, String)>;

/// Puts back what a node's first shard had.
fn put_back(root: &Path, older: &Files, what: What) {
    let is_meant = |path: &Path| {
        let is_of_copy = path.components().any(|part| part.as_os_str() == "0");
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        is_of_copy && (matches!(what, What::Directory) || name.starts_with("oplog"))
    };
    for path in read_all(root).keys().filter(|path| is_meant(path)) {
        fs::remove_file(root.join(path)).unwrap();
    }
    let older = older.iter().filter(|(path, _)| is_meant(path));
    write_all(root, &older.map(|(path, bytes)| (path.clone(), bytes.clone())).collect());
}

/// 150 documents, and then 350 more, on three nodes that are stopped; what a node had in between.
async fn stopped(env: &Env, node: usize) -> (Cluster, Files, Digests) {
    let mut c = Cluster::holding(env, "c", 3, ("a", 1, 2), 150).await;
    c.stop_all().await;
    let older = read_all(&c.data_dir(node));
    c.start_all().await;
    c.green("a").await;
    for from in (150..500).step_by(50) {
        assert_eq!(c.index("a", from, from + 50).await, 50);
    }
    let digests = c.digests("a").await;
    c.stop_all().await;
    (c, older, digests)
}

/// It is green some time, and never without what was acknowledged.
async fn is_whole(c: &Cluster, digests: &Digests) {
    eventually(&c.env, "all is there", async || {
        let health = c.get("/_cluster/health").await;
        if health["status"] != "green" {
            return false;
        }
        assert_eq!(c.digests("a").await, *digests);
        true
    })
    .await;
}

#[test]
fn the_word_of_the_other_copies_counts() {
    for what in [What::Log, What::Directory] {
        for node in 0..3 {
            real_world::run(7, async |env| {
                let (mut c, older, digests) = stopped(&env, node).await;
                put_back(&c.data_dir(node), &older, what);
                c.start_all().await;
                is_whole(&c, &digests).await;
                c.stop().await;
            });
        }
    }
}

/// Green with 150 of 500 documents where nobody says how far the copies go.
#[test]
#[should_panic(expected = "assertion")]
fn without_their_word_documents_are_lost() {
    virtual_world::run(7, |env| async move {
        env.plant(engine::planted::EXTENTS_UNSAID);
        put_back_in_virtual_time(env).await;
    });
}

#[test]
fn so_it_does_in_virtual_time() {
    virtual_world::run(7, put_back_in_virtual_time);
}

async fn put_back_in_virtual_time(env: Env) {
    let mut c = Cluster::with(&env, "c", 3, ("a", 1, 2)).await;
    for from in (0..500).step_by(50) {
        assert_eq!(c.index("a", from, from + 50).await, 50);
    }
    let digests = c.digests("a").await;
    let uuid = c.any().state().indices["a"].uuid.clone();
    for node in 0..3 {
        c.kill_node(node).await;
    }
    let dir = c.data_dir(0).join("indices").join(uuid).join("0");
    assert!(store::put_log_back(&env.host("c-0"), &dir, 150));
    c.start_all().await;
    is_whole(&c, &digests).await;
    c.stop().await;
}

/// Its primary took writes before the other copies came, and may stay. They are kept for whoever has to decide.
#[test]
fn a_primary_that_lacks_what_was_acknowledged_replaces_no_copy() {
    real_world::run(7, |env| async move {
        let (mut c, older, _) = stopped(&env, 0).await;
        put_back(&c.data_dir(0), &older, What::Directory);
        c.start_node(0).await;
        eventually(&env, "the primary is alone", async || {
            c.get("/_cluster/health").await["status"] == "yellow"
        })
        .await;
        assert_eq!(c.index("a", 1000, 1010).await, 10);
        c.start_node(1).await;
        c.start_node(2).await;
        c.explains("the primary lacks operations 160 to ").await;
        assert_eq!(c.get("/_cluster/health").await["status"], "yellow");
        let uuid = c.any().state().indices["a"].uuid.clone();
        c.stop_all().await;
        for node in [1, 2] {
            let dir = c.data_dir(node).join("indices").join(&uuid).join("0");
            let extent = store::extent(&env, &dir).await.unwrap();
            assert_eq!(extent.next_seq_no, 500);
        }
        c.stop().await;
    });
}
