//! What copies cost in OpenSearch, as its API shows it.
//!
//! All primaries of an index are on one node, and then a copy of each is made elsewhere, without a rate limit and one
//! at a time; or a copy is given up, misses operations, and is taken back. Elapsed times, so that other programs
//! disturb them: nothing in those nodes can be asked for core time.

use std::time::{Duration, Instant};

use clusters::{Clusters, FaultKind, TopologySpec};
use world::Env;

use super::compression::{self, Spent};
use super::copies::{
    Asked, BARE, DOCUMENTS, Direction, INDEX, MISSED_BULKS, NO_MORE_FILES, WHOLE, checksum_rate_of,
    files_of_a_copy, peer, rate, time_of_a_file, without_checksum, words_rate,
};
use super::encryption;
use super::measurement::{CORE_TIME, Figure, Needs, OUT_OF_REACH, TargetCalibration, failed};
use crate::error::{Error, Result};

const CLUSTER: &str = "calibrated";
/// Whether nodes compress what they send; they start with it.
const COMPRESS: &str = "transport.compress";
/// Copies of next to nothing that are made one after another.
pub(super) const SMALL_COPIES: u32 = 8;
/// Segments of copies that are to have many files: fewer than would be merged.
pub(super) const SEGMENTS: u32 = 8;
/// Copies that come back at once to a node that has just started.
const FIRST_COPIES: u32 = 4;

/// What is not measured on nodes that are started for it, besides.
const OUT_OF_REACH_HERE: [Needs; 2] = [
    ("cores.message", "copies in chunks of several sizes, which are not made"),
    ("cores.send_bytes_per_s", CORE_TIME),
];
/// How checksums are measured.
pub(super) const CHECKSUM: &str =
    "the files of that copy, which its node reads once more and checks before it opens them";
/// Why nothing is said of checksums.
pub(super) const NO_CHECKSUM: &str =
    "the files of the copy were read once more in less than 10 ms, or not at all";
/// Why nothing is said of words.
pub(super) const NO_WORDS: &str = "documents with words took no longer than those without";

/// Measures what copies take in a target, of which two nodes are started for it, then two that compress, and then two
/// beside two that encrypt. Fails if the target cannot be started, or refuses something.
pub fn calibrate_target<C: Clusters>(
    target: impl FnOnce(&Env) -> C,
    laps: u32,
    tell: impl Fn(&str),
) -> Result<TargetCalibration> {
    world::real_world::run(1, async |env| {
        let mut target = target(&env);
        tell("copies between two nodes, which are started first");
        if let Some(sentence) = target.prepares() {
            tell(&sentence);
        }
        let mut topology = TopologySpec::alone(CLUSTER, 2);
        target.start(&topology).await?;
        let measured = measure(&env, &mut target, laps).await;
        target.stop().await;
        let (figures, plain) = measured?;
        tell("copies between two nodes that compress what they send, which are started next");
        topology.clusters[0].settings.insert(COMPRESS.to_owned(), "true".to_owned());
        target.start(&topology).await?;
        let asked = Asked { target: &target, cluster: CLUSTER, index: INDEX };
        let compressed = compression::copies(&env, &asked, laps).await;
        target.stop().await;
        let compressed = compression::figures(&plain, &compressed?);
        tell(
            "copies in turn between two nodes without and two with TLS, where that release has it",
        );
        let encrypted = encryption::measure(&env, &mut target, laps).await;
        let all = figures.into_iter().chain(compressed).chain(encrypted);
        let out_of_reach = OUT_OF_REACH_HERE.into_iter().chain(OUT_OF_REACH);
        Ok::<_, Error>(TargetCalibration::of(all, out_of_reach))
    })
}

