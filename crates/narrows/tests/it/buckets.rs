//! What `narrows explain couchbase://` makes of our own servers: a slow consumer, a slow disk, too little memory, and
//! nothing at all. In both worlds, but for the memory, which fills by the clock.

use std::time::Duration;

use dcp::auth::Credentials;
use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits, Condition};
use dcp::client::ClientOptions;
use dcp::codec::{VbucketState, Write};
use dcp::drain::{Drain, DrainSettings};
use dcp::look::Looker;
use dcp::rebalance::{Path, Rebalance};
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use insight::diagnosis::{Class, Diagnosis, Series, diagnose};
use world::Env;
use world::model::Disk;

const VBUCKETS: u16 = 4;

testbed::both_worlds!(
    a_slow_consumer_holds,
    an_idle_bucket_is_well,
    a_slow_disk_of_the_producer_holds
);

struct Node {
    bucket: Bucket,
    server: Server,
    _dir: tempfile::TempDir,
}

fn settings(quota_bytes: u64) -> BucketSettings {
    BucketSettings::new("example", VBUCKETS, quota_bytes)
}

impl Node {
    async fn start(env: &Env, settings: BucketSettings, name: &str) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(env, settings, &dir.path().join(name)).await.unwrap();
        let listener = PacketListener::bind(env, &env.any_address()).await.unwrap();
        let user = Credentials { user: "someone".to_owned(), password: "right".to_owned() };
        let settings = ServerSettings { users: vec![user], ..ServerSettings::default() };
        let server = Server::start(env, listener, vec![bucket.clone()], settings).unwrap();
        Node { bucket, server, _dir: dir }
    }

    fn options(&self) -> ClientOptions {
        ClientOptions {
            address: self.server.address().to_owned(),
            bucket: "example".to_owned(),
            credentials: Credentials { user: "someone".to_owned(), password: "right".to_owned() },
            tls: None,
            timeout: Duration::from_secs(60),
            agent: "test".to_owned(),
        }
    }

    async fn fill(&self, items: u32, bytes: usize) {
        for n in 0..items {
            let (vb, key) = ((n % u32::from(VBUCKETS)) as u16, format!("key{n}").into());
            let write = Write { flags: 0, expiry: 0, key, value: vec![b'x'; bytes].into() };
            self.bucket.write_within(vb, write, Duration::from_secs(60)).await.unwrap();
        }
        self.bucket.wait_all_persisted(Duration::from_secs(60)).await.unwrap();
    }
}

async fn drain(env: &Env, from: &Node, rate: Option<f64>, follow: bool) -> Drain {
    let settings = DrainSettings::new(100_000, "test");
    let settings = DrainSettings { rate_bytes_per_s: rate, follow, ..settings };
    Drain::start(env, &from.options(), &settings).await.unwrap()
}

/// Looks for three seconds, as `explain` does for ten.
async fn looked(env: &Env, nodes: &[&Node]) -> Diagnosis {
    let options: Vec<_> = nodes.iter().map(|node| node.options()).collect();
    let mut looker = Looker::connect(env, &options).await.unwrap();
    let mut looks = Vec::new();
    for _ in 0..7 {
        looks.push(looker.look().await.unwrap());
        env.sleep(Duration::from_millis(500)).await;
    }
    diagnose(&Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look))))
}

/// Looks again until a look is right, a few times at most: a machine that stands still spoils one.
async fn looked_until(
    env: &Env,
    nodes: &[&Node],
    is_right: impl Fn(&Diagnosis) -> bool,
) -> Diagnosis {
    let mut diagnosis = looked(env, nodes).await;
    for _ in 0..3 {
        if is_right(&diagnosis) {
            break;
        }
        diagnosis = looked(env, nodes).await;
    }
    diagnosis
}

fn classes(diagnosis: &Diagnosis) -> Vec<Class> {
    diagnosis.findings.iter().map(|finding| finding.class).collect()
}

#[track_caller]
fn assert_held_by(diagnosis: &Diagnosis, class: Class) {
    assert_eq!(classes(diagnosis), [class], "{diagnosis:#?}");
}

