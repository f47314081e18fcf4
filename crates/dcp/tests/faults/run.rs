//! One run: two servers, clients, replication both ways, and what befalls them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path as Dir;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use dcp::auth::Credentials;
use dcp::bucket::{Bucket, BucketSettings, CheckpointLimits};
use dcp::client::{Client, ClientOptions};
use dcp::codec::{Body, Status, VbucketState};
use dcp::consumer::ConsumerKind;
use dcp::rebalance::{Path, Rebalance};
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use world::model::split_mix;
use world::{Env, Link, LinkConfig, Task};

use crate::ledger::{Content, Ledger};

const VBUCKETS: u16 = 3;
const KEYS: u64 = 12;
const EPISODES: u64 = 6;
/// No link is cut for longer; what is on its way comes soon after.
const CUT_MS: u64 = 300;
const SETTLE: Duration = Duration::from_millis(700);
/// A client waits no longer for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// A move that takes longer is given up.
const MOVE_WITHIN: Duration = Duration::from_secs(3);
const EQUAL_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub acknowledged: u64,
    pub unknown: u64,
    pub persisted: u64,
    pub moved: u64,
    pub broken_moves: u64,
    pub kills: u64,
    pub rollbacks: u64,
}

impl Summary {
    pub fn add(&mut self, other: &Summary) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.persisted += other.persisted;
        self.moved += other.moved;
        self.broken_moves += other.broken_moves;
        self.kills += other.kills;
        self.rollbacks += other.rollbacks;
    }
}

struct Chance(RefCell<u64>);

impl Chance {
    fn below(&self, count: u64) -> u64 {
        split_mix(&mut self.0.borrow_mut()) % count
    }
}

/// A server, where it is up.
struct Site {
    name: &'static str,
    link: Link,
    address: String,
    kind: ConsumerKind,
    up: RefCell<Option<(Bucket, Server)>>,
}

/// What clients and replication share with who plays the faults.
struct Shared {
    env: Env,
    chance: Chance,
    sites: [Site; 2],
    /// The site of the active copy.
    owner: RefCell<Vec<usize>>,
    /// Replication stands still: a vbucket moves.
    still: Cell<bool>,
    /// Counts changes of owners: replication begins anew.
    turn: Cell<u64>,
    /// Clients hold still.
    holds: Cell<bool>,
    ends: Cell<bool>,
    ledgers: RefCell<Vec<Ledger>>,
    summary: RefCell<Summary>,
}

fn credentials() -> Credentials {
    Credentials { user: "someone".to_owned(), password: "secret".to_owned() }
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
    for _ in 0..EPISODES {
        env.sleep(Duration::from_millis(20 + shared.chance.below(200))).await;
        shared.episode().await?;
    }
    env.sleep(Duration::from_millis(100)).await;
    shared.ends.set(true);
    for writer in writers {
        writer.await.map_err(|_| "a client was aborted".to_owned())?;
    }
    shared.until_equal().await?;
    drop(replications);
    env.sleep(SETTLE).await;
    shared.compare().await?;
    let ledgers = shared.ledgers.borrow();
    let mut summary = shared.summary.borrow().clone();
    summary.acknowledged = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    summary.unknown = ledgers.iter().map(|ledger| ledger.unknown).sum();
    Ok(summary)
}

impl Shared {
    fn bucket(&self, site: usize) -> Result<Bucket, String> {
        let up = self.sites[site].up.borrow();
        up.as_ref().map(|(bucket, _)| bucket.clone()).ok_or_else(|| "a server is down".to_owned())
    }

    /// Starts a server with what is on its disk.
    async fn start(&self, site: usize) -> Result<(), String> {
        let Site { name, kind, up, .. } = &self.sites[site];
        let host = self.env.host(name);
        let checkpoints = CheckpointLimits { max_items: 8, max_bytes: 1 << 20 };
        let settings =
            BucketSettings { checkpoints, ..BucketSettings::new("example", VBUCKETS, 8 << 20) };
        let bucket = Bucket::open(&host, settings, Dir::new("/data")).await;
        let bucket = bucket.map_err(|error| format!("{name} does not open: {error}"))?;
        let listener = PacketListener::bind(&host, &format!("{name}:11210")).await;
        let settings =
            ServerSettings { users: vec![credentials()], consumer: *kind, public_host: None };
        let server = Server::start(
            &host,
            listener.map_err(|error| error.to_string())?,
            vec![bucket.clone()],
            settings,
        );
        *up.borrow_mut() = Some((bucket, server.map_err(|error| error.to_string())?));
        Ok(())
    }

