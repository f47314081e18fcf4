//! The cluster state as this node knows it, and the settings that follow from it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tokio::sync::Notify;

use crate::settings::Settings;
use crate::state::ClusterState;

/// What the manager published last.
pub(crate) struct Published {
    pub(super) state: RefCell<Arc<ClusterState>>,
    pub(super) settings: RefCell<Settings>,
    /// Another state is here, or the manager is lost.
    pub(crate) changed: Notify,
    /// The manager's disk had no room for a state without a copy or node that was lost; the loss is reported again.
    pub(super) hides_loss: Cell<bool>,
    /// The copies here are to be compared with the state.
    pub(crate) reconcile: Notify,
    /// More than what changed in the state is to be looked at: a copy failed, or the node joins.
    pub(crate) reconcile_all: Cell<bool>,
}

impl Published {
    pub(super) fn new(state: ClusterState, settings: Settings) -> Self {
        Published {
            state: RefCell::new(Arc::new(state)),
            settings: RefCell::new(settings),
            changed: Notify::new(),
            hides_loss: Cell::new(false),
            reconcile: Notify::new(),
            reconcile_all: Cell::new(false),
        }
    }
}
