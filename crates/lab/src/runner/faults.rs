//! Faults of nodes and of the link: their beginning and their end.

use clusters::FaultKind;
use record::Line;

use super::base::Runner;
use crate::error::Result;
use crate::plan::{FOLLOWER, Fault, LEADER, LINK, Variant};

impl Runner<'_> {
    /// Has a fault begin, or ends it. The fault of a cluster is one of each of its nodes: the manager's begins last and
    /// ends first.
    pub(crate) async fn set_fault(
        &mut self,
        variant: &Variant,
        fault: &Fault,
        begins: bool,
    ) -> Result<()> {
        let Fault { node, kind, .. } = fault;
        let text = match begins {
            true => format!("{node} is {kind}"),
            false => format!("{node} is no longer {kind}"),
        };
        self.note(Some(variant), &text)?;
        self.journal.line(&Line::Fault {
            t_ms: self.journal.t_ms(),
            variant: variant.name.clone(),
            what: format!("{node} is {kind}"),
            begins,
        })?;
        if *kind == FaultKind::Cut && node == LINK {
            let link = self.clusters.link();
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
            self.set_node_fault(node, *kind, begins).await?;
        }
        Ok(())
    }

    async fn set_node_fault(&mut self, node: &str, kind: FaultKind, begins: bool) -> Result<()> {
        let faults = self.clusters.faults()?;
        if begins {
            return Ok(faults.begin(node, kind).await?);
        }
        faults.end(node, kind).await?;
        if let FaultKind::FullDisk { .. } = kind {
            self.retry_failed(node).await?;
        }
        Ok(())
    }

    /// Has copies that failed too often be allocated again (`index.allocation.max_retries`): whoever runs a cluster
    /// asks for it once there is room.
    async fn retry_failed(&self, node: &str) -> Result<()> {
        let cluster = if node.starts_with(FOLLOWER) { FOLLOWER } else { LEADER };
        self.ask(cluster, "POST", "/_cluster/reroute?retry_failed=true", None).await.map(drop)
    }
}
