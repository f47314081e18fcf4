//! Works through a plan on a target, in either world, and writes the record.
//!
//! | file | does |
//! | --- | --- |
//! | `watch` | what the runner tells while it goes on: [`Watch`] |
//! | `indexing` | the bulk clients |
//! | `recovering` | one variant: settings, follow, samples, end |
//! | `replicating` | the same for `add_replica` |
//! | `restoring` | the same for `restore` |
//! | `sampling` | telemetry into lines of the record |
//! | `verifying` | the checker: both sides hold the same documents |
//! | `reading` | a digest for clusters that have none: every document read through `_search` |
//! | `journal` | the record as the runner writes it |

mod indexing;
mod journal;
mod reading;
mod recovering;
mod replicating;
mod restoring;
mod sampling;
mod verifying;
mod watch;

use bytes::Bytes;
use clusters::{ClusterSpec, Target, TopologySpec};
use record::{Line, Row, Writer};
use serde_json::Value;
use world::{Env, LinkConfig};

pub use watch::{Quiet, Watch};

use crate::Error;
use crate::plan::{Resolved, Step, Variant};
use journal::Journal;

/// Name of the cluster that holds the data.
pub const LEADER: &str = "leader";
/// Name of the cluster that recovers.
pub const FOLLOWER: &str = "follower";

/// The clusters and the link that a plan asks for.
pub fn topology(plan: &Resolved) -> TopologySpec {
    let cluster = |name: &str, nodes: u32| ClusterSpec {
        name: name.to_owned(),
        nodes: nodes as usize,
        settings: Default::default(),
    };
    TopologySpec {
        clusters: vec![cluster(LEADER, plan.leader.nodes), cluster(FOLLOWER, plan.follower.nodes)],
        link: Some(LinkConfig {
            rtt: plan.link.rtt,
            rate_bytes_per_s: Some(plan.link.rate_bytes_per_s),
            window_bytes: plan.link.window_bytes,
        }),
        joined: plan.joined,
    }
}

/// A plan being run on a target.
pub struct Runner<'a, T> {
    env: Env,
    plan: &'a Resolved,
    target: &'a T,
    journal: Journal<'a>,
    watch: &'a dyn Watch,
}

impl<'a, T: Target> Runner<'a, T> {
    /// A runner on a target that is started already (see [`topology`]).
    pub fn new(
        env: &Env,
        plan: &'a Resolved,
        target: &'a T,
        writer: &'a mut Writer,
        watch: &'a dyn Watch,
    ) -> Self {
        Runner { env: env.clone(), plan, target, journal: Journal::new(env, writer), watch }
    }

    /// Works through the plan. Rows are in the record as soon as they are known; what is returned are all of
    /// them. A variant whose copy is not right is an error, after its row was written.
    pub async fn run(&self) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        if self.plan.way() == Some(Step::Restore) && self.target.repository(LEADER).is_none() {
            return Err(Error::NoRepository { target: self.target.name() });
        }
        if self.plan.steps.contains(&Step::Index) {
            self.index().await?;
        }
        let Some(way) = self.plan.way() else { return Ok(rows) };
        if way == Step::Restore {
            self.take_snapshot().await?;
        }
        let leader = self.digest_leader().await?;
        for lap in 1..=self.plan.laps {
            for variant in &self.plan.variants {
                let mut row = match way {
                    Step::AddReplica => self.add_replica(variant, lap).await?,
                    Step::Restore => self.restore(variant, lap).await?,
                    _ => self.recover(variant, lap).await?,
                };
                if self.plan.steps.contains(&Step::Verify) {
                    self.verify(variant, lap, &leader, &mut row).await?;
                }
                self.journal.row(&row)?;
                self.watch.row(&row);
                let verified = row.verified;
                rows.push(row);
                if !verified && self.plan.steps.contains(&Step::Verify) {
                    return Err(Error::NotTheSame { variant: variant.name.clone() });
                }
                match way {
                    Step::AddReplica => self.remove_replica().await?,
                    _ => self.forget_follower().await?,
                }
            }
        }
        Ok(rows)
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

    /// A sentence for the record and for whoever watches.
    fn note(&self, variant: &Variant, text: &str) -> Result<(), Error> {
        let (t_ms, variant) = (self.journal.t_ms(), Some(variant.name.clone()));
        self.watch.note(text);
        self.journal.line(&Line::Note { t_ms, variant, text: text.to_owned() })
    }

    /// The name that the follower index has: the leader index's own.
    fn follower_index(&self) -> &str {
        &self.plan.index.name
    }
}
