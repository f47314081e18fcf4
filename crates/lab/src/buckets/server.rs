//! A server of one bucket on a thread of its own: a host's in the virtual world, the system's in the real one.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use dcp::auth::Credentials;
use dcp::bucket::{Bucket, BucketSettings};
use dcp::codec::{VbucketState, Write};
use dcp::consumer::{ConsumerKind, ConsumerStats, Count};
use dcp::idle::IdleTime;
use dcp::policy::MemorySettings;
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use tokio::sync::{mpsc, oneshot};
use world::{Env, Task, model};

use super::documents::{Documents, others_turn};
use super::held::{Held, HeldByVbucket};
use crate::calibration::clock::thread_time;
use crate::error::{Error, Result};

pub(crate) const BUCKET: &str = "example";
/// How long all that was written may take to get to disk, and a document to find memory.
const PERSISTED_WITHIN: Duration = Duration::from_secs(3600);
/// The source's share of memory for checkpoints. Its documents were written some time ago: checkpoints hold next to
/// nothing any more, and streams begin with what is on disk.
const OLD_CHECKPOINT_RATIO: f64 = 1e-3;
/// Documents that are written or read before others have a turn.
const AT_ONCE: u64 = 256;

#[derive(Clone)]
pub(crate) struct ServerSpec {
    /// Its name, of a thread and of a host.
    pub name: String,
    pub seed: u64,
    pub vbuckets: u16,
    pub memory: MemorySettings,
    pub consumer: ConsumerKind,
    pub documents: Documents,
    /// Documents that it holds at first; none at the destination.
    pub items: u64,
    pub dir: PathBuf,
    pub model: model::Host,
}

/// What a thread did so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadTime {
    /// Its core time.
    pub busy: Duration,
    /// Without work while a window was full.
    pub flow_control: Duration,
    /// Without work while its disk was at work.
    pub disk: Duration,
}

/// What a server says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerUse {
    pub thread: ThreadTime,
    /// Versions that it has taken in, or counted.
    pub items: u64,
    /// Vbuckets' streams that began again after a rollback.
    pub rollbacks: u64,
    pub used_bytes: u64,
    pub consumers: ConsumerStats,
}

enum Ask {
    Use(oneshot::Sender<ServerUse>),
    Held(oneshot::Sender<HeldByVbucket>),
    /// To be answered once all that is here is on disk.
    Persist(oneshot::Sender<Result<()>>),
    /// How many of the first so many documents are here as they should be.
    Verify(u64, oneshot::Sender<u64>),
}

/// Keeps a thread's loop, or a host's task.
enum Running {
    Task { _task: Task<Result<()>> },
    Thread(Option<std::thread::JoinHandle<Result<()>>>),
}

/// A server that runs. It ends when this is dropped.
pub(crate) struct RunningServer {
    pub address: String,
    asks: Option<mpsc::UnboundedSender<Ask>>,
    running: Running,
}

pub(crate) fn credentials() -> Credentials {
    Credentials { user: "narrows".to_owned(), password: "narrows".to_owned() }
}

impl RunningServer {
    /// Starts it; it has its documents, persisted, when this returns.
    pub async fn start(env: &Env, spec: ServerSpec) -> Result<RunningServer> {
        let (ready, came) = oneshot::channel();
        let (asks, asked) = mpsc::unbounded_channel();
        let mut running = if env.is_virtual() {
            let own = env.host(&spec.name);
            own.set_host_model(spec.model.clone());
            let serving = serve(own.clone(), spec, ready, asked);
            Running::Task { _task: own.spawn("serves a bucket", serving) }
        } else {
            let builder = std::thread::Builder::new().name(spec.name.clone());
            let seed = spec.seed;
            let body =
                move || world::real_world::run(seed, move |env| serve(env, spec, ready, asked));
            let thread = builder.spawn(body).map_err(|source| Error::Thread { source })?;
            Running::Thread(Some(thread))
        };
        match came.await {
            Ok(address) => Ok(RunningServer { address, asks: Some(asks), running }),
            Err(_) => Err(running.failure().unwrap_or_else(lost)),
        }
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let sent = self.asks.as_ref().map(|asks| asks.send(ask(answer)));
        match (sent, answered.await) {
            (Some(Ok(())), Ok(answer)) => Ok(answer),
            _ => Err(lost()),
        }
    }

    pub async fn seen(&self) -> Result<ServerUse> {
        self.ask(Ask::Use).await
    }

    /// What it says that it holds of each vbucket.
    pub async fn held(&self) -> Result<HeldByVbucket> {
        self.ask(Ask::Held).await
    }

    /// Waits until all that it has is on disk.
    pub async fn persisted(&self) -> Result<()> {
        self.ask(Ask::Persist).await?
    }

    /// How many of the first `items` documents it holds as they should be.
    pub async fn verify(&self, items: u64) -> Result<u64> {
        self.ask(|answer| Ask::Verify(items, answer)).await
    }
}

fn lost() -> Error {
    Error::Thread { source: std::io::Error::other("a bucket's server has ended") }
}

