//! Auto-follow: on the manager, follows indices of remote clusters as they are made, by the patterns of the state.
//!
//! A remote cluster is asked for its indices and answers once they have changed (a long poll), so that a new leader is
//! followed about a round trip after its primaries have started. An index that could not be followed is tried again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use world::{Task, Time};

use super::create::{FollowRequest, follow};
use super::service::FollowService;
use crate::remote::{self, Listing};
use crate::state::{AutoFollow, AutoFollowChange, ClusterState, Event};
use crate::transport::{Failure, Result};

/// How long a remote cluster may wait for a change before it answers: `ccr.wait_for_metadata_timeout` of the field.
const WAIT: Duration = Duration::from_secs(60);
/// The shortest pause between two questions: many changes are answered together.
const PACE: Duration = Duration::from_millis(500);
/// After something failed.
const RETRY: Duration = Duration::from_secs(10);
/// Errors that are kept, as in the field.
const ERRORS: usize = 256;

/// What came of auto-following since this node manages.
pub(crate) struct AutoFollowing {
    service: Rc<FollowService>,
    outcomes: RefCell<Outcomes>,
}

#[derive(Default)]
struct Outcomes {
    followed: u64,
    failed: u64,
    requests_failed: u64,
    errors: VecDeque<Refused>,
    /// What each remote cluster last answered.
    checked: BTreeMap<String, Checked>,
}

#[derive(Default)]
struct Checked {
    at: Time,
    /// UUID of the cluster, and the latest version of its state.
    listed: (String, u64),
}

struct Refused {
    /// Pattern and index, or the alias of a cluster that did not answer.
    about: String,
    at_ms: u64,
    failure: Failure,
}

impl Outcomes {
    fn refuse(&mut self, about: String, at_ms: u64, failure: Failure) {
        self.errors.retain(|error| error.about != about);
        if self.errors.len() == ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(Refused { about, at_ms, failure });
    }

    fn forgive(&mut self, about: &str) {
        self.errors.retain(|error| error.about != about);
    }
}

impl AutoFollowing {
    pub(crate) fn new(service: Rc<FollowService>) -> Rc<Self> {
        Rc::new(AutoFollowing { service, outcomes: RefCell::default() })
    }

    fn no_answer(&self, alias: &str, at_ms: u64, failure: Failure) {
        let mut outcomes = self.outcomes.borrow_mut();
        outcomes.requests_failed += 1;
        outcomes.refuse(alias.to_owned(), at_ms, failure);
    }

    /// Notes that a cluster has answered; whether what it lists is no older than what it listed before.
    fn answered(&self, alias: &str, now: Time, listing: Option<&Listing>) -> bool {
        let mut outcomes = self.outcomes.borrow_mut();
        outcomes.forgive(alias);
        let checked = outcomes.checked.entry(alias.to_owned()).or_default();
        checked.at = now;
        let Some(listing) = listing else { return true };
        let (cluster, version) = &checked.listed;
        let is_older = *cluster == listing.cluster && listing.version < *version;
        if !is_older {
            checked.listed = (listing.cluster.clone(), listing.version);
        }
        !is_older
    }

    /// `auto_follow_stats`, by the names of the field.
    pub(crate) fn to_json(&self) -> Value {
        let now = self.service.core.env.now();
        let outcomes = self.outcomes.borrow();
        let error = |error: &Refused| {
            json!({
                "leader_index": error.about,
                "timestamp": error.at_ms,
                "auto_follow_exception": { "type": error.failure.kind, "reason": error.failure.reason },
            })
        };
        let cluster = |(alias, checked): (&String, &Checked)| {
            json!({
                "cluster_name": alias,
                "time_since_last_check_millis": (now - checked.at).as_millis() as u64,
                "last_seen_metadata_version": checked.listed.1,
            })
        };
        json!({
            "number_of_failed_follow_indices": outcomes.failed,
            "number_of_failed_remote_cluster_state_requests": outcomes.requests_failed,
            "number_of_successful_follow_indices": outcomes.followed,
            "recent_auto_follow_errors": outcomes.errors.iter().map(error).collect::<Vec<_>>(),
            "auto_followed_clusters": outcomes.checked.iter().map(cluster).collect::<Vec<_>>(),
        })
    }
}

/// The patterns that are to be followed by, without what came of them.
fn asked(state: &ClusterState) -> BTreeMap<String, Arc<AutoFollow>> {
    let active = state.auto_follow.iter().filter(|(_, pattern)| pattern.active);
    active.map(|(name, pattern)| (name.clone(), pattern.clone())).collect()
}

fn is_same(
    before: &BTreeMap<String, Arc<AutoFollow>>,
    now: &BTreeMap<String, Arc<AutoFollow>>,
) -> bool {
    let mut pairs = before.iter().zip(now);
    before.len() == now.len()
        && pairs
            .all(|((a, old), (b, new))| a == b && (Arc::ptr_eq(old, new) || old.asks_the_same(new)))
}

