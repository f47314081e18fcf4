//! A process is killed while it writes: every sequence number that it said to be persisted is there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use dcp::bucket::Bucket;
use world::Env;

use crate::common::{PATIENCE, set, settings};

/// The test below runs itself again with this variable: that process writes, and is killed.
const DIR: &str = "NARROWS_TEST_BUCKET";
const VBUCKETS: u16 = 8;

async fn open(env: &Env, dir: &Path) -> Bucket {
    Bucket::open(env, settings(VBUCKETS, 256 << 20), dir).await.unwrap()
}

/// Writes until it is killed; says on its output what is persisted.
fn write_until_killed(dir: &Path) {
    world::real_world::run(1, async |env| {
        let bucket = open(&env, dir).await;
        for n in 0u64.. {
            let vb = (n % u64::from(VBUCKETS)) as u16;
            let seqno = set(&bucket, vb, &format!("key{}", n % 1000), &n.to_string()).unwrap();
            if n % 16 == 0 {
                bucket.wait_persisted(vb, seqno, PATIENCE).await.unwrap();
                println!("\npersisted {vb} {seqno}");
            }
        }
    });
}

#[test]
fn a_persisted_sequence_number_survives_kill_9() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::a_persisted_sequence_number_survives_kill_9", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut persisted = Vec::new();
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some(rest) = line.strip_prefix("persisted ") else { continue };
            let (vb, seqno) = rest.split_once(' ').unwrap();
            persisted.push((vb.parse::<u16>().unwrap(), seqno.parse::<u64>().unwrap()));
            if persisted.len() == 40 + 30 * round {
                // SIGKILL; what it said before is still read.
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        assert!(persisted.len() >= 40, "the child ended by itself");
        world::real_world::run(2, async |env| {
            let bucket = open(&env, dir.path()).await;
            for (vb, seqno) in &persisted {
                assert!(bucket.high_seqno(*vb).unwrap() >= *seqno, "vbucket {vb} lost {seqno}");
            }
            // Each kill began another history, and opening here one more.
            assert_eq!(bucket.failover_log(0).unwrap().len(), 2 * (round + 1));
        });
    }
}