impl Running {
    fn failure(&mut self) -> Option<Error> {
        match self {
            Running::Task { .. } => None,
            Running::Thread(thread) => thread.take()?.join().ok()?.err(),
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // The loop ends when nobody can ask any more. Its files are in a directory that the caller removes.
        self.asks = None;
        self.running.failure();
    }
}

async fn serve(
    env: Env,
    spec: ServerSpec,
    ready: oneshot::Sender<String>,
    mut asked: mpsc::UnboundedReceiver<Ask>,
) -> Result<()> {
    let mut memory = spec.memory;
    if spec.items > 0 {
        memory.checkpoint_memory_ratio = OLD_CHECKPOINT_RATIO;
    }
    let quota_bytes = memory.quota_bytes;
    let settings =
        BucketSettings { memory, ..BucketSettings::new(BUCKET, spec.vbuckets, quota_bytes) };
    let bucket = Bucket::open(&env, settings, &spec.dir).await?;
    match spec.items {
        0 => (0..spec.vbuckets).for_each(|vb| {
            let _ = bucket.set_state(vb, VbucketState::Dead);
        }),
        items => fill(&env, &bucket, &spec.documents, items).await?,
    }
    let listener = PacketListener::bind(&env, &env.any_address()).await?;
    let users = vec![credentials()];
    let settings = ServerSettings { users, consumer: spec.consumer };
    let server = Server::start(&env, listener, vec![bucket.clone()], settings)?;
    let idle = || {
        let own = env.clone();
        IdleTime::new(&env, move || busy(&own))
    };
    let (flow_control, disk) = (idle(), idle());
    server.count_flow_control(flow_control.clone());
    bucket.count_disk_waits(disk.clone());
    let thread = || ThreadTime {
        busy: busy(&env),
        flow_control: flow_control.so_far(),
        disk: disk.so_far(),
    };
    if ready.send(server.address().to_owned()).is_err() {
        return Ok(());
    }
    while let Some(ask) = asked.recv().await {
        match ask {
            Ask::Use(answer) => drop(answer.send(seen(thread(), &spec, &bucket, &server))),
            Ask::Held(answer) => drop(answer.send(held(&spec, &bucket, &server))),
            Ask::Persist(answer) => drop(answer.send(persisted(&bucket).await)),
            Ask::Verify(items, answer) => {
                let found = verify(&env, &bucket, &spec.documents, items).await;
                let _ = answer.send(found);
            }
        }
    }
    Ok(())
}

fn seen(thread: ThreadTime, spec: &ServerSpec, bucket: &Bucket, server: &Server) -> ServerUse {
    let (items, rollbacks) = match spec.consumer {
        ConsumerKind::Fast => {
            let counts = server.counts(BUCKET).unwrap_or_default().all();
            let sum = |of: fn(&Count) -> u64| counts.values().map(of).sum();
            (sum(Count::items), sum(|count| count.rollbacks))
        }
        _ => {
            let seqnos = bucket.seqnos(None).into_iter();
            (seqnos.map(|(_, seqno)| seqno).sum(), bucket.stats().rollbacks)
        }
    };
    ServerUse {
        thread,
        items,
        rollbacks,
        used_bytes: bucket.used_bytes(),
        consumers: server.consumer_stats(BUCKET),
    }
}

fn held(spec: &ServerSpec, bucket: &Bucket, server: &Server) -> HeldByVbucket {
    if spec.consumer == ConsumerKind::Fast {
        let counted = |(vb, count): (u16, Count)| {
            (vb, Held { documents: count.items(), high_seqno: count.at.last() })
        };
        return server.counts(BUCKET).unwrap_or_default().all().into_iter().map(counted).collect();
    }
    let of = |vb: u16| {
        let (documents, high_seqno) = (bucket.documents_of(vb)?, bucket.high_seqno(vb)?);
        Some((vb, Held { documents, high_seqno }))
    };
    bucket.vbuckets().into_iter().filter_map(of).collect()
}

/// Core time of this thread; in the virtual world that of its host, which has one core.
pub(crate) fn busy(env: &Env) -> Duration {
    if env.is_virtual() { env.cpu_time() } else { thread_time() }
}

async fn fill(env: &Env, bucket: &Bucket, documents: &Documents, items: u64) -> Result<()> {
    for number in 0..items {
        let ((key, vb), value) = (documents.key(number), documents.value(number));
        let write = Write { flags: 0, expiry: 0, key, value };
        let written = bucket.write_within(vb, write, PERSISTED_WITHIN).await;
        written.map_err(|status| Error::Rejected {
            why: format!("document {number}: {}", status.name()),
        })?;
        if number % AT_ONCE == 0 {
            others_turn(env).await;
        }
    }
    persisted(bucket).await
}

/// Waits until all that a bucket has is on disk.
async fn persisted(bucket: &Bucket) -> Result<()> {
    let persisted = bucket.wait_all_persisted(PERSISTED_WITHIN).await;
    persisted.map_err(|error| Error::Rejected { why: error.to_string() })
}

async fn verify(env: &Env, bucket: &Bucket, documents: &Documents, items: u64) -> u64 {
    let mut right = 0;
    for vb in bucket.vbuckets() {
        // Nobody streams to it any more: clients may read it.
        let _ = bucket.set_state(vb, VbucketState::Active);
    }
    for number in 0..items {
        let (key, vb) = documents.key(number);
        let read = bucket.get(vb, &key).await;
        let is = |value: &Bytes| *value == documents.value(number);
        right += u64::from(read.is_ok_and(|document| is(&document.value)));
        if number % AT_ONCE == 0 {
            others_turn(env).await;
        }
    }
    right
}
