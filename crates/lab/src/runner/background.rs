//! Writers in the background of a measurement, and what copies must hold for it afterwards.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use record::ledger::{RunSum, Sums};
use record::units::{counted, show_count};
use record::{RecoverySample, ShardDigest};
use world::Time;

use super::base::Runner;
use super::scan;
use crate::error::Result;
use crate::plan::{Background, Index, LEADER, Runs, Variant};
use crate::writers::{Detail, Driver, PATIENCE, RunRate, WriteLedgers};

/// How often documents that exist only as a number are written: as often as bulk requests would come.
const RUN_EVERY: Duration = Duration::from_millis(100);

/// Writers that go on while a variant is measured.
pub(crate) struct BackgroundWriters {
    driver: Rc<Driver>,
    rate: Background,
    runs: Option<RunRate>,
    began: Cell<Option<Time>>,
}

impl BackgroundWriters {
    /// Has the writers begin, unless they have.
    pub(crate) fn begin(&self) {
        if self.began.get().is_none() {
            self.began.set(Some(self.driver.env.now()));
            self.driver.begin(self.rate, self.runs);
        }
    }

    /// Enters what was indexed so far.
    pub(super) fn tell(&self, sample: &mut RecoverySample) {
        sample.indexed_documents = Some(self.driver.written_in_background());
        (sample.indexing_requests, sample.indexing_ms) = self.driver.answered();
    }

    /// What primaries that held `before` when these writers began lack, or have too much; none where they hold that and
    /// what was acknowledged since.
    pub(super) fn missing(
        &self,
        before: &[ShardDigest],
        primaries: &[ShardDigest],
    ) -> Option<String> {
        let (before, now) = (by_index(before), by_index(primaries));
        self.driver.ledgers.all().iter().find_map(|ledger| {
            let of = |sums: &BTreeMap<String, RunSum>| {
                sums.get(&ledger.index).copied().unwrap_or_default()
            };
            let mut sums = Sums::clone(&ledger.sums.borrow());
            sums.begin_with(of(&before));
            let violation = sums.check(&ledger.index, of(&now));
            violation.map(|violation| violation.to_string())
        })
    }
}

impl Runner<'_> {
    /// A driver that writes to the leader.
    pub(crate) async fn driver(&self, detail: Detail) -> Result<Rc<Driver>> {
        let sizes: Vec<u64> = self.plan.indices.iter().map(|index| self.size(index)).collect();
        let ledgers = WriteLedgers::new(self.plan, &sizes, detail);
        let asker = self.clusters.asker(LEADER, PATIENCE)?;
        // The digests that writes are compared with hash documents in the same way.
        let hash = match self.reads_by_search(LEADER).await? {
            true => scan::hash_of_text,
            false => store::document_hash,
        };
        Ok(Driver::new(&self.env, self.plan, self.corpus(), asker, ledgers, hash))
    }

    /// Documents that an index is filled with.
    fn size(&self, index: &Index) -> u64 {
        match index.full.filter(|_| self.loads_sizes()) {
            Some(full) => full.documents,
            None => index.documents.end - index.documents.start,
        }
    }

    /// The writers of a variant, who have not begun; none where the plan has none.
    pub(crate) async fn background_writers(&self) -> Result<Option<BackgroundWriters>> {
        let Some(rate) = self.plan.background() else { return Ok(None) };
        let driver = self.driver(Detail::Sums).await?;
        let runs = Runs { documents_per_s: rate.documents_per_s, document_bytes: None };
        let runs = self.loads_sizes().then_some(RunRate { runs, every: RUN_EVERY });
        Ok(Some(BackgroundWriters { driver, rate, runs, began: Cell::default() }))
    }

    /// Stops the writers, each once its last request was answered, and notes how much they wrote.
    pub(crate) async fn end_writers(
        &self,
        variant: &Variant,
        writers: &BackgroundWriters,
    ) -> Result<()> {
        let Some(began) = writers.began.get() else { return Ok(()) };
        writers.driver.stop().await;
        let seconds = (self.env.now() - began).as_secs_f64();
        if let Some(error) = writers.driver.failure() {
            return Err(error);
        }
        writers.driver.ledgers.refuse_all_rejected()?;
        let (acknowledged, rejected, unanswered) = writers.driver.ledgers.counts();
        let per_s = acknowledged as f64 / seconds.max(1e-3);
        let documents = counted(show_count(acknowledged), "document", "documents");
        let mut text = format!("indexed {documents} beside, {per_s:.0}/s");
        let refused = (rejected, "was refused", "were refused");
        for (count, one, many) in [refused, (unanswered, "got no answer", "got no answer")] {
            if count > 0 {
                text.push_str(&format!("; {}", counted(show_count(count), one, many)));
            }
        }
        self.note(Some(variant), &text)
    }
}

/// Digests of the shards of each index, as one sum. It does not matter which shard a document is in.
fn by_index(shards: &[ShardDigest]) -> BTreeMap<String, RunSum> {
    let mut sums: BTreeMap<String, RunSum> = BTreeMap::new();
    for ShardDigest { index, documents, content, .. } in shards {
        let sum = sums.entry(index.clone()).or_default();
        // What is no number is equal to nothing that was written.
        let content = u64::from_str_radix(content, 16).unwrap_or(0);
        *sum = sum.plus(RunSum { documents: *documents, content });
    }
    sums
}