    fn options(&self, site: usize) -> ClientOptions {
        ClientOptions {
            address: self.sites[site].address.clone(),
            bucket: "example".to_owned(),
            credentials: credentials(),
            tls: None,
            timeout: PATIENCE,
            agent: "faults".to_owned(),
        }
    }

    fn rebalance(&self, from: usize, path: Path, name: &str) -> Rebalance {
        Rebalance {
            source: self.options(from),
            destination: self.options(1 - from),
            path,
            name: name.to_owned(),
            move_overhead: Duration::ZERO,
        }
    }

    fn path(&self) -> Path {
        if self.chance.below(2) == 0 { Path::Decoding } else { Path::Plain }
    }

    /// A move, a fault, or both; then everything is mended, looked at, and goes on.
    async fn episode(&self) -> Result<(), String> {
        let vb = self.chance.below(u64::from(VBUCKETS)) as u16;
        let from = self.owner.borrow()[usize::from(vb)];
        let moves = self.chance.below(10) < 7;
        if moves {
            // What replication has on its way would undo what the move does.
            self.still.set(true);
            self.env.sleep(Duration::from_millis(30)).await;
        }
        let path = self.path();
        let rebalance = self.rebalance(from, path, "move");
        // One replica stream of a vbucket at a time, as a cluster manager has it.
        let moving = async {
            if !moves {
                std::future::pending::<()>().await;
            }
            rebalance.move_vbucket(&self.env, vb).await.map_err(|error| error.to_string())
        };
        let fault = self.chance.below(6);
        let after = Duration::from_micros(self.chance.below(40_000));
        let mut killed = [false; 2];
        let breaking = async {
            self.env.sleep(after).await;
            match fault {
                0 | 1 => {
                    let site = fault as usize;
                    self.holds.set(true);
                    self.env.kill_host(self.sites[site].name);
                    drop(self.sites[site].up.borrow_mut().take());
                    killed[site] = true;
                    self.summary.borrow_mut().kills += 1;
                }
                2 | 3 => self.sites[fault as usize - 2].link.cut(),
                4 => return,
                _ => {}
            }
            let lasts = Duration::from_millis(self.chance.below(CUT_MS));
            let lasts = if matches!(fault, 0..4) { lasts } else { MOVE_WITHIN };
            self.env
                .sleep(if moves { lasts } else { lasts.min(Duration::from_millis(CUT_MS)) })
                .await;
        };
        let (mut done, limit) = (false, MOVE_WITHIN);
        let both = async {
            tokio::select! {
                biased;
                moved = moving => done = moved.is_ok(),
                // Who moves it gives up when the fault is over.
                () = breaking => {}
            }
        };
        let _ = self.env.timeout(limit, both).await;
        self.holds.set(true);
        self.sites.iter().for_each(|site| site.link.heal());
        for (site, killed) in killed.iter().enumerate() {
            if *killed {
                self.start(site).await?;
            }
        }
        self.env.sleep(SETTLE).await;
        if moves {
            let mut summary = self.summary.borrow_mut();
            *(if done { &mut summary.moved } else { &mut summary.broken_moves }) += 1;
        }
        self.choose_owners(killed).await?;
        self.turn.set(self.turn.get() + 1);
        self.still.set(false);
        self.holds.set(false);
        Ok(())
    }

