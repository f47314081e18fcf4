//! A fault of a node or of the link while something is measured.

use std::time::Duration;

use clusters::FaultKind;

/// What [`Fault::node`] says where the fault is one of the link.
pub(crate) const LINK: &str = "the link";

/// A fault of one node, of all nodes of a cluster, or of the link. It is ended however the run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The node, or the cluster for all of its nodes at once.
    pub node: String,
    /// What is wrong with it.
    pub kind: FaultKind,
    /// When it begins, since the load began, warm-up included. As an action it begins when its turn comes.
    pub at: Duration,
    /// How long it lasts; without it until the load has ended.
    pub lasts: Option<Duration>,
}
