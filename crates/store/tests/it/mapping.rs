//! Fields that are mapped after a copy was created, on real files: in the virtual world documents are not parsed.

use std::path::Path;
use std::sync::Arc;

use crate::common::{self, copy_files, create, document, mapping, on_real_files};
use query::{Mapping, SearchLimits, parse_search};
use serde_json::json;
use store::{Incoming, Options, Shard, WriteRequest};
use world::Env;

/// The mapping of the other tests, and a field of each kind that is stored in its own way.
fn wider() -> Mapping {
    Mapping::parse(&json!({"properties": {
        "location": {"type": "geo_point"}, "n": {"type": "long"}, "text": {"type": "text"},
        "added": {"properties": {
            "day": {"type": "date"}, "from": {"type": "geo_point"}, "ip": {"type": "ip"},
            "size": {"type": "long"}, "tag": {"type": "keyword"}, "words": {"type": "text"},
        }},
    }}))
    .unwrap()
}

const ADDED: [&str; 6] =
    ["added.day", "added.from", "added.ip", "added.size", "added.tag", "added.words"];

fn numbered(n: u64) -> WriteRequest {
    let source = json!({
        "n": n, "text": "one two", "location": [1.5, 2.5],
        "added": {
            "day": "2020-01-01", "from": [n % 90, 1], "ip": "10.0.0.1", "size": n, "tag": format!("t{n}"),
            "words": "three four",
        },
    });
    document(&format!("id{n}"), &source)
}

async fn write(shard: &Shard, numbers: std::ops::Range<u64>) {
    common::write(shard, numbers.map(numbered).collect()).await;
}

/// How many documents have a value in a field.
async fn count_with(shard: &Shard, field: &str) -> u64 {
    shard.refresh().await.unwrap();
    let exists = json!({"exists": {"field": field}});
    let body = json!({"size": 0, "track_total_hits": true, "query": exists});
    let request = Arc::new(parse_search(body.to_string().as_bytes()).unwrap());
    shard.search(&request, &SearchLimits::default()).await.unwrap().0.total
}

/// Documents in all, and with each of the fields that were added.
async fn check(shard: &Shard, documents: u64, with: u64, when: &str) {
    assert_eq!(shard.digest().await.unwrap().documents, documents, "{when}");
    assert_eq!(count_with(shard, "n").await, documents, "{when}");
    for field in ADDED {
        assert_eq!(count_with(shard, field).await, with, "{field} {when}");
    }
}

async fn open(env: &Env, dir: &Path) -> Shard {
    Shard::open(env, dir, &wider(), Options::default()).await.unwrap()
}

/// 100 documents before the mapping grew, 60 after, in several segments.
async fn grown(env: &Env, dir: &Path) -> Shard {
    let shard = create(env, dir).await;
    write(&shard, 0..50).await;
    shard.flush().await.unwrap();
    write(&shard, 50..100).await;
    assert_eq!(count_with(&shard, "added.size").await, 0, "it is not mapped yet");
    shard.set_mapping(&wider()).await.unwrap();
    write(&shard, 100..130).await;
    shard.refresh().await.unwrap();
    write(&shard, 130..160).await;
    shard.sync().await.unwrap();
    shard
}

#[test]
fn a_field_is_indexed_from_the_moment_it_is_mapped() {
    on_real_files(async |env, dir| {
        let shard = grown(&env, &dir).await;
        check(&shard, 160, 60, "at once").await;
        // A document from before counts once it is written again.
        write(&shard, 0..10).await;
        check(&shard, 160, 70, "after updates").await;
    });
}

#[test]
fn segments_from_before_and_after_are_merged() {
    on_real_files(async |env, dir| {
        let shard = grown(&env, &dir).await;
        shard.force_merge(1).await.unwrap();
        assert_eq!(shard.stats().segments, 1);
        check(&shard, 160, 60, "after the merge").await;
        let before = shard.digest().await.unwrap();
        shard.flush().await.unwrap();
        shard.close().await.unwrap();
        let shard = open(&env, &dir).await;
        check(&shard, 160, 60, "after the merge and an open").await;
        assert_eq!(shard.digest().await.unwrap(), before);
    });
}

