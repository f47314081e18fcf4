//! Moving vbuckets from one server to another, as a cluster manager does.
//!
//! For each vbucket (`ns_server`, `ns_single_vbucket_mover`), a replica is streamed; once few items are left, the
//! manager waits until the replica is persisted. If the vbucket is to be active at the destination, it closes the
//! stream, and has a takeover stream finish the move. All bytes pass proxies of the manager, whose [`Path`] is what is
//! measured.

mod bridge;

use std::time::Duration;

use world::{Env, LocalFuture};

use crate::client::{Client, ClientOptions};
use crate::codec::{Body, EndReason, STREAM_TAKEOVER, Status, VbucketState};
use crate::{Error, Result};

use bridge::STILL_AFTER;
pub use bridge::{Bridge, BridgeStats, Path};

/// A takeover begins once fewer items than this are left.
const FEW_ITEMS: u64 = 1000;
/// How often the manager asks how many are left.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A destination that takes longer to answer TMPFAIL waited for its disk.
const WAITED: Duration = Duration::from_secs(5);
/// One that does not wait, as a fast consumer, is asked again at once for so long, and then every [`LOOK_EVERY`].
const ASKED_AT_ONCE: Duration = Duration::from_secs(1);
/// After so long without an item its disk has failed, and the move with it.
const REFUSED_FOR: Duration = Duration::from_secs(120);

/// What to move, and how.
#[derive(Clone)]
pub struct Rebalance {
    /// Where the vbuckets are.
    pub source: ClientOptions,
    /// Where they move to.
    pub destination: ClientOptions,
    /// How packets are passed on.
    pub path: Path,
    /// Part of the connections' names.
    pub name: String,
    /// The time that the manager needs for each move besides streaming, to inform and ask other servers. Nothing is
    /// streamed meanwhile.
    pub move_overhead: Duration,
}

