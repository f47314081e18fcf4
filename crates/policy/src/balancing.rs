//! When a copy is moved so that no node holds more than its share.
//!
//! Elasticsearch's `BalancedShardsAllocator` (its `WeightFunction` and `balanceByWeights`): a node's weight for an
//! index is how many copies more than the average it holds, of all indices and of that index, each times its factor.
//! The heaviest node gives to the lightest while their weights differ by more than a threshold; where none of its
//! copies may go there, the next lightest is tried, then the next heaviest.

/// A copy that moves takes one from the heavy node's weight and adds one to the light node's: from a difference of this
/// or less it would only swap the two, for ever.
const SWAPS: f64 = 1.0;

/// The factors: `cluster.routing.allocation.balance.*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Of the copies of all indices.
    pub shard: f64,
    /// Of the copies of the index.
    pub index: f64,
    /// The difference of weights that is left alone.
    pub threshold: f64,
}

/// Copies on a node, or as many as a node has on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Of all indices.
    pub copies: f64,
    /// Of the index in question.
    pub of_index: f64,
}

impl Balance {
    /// By how much a node holds more than its share; negative where it holds less.
    pub fn weight(&self, node: Load, average: Load) -> f64 {
        let sum = self.shard + self.index;
        if sum <= 0.0 {
            return 0.0;
        }
        let copies = self.shard / sum * (node.copies - average.copies);
        copies + self.index / sum * (node.of_index - average.of_index)
    }

    /// The pairs of nodes, by their places in `weights`, between which a copy of the index may be moved, heavy and
    /// light: the order in which they are tried. Equals stand in the order in which they came.
    pub fn pairs(&self, weights: &[f64]) -> Vec<(usize, usize)> {
        // Rounding must not move copies for ever.
        let least = self.threshold.max(SWAPS) + 1e-9;
        let mut by_weight: Vec<usize> = (0..weights.len()).collect();
        by_weight.sort_by(|a, b| weights[*a].total_cmp(&weights[*b]));
        let mut pairs = Vec::new();
        for heavy in by_weight.iter().rev() {
            for light in &by_weight {
                if weights[*heavy] - weights[*light] <= least {
                    break;
                }
                pairs.push((*heavy, *light));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Balance = Balance { shard: 0.45, index: 0.55, threshold: 1.0 };

    fn load(copies: f64, of_index: f64) -> Load {
        Load { copies, of_index }
    }

    #[test]
    fn both_factors_count() {
        let average = load(10.0, 2.0);
        assert_eq!(DEFAULT.weight(average, average), 0.0);
        assert!((DEFAULT.weight(load(12.0, 2.0), average) - 0.9).abs() < 1e-12);
        assert!((DEFAULT.weight(load(10.0, 4.0), average) - 1.1).abs() < 1e-12);
        let off = Balance { shard: 0.0, index: 0.0, threshold: 1.0 };
        assert_eq!(off.weight(load(90.0, 4.0), average), 0.0);
    }

    #[test]
    fn the_heaviest_gives_to_the_lightest_first_and_what_is_near_is_left_alone() {
        assert_eq!(DEFAULT.pairs(&[0.0, 3.0, -1.0, 0.5]), [(1, 2), (1, 0), (1, 3), (3, 2)]);
        assert_eq!(DEFAULT.pairs(&[0.0, 1.0, 0.5]), []);
        assert_eq!(DEFAULT.pairs(&[]), []);
    }

    /// Whatever the threshold: a copy more on one of two nodes is as good a balance as one more on the other.
    #[test]
    fn no_copy_goes_back_and_forth() {
        for threshold in [0.0, 0.5, 1.0] {
            let balance = Balance { threshold, ..DEFAULT };
            let average = load(2.5, 2.5);
            let weights = [3.0, 2.0].map(|copies| balance.weight(load(copies, copies), average));
            assert_eq!(balance.pairs(&weights), [], "{threshold}");
            assert_eq!(balance.pairs(&[2.0, -0.5]), [(0, 1)], "{threshold}");
        }
    }
}
