//! One variant of a plan with a bucket: documents go from one server to the other.

use std::path::Path as Dir;
use std::time::Duration;

use dcp::client::ClientOptions;
use dcp::consumer::ConsumerKind;
use dcp::drain::{Drain, DrainSettings};
use dcp::policy::memory_of_today;
use dcp::rebalance::{Path, Rebalance};
use record::{ConsumerMemory, Line, NodeSample, Row, StreamFigures, ThreadUse};
use world::{Env, Time};

use super::documents::Documents;
use super::server::{BUCKET, RunningServer, ServerSpec, ServerUse, busy, credentials};
use super::settings::{StreamSettings, Way};
use crate::Error;
use crate::plan::{BucketUse, Resolved, Scope, Variant, models};
use crate::runner::{FOLLOWER, Journal, LEADER, Watch};

/// How often it is looked whether all has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Of a connection that drains the producer.
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
    destination: Option<RunningServer>,
}

/// What was seen of the destination while documents came.
#[derive(Default)]
struct Seen {
    used_bytes_max: u64,
    buffered_items_max: u64,
    last: Option<ServerUse>,
}

/// Measures one variant; its lines and its row are in the record when it returns. In the virtual world `env` is the
/// manager's host, and `dir` is a path on disks of its own.
///
/// # Errors
/// If a server does not start, a connection breaks, nothing comes any more, or what came is not what was sent.
pub async fn measure(
    env: &Env,
    plan: &Resolved,
    variant: &Variant,
    lap: u32,
    dir: &Dir,
    journal: &Journal<'_>,
    watch: &dyn Watch,
) -> Result<Row, Error> {
    let bucket = plan.bucket.as_ref().expect("a plan with this step has a bucket");
    let settings = StreamSettings::of(&variant.settings).map_err(|why| Error::Rejected { why })?;
    let name = Some(variant.name.as_str());
    watch.begin("fill", name, None, "");
    journal.phase("fill", true, name, lap)?;
    let bench = Bench::start(env, plan, variant, bucket, settings, dir).await?;
    journal.phase("fill", false, name, lap)?;
    watch.end();
    env.set_host_model(models(variant, Scope::Everywhere).host);
    let total = bucket.items * bucket.item_bytes;
    watch.begin("move", name, Some(total), "bytes");
    journal.phase("move", true, name, lap)?;
    let before = bench.busy().await?;
    let began = env.now();
    let seen = bench.stream(plan, variant, lap, journal, watch).await?;
    let seconds = (env.now() - began).as_secs_f64();
    let after = bench.busy().await?;
    journal.phase("move", false, name, lap)?;
    watch.end();
    let spent = |(name, after): (&'static str, Duration), before: Duration| ThreadUse {
        name: name.to_owned(),
        busy_s: after.saturating_sub(before).as_secs_f64(),
    };
    let threads = after.into_iter().zip(before).map(|(a, (_, b))| spent(a, b)).collect();
    let device = settings.consumer == ConsumerKind::Fast || settings.way == Way::Drain;
    let documents = if device { 0 } else { bench.verify().await? };
    let row = Row::measured(&variant.name, lap, seconds, total);
    let row = Row {
        verified: !device && documents == bucket.items,
        documents,
        node_bytes_per_s: Some(row.bytes_per_s),
        stream: Some(StreamFigures {
            threads,
            measuring_device: device,
            memory: bench.memory(&seen).filter(|_| !device),
        }),
        ..row
    };
    journal.row(&row)?;
    watch.row(&row);
    if !device && !row.verified {
        return Err(Error::NotTheSame { variant: variant.name.clone() });
    }
    Ok(row)
}

