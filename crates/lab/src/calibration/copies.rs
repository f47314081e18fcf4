//! Copies of an index between two nodes of a cluster: made, given up, taken back, and what `_recovery` tells of them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use clusters::Clusters;
use record::random::split_mix;
use serde_json::{Map, Value, json};

use super::measurement::failed;
use crate::error::Result;

pub(super) const INDEX: &str = "calibrated";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
const ENABLE: &str = "index.routing.allocation.enable";
/// Whether a node reads a copy that has come once more before it opens it, and compares it with its checksums.
pub(super) const CHECK: &str = "index.shard.check_on_startup";
/// Bulks of the one copy whose bytes take their time: 200 MB.
pub(super) const LARGE_BULKS: u64 = 200;
pub(super) const MISSED_BULKS: u64 = 200;
/// Documents of a bulk.
pub(super) const DOCUMENTS: u64 = 100;
/// A check that took less says little of bytes: nodes tell whole milliseconds.
const CHECK_MS_MIN: f64 = 10.0;

/// What the documents of an index are like.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// Letters that do not compress, in a field that is kept and not indexed: 10 kB.
    Letters,
    /// A number, and so many words of four letters and a space in a field of text.
    Words(u64),
}

/// Words of the documents whose bytes take their time: 1 kB.
const WORDS: u64 = 200;
/// Documents without words, and with words whose bytes take their time.
pub(super) const BARE: Content = Content::Words(0);
pub(super) const WHOLE: Content = Content::Words(WORDS);

/// Why nothing is said of files.
pub(super) const NO_MORE_FILES: &str =
    "copies of eight segments had no more files than those of one";

/// What each file takes, by two copies with their files; none where these are as many.
pub(super) fn time_of_a_file(few: (Duration, u32), many: (Duration, u32)) -> Option<Duration> {
    let more = many.1.checked_sub(few.1).filter(|more| *more > 0)?;
    Some(many.0.saturating_sub(few.0) / more)
}

/// Between the first node of a cluster, which manages it, and the second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Copies that recover from the manager may have to wait, which twins know by themselves.
    ToManager,
    /// A manager that restarts is no question to a twin.
    FromManager,
}

/// A cluster, and the index in it that was made for this.
pub(super) struct Asked<'a, C> {
    pub(super) target: &'a C,
    pub(super) cluster: &'a str,
    pub(super) index: &'a str,
}