impl Rebalance {
    /// Moves one vbucket: it becomes active at the destination. Returns what was passed on. Fails if a server cannot be
    /// reached or refuses, or a stream ends early. A takeover that breaks off may leave the vbucket active nowhere: the
    /// source has given it up, and the destination does not have all of it.
    pub fn move_vbucket<'a>(
        &'a self,
        env: &'a Env,
        vb: u16,
    ) -> LocalFuture<'a, Result<BridgeStats>> {
        Box::pin(async move {
            let mut replication = self.build_replica(env, vb).await?;
            replication.ask(vb, Body::CloseStream).await?;
            let mut passed = replication.stats();
            drop(replication);
            let name = format!("{}:takeover:{vb}", self.name);
            let mut takeover = self.bridge(env, &name).await?;
            takeover.ask(vb, Body::AddStream { flags: STREAM_TAKEOVER }).await?;
            self.until_taken_over(env, vb, &takeover).await?;
            let more = takeover.stats();
            passed.packets += more.packets;
            passed.bytes += more.bytes;
            Ok(passed)
        })
    }

    /// Builds a replica of one vbucket, which stays active at the source; it is persisted when this returns, and what
    /// is written goes on to it for as long as the answer is kept. Fails if a server cannot be reached or refuses.
    pub fn build_replica<'a>(&'a self, env: &'a Env, vb: u16) -> LocalFuture<'a, Result<Bridge>> {
        Box::pin(async move {
            env.sleep(self.move_overhead).await;
            let mut at_source = Client::connect(env, &self.source).await?;
            let mut at_destination = Client::connect(env, &self.destination).await?;
            let replica = Body::SetVbucketState { state: VbucketState::Replica };
            at_destination.require(vb, replica).await?;
            let name = format!("{}:replication:{vb}", self.name);
            let mut replication = self.bridge(env, &name).await?;
            replication.ask(vb, Body::AddStream { flags: 0 }).await?;
            let persisted = async {
                self.until_few_are_left(env, &mut at_source, &name, vb, &replication).await?;
                let high = seqno(&mut at_source, vb).await?;
                self.until_persisted(env, &mut at_destination, vb, high, &replication).await
            };
            tokio::select! {
                biased;
                done = persisted => done?,
                // Once the stream has ended, what is waited for never comes, and neither server says so.
                ended = replication.ended(vb) => return Err(self.ended_early("a stream", ended?)),
            }
            Ok(replication)
        })
    }

    fn ended_early(&self, what: &'static str, reason: EndReason) -> Error {
        Error::unexpected(&self.source.address, what, format!("its end: {reason}"))
    }

    fn stands_still(&self, what: &'static str) -> Error {
        let found = format!("no item for {} s", STILL_AFTER.as_secs());
        Error::unexpected(&self.source.address, what, found)
    }

    /// Streams replicas of vbuckets over one connection, for as long as the answer is kept. Fails if a server cannot be
    /// reached, or refuses.
    pub fn replicate<'a>(
        &'a self,
        env: &'a Env,
        vbuckets: &'a [u16],
    ) -> LocalFuture<'a, Result<Bridge>> {
        Box::pin(async move {
            let mut at_destination = Client::connect(env, &self.destination).await?;
            let mut bridge = self.bridge(env, &format!("{}:replication", self.name)).await?;
            for vb in vbuckets {
                let replica = Body::SetVbucketState { state: VbucketState::Replica };
                at_destination.require(*vb, replica).await?;
                bridge.ask(*vb, Body::AddStream { flags: 0 }).await?;
            }
            Ok(bridge)
        })
    }

    async fn bridge(&self, env: &Env, name: &str) -> Result<Bridge> {
        let source = Client::connect(env, &self.source).await?;
        let destination = Client::connect(env, &self.destination).await?;
        Bridge::open(env, source, destination, name, self.path).await
    }

    async fn until_few_are_left(
        &self,
        env: &Env,
        source: &mut Client,
        name: &str,
        vb: u16,
        replication: &Bridge,
    ) -> Result<()> {
        let began = env.now();
        loop {
            let stats = source.stats(&format!("dcp-vbtakeover {vb} {name}")).await?;
            let left = stats.get("estimate").and_then(|text| text.parse::<u64>().ok());
            let streams = stats.get("status").is_some_and(|status| status != "does_not_exist");
            if streams && left.is_some_and(|left| left < FEW_ITEMS) {
                return Ok(());
            }
            if env.now() - began.max(replication.last_item()) > STILL_AFTER {
                return Err(self.stands_still("a stream"));
            }
            env.sleep(LOOK_EVERY).await;
        }
    }

    async fn until_taken_over(&self, env: &Env, vb: u16, takeover: &Bridge) -> Result<()> {
        let mut still_at = env.now() + STILL_AFTER;
        while env.now() < still_at {
            if let Ok(ended) = env.timeout(still_at - env.now(), takeover.ended(vb)).await {
                return match ended? {
                    EndReason::Ok => Ok(()),
                    reason => Err(self.ended_early("a takeover", reason)),
                };
            }
            still_at = still_at.max(takeover.last_item() + STILL_AFTER);
        }
        Err(self.stands_still("a takeover"))
    }

    /// A server that needs long answers TMPFAIL, and is asked again.
    async fn until_persisted(
        &self,
        env: &Env,
        destination: &mut Client,
        vb: u16,
        seqno: u64,
        replication: &Bridge,
    ) -> Result<()> {
        // Since when it answers without waiting.
        let mut since = env.now();
        loop {
            let asked = env.now();
            let answered = destination.ask(vb, Body::SeqnoPersistence { seqno }).await?;
            let now = env.now();
            if now - asked > WAITED {
                since = now;
            }
            match answered.status {
                Ok(Status::Success) => return Ok(()),
                Ok(Status::TemporaryFailure) if now - since < ASKED_AT_ONCE => {}
                Ok(Status::TemporaryFailure)
                    if now - since.max(replication.last_item()) < REFUSED_FOR =>
                {
                    env.sleep(LOOK_EVERY).await;
                }
                status => {
                    let what = format!("SEQNO_PERSISTENCE of vbucket {vb}");
                    return Err(Error::refused(&self.destination.address, what, status, None));
                }
            }
        }
    }
}

async fn seqno(client: &mut Client, vb: u16) -> Result<u64> {
    Ok(client.active_seqnos().await?.get(&vb).copied().unwrap_or(0))
}
