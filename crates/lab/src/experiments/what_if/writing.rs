//! Documents that are written to a twin while its nodes restart: they exist only as numbers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::Asker;
use world::{Env, Task};

use crate::error::Result;
use crate::plan::{LEADER, Question, Twin, TwinIndex, TwinShard};
use crate::runner::Runner;

/// How long a write may take: where a shard has no primary it waits for one, up to a minute.
const PATIENCE: Duration = Duration::from_secs(90);
/// An index is written to so often where that is not too much for all of them.
const EVERY: Duration = Duration::from_secs(1);
/// About so many writes of a shard are made in all.
const WRITES: f64 = 20_000.0;
/// ... but each node that is away misses at least so many of each index.
const WRITES_WHILE_AWAY: u32 = 4;
/// The most documents of one request.
const DOCUMENTS_MAX: u64 = 10_000_000;
/// What a document takes where an index has none yet.
const DOCUMENT_BYTES_WITHOUT: u64 = 1000;
/// Nodes that are tried for one write, as one of them may be away.
const TRIES: usize = 3;

/// Writers, one for each index that is written to.
pub(super) struct Writing {
    stops: Rc<Cell<bool>>,
    written: Rc<Cell<u64>>,
    writers: Vec<Task<()>>,
}

struct Writer {
    env: Env,
    asker: Rc<Asker>,
    index: String,
    documents_per_s: f64,
    document_bytes: u64,
    every: Duration,
    stops: Rc<Cell<bool>>,
    written: Rc<Cell<u64>>,
}

impl Writing {
    /// Begins to write to a twin whose nodes restart; nothing where nobody writes to it.
    pub(super) fn begin(run: &Runner<'_>, twin: &Twin) -> Result<Writing> {
        let (stops, written) = (Rc::<Cell<bool>>::default(), Rc::<Cell<u64>>::default());
        let asker = Rc::new(run.clusters.asker(LEADER, PATIENCE)?);
        let every = every(twin);
        let writer = |index: &TwinIndex| {
            let writer = Writer {
                env: run.env.clone(),
                asker: asker.clone(),
                index: index.name.clone(),
                documents_per_s: index.documents_per_s,
                document_bytes: document_bytes(index),
                every,
                stops: stops.clone(),
                written: written.clone(),
            };
            run.env.spawn("writes to a twin", async move { writer.write().await })
        };
        let writers = written_to(twin).map(writer).collect();
        Ok(Writing { stops, written, writers })
    }

    /// Ends the writers, each once its last request was answered; answers how many documents they wrote.
    pub(super) async fn end(self) -> u64 {
        self.stops.set(true);
        for writer in self.writers {
            // One that was aborted has ended, too.
            let _ = writer.await;
        }
        self.written.get()
    }
}

impl Writer {
    /// Writes as many documents at a time as are due.
    async fn write(&self) {
        let began = self.env.now();
        let (mut next, mut sent) = (began, 0);
        loop {
            next = next + self.every;
            // It is waited for: it is to end soon after it is told.
            while self.env.now() < next && !self.stops.get() {
                self.env.sleep_until(next.min(self.env.now() + EVERY)).await;
            }
            if self.stops.get() {
                return;
            }
            let seconds = (self.env.now() - began).as_secs_f64();
            let due = (seconds * self.documents_per_s) as u64 - sent;
            if due > 0 {
                sent += self.send(due.min(DOCUMENTS_MAX)).await;
            }
            next = next.max(self.env.now());
        }
    }

    /// How many of these documents the cluster took. Those of shards that have no primary are given up.
    async fn send(&self, documents: u64) -> u64 {
        let bytes = documents.saturating_mul(self.document_bytes);
        let path =
            format!("/{}/_narrows/run?documents={documents}&source_bytes={bytes}", self.index);
        for _ in 0..self.asker.nodes().min(TRIES) {
            let Ok(answer) = self.asker.ask("POST", &path, Bytes::new()).await else { continue };
            let written = answer.json().ok().and_then(|answer| answer["acknowledged"].as_u64());
            self.written.set(self.written.get() + written.unwrap_or(0));
            return documents;
        }
        0
    }
}

pub(super) fn written_to(twin: &Twin) -> impl Iterator<Item = &TwinIndex> {
    twin.indices.iter().filter(|index| index.documents_per_s > 0.0)
}

/// Bytes of a new document: the mean of the documents that are there, in files.
fn document_bytes(index: &TwinIndex) -> u64 {
    let sum = |of: fn(&TwinShard) -> u64| index.shards.iter().map(of).sum::<u64>();
    let documents = sum(|shard| shard.contents.documents);
    let bytes = sum(|shard| shard.contents.bytes).checked_div(documents);
    bytes.unwrap_or(DOCUMENT_BYTES_WITHOUT).max(1)
}

/// How often each index is written to: less often where many shards are for long.
fn every(twin: &Twin) -> Duration {
    let Question::Restart { nodes, down, .. } = &twin.question else { return EVERY };
    let shards: usize = written_to(twin).map(|index| index.shards.len()).sum();
    let seconds = down.as_secs_f64() * nodes.len() as f64;
    let every = Duration::from_secs_f64(seconds * shards as f64 / WRITES);
    every.max(EVERY).min((*down / WRITES_WHILE_AWAY).max(Duration::from_millis(100)))
}

#[cfg(test)]
mod tests {
    use engine::ShardContents;

    use super::*;

    fn twin(nodes: usize, shards: usize, down_s: u64) -> Twin {
        let contents = ShardContents { documents: 10, bytes: 5000, segments: 1 };
        let index = |documents_per_s: f64| TwinIndex {
            name: "logs".to_owned(),
            replicas: 1,
            documents_per_s,
            shards: vec![TwinShard { contents, nodes: vec![0, 1] }; shards],
            ..TwinIndex::default()
        };
        let (nodes, down) = ((0..nodes).collect(), Duration::from_secs(down_s));
        let question = Question::Restart { nodes, down, flush: false };
        let indices = vec![index(0.0), index(7.0)];
        Twin { nodes: Vec::new(), indices, question, uncertain: Vec::new() }
    }

    #[test]
    fn many_shards_are_written_to_less_often_and_still_miss_writes() {
        assert_eq!(every(&twin(3, 6, 30)), EVERY);
        assert_eq!(every(&twin(100, 10, 60)), Duration::from_secs(3));
        assert_eq!(every(&twin(300, 10_000, 60)), Duration::from_secs(15));
        assert_eq!(every(&twin(3, 6, 2)), Duration::from_millis(500));
    }

    #[test]
    fn a_document_is_as_large_as_those_that_are_there() {
        let mut twin = twin(3, 2, 30);
        assert_eq!(written_to(&twin).map(document_bytes).collect::<Vec<_>>(), [500]);
        twin.indices[1].shards.clear();
        assert_eq!(document_bytes(&twin.indices[1]), DOCUMENT_BYTES_WITHOUT);
    }
}
