//! Shards that follow another cluster's: of Elasticsearch, and of OpenSearch's plugin.

use std::collections::BTreeSet;

use record::observation::{Follower, Gap};
use serde_json::Value;

use super::Sampler;
use crate::Result;
use crate::live::parse;
use crate::live::questions::{
    CCR, CCR_INFO, CCR_STATS, PLUGIN, REPLICATED_FILTER, REPLICATION, escape,
};

/// Followers that do not run and are asked why, in one observation.
const STOPPED_MAX: usize = 5;
/// Followers that are asked for that, at a time.
const ASKED_MAX: usize = 500;

impl Sampler {
    /// Followers, in every observation once there are some; until then from time to time.
    pub(super) async fn followers(&mut self, slow: bool) -> Result<()> {
        if !slow && self.last.followers.is_empty() {
            return Ok(());
        }
        let is_plugin = self.last.cluster.flavour == "opensearch";
        let (name, path) = if is_plugin { (PLUGIN, REPLICATION) } else { (CCR_STATS, CCR) };
        let answer = match self.ask_unless_absent(name, path).await? {
            None => return Ok(()),
            Some(Value::Null) => {
                self.last.followers.clear();
                self.last.auto_follow_errors.clear();
                return Ok(());
            }
            Some(answer) => answer,
        };
        if !is_plugin {
            self.last.auto_follow_errors = parse::auto_follow_errors(&answer);
        }
        let mut followers = match is_plugin {
            true => parse::replication(&answer),
            false => parse::ccr(&answer),
        };
        if is_plugin {
            let count = parse::replication_stopped(&answer);
            if count > 0 && (slow || count != self.stopped.0) {
                self.stopped = (count, self.replication_stopped(&followers, count).await?);
            }
            self.stopped.1.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            if count == 0 {
                self.gaps.remove(REPLICATION);
            }
        } else if slow && !(self.last.remotes.is_empty() && self.stopped.1.is_empty()) {
            let info: Option<Value> = self.try_ask(CCR_INFO).await?;
            if let Some(info) = info {
                self.stopped.1 = parse::ccr_paused(&info);
                self.follow_limits = parse::ccr_limits(&info);
            }
        }
        for follower in &mut followers {
            follower.limits = self.follow_limits.get(&follower.index).copied();
        }
        for stopped in &self.stopped.1 {
            // What a follower did before it was stopped says nothing of why it lags now.
            followers.retain(|one| one.index != stopped.index || one.fatal.is_some());
            if followers.iter().all(|one| one.index != stopped.index) {
                followers.push(stopped.clone());
            }
        }
        self.last.followers = followers;
        Ok(())
    }

    /// The followers of the plugin that do not run, with the reason that each gives. Their names are those of indices
    /// with the plugin's setting; where a service hides it, they are not told.
    async fn replication_stopped(
        &mut self,
        running: &[Follower],
        count: u64,
    ) -> Result<Vec<Follower>> {
        let path = format!("/_settings?flat_settings=true&filter_path={REPLICATED_FILTER}");
        let settings = self.try_ask(&path).await?;
        let named = settings.as_ref().map(parse::replicated).unwrap_or_default();
        let all: BTreeSet<String> =
            named.into_iter().chain(running.iter().map(|one| one.index.clone())).collect();
        let mut stopped = Vec::new();
        for index in all.into_iter().take(ASKED_MAX) {
            if stopped.len() as u64 >= count.min(STOPPED_MAX as u64) {
                break;
            }
            let path = format!("/_plugins/_replication/{}/_status", escape(&index));
            let answer = self.try_ask(&path).await?;
            stopped.extend(answer.and_then(|answer| parse::replication_status(&index, &answer)));
        }
        if stopped.is_empty() {
            let found = format!("{count} followers are paused or have failed, and none is named");
            let lost = "which followers do not run, and why".to_owned();
            self.gaps.insert(REPLICATION.into(), Gap { path: REPLICATION.into(), found, lost });
        } else {
            self.gaps.remove(REPLICATION);
        }
        Ok(stopped)
    }
}
