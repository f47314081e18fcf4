//! The link between clusters, or between two sites of one cluster. Each site is then reached by the other through the
//! link: two emulators with one handle.
//!
//! Traffic to the far site goes out through one of them and comes back through the other, depending on who
//! connected, so a direction's figures are the sum of both. Each has the whole rate: a bound on the rate holds for
//! connections that one side opened.

use world::{Direction, LinkConfig, LinkStats, LinkTimes};

use super::LinkThread;
use crate::Result;
use crate::clusters::LinkControl;
use crate::topology::TopologySpec;

/// The link seen from the near site.
pub(crate) struct SiteLink {
    near: String,
    to_near: LinkThread,
    /// Leads to the far site, where that is reached through the link, too.
    to_far: Option<LinkThread>,
}

impl SiteLink {
    /// Opens the link that a topology asks for, between its first cluster and all others.
    pub(crate) fn of(topology: &TopologySpec) -> Result<Option<SiteLink>> {
        let Some(config) = &topology.link else { return Ok(None) };
        let near = topology.clusters.first().map(|cluster| cluster.name.clone());
        let to_near = LinkThread::open(config.clone())?;
        let to_far = topology.joined.then(|| LinkThread::open(config.clone())).transpose()?;
        Ok(Some(SiteLink { near: near.unwrap_or_default(), to_near, to_far }))
    }

    /// An address that leads to `address`, a node of `site`, through the link.
    pub(crate) fn route(&self, site: &str, address: &str) -> Result<String> {
        let far = self.to_far.as_ref().filter(|_| site != self.near);
        far.unwrap_or(&self.to_near).route("127.0.0.1:0", address)
    }

    fn each(&self) -> impl Iterator<Item = &LinkThread> {
        std::iter::once(&self.to_near).chain(&self.to_far)
    }
}

impl LinkControl for SiteLink {
    /// [`Direction::Out`] is towards the near site, which the far one asks for its data.
    fn stats(&self, direction: Direction) -> LinkStats {
        let other = match direction {
            Direction::Out => Direction::Back,
            Direction::Back => Direction::Out,
        };
        let near = self.to_near.stats(direction);
        let far = self.to_far.as_ref().map(|link| link.stats(other)).unwrap_or_default();
        LinkStats {
            bytes: near.bytes + far.bytes,
            busy: near.busy + far.busy,
            held_by_loss: near.held_by_loss + far.held_by_loss,
        }
    }

    /// The sum over both emulators: what both do at once counts twice.
    fn times(&self) -> Option<LinkTimes> {
        let sum = |a: LinkTimes, b: LinkTimes| LinkTimes {
            carrying: a.carrying + b.carrying,
            window_full: a.window_full + b.window_full,
        };
        self.each().filter_map(LinkThread::times).reduce(sum)
    }

    fn cut(&self) {
        self.each().for_each(LinkThread::cut);
    }

    fn heal(&self) {
        self.each().for_each(LinkThread::heal);
    }

    fn configure(&self, config: LinkConfig) -> std::io::Result<()> {
        self.each().try_for_each(|link| link.configure(config.clone()))
    }
}
