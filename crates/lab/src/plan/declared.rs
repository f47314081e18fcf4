//! What an experiment declares of the step that it measures variants in: enough for a plan to be read and checked.

use super::resolved::Resolved;
use super::step::Measured;

/// All that plans need to know of the steps that variants are measured in. Experiments know their steps, plans do not.
pub type DeclaredSteps = [&'static DeclaredStep];

/// A step that variants are measured in.
#[derive(Debug)]
pub struct DeclaredStep {
    /// The name in plans. Its options are in `keys/steps.rs`.
    pub name: &'static str,
    /// What the rest of the plan has to have.
    pub needs: Needs,
    /// When writers of `index_in_background` begin.
    pub writers: Writers,
    /// Whether documents are copied in it, so that there is something to verify.
    pub copies: bool,
    /// Whether settings can be changed while it goes on.
    pub changes_settings: bool,
    /// Whether a load is sent in it, with faults meanwhile.
    pub sends_load: bool,
    /// Whether what happens in it is a list of [`Action`](super::Action)s in the plan.
    pub has_actions: bool,
    /// Whether a variant leaves the indices other than it found them.
    pub spoils_indices: fn(&Measured) -> bool,
    /// Says in a sentence what the plan has that does not go with it.
    pub check: fn(&Resolved) -> Result<(), String>,
}

impl DeclaredStep {
    /// A step that goes with every plan that has what it needs, without actions, and takes the indices as they are.
    pub const fn new(name: &'static str, needs: Needs) -> Self {
        DeclaredStep {
            name,
            needs,
            writers: Writers::Throughout,
            copies: true,
            changes_settings: false,
            sends_load: false,
            has_actions: false,
            spoils_indices: |_| false,
            check: |_| Ok(()),
        }
    }
}

/// What a plan has to have for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A leader.
    OneCluster,
    /// A leader, and a follower across the link that is a cluster of its own.
    TwoClusters,
    /// A leader, and nodes across the link that join it.
    SecondSite,
    /// A bucket, and no indices.
    Bucket,
    /// A twin, and no indices.
    Twin,
}

/// When writers in the background of a step begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// They cannot go on beside it.
    Never,
    /// Before it begins.
    Throughout,
    /// When its experiment has them begin.
    Later,
}
