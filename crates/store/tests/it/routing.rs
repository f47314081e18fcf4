//! `_routing` is a part of a document: in the log and in the files, on the copy that was written and on others.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::*;
use store::{Options, Shard, WriteRequest};
use world::Env;

crate::in_both_worlds!(
    a_document_keeps_its_routing_until_another_write_says_otherwise,
    a_routing_is_read_from_the_log_after_a_drop,
    a_routing_comes_with_files_and_with_operations,
);

fn routed(id: &str, n: u64, routing: Option<&str>) -> WriteRequest {
    let routing = routing.map(Arc::from);
    WriteRequest::Index { id: id.into(), source: source(n), auto_id: false, create: false, routing }
}

async fn routing(shard: &Shard, id: &str) -> Option<String> {
    let found = shard.get(id).await.unwrap().unwrap();
    found.routing.as_deref().map(str::to_owned)
}

async fn a_document_keeps_its_routing_until_another_write_says_otherwise(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    let generated = WriteRequest::Index {
        id: "c".into(),
        source: source(3),
        auto_id: true,
        create: false,
        routing: Some("of c".into()),
    };
    write(&shard, vec![routed("a", 1, Some("r")), routed("b", 2, None), generated]).await;
    for when in ["in memory", "searchable", "committed", "merged"] {
        match when {
            "searchable" => shard.refresh().await.unwrap(),
            "committed" => drop(shard.flush().await.unwrap()),
            "merged" => {
                write(&shard, vec![put("d", 4)]).await;
                shard.force_merge(1).await.unwrap();
            }
            _ => {}
        }
        assert_eq!(routing(&shard, "a").await.as_deref(), Some("r"), "{when}");
        assert_eq!(routing(&shard, "b").await, None, "{when}");
        assert_eq!(routing(&shard, "c").await.as_deref(), Some("of c"), "{when}");
    }
    let before = shard.digest().await.unwrap();
    let read = shard.get("a").await.unwrap().unwrap();
    let unchanged = WriteRequest::IfUnchanged {
        id: "a".into(),
        seq_no: read.seq_no,
        primary_term: 1,
        source: Some(source(1)),
        routing: Some("s".into()),
    };
    write(&shard, vec![unchanged]).await;
    assert_eq!(routing(&shard, "a").await.as_deref(), Some("s"));
    assert_ne!(shard.digest().await.unwrap(), before, "the routing counts");
    write(&shard, vec![routed("a", 1, None)]).await;
    shard.refresh().await.unwrap();
    assert_eq!(routing(&shard, "a").await, None);
}

async fn a_routing_is_read_from_the_log_after_a_drop(env: Env, dir: PathBuf) {
    let shard = create(&env, &dir).await;
    write(&shard, vec![routed("a", 1, Some("r")), routed("b", 2, None)]).await;
    shard.sync().await.unwrap();
    drop(shard);
    let shard = open(&env, &dir).await.unwrap();
    assert_eq!(shard.opened().replayed_ops, 2);
    assert_eq!(routing(&shard, "a").await.as_deref(), Some("r"));
    assert_eq!(routing(&shard, "b").await, None);
}

async fn a_routing_comes_with_files_and_with_operations(env: Env, dir: PathBuf) {
    let source = sample(&env, &dir.join("source")).await;
    write(&source, vec![routed("a", 1, Some("r"))]).await;
    source.flush().await.unwrap();
    let (target, _) = recover(&env, &source, &dir.join("target"), 1000).await;
    assert_eq!(routing(&target, "a").await.as_deref(), Some("r"), "with the files");
    source.retain_ops_from("recovery", source.max_seq_no().map(|max| max + 1));
    let from = source.max_seq_no().unwrap() + 1;
    write(&source, vec![routed("b", 2, Some("s")), put("c", 3)]).await;
    let ops = source.ops_between(from..=u64::MAX, 10, usize::MAX).await.unwrap();
    let of_ops: Vec<Option<&str>> = ops.iter().map(|op| op.routing().map(|by| &**by)).collect();
    assert_eq!(of_ops, [Some("s"), None]);
    target.apply(ops).await.unwrap();
    assert_eq!(routing(&target, "b").await.as_deref(), Some("s"), "as an operation");
    assert_eq!(target.digest().await.unwrap(), source.digest().await.unwrap());
    target.flush().await.unwrap();
    target.close().await.unwrap();
    let opened = Shard::open(&env, &dir.join("target"), &mapping(), Options::default()).await;
    assert_eq!(routing(&opened.unwrap(), "b").await.as_deref(), Some("s"), "opened again");
}
