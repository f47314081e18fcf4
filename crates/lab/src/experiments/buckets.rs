//! `move`: a bucket's documents go from one server to another.

use std::path::Path as Dir;
use std::time::Duration;

use dcp::client::ClientOptions;
use dcp::consumer::ConsumerKind;
use dcp::drain::{Drain, DrainSettings};
use dcp::policy::memory_of_today;
use dcp::rebalance::{Bridge, Path, Rebalance};
use futures_util::future::{select_all, try_join_all};
use record::{ConsumerMemory, Row, StreamFigures, ThreadUse};
use world::Env;

use crate::buckets::{
    BUCKET, Destinations, Documents, HeldByVbucket, RunningServer, Sampler, ServerSpec, ServerUse,
    StreamPath, StreamSettings, ThreadTime, busy, credentials, differing,
};
use crate::error::{Error, Result};
use crate::plan::{BucketUse, DeclaredStep, Needs, ParameterScope, Resolved, Writers, models};
use crate::runner::{Journal, Turn, Watch};

/// How often the destination is asked whether everything has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Window of a connection that drains the producer.
const DRAIN_WINDOW_BYTES: u32 = 20 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// Nothing has come for so long: it stands still.
const STUCK_AFTER: Duration = Duration::from_secs(300);

/// What takes part in one variant.
struct Bench<'a> {
    env: Env,
    settings: StreamSettings,
    bucket: &'a BucketUse,
    source: RunningServer,
    /// What the source said that it holds before anything was streamed.
    held: HeldByVbucket,
    destinations: Destinations,
}

/// What streaming everything took.
struct Streamed {
    seconds: f64,
    threads: Vec<ThreadUse>,
    /// From the beginning until all was on disk, where it is kept.
    persisted_s: Option<f64>,
    /// Bytes of documents that came, those that came again after a rollback too.
    bytes: u64,
    rollbacks: u64,
    seen: Seen,
}

/// What was seen of the destination while documents came.
#[derive(Default)]
struct Seen {
    used_bytes_max: u64,
    buffered_items_max: u64,
    last: Option<ServerUse>,
    /// Documents that a reader got that has no destination.
    drained: u64,
}

/// One variant and lap: where it runs, and where it is recorded.
pub(crate) struct Stage<'a, 'j> {
    /// In the virtual world the manager's host.
    pub(crate) env: &'a Env,
    pub(crate) plan: &'a Resolved,
    pub(crate) turn: &'a Turn<'a>,
    /// A directory for the servers' files; in the virtual world a path on disks of their own.
    pub(crate) dir: &'a Dir,
    pub(crate) journal: &'a Journal<'j>,
    pub(crate) watch: &'a dyn Watch,
}

#[derive(Default)]
pub(crate) struct StreamBuckets;

impl StreamBuckets {
    pub(crate) const STEP: DeclaredStep =
        DeclaredStep { writers: Writers::Never, ..DeclaredStep::new("move", Needs::Bucket) };

    /// Takes a variant through its steps; its lines and its row are in the record when it returns. What it leaves are
    /// servers, which end with it, and files in a directory that its caller removes. Fails if a server does not start,
    /// a connection breaks, nothing comes any more, or what came is not what was sent.
    pub(crate) async fn run(stage: &Stage<'_, '_>) -> Result<Row> {
        let bench = Bench::prepare(stage).await?;
        let streamed = bench.measure(stage).await?;
        let differing = bench.differing().await?;
        // What a device measured is nothing without all documents.
        if bench.keeps_nothing() {
            as_at_the_source(stage.turn, &differing)?;
        }
        let row = bench.verify(stage, streamed, differing.is_empty()).await?;
        stage.journal.row(&row)?;
        stage.watch.row(&row);
        as_at_the_source(stage.turn, &differing)?;
        if !bench.keeps_nothing() && !row.verified {
            return Err(Error::NotTheSame { variant: stage.turn.variant.name.clone() });
        }
        Ok(row)
    }
}