impl<C: Clusters> Asked<'_, C> {
    pub(super) async fn ask(&self, method: &str, path: &str, body: Value) -> Result<Value> {
        let body = rest::json_body(&body);
        Ok(self.target.request(self.cluster, method, path, body).await?.json()?)
    }

    async fn set(&self, settings: Value) -> Result<()> {
        self.ask("PUT", "/_cluster/settings", json!({ "persistent": settings })).await.map(drop)
    }

    pub(super) async fn set_index(&self, settings: Value) -> Result<()> {
        self.ask("PUT", &format!("/{}/_settings", self.index), settings).await.map(drop)
    }

    pub(super) async fn create(&self, settings: Value, fields: Value) -> Result<()> {
        let body = json!({ "settings": settings, "mappings": { "properties": fields } });
        self.ask("PUT", &format!("/{}", self.index), body).await.map(drop)
    }

    async fn create_with(&self, shards: u32, replicas: u32, fields: Value) -> Result<()> {
        let settings = json!({ "number_of_shards": shards, "number_of_replicas": replicas });
        self.create(settings, fields).await
    }

    pub(super) async fn fill(&self, bulks: u64, content: Content) -> Result<()> {
        let mut letters = 1;
        for _ in 0..bulks {
            let path = format!("/{}/_bulk?filter_path=errors", self.index);
            let body = Bytes::from(bulk(&mut letters, content));
            let answer = self.target.request(self.cluster, "POST", &path, body).await?.json()?;
            if answer["errors"] != false {
                return Err(failed("index documents", answer));
            }
        }
        Ok(())
    }

    pub(super) async fn flush(&self) -> Result<()> {
        self.ask("POST", &format!("/{}/_flush", self.index), Value::Null).await.map(drop)
    }

    pub(super) async fn green(&self) -> Result<()> {
        self.wait(&format!("/{}?wait_for_status=green", self.index)).await
    }

    /// Waits for what the health of an index or of the cluster is to be.
    pub(super) async fn wait(&self, health: &str) -> Result<()> {
        let path = format!("/_cluster/health{health}&timeout=300s");
        let health = self.ask("GET", &path, Value::Null).await?;
        match health["timed_out"] == false {
            true => Ok(()),
            false => Err(failed("wait for copies", health)),
        }
    }

    /// How long it takes until all copies that a setting of the index allows are started.
    pub(super) async fn until_green(&self, setting: Value) -> Result<Duration> {
        let began = Instant::now();
        self.set_index(setting).await?;
        self.green().await?;
        Ok(began.elapsed())
    }

    pub(super) async fn recoveries(&self) -> Result<Value> {
        self.ask("GET", &format!("/{}/_recovery", self.index), Value::Null).await
    }

    /// Deletes the index: what `_recovery` said of it.
    pub(super) async fn delete(&self) -> Result<Value> {
        let recoveries = self.recoveries().await?;
        self.ask("DELETE", &format!("/{}", self.index), Value::Null).await?;
        Ok(recoveries)
    }

    /// The same, and the settings are taken back.
    pub(super) async fn clear_away(&self) -> Result<Value> {
        let recoveries = self.delete().await?;
        self.set(json!({ "indices.recovery.*": null, "cluster.routing.*": null })).await?;
        Ok(recoveries)
    }

    /// The nodes that are to have no copy: while there is one of each shard, and while there are two.
    fn excluded(&self, direction: Direction) -> [String; 2] {
        let mut names: Vec<String> =
            self.target.nodes(self.cluster).into_iter().map(|node| node.name).collect();
        if direction == Direction::ToManager {
            names.swap(0, 1);
        }
        [names[1..].join(","), names[2..].join(",")]
    }

    /// Has copies be on one node, and be made so many at once and without a rate limit.
    pub(super) async fn keep_on_source(&self, direction: Direction, at_once: u32) -> Result<()> {
        let [excluded, _] = self.excluded(direction);
        self.set(json!({
            EXCLUDE: excluded,
            "cluster.routing.allocation.node_concurrent_recoveries": at_once,
            "cluster.routing.rebalance.enable": "none",
            "indices.recovery.max_bytes_per_sec": "-1",
        }))
        .await
    }

    /// Makes an index of so many shards there.
    pub(super) async fn begin(
        &self,
        direction: Direction,
        shards: u32,
        at_once: u32,
    ) -> Result<()> {
        self.keep_on_source(direction, at_once).await?;
        self.create_with(shards, 0, kept_fields()).await
    }

    /// Makes a copy of each shard on the other node: how long until all are started.
    pub(super) async fn make_copies(&self, direction: Direction) -> Result<Duration> {
        let [_, excluded] = self.excluded(direction);
        self.set(json!({ EXCLUDE: excluded })).await?;
        self.until_green(json!({ "index.number_of_replicas": 1 })).await
    }

    /// Both, with so many bulks in one segment of each shard or more.
    pub(super) async fn copy(
        &self,
        direction: Direction,
        (shards, bulks): (u32, u64),
        at_once: u32,
    ) -> Result<Duration> {
        self.begin(direction, shards, at_once).await?;
        self.fill(bulks, Content::Letters).await?;
        self.flush().await?;
        self.make_copies(direction).await
    }

    /// A copy of 200 MB, of which its node reads everything once more: what `_recovery` says of it.
    pub(super) async fn large_copy(&self) -> Result<Value> {
        self.keep_on_source(Direction::ToManager, 1).await?;
        let settings = json!({ "number_of_shards": 1, "number_of_replicas": 0, CHECK: "checksum" });
        self.create(settings, kept_fields()).await?;
        self.fill(LARGE_BULKS, Content::Letters).await?;
        self.flush().await?;
        self.make_copies(Direction::ToManager).await?;
        self.clear_away().await
    }

    /// Takes all replicas away, and leaves their files where they are.
    pub(super) async fn give_up_copies(&self) -> Result<()> {
        self.set_index(json!({ ENABLE: "none" })).await?;
        self.cancel_replicas().await
    }

    /// Takes all replicas away, and leaves their files where they are. A setting keeps them from coming back.
    pub(super) async fn cancel_replicas(&self) -> Result<()> {
        let path = format!("/_cat/shards/{}?format=json&h=shard,prirep,node", self.index);
        let rows = self.ask("GET", &path, Value::Null).await?;
        let replicas = rows.as_array().into_iter().flatten().filter(|row| row["prirep"] == "r");
        let cancel = |row: &Value| {
            let shard = row["shard"].as_str().and_then(|number| number.parse::<u32>().ok());
            json!({ "cancel": { "index": self.index, "shard": shard, "node": row["node"] } })
        };
        let commands = json!({ "commands": replicas.map(cancel).collect::<Vec<_>>() });
        let path = "/_cluster/reroute?filter_path=acknowledged";
        self.ask("POST", path, commands).await.map(drop)
    }

    /// Takes back the replicas that were given up: how long until all are started.
    pub(super) async fn come_back(&self) -> Result<Duration> {
        self.until_green(json!({ ENABLE: null })).await
    }

    /// Seconds that the replicas have spent on refreshes since they were opened.
    pub(super) async fn refreshes_s(&self) -> Result<f64> {
        let path = format!("/{}/_stats/refresh?level=shards", self.index);
        Ok(refreshes_of(&self.ask("GET", &path, Value::Null).await?, self.index))
    }

    /// Lets a copy miss documents and takes it back: seconds that their operations and the refresh after them took.
    pub(super) async fn replay(&self, content: Content) -> Result<f64> {
        self.create_with(1, 1, text_fields()).await?;
        self.green().await?;
        self.give_up_copies().await?;
        self.fill(MISSED_BULKS, content).await?;
        self.come_back().await?;
        let refreshes_s = self.refreshes_s().await?;
        Ok(replayed_s(&self.clear_away().await?, MISSED_BULKS * DOCUMENTS)? + refreshes_s)
    }
}