/// The directory as it is at this moment is what a kill leaves: a new handle replays the log on a commit that
/// knows nothing of the new fields.
#[test]
fn a_kill_before_the_next_commit_loses_no_field() {
    on_real_files(async |env, dir| {
        let alive = dir.join("alive");
        let shard = grown(&env, &alive).await;
        let killed = dir.join("killed");
        // It may miss a temporary file that goes meanwhile; what counts is whether the copy opens.
        std::process::Command::new("cp").arg("-r").args([&alive, &killed]).status().unwrap();
        let reopened = open(&env, &killed).await;
        assert_eq!(reopened.opened().replayed_ops, 110);
        // What is replayed is indexed by the mapping of the open, whenever it was written.
        check(&reopened, 160, 110, "after a kill").await;
        drop(shard);
    });
}

#[test]
fn a_copy_has_the_fields_of_its_files_and_of_its_mapping() {
    on_real_files(async |env, dir| {
        let shard = grown(&env, &dir.join("source")).await;
        let snapshot = shard.snapshot("recovery/1").await.unwrap();
        let receive = async |name: &str, mapping: &Mapping| {
            let commit = snapshot.commit().clone();
            let incoming = Incoming::begin(&env, &dir.join(name), commit).await.unwrap();
            copy_files(&snapshot, &incoming, 1000, 3).await.unwrap();
            incoming.install(mapping, Options::default()).await.unwrap()
        };
        let copy = receive("copy", &wider()).await;
        check(&copy, 160, 60, "in the copy").await;
        write(&copy, 160..170).await;
        check(&copy, 170, 70, "in the copy, written on").await;
        // A target whose cluster has not heard of the new mapping yet: it catches up.
        let late = receive("late", &mapping()).await;
        assert_eq!(count_with(&late, "added.tag").await, 0);
        late.set_mapping(&wider()).await.unwrap();
        check(&late, 160, 60, "in the late copy").await;
    });
}

#[test]
fn the_same_mapping_again_changes_nothing() {
    on_real_files(async |env, dir| {
        let shard = grown(&env, &dir).await;
        shard.refresh().await.unwrap();
        let before = shard.stats();
        shard.set_mapping(&wider()).await.unwrap();
        assert_eq!(shard.stats(), before);
    });
}

#[test]
fn documents_bring_fields_and_are_kept_without_them() {
    on_real_files(async |env, dir| {
        let shard = create(&env, &dir).await;
        let requests = vec![
            document("a", &json!({"n": 1})),
            document("b", &json!({"n": 2, "fresh": 3})),
            document("c", &json!({"n": 3, "fresh": "word"})),
            document("d", &json!({"n": 4, "fresh": 5, "other": true})),
        ];
        let mut read = shard.read(requests).await;
        let places: Vec<usize> = read.new_fields().iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [1, 3], "the third does not fit the second");
        assert_eq!(read.new_fields()[1].1, json!({"properties": {"other": {"type": "boolean"}}}));
        let refusal = query::Refusal { status: 400, kind: "x".to_owned(), reason: "y".to_owned() };
        read.refuse(3, refusal);
        let results = shard.index_read(read).await.unwrap();
        let done: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(done, [true, true, false, false]);
        assert_eq!(count_with(&shard, "fresh").await, 0, "nobody mapped it");
        // By now it is mapped as a type that the second document does not fit.
        let mapping = json!({"properties": {
            "location": {"type": "geo_point"}, "n": {"type": "long"}, "text": {"type": "text"},
            "fresh": {"type": "boolean"},
        }});
        let mapping = Mapping::parse(&mapping).unwrap();
        shard.set_mapping(&mapping).await.unwrap();
        shard.sync().await.unwrap();
        drop(shard);
        // What was accepted is replayed, with as much of it as fits.
        let shard = Shard::open(&env, &dir, &mapping, Options::default()).await.unwrap();
        assert_eq!(shard.opened().replayed_ops, 2);
        assert_eq!((count_with(&shard, "n").await, count_with(&shard, "fresh").await), (2, 0));
        shard.close().await.unwrap();
    });
}

#[test]
fn files_of_another_mapping_are_refused() {
    on_real_files(async |env, dir| {
        create(&env, &dir).await.close().await.unwrap();
        // Dates are kept as long numbers, and told from them all the same.
        for kind in ["text", "date"] {
            let other = json!({"properties": {"n": {"type": kind}}});
            let other = Mapping::parse(&other).unwrap();
            let refused = Shard::open(&env, &dir, &other, Options::default()).await;
            let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains("field [n] as another type"), "{kind}: {said}");
        }
    });
}