    /// As a manager does: whoever is active stays; where nobody is, it is who was. Then all is compared with the ledger.
    async fn choose_owners(&self, killed: [bool; 2]) -> Result<(), String> {
        for vb in 0..VBUCKETS {
            let before = self.owner.borrow()[usize::from(vb)];
            let is_active = |site: usize| {
                Ok::<_, String>(self.bucket(site)?.state(vb) == Some(VbucketState::Active))
            };
            let owner = match (is_active(before)?, is_active(1 - before)?) {
                // The one that was killed does not know that it had let go.
                (true, true) if !killed[before] => {
                    return Err(format!("vbucket {vb} is active twice"));
                }
                (_, true) => 1 - before,
                (true, false) => before,
                (false, false) => {
                    let bucket = self.bucket(before)?;
                    bucket.set_state(vb, VbucketState::Active).map_err(|s| s.name().to_owned())?;
                    before
                }
            };
            if owner != before {
                let other = self.bucket(before)?;
                other.set_state(vb, VbucketState::Replica).map_err(|s| s.name().to_owned())?;
            }
            self.owner.borrow_mut()[usize::from(vb)] = owner;
            let found = self.content(owner, vb).await?;
            let checked = self.ledgers.borrow_mut()[usize::from(vb)].check(&found, killed[owner]);
            checked.map_err(|why| format!("vbucket {vb} on {}: {why}", self.sites[owner].name))?;
        }
        Ok(())
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
    async fn until_equal(&self) -> Result<(), String> {
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
            if self.env.now().since(began) > EQUAL_WITHIN {
                let seqnos = [a.seqnos(None), b.seqnos(None)];
                return Err(format!("vbuckets {behind:?} do not become equal: {seqnos:?}"));
            }
            self.env.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Both copies hold what clients were told.
    async fn compare(&self) -> Result<(), String> {
        for vb in 0..VBUCKETS {
            let owner = self.owner.borrow()[usize::from(vb)];
            let found = self.content(owner, vb).await?;
            let checked = self.ledgers.borrow_mut()[usize::from(vb)].check(&found, false);
            checked.map_err(|why| format!("at the end, vbucket {vb}: {why}"))?;
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

fn key(number: u64) -> String {
    format!("key{number}")
}

/// A client of one vbucket, with one request at a time.
async fn write(shared: Rc<Shared>, vb: u16) {
    let place = usize::from(vb);
    let (mut clients, mut count) = (BTreeMap::new(), 0u64);
    while !shared.ends.get() {
        shared.env.sleep(Duration::from_micros(200 + shared.chance.below(3000))).await;
        if shared.holds.get() {
            continue;
        }
        let owner = shared.owner.borrow()[place];
        let mut client = match clients.remove(&owner) {
            Some(client) => client,
            None => match Client::connect(&shared.env, &shared.options(owner)).await {
                Ok(client) => client,
                Err(_) => continue,
            },
        };
        if shared.holds.get() {
            continue;
        }
        count += 1;
        let key = key(shared.chance.below(KEYS));
        let value = (shared.chance.below(5) > 0).then(|| format!("{vb}:{count}"));
        let answered = match &value {
            Some(value) => client.set(vb, &key, Bytes::from(value.clone())).await,
            None => {
                let body = Body::Delete { key: Bytes::from(key.clone()) };
                client.ask(vb, body).await.map(|response| response.status)
            }
        };
        match answered {
            Ok(Ok(Status::Success)) => {
                shared.ledgers.borrow_mut()[place].wrote(&key, value, true);
            }
            // It is as it was.
            Ok(_) => {}
            Err(_) => {
                shared.ledgers.borrow_mut()[place].wrote(&key, value, false);
                continue;
            }
        }
        if shared.chance.below(4) == 0 {
            let written = shared.ledgers.borrow()[place].len();
            if persist(&mut client, vb).await && !shared.holds.get() {
                shared.ledgers.borrow_mut()[place].persisted(written);
                shared.summary.borrow_mut().persisted += 1;
            }
        }
        clients.insert(owner, client);
    }
}

/// Whether all that was written so far is on disk.
async fn persist(client: &mut Client, vb: u16) -> bool {
    let Ok(seqnos) = client.active_seqnos().await else { return false };
    let Some(seqno) = seqnos.get(&vb).copied() else { return false };
    let answered = client.ask(vb, Body::SeqnoPersistence { seqno }).await;
    answered.is_ok_and(|response| response.status == Ok(Status::Success))
}

/// Has the other site follow the vbuckets that `from` has.
async fn replicate(shared: Rc<Shared>, from: usize) {
    loop {
        shared.env.sleep(Duration::from_millis(20)).await;
        if shared.holds.get() || shared.still.get() {
            continue;
        }
        let turn = shared.turn.get();
        let owned: Vec<u16> =
            (0..VBUCKETS).filter(|vb| shared.owner.borrow()[usize::from(*vb)] == from).collect();
        if owned.is_empty() {
            continue;
        }
        let rebalance = shared.rebalance(from, shared.path(), &format!("from{from}"));
        let changed = async {
            while shared.turn.get() == turn && !shared.holds.get() && !shared.still.get() {
                shared.env.sleep(Duration::from_millis(5)).await;
                let up = shared.sites[1 - from].up.borrow();
                if let Some((_, server)) = up.as_ref() {
                    let rollbacks = server.consumer_stats("example").rollbacks;
                    let mut summary = shared.summary.borrow_mut();
                    summary.rollbacks = summary.rollbacks.max(rollbacks);
                }
            }
        };
        let copying = async {
            if let Ok(copying) = rebalance.replicate(&shared.env, &owned).await {
                copying.failure().await;
            }
        };
        tokio::select! {
            biased;
            () = copying => {}
            () = changed => {}
        }
    }
}