async fn a_slow_consumer_holds(env: Env) {
    let source = Node::start(&env, settings(64 << 20), "a").await;
    source.fill(16_000, 1000).await;
    let _drain = drain(&env, &source, Some(500_000.0), false).await;
    let is_consumer = |found: &Diagnosis| classes(found) == [Class::DcpConsumer];
    let diagnosis = looked_until(&env, &[&source], is_consumer).await;
    assert_held_by(&diagnosis, Class::DcpConsumer);
    let evidence = &diagnosis.findings[0].evidence;
    let left = evidence.iter().find(|line| line.field == "items_remaining").unwrap();
    assert!(left.value.contains("sent in"), "{}", left.value);
}

async fn an_idle_bucket_is_well(env: Env) {
    let source = Node::start(&env, settings(64 << 20), "a").await;
    let none = looked(&env, &[&source]).await;
    assert!(none.findings.is_empty() && none.healthy.is_empty(), "{none:#?}");
    source.fill(1000, 1000).await;
    let _drain = drain(&env, &source, None, true).await;
    let is_well = |found: &Diagnosis| found.findings.is_empty() && found.healthy.len() == 1;
    let idle = looked_until(&env, &[&source], is_well).await;
    assert!(idle.findings.is_empty() && idle.healthy.len() == 1, "{idle:#?}");
    // A few writes now and then, to a consumer that keeps up.
    let (writer, clock) = (source.bucket.clone(), env.clone());
    let _writing = env.spawn("writes", async move {
        for n in 0_u32.. {
            let (key, value) = (format!("late{n}").into(), vec![b'x'; 1000].into());
            let write = Write { flags: 0, expiry: 0, key, value };
            let _ = writer.write((n % 4) as u16, write, 0, 0, Condition::Always);
            clock.sleep(Duration::from_millis(2)).await;
        }
    });
    let busy = looked_until(&env, &[&source], is_well).await;
    assert!(busy.findings.is_empty(), "{busy:#?}");
    assert!(busy.healthy[0].contains("MB/s"), "{busy:#?}");
}

async fn a_slow_disk_of_the_producer_holds(env: Env) {
    let checkpoints = CheckpointLimits { max_items: 50, max_bytes: 1 << 20 };
    let little = BucketSettings { checkpoints, ..settings(16 << 20) };
    let source = Node::start(&env, little, "a").await;
    source.fill(20_000, 1000).await;
    env.set_disk(Disk { read_bytes_per_s: 1_000_000, ..Disk::default() });
    let _drain = drain(&env, &source, None, false).await;
    let is_producer = |found: &Diagnosis| classes(found) == [Class::DcpProducer];
    assert_held_by(&looked_until(&env, &[&source], is_producer).await, Class::DcpProducer);
}

#[test]
fn too_little_memory_of_the_consumer_holds() {
    world::virtual_world::run(7, async |env| {
        // One disk serves both: the source has all of it in memory, so that it reads nothing.
        let source = Node::start(&env, settings(1 << 30), "a").await;
        source.fill(60_000, 1000).await;
        env.set_disk(Disk { write_bytes_per_s: 1_000_000, ..Disk::default() });
        let to = Node::start(&env, settings(8 << 20), "b").await;
        (0..VBUCKETS).for_each(|vb| to.bucket.set_state(vb, VbucketState::Dead).unwrap());
        let rebalance = Rebalance {
            source: source.options(),
            destination: to.options(),
            path: Path::Plain,
            name: "test".to_owned(),
            move_overhead: Duration::ZERO,
        };
        let clock = env.clone();
        let _moving = env.spawn("moves", async move { rebalance.move_vbucket(&clock, 0).await });
        env.sleep(Duration::from_secs(4)).await;
        let both = looked(&env, &[&source, &to]).await;
        assert_held_by(&both, Class::DcpMemory);
        assert_eq!(both.findings[0].place, to.server.address());
        // Of the source alone, it is the consumer that does not acknowledge; why, nobody was asked.
        assert_held_by(&looked(&env, &[&source]).await, Class::DcpConsumer);
    });
}
