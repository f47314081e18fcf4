//! What befalls nodes and the link, and its end.

use clusters::Target;

use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Fault, FaultKind, LINK, Variant};

impl<T: Target> Runner<'_, T> {
    /// Has a fault begin, or ends it; of a cluster on all of its nodes, the manager last down and first up.
    pub(super) async fn befall(
        &mut self,
        variant: &Variant,
        fault: &Fault,
        begins: bool,
    ) -> Result<(), Error> {
        let Fault { node, kind, .. } = fault;
        let text = match begins {
            true => format!("{node} is {kind}"),
            false => format!("{node} is no longer {kind}"),
        };
        self.note(Some(variant), &text)?;
        if *kind == FaultKind::Cut && node == LINK {
            let link = self.target.link();
            let link = link.expect("a plan without a link cuts nothing");
            if begins {
                link.cut()
            } else {
                link.heal()
            }
            return Ok(());
        }
        let mut nodes = self.plan.nodes_called(node);
        if begins {
            nodes.reverse();
        }
        for node in &nodes {
            self.befall_node(node, *kind, begins).await?;
        }
        Ok(())
    }

    async fn befall_node(
        &mut self,
        node: &str,
        kind: FaultKind,
        begins: bool,
    ) -> Result<(), Error> {
        let target = &mut *self.target;
        match (kind, begins) {
            (FaultKind::Slow { factor }, true) => target.slow_node(node, factor).await?,
            (FaultKind::Load { processes, factor }, true) => {
                target.load_node(node, processes, factor).await?;
            }
            (FaultKind::Slow { .. } | FaultKind::Load { .. }, false) => {
                target.slow_node(node, 1.0).await?;
            }
            (FaultKind::Pause, true) => target.pause_node(node).await?,
            (FaultKind::Pause, false) => target.resume_node(node).await?,
            (FaultKind::Stop, true) => target.stop_node(node).await?,
            (FaultKind::Kill, true) => target.kill_node(node).await?,
            (FaultKind::Stop | FaultKind::Kill, false) => {
                Box::pin(target.start_node(node)).await?;
            }
            (FaultKind::FullDisk { free_bytes }, true) => {
                target.limit_disk(node, Some(free_bytes))?;
            }
            (FaultKind::FullDisk { .. }, false) => {
                target.limit_disk(node, None)?;
                self.retry_failed(node).await?;
            }
            (FaultKind::Clock { by_ms }, true) => target.move_clock(node, by_ms)?,
            (FaultKind::Clock { by_ms }, false) => target.move_clock(node, -by_ms)?,
            (FaultKind::Cut, true) => target.cut_node(node).await?,
            (FaultKind::Cut, false) => target.heal_node(node).await?,
            (FaultKind::Fail, begins) => target.fail_searches(node, begins).await?,
        }
        Ok(())
    }

    /// Copies that failed five times are not tried again by themselves: once there is room, whoever runs a cluster asks
    /// for it.
    async fn retry_failed(&self, node: &str) -> Result<(), Error> {
        let cluster = if node.starts_with(FOLLOWER) { FOLLOWER } else { LEADER };
        let path = "/_cluster/reroute?retry_failed=true";
        self.ask(cluster, "POST", path, None).await?;
        Ok(())
    }
}
