//! How full the disks of nodes are, and what the copies on them take: what each tells the manager, which decides by it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::core::Core;
use crate::settings::SHARDS_MAX;
use crate::state::{ClusterInfo, ClusterState, DiskUsage};
use crate::transport::{CopyBytes, DiskLook, Request, Response};

/// Where the size of a disk stands in the virtual world.
const PATH: &str = "/.size";
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// How large a disk of the virtual world is; nothing is known of it until somebody says so.
#[derive(Clone, Copy, Default)]
struct VirtualSize {
    total_bytes: u64,
    /// What is on it besides copies.
    others_bytes: u64,
}

/// Says how large this host's disk is and how much of it is free now. In the real world it does nothing.
pub(super) fn set_size(core: &Core, (total_bytes, free_bytes): (u64, u64)) {
    let Some(disk) = core.env.virtual_disk() else { return };
    let others_bytes = total_bytes.saturating_sub(free_bytes).saturating_sub(here(&copies(core)));
    *disk.get::<VirtualSize>(PATH).borrow_mut() = VirtualSize { total_bytes, others_bytes };
}

/// How full this node's disk is, and what its copies take.
pub(super) fn look(core: &Core) -> DiskLook {
    let copies = copies(core);
    let disk = match core.env.virtual_disk() {
        None => machine::disk_bytes(&core.config.data),
        Some(disk) if disk.contains(PATH) => {
            let VirtualSize { total_bytes, others_bytes } = *disk.get::<VirtualSize>(PATH).borrow();
            let used_bytes = others_bytes.saturating_add(here(&copies));
            Some((total_bytes, total_bytes.saturating_sub(used_bytes)))
        }
        Some(_) => None,
    };
    DiskLook { disk, copies }
}

fn here(copies: &[CopyBytes]) -> u64 {
    copies.iter().map(|copy| copy.here_bytes).sum()
}

fn copies(core: &Core) -> Vec<CopyBytes> {
    let shards = core.shards.borrow();
    let copy = |shard: &Rc<crate::shard::LocalShard>| {
        let (here_bytes, missing_bytes) = match shard.store() {
            Ok(store) => (store.stats().store_bytes, 0),
            Err(_) => shard.progress().map_or((0, 0), |progress| progress.room()),
        };
        CopyBytes { index: shard.index.clone(), shard: shard.number, here_bytes, missing_bytes }
    };
    shards.values().map(copy).collect()
}

/// Asks every present node of a state; one that does not answer is not known.
pub(super) async fn look_at_all(core: &Rc<Core>, state: &ClusterState) -> ClusterInfo {
    let others = state.present_nodes().filter(|other| other.name != core.name());
    let (names, addresses): (Vec<&str>, Vec<String>) =
        others.map(|other| (other.name.as_str(), other.transport_address.clone())).unzip();
    let looks = core.pool.call_each(&addresses, &Request::DiskLook, LOOK_TIMEOUT).await;
    let answers = names.into_iter().zip(looks);
    let answered = answers.filter_map(|(name, answer)| match answer {
        Ok(Response::DiskLook(look)) => Some((name, *look)),
        _ => None,
    });
    together(std::iter::once((core.name(), look(core))).chain(answered))
}

/// What nodes say, in one.
pub(super) fn together<'a>(looks: impl Iterator<Item = (&'a str, DiskLook)>) -> ClusterInfo {
    let mut info = ClusterInfo::default();
    for (name, DiskLook { disk, copies }) in looks {
        let being_made = copies.iter().filter(|copy| copy.missing_bytes > 0);
        if let Some((total_bytes, free_bytes)) = disk {
            let missing = being_made.clone().map(|copy| copy.missing_bytes);
            let missing = missing.fold(0, u64::saturating_add);
            let reserved = being_made.map(|copy| (copy.index.clone(), copy.shard)).collect();
            let free_bytes = free_bytes.saturating_sub(missing);
            let usage = DiskUsage { total_bytes, free_bytes, reserved };
            info.disks.insert(name.to_owned(), usage);
        }
        for CopyBytes { index, shard, here_bytes, missing_bytes } in copies {
            let bytes = here_bytes.saturating_add(missing_bytes);
            add_size(&mut info.shard_bytes, index, (shard, bytes));
        }
    }
    info
}

/// The number comes from another node: one that no shard can have takes no memory.
fn add_size(by_index: &mut BTreeMap<String, Vec<u64>>, index: String, (shard, bytes): (u32, u64)) {
    if u64::from(shard) >= SHARDS_MAX {
        return;
    }
    let at = shard as usize;
    let shards = by_index.entry(index).or_default();
    if shards.len() <= at {
        shards.resize(at + 1, 0);
    }
    shards[at] = shards[at].max(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(shard: u32, here_bytes: u64, missing_bytes: u64) -> CopyBytes {
        CopyBytes { index: "a".to_owned(), shard, here_bytes, missing_bytes }
    }

    #[test]
    fn what_is_still_to_come_is_no_room() {
        let full = DiskLook { disk: Some((100, 50)), copies: vec![copy(1, 20, 10), copy(0, 5, 0)] };
        let unknown = DiskLook { disk: None, copies: vec![copy(1, 30, 0)] };
        let info = together([("n1", full), ("n2", unknown)].into_iter());
        let disk = &info.disks["n1"];
        assert_eq!((disk.free_bytes, disk.reserved.len(), info.disks.len()), (40, 1, 1));
        assert_eq!([0, 1, 2].map(|shard| info.bytes_of("a", shard)), [5, 30, 0]);
    }

    #[test]
    fn what_no_copy_can_be_takes_no_memory() {
        let all = u64::MAX;
        let copies = vec![copy(0, 5, all), copy(1, all, all), copy(u32::MAX, 1, 0)];
        let info = together([("n1", DiskLook { disk: Some((100, 50)), copies })].into_iter());
        assert_eq!(info.shard_bytes["a"], [all, all]);
        assert_eq!(info.disks["n1"].free_bytes, 0);
    }
}
