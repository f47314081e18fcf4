//! The clusters and the link that a plan asks for.

use clusters::{ClusterSpec, TopologySpec};
use world::LinkConfig;

use crate::plan::{FOLLOWER, LEADER, Link, Resolved, Twin};

pub(crate) fn topology(plan: &Resolved) -> TopologySpec {
    let cluster = |name: &str, nodes: u32| ClusterSpec {
        name: name.to_owned(),
        nodes: nodes as usize,
        settings: plan.node_settings.clone(),
        attributes: plan.twin.as_ref().map(Twin::attributes).unwrap_or_default(),
    };
    let mut clusters = vec![cluster(LEADER, plan.leader.nodes)];
    clusters.extend(plan.follower.map(|follower| cluster(FOLLOWER, follower.nodes)));
    TopologySpec { clusters, link: plan.link.map(link_config), joined: plan.joined }
}

/// The link of a plan, without what only the virtual world has.
pub(crate) fn link_config(link: Link) -> LinkConfig {
    LinkConfig {
        rtt: link.rtt,
        rate_bytes_per_s: Some(link.rate_bytes_per_s),
        window_bytes: link.window_bytes,
        ..LinkConfig::default()
    }
}