fn bulk(letters: &mut u64, content: Content) -> String {
    let mut lines = String::new();
    for n in 0..DOCUMENTS {
        let text: String = match content {
            Content::Letters => (0..625).map(|_| format!("{:016x}", split_mix(letters))).collect(),
            Content::Words(count) => {
                (0..count).map(|_| format!("{:04x} ", split_mix(letters) % 0x2000)).collect()
            }
        };
        lines.push_str(&format!("{{\"index\":{{}}}}\n{{\"n\":{n},\"t\":\"{text}\"}}\n"));
    }
    lines
}

/// Fields of [`Content::Letters`].
pub(super) fn kept_fields() -> Value {
    let kept = |kind: &str| json!({ "type": kind, "index": false, "doc_values": false });
    json!({ "n": kept("long"), "t": kept("keyword") })
}

/// Fields of [`Content::Words`].
pub(super) fn text_fields() -> Value {
    json!({ "n": { "type": "long" }, "t": { "type": "text" } })
}

/// The copy that came from another, as `_recovery` says it.
pub(super) fn peer<'a>(recoveries: &'a Value, index: &str) -> Option<&'a Value> {
    recoveries[index]["shards"].as_array()?.iter().find(|shard| shard["type"] == "PEER")
}

/// The files that came for a copy, as `_recovery` says it: the mean of all that came from others.
pub(super) fn files_of_a_copy(recoveries: &Value, index: &str) -> u32 {
    let copies = recoveries[index]["shards"].as_array().into_iter().flatten();
    let files: Vec<u64> = copies
        .filter(|copy| copy["type"] == "PEER")
        .filter_map(|copy| copy["index"]["files"]["recovered"].as_u64())
        .collect();
    let mean = files.iter().sum::<u64>() / (files.len() as u64).max(1);
    u32::try_from(mean).unwrap_or(u32::MAX)
}

/// Bytes a second of a copy's files; none where they took no time.
pub(super) fn rate_of(copy: &Value) -> Option<f64> {
    let bytes = copy["index"]["size"]["recovered_in_bytes"].as_f64()?;
    let seconds = copy["index"]["total_time_in_millis"].as_f64()? / 1e3;
    (bytes > 0.0 && seconds > 0.0).then_some(bytes / seconds)
}

/// Bytes a second of the checksums of all files of a copy, which its node reads once more before it opens them
/// (`RecoveryTarget.cleanFiles`, `IndexShard.maybeCheckIndex`): from memory, where they were written just before.
pub(super) fn checksum_rate_of(copy: &Value) -> Option<f64> {
    let bytes = copy["index"]["size"]["recovered_in_bytes"].as_f64()?;
    let ms = copy["verify_index"]["check_index_time_in_millis"].as_f64()?;
    (bytes > 0.0 && ms >= CHECK_MS_MIN).then(|| bytes / ms * 1e3)
}

/// Bytes a second of receiving alone: a node reckons a checksum of each byte meanwhile, and a twin has those by
/// themselves. Nine tenths of the time are taken for checksums at most.
pub(super) fn without_checksum(rate: f64, checksum: Option<f64>) -> f64 {
    let byte_s = 1.0 / rate;
    let checked_s = checksum.map_or(0.0, |rate| 1.0 / rate);
    1.0 / (byte_s - checked_s).max(byte_s / 10.0)
}

/// Seconds that the operations which a copy missed took; none where it did not get them all, or they took no time.
pub(super) fn replay_of(copy: &Value, operations: u64) -> Option<f64> {
    let translog = &copy["translog"];
    let seconds = translog["total_time_in_millis"].as_f64()? / 1e3;
    (translog["recovered"].as_u64()? >= operations && seconds > 0.0).then_some(seconds)
}

/// Seconds that the replicas of an index have spent on refreshes, as `_stats` says it.
fn refreshes_of(stats: &Value, index: &str) -> f64 {
    let shards = stats["indices"][index]["shards"].as_object().into_iter().flat_map(Map::values);
    let copies = shards.filter_map(Value::as_array).flatten();
    let replicas = copies.filter(|copy| copy["routing"]["primary"] == false);
    replicas.filter_map(|copy| copy["refresh"]["total_time_in_millis"].as_f64()).sum::<f64>() / 1e3
}

