//! Damage at rest: whatever happens to a file of a copy while nobody has it open, it is whole when it is opened, or it
//! is refused by name. It never holds fewer documents than were acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::*;
use store::Digest;
use world::Env;

/// Every file of a copy but those that an open makes anew.
fn files(copy: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(copy).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_file() && name != ".lock" {
            found.insert(name, entry.path());
        } else if name.starts_with("commit-") {
            for inner in fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
                let inner_name = inner.file_name().into_string().unwrap();
                found.insert(format!("{name}/{inner_name}"), inner.path());
            }
        }
    }
    found
}

/// What kind of file it is, so that it can be exchanged for another of its kind.
fn kind(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

/// Lengths to which a file is cut: at every block of a disk, and between; of a file with more than a hundred blocks at
/// no more than so many, spread evenly.
fn cuts(len: usize) -> BTreeSet<usize> {
    let blocks = (0..len).step_by(512 * len.div_ceil(512 * 100).max(1));
    let some = [0, 1, len / 4, len / 2, len.saturating_sub(1)];
    some.into_iter().filter(|cut| *cut < len).chain(blocks).collect()
}

/// The contents of all files, by name.
type Contents = BTreeMap<String, Vec<u8>>;

fn contents(copy: &Path) -> Contents {
    files(copy).into_iter().map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

fn restore(copy: &Path, contents: &Contents) {
    let _ = fs::remove_dir_all(copy);
    for (name, bytes) in contents {
        let path = copy.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A copy with a commit and a log behind it, which a lease keeps or each flush trims; its contents once it was half as
/// old, and in the end, and all documents.
async fn grown(env: &Env, copy: &Path, first: u64, lease: bool) -> (Contents, Contents, Digest) {
    let shard = create(env, copy).await;
    shard.retain_ops_from("a follower", lease.then_some(10));
    let mut older = Contents::new();
    for round in 0..4 {
        let ids = (0..20).map(|n| put(&format!("id{}", first + (round * 15 + n) % 50), n));
        write(&shard, ids.collect()).await;
        shard.sync().await.unwrap();
        if round == 1 {
            shard.flush().await.unwrap();
            older = contents(copy);
        } else if round == 2 {
            shard.flush().await.unwrap();
        }
    }
    let digest = shard.digest().await.unwrap();
    shard.close().await.unwrap();
    (older, contents(copy), digest)
}

#[test]
fn whatever_happens_to_a_file_at_rest_no_document_goes_unsaid() {
    whatever_happens(true);
}

/// A file of the log that is gone may be one that was trimmed.
#[test]
fn nor_where_the_log_is_trimmed() {
    whatever_happens(false);
}

fn whatever_happens(lease: bool) {
    on_real_files(async |env, dir| {
        let (copy, other) = (dir.join("copy"), dir.join("other"));
        let (older, sound, digest) = grown(&env, &copy, 0, lease).await;
        let (_, foreign, _) = grown(&env, &other, 1000, lease).await;
        let mut outcomes: BTreeMap<String, BTreeMap<&str, u32>> = BTreeMap::new();
        let mut cases: Vec<(String, String, Option<Vec<u8>>)> = Vec::new();
        for (name, bytes) in &sound {
            let mut case = |what: String, damaged: Option<Vec<u8>>| {
                cases.push((name.clone(), what, damaged));
            };
            case("gone".to_owned(), None);
            for len in cuts(bytes.len()) {
                case(format!("cut at {len}"), Some(bytes[..len].to_vec()));
            }
            for at in (0..bytes.len()).step_by(bytes.len() / 7 + 1) {
                let mut turned = bytes.clone();
                turned[at] ^= 0x04;
                case(format!("byte {at} turned"), Some(turned));
            }
            if let Some(before) = older.get(name) {
                case("an older version".to_owned(), Some(before.clone()));
            }
            for (theirs, bytes) in foreign.iter().filter(|(theirs, _)| kind(theirs) == kind(name)) {
                case(format!("exchanged for the other's {theirs}"), Some(bytes.clone()));
            }
        }
        for (name, what, damaged) in &cases {
            restore(&copy, &sound);
            let path = copy.join(name);
            match damaged {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            let outcome = match open(&env, &copy).await {
                Ok(shard) => {
                    assert_eq!(shard.digest().await.unwrap(), digest, "{name}: {what}");
                    shard.close().await.unwrap();
                    "whole"
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("copy"), "{name}: {what}: {said}");
                    "refused"
                }
            };
            *outcomes.entry(kind(name).to_owned()).or_default().entry(outcome).or_default() += 1;
        }
        // An older commit is whole with a log that reaches back to it, and refused with one that does not.
        restore(&copy, &older);
        for (name, bytes) in sound.iter().filter(|(name, _)| name.starts_with("oplog")) {
            fs::write(copy.join(name), bytes).unwrap();
        }
        if let Ok(shard) = open(&env, &copy).await {
            assert_eq!(shard.digest().await.unwrap(), digest, "an older commit with a newer log");
        }
        // So is a log that is older than the commit.
        restore(&copy, &sound);
        for name in sound.keys().filter(|name| name.starts_with("oplog")) {
            fs::remove_file(copy.join(name)).unwrap();
        }
        for (name, bytes) in older.iter().filter(|(name, _)| name.starts_with("oplog")) {
            fs::write(copy.join(name), bytes).unwrap();
        }
        let error = open(&env, &copy).await.err().unwrap().to_string();
        assert!(error.contains("oplog.ckp") && error.contains("older"), "{error}");
        println!("{} cases: {outcomes:?}", cases.len());
        let refused = |kind: &str| outcomes[kind].get("refused").copied().unwrap_or(0);
        // Of a log that is trimmed there is less to damage.
        let log = if lease { 10 } else { 2 };
        assert!(refused("log") > log && refused("json") > 10 && refused("ckp") > 2, "{outcomes:?}");
    });
}
