//! What copies cost in a cluster that was not started here, by an index of its own.
//!
//! No setting of the cluster is changed. A filter of the index says on which of two nodes its copies may be, and keeps
//! away a copy that was given up. What needs a setting of the cluster, the core time of a thread or a disk is not
//! measured, and said by name.

use std::time::Duration;

use bytes::Bytes;
use clusters::Clusters;
use record::units::{show_bytes, show_count};
use serde_json::{Value, json};

use super::copies::{
    Asked, BARE, CHECK, Content, DOCUMENTS, LARGE_BULKS, MISSED_BULKS, NO_MORE_FILES, WHOLE,
    checksum_rate_of, files_of_a_copy, kept_fields, peer, rate_of, replay_of, text_fields,
    time_of_a_file, without_checksum, words_rate,
};
use super::measurement::{CORE_TIME, Figure, Needs, OUT_OF_REACH, TargetCalibration};
use super::target::{CHECKSUM, NO_CHECKSUM, NO_WORDS, SEGMENTS, SMALL_COPIES};
use super::two_nodes::TwoNodes;
use crate::error::{Error, Result};

const INCLUDE: &str = "index.routing.allocation.include._name";
const REBALANCE: &str = "index.routing.rebalance.enable";
const REPLICAS: &str = "index.number_of_replicas";
/// Bytes of a bulk of letters.
const BULK_BYTES: u64 = 1_000_000;
/// A copy that waited for a rate limit for more of its time than this says nothing of what its bytes cost.
const HELD_SHARE_MAX: f64 = 0.02;

const CHUNKS: &str =
    "chunks of another size: indices.recovery.chunk_size is a setting of the cluster";
const COMPRESSED: &str =
    "nodes that compress and nodes that do not: they start with transport.compress";
const ENCRYPTED: &str =
    "nodes with TLS and without; where there is TLS, it is a part of cores.receive_bytes_per_s";
/// What is not measured besides, and what that would need.
const OUT_OF_REACH_THERE: [Needs; 7] = [
    ("recovery.first_copy", "a node that restarts, which is not done to a cluster that is there"),
    ("cores.lz4_bytes_per_s", COMPRESSED),
    ("cores.decompress_speedup", COMPRESSED),
    ("cores.encrypt_bytes_per_s", ENCRYPTED),
    ("cores.decrypt_bytes_per_s", ENCRYPTED),
    ("cores.message", CHUNKS),
    ("cores.send_bytes_per_s", CORE_TIME),
];

/// How much is done: 1 is as much as on nodes that are started here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// How often everything is measured.
    pub laps: u32,
    /// The part of the bytes and operations that is copied.
    pub scale: f64,
}

impl Amount {
    fn of(self, bulks: u64) -> u64 {
        ((bulks as f64 * self.scale).round() as u64).max(1)
    }

    /// What is done to a cluster, for whoever has to allow it.
    pub fn what_is_done(self) -> String {
        let laps = match self.laps {
            1 => "1 lap".to_owned(),
            laps => format!("{laps} laps, each"),
        };
        format!(
            "{laps} of {} copies of next to nothing, one of {}, and two that miss {} documents and are given up for \
             that by _cluster/reroute; of this index alone it sets {INCLUDE}, {REBALANCE}, {REPLICAS} and, for the \
             large copy, {CHECK}",
            2 * SMALL_COPIES,
            show_bytes(self.of(LARGE_BULKS) * BULK_BYTES),
            show_count(self.of(MISSED_BULKS) * DOCUMENTS),
        )
    }
}

/// Measures what copies take between two nodes of a cluster, in an index of this name, which is made for it again and
/// again. A caller that gives this up has to delete the index. Fails if something has the name of the index already, or
/// the cluster refuses something.
pub async fn calibrate_live(
    target: &impl Clusters,
    (cluster, index): (&str, &str),
    nodes: &TwoNodes,
    amount: Amount,
    tell: impl Fn(&str),
) -> Result<TargetCalibration> {
    let asked = Asked { target, cluster, index };
    refuse_taken(&asked).await?;
    let bed = Bed { asked, nodes };
    let mut tried = Tried::new();
    for lap in 1..=amount.laps {
        tell(&format!("copies between {}, lap {lap} of {}", nodes.text(), amount.laps));
        bed.lap(amount, &mut tried).await?;
    }
    Ok(tried.ended())
}

