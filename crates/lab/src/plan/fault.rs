//! What befalls a node or the link while something is measured.

use std::time::Duration;

use clusters::FaultKind;

/// What [`Fault::node`] says of a fault that befalls no node.
pub(crate) const LINK: &str = "the link";

/// A fault of one node, of all nodes of a cluster, or of the link. Whatever the end of the run, it is undone.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The node, or the cluster for all of its nodes at once.
    pub node: String,
    /// What befalls it.
    pub kind: FaultKind,
    /// When, since the load began, warm-up included; of a step it is when its turn comes.
    pub at: Duration,
    /// How long; until the load has ended without it.
    pub lasts: Option<Duration>,
}
