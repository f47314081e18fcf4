//! Asking one question: its answer, a gap, or the end of the observation.

use record::observation::Gap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Sampler;
use crate::live::questions::{CCR_STATS, PLUGIN, lost_without};
use crate::{Error, Result};

impl Sampler {
    /// Asks, and reads what is wanted of the answer; a failure becomes a gap.
    pub(super) async fn read<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        path: &str,
    ) -> Result<Option<T>> {
        match self.client.read(path).await {
            Ok(answer) => {
                self.gaps.remove(name);
                Ok(Some(answer))
            }
            Err(error) => {
                self.lose(name, error).await?;
                Ok(None)
            }
        }
    }

    /// Asks for something that many clusters do not have, which is `null` and no gap; another failure is one.
    pub(super) async fn ask_unless_absent(
        &mut self,
        name: &'static str,
        path: &str,
    ) -> Result<Option<Value>> {
        if self.absent.contains(name) {
            return Ok(Some(Value::Null));
        }
        let answer = self.client.get(path).await;
        self.gaps.remove(name);
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_absent() => {
                self.absent.insert(name);
                // Where another cluster is known, somebody may follow it. A license without following keeps nothing
                // from us.
                let is_kept = matches!(&error, Error::Forbidden { reason, .. } if !reason.contains("license"));
                if is_kept && !self.last.remotes.is_empty() && [CCR_STATS, PLUGIN].contains(&name) {
                    self.lose(name, error).await?;
                }
                Ok(Some(Value::Null))
            }
            Err(error) => {
                self.lose(name, error).await?;
                Ok(None)
            }
        }
    }

    /// Asks for something that adds to what is known already; a failure is no gap.
    pub(super) async fn try_ask<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        match self.client.read(path).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => match self.is_over(&error).await {
                true => Err(error),
                false => Ok(None),
            },
        }
    }

    /// Makes a failure a gap, unless nothing more is to be asked.
    pub(super) async fn lose(&mut self, name: &str, error: Error) -> Result<()> {
        // Without recoveries there is nothing to judge, not even that all is well.
        let is_all = name == "/_recovery" && matches!(error, Error::Forbidden { .. });
        // Hot threads are asked for last and take longest: a node that lacks CPU answers everything else.
        let is_last = name == "/_nodes/hot_threads";
        if is_all || (!is_last && self.is_over(&error).await) {
            return Err(error);
        }
        let lost = lost_without(name);
        let gap = Gap { path: name.to_owned(), found: error.to_string(), lost: lost.to_owned() };
        self.gaps.insert(name.to_owned(), gap);
        Ok(())
    }

    /// Whether nothing more is to be asked. A host may be too late for one question because another node stands still,
    /// and who stands before it may cut one long answer: where nobody has answered in this observation yet, hosts are
    /// asked for themselves to tell that from silence.
    pub(super) async fn is_over(&self, error: &Error) -> bool {
        let is_doubtful =
            matches!(error, Error::Timeout { .. } | Error::Broken { .. } | Error::NoHost { .. })
                && self.client.cost().1 == self.bytes_before;
        ends_observation(error) || (is_doubtful && self.client.is_silent().await)
    }
}

/// Whether no host is there, or none accepts the credentials.
fn ends_observation(error: &Error) -> bool {
    match error {
        Error::Connection { .. } | Error::Peer { .. } | Error::Unauthorized { .. } => true,
        // One that was too late, or that refused because it has no manager, is there.
        Error::NoHost { tried } => tried.iter().all(ends_observation),
        _ => false,
    }
}
