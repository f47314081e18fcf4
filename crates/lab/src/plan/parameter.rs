//! Parameters of the virtual world, as a plan sets them.

/// One parameter's value, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Which hosts it is for.
    pub scope: ParameterScope,
    /// Its name in [`world::model::parameters`].
    pub name: String,
    /// Its value, as written.
    pub value: String,
    /// Where the value comes from.
    pub source: String,
    /// The published rows that it was fitted to, each as `plan / variant`; empty where it was not fitted.
    pub calibrated_on: Vec<String>,
}

/// Which hosts a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterScope {
    /// All hosts, and the link.
    Everywhere,
    /// The hosts of the leader.
    Leader,
    /// The hosts of the follower.
    Follower,
}

impl ParameterScope {
    /// The name in records: `all`, `leader`, `follower`.
    pub fn name(self) -> &'static str {
        match self {
            ParameterScope::Everywhere => "all",
            ParameterScope::Leader => "leader",
            ParameterScope::Follower => "follower",
        }
    }
}
