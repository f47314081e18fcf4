//! One run: two servers, clients, replication both ways, and what befalls them.

use std::cell::{Cell, RefCell};
use std::path::Path as Dir;
use std::rc::Rc;
use std::time::Duration;

use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits};
use dcp::client::ClientOptions;
use dcp::codec::{Status, VbucketState};
use dcp::consumer::ConsumerKind;
use dcp::rebalance::{Path, Rebalance};
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use record::random::split_mix;
use world::{Env, Link, LinkConfig, Task};

use super::clients::{replicate, write};
use super::ledger::{Content, Ledger};
use crate::common::{credentials, options_to, settings};

pub const VBUCKETS: u16 = 3;
pub const KEYS: u64 = 12;
const EPISODES: u64 = 6;
/// What is on its way has come after this.
pub const SETTLE: Duration = Duration::from_millis(700);
/// A client waits no longer for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
const EQUAL_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub acknowledged: u64,
    pub unknown: u64,
    pub persisted: u64,
    pub moved: u64,
    pub broken_moves: u64,
    pub kills: u64,
    pub failovers: u64,
    pub rollbacks: u64,
}

impl Summary {
    pub fn add(&mut self, other: Summary) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.persisted += other.persisted;
        self.moved += other.moved;
        self.broken_moves += other.broken_moves;
        self.kills += other.kills;
        self.failovers += other.failovers;
        self.rollbacks += other.rollbacks;
    }
}

pub struct Chance(RefCell<u64>);

impl Chance {
    pub fn below(&self, count: u64) -> u64 {
        split_mix(&mut self.0.borrow_mut()) % count
    }
}

/// A server, where it is up.
pub struct Site {
    pub name: &'static str,
    pub link: Link,
    pub address: String,
    pub kind: ConsumerKind,
    pub up: RefCell<Option<(Bucket, Server)>>,
}

/// What clients and replication share with who plays the faults.
pub struct Shared {
    pub env: Env,
    pub chance: Chance,
    pub sites: [Site; 2],
    /// The site of the active copy.
    pub owner: RefCell<Vec<usize>>,
    /// Replication stands still: a vbucket moves.
    pub still: Cell<bool>,
    /// Counts changes of owners: replication begins anew.
    pub turn: Cell<u64>,
    /// Clients and replication hold still.
    pub holds: Cell<bool>,
    /// Clients hold still.
    pub pauses: Cell<bool>,
    pub ends: Cell<bool>,
    pub ledgers: RefCell<Vec<Ledger>>,
    pub summary: RefCell<Summary>,
}

pub fn run(seed: u64, planted: Option<&'static str>) -> Result<Summary, String> {
    world::virtual_world::run(seed, async move |env| {
        if let Some(planted) = planted {
            env.plant(planted);
        }
        play(env, seed).await
    })
}

async fn play(env: Env, seed: u64) -> Result<Summary, String> {
    let chance = Chance(RefCell::new(seed ^ 0x5ca1_ab1e));
    let kinds = [ConsumerKind::Mainstream, ConsumerKind::Batching];
    let mut sites = Vec::new();
    for name in ["a", "b"] {
        let config = LinkConfig { rtt: Duration::from_micros(200), ..LinkConfig::default() };
        if chance.below(3) == 0 {
            // Versions are replaced before the flusher takes them.
            let host = env.host(name);
            let mut model = host.virtual_host_model().unwrap_or_default();
            model.disk.sync = Duration::from_millis(5 + chance.below(16));
            host.set_host_model(model);
        }
        let link = Link::open(&env, config);
        let address = link.route(&format!("{name}:11210")).await.map_err(|e| e.to_string())?;
        let kind = kinds[chance.below(2) as usize];
        sites.push(Site { name, link, address, kind, up: RefCell::default() });
    }
    let sites: [Site; 2] = sites.try_into().map_err(|_| "two sites".to_owned())?;
    let shared = Rc::new(Shared {
        env: env.clone(),
        chance,
        sites,
        owner: RefCell::new(vec![0; usize::from(VBUCKETS)]),
        still: Cell::new(false),
        turn: Cell::new(0),
        holds: Cell::new(false),
        pauses: Cell::new(false),
        ends: Cell::new(false),
        ledgers: RefCell::new((0..VBUCKETS).map(|_| Ledger::default()).collect()),
        summary: RefCell::default(),
    });
    for site in 0..2 {
        shared.start(site).await?;
    }
    for vb in 0..VBUCKETS {
        shared.bucket(1)?.set_state(vb, VbucketState::Replica).map_err(|s| s.name().to_owned())?;
    }
    let writers: Vec<Task<()>> =
        (0..VBUCKETS).map(|vb| env.spawn("writes", write(shared.clone(), vb))).collect();
    let replications: Vec<Task<()>> =
        (0..2).map(|from| env.spawn("replicates", replicate(shared.clone(), from))).collect();
    for episode in 1..=EPISODES {
        env.sleep(Duration::from_millis(20 + shared.chance.below(200))).await;
        shared.episode(episode == EPISODES).await?;
    }
    env.sleep(Duration::from_millis(shared.chance.below(100))).await;
    shared.ends.set(true);
    for writer in writers {
        writer.await.map_err(|_| "a client was aborted".to_owned())?;
    }
    shared.until_equal().await?;
    drop(replications);
    env.sleep(SETTLE).await;
    shared.compare().await?;
    (0..2).for_each(|site| shared.count_rollbacks(site));
    let ledgers = shared.ledgers.borrow();
    let mut summary = shared.summary.borrow().clone();
    summary.acknowledged = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    summary.unknown = ledgers.iter().map(|ledger| ledger.unknown).sum();
    Ok(summary)
}

