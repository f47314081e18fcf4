//! Runs in which a whole cluster is killed, and one of its nodes is cut off as it comes back: a primary that was opened
//! from its disk is lost about the moment when it counts as started, and another copy takes its place.

use crate::scenario::{Case, Chance, Fault, Scenario, Side, What};

/// How long clients go on after the restart: until a node that is cut off is given up, and its place is taken.
const LOAD_AFTER_MS: u64 = 25_000;

impl Scenario {
    /// One of a pair of faults, with these in their place.
    pub fn restarting(case: &Case) -> Scenario {
        let mut chance = Chance::new(case.seed ^ 0x4E5_7A4);
        // An odd one is about the nodes, of which there are two at least.
        let mut scenario = Scenario::pair(&Case { seed: case.seed | 1, ..case.clone() });
        scenario.seed = case.seed;
        let (side, nodes, replicas) = match chance.percent(75) {
            true => (Side::Leader, scenario.leaders, &mut scenario.leader_replicas),
            false => (Side::Follower, scenario.followers, &mut scenario.follower_replicas),
        };
        *replicas = (*replicas).max(1);
        let at_ms = chance.between(scenario.load_ms / 2, scenario.load_ms);
        let down_ms = chance.magnitude(5, 2_000);
        let back_ms = at_ms + down_ms;
        scenario.load_ms = back_ms + LOAD_AFTER_MS;
        for writer in &mut scenario.writers {
            writer.pause_ms = writer.pause_ms.clamp(100, 400);
        }
        // The manager stays: it is to give the other one up.
        let node = chance.between(1, nodes as u64 - 1) as usize;
        let cut_off = Fault {
            at_ms: back_ms + chance.magnitude(1, 1_000),
            lasts_ms: chance.magnitude(1_000, 60_000),
            what: What::CutOff(side, node),
        };
        let kill = Fault { at_ms, lasts_ms: down_ms, what: What::KillAll(side) };
        scenario.faults = vec![kill, cut_off];
        scenario
    }
}
