//! When nodes are restarted at random, and which. Pure: now in, what is due out.

use std::time::Duration;

use clusters::FaultKind;
use world::Time;

use crate::corpus::Random;
use crate::plan::{Fault, RandomRestarts};

/// The family of random numbers of restarts.
const FAMILY: u64 = 0x72_6573_7461_7274;

pub(super) struct Restarts {
    cluster: String,
    nodes: u32,
    all: bool,
    kind: Option<FaultKind>,
    every: Duration,
    /// How long a node or the cluster is down.
    pub(super) pause: Duration,
    chance: Random,
    /// When the next event is due: nodes go down, or those that are down start.
    pub(super) due: Time,
    down: Option<Fault>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Due {
    /// Nodes go down.
    Ends(Fault),
    /// They start again.
    Starts(Fault),
}

impl Restarts {
    /// Restarts of a cluster of so many nodes from now on; `number` tells them from others of the same seed.
    pub(super) fn new(
        rule: &RandomRestarts,
        nodes: u32,
        is_virtual: bool,
        (seed, number): (u64, u64),
        now: Time,
    ) -> Restarts {
        let mut restarts = Restarts {
            cluster: rule.cluster.clone(),
            nodes,
            all: rule.all,
            kind: rule.kind,
            every: rule.every.of(is_virtual),
            pause: rule.pause.of(is_virtual),
            chance: Random::new(seed, FAMILY, number),
            due: now,
            down: None,
        };
        restarts.due = now + restarts.wait();
        restarts
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    pub(super) fn next(&mut self, now: Time) -> Option<Due> {
        if now < self.due {
            return None;
        }
        if let Some(fault) = self.down.take() {
            self.due = now + self.wait();
            return Some(Due::Starts(fault));
        }
        let fault = self.draw();
        self.down = Some(fault.clone());
        self.due = now + self.pause;
        Some(Due::Ends(fault))
    }

    /// Ends the restarts; answers with what is down now.
    pub(super) fn stop(self) -> Option<Fault> {
        self.down
    }

    fn wait(&mut self) -> Duration {
        self.every.mul_f64(0.5 + self.chance.unit())
    }

    /// One of the nodes or, as likely as each, the whole cluster; killed or in order, where the rule says neither.
    fn draw(&mut self) -> Fault {
        let number = self.chance.below(self.nodes + 1);
        let node = match self.all || number == self.nodes {
            true => self.cluster.clone(),
            false => format!("{}-{number}", self.cluster),
        };
        let drawn = if self.chance.in_1000(500) { FaultKind::Kill } else { FaultKind::Stop };
        let kind = self.kind.unwrap_or(drawn);
        Fault { node, kind, at: Duration::ZERO, lasts: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::ByWorld;

    #[test]
    fn every_node_and_the_cluster_are_down_for_the_pause_and_never_two_at_once() {
        let lasts = |real: u64, full: u64| ByWorld {
            real: Duration::from_secs(real),
            full: Duration::from_secs(full),
        };
        let rule = RandomRestarts {
            cluster: "follower".to_owned(),
            all: false,
            kind: None,
            every: lasts(20, 7200),
            pause: lasts(3, 300),
        };
        let seed = 7;
        let mut restarts = Restarts::new(&rule, 3, true, (seed, 0), Time::default());
        let (mut drawn, mut up_since, mut down) = (BTreeSet::new(), Time::default(), None);
        for _ in 0..400 {
            let now = restarts.due;
            assert_eq!(restarts.next(up_since), None, "nothing is due before its time");
            match (restarts.next(now).unwrap(), down.take()) {
                (Due::Ends(fault), None) => {
                    let up = (now - up_since).as_secs();
                    assert!((3600..10_800).contains(&up), "seed {seed}: up for {up} s");
                    drawn.insert((fault.node.clone(), fault.kind == FaultKind::Kill));
                    assert!(restarts.is_down());
                    down = Some((fault, now));
                }
                (Due::Starts(fault), Some((ended, since))) => {
                    assert_eq!((fault, now - since), (ended, Duration::from_secs(300)));
                    up_since = now;
                }
                (due, down) => panic!("seed {seed}: {due:?} with {down:?}"),
            }
        }
        assert_eq!(drawn.len(), 8, "seed {seed}: three nodes and all, either way: {drawn:?}");
        assert_eq!(restarts.stop(), None);
        let rule = RandomRestarts { all: true, kind: Some(FaultKind::Kill), ..rule };
        let mut restarts = Restarts::new(&rule, 3, false, (seed, 1), Time::default());
        for _ in 0..20 {
            let due = restarts.next(restarts.due).unwrap();
            let (Due::Ends(fault) | Due::Starts(fault)) = due;
            assert_eq!((fault.node.as_str(), fault.kind), ("follower", FaultKind::Kill));
        }
    }
}
