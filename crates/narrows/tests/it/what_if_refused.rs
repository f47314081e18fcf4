//! What `what-if` refuses before it looks at a cluster.

use crate::common::{failed, said};
use crate::what_if::{TWIN, asked, twin};

#[test]
fn what_is_not_there_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for (args, says) in [
        (&["http://127.0.0.1:1"][..], "--lose NODE"),
        (&["http://127.0.0.1:1", "--drain", "a", "--down", "1m"], "--rolling-restart"),
        (&["http://127.0.0.1:1", "--drain", "a", "--flush"], "--rolling-restart"),
        (&["http://127.0.0.1:1", "--drain", "a", "--indexing", "5"], "--rolling-restart"),
        (&["http://127.0.0.1:1", "--restart", "a", "--indexing", "much"], "0 to 10000000"),
        (&["http://127.0.0.1:1", "--drain", "a", "--add", "1"], "cannot be used"),
        (&["mine.toml", "--lose", "a"], "`narrows what-if URL --save mine.toml` writes a twin"),
        (&["mine.toml", "--save", "hidden.toml", "--anonymous"], "give the cluster's URL"),
        (&["http://127.0.0.1:1", "mine.toml", "--lose", "a"], "give one of both"),
        (&["http://127.0.0.1:1", "--lose", "a", "--like", "b"], "with --add N"),
        (&["http://127.0.0.1:1", "--replicas", "logs"], "write INDEX=N, for example logs=2"),
        (&["http://127.0.0.1:1", "--restart", "a", "--down", "0s"], "away for 1 s to 86400 s"),
        (&["http://127.0.0.1:1", "--lose", "a", "--draws", "0"], "1..=1000"),
        (&["http://127.0.0.1:1", "--lose", "a", "--rtt", "5s"], "is 4 s at most"),
        (
            &["http://127.0.0.1:1", "--lose", "a", "--set", "index.number_of_replicas=2"],
            "--replicas INDEX=N",
        ),
        (
            &["http://127.0.0.1:1", "--lose", "a", "--set", "index.codec=best_compression"],
            "a twin does not model index.codec",
        ),
        (
            &["http://127.0.0.1:1", "--lose", "a", "--set", "cluster.routing.mine=9"],
            "a twin has no setting cluster.routing.mine",
        ),
        (
            &[
                "http://127.0.0.1:1",
                "--lose",
                "a",
                "--set",
                "indices.recovery.max_bytes_per_sec=20mb",
                "--set",
                "indices.recovery.max_bytes_per_sec=40mb",
            ],
            "is given twice",
        ),
        (
            &["http://127.0.0.1:1", "--lose", "a", "--set", "indices.recovery.max_byte=1mb"],
            "did you mean",
        ),
        (
            &[
                "http://127.0.0.1:1",
                "--lose",
                "a",
                "--set",
                "indices.recovery.max_bytes_per_sec=-5mb",
            ],
            "\"-5mb\" is not a rate",
        ),
        (&["http://127.0.0.1:1", "--lose", "a", "--link", "fast"], "12.5MB/s"),
        (&["http://127.0.0.1:1", "--lose", "a", "--link", "400mb"], "\"400mb\" is not a rate"),
        (&["http://127.0.0.1:1", "--lose", "a", "--disk-read", "fast"], "400mb"),
        (&["http://127.0.0.1:1", "--lose", "a", "--replicas", "logs=2"], "cannot be used"),
    ] {
        let output = asked(dir.path(), args);
        let answer = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {answer}");
        assert!(answer.contains(says), "{args:?}: {answer}");
    }
}

#[test]
fn a_twin_takes_the_place_of_no_other_file() {
    let (dir, file) = twin();
    let of = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let twin = file.to_str().unwrap();
    for (name, says) in [("README.md", "ends in .toml"), ("plan.toml", "is no twin")] {
        std::fs::write(of(name), "name = \"mine\"\n").unwrap();
        failed(&asked(dir.path(), &[twin, "--save", &of(name)]), 2, &[says, "--save"]);
        assert_eq!(std::fs::read_to_string(of(name)).unwrap(), "name = \"mine\"\n");
    }
    let wrong = asked(dir.path(), &[&of("plan.toml"), "--lose", "a"]);
    failed(&wrong, 2, &["it has no [twin]", "--save twin.toml"]);
    for name in ["new.toml", "twin.toml"] {
        let saved = asked(dir.path(), &[twin, "--save", &of(name)]);
        assert_eq!(saved.status.code(), Some(0), "{}", said(&saved));
    }
}

#[test]
fn a_setting_that_the_product_refuses_is_refused() {
    let (dir, file) = twin();
    std::fs::write(&file, TWIN.replacen("steps", "test_bed = \"opensearch-2\"\nsteps", 1)).unwrap();
    let chunks = "indices.recovery.max_concurrent_file_chunks=8";
    let output = asked(dir.path(), &[file.to_str().unwrap(), "--lose", "c", "--set", chunks]);
    failed(&output, 2, &["the cluster takes 5 at most"]);
}
