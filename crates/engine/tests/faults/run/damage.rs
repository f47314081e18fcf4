//! Files at rest that are damaged while their node is down.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{Stage, direct};
use crate::at_rest::{Older, befall, look, names_damage};
use crate::scenario::{Fault, Side, What};

/// What befell files at rest.
#[derive(Default)]
pub(super) struct AtRest {
    /// Of each node, as they were early.
    older: RefCell<BTreeMap<(usize, usize), Older>>,
    pub(super) damaged: Cell<u64>,
    /// Whether it befell a shard of which no other copy is in sync.
    is_lost: Cell<bool>,
    pub(super) refused: Cell<bool>,
}

impl Stage {
    /// Keeps what the nodes' disks hold early, so that it can be put back.
    pub(super) fn keep_texts(&self) {
        let is_damage = |fault: &Fault| matches!(fault.what, What::Damage(..));
        if !self.scenario.faults.iter().any(is_damage) {
            return;
        }
        let (env, at_rest, sites) = (self.env.clone(), self.at_rest.clone(), self.sites.clone());
        let early = Duration::from_millis(self.scenario.load_ms / 5);
        self.keep("keeps what files say", async move {
            env.sleep(early).await;
            for (side, site) in sites.iter().enumerate() {
                for node in 0..site.len() {
                    let older = look(&site.host(node)).await;
                    at_rest.older.borrow_mut().insert((side, node), older);
                }
            }
        });
    }

    /// Damages a file of a node that is down, and starts the node. Another fault may have started it before.
    pub(super) fn damage(&self, side: Side, node: usize, drawn: u64) {
        let (site, at_rest) = (self.site(side).clone(), self.at_rest.clone());
        let is_alone = self.is_alone(side, node);
        site.kill(node);
        self.keep("damages a file", async move {
            let older = at_rest.older.borrow().get(&(side as usize, node)).cloned();
            let state = site.last_state();
            let (host, older) = (site.host(node), older.unwrap_or_default());
            let state = state.as_deref();
            if let Some(is_repairable) = befall(&host, &older, state, drawn, is_alone).await {
                at_rest.damaged.set(at_rest.damaged.get() + 1);
                at_rest.is_lost.set(at_rest.is_lost.get() || !is_repairable);
            }
            site.bring_up(node);
        });
    }

    /// Whether a node is not the manager, and the only one of its cluster that anything befalls.
    fn is_alone(&self, side: Side, node: usize) -> bool {
        let spares_the_others = |fault: &Fault| match fault.what {
            What::Damage(of, number, _) => of != side || number == node,
            What::Cut | What::Flush(_) | What::PauseFollowing => true,
            _ => false,
        };
        node != 0 && self.scenario.faults.iter().all(spares_the_others)
    }

    /// Whether the only copy of a shard was damaged, and is refused by name.
    pub(super) async fn is_refused(&self) -> bool {
        if !self.at_rest.is_lost.get() {
            return false;
        }
        for site in &self.sites {
            let Some(manager) = site.node(0) else { continue };
            let health = direct(&manager, "GET", "/_cluster/health", Value::Null).await.1;
            let path = "/_cluster/allocation/explain";
            let explained = direct(&manager, "GET", path, Value::Null).await.1;
            if health["status"] == "red" && names_damage(&explained) {
                return true;
            }
        }
        false
    }
}
