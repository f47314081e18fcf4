//! Copies that are kept from full disks.
//!
//! The `DiskThresholdDecider` of Elasticsearch and OpenSearch. Above the low watermark a node is given no copy, but a
//! new primary, which is empty; and none that would bring it above the high one. Above the high one a started copy may
//! not stay, as long as what is being moved away already does not suffice. A copy takes what its primary has, or
//! nothing where the node has its files. A primary that comes up from the disk is not asked: it is nowhere else.
//!
//! A node of which nothing is known is not judged; the field takes the average of the others for it.

use std::collections::BTreeMap;

use record::units::show_bytes;

use super::{ClusterState, CopyState, RecoverySource, ShardCopy};
use crate::settings::{Settings, Watermark, Watermarks};

#[derive(Clone, Copy, Debug)]
struct Room {
    total_bytes: u64,
    /// Without what is on its way there.
    free_bytes: u64,
    /// Of copies that are being moved away.
    leaving_bytes: u64,
}

/// The disks that are looked at; none where that is not asked for.
#[derive(Debug)]
pub(super) struct DiskThreshold {
    marks: Watermarks,
    by_node: BTreeMap<String, Room>,
}

impl DiskThreshold {
    pub fn of(state: &ClusterState, settings: &Settings) -> Self {
        let marks = settings.disk_watermarks();
        let mut disks = DiskThreshold { marks, by_node: BTreeMap::new() };
        if !settings.disk_threshold_enabled() || state.info.disks.is_empty() {
            return disks;
        }
        let present = state.info.disks.iter().filter(|(name, _)| state.present.contains(*name));
        let room = |(name, disk): (&String, &super::DiskUsage)| {
            let (total_bytes, free_bytes) = (disk.total_bytes, disk.free_bytes);
            (name.clone(), Room { total_bytes, free_bytes, leaving_bytes: 0 })
        };
        disks.by_node = present.map(room).collect();
        for (index, number, shard) in state.shards() {
            for copy in shard.assigned() {
                let Some(node) = copy.node.as_deref() else { continue };
                if copy.is_relocating() {
                    disks.leave(node, state.info.bytes_of(index, number));
                } else if is_made_from_peer(copy) && !is_reserved(state, node, (index, number)) {
                    disks.take(node, state.info.bytes_of(index, number));
                }
            }
        }
        disks
    }

    /// Whether a copy may be on any disk.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// Whether every copy may stay where it is.
    pub fn all_may_stay(&self) -> bool {
        self.by_node.values().all(|room| self.is_below_high(room))
    }

    fn is_below_high(&self, room: &Room) -> bool {
        let free_bytes = room.free_bytes.saturating_add(room.leaving_bytes);
        free_bytes >= self.marks.high.free_bytes(room.total_bytes)
    }

    /// A copy is on its way to a node.
    pub fn take(&mut self, node: &str, bytes: u64) {
        if let Some(room) = self.by_node.get_mut(node) {
            room.free_bytes = room.free_bytes.saturating_sub(bytes);
        }
    }

    /// A copy is being moved away from a node.
    pub fn leave(&mut self, node: &str, bytes: u64) {
        if let Some(room) = self.by_node.get_mut(node) {
            room.leaving_bytes = room.leaving_bytes.saturating_add(bytes);
        }
    }

    /// What keeps a copy from a node, whether it is there or would go there.
    pub fn against(
        &self,
        state: &ClusterState,
        (index, number): (&str, u32),
        copy: &ShardCopy,
        node: &str,
    ) -> Option<Full> {
        let room = self.by_node.get(node)?;
        let full = |setting, mark: Watermark, free_bytes, copy_bytes| Full {
            setting,
            mark,
            total_bytes: room.total_bytes,
            free_bytes,
            copy_bytes,
        };
        let Watermarks { low, high } = self.marks;
        if copy.is_on(node) {
            let free_bytes = room.free_bytes.saturating_add(room.leaving_bytes);
            return (!self.is_below_high(room)).then(|| full("high", high, free_bytes, None));
        }
        let shard = state.shard(index, number)?;
        let was_started = shard.was_started();
        if copy.primary && !copy.is_started() && was_started {
            return None;
        }
        if was_started && room.free_bytes < low.free_bytes(room.total_bytes) {
            return Some(full("low", low, room.free_bytes, None));
        }
        let has_files = state.on_disk(node, index, number).is_some();
        let copy_bytes = if has_files { 0 } else { state.info.bytes_of(index, number) };
        let left_bytes = room.free_bytes.saturating_sub(copy_bytes);
        (left_bytes < high.free_bytes(room.total_bytes))
            .then(|| full("high", high, room.free_bytes, Some(copy_bytes)))
    }
}