/// Bytes of words a second, where they took time.
pub(super) fn words_rate(operations: u64, bare_s: f64, whole_s: f64) -> Option<f64> {
    (whole_s > bare_s).then(|| (operations * WORDS * 5) as f64 / (whole_s - bare_s))
}

/// Bytes a second of the one copy that was made.
pub(super) fn rate(recoveries: &Value) -> Result<f64> {
    let copy = peer(recoveries, INDEX).and_then(rate_of);
    copy.ok_or_else(|| failed("time a copy", format!("none was made: {recoveries}")))
}

/// Seconds that the operations which the copy missed took.
fn replayed_s(recoveries: &Value, operations: u64) -> Result<f64> {
    let replayed = peer(recoveries, INDEX).and_then(|copy| replay_of(copy, operations));
    let none = || format!("the copy did not get {operations} operations: {recoveries}");
    replayed.ok_or_else(|| failed("time operations", none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_files_of_the_copy() {
        let recovery = |recovered: u64| {
            json!({ INDEX: { "shards": [
                { "type": "EMPTY_STORE", "index": { "total_time_in_millis": 1 } },
                { "type": "PEER", "index": {
                    "size": { "recovered_in_bytes": recovered }, "total_time_in_millis": 500,
                } },
            ] } })
        };
        assert_eq!(rate(&recovery(1000)).unwrap(), 2000.0);
        let said = rate(&recovery(0)).unwrap_err().to_string();
        assert!(said.contains("none was made"), "{said}");
    }

    #[test]
    fn a_checksum_is_what_a_copy_was_read_once_more_for() {
        let copy = |ms: u64| {
            let verify = json!({ "check_index_time_in_millis": ms, "total_time_in_millis": 500 });
            json!({ "index": { "size": { "recovered_in_bytes": 200 } }, "verify_index": verify })
        };
        assert_eq!(checksum_rate_of(&copy(100)), Some(2000.0));
        assert_eq!([9, 0].map(|ms| checksum_rate_of(&copy(ms))), [None; 2], "too short to be told");
        assert_eq!(checksum_rate_of(&json!({})), None);
        let received =
            [Some(500.0), Some(50.0), None].map(|checked| without_checksum(100.0, checked));
        assert!((received[0] - 125.0).abs() < 1e-9 && (received[1] - 1000.0).abs() < 1e-9);
        assert!((received[2] - 100.0).abs() < 1e-9, "{received:?}");
    }

    #[test]
    fn a_file_takes_what_copies_with_more_of_them_take_longer() {
        let copy = |kind: &str, files: u64| json!({ "type": kind, "index": { "files": { "recovered": files } } });
        let few = json!({ INDEX: { "shards": [copy("EMPTY_STORE", 0), copy("PEER", 4)] } });
        let many =
            json!({ INDEX: { "shards": [copy("PEER", 25), copy("PEER", 24), copy("PEER", 25)] } });
        let files = [few, many].map(|recoveries| files_of_a_copy(&recoveries, INDEX));
        assert_eq!(files, [4, 24]);
        let ms = Duration::from_millis;
        assert_eq!(time_of_a_file((ms(300), 4), (ms(400), 24)), Some(ms(5)));
        assert_eq!(time_of_a_file((ms(300), 4), (ms(290), 24)), Some(Duration::ZERO));
        assert_eq!(time_of_a_file((ms(300), 4), (ms(400), 4)), None);
    }

    #[test]
    fn operations_are_timed_where_all_were_replayed() {
        let recovery = |recovered: u64| {
            let translog = json!({ "recovered": recovered, "total_time_in_millis": 250 });
            json!({ INDEX: { "shards": [
                { "type": "EMPTY_STORE", "translog": { "recovered": 0, "total_time_in_millis": 1 } },
                { "type": "PEER", "translog": translog },
            ] } })
        };
        assert_eq!(replayed_s(&recovery(1000), 1000).unwrap(), 0.25);
        let said = replayed_s(&recovery(0), 1000).unwrap_err().to_string();
        assert!(said.contains("did not get 1000 operations"), "{said}");
    }

    #[test]
    fn refreshes_are_those_of_the_copy_that_came_back() {
        let copy = |primary: bool, ms: u64| {
            let refresh = json!({ "total_time_in_millis": ms });
            json!({ "routing": { "primary": primary }, "refresh": refresh })
        };
        let shards = json!({ "0": [copy(true, 900), copy(false, 40)], "1": [copy(false, 10)] });
        let stats = json!({ "indices": { INDEX: { "shards": shards } } });
        assert_eq!(refreshes_of(&stats, INDEX), 0.05);
        assert_eq!(refreshes_of(&stats, "other"), 0.0);
    }
}