impl Shared {
    pub fn bucket(&self, site: usize) -> Result<Bucket, String> {
        let up = self.sites[site].up.borrow();
        up.as_ref().map(|(bucket, _)| bucket.clone()).ok_or_else(|| "a server is down".to_owned())
    }

    /// Starts a server with what is on its disk.
    pub async fn start(&self, site: usize) -> Result<(), String> {
        let Site { name, kind, up, .. } = &self.sites[site];
        let host = self.env.host(name);
        let checkpoints = CheckpointLimits { max_items: 8, max_bytes: 1 << 20 };
        let settings = BucketSettings { checkpoints, ..settings(VBUCKETS, 8 << 20) };
        let bucket = Bucket::open(&host, settings, Dir::new("/data")).await;
        let bucket = bucket.map_err(|error| format!("{name} does not open: {error}"))?;
        let listener = PacketListener::bind(&host, &format!("{name}:11210")).await;
        let settings = ServerSettings { users: vec![credentials()], consumer: *kind };
        let server = Server::start(
            &host,
            listener.map_err(|error| error.to_string())?,
            vec![bucket.clone()],
            settings,
        );
        *up.borrow_mut() = Some((bucket, server.map_err(|error| error.to_string())?));
        Ok(())
    }

    /// Ends a server at once; what was not synced is gone.
    pub fn kill(&self, site: usize) {
        self.count_rollbacks(site);
        self.env.kill_host(self.sites[site].name);
        drop(self.sites[site].up.borrow_mut().take());
        self.summary.borrow_mut().kills += 1;
    }

    /// A server counts them from its start on.
    fn count_rollbacks(&self, site: usize) {
        if let Some((bucket, _)) = &*self.sites[site].up.borrow() {
            self.summary.borrow_mut().rollbacks += bucket.stats().rollbacks;
        }
    }

    pub fn options(&self, site: usize) -> ClientOptions {
        let usual = options_to(self.sites[site].address.as_str());
        ClientOptions { timeout: PATIENCE, agent: "faults".to_owned(), ..usual }
    }

    pub fn rebalance(&self, from: usize, path: Path, name: &str) -> Rebalance {
        Rebalance {
            source: self.options(from),
            destination: self.options(1 - from),
            path,
            name: name.to_owned(),
            move_overhead: Duration::ZERO,
        }
    }

    pub fn path(&self) -> Path {
        if self.chance.below(2) == 0 { Path::Decoding } else { Path::Plain }
    }

    /// Every document of a vbucket that is active.
    async fn content(&self, site: usize, vb: u16) -> Result<Content, String> {
        let bucket = self.bucket(site)?;
        let mut content = Content::new();
        for number in 0..KEYS {
            let key = key(number);
            match bucket.get(vb, key.as_bytes()).await {
                Ok(found) => {
                    let text = String::from_utf8_lossy(&found.value).into_owned();
                    content.insert(key, Some(text));
                }
                Err(Status::NotFound) => {}
                Err(status) => return Err(format!("{key} of vbucket {vb}: {}", status.name())),
            }
        }
        Ok(content)
    }

    /// Waits until every replica is where its active copy is.
    pub async fn until_equal(&self) -> Result<(), String> {
        let began = self.env.now();
        loop {
            let (a, b) = (self.bucket(0)?, self.bucket(1)?);
            let behind: Vec<u16> = (0..VBUCKETS)
                .filter(|vb| {
                    let same = a.failover_log(*vb) == b.failover_log(*vb);
                    a.high_seqno(*vb) != b.high_seqno(*vb) || !same
                })
                .collect();
            if behind.is_empty() {
                return Ok(());
            }
            if self.env.now() - began > EQUAL_WITHIN {
                let seqnos = [a.seqnos(None), b.seqnos(None)];
                return Err(format!("vbuckets {behind:?} do not become equal: {seqnos:?}"));
            }
            self.env.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Compares what the owner of a vbucket has with what clients were told: the first `least` writes at least.
    pub async fn check(&self, vb: u16, least: usize) -> Result<Content, String> {
        let owner = self.owner.borrow()[usize::from(vb)];
        let found = self.content(owner, vb).await?;
        let checked = self.ledgers.borrow_mut()[usize::from(vb)].check(&found, least);
        checked.map_err(|why| format!("vbucket {vb} on {}: {why}", self.sites[owner].name))?;
        Ok(found)
    }

    /// Both copies hold what clients were told.
    async fn compare(&self) -> Result<(), String> {
        for vb in 0..VBUCKETS {
            let owner = self.owner.borrow()[usize::from(vb)];
            let found = self.check(vb, usize::MAX).await;
            let found = found.map_err(|why| format!("at the end, {why}"))?;
            let replica = self.bucket(1 - owner)?;
            let documents = [self.bucket(owner)?.documents_of(vb), replica.documents_of(vb)];
            replica.set_state(vb, VbucketState::Active).map_err(|s| s.name().to_owned())?;
            let copied = self.content(1 - owner, vb).await?;
            if copied != found || documents[0] != documents[1] {
                return Err(format!(
                    "vbucket {vb}: {found:?} is active on {}, its replica has {copied:?}; {documents:?} documents",
                    self.sites[owner].name
                ));
            }
        }
        Ok(())
    }
}

pub fn key(number: u64) -> String {
    format!("key{number}")
}
