//! What befalls the servers: moves, kills, cut links, managers that give up, failovers. After each, everything is
//! mended, looked at, and goes on.

use std::time::Duration;

use dcp::codec::VbucketState;

use super::run::{SETTLE, Shared, VBUCKETS};

/// No link is cut for longer; what is on its way comes soon after.
const CUT_MS: u64 = 300;
/// A move that takes longer is given up.
const MOVE_WITHIN: Duration = Duration::from_secs(3);
/// One of so many episodes is a failover.
const FAILOVER_ONE_IN: u64 = 4;
/// Clients go on so long while nobody follows them.
const BEHIND_MS: u64 = 150;

impl Shared {
    /// The last one is a failover: what it leaves behind is hardly written over any more.
    pub async fn episode(&self, last: bool) -> Result<(), String> {
        let killed = match self.chance.below(FAILOVER_ONE_IN) == 0 || last {
            true => self.fail_over().await?,
            false => self.move_or_fault().await?,
        };
        self.choose_owners(killed).await?;
        self.turn.set(self.turn.get() + 1);
        self.still.set(false);
        self.holds.set(false);
        Ok(())
    }

    /// A move, a fault, or both.
    async fn move_or_fault(&self) -> Result<[bool; 2], String> {
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
                    self.kill(site);
                    killed[site] = true;
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
        self.mend(killed).await?;
        if moves {
            let mut summary = self.summary.borrow_mut();
            *(if done { &mut summary.moved } else { &mut summary.broken_moves }) += 1;
        }
        Ok(killed)
    }

    /// Clients wait, links are whole, servers are up, and what was on its way has come.
    async fn mend(&self, killed: [bool; 2]) -> Result<(), String> {
        self.holds.set(true);
        self.sites.iter().for_each(|site| site.link.heal());
        for (site, killed) in killed.iter().enumerate() {
            if *killed {
                self.start(site).await?;
            }
        }
        self.env.sleep(SETTLE).await;
        Ok(())
    }

    /// A site is given up while its replicas are behind: they become active, and what only it has is lost. It comes
    /// back as a replica that has to roll back.
    async fn fail_over(&self) -> Result<[bool; 2], String> {
        let from = self.chance.below(2) as usize;
        let of_site: Vec<u16> =
            (0..VBUCKETS).filter(|vb| self.owner.borrow()[usize::from(*vb)] == from).collect();
        // What is acknowledged and copied before it must not be lost.
        self.pauses.set(true);
        self.env.sleep(SETTLE).await;
        self.until_equal().await?;
        let safe: Vec<usize> = self.ledgers.borrow().iter().map(|ledger| ledger.len()).collect();
        if self.chance.below(2) == 0 {
            // Nobody follows any more.
            self.still.set(true);
            self.env.sleep(Duration::from_millis(30)).await;
        } else {
            self.sites[1 - from].link.cut();
        }
        self.pauses.set(false);
        self.env.sleep(Duration::from_millis(self.chance.below(BEHIND_MS))).await;
        self.holds.set(true);
        let mut killed = [false; 2];
        killed[from] = self.chance.below(2) == 0;
        if killed[from] {
            self.kill(from);
        }
        self.mend(killed).await?;
        for vb in of_site {
            let (old, new) = (self.bucket(from)?, self.bucket(1 - from)?);
            let status = |status: dcp::codec::Status| status.name().to_owned();
            old.set_state(vb, VbucketState::Dead).map_err(status)?;
            new.set_state(vb, VbucketState::Active).map_err(status)?;
            old.set_state(vb, VbucketState::Replica).map_err(status)?;
            self.owner.borrow_mut()[usize::from(vb)] = 1 - from;
            self.check(vb, safe[usize::from(vb)])
                .await
                .map_err(|why| format!("failover, {why}"))?;
        }
        self.summary.borrow_mut().failovers += 1;
        Ok(killed)
    }

    /// As a manager does: whoever is active stays; where nobody is, it is who was. Then all is compared with the
    /// ledger.
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
            let least = {
                let ledger = &self.ledgers.borrow()[usize::from(vb)];
                if killed[owner] { ledger.durable() } else { ledger.len() }
            };
            self.check(vb, least).await?;
        }
        Ok(())
    }
}