impl<'a> Bench<'a> {
    /// Starts both servers, the source with its documents.
    async fn prepare(stage: &Stage<'a, '_>) -> Result<Bench<'a>> {
        let Stage { env, plan, turn: Turn { variant, lap, .. }, dir, journal, watch } = stage;
        let bucket = plan.bucket.as_ref().expect("a plan with this step has a bucket");
        let settings =
            StreamSettings::of(&variant.settings).map_err(|why| Error::Rejected { why })?;
        watch.begin("fill", Some(&variant.name), None, "");
        journal.phase("fill", true, Some(&variant.name), *lap)?;
        let documents = Documents::new(plan.seed, bucket);
        let source = ServerSpec {
            name: "producer".to_owned(),
            seed: plan.seed,
            vbuckets: bucket.vbuckets,
            memory: memory_of_today(bucket.quota_bytes),
            consumer: ConsumerKind::Mainstream,
            documents: documents.clone(),
            items: bucket.items,
            dir: dir.join("source"),
            model: models(variant, ParameterScope::Leader).host,
        };
        let destination = ServerSpec {
            name: "consumer".to_owned(),
            memory: settings.destination_memory(bucket.quota_bytes),
            consumer: settings.consumer,
            items: 0,
            dir: dir.join("destination"),
            model: models(variant, ParameterScope::Follower).host,
            ..source.clone()
        };
        let source = RunningServer::start(env, source).await?;
        let held = source.held().await?;
        let destinations = match settings.path {
            StreamPath::Drain => Destinations::none(),
            _ => Destinations::start(env, &destination, settings.consumer_threads).await?,
        };
        journal.phase("fill", false, Some(&variant.name), *lap)?;
        watch.end();
        env.set_host_model(models(variant, ParameterScope::Everywhere).host);
        Ok(Bench { env: (*env).clone(), settings, bucket, source, held, destinations })
    }

    /// What each thread of the path did so far, from the source on.
    async fn threads(&self) -> Result<Vec<(String, ThreadTime)>> {
        let proxy = match self.settings.path {
            StreamPath::Rebalance => "manager's proxy",
            StreamPath::DataCopy => "plain proxy",
            StreamPath::Drain => "reader",
        };
        let consumer = match self.settings.consumer {
            ConsumerKind::Fast => "fast consumer, a measuring device",
            ConsumerKind::Batching => "batching consumer",
            ConsumerKind::Mainstream => "consumer",
        };
        let mut all = vec![("producer".to_owned(), self.source.seen().await?.thread)];
        // It has neither a disk nor a window that others fill.
        let own = ThreadTime { busy: busy(&self.env), ..ThreadTime::default() };
        all.push((proxy.to_owned(), own));
        all.extend(self.destinations.threads(consumer).await?);
        Ok(all)
    }

    fn options(&self, server: &RunningServer) -> ClientOptions {
        ClientOptions {
            address: server.address.clone(),
            bucket: BUCKET.to_owned(),
            credentials: credentials(),
            tls: None,
            timeout: ANSWER_WITHIN,
            agent: "narrows".to_owned(),
        }
    }

    /// Whether what comes is counted alone: the consumer measures, and keeps nothing.
    fn keeps_nothing(&self) -> bool {
        self.settings.consumer == ConsumerKind::Fast || self.settings.path == StreamPath::Drain
    }

    /// How many documents come: a device that keeps nothing has no history either, so that each vbucket that it takes
    /// over rolls back, and comes twice.
    fn coming(&self) -> u64 {
        let BucketUse { items, vbuckets, .. } = *self.bucket;
        let twice = match (self.settings.path, self.settings.consumer) {
            (StreamPath::Rebalance, ConsumerKind::Fast) => {
                self.settings.takeovers.map_or(vbuckets, |takeovers| takeovers.min(vbuckets))
            }
            _ => 0,
        };
        items + items * u64::from(twice) / u64::from(vbuckets)
    }

    /// Streams everything, and waits until it is on disk.
    async fn measure(&self, stage: &Stage<'_, '_>) -> Result<Streamed> {
        let Stage { turn: Turn { variant, lap, .. }, journal, watch, .. } = stage;
        let total = self.coming() * self.bucket.item_bytes;
        watch.begin("move", Some(&variant.name), Some(total), "bytes");
        journal.phase("move", true, Some(&variant.name), *lap)?;
        let (before, began) = (self.threads().await?, self.env.now());
        let seen = self.stream(stage).await?;
        let seconds = (self.env.now() - began).as_secs_f64();
        let before = before.into_iter().map(|(_, before)| before);
        let after = self.threads().await?.into_iter();
        let threads = after.zip(before).map(|((name, after), before)| spent(name, after, before));
        let threads = threads.collect();
        let (items, rollbacks) = match self.destinations.is_none() {
            true => {
                all_came(&variant.name, seen.drained, self.bucket.items)?;
                (seen.drained, 0)
            }
            false => {
                let all = self.destinations.seen().await?;
                (all.items, all.rollbacks)
            }
        };
        let bytes = items * self.bucket.item_bytes;
        let persisted_s = match self.keeps_nothing() {
            true => None,
            false => {
                self.destinations.persisted().await?;
                Some((self.env.now() - began).as_secs_f64())
            }
        };
        journal.phase("move", false, Some(&variant.name), *lap)?;
        watch.end();
        Ok(Streamed { seconds, threads, persisted_s, bytes, rollbacks, seen })
    }

    /// The vbuckets that are not at the destination, if there is one, as the source says that it has them.
    async fn differing(&self) -> Result<Vec<u16>> {
        if self.destinations.is_none() {
            return Ok(Vec::new());
        }
        Ok(differing(&self.held, &self.destinations.held().await?, self.keeps_nothing()))
    }

    /// Reads every document at the destination, unless that keeps nothing; the row with what was found. `same` says
    /// whether both sides say the same of their vbuckets.
    async fn verify(&self, stage: &Stage<'_, '_>, streamed: Streamed, same: bool) -> Result<Row> {
        let device = self.keeps_nothing();
        let items = self.bucket.items;
        let documents = if device { 0 } else { self.destinations.verify(items).await? };
        let Turn { variant, lap, .. } = stage.turn;
        let bytes = items * self.bucket.item_bytes;
        let row = Row::measured(&variant.name, *lap, streamed.seconds, bytes);
        Ok(Row {
            verified: !device && documents == items && same,
            documents,
            node_bytes_per_s: Some(streamed.bytes as f64 / streamed.seconds),
            stream: Some(StreamFigures {
                threads: streamed.threads,
                measuring_device: device,
                memory: self.memory(&streamed.seen).filter(|_| !device),
                persisted_s: streamed.persisted_s,
                overhead_s: self.overhead().as_secs_f64(),
                rollbacks: streamed.rollbacks,
                again_bytes: streamed.bytes.saturating_sub(bytes),
            }),
            ..row
        })
    }

    /// Streams everything; samples meanwhile.
    async fn stream(&self, stage: &Stage<'_, '_>) -> Result<Seen> {
        if self.destinations.is_none() {
            return Ok(Seen { drained: self.drain().await?, ..Seen::default() });
        }
        let mut seen = Seen::default();
        let mut sampler = Sampler::new(&self.env, stage.plan.sample, stage.turn);
        let all = Some(self.bucket.items);
        match self.settings.path {
            StreamPath::Rebalance => {
                tokio::select! {
                    biased;
                    moved = self.rebalance() => moved?,
                    failed = self.watch_until(None, &mut seen, &mut sampler, stage) => failed?,
                }
            }
            _ => {
                let copying = self.copy().await?;
                tokio::select! {
                    biased;
                    done = self.watch_until(all, &mut seen, &mut sampler, stage) => done?,
                    error = any_failure(&copying) => return Err(error),
                }
            }
        }
        Ok(seen)
    }

    /// In the real world this program is the manager, and a move takes the time that it takes.
    fn move_overhead(&self) -> Duration {
        if self.env.is_virtual() { self.settings.move_overhead } else { Duration::ZERO }
    }

    /// How long nothing is streamed because the manager prepares moves: one after another for each thread of the
    /// destination. A copy has none.
    fn overhead(&self) -> Duration {
        let moves = match self.settings.path {
            StreamPath::Rebalance => self.bucket.vbuckets.div_ceil(self.settings.consumer_threads),
            StreamPath::DataCopy | StreamPath::Drain => 0,
        };
        self.move_overhead() * u32::from(moves)
    }

    /// How vbuckets get to each thread of the destination, and which.
    fn rebalances(&self, path: Path) -> impl Iterator<Item = (Rebalance, Vec<u16>)> {
        let parts = self.destinations.with_vbuckets(self.bucket.vbuckets);
        parts.enumerate().map(move |(thread, (destination, vbuckets))| {
            let rebalance = Rebalance {
                source: self.options(&self.source),
                destination: self.options(destination),
                path,
                // A connection of the same name would end the one before.
                name: format!("narrows-{thread}"),
                move_overhead: self.move_overhead(),
            };
            (rebalance, vbuckets)
        })
    }

    /// Moves every vbucket, or builds a replica of it, one at a time to each thread.
    async fn rebalance(&self) -> Result<()> {
        let moving = self.rebalances(Path::Decoding).map(async |(rebalance, vbuckets)| {
            let mut replicas = Vec::new();
            for vb in vbuckets {
                if self.settings.takeovers.is_none_or(|takeovers| vb < takeovers) {
                    rebalance.move_vbucket(&self.env, vb).await?;
                } else {
                    replicas.push(rebalance.build_replica(&self.env, vb).await?);
                }
            }
            Ok::<_, Error>(replicas)
        });
        try_join_all(moving).await.map(drop)
    }

    /// Begins to copy every vbucket.
    async fn copy(&self) -> Result<Vec<Bridge>> {
        let mut copying = Vec::new();
        for (rebalance, vbuckets) in self.rebalances(Path::Plain) {
            copying.push(rebalance.replicate(&self.env, &vbuckets).await?);
        }
        Ok(copying)
    }

    /// Reads everything, and answers how many documents that were.
    async fn drain(&self) -> Result<u64> {
        let settings = DrainSettings::new(DRAIN_WINDOW_BYTES, "narrows");
        let mut drain = Drain::start(&self.env, &self.options(&self.source), &settings).await?;
        drain.finish().await?;
        Ok(drain.report().items())
    }

    /// Looks at the destination until it has so many items; forever without a number.
    async fn watch_until(
        &self,
        items: Option<u64>,
        seen: &mut Seen,
        sampler: &mut Sampler<'_>,
        stage: &Stage<'_, '_>,
    ) -> Result<()> {
        let mut moved = (self.env.now(), 0);
        loop {
            let now = self.destinations.seen().await?;
            seen.used_bytes_max = seen.used_bytes_max.max(now.used_bytes);
            seen.buffered_items_max = seen.buffered_items_max.max(now.consumers.buffered_items);
            seen.last = Some(now);
            if items.is_some_and(|items| now.items >= items) {
                return Ok(());
            }
            if now.items > moved.1 {
                moved = (self.env.now(), now.items);
            } else if self.env.now() - moved.0 > STUCK_AFTER {
                return Err(Error::Stuck {
                    variant: stage.turn.variant.name.clone(),
                    seconds: STUCK_AFTER.as_secs(),
                    bytes: now.items * self.bucket.item_bytes,
                    why: format!(
                        "the consumer has {} of {} documents and {} bytes in use",
                        now.items, self.bucket.items, now.used_bytes
                    ),
                });
            }
            if sampler.is_due() {
                let (moved, total) = (now.items, self.coming());
                let bytes = |items: u64| items * self.bucket.item_bytes;
                stage.watch.progress(bytes(moved.min(total)), None);
                sampler.progress(stage.journal, bytes(moved), bytes(total.max(moved)))?;
                for (name, thread) in self.threads().await? {
                    sampler.sample(stage.journal, &name, thread.busy)?;
                }
                sampler.next();
            }
            self.env.sleep(LOOK_EVERY).await;
        }
    }

    fn memory(&self, seen: &Seen) -> Option<ConsumerMemory> {
        let stats = seen.last?.consumers;
        Some(ConsumerMemory {
            quota_bytes: self.settings.destination_memory(self.bucket.quota_bytes).quota_bytes
                * u64::from(self.settings.consumer_threads),
            used_bytes_max: seen.used_bytes_max,
            stops: stats.stops,
            stopped_s: stats.stopped.as_secs_f64(),
            longest_stop_s: stats.longest_stop.as_secs_f64(),
            buffered_items_max: seen.buffered_items_max,
        })
    }
}

