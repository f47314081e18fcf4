//! `[leader]`, `[follower]` and `[link]`.

use std::ops::RangeInclusive;

use toml::Spanned;

use super::together::Together;
use super::twin::TWIN_NODES_MAX;
use crate::error::Result;
use crate::plan::bounds::{RATE, RTT, WINDOW};
use crate::plan::declared::{DeclaredSteps, Needs};
use crate::plan::document;
use crate::plan::file::Plan;
use crate::plan::keys::parse_number;
use crate::plan::topology::{Cluster, FOLLOWER, LEADER, Link};

/// How many nodes a cluster may have that is no twin.
pub(super) fn nodes() -> RangeInclusive<i64> {
    document::LEADER.bounds("nodes", parse_number).1
}

impl Plan {
    pub(super) fn clusters(&self) -> Result<(Cluster, Option<Cluster>)> {
        let cluster = |nodes: &Spanned<i64>| -> Result<Cluster> {
            let bounds = match self.document.twin {
                Some(_) => 1..=i64::from(TWIN_NODES_MAX) + 1,
                None => self::nodes(),
            };
            Ok(Cluster { nodes: self.number_within("nodes", nodes, bounds)? })
        };
        let leader = cluster(&self.document.leader.nodes);
        let follower = self.document.follower.as_ref().map(|follower| cluster(&follower.nodes));
        (leader, follower.transpose()).together()
    }

    /// The names that a fault can have: every node, and each cluster for all of its nodes.
    pub(super) fn fault_nodes(&self) -> Vec<String> {
        let document = &self.document;
        let follower = document.follower.as_ref().map(|follower| (FOLLOWER, &follower.nodes));
        let clusters = [Some((LEADER, &document.leader.nodes)), follower];
        let (mut names, bounds) = (Vec::new(), nodes());
        for (cluster, nodes) in clusters.into_iter().flatten() {
            // A number out of range is told elsewhere.
            let nodes = Some(*nodes.get_ref()).filter(|nodes| bounds.contains(nodes));
            let nodes = nodes.unwrap_or(*bounds.end());
            names.extend((0..nodes).map(|n| format!("{cluster}-{n}")));
            names.push(cluster.to_owned());
        }
        names
    }

    /// A name that is one of `nodes`.
    pub(super) fn node_called(&self, name: &Spanned<String>, nodes: &[String]) -> Result<String> {
        if nodes.contains(name.get_ref()) {
            return Ok(name.get_ref().clone());
        }
        let known: Vec<&str> = nodes.iter().map(String::as_str).collect();
        Err(self.unknown("no node is called", name, "Nodes", &known))
    }

    /// Whether the follower's nodes join the leader: one experiment needs that, others need two clusters.
    pub(super) fn joined(&self, declared: &DeclaredSteps) -> Result<bool> {
        let joins = self.document.follower.as_ref().and_then(|follower| follower.joins.as_ref());
        if let Some(joins) = joins.filter(|joins| joins.get_ref() != "leader") {
            let message = "the follower's nodes can join \"leader\" alone";
            return Err(self.error(joins.span(), message));
        }
        for step in self.document.steps.get_ref() {
            let Some(name) = step.get_ref().as_str() else { continue };
            let needs = declared.iter().find(|known| known.name == name).map(|known| known.needs);
            let wrong = match needs {
                Some(Needs::SecondSite) if joins.is_none() => {
                    format!(
                        "{name} needs nodes of the same cluster across the link; write joins = \"leader\" below \
                         [follower]"
                    )
                }
                Some(Needs::TwoClusters) if joins.is_some() => {
                    "this step needs two clusters; take joins out of [follower], or use add_replica"
                        .to_owned()
                }
                _ => continue,
            };
            return Err(self.error(step.span(), wrong));
        }
        Ok(joins.is_some())
    }

    pub(super) fn link(&self) -> Result<Option<Link>> {
        let Some(link) = &self.document.link else { return Ok(None) };
        let window = link.window.as_ref();
        let window = window.map(|text| self.unit(text, |text| WINDOW.read(text)));
        let rtt = self.unit(&link.rtt, |text| RTT.read(text));
        let rate = self.unit(&link.rate, |text| RATE.read(text));
        let (rtt, rate_bytes_per_s, window_bytes) = (rtt, rate, window.transpose()).together()?;
        Ok(Some(Link { rtt, rate_bytes_per_s, window_bytes }))
    }
}
