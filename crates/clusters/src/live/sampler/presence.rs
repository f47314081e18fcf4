//! Which nodes are there, and which are missed. A pure state machine.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::Node;
use world::Time;

/// A node that has been away for longer is missed no more. Whoever watches a cluster for weeks whose nodes are
/// replaced by others of other names would be told of all that ever were.
const MISSED_FOR: Duration = Duration::from_secs(3600);

/// Nodes by name, as they answered.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// When each answered last.
    answered: BTreeMap<String, Time>,
    /// How many did the last time.
    present: u64,
    gone: Vec<String>,
}

impl Presence {
    /// Takes in who answered, and how many others are there and did not; nothing where nobody was asked.
    pub(super) fn take(&mut self, nodes: &[Node], silent: u64, now: Time) {
        if nodes.is_empty() {
            return;
        }
        self.answered.extend(nodes.iter().map(|node| (node.name.clone(), now)));
        self.answered.retain(|_, last| now - *last <= MISSED_FOR);
        let missing = self.answered.iter().filter(|(_, last)| **last < now);
        self.gone = missing.map(|(name, _)| name.clone()).collect();
        self.present = silent.saturating_add((self.answered.len() - self.gone.len()) as u64);
        // Which of them are silent, and which have left, nobody says.
        if self.gone.len() as u64 <= silent {
            self.gone.clear();
        }
    }

    /// How many answered the last time.
    pub(super) fn present(&self) -> u64 {
        self.present
    }

    /// Those that answered before and did not the last time.
    pub(super) fn gone(&self) -> &[String] {
        &self.gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_left_is_missed_for_an_hour() {
        let nodes = |names: &[&str]| -> Vec<Node> {
            let node = |name: &&str| Node { name: (*name).to_owned(), ..Node::default() };
            names.iter().map(node).collect()
        };
        let at = |s: u64| Time::default() + Duration::from_secs(s);
        let mut presence = Presence::default();
        presence.take(&nodes(&["a", "b"]), 0, at(0));
        presence.take(&nodes(&["a"]), 1, at(3));
        assert_eq!((presence.present(), presence.gone().len()), (2, 0), "it is silent");
        presence.take(&nodes(&["a"]), 0, at(5));
        presence.take(&[], 0, at(9));
        assert_eq!((presence.present(), presence.gone()), (1, &["b".to_owned()][..]));
        presence.take(&nodes(&["a"]), 0, at(3600));
        assert_eq!(presence.gone(), ["b"]);
        presence.take(&nodes(&["a"]), 0, at(3605));
        assert!(presence.gone().is_empty());
        presence.take(&nodes(&["a", "b"]), 0, at(3610));
        assert_eq!((presence.present(), presence.gone().len()), (2, 0));
        presence.take(&nodes(&["a"]), u64::MAX, at(3613));
        assert_eq!(presence.present(), u64::MAX, "no count is too large");
    }
}
