//! The copies of each shard in the order in which they are asked.

use record::names::matches;

use super::preference::{Preference, Rule, sticky_turn};
use crate::policy::selection::{Policy, Selector};
use crate::state::ClusterState;

/// A shard that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) index: String,
    pub(super) shard: u32,
    /// Nodes of its started copies; the first is asked.
    pub(super) nodes: Vec<String>,
}

/// The shards of `indices` (sorted names), in the order of their names and numbers. `local` is the node that asks.
pub(super) fn targets(
    state: &ClusterState,
    indices: &[String],
    preference: &Preference,
    local: &str,
    selector: &mut Selector,
    (policy, mut random): (Policy, impl FnMut() -> u64),
) -> Vec<Target> {
    let mut targets = Vec::new();
    for index in indices {
        let Some(shards) = state.routing.get(index) else { continue };
        for (shard, routing) in (0..).zip(shards.iter()) {
            if preference.shards.as_ref().is_some_and(|only| !only.contains(&shard)) {
                continue;
            }
            let started = routing.copies.iter().filter(|copy| copy.is_started());
            let mut copies: Vec<&str> = started.filter_map(|copy| copy.node.as_deref()).collect();
            copies.sort_unstable();
            let random = random();
            let nodes = order(&copies, shard, &preference.rule, local, selector, (policy, random));
            targets.push(Target { index: index.clone(), shard, nodes });
        }
    }
    targets
}

fn order(
    copies: &[&str],
    shard: u32,
    rule: &Rule,
    local: &str,
    selector: &mut Selector,
    (policy, random): (Policy, u64),
) -> Vec<String> {
    let named = |patterns: &[String], node: &str| patterns.iter().any(|p| matches(p, node));
    let allowed: Vec<&str> = copies
        .iter()
        .copied()
        .filter(|node| match rule {
            Rule::OnlyLocal => *node == local,
            Rule::OnlyNodes(patterns) => named(patterns, node),
            _ => true,
        })
        .collect();
    if let (Rule::Sticky(text), false) = (rule, allowed.is_empty()) {
        let first = (sticky_turn(text, shard) % allowed.len() as u64) as usize;
        let (after, before) = (allowed[first..].iter(), allowed[..first].iter());
        return after.chain(before).map(|node| (*node).to_owned()).collect();
    }
    let mut chosen: Vec<&str> =
        selector.order(policy, &allowed, random).into_iter().map(|place| allowed[place]).collect();
    // The sort is stable, so that among the preferred and among the others the policy's order stays.
    chosen.sort_by_key(|node| match rule {
        Rule::Local => *node != local,
        Rule::PreferNodes(patterns) => !named(patterns, node),
        _ => false,
    });
    chosen.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(preference: &str, selector: &mut Selector) -> Vec<String> {
        let rule = Preference::parse(preference).unwrap().rule;
        order(&["a", "b", "c"], 3, &rule, "b", selector, (Policy::Rotation, 0))
    }

    #[test]
    fn preferences_order_and_restrict() {
        let mut selector = Selector::default();
        assert_eq!(ordered("", &mut selector), ["b", "c", "a"]);
        assert_eq!(ordered("", &mut selector), ["c", "a", "b"]);
        assert_eq!(ordered("_local", &mut selector), ["b", "a", "c"]);
        assert_eq!(ordered("_only_local", &mut selector), ["b"]);
        assert_eq!(ordered("_prefer_nodes:c", &mut selector)[0], "c");
        assert_eq!(ordered("_only_nodes:x", &mut selector), Vec::<String>::new());
        let sticky = ordered("session", &mut selector);
        assert!((0..5).all(|_| ordered("session", &mut selector) == sticky));
        let firsts: std::collections::BTreeSet<String> =
            (0..30).map(|n| ordered(&format!("s{n}"), &mut selector)[0].clone()).collect();
        assert_eq!(firsts.len(), 3, "texts spread over the copies");
    }
}
