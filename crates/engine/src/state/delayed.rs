//! Which copies wait for their node to come back.
//!
//! As Elasticsearch's delayed allocation (`UnassignedInfo`, `ReplicaShardAllocator`): a replica whose node left is not
//! placed elsewhere before `index.unassigned.node_left.delayed_timeout` is over, unless a node comes that has files of
//! the shard.

use super::{ClusterState, CopyState, IndexShardRoutingTable, ShardCopy, UnassignedReason};

/// Until when a copy of a shard, which has this routing, waits; none where it does not.
pub(super) fn delayed_until_ms(
    state: &ClusterState,
    (index, number): (&str, u32),
    shard: &IndexShardRoutingTable,
    copy: &ShardCopy,
) -> Option<u64> {
    let delay = state.indices.get(index)?.delayed_timeout();
    let CopyState::Unassigned { reason: UnassignedReason::NodeLeft, at_ms } = copy.state else {
        return None;
    };
    if delay.is_zero() || copy.primary {
        return None;
    }
    let holders = state.holders(index, number).into_iter().flatten();
    let mut others =
        holders.filter(|(node, _)| state.present.contains(*node) && shard.on_node(node).is_none());
    let until = at_ms.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    others.next().is_none().then_some(until)
}

/// When the first of the copies that wait now need wait no longer; none where none waits.
pub fn delay_ends_ms(state: &ClusterState, now_ms: u64) -> Option<u64> {
    waiting(state, now_ms).min()
}

/// How many copies wait for their nodes: `delayed_unassigned_shards`.
pub fn delayed_copies(state: &ClusterState, now_ms: u64) -> usize {
    waiting(state, now_ms).count()
}

fn waiting(state: &ClusterState, now_ms: u64) -> impl Iterator<Item = u64> {
    let lacking = state.counted.lacking(&state.routing).into_iter();
    let shards = lacking.filter_map(|index| state.routing.get_key_value(&index)).flat_map(
        |(index, shards)| {
            (0..).zip(shards.iter()).map(move |(number, shard)| (index.as_str(), number, shard))
        },
    );
    let copies = shards.flat_map(|(index, number, shard)| {
        let unassigned = shard.copies.iter().filter(|copy| !copy.is_assigned());
        unassigned.map(move |copy| ((index, number), shard, copy))
    });
    copies
        .filter_map(move |(place, shard, copy)| delayed_until_ms(state, place, shard, copy))
        .filter(move |until_ms| *until_ms > now_ms)
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::super::{Event, explain};
    use super::*;

    const DELAY: &str = "index.unassigned.node_left.delayed_timeout";

    fn lab() -> Lab {
        let mut lab = Lab::started(3, (3, 1));
        lab.set_index("a", DELAY, "1m");
        lab
    }

    #[test]
    fn replicas_wait_and_go_elsewhere_when_the_delay_is_over() {
        let mut lab = lab();
        lab.leave("n3");
        assert_eq!(lab.initializing(), [], "primaries were replaced, and replicas wait");
        let waits = delayed_copies(&lab.state, lab.now_ms);
        assert_eq!(waits, 2, "n3 had two of six copies");
        let explained = explain(&lab.state, lab.now_ms).remove(0);
        let delay = explained.delay.unwrap();
        assert_eq!(explained.can_allocate, "allocation_delayed");
        assert_eq!((delay.configured_ms, delay.left_ms), (60_000, 60_000));
        let why = explained.reason.unwrap();
        assert_eq!(why.decider, "delayed_allocation");
        assert!(why.words.contains("another 60 s"), "{}", why.words);
        let ends_ms = delay_ends_ms(&lab.state, lab.now_ms).unwrap();
        lab.now_ms = ends_ms - 2;
        lab.apply(Event::DelayEnded).unwrap();
        assert_eq!(lab.initializing(), [], "a moment too early");
        lab.apply(Event::DelayEnded).unwrap();
        assert_eq!(lab.initializing().len(), 2);
        assert_eq!(delay_ends_ms(&lab.state, lab.now_ms), None);
    }

    #[test]
    fn a_node_that_comes_back_takes_its_copies_at_once() {
        let mut lab = lab();
        lab.leave("n3");
        lab.join("n3");
        assert_eq!(lab.initializing().len(), 2);
        assert_eq!(delayed_copies(&lab.state, lab.now_ms), 0);
    }
}
