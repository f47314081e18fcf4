//! Transcripts that nobody would write, looked at as `explain DIR` does.

use std::time::Duration;

use clusters::live::{
    Address, Depth, Header, LiveClient, LiveOptions, Replay, Sampler, Transcript,
};
use testbed::fuzz::{self, Budget};

use crate::looks::{ROOT, SHARDS, WAITS, host};

const LOOKS: [Depth; 3] = [Depth::Deep, Depth::Full, Depth::Full];
const RECOVERY: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","primary":false,
    "source":{"id":"A","name":"a"},"target":{"id":"B","name":"b"},"start_time_in_millis":1,
    "index":{"size":{"total_in_bytes":900,"recovered_in_bytes":90}}}]}}"#;
const NODES: &str =
    r#"{"nodes":{"A":{"name":"a","process":{"cpu":{"total_in_millis":70}}},"B":{"name":"b"}}}"#;

/// A transcript of the looks above, as this build writes it: one host is gone, and a question is refused.
fn recorded() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    world::virtual_world::run(1, |env| async move {
        let answer = |path: &str| match path {
            "/" => Some((200, ROOT)),
            "/_cluster/health" => Some((200, WAITS)),
            "/_cat/shards" => Some((200, SHARDS)),
            "/_recovery" => Some((200, RECOVERY)),
            _ if path.starts_with("/_nodes/stats") => Some((200, NODES)),
            "/_cluster/settings" => Some((403, "{}")),
            _ => Some((200, "{}")),
        };
        let (address, _server) = host(&env, "a", |_| Duration::from_millis(3), answer).await;
        let hosts = vec!["gone:9200".to_owned(), address];
        let second = Duration::from_secs(1);
        let header = Header::new(hosts.clone(), second, second);
        let transcript = Transcript::create(&path, &header).unwrap();
        let addresses = Address::parse_all(hosts.iter().map(String::as_str)).unwrap();
        let options = LiveOptions::anonymous(addresses, second);
        let client = LiveClient::new(&env, &options).unwrap().written_to(transcript);
        let mut sampler = Sampler::connect(client).await.unwrap();
        for depth in LOOKS {
            sampler.look(depth).await.unwrap();
        }
        sampler.client().transcript().unwrap();
    });
    std::fs::read(dir.path().join("transcript.jsonl")).unwrap()
}

#[test]
fn transcripts() {
    let sample = recorded();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("transcript.jsonl");
    // Each look asks some twenty questions, and each of them of every host that is not there.
    let budget = Budget {
        allocations: 50_000,
        allocations_per_byte: 500,
        bytes: 16 << 20,
        ..Budget::default()
    };
    let mut whole = 0;
    fuzz::search("transcripts", &[&sample], 2_000, budget, |bytes| {
        std::fs::write(&file, bytes).unwrap();
        let Ok((header, replay)) = Replay::open(dir.path()) else { return };
        whole += world::virtual_world::run(1, |env| async move {
            let Ok(client) = LiveClient::replaying(&env, &header, replay) else { return 0 };
            let Ok(mut sampler) = Sampler::connect(client).await else { return 0 };
            for depth in LOOKS {
                if sampler.look(depth).await.is_err() {
                    return 0;
                }
            }
            1
        });
    });
    assert!(whole > 0, "not even the sample is looked at to its end");
}
