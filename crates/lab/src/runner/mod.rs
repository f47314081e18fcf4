//! Works through a plan on a target, in either world, and writes the record.
//!
//! | file | does |
//! | --- | --- |
//! | `watch` | what the runner tells while it goes on: [`Watch`] |
//! | `indexing` | the bulk clients |
//! | `beside` | what is indexed while something else is measured |
//! | `recovering` | one variant: settings, follow, samples, end |
//! | `peers` | one variant within a cluster: replicas appear, or nodes restart empty |
//! | `replicating` | the same for `add_replica` |
//! | `restoring` | the same for `restore` |
//! | `following` | one variant: what happens while a follower follows, and how far it lags |
//! | `lagging` | how far the follower is behind |
//! | `writing` | the driver: who writes, at a rate or all at once |
//! | `books` | the books of what that was answered |
//! | `rolling` | who rolls indices over |
//! | `restarts` | when nodes are restarted at random, and which |
//! | `checking` | its checker: every copy beside those books |
//! | `faults` | what befalls nodes and the link |
//! | `loading` | one variant: a load, and what befalls nodes meanwhile |
//! | `sampling` | telemetry into lines of the record |
//! | `verifying` | the checker: both sides hold the same documents |
//! | `reading` | a digest for clusters that have none: every document read through `_search` |
//! | `journal` | the record as the runner writes it |

mod beside;
mod books;
mod checking;
mod faults;
mod following;
mod indexing;
mod journal;
mod lagging;
mod loading;
mod peers;
mod reading;
mod recovering;
mod replicating;
mod restarts;
mod restoring;
mod rolling;
mod sampling;
mod verifying;
mod watch;
mod writing;

use bytes::Bytes;
use clusters::{ClusterSpec, Clusters, TopologySpec};
use record::{Line, Row, ShardDigest, Writer};
use serde_json::Value;
use world::{Env, LinkConfig};

pub use journal::Journal;
pub use watch::{Quiet, Watch};

use crate::Error;
use crate::plan::{CorpusUse, Peers, Resolved, Step, Variant};

/// Name of the cluster that holds the data.
pub const LEADER: &str = "leader";
/// Name of the cluster that recovers.
pub const FOLLOWER: &str = "follower";

/// The clusters and the link that a plan asks for.
pub fn topology(plan: &Resolved) -> TopologySpec {
    let cluster = |name: &str, nodes: u32| ClusterSpec {
        name: name.to_owned(),
        nodes: nodes as usize,
        settings: plan.node_settings.clone(),
    };
    let mut clusters = vec![cluster(LEADER, plan.leader.nodes)];
    clusters.extend(plan.follower.map(|follower| cluster(FOLLOWER, follower.nodes)));
    TopologySpec { clusters, link: link(plan), joined: plan.joined }
}

/// The link that a plan asks for, without what only the virtual world has.
fn link(plan: &Resolved) -> Option<LinkConfig> {
    plan.link.map(|link| LinkConfig {
        rtt: link.rtt,
        rate_bytes_per_s: Some(link.rate_bytes_per_s),
        window_bytes: link.window_bytes,
        ..LinkConfig::default()
    })
}

/// A plan being run on a target.
pub struct Runner<'a> {
    env: Env,
    plan: &'a Resolved,
    target: &'a mut dyn Clusters,
    journal: Journal<'a>,
    watch: &'a dyn Watch,
}

impl<'a> Runner<'a> {
    /// A runner on a target that is started already (see [`topology`]).
    pub fn new(
        env: &Env,
        plan: &'a Resolved,
        target: &'a mut dyn Clusters,
        writer: &'a mut Writer,
        watch: &'a dyn Watch,
    ) -> Self {
        Runner { env: env.clone(), plan, target, journal: Journal::new(env, writer), watch }
    }

