//! The copy whose node has the fewest requests of this coordinator in flight ("least outstanding requests", LOR). The
//! policy knows nothing of other coordinators.

use super::NodeTable;

/// Sorts the copies by the requests in flight to their nodes; ties stay in their `rotated` order.
pub(super) fn order(copies: &[&str], mut rotated: Vec<usize>, nodes: &NodeTable) -> Vec<usize> {
    rotated.sort_by_key(|place| nodes.outstanding(copies[*place]));
    rotated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_first_and_ties_in_turn() {
        let mut nodes = NodeTable::default();
        for node in ["a", "a", "b"] {
            nodes.sent(world::Time(0), node);
        }
        assert_eq!(order(&["a", "b", "c"], vec![0, 1, 2], &nodes), [2, 1, 0]);
        nodes.sent(world::Time(0), "c");
        assert_eq!(order(&["a", "b", "c"], vec![2, 0, 1], &nodes), [2, 1, 0]);
        assert_eq!(order(&["a", "b", "c"], vec![1, 2, 0], &nodes), [1, 2, 0]);
    }
}
