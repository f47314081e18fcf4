//! What `what-if` refuses before it looks at a cluster.

use crate::common::{done, failed};
use crate::what_if::{ALONE, Twin, asked, green_s};

#[test]
fn what_is_not_there_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let twice = "URL --lose a --set indices.recovery.max_bytes_per_sec=20mb --set \
                 indices.recovery.max_bytes_per_sec=40mb";
    for (question, says) in [
        ("URL --drain a --down 1m", "--rolling-restart"),
        ("URL --drain a --flush", "--rolling-restart"),
        ("URL --drain a --indexing 5", "--rolling-restart"),
        ("URL --restart a --indexing much", "0 to 10000000"),
        ("URL --drain a --add 1", "one thing at a time: ask it once for each of them"),
        ("URL --rolling-restart --rolling-restart", "give --rolling-restart once"),
        ("URL --lose a --save a.toml --anonymous", "out, or what it cannot be used with"),
        ("mine.toml --lose a", "`narrows what-if URL --save mine.toml` writes a twin"),
        ("mine.toml --save hidden.toml --anonymous", "give the cluster's URL"),
        ("URL mine.toml --lose a", "give one of both"),
        ("URL --lose a --like b", "with --add N"),
        ("URL --replicas logs", "write INDEX=N, for example logs=2"),
        ("URL --replicas logs=11", "N from 0 to 10"),
        ("URL --restart a --down 0s", "away for 1 s to 86400 s"),
        ("URL --lose a --draws 0", "1..=1000"),
        ("URL --lose a --rtt 5s", "is 4 s at most"),
        ("URL --lose a --set index.number_of_replicas=2", "--replicas INDEX=N"),
        ("URL --lose a --set index.codec=best_compression", "does not model index.codec"),
        ("URL --lose a --set cluster.routing.mine=9", "has no setting cluster.routing.mine"),
        (twice, "is given twice"),
        ("URL --replicas a=1 --replicas a=2", "--replicas a is given twice"),
        ("URL --lose a --set indices.recovery.max_byte=1mb", "did you mean"),
        ("URL --lose a --set indices.recovery.max_bytes_per_sec=-5mb", "\"-5mb\" is not a rate"),
        ("URL --lose a --link fast", "12.5MB/s"),
        ("URL --lose a --link 400mb", "\"400mb\" is not a rate"),
        ("URL --lose a --disk-read fast", "400mb"),
        ("URL --lose a --assume cores.cout=16", "cores.count"),
        ("URL --lose a --assume card.delay=1ms", "say that with --rtt"),
        ("URL --lose a --replicas logs=2", "one thing at a time"),
    ] {
        let url = |word| if word == "URL" { "http://127.0.0.1:1" } else { word };
        let words: Vec<&str> = question.split(' ').map(url).collect();
        failed(&asked(dir.path(), &words), 2, &[says]);
    }
}

#[test]
fn a_node_that_is_not_there_is_told_without_a_text_that_nobody_wrote() {
    let says = "narrows: no node, zone or attribute of the twin is called \"nope\"";
    failed(&Twin::new().asked("--lose nope"), 2, &[says]);
}

#[test]
fn a_shard_of_which_no_copy_is_left_is_refused_where_nothing_else_would_be_made() {
    let refused = "no copy would be left of 1 shard (logs[2])";
    failed(&Twin::with(&ALONE).asked("--lose c"), 2, &[refused]);
    let alone = "\n[[twin.index]]\nname = \"alone\"\nreplicas = 0\nshard = [{ bytes = \"1mb\", documents = 100, \
                 segments = 1, copies = [\"c\"] }]\n\n[[variant]]";
    let found = Twin::with(&[("\n[[variant]]", alone)]).answer("--lose c");
    let first = &found["answers"][0];
    assert_eq!(found["until"], "placed", "{found}");
    assert_eq!(first["bytes"].as_u64().unwrap() >> 20, 2 * 30, "{first}");
    assert!((66.0..69.0).contains(&green_s(first)), "{first}");
    let says = first["never_green"].to_string();
    assert!(says.contains("; no copy is left of 1 shard (alone[0]): red for good"), "{says}");
}

#[test]
fn a_twin_takes_the_place_of_no_other_file() {
    let twin = Twin::new();
    let dir = twin.dir.path();
    let of = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    for (name, says) in [("README.md", "ends in .toml"), ("plan.toml", "is no twin")] {
        std::fs::write(of(name), "name = \"mine\"\n").unwrap();
        failed(&asked(dir, &[twin.path(), "--save", &of(name)]), 2, &[says, "--save"]);
        assert_eq!(std::fs::read_to_string(of(name)).unwrap(), "name = \"mine\"\n");
    }
    // Before a cluster is looked at for seconds.
    let nowhere = asked(dir, &["http://127.0.0.1:1", "--save", &of("nowhere/twin.toml")]);
    failed(&nowhere, 2, &["there is no such directory"]);
    let wrong = asked(dir, &[&of("plan.toml"), "--lose", "a"]);
    failed(&wrong, 2, &["it has no [twin]", "--save twin.toml"]);
    for name in ["new.toml", "twin.toml"] {
        done(&asked(dir, &[twin.path(), "--save", &of(name)]));
    }
}

#[test]
fn a_setting_that_the_product_refuses_is_refused() {
    let twin = Twin::with(&[("steps", "test_bed = \"opensearch-2\"\nsteps")]);
    let output = twin.asked("--lose c --set indices.recovery.max_concurrent_file_chunks=8");
    failed(&output, 2, &["the cluster takes 5 at most"]);
}