    /// Works through the plan. Rows are in the record as soon as they are known; what is returned are all of
    /// them. A variant whose copy is not right is an error, after its row was written.
    pub async fn run(&mut self) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        let plan = self.plan;
        let way = plan.way();
        if way == Some(Step::Restore) && self.target.repository(LEADER).is_none() {
            return Err(Error::NoRepository { target: self.target.name() });
        }
        let indexes = plan.steps.contains(&Step::Index);
        // Where indices are loaded at once, every variant has clusters of its own: connections keep the windows that
        // they were opened with, and nothing of one variant reaches the next.
        let anew = plan.spoils_indices() || self.loads();
        if indexes && (!anew || way.is_none()) {
            match way {
                // Settings may say where copies are placed.
                Some(Step::Load) => {
                    self.set_up(&plan.variants[0]).await?;
                    self.index(Some(&plan.variants[0])).await?;
                }
                _ => self.index(None).await?,
            }
        }
        let Some(way) = way else { return Ok(rows) };
        // A load copies nothing, so there is nothing to compare.
        let once = match way {
            Step::Load if !anew => Some(Vec::new()),
            // It writes by itself, and its checker compares with what was answered.
            Step::Follow => Some(Vec::new()),
            _ if anew => None,
            _ => Some(self.ready_leader(way, None).await?),
        };
        let mut left_out = None;
        for lap in 1..=plan.laps {
            // Variants are compared on the same hosts; those of the next lap are others of their kind.
            if lap > 1
                && let Some(controls) = self.target.virtual_controls()
            {
                controls.renew_hosts();
            }
            for variant in &plan.variants {
                if self.loads() && !rows.is_empty() {
                    self.target.stop().await;
                    self.target.start(&topology(plan)).await?;
                }
                let leader = match &once {
                    Some(digest) => digest.clone(),
                    None => {
                        if way == Step::Load {
                            self.set_up(variant).await?;
                        }
                        self.index(Some(variant)).await?;
                        match way {
                            Step::Load => Vec::new(),
                            _ => self.ready_leader(way, Some(variant)).await?,
                        }
                    }
                };
                match self.measure(way, variant, lap, &leader).await {
                    Ok(row) => rows.push(row),
                    Err(error @ Error::NoSetting { .. }) => {
                        // No copy was begun.
                        if anew {
                            self.forget_indices(LEADER).await?;
                        }
                        self.note(Some(variant), &format!("left out: {error}"))?;
                        left_out = Some(error);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
                self.clear_away(anew).await?;
            }
        }
        match left_out {
            Some(error) if rows.is_empty() => Err(error),
            _ => Ok(rows),
        }
    }

    /// What the leader's primaries hold; where it is to be restored, a snapshot of that is taken.
    async fn ready_leader(
        &self,
        way: Step,
        variant: Option<&Variant>,
    ) -> Result<Vec<ShardDigest>, Error> {
        if way == Step::Restore {
            self.take_snapshot(variant).await?;
        }
        self.digest_leader(variant).await
    }

    /// What is indexed. A plan that comes here has it: buckets are run by [`crate::buckets`].
    fn corpus(&self) -> &'a CorpusUse {
        self.plan.corpus.as_ref().expect("a plan without a bucket has a corpus")
    }

    /// One variant and lap: recovers, compares, and writes the row.
    async fn measure(
        &mut self,
        way: Step,
        variant: &Variant,
        lap: u32,
        leader: &[ShardDigest],
    ) -> Result<Row, Error> {
        let beside = self.beside().await?;
        if let Some(beside) = beside.as_ref().filter(|_| way != Step::Recover) {
            beside.begin();
        }
        let measured = match way {
            Step::RecoverPeers(peers) => self.recover_peers(variant, lap, peers).await,
            Step::AddReplica => self.add_replica(variant, lap).await,
            Step::Restore => self.restore(variant, lap).await,
            Step::Load => self.load(variant, lap).await,
            // In its box: with all that can happen in it, it is large.
            Step::Follow => Box::pin(self.follow(variant, lap)).await,
            _ => self.recover(variant, lap, beside.as_ref()).await,
        };
        // Whatever came of it, nobody writes any more.
        let ended = match &beside {
            Some(beside) => self.end_beside(variant, beside).await,
            None => Ok(()),
        };
        let mut row = measured?;
        ended?;
        let verifies = way != Step::Load && self.plan.steps.contains(&Step::Verify);
        if verifies && way != Step::Follow {
            // A follower that recovers, or restores, has what the leader held before.
            let beside = beside.filter(|_| matches!(way, Step::RecoverPeers(_) | Step::AddReplica));
            self.verify(variant, lap, (leader, beside.as_ref()), &mut row).await?;
        }
        self.journal.row(&row)?;
        self.watch.row(&row);
        if verifies && !row.verified {
            return Err(Error::NotTheSame { variant: variant.name.clone() });
        }
        Ok(row)
    }

    /// Leaves nothing that the next variant would find.
    async fn clear_away(&self, anew: bool) -> Result<(), Error> {
        if self.plan.follower.is_some() && !self.plan.joined {
            self.forget_indices(FOLLOWER).await?;
        }
        if anew {
            return self.forget_indices(LEADER).await;
        }
        match self.plan.way() {
            Some(Step::RecoverPeers(Peers::Replicas)) => self.set_replicas(0).await,
            Some(Step::AddReplica) => self.remove_replica().await,
            _ => Ok(()),
        }
    }

    /// A sentence for the record and for whoever watches.
    fn note(&self, variant: Option<&Variant>, text: &str) -> Result<(), Error> {
        self.watch.note(text);
        let variant = variant.map(|variant| variant.name.clone());
        self.journal.line(&Line::Note { t_ms: self.journal.t_ms(), variant, text: text.to_owned() })
    }

    /// Asks a cluster; its answer as JSON.
    async fn ask(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        Ok(self.target.request(cluster, method, path, body).await?.json()?)
    }
}