/// What is not known to be ours is not touched, and would be deleted at the end.
async fn refuse_taken(asked: &Asked<'_, impl Clusters>) -> Result<()> {
    let path = format!("/{}/_settings", asked.index);
    match asked.target.request(asked.cluster, "GET", &path, Bytes::new()).await {
        Err(clusters::Error::Refused { status: 404, .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let index = asked.index;
            let why =
                format!("there is an index called {index} already; nothing was changed, try again");
            Err(Error::Usage { why })
        }
    }
}

struct Tried {
    receive: Figure,
    checksum: Figure,
    open: Figure,
    new: Figure,
    file: Figure,
    document: Figure,
    words: Figure,
}

impl Tried {
    fn new() -> Tried {
        Tried {
            receive: Figure::new(
                "cores.receive_bytes_per_s",
                "one copy, as its node says how long the files took, less a checksum of them: whatever held them but a \
                 rate limit",
            ),
            checksum: Figure::new("cores.hash_bytes_per_s", CHECKSUM),
            open: Figure::new(
                "recovery.open_copy",
                "a copy that comes back to its files: the mean of eight, one after another, as their client sees it",
            ),
            new: Figure::new(
                "recovery.new_copy",
                "a copy of some documents that begins without files: what it takes longer, likewise, without its files",
            ),
            file: Figure::new(
                "recovery.each_file",
                "a copy of eight segments: what it takes longer than one of one segment, likewise, for each file more",
            ),
            document: Figure::new(
                "cores.index_document",
                "documents of a number that a copy missed, as its node says how long they and the refresh after took",
            ),
            words: Figure::new(
                "cores.index_bytes_per_s",
                "as many with 1 kB of words, less what those without words took",
            ),
        }
    }

    fn ended(self) -> TargetCalibration {
        let Tried { receive, checksum, open, new, file, document, words } = self;
        let tried = [receive, checksum, open, new, file, document, words];
        TargetCalibration::of(tried, OUT_OF_REACH_THERE.into_iter().chain(OUT_OF_REACH))
    }
}

/// What a copy of next to nothing takes without files, and when it comes back to them; how many came.
struct SmallCopy {
    new: Duration,
    open: Duration,
    files: u32,
}

/// Two nodes of a cluster, and the index whose copies are on them.
struct Bed<'a, C> {
    asked: Asked<'a, C>,
    nodes: &'a TwoNodes,
}

impl<C: Clusters> Bed<'_, C> {
    async fn lap(&self, amount: Amount, tried: &mut Tried) -> Result<()> {
        let (mut few, mut open, mut many) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let (mut few_files, mut many_files) = (0, 0);
        for _ in 0..SMALL_COPIES {
            let one = self.small_copy(1).await?;
            (few, open, few_files) = (few + one.new, open + one.open, one.files);
            let one = self.small_copy(SEGMENTS).await?;
            (many, many_files) = (many + one.new, one.files);
        }
        let [few, open, many] = [few, open, many].map(|all| all / SMALL_COPIES);
        tried.open.lap(Ok(open.as_secs_f64()));
        let file = time_of_a_file((few, few_files), (many, many_files));
        let of_files = file.unwrap_or_default() * few_files;
        tried.new.lap(Ok(few.saturating_sub(open + of_files).as_secs_f64()));
        tried.file.lap(file.map(|file| file.as_secs_f64()).ok_or_else(|| NO_MORE_FILES.to_owned()));
        let recoveries = self.large_copy(amount.of(LARGE_BULKS)).await?;
        let checksum = peer(&recoveries, self.asked.index).and_then(checksum_rate_of);
        let receive = unheld_rate(&recoveries, self.asked.index);
        tried.receive.lap(receive.map(|rate| without_checksum(rate, checksum)));
        tried.checksum.lap(checksum.ok_or_else(|| NO_CHECKSUM.to_owned()));
        let bulks = amount.of(MISSED_BULKS);
        let operations = bulks * DOCUMENTS;
        let bare_s = self.replay(bulks, BARE).await?;
        let whole_s = self.replay(bulks, WHOLE).await?;
        let by_files = || {
            format!(
                "the {operations} operations did not all come as operations, or took less than a millisecond"
            )
        };
        tried.document.lap(bare_s.map(|s| s / operations as f64).ok_or_else(by_files));
        let words = match (bare_s, whole_s) {
            (Some(bare_s), Some(whole_s)) => {
                words_rate(operations, bare_s, whole_s).ok_or_else(|| NO_WORDS.to_owned())
            }
            _ => Err(by_files()),
        };
        tried.words.lap(words);
        Ok(())
    }

    /// Makes the index with its one shard on the first node.
    async fn create(&self, fields: Value) -> Result<()> {
        self.create_with(json!({}), fields).await
    }

    /// The same with further settings.
    async fn create_with(&self, mut settings: Value, fields: Value) -> Result<()> {
        settings["index.number_of_shards"] = json!(1);
        settings[REPLICAS] = json!(0);
        settings[INCLUDE] = json!(self.nodes.source());
        // The embedded engine has no such setting, and moves nothing for the balance unless it is told to.
        if self.nodes.is_field() {
            settings[REBALANCE] = json!("none");
        }
        self.asked.create(settings, fields).await
    }

    /// Lets a replica be on the second node: how long until it is started.
    async fn add_replica(&self) -> Result<Duration> {
        self.asked.until_green(json!({ INCLUDE: self.nodes.both(), REPLICAS: 1 })).await
    }

    /// Gives the replica up, and leaves its files where they are.
    async fn give_up(&self) -> Result<()> {
        self.asked.set_index(json!({ INCLUDE: self.nodes.source() })).await?;
        self.asked.cancel_replicas().await
    }

    /// Takes the replica back: how long until it is started.
    async fn come_back(&self) -> Result<Duration> {
        self.asked.until_green(json!({ INCLUDE: self.nodes.both() })).await
    }

    /// What a copy of next to nothing takes that begins without files, and then one that comes back to them.
    async fn small_copy(&self, segments: u32) -> Result<SmallCopy> {
        self.create(text_fields()).await?;
        for _ in 0..segments {
            self.asked.fill(1, BARE).await?;
            self.asked.flush().await?;
        }
        let new = self.add_replica().await?;
        let files = files_of_a_copy(&self.asked.recoveries().await?, self.asked.index);
        self.give_up().await?;
        let open = self.come_back().await?;
        self.asked.delete().await?;
        Ok(SmallCopy { new, open, files })
    }

    /// A copy of so many bulks, of which its node reads everything once more: what `_recovery` says of it.
    async fn large_copy(&self, bulks: u64) -> Result<Value> {
        self.create_with(json!({ CHECK: "checksum" }), kept_fields()).await?;
        self.asked.fill(bulks, Content::Letters).await?;
        self.asked.flush().await?;
        self.add_replica().await?;
        self.asked.delete().await
    }

    /// Lets a copy miss so many bulks: seconds that they took with a refresh after them, where they came as operations.
    async fn replay(&self, bulks: u64, content: Content) -> Result<Option<f64>> {
        self.create(text_fields()).await?;
        self.add_replica().await?;
        self.give_up().await?;
        self.asked.fill(bulks, content).await?;
        self.come_back().await?;
        let refreshes_s = self.asked.refreshes_s().await?;
        let recoveries = self.asked.delete().await?;
        let copy = peer(&recoveries, self.asked.index);
        Ok(copy.and_then(|copy| replay_of(copy, bulks * DOCUMENTS)).map(|s| s + refreshes_s))
    }
}