/// What is measured on nodes that send bytes as they are; and what copies take that are then made with compression.
async fn measure(
    env: &Env,
    target: &mut impl Clusters,
    laps: u32,
) -> Result<(Vec<Figure>, Vec<Spent>)> {
    let mut receive = Figure::new(
        "cores.receive_bytes_per_s",
        "a copy of 200 MB without a rate limit, as its node says how long the files took, less a checksum of them: \
         whatever held them",
    );
    let mut checksum = Figure::new("cores.hash_bytes_per_s", CHECKSUM);
    let mut open = Figure::new(
        "recovery.open_copy",
        "eight copies that come back to their files, one after another: an eighth of the time until all are started",
    );
    let mut new = Figure::new(
        "recovery.new_copy",
        "eight copies of some documents each that begin without files, likewise: what each takes longer, without its \
         files",
    );
    let mut file = Figure::new(
        "recovery.each_file",
        "eight copies of eight segments each, likewise: what each takes longer than one of one segment, for each file \
         more",
    );
    let mut first = Figure::new(
        "recovery.first_copy",
        "four copies that come back at once to a node that has just started: what it takes until all are started, less \
         what the same take once more",
    );
    let mut document = Figure::new(
        "cores.index_document",
        "20 000 documents of a number that a copy missed, as its node says how long they and the refresh after took",
    );
    let mut words = Figure::new(
        "cores.index_bytes_per_s",
        "20 000 documents with 1 kB of words that a copy missed, less what the documents without words took",
    );
    for _ in 0..laps {
        let copy = time_of_a_copy(target, CLUSTER).await?;
        open.lap(Ok(copy.open.as_secs_f64()));
        new.lap(Ok(copy.new.as_secs_f64()));
        file.lap(Ok(copy.file.as_secs_f64()));
        first.lap(Ok(time_of_first_copies(target, CLUSTER).await?.as_secs_f64()));
        let asked = &Asked { target: &*target, cluster: CLUSTER, index: INDEX };
        let recoveries = asked.large_copy().await?;
        let checked = peer(&recoveries, INDEX).and_then(checksum_rate_of);
        receive.lap(Ok(without_checksum(rate(&recoveries)?, checked)));
        checksum.lap(checked.ok_or_else(|| NO_CHECKSUM.to_owned()));
        let operations = MISSED_BULKS * DOCUMENTS;
        let bare_s = asked.replay(BARE).await?;
        let whole_s = asked.replay(WHOLE).await?;
        document.lap(Ok(bare_s / operations as f64));
        words.lap(words_rate(operations, bare_s, whole_s).ok_or_else(|| NO_WORDS.to_owned()));
    }
    let asked = Asked { target: &*target, cluster: CLUSTER, index: INDEX };
    let plain = compression::copies(env, &asked, laps).await?;
    Ok((vec![receive, checksum, open, new, file, first, document, words], plain))
}

/// What a copy takes apart from its bytes and operations.
#[derive(Clone, Copy, Debug)]
pub struct TimeOfACopy {
    /// Updates of the cluster state, opening, the next round of the allocator.
    pub open: Duration,
    /// What a copy takes in addition where it begins without files, apart from those that come.
    pub new: Duration,
    /// What each file that comes takes in addition.
    pub file: Duration,
}

/// How long a copy takes in a cluster apart from its bytes. The cluster has no index that it was not given for this.
/// Its settings of recovery and of routing are taken back afterwards. Fails if the cluster refuses something.
pub async fn time_of_a_copy(target: &impl Clusters, cluster: &str) -> Result<TimeOfACopy> {
    let asked = Asked { target, cluster, index: INDEX };
    asked.begin(Direction::ToManager, SMALL_COPIES, 1).await?;
    for _ in 0..SEGMENTS {
        asked.fill(1, BARE).await?;
        asked.flush().await?;
    }
    let many = asked.make_copies(Direction::ToManager).await? / SMALL_COPIES;
    let many_files = files_of_a_copy(&asked.clear_away().await?, INDEX);
    let few = asked.copy(Direction::ToManager, (SMALL_COPIES, 1), 1).await? / SMALL_COPIES;
    let few_files = files_of_a_copy(&asked.recoveries().await?, INDEX);
    asked.give_up_copies().await?;
    let open = asked.come_back().await? / SMALL_COPIES;
    asked.clear_away().await?;
    let file = time_of_a_file((few, few_files), (many, many_files));
    let file = file.ok_or_else(|| failed("time the files of copies", NO_MORE_FILES))?;
    Ok(TimeOfACopy { open, new: few.saturating_sub(open + file * few_files), file })
}

/// How much longer copies take that come back at once to a node which has just started: nothing is loaded or compiled
/// there yet. The second node of the cluster is killed and started for that. The cluster has no index that it was not
/// given for this, and its settings are taken back as above. Fails if it refuses something.
pub async fn time_of_first_copies(target: &mut impl Clusters, cluster: &str) -> Result<Duration> {
    let nodes = target.nodes(cluster);
    let asked = Asked { target: &*target, cluster, index: INDEX };
    asked.copy(Direction::FromManager, (FIRST_COPIES, 1), FIRST_COPIES).await?;
    let faults = target.faults()?;
    faults.begin(&nodes[1].name, FaultKind::Kill).await?;
    faults.end(&nodes[1].name, FaultKind::Kill).await?;
    let asked = Asked { target: &*target, cluster, index: INDEX };
    asked.wait(&format!("?wait_for_nodes={}", nodes.len())).await?;
    let joined = Instant::now();
    asked.green().await?;
    let first = joined.elapsed();
    asked.give_up_copies().await?;
    let again = asked.come_back().await?;
    asked.clear_away().await?;
    Ok(first.saturating_sub(again))
}
