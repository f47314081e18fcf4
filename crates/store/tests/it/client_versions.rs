//! Versions that clients count: refused where they are too low, on every copy, after a refresh, a recovery and an open.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::*;
use store::{Rejection, Shard, WriteOutcome, WriteRequest};
use world::Env;

crate::in_both_worlds!(
    a_version_must_be_higher_than_the_last,
    a_replica_knows_the_versions_of_its_primary,
    versions_are_there_after_an_open,
    deletions_of_nothing_take_no_memory_for_good,
);

fn versioned(id: &str, version: u64, or_equal: bool, n: Option<u64>) -> WriteRequest {
    let (id, source) = (id.into(), n.map(source));
    WriteRequest::Versioned { id, version, or_equal, source, routing: None }
}

/// The version of a write, or that of the last one where it is refused.
async fn decide(shard: &Shard, request: WriteRequest) -> Result<(u64, WriteOutcome), u64> {
    match shard.index(vec![request]).await.unwrap().remove(0) {
        Ok((op, outcome)) => Ok((op.version, outcome)),
        Err(Rejection::Version { version, .. }) => Err(version),
        Err(other) => panic!("{other}"),
    }
}

async fn a_version_must_be_higher_than_the_last(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    for when in ["in memory", "searchable"] {
        let id = format!("of {when}");
        let put = |version, or_equal| versioned(&id, version, or_equal, Some(1));
        let delete = |version, or_equal| versioned(&id, version, or_equal, None);
        for (request, expected) in [
            (put(5, false), Ok((5, WriteOutcome::Created))),
            (put(5, false), Err(5)),
            (put(4, true), Err(5)),
            (put(5, true), Ok((5, WriteOutcome::Updated))),
            (delete(5, false), Err(5)),
            (delete(9, false), Ok((9, WriteOutcome::Deleted))),
            (delete(9, false), Err(9)),
            (put(9, false), Err(9)),
            (delete(11, true), Ok((11, WriteOutcome::NotFound))),
            (put(12, false), Ok((12, WriteOutcome::Created))),
        ] {
            if when == "searchable" {
                shard.refresh().await.unwrap();
            }
            assert_eq!(decide(&shard, request.clone()).await, expected, "{when} {request:?}");
        }
        assert_eq!(shard.get(&id).await.unwrap().unwrap().version, 12, "{when}");
    }
    let said = shard.index(vec![versioned("of in memory", 3, true, Some(1))]).await.unwrap();
    let said = said[0].as_ref().unwrap_err().to_string();
    assert!(said.ends_with("current version [12] is higher than the one provided [3]"), "{said}");
    // Other writes count on.
    assert_eq!(decide(&shard, put("of searchable", 2)).await, Ok((13, WriteOutcome::Updated)));
    let zero = decide(&shard, versioned("zero", 0, false, Some(1))).await;
    assert_eq!(zero, Ok((0, WriteOutcome::Created)));
    if env.is_virtual() {
        decide(&shard, versioned("zero", 7, false, None)).await.unwrap();
        env.sleep(Duration::from_secs(61)).await;
        let again = decide(&shard, versioned("zero", 3, false, Some(1))).await;
        assert_eq!(again, Ok((3, WriteOutcome::Created)), "a deletion is forgotten");
    }
}

async fn a_replica_knows_the_versions_of_its_primary(env: Env, dir: PathBuf) {
    let primary = create(&env, &dir.join("primary")).await;
    let replica = create(&env, &dir.join("replica")).await;
    let requests = vec![
        versioned("a", 5, false, Some(1)),
        versioned("b", 6, false, Some(2)),
        versioned("b", 8, false, None),
    ];
    let results = primary.index(requests).await.unwrap();
    replica.apply(results.into_iter().map(|result| result.unwrap().0).collect()).await.unwrap();
    replica.refresh().await.unwrap();
    assert_eq!(replica.get("a").await.unwrap().unwrap().version, 5);
    assert_eq!(decide(&replica, versioned("a", 5, false, Some(1))).await, Err(5));
    assert_eq!(decide(&replica, versioned("b", 7, false, Some(1))).await, Err(8));
}

async fn versions_are_there_after_an_open(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    write(&shard, vec![versioned("a", 5, false, Some(1))]).await;
    shard.flush().await.unwrap();
    write(&shard, vec![versioned("b", 6, false, Some(2)), versioned("c", 7, false, None)]).await;
    shard.sync().await.unwrap();
    drop(shard);
    let shard = open(&env, &dir).await.unwrap();
    for (id, version) in [("a", 5), ("b", 6), ("c", 7)] {
        let again = decide(&shard, versioned(id, version, false, Some(3))).await;
        assert_eq!(again, Err(version), "{id}");
    }
}

/// There is nothing that a refresh would show of them.
async fn deletions_of_nothing_take_no_memory_for_good(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let before = shard.unrefreshed_bytes();
    write(&shard, vec![delete("a"), versioned("b", 7, false, None)]).await;
    assert!(shard.unrefreshed_bytes() > before);
    shard.flush().await.unwrap();
    assert_eq!(shard.unrefreshed_bytes(), before);
    assert_eq!(decide(&shard, versioned("b", 7, false, Some(1))).await, Err(7));
}
