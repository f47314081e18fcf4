//! What befalls nodes and the link, and its end.

use clusters::FaultKind;

use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Fault, LINK, Variant};

impl Runner<'_> {
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
        let faults = self.target.faults()?;
        if begins {
            return Ok(faults.begin(node, kind).await?);
        }
        faults.end(node, kind).await?;
        if let FaultKind::FullDisk { .. } = kind {
            self.retry_failed(node).await?;
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
