//! What went through each node lately, as a line of blocks.

use std::collections::{BTreeMap, VecDeque};

use insight::diagnosis::NodePace;
use insight::stats::mean;

/// Looks that a line goes back: two minutes at one a second.
const LOOKS_MAX: usize = 120;
/// A whole block is never less than this: nodes that only greet each other would look as busy as they ever are.
const WHOLE_MIN_BYTES_PER_S: f64 = 1e6;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Bytes a second that transport received and sent, look by look, the latest last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trails {
    nodes: BTreeMap<String, VecDeque<Option<f64>>>,
}

impl Trails {
    /// Adds a look. What a node does not tell is unknown; one that is gone is forgotten with the last of its looks.
    pub fn take(&mut self, nodes: &[NodePace]) {
        for node in nodes {
            self.nodes.entry(node.name.clone()).or_default();
        }
        let by_name: BTreeMap<&str, &NodePace> =
            nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        for (name, rates) in &mut self.nodes {
            let node = by_name.get(name.as_str()).filter(|node| !node.gone);
            let both = node.map(|node| [node.rx_bytes_per_s, node.tx_bytes_per_s]);
            rates.push_back(both.into_iter().flatten().flatten().reduce(|a, b| a + b));
            if rates.len() > LOOKS_MAX {
                rates.pop_front();
            }
        }
        self.nodes.retain(|name, rates| {
            by_name.contains_key(name.as_str()) || rates.iter().flatten().any(|rate| *rate > 0.0)
        });
    }

    /// The most that any node moved in a second.
    pub(super) fn most(&self) -> f64 {
        self.nodes.values().flatten().flatten().copied().fold(0.0, f64::max)
    }

    /// The last looks at a node in so many blocks at most, a whole one where it moved `most`, unless that is hardly
    /// anything; empty of a node that nobody looked at twice.
    pub(super) fn of(&self, node: &str, most: f64, width: usize) -> String {
        self.nodes.get(node).map_or_else(String::new, |rates| blocks(rates, most, width))
    }

    /// The same of all nodes together.
    pub(super) fn of_all(&self, width: usize) -> String {
        let longest = self.nodes.values().map(VecDeque::len).max().unwrap_or(0);
        let ago = |ago: usize| -> Option<f64> {
            let rates = self.nodes.values().filter_map(|rates| *rates.iter().rev().nth(ago)?);
            rates.reduce(|a, b| a + b)
        };
        let sums: VecDeque<Option<f64>> = (0..longest).rev().map(ago).collect();
        blocks(&sums, sums.iter().flatten().copied().fold(0.0, f64::max), width)
    }
}

/// A block for each mean of some looks, and a space where none of them was told.
fn blocks(rates: &VecDeque<Option<f64>>, most: f64, width: usize) -> String {
    if rates.len() < 2 || most <= 0.0 {
        return String::new();
    }
    let most = most.max(WHOLE_MIN_BYTES_PER_S);
    let each = rates.len().div_ceil(width.max(1)).max(1);
    let rates: Vec<Option<f64>> = rates.iter().copied().collect();
    let block = |some: &[Option<f64>]| {
        let known: Vec<f64> = some.iter().flatten().copied().collect();
        mean(&known)
            .map_or(' ', |rate| BLOCKS[((rate / most * 8.0).ceil() as usize).clamp(1, 8) - 1])
    };
    // From the end, so that a part of the line that is full stays as it is.
    let parts: Vec<char> = rates.rchunks(each).map(block).collect();
    parts.into_iter().rev().collect::<String>().trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, rx_mb_per_s: f64) -> NodePace {
        let rx_bytes_per_s = Some(rx_mb_per_s * 1e6);
        NodePace { name: name.into(), rx_bytes_per_s, ..NodePace::default() }
    }

    #[test]
    fn nodes_are_drawn_against_the_one_that_moved_most() {
        let mut trails = Trails::default();
        trails.take(&[node("a", 0.0), node("b", 80.0)]);
        assert_eq!(trails.of("a", trails.most(), 24), "", "one look is no line");
        trails.take(&[node("a", 40.0), node("b", 10.0)]);
        let of = |name: &str| trails.of(name, trails.most(), 24);
        assert_eq!((of("a"), of("b")), ("▁▄".into(), "█▁".into()));
        assert_eq!(trails.of_all(24), "█▅");
        assert_eq!(of("c"), "");
    }

    /// The trap: a cluster at rest whose nodes tell each other that they are there, drawn as a full line.
    #[test]
    fn nodes_at_rest_are_drawn_as_such() {
        let mut trails = Trails::default();
        trails.take(&[node("a", 0.001)]);
        trails.take(&[node("a", 0.002)]);
        assert_eq!(
            (trails.of("a", trails.most(), 24), trails.of_all(24)),
            ("▁▁".into(), "▁▁".into())
        );
    }

    #[test]
    fn what_was_not_told_is_not_drawn_as_nothing() {
        let mut trails = Trails::default();
        let silent = || NodePace { name: "a".into(), ..NodePace::default() };
        for look in [silent(), node("a", 0.0), node("a", 8.0), silent(), node("a", 8.0)] {
            trails.take(&[look]);
        }
        assert_eq!(trails.of("a", trails.most(), 24), "▁█ █");
        assert_eq!(trails.of_all(24), "▁█ █");
    }

    #[test]
    fn a_long_time_fits_and_a_node_that_left_is_forgotten_in_the_end() {
        let mut trails = Trails::default();
        trails.take(&[node("a", 1.0), node("b", 1.0)]);
        for _ in 0..LOOKS_MAX {
            trails.take(&[node("a", 1.0)]);
        }
        let of = |name: &str, width| trails.of(name, trails.most(), width);
        assert_eq!(of("a", 24).chars().count(), 24);
        assert_eq!(of("b", 24), "");
        assert_eq!(of("a", 50).chars().count(), 40, "three looks each");
    }
}