/// The rate of a copy that no rate limit held.
fn unheld_rate(recoveries: &Value, index: &str) -> Result<f64, String> {
    let copy = peer(recoveries, index);
    let (Some(copy), Some(rate)) = (copy, copy.and_then(rate_of)) else {
        return Err("the files of the copy took less than a millisecond".to_owned());
    };
    let files = &copy["index"];
    let ms = |side: &str| files[format!("{side}_time_in_millis")].as_f64().unwrap_or(0.0);
    let share = ms("source_throttle").max(ms("target_throttle")) / ms("total");
    match share > HELD_SHARE_MAX {
        true => Err(format!(
            "indices.recovery.max_bytes_per_sec, a setting of the cluster, held the copy for {:.0} % of its time",
            share.min(1.0) * 100.0
        )),
        false => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use world::model::parameters;

    use super::*;

    #[test]
    fn a_copy_that_a_rate_limit_held_says_nothing_of_its_bytes() {
        let recovery = |source_ms: i64, total_ms: u64| {
            json!({ "i": { "shards": [{ "type": "PEER", "index": {
                "size": { "recovered_in_bytes": 1000 }, "total_time_in_millis": total_ms,
                "source_throttle_time_in_millis": source_ms, "target_throttle_time_in_millis": -1,
            } }] } })
        };
        assert_eq!(unheld_rate(&recovery(10, 500), "i"), Ok(2000.0));
        let held = unheld_rate(&recovery(400, 500), "i").unwrap_err();
        assert!(
            held.contains("indices.recovery.max_bytes_per_sec") && held.contains("80 %"),
            "{held}"
        );
        assert!(unheld_rate(&recovery(0, 0), "i").is_err(), "no time, no rate");
        assert!(unheld_rate(&json!({}), "i").is_err());
    }

    /// Each parameter once, measured or not, and each with a reason where it was not.
    #[test]
    fn what_was_not_measured_is_said_by_name() {
        let mut tried = Tried::new();
        tried.open.lap(Err("it waited".to_owned()));
        tried.receive.lap(Ok(1e9));
        let TargetCalibration { measured, not_measured } = tried.ended();
        assert_eq!(measured.len(), 1);
        let mut names: Vec<&str> = not_measured.iter().map(|one| one.parameter).collect();
        names.extend(measured.iter().map(|one| one.parameter));
        assert!(names.iter().all(|name| parameters().iter().any(|row| row.name == *name)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "each once");
        assert_eq!(count, 7 + OUT_OF_REACH_THERE.len() + OUT_OF_REACH.len());
        assert!(not_measured.iter().all(|one| !one.why.is_empty()));
    }

    #[test]
    fn little_is_never_nothing() {
        let amount = Amount { laps: 2, scale: 0.001 };
        assert_eq!((amount.of(LARGE_BULKS), Amount { scale: 0.5, ..amount }.of(200)), (1, 100));
        let said = amount.what_is_done();
        assert!(
            said.starts_with("2 laps, each of 16 copies")
                && said.contains("1.00 MB")
                && said.contains(INCLUDE),
            "{said}"
        );
        let once = Amount { laps: 1, ..amount }.what_is_done();
        assert!(once.starts_with("1 lap of 16 copies"), "{once}");
    }
}
