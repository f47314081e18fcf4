//! How long remote clusters and their nodes are waited for.

use std::time::Duration;

/// How long a remote cluster may take to answer.
pub(super) const REMOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node is waited for where others can be asked, and a seed that gave no answer before.
pub(super) const SILENT_PATIENCE: Duration = Duration::from_secs(5);
