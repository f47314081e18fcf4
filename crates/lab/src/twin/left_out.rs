//! What of a cluster's copies is not in its twin, a sentence each.

use std::collections::BTreeSet;

use record::inventory::{Inventory, InventoryCopy, InventoryNode};
use record::units::counted;

use crate::plan::DELAY;

/// `index.recovery.file_based_threshold` where nobody set it.
const FILE_BASED_THRESHOLD: f64 = 0.1;

/// Copies that are not as the twin has them, and nodes of which it is not known whether they take copies.
pub(super) fn of_copies(
    seen: &Inventory,
    nodes: &[&InventoryNode],
    holders: &BTreeSet<&str>,
    left_out: &mut Vec<String>,
) {
    let lagging = seen.copies.iter().filter(|copy| replays_too_much(copy)).count();
    if lagging > 0 {
        let copies = counted(lagging, "copy whose", "copies whose");
        left_out.push(format!(
            "{copies} retention leases lag by more than a tenth of the documents: where their node is away when \
             primaries renew leases, as every 30 s, they come back by files and not by operations; half a minute after \
             the last write none lags"
        ));
    }
    let under_way = |copy: &&InventoryCopy| !copy.primary && copy.state == "INITIALIZING";
    let begin_anew = seen.copies.iter().filter(under_way).count();
    if begin_anew > 0 {
        let copies = counted(begin_anew, "copy that is", "copies that are");
        left_out.push(format!(
            "what there is of {copies} under way: they are taken to begin anew, on nodes that the twin chooses, so that \
             bytes and times are upper bounds"
        ));
    }
    let moving = seen.copies.iter().filter(|copy| copy.state == "RELOCATING").count();
    if moving > 0 {
        let copies = counted(moving, "copy that is", "copies that are");
        left_out.push(format!(
            "what has come of {copies} being moved: they are taken to be where they come from, and are moved again \
             where the twin would move them"
        ));
    }
    let has_primary: BTreeSet<(&str, u32)> = seen
        .copies
        .iter()
        .filter(|copy| copy.primary && matches!(copy.state.as_str(), "STARTED" | "RELOCATING"))
        .map(|copy| (copy.index.as_str(), copy.shard))
        .collect();
    let waits = |copy: &&InventoryCopy| {
        copy.state == "UNASSIGNED" && has_primary.contains(&(copy.index.as_str(), copy.shard))
    };
    let waiting = seen.copies.iter().filter(waits).count();
    if waiting > 0 {
        let copies = counted(waiting, "copy has", "copies have");
        left_out.push(format!(
            "why {copies} no node now: in the twin they are placed at once where they may be, though the cluster may \
             wait for their node ({DELAY}) or have given them up (_cluster/reroute?retry_failed)"
        ));
    }
    let takes_copies =
        |node: &&&InventoryNode| node.holds_data.is_none() && !holders.contains(node.name.as_str());
    let untold = nodes.iter().filter(takes_copies).count();
    if untold > 0 {
        let nodes = counted(untold, "node", "nodes");
        left_out.push(format!("the roles of {nodes}, which are not known: they take copies"));
    }
}

/// Whether the field rather copies a copy whole than by operations after its node was away. While a copy is missing,
/// its primary drops a lease that keeps more than `index.recovery.file_based_threshold` of the documents. It does so
/// where it renews the leases of the copies that are there, every `index.soft_deletes.retention_lease.sync_interval`
/// (`ReplicationTracker.getRetentionLeases`, `renewPeerRecoveryRetentionLeases`; elasticsearch pull request 45208).
fn replays_too_much(copy: &InventoryCopy) -> bool {
    let lag = copy.lease_lag.zip(copy.documents);
    lag.is_some_and(|(lag, documents)| {
        lag as f64 > (documents as f64 * FILE_BASED_THRESHOLD).ceil()
    })
}
