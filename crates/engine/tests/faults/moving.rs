//! Runs in which copies are moved, beside what goes wrong in the others.

use engine::state::ClusterState;
use serde_json::{Value, json};

use crate::scenario::{Case, Chance, Fault, Scenario, Shape, Side, What};

impl Scenario {
    /// A wide run or one of a pair of faults, with moves: most of them about the faults, whose moment is as often
    /// within a move as before or behind it.
    pub fn moving(case: &Case) -> Scenario {
        let mut chance = Chance::new(case.seed ^ 0x4D0_7E5);
        let shape = if chance.percent(30) { Shape::Wide } else { Shape::Pair };
        // An odd one is about the nodes, of which there are two at least.
        let seed = case.seed | 1;
        let mut scenario = Scenario::of(&Case { shape, seed, faults: None, ..case.clone() });
        scenario.seed = case.seed;
        // What is moved goes to a node that has no copy of its shard.
        let spare =
            |nodes: usize, replicas: u32| replicas.min(nodes as u32 - 2 + u32::from(nodes < 2));
        scenario.leader_replicas = spare(scenario.leaders, scenario.leader_replicas);
        scenario.follower_replicas = spare(scenario.followers, scenario.follower_replicas);
        let moments: Vec<u64> = scenario.faults.iter().map(|fault| fault.at_ms).collect();
        let load_ms = scenario.load_ms;
        let mut faults = Vec::new();
        for _ in 0..chance.between(3, 14) {
            let side = if chance.percent(65) { Side::Leader } else { Side::Follower };
            let at_ms = match moments.is_empty() || chance.percent(35) {
                true => chance.between(0, load_ms),
                false => {
                    let around = chance.one_of(&moments);
                    (around + chance.magnitude(1, 800)).saturating_sub(chance.magnitude(1, 1_500))
                }
            };
            // Some are given up while they go on.
            let lasts_ms = if chance.percent(15) { chance.magnitude(1, 500) } else { 60_000 };
            let nodes = if side == Side::Leader { scenario.leaders } else { scenario.followers };
            let what = match chance.percent(12) {
                true => What::Drain(side, chance.between(0, nodes as u64 - 1) as usize),
                false => What::Move(side, chance.next()),
            };
            faults.push(Fault { at_ms, lasts_ms, what });
        }
        scenario.faults.extend(faults);
        scenario
    }
}

/// A command of `_cluster/reroute` that moves a copy to a node that has none of its shard: index, shard, to where, and
/// whether it is the primary. None where no copy can be moved.
pub struct Chosen {
    pub index: String,
    pub shard: u32,
    pub to_node: String,
    pub is_primary: bool,
    pub body: Value,
}

pub fn choose(state: &ClusterState, drawn: u64) -> Option<Chosen> {
    let mut chance = Chance::new(drawn);
    let mut all = Vec::new();
    for (index, shard, routing) in state.shards() {
        for copy in routing.copies.iter().filter(|copy| copy.is_started() && !copy.is_relocating())
        {
            for node in state.present.iter().filter(|node| routing.on_node(node).is_none()) {
                all.push((index, shard, copy, node));
                // A primary hands over, so that more can go wrong.
                if copy.primary {
                    all.push((index, shard, copy, node));
                }
            }
        }
    }
    if all.is_empty() {
        return None;
    }
    let (index, shard, copy, to_node) = chance.one_of(&all);
    let from_node = copy.node.as_deref()?;
    let body = json!({ "commands": [{ "move": {
        "index": index, "shard": shard, "from_node": from_node, "to_node": to_node,
    } }] });
    let (index, to_node) = (index.to_owned(), to_node.clone());
    Some(Chosen { index, shard, to_node, is_primary: copy.primary, body })
}
