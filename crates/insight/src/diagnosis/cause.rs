//! What a file in `causes/` declares: how its cause is recognised, and the function that recognises it.

use record::observation::Remote;

use super::answers::Answer;
use super::copying::{Copying, End};
use super::finding::Finding;
use super::following::Following;
use super::node_span::NodeSpan;
use super::replaying::Replaying;
use super::rule::Rule;
use super::series::Series;
use super::streaming::Streaming;
use super::waiting::Waiting;

/// A cause: its rule, and its judges.
pub(crate) struct Cause {
    pub(crate) rule: Rule,
    /// Each looks at one kind of thing. The cause that is left where no other answers has none.
    pub(crate) judges: &'static [Judge],
}

/// A function that looks for a cause, by what it looks at. Where causes are rivals, the judge of one that does not hold
/// says what speaks against it; elsewhere none means that it does not hold.
pub(crate) enum Judge {
    /// A recovery that copies files. The strongest answer of all causes counts.
    Copying(fn(&Copying<'_, '_>) -> Answer),
    /// The source or the target of such a recovery. Its answers compete with those on the recovery.
    End(fn(&Copying<'_, '_>, &End<'_>) -> Answer),
    /// A recovery that replays operations. The first answer counts.
    Replaying(fn(&Replaying<'_, '_>) -> Answer),
    /// Copies that wait for the same thing. The first answer counts.
    Waiting(fn(&Waiting<'_, '_>) -> Answer),
    /// A shard that follows another cluster's. The first answer counts.
    Following(fn(&Following<'_, '_>) -> Answer),
    /// A DCP connection that is behind. The first answer counts.
    Streaming(fn(&Streaming<'_>) -> Answer),
    /// Another cluster that this one knows.
    Remote(fn(&Series<'_>, &Remote) -> Option<Finding>),
    /// A node, whether something recovers there or not.
    Node(fn(&NodeSpan<'_>) -> Option<Finding>),
    /// The cluster as a whole.
    Cluster(fn(&Series<'_>) -> Option<Finding>),
}