/// On the manager: watches the remote clusters that patterns are about, as long as the node lives.
pub(crate) async fn run(auto: Rc<AutoFollowing>) {
    let service = &auto.service;
    let mut before = BTreeMap::new();
    let mut watching: Vec<Task<()>> = Vec::new();
    loop {
        let changed = service.core.published.changed.notified();
        let now = asked(&service.core.state());
        if !is_same(&before, &now) {
            drop(std::mem::take(&mut watching));
            let clusters: BTreeSet<&String> = now.values().map(|p| &p.remote_cluster).collect();
            let checked = &mut auto.outcomes.borrow_mut().checked;
            checked.retain(|alias, _| clusters.contains(alias));
            watching = clusters
                .into_iter()
                .map(|alias| {
                    service
                        .core
                        .env
                        .spawn("follows new indices", watch(auto.clone(), alias.clone()))
                })
                .collect();
        }
        before = now;
        changed.await;
    }
}

async fn watch(auto: Rc<AutoFollowing>, alias: String) {
    let service = &auto.service;
    let mut known = None;
    loop {
        match remote::list(&service.remotes, &alias, known, WAIT).await {
            Err(failure) => {
                auto.no_answer(&alias, service.core.env.epoch_ms(), failure);
                service.core.env.sleep(RETRY).await;
            }
            Ok(listing) => {
                let version = listing.as_ref().map(|listing| listing.version).or(known);
                let now = service.core.env.now();
                let is_current = auto.answered(&alias, now, listing.as_ref());
                let is_done = match &listing {
                    // A node that has missed a state would say that new indices are gone, and that deleted ones are
                    // there. It hears of that soon. A cluster that was made anew has another UUID.
                    Some(_) if !is_current => false,
                    Some(listing) => follow_new(&auto, &alias, listing).await,
                    None => true,
                };
                known = version.filter(|_| is_done);
                service.core.env.sleep(if is_done { PACE } else { RETRY }).await;
            }
        }
    }
}

/// Follows what is to be followed; whether all of it is.
async fn follow_new(auto: &AutoFollowing, alias: &str, listing: &Listing) -> bool {
    let service = &auto.service;
    let mut is_done = true;
    for (name, pattern) in asked(&service.core.state()) {
        if pattern.remote_cluster != *alias {
            continue;
        }
        let mut followed = BTreeSet::new();
        for (leader, uuid) in &listing.uuids {
            if !pattern.wants(leader, uuid) {
                continue;
            }
            let about = format!("{name}:{leader}");
            let outcome = follow_one(service, &name, &pattern, leader, uuid).await;
            let mut outcomes = auto.outcomes.borrow_mut();
            match outcome {
                Ok(()) => {
                    outcomes.followed += 1;
                    outcomes.forgive(&about);
                    followed.insert(uuid.clone());
                }
                Err(failure) => {
                    outcomes.failed += 1;
                    outcomes.refuse(about, service.core.env.epoch_ms(), failure);
                    is_done = false;
                }
            }
        }
        let there: BTreeSet<&String> = listing.uuids.values().collect();
        let gone = pattern.settled.iter().filter(|uuid| !there.contains(uuid)).cloned().collect();
        if followed.is_empty() && BTreeSet::is_empty(&gone) {
            continue;
        }
        let remote_cluster = alias.to_owned();
        let change = AutoFollowChange::Settle { remote_cluster, followed, gone };
        // If the manager stops here, its next start finds the followers that exist and records them.
        is_done &= service.core.submit(Event::ChangeAutoFollow { name, change }).await.is_ok();
    }
    is_done
}

async fn follow_one(
    service: &Rc<FollowService>,
    name: &str,
    pattern: &AutoFollow,
    leader: &str,
    uuid: &str,
) -> Result<()> {
    let state = service.core.state();
    let others = state.auto_follow.iter().filter(|(other, found)| {
        **other != *name
            && found.active
            && found.remote_cluster == pattern.remote_cluster
            && found.fits(leader)
    });
    let others: Vec<&str> = others.map(|(other, _)| other.as_str()).collect();
    if !others.is_empty() {
        let reason = format!(
            "index to follow [{leader}] for pattern [{name}] matches with other patterns [{}]; exclude it from one",
            others.join(", ")
        );
        return Err(Failure::new(400, "illegal_argument_exception", reason));
    }
    let follower = pattern.follower_of(leader);
    let origin = state.indices.get(&follower).and_then(|meta| meta.leader.as_ref());
    if origin.is_some_and(|origin| origin.leader_uuid == uuid) {
        return Ok(());
    }
    let request = FollowRequest {
        follower,
        alias: pattern.remote_cluster.clone(),
        leader_index: leader.to_owned(),
        settings: pattern.settings.clone(),
        parameters: pattern.parameters.clone(),
    };
    follow(service, request).await
}
