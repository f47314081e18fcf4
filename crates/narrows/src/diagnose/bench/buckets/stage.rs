//! Nodes of a bucket under given conditions, and who reads it.

use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use dcp::auth::Credentials;
use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits};
use dcp::client::ClientOptions;
use dcp::codec::{VbucketState, Write};
use dcp::drain::{Drain, DrainSettings};
use dcp::rebalance::{Bridge, Path, Rebalance};
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use world::model::Disk;
use world::{Env, Link, LinkConfig, Task};

use super::super::one_cause::World;
use super::case::{Conditions, Consumer};
use crate::interrupt::in_virtual_time;

const BUCKET: &str = "example";
const PERSISTED_WITHIN: Duration = Duration::from_secs(60);
/// Documents that are written before others have a turn.
const AT_ONCE: u64 = 256;
/// A producer whose documents are older than what its memory holds has checkpoints of next to nothing.
const OLD: CheckpointLimits = CheckpointLimits { max_items: 50, max_bytes: 1 << 20 };
/// Writes come so often.
const WRITE_EVERY: Duration = Duration::from_millis(10);

/// Makes conditions, acts, and takes them away.
pub(super) async fn on_stage<T: 'static>(
    world: World<'_>,
    seed: u64,
    conditions: &Conditions,
    act: impl AsyncFnOnce(&Stage) -> anyhow::Result<T> + 'static,
) -> anyhow::Result<T> {
    let conditions = conditions.clone();
    let whole = async move |env: Env| {
        let stage = Stage::set(&env, &conditions).await?;
        act(&stage).await
    };
    match world {
        World::Virtual => in_virtual_time(seed, whole),
        World::Real(env) => whole(env.clone()).await,
    }
}

/// A node of the bucket.
struct Node {
    bucket: Bucket,
    server: Server,
    _dir: clusters::TemporaryDir,
}

impl Node {
    async fn start(env: &Env, name: &str, settings: BucketSettings) -> anyhow::Result<Node> {
        let dir = clusters::TemporaryDir::make()?;
        let bucket = Bucket::open(env, settings, &dir.path().join(name)).await?;
        let listener = PacketListener::bind(env, &env.any_address()).await?;
        let settings = ServerSettings { users: vec![user()], ..ServerSettings::default() };
        let server = Server::start(env, listener, vec![bucket.clone()], settings)?;
        Ok(Node { bucket, server, _dir: dir })
    }

    fn options(&self) -> ClientOptions {
        ClientOptions {
            address: self.server.address().to_owned(),
            bucket: BUCKET.to_owned(),
            credentials: user(),
            tls: None,
            timeout: Duration::from_secs(5),
            agent: "bench".to_owned(),
        }
    }
}

fn user() -> Credentials {
    Credentials { user: "narrows".to_owned(), password: "narrows".to_owned() }
}

enum Reader {
    Client(Drain),
    /// Its bucket receives for as long as the first is kept.
    Node(#[allow(dead_code, reason = "kept")] Task<dcp::Result<Bridge>>, Node),
}

/// A bucket that is read.
pub(crate) struct Stage {
    pub(crate) env: Env,
    source: Node,
    reader: Reader,
    value_bytes: u64,
    _link: Link,
    _writes: Option<Task<()>>,
}

impl Stage {
    /// The bucket has its documents, and reading has begun.
    async fn set(env: &Env, conditions: &Conditions) -> anyhow::Result<Stage> {
        // In the real world hosts share the process, and each has a disk of its own where that is slow.
        let (near, far) = (env.host("near"), env.host("far"));
        let mut settings = BucketSettings::new(BUCKET, conditions.vbuckets, conditions.quota_bytes);
        if conditions.bytes > conditions.quota_bytes {
            settings.checkpoints = OLD;
        }
        let source = Node::start(&near, "near", settings).await?;
        fill(&near, &source.bucket, conditions).await?;
        if let Some(rate) = conditions.reads_bytes_per_s {
            near.set_disk(Disk { read_bytes_per_s: rate as u64, ..Disk::default() });
        }
        let mut link = LinkConfig::default();
        if let Consumer::Node { path_bytes_per_s, rtt, .. } = conditions.to {
            (link.rtt, link.rate_bytes_per_s) = (rtt, Some(path_bytes_per_s));
        }
        let link = Link::open(env, link);
        let reader = read(&far, &source, &link, conditions).await?;
        let writes = conditions.writes_bytes_per_s.map(|rate| {
            let writing =
                go_on_writing(near.clone(), source.bucket.clone(), conditions.clone(), rate);
            near.spawn("writes", writing)
        });
        let value_bytes = conditions.value_bytes as u64;
        Ok(Stage { env: env.clone(), source, reader, value_bytes, _link: link, _writes: writes })
    }