impl<'a> Bench<'a> {
    async fn start(
        env: &Env,
        plan: &Resolved,
        variant: &Variant,
        bucket: &'a BucketUse,
        settings: StreamSettings,
        dir: &Dir,
    ) -> Result<Bench<'a>, Error> {
        let documents = Documents::new(plan.seed, bucket.item_bytes, bucket.vbuckets);
        let source = ServerSpec {
            name: "producer".to_owned(),
            seed: plan.seed,
            vbuckets: bucket.vbuckets,
            memory: memory_of_today(bucket.quota_bytes),
            consumer: ConsumerKind::Mainstream,
            documents: documents.clone(),
            items: bucket.items,
            dir: dir.join("source"),
            model: models(variant, Scope::Leader).host,
        };
        let destination = ServerSpec {
            name: "consumer".to_owned(),
            memory: settings.destination_memory(bucket.quota_bytes),
            consumer: settings.consumer,
            items: 0,
            dir: dir.join("destination"),
            model: models(variant, Scope::Follower).host,
            ..source.clone()
        };
        let source = RunningServer::start(env, source).await?;
        let destination = match settings.way {
            Way::Drain => None,
            _ => Some(RunningServer::start(env, destination).await?),
        };
        Ok(Bench { env: env.clone(), settings, bucket, source, destination })
    }

    /// Core time of each thread of the path so far, from the source on.
    async fn busy(&self) -> Result<Vec<(&'static str, Duration)>, Error> {
        let proxy = match self.settings.way {
            Way::Rebalance => "manager's proxy",
            Way::DataCopy => "plain proxy",
            Way::Drain => "reader",
        };
        let mut all = vec![("producer", self.source.seen().await?.busy)];
        all.push((proxy, busy(&self.env)));
        if let Some(destination) = &self.destination {
            let name = match self.settings.consumer {
                ConsumerKind::Fast => "fast consumer, a measuring device",
                ConsumerKind::Batching => "batching consumer",
                ConsumerKind::Mainstream => "consumer",
            };
            all.push((name, destination.seen().await?.busy));
        }
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

    /// Streams everything; samples meanwhile.
    async fn stream(
        &self,
        plan: &Resolved,
        variant: &Variant,
        lap: u32,
        journal: &Journal<'_>,
        watch: &dyn Watch,
    ) -> Result<Seen, Error> {
        let Some(destination) = &self.destination else {
            self.drain().await?;
            return Ok(Seen::default());
        };
        let rebalance = |path| Rebalance {
            source: self.options(&self.source),
            destination: self.options(destination),
            path,
            name: "narrows".to_owned(),
            // In the real world the manager is this program, and does what it does.
            move_overhead: match self.env.is_virtual() {
                true => self.settings.move_overhead,
                false => Duration::ZERO,
            },
        };
        let mut seen = Seen::default();
        let mut sampler = Sampler::new(&self.env, plan.sample, &variant.name, lap);
        match self.settings.way {
            Way::Rebalance => {
                let rebalance = rebalance(Path::Decoding);
                let moving = async {
                    for vb in 0..self.bucket.vbuckets {
                        rebalance.move_vbucket(&self.env, vb).await?;
                    }
                    Ok::<(), Error>(())
                };
                tokio::select! {
                    biased;
                    moved = moving => moved?,
                    failed = self.watch_until(None, &mut seen, &mut sampler, journal, watch) => failed?,
                }
            }
            _ => {
                let vbuckets: Vec<u16> = (0..self.bucket.vbuckets).collect();
                let rebalance = rebalance(Path::Plain);
                let copying = rebalance.replicate(&self.env, &vbuckets).await?;
                let items = Some(self.bucket.items);
                tokio::select! {
                    biased;
                    done = self.watch_until(items, &mut seen, &mut sampler, journal, watch) => done?,
                    error = copying.failure() => return Err(error.into()),
                }
            }
        }
        Ok(seen)
    }

    async fn drain(&self) -> Result<(), Error> {
        let settings = DrainSettings {
            window_bytes: DRAIN_WINDOW_BYTES,
            connections: 1,
            rate_bytes_per_s: None,
            vbuckets: None,
            follow: false,
            name: "narrows".to_owned(),
        };
        let mut drain = Drain::start(&self.env, &self.options(&self.source), &settings).await?;
        Ok(drain.finish().await?)
    }

    /// Looks at the destination until it has so many items; forever without a number.
    async fn watch_until(
        &self,
        items: Option<u64>,
        seen: &mut Seen,
        sampler: &mut Sampler<'_>,
        journal: &Journal<'_>,
        watch: &dyn Watch,
    ) -> Result<(), Error> {
        let Some(destination) = &self.destination else { return Ok(()) };
        let mut moved = (self.env.now(), 0);
        loop {
            let now = destination.seen().await?;
            seen.used_bytes_max = seen.used_bytes_max.max(now.used_bytes);
            seen.buffered_items_max = seen.buffered_items_max.max(now.consumers.buffered_items);
            seen.last = Some(now);
            if items.is_some_and(|items| now.items >= items) {
                return Ok(());
            }
            if now.items > moved.1 {
                moved = (self.env.now(), now.items);
            } else if self.env.now().since(moved.0) > STUCK_AFTER {
                return Err(Error::Stuck {
                    variant: sampler.variant.to_owned(),
                    seconds: STUCK_AFTER.as_secs(),
                    bytes: now.items * self.bucket.item_bytes,
                    why: format!(
                        "the consumer has {} of {} documents and {} bytes in use",
                        now.items, self.bucket.items, now.used_bytes
                    ),
                });
            }
            if sampler.is_due() {
                watch.progress(now.items * self.bucket.item_bytes, None);
                for (name, busy) in self.busy().await? {
                    sampler.sample(journal, name, busy)?;
                }
                sampler.next();
            }
            self.env.sleep(LOOK_EVERY).await;
        }
    }

    async fn verify(&self) -> Result<u64, Error> {
        match &self.destination {
            Some(destination) => destination.verify(self.bucket.items).await,
            None => Ok(0),
        }
    }

    fn memory(&self, seen: &Seen) -> Option<ConsumerMemory> {
        let stats = seen.last?.consumers;
        Some(ConsumerMemory {
            quota_bytes: self.settings.destination_memory(self.bucket.quota_bytes).quota_bytes,
            used_bytes_max: seen.used_bytes_max,
            stops: stats.stops,
            stopped_s: stats.stopped.as_secs_f64(),
            longest_stop_s: stats.longest_stop.as_secs_f64(),
            buffered_items_max: seen.buffered_items_max,
        })
    }
}

