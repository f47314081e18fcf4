//! The order in which the allocator of a cluster goes through its nodes.

use record::inventory::InventoryNode;

use crate::plan::Twin;

/// Nodes in such an order that our allocator, which goes by names of virtual time, goes through those which hold as
/// many copies as the cluster's own does: OpenSearch's as they stand in a `HashMap` by their ids
/// (`LocalShardsBalancer.buildModelFromAssigned`), ours by their names. A rank is told how many nodes there are.
pub(super) fn as_the_allocator_has_them<'n, R: Ord>(
    mut nodes: Vec<&'n InventoryNode>,
    rank: impl Fn(&'n InventoryNode, usize) -> R,
) -> Vec<&'n InventoryNode> {
    let count = nodes.len();
    nodes.sort_by_key(|&node| rank(node, count));
    let mut by_name: Vec<usize> = (0..count).collect();
    by_name.sort_by_key(|at| Twin::machine(*at));
    let mut ordered: Vec<_> = by_name.into_iter().zip(nodes).collect();
    ordered.sort_by_key(|(at, _)| *at);
    ordered.into_iter().map(|(_, node)| node).collect()
}

/// Where a key stands in a `HashMap` of Java with so many. The table doubles where it is three quarters full.
pub(super) fn bucket(key: &str, count: usize) -> u32 {
    let hash = java_hash(key);
    let buckets = (count * 4).div_ceil(3).next_power_of_two().max(16);
    (hash ^ (hash >> 16)) & (u32::try_from(buckets).unwrap_or(1 << 31) - 1)
}

/// `String.hashCode` of Java.
fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_gone_through_as_the_allocator_does() {
        assert_eq!(java_hash("hello"), 99_162_322);
        // The upper half of a hash counts, too: it moves "AaBB" from bucket 0 to bucket 15.
        let ids = ["AaBB", "1", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let node = |id: &str| InventoryNode { id: id.to_owned(), ..InventoryNode::default() };
        let nodes = ids.map(node);
        let by_name = |ordered: Vec<&InventoryNode>| -> Vec<String> {
            let ordered = ordered.into_iter().enumerate();
            let mut ordered: Vec<(String, String)> =
                ordered.map(|(at, node)| (Twin::machine(at), node.id.clone())).collect();
            ordered.sort();
            ordered.into_iter().map(|(_, id)| id).collect()
        };
        let field = as_the_allocator_has_them(nodes.iter().collect(), |node, count| {
            bucket(&node.id, count)
        });
        assert_eq!(field[1].id, "d", "leader-10 and leader-11 come before leader-2");
        let ids = ["1", "b", "c", "d", "e", "f", "g", "h", "i", "j", "AaBB"];
        assert_eq!(by_name(field), ids);
    }
}
