//! Where the nodes of a remote cluster are reached: at the settings' seeds, and where the cluster itself says.

use std::collections::{BTreeMap, BTreeSet};

/// The most nodes that are taken from what a cluster says: each costs a task where all are asked.
const NODES_MAX: usize = 1000;

/// What is known of where the nodes of a remote cluster are.
#[derive(Debug, Default)]
pub(super) struct Sniffed {
    /// The seeds of the settings.
    seeds: Vec<String>,
    /// Each seed that was asked which node it leads to, with the address that this node gives for itself: another one
    /// where a link or a proxy is in between. None where nobody answered.
    behind: BTreeMap<String, Option<String>>,
    /// UUID of the cluster that the seeds lead to.
    cluster: Option<String>,
    /// Transport addresses of the nodes, as one of them said last.
    nodes: BTreeSet<String>,
}

impl Sniffed {
    /// Nothing but the seeds.
    pub(super) fn of(seeds: &[String]) -> Self {
        Sniffed { seeds: seeds.to_vec(), ..Sniffed::default() }
    }

    /// Whether this was learned through these seeds. Others may lead to another cluster.
    pub(super) fn is_of(&self, seeds: &[String]) -> bool {
        self.seeds == seeds
    }

    /// Notes which node a seed leads to; a seed that is silent now keeps the node that it led to before.
    pub(super) fn note_seed(&mut self, seed: &str, node: Option<String>) {
        if self.seeds.iter().any(|known| known == seed) {
            let behind = self.behind.entry(seed.to_owned()).or_default();
            *behind = node.or(behind.take());
        }
    }

    /// Notes where the nodes are, as the one at `address` says; whether that counts. It does not where the address
    /// belongs to a node of another cluster by now, unless it is a seed.
    pub(super) fn note_nodes(&mut self, address: &str, cluster: &str, nodes: &[String]) -> bool {
        let is_seed = self.seeds.iter().any(|seed| seed == address);
        if !is_seed && self.cluster.as_deref() != Some(cluster) {
            self.nodes.remove(address);
            return false;
        }
        self.cluster = Some(cluster.to_owned());
        self.nodes = nodes.iter().take(NODES_MAX).cloned().collect();
        true
    }

    /// Seeds at which nobody has answered yet.
    pub(super) fn silent(&self) -> Vec<String> {
        let silent = self.behind.iter().filter(|(_, node)| node.is_none());
        silent.map(|(seed, _)| seed.clone()).collect()
    }

    /// Whether a node is known that no seed leads to.
    pub(super) fn knows_more_than_seeds(&self) -> bool {
        self.beyond_seeds().next().is_some()
    }

    /// Where the nodes are, as one of them said last.
    pub(super) fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }

    /// The seeds, and after them the nodes that no seed leads to.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.seeds.iter().chain(self.beyond_seeds()).cloned().collect()
    }

    /// The nodes that no seed leads to. A node that is also reached through a seed would be asked twice, and the other
    /// way may go round the link that the seed leads through. So there are none before every seed was asked; and where
    /// a seed is silent, only if others answered and all of those are the addresses of the nodes themselves.
    fn beyond_seeds(&self) -> impl Iterator<Item = &String> {
        let answered =
            || self.behind.iter().filter_map(|(seed, node)| Some((seed, node.as_ref()?)));
        let is_direct = answered().count() > 0 && answered().all(|(seed, node)| seed == node);
        let all_asked = self.seeds.iter().all(|seed| self.behind.contains_key(seed))
            && (self.silent().is_empty() || is_direct);
        let is_behind =
            move |node: &String| self.behind.values().any(|found| found.as_ref() == Some(node));
        let beyond = move |node: &&String| !self.seeds.contains(node) && !is_behind(node);
        self.nodes.iter().filter(move |node| all_asked && beyond(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn seeds_come_first_and_then_nodes_that_none_of_them_leads_to() {
        let mut known = Sniffed::of(&texts(&["link.a:1", "b:1"]));
        assert!(known.note_nodes("b:1", "uuid", &texts(&["a:1", "b:1", "c:1", "c:1"])));
        assert_eq!(known.addresses(), ["link.a:1", "b:1"], "who is behind them is not known yet");
        known.note_seed("link.a:1", Some("a:1".to_owned()));
        known.note_seed("b:1", None);
        assert_eq!(known.silent(), ["b:1"]);
        assert_eq!(
            known.addresses(),
            ["link.a:1", "b:1"],
            "the silent one may be behind a link, too"
        );
        known.note_seed("b:1", Some("b:1".to_owned()));
        assert_eq!(known.addresses(), ["link.a:1", "b:1", "c:1"]);
        // The node behind the first seed comes back at another address, the third has left.
        known.note_nodes("b:1", "uuid", &texts(&["a:2", "b:1"]));
        assert_eq!(known.addresses(), ["link.a:1", "b:1", "a:2"]);
        // Silence later does not make it unknown.
        known.note_seed("link.a:1", None);
        known.note_nodes("b:1", "uuid", &texts(&["a:1", "b:1"]));
        assert!(!known.knows_more_than_seeds(), "{known:?}");
        known.note_seed("of another time:1", None);
        assert_eq!(known.silent(), [""; 0]);
        assert!(!known.is_of(&texts(&["b:1"])));
    }

    #[test]
    fn a_silent_seed_hides_nothing_where_seeds_are_the_nodes_themselves() {
        let mut known = Sniffed::of(&texts(&["a:1", "b:1"]));
        known.note_nodes("a:1", "uuid", &texts(&["a:1", "c:1"]));
        known.note_seed("a:1", Some("a:1".to_owned()));
        known.note_seed("b:1", None);
        assert_eq!(known.addresses(), ["a:1", "b:1", "c:1"]);
        let mut silent = Sniffed::of(&texts(&["a:1"]));
        silent.note_nodes("a:1", "uuid", &texts(&["x:1"]));
        silent.note_seed("a:1", None);
        assert_eq!(silent.addresses(), ["a:1"], "it may be anything that stands in between");
    }

    #[test]
    fn a_node_of_another_cluster_is_not_heeded_unless_a_seed_leads_there() {
        let mut known = Sniffed::of(&texts(&["a:1"]));
        known.note_seed("a:1", Some("a:1".to_owned()));
        known.note_nodes("a:1", "uuid", &texts(&["a:1", "b:1", "c:1"]));
        assert!(!known.note_nodes("b:1", "another", &texts(&["b:1", "d:1"])));
        assert_eq!(known.addresses(), ["a:1", "c:1"]);
        assert!(known.note_nodes("c:1", "uuid", &texts(&["a:1", "c:1", "e:1"])));
        assert!(known.note_nodes("a:1", "another", &texts(&["a:1", "d:1"])), "it was made anew");
        assert_eq!(known.addresses(), ["a:1", "d:1"]);
    }
}
