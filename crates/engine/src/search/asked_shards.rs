//! The shards that a search asks, and the copies of each in the order in which they are asked.

use query::SortValue;
use record::names::matches;

use super::preference::{Preference, Rule, sticky_turn};
use crate::state::ClusterState;
use crate::transport::{Failure, ShardFailure};
use policy::selection::Choice;

/// A shard that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskedShard {
    pub(super) index: String,
    pub(super) shard: u32,
    /// Nodes of its started copies that may be asked, by name.
    pub(super) nodes: Vec<String>,
}

/// The view of a shard that is held on a node.
#[derive(Clone)]
pub(super) struct ViewOfShard {
    pub(super) asked: AskedShard,
    pub(super) node: String,
    pub(super) context: u64,
    /// Where a scroll goes on with it, behind the last of its hits on a page; none where that has none of it.
    pub(super) after: Option<Vec<SortValue>>,
}

/// The shards of `indices` (sorted names), in the order of their names and numbers. `local` is the node that asks.
pub(super) fn asked_shards(
    state: &ClusterState,
    indices: &[String],
    preference: &Preference,
    local: &str,
) -> Vec<AskedShard> {
    let mut asked_shards = Vec::new();
    for index in indices {
        let Some(shards) = state.routing.get(index) else { continue };
        let only = state.indices.get(index).and_then(|meta| preference.shards_of(meta));
        for (shard, routing) in (0..).zip(shards.iter()) {
            if only.as_ref().is_some_and(|only| !only.contains(&shard)) {
                continue;
            }
            let started = routing.copies.iter().filter(|copy| copy.is_started());
            let copies = started.filter_map(|copy| copy.node.as_deref());
            let allowed = copies.filter(|service| preference.rule.allows(service, local));
            let mut nodes: Vec<String> = allowed.map(str::to_owned).collect();
            nodes.sort_unstable();
            asked_shards.push(AskedShard { index: index.clone(), shard, nodes });
        }
    }
    asked_shards
}

fn named(patterns: &[String], service: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, service))
}

impl Rule {
    /// Whether a node may be asked at all.
    fn allows(&self, node: &str, local: &str) -> bool {
        match self {
            Rule::OnlyLocal => node == local,
            Rule::OnlyNodes(patterns) => named(patterns, node),
            _ => true,
        }
    }
}

/// A node that may be asked where none of those before could answer: a copy was moved meanwhile. As in the field, the
/// target of a move is asked last, which may be started sooner than this node knows.
pub(super) fn moved_to(
    state: &ClusterState,
    asked: &AskedShard,
    rule: &Rule,
    local: &str,
    tried: &[String],
) -> Option<String> {
    let routing = state.shard(&asked.index, asked.shard)?;
    let is_new = |node: &&str| rule.allows(node, local) && tried.iter().all(|one| one != node);
    let has_docs = routing.assigned().filter(|copy| copy.is_started() || copy.is_target());
    has_docs.filter_map(|copy| copy.node.as_deref()).find(is_new).map(str::to_owned)
}

impl AskedShard {
    /// Why nothing was found of it, and the node that was asked last.
    pub(super) fn failed(&self, node: Option<&str>, failure: Failure) -> ShardFailure {
        let (index, shard) = (self.index.clone(), self.shard);
        ShardFailure { index, shard, node: node.map(str::to_owned), failure }
    }

    /// Its nodes in the order in which they are asked: `choose` decides, where the rule leaves anything to decide.
    pub(super) fn order(
        &self,
        rule: &Rule,
        local: &str,
        choose: impl FnOnce(&[&str]) -> Choice,
    ) -> Choice {
        let nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        if let (Rule::Sticky(text), false) = (rule, nodes.is_empty()) {
            let first = (sticky_turn(text, self.shard) % nodes.len() as u64) as usize;
            return Choice::Ask((0..nodes.len()).map(|at| (first + at) % nodes.len()).collect());
        }
        let mut places = match choose(&nodes) {
            Choice::Ask(places) => places,
            later => return later,
        };
        // The sort is stable, so that among the preferred and among the others the policy's order stays.
        places.sort_by_key(|place| match rule {
            Rule::Local => nodes[*place] != local,
            Rule::PreferNodes(patterns) => !named(patterns, nodes[*place]),
            _ => false,
        });
        Choice::Ask(places)
    }
}

#[cfg(test)]
mod tests {
    use world::Time;

    use super::*;
    use policy::selection::{Policy, Question, Selector};

    fn ordered(preference: &str, selector: &mut Selector) -> Vec<&'static str> {
        const NODES: [&str; 3] = ["a", "b", "c"];
        let rule = Preference::parse(preference).unwrap().rule;
        let nodes = NODES.map(str::to_owned).to_vec();
        let asked = AskedShard { index: "i".to_owned(), shard: 3, nodes };
        let choice = asked.order(&rule, "b", |copies| {
            let question = Question { index: "i", shard: 3, copies, random: 0 };
            selector.choose(Policy::Rotation, Time(0), question)
        });
        match choice {
            Choice::Ask(places) => places.into_iter().map(|place| NODES[place]).collect(),
            Choice::WaitUntil(_) => panic!("rotation does not wait"),
        }
    }

    #[test]
    fn preferences_order() {
        let mut selector = Selector::default();
        assert_eq!(ordered("", &mut selector), ["b", "c", "a"]);
        assert_eq!(ordered("", &mut selector), ["c", "a", "b"]);
        assert_eq!(ordered("_local", &mut selector), ["b", "a", "c"]);
        assert_eq!(ordered("_prefer_nodes:c", &mut selector)[0], "c");
        let sticky = ordered("session", &mut selector);
        assert!((0..5).all(|_| ordered("session", &mut selector) == sticky));
        let firsts: std::collections::BTreeSet<&str> =
            (0..30).map(|n| ordered(&format!("s{n}"), &mut selector)[0]).collect();
        assert_eq!(firsts.len(), 3, "texts spread over the copies");
    }
}