fn is_made_from_peer(copy: &ShardCopy) -> bool {
    matches!(&copy.state, CopyState::Initializing { recovery: RecoverySource::Peer { .. } })
}

/// Whether what a copy needs was counted when the disk was looked at.
fn is_reserved(state: &ClusterState, node: &str, (index, number): (&str, u32)) -> bool {
    let reserved = state.info.disks.get(node).map(|disk| &disk.reserved);
    reserved.is_some_and(|all| all.contains(&(index.to_owned(), number)))
}

/// A disk that is too full for a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Full {
    setting: &'static str,
    mark: Watermark,
    total_bytes: u64,
    free_bytes: u64,
    /// What it would take, where it would go there.
    copy_bytes: Option<u64>,
}

impl Full {
    pub fn words(&self) -> String {
        let Full { setting, mark, total_bytes, free_bytes, copy_bytes } = self;
        let [free, total] = [*free_bytes, *total_bytes].map(show_bytes);
        let percent = *free_bytes as f64 / (*total_bytes).max(1) as f64 * 100.0;
        let with = copy_bytes.filter(|bytes| *bytes > 0).map_or_else(String::new, |bytes| {
            format!(" before the {} of this copy", show_bytes(bytes))
        });
        format!(
            "its disk of {total} has {free} ({percent:.1} %) free{with}, and \
             cluster.routing.allocation.disk.watermark.{setting} is [{mark}]"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{ClusterInfo, DiskUsage, Event, explain, explain_placed};

    const ENABLED: &str = "cluster.routing.allocation.disk.threshold_enabled";
    const LOW: &str = "cluster.routing.allocation.disk.watermark.low";
    const HIGH: &str = "cluster.routing.allocation.disk.watermark.high";

    impl Lab {
        /// Disks of 1000 bytes with so many free, and copies of so many.
        fn sees(&mut self, free: &[(&str, u64)], copy_bytes: u64) {
            let disk = |(node, free_bytes): &(&str, u64)| {
                let reserved = Default::default();
                let disk = DiskUsage { total_bytes: 1000, free_bytes: *free_bytes, reserved };
                ((*node).to_owned(), disk)
            };
            let shards = self.state.indices.iter().map(|(index, meta)| (index, meta.shards));
            let sizes = |(index, shards): (&String, u32)| {
                (index.clone(), vec![copy_bytes; shards as usize])
            };
            let info = ClusterInfo {
                disks: free.iter().map(disk).collect(),
                shard_bytes: shards.map(sizes).collect(),
            };
            self.apply(Event::DisksSeen(Box::new(info))).unwrap();
        }
    }

    fn why(lab: &Lab) -> Vec<(String, &'static str, String)> {
        let explained = explain(&lab.state, lab.now_ms);
        let nodes = explained.into_iter().flat_map(|one| one.nodes);
        let of = |node: super::super::NodeExplanation| {
            let reason = node.reason?;
            Some((node.node_name, reason.decider, reason.words))
        };
        nodes.filter_map(of).filter(|(_, decider, _)| *decider == "disk_threshold").collect()
    }

    #[test]
    fn above_the_low_watermark_a_node_is_given_new_primaries_alone() {
        let mut lab = Lab::new(2);
        lab.set(ENABLED, "true");
        lab.sees(&[("n1", 900), ("n2", 149)], 0);
        lab.create("a", 4, 1);
        lab.start_all();
        assert_eq!((lab.on("n1"), lab.on("n2")), (4, 2), "two empty primaries are on each");
        let why = why(&lab);
        assert_eq!(why.len(), 2, "the replicas of those on n1: {why:?}");
        assert_eq!((why[0].0.as_str(), why[0].1), ("n2", "disk_threshold"));
        let words = "its disk of 1.00 kB has 149 B (14.9 %) free, and \
                     cluster.routing.allocation.disk.watermark.low is [85%]";
        assert_eq!(why[0].2, words);
        lab.sees(&[("n1", 900), ("n2", 150)], 0);
        lab.start_all();
        assert_eq!((lab.on("n1"), lab.on("n2")), (4, 4));
    }

    #[test]
    fn no_copy_goes_where_it_would_bring_the_disk_above_the_high_watermark() {
        let mut lab = Lab::new(2);
        lab.set("cluster.routing.allocation.exclude._name", "n2");
        lab.create("a", 3, 0);
        lab.start_all();
        lab.set("cluster.routing.allocation.exclude._name", "");
        lab.set(ENABLED, "true");
        lab.set("cluster.routing.allocation.node_concurrent_recoveries", "9");
        lab.sees(&[("n1", 500), ("n2", 240)], 60);
        lab.replicas("a", 1);
        assert_eq!(lab.on("n2"), 2, "for a third 120 are left, which is above the low watermark");
        assert!(why(&lab)[0].2.contains("watermark.low"), "{:?}", why(&lab));
        lab.set(LOW, "88%");
        assert_eq!(lab.on("n2"), 2, "and with a third 60 would be left");
        assert!(why(&lab)[0].2.contains("before the 60 B of this copy"), "{:?}", why(&lab));
    }

    #[test]
    fn copies_leave_a_disk_above_the_high_watermark_until_enough_are_on_their_way() {
        let mut lab = Lab::started(3, (6, 0));
        lab.sees(&[("n1", 60), ("n2", 700), ("n3", 110)], 50);
        assert!(lab.initializing().is_empty(), "nobody asked for it");
        lab.set(ENABLED, "true");
        assert_eq!(lab.initializing().len(), 1, "60 and the 50 of one copy are enough");
        let moved = lab.state.copies_on("n2").find(|(_, _, copy)| copy.is_target()).unwrap();
        assert_eq!(moved.2.relocating_from.as_deref(), Some("n1"), "n3 would be above it");
        let (index, number, stays) =
            lab.state.copies_on("n1").find(|c| !c.2.is_relocating()).unwrap();
        let explained = explain_placed(&lab.state, (index, number), stays).unwrap();
        assert_eq!(explained.against_staying, None);
        lab.sees(&[("n1", 10), ("n2", 700), ("n3", 110)], 50);
        assert_eq!(lab.initializing().len(), 2);
        lab.set(HIGH, "100%");
        lab.start_all();
        assert_eq!((lab.on("n1"), lab.on("n2"), lab.on("n3")), (0, 4, 2));
    }

    #[test]
    fn of_a_disk_that_is_not_known_nothing_is_decided() {
        let mut lab = Lab::new(2);
        lab.set(ENABLED, "true");
        lab.sees(&[("n1", 0)], 50);
        lab.create("a", 1, 0);
        lab.start_all();
        assert_eq!((lab.on("n1"), lab.on("n2")), (0, 1));
        lab.replicas("a", 1);
        assert_eq!(why(&lab).len(), 1);
        lab.set(ENABLED, "false");
        assert_eq!(lab.initializing().len(), 1);
    }

    #[test]
    fn a_low_watermark_above_the_high_one_is_refused() {
        let mut lab = Lab::new(1);
        let put = |lab: &mut Lab, pairs: &[(&str, &str)]| {
            let persistent = super::super::manager::lab::update(pairs);
            let transient = Default::default();
            lab.apply(Event::PutClusterSettings { persistent, transient })
        };
        for pairs in [&[(LOW, "95%")][..], &[(HIGH, "20gb")], &[(LOW, "1gb"), (HIGH, "2gb")]] {
            let refused = put(&mut lab, pairs).unwrap_err().to_string();
            assert!(refused.contains(LOW), "{refused}");
        }
        put(&mut lab, &[(LOW, "2gb"), (HIGH, "1gb")]).unwrap();
    }
}