/// Writes what threads do into the record.
struct Sampler<'a> {
    env: Env,
    every: Duration,
    variant: &'a str,
    lap: u32,
    due: Time,
    last: Vec<(&'static str, Time, Duration)>,
}

impl<'a> Sampler<'a> {
    fn new(env: &Env, every: Duration, variant: &'a str, lap: u32) -> Sampler<'a> {
        Sampler { env: env.clone(), every, variant, lap, due: env.now(), last: Vec::new() }
    }

    fn is_due(&self) -> bool {
        self.env.now() >= self.due
    }

    fn next(&mut self) {
        self.due = self.env.now() + self.every;
    }

    fn sample(
        &mut self,
        journal: &Journal<'_>,
        thread: &'static str,
        busy: Duration,
    ) -> Result<(), Error> {
        let now = self.env.now();
        let before = self.last.iter_mut().find(|(name, ..)| *name == thread);
        let cores = match before {
            Some((_, then, spent)) => {
                let wall = now.since(*then).as_secs_f64();
                let cores = busy.saturating_sub(*spent).as_secs_f64() / wall.max(1e-9);
                (*then, *spent) = (now, busy);
                cores
            }
            None => {
                self.last.push((thread, now, busy));
                return Ok(());
            }
        };
        let cluster = if thread == "producer" { LEADER } else { FOLLOWER };
        let sample = NodeSample {
            cluster: cluster.to_owned(),
            node: thread.to_owned(),
            cpu_cores: cores,
            ..NodeSample::default()
        };
        let variant = Some(self.variant.to_owned());
        journal.line(&Line::Node { t_ms: journal.t_ms(), variant, lap: self.lap, sample })
    }
}
