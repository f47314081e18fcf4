//! The documents that one writer writes: new ones of its part of the corpus, and some that it replaces or deletes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use policy::routing::shard_of;
use record::ledger::Action;

use super::ledgers::Sent;
use crate::corpus::{DocumentReader, Random, Source};
use crate::error::Result;

/// How many of the documents that it wrote a writer remembers, to replace or delete them.
const REMEMBERED: usize = 4096;
/// The family of a writer's random numbers.
const FAMILY: u64 = 0x77_7269_7465;

/// A hash of a document, by `_id` and `_source`, as digests of copies count it.
pub(crate) type DocumentHash = fn(&str, &[u8]) -> u64;

/// What one writer writes, and when.
pub(super) struct Part {
    pub(super) target: usize,
    pub(super) documents: Range<u64>,
    /// A request starts no sooner than so long after the one before started.
    pub(super) every: Option<Duration>,
    /// The first request starts no sooner than so long from now.
    pub(super) after: Duration,
    pub(super) updates_in_1000: u32,
    pub(super) deletes_in_1000: u32,
}

pub(super) struct Batch {
    pub(super) body: Bytes,
    pub(super) writes: Vec<Sent>,
}

/// A writer's place in the corpus, and what it has written.
pub(super) struct Writer {
    reader: DocumentReader,
    chance: Random,
    written: Vec<u64>,
}

impl Writer {
    pub(super) fn new(source: &Source, seed: u64, part: &Part) -> Result<Writer> {
        Ok(Writer {
            reader: DocumentReader::new(source, seed, part.documents.clone())?,
            chance: Random::new(seed, FAMILY, part.documents.start),
            written: Vec::new(),
        })
    }

    /// The next bulk request, of at most so many documents, to an index of so many shards. A document is in it once.
    pub(super) fn batch(
        &mut self,
        part: &Part,
        (documents, shards): (u64, u32),
        hash: DocumentHash,
    ) -> Result<Batch> {
        let (mut body, mut writes) = (Vec::new(), Vec::new());
        let (mut used, mut source) = (BTreeSet::new(), Vec::new());
        for _ in 0..documents {
            let draw = self.chance.below(1000);
            let earlier = match draw < part.deletes_in_1000 + part.updates_in_1000 {
                true => self.pick().filter(|at| !used.contains(&self.written[*at])),
                false => None,
            };
            let deleted = earlier.filter(|_| draw < part.deletes_in_1000);
            let (document, action) = if let Some(at) = deleted {
                (self.written.swap_remove(at), Action::Delete)
            } else {
                source.clear();
                let Some(read) = self.reader.next(&mut source)? else { break };
                let document = earlier.map_or(read, |at| self.written[at]);
                if earlier.is_none() {
                    self.remember(read);
                }
                let content = hash(&format!("{document:x}"), &source);
                (document, Action::Index { content })
            };
            used.insert(document);
            let id = format!("{document:x}");
            let shard = shard_of(&id, shards);
            let name = if action == Action::Delete { "delete" } else { "index" };
            body.extend_from_slice(format!("{{\"{name}\":{{\"_id\":\"{id}\"}}}}\n").as_bytes());
            if action != Action::Delete {
                body.extend_from_slice(&source);
                body.push(b'\n');
            }
            writes.push(Sent::Write { id, shard, action });
        }
        Ok(Batch { body: body.into(), writes })
    }

    /// Picks one of the remembered documents; answers where it stands among them.
    fn pick(&mut self) -> Option<usize> {
        let count = self.written.len() as u32;
        (count > 0).then(|| self.chance.below(count) as usize)
    }

    fn remember(&mut self, document: u64) {
        match self.written.len() < REMEMBERED {
            true => self.written.push(document),
            false => {
                let at = self.chance.below(REMEMBERED as u32) as usize;
                self.written[at] = document;
            }
        }
    }
}
