//! The faults of nodes that are processes, whatever program they run.

use super::list::Nodes;
use super::order::Order;
use super::process::NodeProcess;
use crate::fault::FaultKind;
use crate::{Error, Result};

impl<C> Nodes<NodeProcess, C> {
    /// Has a fault begin that every process can have; refuses the others.
    pub(crate) async fn begin(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Kill => {
                let Some(process) = self.find(node)?.running.take() else { return Ok(()) };
                let (target, what) = (self.target, format!("kill {node}"));
                process.kill().await.map_err(|why| Error::NoFault { target, what, why })
            }
            FaultKind::Stop => self.stop(node).await,
            FaultKind::Pause => self.pause(node, true),
            FaultKind::Slow { factor } => self.slow(node, factor),
            FaultKind::Load { factor, .. } => self.load(node, factor),
            _ => Err(self.refused(node, fault)),
        }
    }

    /// Ends a fault that every process can have, but for those after which a node is started again.
    pub(crate) fn end(&mut self, node: &str, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Pause => self.pause(node, false),
            FaultKind::Slow { .. } | FaultKind::Load { .. } => self.slow(node, 1.0),
            _ => Err(self.refused(node, fault)),
        }
    }

    /// Sends an order to a node of the embedded engine.
    pub(crate) async fn order(&self, node: &str, order: Order) -> Result<()> {
        let running = self.iter().find(|one| one.handle.name == node);
        let down = || Error::Unknown { what: "running node", name: node.to_owned() };
        let process = running.and_then(|one| one.running.as_ref()).ok_or_else(down)?;
        let sent = process.order(order).await;
        let target = self.target;
        sent.map_err(|why| Error::NoFault { target, what: format!("{order} {node}"), why })
    }

    fn pause(&mut self, node: &str, pauses: bool) -> Result<()> {
        let (target, what) = (self.target, format!("pause {node}"));
        let paused = self.find_running(node)?.pause(pauses);
        paused.map_err(|why| Error::NoFault { target, what, why })
    }

    /// Gives a node's process one part in `factor` of the cores that it would have if all nodes were busy.
    fn slow(&mut self, node: &str, factor: f64) -> Result<()> {
        let share = (self.cores_of_a_node() / factor, 0);
        self.limit_cores(node, (factor > 1.0).then_some(share))
    }

    /// Gives a node's process the cores that it would have if all nodes were busy, and has as many processes of
    /// `stress-ng` share them as leave one of its threads one part in `factor`. Without `stress-ng` it is slowed.
    fn load(&mut self, node: &str, factor: f64) -> Result<()> {
        let competitors = (factor - 1.0).round() as u32;
        if competitors == 0 || machine::STRESS_NG.look().is_err() {
            return self.slow(node, factor);
        }
        self.limit_cores(node, Some((self.cores_of_a_node(), competitors)))
    }

    fn cores_of_a_node(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        cores / self.len() as f64
    }

    fn limit_cores(&mut self, node: &str, share: Option<(f64, u32)>) -> Result<()> {
        let target = self.target;
        let what = format!("slow {node} by a control group of the system");
        let limited = self.find_running(node)?.limit_cores(share);
        limited.map_err(|why| Error::NoFault { target, what, why })
    }
}