/// What a thread did between two moments.
fn spent(name: String, after: ThreadTime, before: ThreadTime) -> ThreadUse {
    let seconds =
        |of: fn(&ThreadTime) -> Duration| of(&after).saturating_sub(of(&before)).as_secs_f64();
    ThreadUse {
        name,
        busy_s: seconds(|thread| thread.busy),
        flow_control_s: Some(seconds(|thread| thread.flow_control)),
        disk_s: Some(seconds(|thread| thread.disk)),
    }
}

/// Refuses a measurement in which streams ended before every document had come: its rate would be wrong.
fn all_came(variant: &str, came: u64, items: u64) -> Result<()> {
    match came < items {
        true => Err(Error::Short { variant: variant.to_owned(), came, items }),
        false => Ok(()),
    }
}

/// Refuses a destination that differs from its source in these vbuckets.
fn as_at_the_source(turn: &Turn<'_>, differing: &[u16]) -> Result<()> {
    let Some(first) = differing.first().copied() else { return Ok(()) };
    let (variant, count) = (turn.variant.name.clone(), differing.len());
    Err(Error::OtherVbuckets { variant, count, first })
}

/// Waits until a copy breaks off.
async fn any_failure(copying: &[Bridge]) -> Error {
    let (failed, ..) = select_all(copying.iter().map(|copy| Box::pin(copy.failure()))).await;
    failed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_end_early_are_no_measurement() {
        assert!(all_came("a", 10, 10).is_ok());
        assert!(matches!(all_came("a", 9, 10), Err(Error::Short { came: 9, items: 10, .. })));
    }
}