    /// How to reach the nodes that are looked at.
    pub(crate) fn options(&self) -> Vec<ClientOptions> {
        let consumer = match &self.reader {
            Reader::Client(_) => None,
            Reader::Node(_, node) => Some(node.options()),
        };
        [self.source.options()].into_iter().chain(consumer).collect()
    }

    /// Bytes that came.
    pub(crate) fn came(&self) -> u64 {
        match &self.reader {
            Reader::Client(drain) => drain.report().bytes(),
            Reader::Node(_, node) => {
                let versions: u64 = node.bucket.seqnos(None).iter().map(|(_, high)| high).sum();
                versions * self.value_bytes
            }
        }
    }
}

async fn read(
    env: &Env,
    source: &Node,
    link: &Link,
    conditions: &Conditions,
) -> anyhow::Result<Reader> {
    match conditions.to {
        Consumer::Client { window_bytes, takes_bytes_per_s, follows } => {
            let settings = DrainSettings {
                rate_bytes_per_s: takes_bytes_per_s,
                follow: follows,
                ..DrainSettings::new(window_bytes, "reader")
            };
            Ok(Reader::Client(Drain::start(env, &source.options(), &settings).await?))
        }
        Consumer::Node { quota_bytes, writes_bytes_per_s, .. } => {
            if let Some(rate) = writes_bytes_per_s {
                env.set_disk(Disk { write_bytes_per_s: rate as u64, ..Disk::default() });
            }
            let settings = BucketSettings::new(BUCKET, conditions.vbuckets, quota_bytes);
            let to = Node::start(env, "far", settings).await?;
            let vbuckets: Vec<u16> = (0..conditions.vbuckets).collect();
            for vb in &vbuckets {
                let set = to.bucket.set_state(*vb, VbucketState::Dead);
                set.map_err(|status| anyhow!("a vbucket is not given up: {}", status.name()))?;
            }
            let through = link.route(source.server.address()).await?;
            let rebalance = Rebalance {
                source: ClientOptions { address: through, ..source.options() },
                destination: to.options(),
                path: Path::Plain,
                name: "bench".to_owned(),
                move_overhead: Duration::ZERO,
            };
            // The answer to a request for a stream stands in line behind what the streams before it send.
            let clock = env.clone();
            let moving = async move { rebalance.replicate(&clock, &vbuckets).await };
            Ok(Reader::Node(env.spawn("replicates", moving), to))
        }
    }
}

/// Writes a document, once there is memory for it.
async fn write(bucket: &Bucket, number: u64, value: &Bytes) -> anyhow::Result<()> {
    let vb = (number % u64::from(bucket.settings().vbuckets)) as u16;
    let key = format!("key{number}").into();
    let document = Write { flags: 0, expiry: 0, key, value: value.clone() };
    let written = bucket.write_within(vb, document, PERSISTED_WITHIN).await;
    written.map(drop).map_err(|status| anyhow!("a document was refused: {}", status.name()))
}

async fn fill(env: &Env, bucket: &Bucket, conditions: &Conditions) -> anyhow::Result<()> {
    let value = Bytes::from(vec![b'x'; conditions.value_bytes]);
    for number in 0..conditions.bytes / conditions.value_bytes as u64 {
        write(bucket, number, &value).await?;
        if number % AT_ONCE == 0 {
            // The flusher has its turn.
            env.sleep(Duration::from_micros(1)).await;
        }
    }
    Ok(bucket.wait_all_persisted(PERSISTED_WITHIN).await?)
}

async fn go_on_writing(env: Env, bucket: Bucket, conditions: Conditions, rate: f64) {
    let value = Bytes::from(vec![b'x'; conditions.value_bytes]);
    let (began, mut number) = (env.now(), 0_u64);
    loop {
        let due = rate * (env.now() - began).as_secs_f64() / conditions.value_bytes as f64;
        while (number as f64) < due {
            // Versions of a few documents, so that memory does not fill.
            if write(&bucket, number % AT_ONCE, &value).await.is_err() {
                return;
            }
            number += 1;
        }
        env.sleep(WRITE_EVERY).await;
    }
}
