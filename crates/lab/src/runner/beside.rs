//! What is indexed while something else is measured, and what copies hold for it afterwards.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use record::ShardDigest;
use record::ledger::{RunSum, Sums};
use world::Time;

use super::books::{Books, Entries};
use super::reading;
use super::writing::{Driver, PATIENCE, Pace};
use super::{LEADER, Runner};
use crate::Error;
use crate::plan::{Background, Index, Runs, Variant};

/// How often documents that exist only as a number are written: as often as bulk requests would come.
const RUN_EVERY: Duration = Duration::from_millis(100);

/// Writers beside something that is measured.
pub(super) struct Beside {
    driver: Rc<Driver>,
    rate: Background,
    runs: Option<Pace>,
    began: Cell<Option<Time>>,
}

impl Beside {
    /// Has the writers begin, unless they have.
    pub(super) fn begin(&self) {
        if self.began.get().is_none() {
            self.began.set(Some(self.driver.env.now()));
            self.driver.begin(self.rate, self.runs);
        }
    }
}

impl Runner<'_> {
    /// A driver that writes to the leader.
    pub(super) async fn driver(&self, entries: Entries) -> Result<Rc<Driver>, Error> {
        let sizes: Vec<u64> = self.plan.indices.iter().map(|index| self.size(index)).collect();
        let books = Books::new(self.plan, &sizes, entries);
        let asker = self.target.asker(LEADER, PATIENCE)?;
        // As the digests that it is compared with.
        let hash = match self.is_embedded(LEADER).await? {
            true => store::document_hash,
            false => reading::hash_of_text,
        };
        Ok(Driver::new(&self.env, self.plan, self.corpus(), asker, books, hash))
    }

    /// Documents that an index is filled with.
    fn size(&self, index: &Index) -> u64 {
        match index.full.filter(|_| self.loads()) {
            Some(full) => full.documents,
            None => index.documents.end - index.documents.start,
        }
    }

    /// Who writes beside what is measured, where the plan says that somebody does.
    pub(super) async fn beside(&self) -> Result<Option<Beside>, Error> {
        let Some(rate) = self.plan.background() else { return Ok(None) };
        let driver = self.driver(Entries::Sums).await?;
        let runs = Runs { documents_per_s: rate.documents_per_s, document_bytes: None };
        let runs = self.loads().then_some(Pace { runs, every: RUN_EVERY });
        Ok(Some(Beside { driver, rate, runs, began: Cell::default() }))
    }

    /// Has the writers end, each once it was answered, and tells what they wrote.
    pub(super) async fn end_beside(&self, variant: &Variant, beside: &Beside) -> Result<(), Error> {
        let Some(began) = beside.began.get() else { return Ok(()) };
        beside.driver.stop().await;
        let seconds = (self.env.now() - began).as_secs_f64();
        if let Some(error) = beside.driver.failure() {
            return Err(error);
        }
        let (acknowledged, rejected, unanswered) = beside.driver.books.counts();
        if acknowledged == 0 && rejected > 0 {
            let why = format!("all {rejected} that were written beside");
            return Err(Error::Rejected { why });
        }
        let per_s = acknowledged as f64 / seconds.max(1e-3);
        let mut text = format!("indexed {acknowledged} documents beside, {per_s:.0}/s");
        for (count, what) in [(rejected, "were refused"), (unanswered, "got no answer")] {
            if count > 0 {
                text.push_str(&format!("; {count} {what}"));
            }
        }
        self.note(Some(variant), &text)
    }

    /// What is wrong with what primaries hold, who held `before` what they held before the writers began; none where
    /// nothing is.
    pub(super) fn lacks(
        &self,
        beside: &Beside,
        before: &[ShardDigest],
        primaries: &[ShardDigest],
    ) -> Option<String> {
        let (before, now) = (by_index(before), by_index(primaries));
        beside.driver.books.all().iter().find_map(|book| {
            let of = |sums: &BTreeMap<String, RunSum>| {
                sums.get(&book.index).copied().unwrap_or_default()
            };
            let mut sums = Sums::clone(&book.sums.borrow());
            sums.begin_with(of(&before));
            let violation = sums.check(&book.index, of(&now));
            violation.map(|violation| violation.to_string())
        })
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
