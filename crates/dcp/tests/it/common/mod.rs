//! What tests of servers share.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use dcp::auth::Credentials;
use dcp::bucket::{Bucket, BucketSettings, Condition};
use dcp::client::{Client, ClientOptions};
use dcp::codec::{Status, VbucketState, Write};
use dcp::consumer::{Consumer, ConsumerKind, Event, Follower, Sink};
use dcp::drain::{Drain, DrainSettings};
use dcp::server::{Server, ServerSettings};
use dcp::wire::{PacketListener, Wire};
use world::{Env, Task};

pub const USER: &str = "someone";
pub const PASSWORD: &str = "pass, word=1";
/// For an answer that comes at all: a machine may be busy, and its disk slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn credentials() -> Credentials {
    Credentials { user: USER.to_owned(), password: PASSWORD.to_owned() }
}

/// How a client reaches the bucket of a server at this address.
pub fn options_to(address: impl Into<String>) -> ClientOptions {
    ClientOptions {
        address: address.into(),
        bucket: "example".to_owned(),
        credentials: credentials(),
        tls: None,
        timeout: PATIENCE,
        agent: "test".to_owned(),
    }
}

pub fn settings(vbuckets: u16, quota_bytes: u64) -> BucketSettings {
    BucketSettings::new("example", vbuckets, quota_bytes)
}

pub fn set(
    bucket: &Bucket,
    vb: u16,
    key: &str,
    value: &(impl AsRef<[u8]> + ?Sized),
) -> Result<u64, Status> {
    let (key, value) = (key.to_owned().into(), value.as_ref().to_owned().into());
    let write = Write { flags: 7, expiry: 0, key, value };
    bucket.write(vb, write, 0, 0, Condition::Always).map(|written| written.seqno)
}

pub async fn persisted(bucket: &Bucket, vb: u16) {
    let high = bucket.high_seqno(vb).unwrap();
    bucket.wait_persisted(vb, high, PATIENCE).await.unwrap();
}

/// Where a bucket is kept.
pub struct Place {
    pub dir: PathBuf,
    _kept: tempfile::TempDir,
}

pub fn place(env: &Env) -> Place {
    let kept = tempfile::tempdir().unwrap();
    let dir = if env.is_virtual() { kept.path().to_owned() } else { kept.path().join("bucket") };
    Place { dir, _kept: kept }
}

/// A new bucket.
pub async fn opened(env: &Env, settings: BucketSettings) -> (Place, Bucket) {
    let place = place(env);
    let bucket = Bucket::open(env, settings, &place.dir).await.unwrap();
    (place, bucket)
}

/// A server with one bucket.
pub struct Bench {
    env: Env,
    pub bucket: Bucket,
    pub server: Server,
    places: RefCell<Vec<Place>>,
}

impl Bench {
    pub async fn start(env: &Env, settings: BucketSettings) -> Bench {
        Bench::with(env, settings, ConsumerKind::Mainstream).await
    }

    pub async fn with(env: &Env, settings: BucketSettings, consumer: ConsumerKind) -> Bench {
        let (place, bucket) = opened(env, settings).await;
        let listener = PacketListener::bind(env, &env.any_address()).await.unwrap();
        let settings = ServerSettings { users: vec![credentials()], consumer };
        let server = Server::start(env, listener, vec![bucket.clone()], settings).unwrap();
        Bench { env: env.clone(), bucket, server, places: RefCell::new(vec![place]) }
    }

    /// Another bucket, of replicas and without a server.
    pub async fn replica(&self, settings: BucketSettings) -> Bucket {
        let (place, bucket) = opened(&self.env, settings).await;
        self.places.borrow_mut().push(place);
        for vb in bucket.vbuckets() {
            bucket.set_state(vb, VbucketState::Replica).unwrap();
        }
        bucket
    }

    pub fn options(&self) -> ClientOptions {
        options_to(self.server.address())
    }

    pub async fn client(&self) -> Client {
        Client::connect(&self.env, &self.options()).await.unwrap()
    }

    /// A connection that has said nothing.
    pub async fn stranger(&self) -> Client {
        let wire = Wire::connect(&self.env, self.server.address(), None).await.unwrap();
        Client::over(&self.env, wire, PATIENCE)
    }

    /// Documents `key<n>` in turn over the vbuckets, with waits where memory is short.
    pub async fn fill(&self, numbers: std::ops::Range<u32>, value_bytes: usize) {
        let vbuckets = u32::from(self.bucket.settings().vbuckets);
        for n in numbers {
            let value = format!("{n}-{}", "x".repeat(value_bytes));
            let vb = (n % vbuckets) as u16;
            while set(&self.bucket, vb, &format!("key{n}"), &value).is_err() {
                self.env.sleep(Duration::from_millis(1)).await;
            }
            if n % 100 == 0 {
                persisted(&self.bucket, vb).await;
            }
        }
    }

    /// Begins a drain named `slow` whose window is full nearly always.
    pub async fn drain_slowly(&self) -> Drain {
        let slow = DrainSettings::new(50_000, "slow");
        let slow = DrainSettings { rate_bytes_per_s: Some(200_000.0), ..slow };
        Drain::start(&self.env, &self.options(), &slow).await.unwrap()
    }
}

/// Has a client write `late<n>` to a vbucket, with a pause after each, until that has moved; answers how many it wrote.
pub async fn write_until_it_moves(env: &Env, bench: &Bench, vb: u16, pause: Duration) -> Task<u64> {
    let (mut writer, clock) = (bench.client().await, env.clone());
    env.spawn("writes", async move {
        let mut written = 0;
        loop {
            match writer.set(vb, &format!("late{written}"), "x".into()).await.unwrap() {
                Ok(Status::Success) => written += 1,
                Ok(Status::TemporaryFailure) => clock.sleep(Duration::from_millis(1)).await,
                Ok(Status::NotMyVbucket) => return written,
                other => panic!("{other:?}"),
            }
            clock.sleep(pause).await;
        }
    })
}

/// A connection that takes streams into `sink`.
pub async fn follow(
    env: &Env,
    bench: &Bench,
    name: &str,
    sink: Sink,
    kind: ConsumerKind,
    window: u32,
) -> Follower {
    let consumer = Consumer::new(env, kind, sink, window);
    Follower::open(env, bench.client().await, name, consumer, window).await.unwrap()
}

/// Steps until a vbucket has come to this number.
pub async fn reach(follower: &mut Follower, bucket: &Bucket, vb: u16, seqno: Option<u64>) {
    while bucket.high_seqno(vb) != seqno {
        follower.step().await.unwrap();
    }
}

/// Steps until the streams are where the bucket is.
pub async fn catch_up(follower: &mut Follower, from: &Bucket, to: &Bucket) {
    while from.vbuckets().into_iter().any(|vb| from.high_seqno(vb) != to.high_seqno(vb)) {
        if let Some(Event::Refused { vb, status }) = follower.step().await.unwrap() {
            panic!("vbucket {vb} was refused: {status}");
        }
    }
}
