//! A twin: a cluster that was seen somewhere, as a plan can have it in virtual time, and what is asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::state::PlacedIndex;
use engine::{DiskSize, Placement, ShardContents};
use record::units::parse_duration;

use super::topology::LEADER;

/// The cluster, node by node and copy by copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    /// Nodes that hold data.
    pub nodes: Vec<TwinNode>,
    /// Indices.
    pub indices: Vec<TwinIndex>,
    /// What happens to it.
    pub question: Question,
    /// Parameters of the virtual world that are not known better than within bounds.
    pub uncertain: Vec<Uncertain>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TwinNode {
    /// The name that it has in the cluster that was seen.
    pub name: String,
    /// Its id there, where that is known and another one.
    pub id: Option<String>,
    /// Its zone or rack, where it has one.
    pub zone: Option<String>,
    /// The attributes by which it is told from others.
    pub attributes: BTreeMap<String, String>,
    /// Bytes of its disk, and those of them that are free, where that is known.
    pub disk: Option<(u64, u64)>,
}

impl TwinNode {
    /// The places of those nodes that a text means: of the one with that name, or else of all with that id, in that
    /// zone, or with that attribute, as `ATTRIBUTE=VALUE`.
    pub(crate) fn called(nodes: &[TwinNode], text: &str) -> Vec<usize> {
        match nodes.iter().position(|node| node.name == text) {
            Some(at) => vec![at],
            None => (0..nodes.len()).filter(|at| nodes[*at].is_of(text)).collect(),
        }
    }

    fn is_of(&self, text: &str) -> bool {
        let is_pair = |(name, value): (&String, &String)| {
            let rest = text.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('='));
            rest == Some(value.as_str())
        };
        let is_text = |own: &Option<String>| own.as_deref() == Some(text);
        is_text(&self.id) || is_text(&self.zone) || self.attributes.iter().any(is_pair)
    }
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TwinIndex {
    /// Name.
    pub name: String,
    /// Copies of each shard besides the primary.
    pub replicas: u32,
    /// Its settings, but for the numbers of shards and replicas.
    pub settings: BTreeMap<String, String>,
    /// Documents that are written to it in a second while nodes restart.
    pub documents_per_s: f64,
    /// Numbers of the shards that have no primary already: what is in virtual time are the others.
    pub lost: BTreeSet<u32>,
    /// The others, in the order of their numbers.
    pub shards: Vec<TwinShard>,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwinShard {
    /// What every copy holds.
    pub contents: ShardContents,
    /// The nodes of its copies by their place in [`Twin::nodes`], that of the primary first.
    pub nodes: Vec<usize>,
}

impl TwinIndex {
    /// A shard by its place, with the number that it has in the cluster that was seen, as `logs[3]`.
    fn name_of(&self, place: usize) -> String {
        let mut number = place;
        for lost in &self.lost {
            number += usize::from(*lost as usize <= number);
        }
        format!("{}[{number}]", self.name)
    }
}

/// What happens to a twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nodes die at once and do not come back.
    Lose(Vec<usize>),
    /// Nodes restart one after another; the next one when the cluster is green again.
    Restart {
        /// In this order.
        nodes: Vec<usize>,
        /// How long each is away.
        down: Duration,
        /// Whether what is written is flushed before each.
        flush: bool,
    },
    /// Nodes are excluded from the allocation of copies, and are to hold nothing in the end.
    Drain(Vec<usize>),
    /// Nodes that are empty join: the last ones of [`Twin::nodes`].
    Add(Vec<usize>),
    /// Indices have other numbers of replicas from now on.
    Replicas(BTreeMap<String, u32>),
}

/// A parameter of the virtual world that is not known better than within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain {
    /// Its name.
    pub parameter: String,
    /// The least that it may be.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Uncertain {
    /// What stands for the time in seconds that each node is away which restarts: it is no parameter of that world.
    pub const DOWN: &str = "down";
}

/// The node that manages a twin's cluster. It holds no data, so that any other can be lost.
pub const MANAGER: &str = "leader-0";
/// What a record calls it, in which all other nodes have the names of the cluster that was seen.
const RECORDED_MANAGER: &str = "manager of the twin";
/// How long copies wait for a node that was lost.
pub(crate) const DELAY: &str = "index.unassigned.node_left.delayed_timeout";
/// The attribute that has a node's zone or rack in virtual time, whatever it is called in the cluster that was seen.
pub const ZONE: &str = "zone";

pub(crate) fn shards_in_words(count: usize) -> String {
    match count {
        1 => "1 shard".to_owned(),
        _ => format!("{count} shards"),
    }
}

/// How many shards these are and which is the first, or the only one.
pub(crate) fn shards_and_first(names: &[String]) -> String {
    let count = shards_in_words(names.len());
    match names {
        [] => count,
        [one] => format!("{count} ({one})"),
        [first, ..] => format!("{count} ({first} is the first)"),
    }
}

impl Twin {
    /// The name of a node in virtual time.
    pub fn machine(node: usize) -> String {
        format!("{LEADER}-{}", node + 1)
    }

    /// The attributes of the nodes in virtual time, that of the manager first, which has none.
    pub fn attributes(&self) -> Vec<BTreeMap<String, String>> {
        let of = |node: &TwinNode| {
            let zone = node.zone.iter().map(|zone| (ZONE.to_owned(), zone.clone()));
            zone.collect::<BTreeMap<_, _>>()
        };
        std::iter::once(BTreeMap::new()).chain(self.nodes.iter().map(of)).collect()
    }

    /// How large the disks of the nodes in virtual time are, as far as that is known.
    pub fn disks(&self) -> Vec<DiskSize> {
        let of = |(at, node): (usize, &TwinNode)| {
            let (total_bytes, free_bytes) = node.disk?;
            Some(DiskSize { node: Twin::machine(at), total_bytes, free_bytes })
        };
        self.nodes.iter().enumerate().filter_map(of).collect()
    }

    /// What a node of virtual time stands for.
    pub fn stands_for(&self, machine: &str) -> Option<&str> {
        let number = machine.strip_prefix(LEADER)?.strip_prefix('-')?.parse::<usize>().ok()?;
        Some(self.nodes.get(number.checked_sub(1)?)?.name.as_str())
    }

    /// What a record calls a node of virtual time: as the node is called that it stands for.
    pub(crate) fn recorded_name(&self, machine: &str) -> &str {
        self.stands_for(machine).unwrap_or(RECORDED_MANAGER)
    }

    /// Words of the cluster in virtual time with the names that nodes have in the cluster that was seen, without what
    /// they say of the [`MANAGER`], which is no node of it.
    pub(crate) fn in_its_names(&self, words: &str) -> String {
        let of_the_manager = format!("[{MANAGER}]: ");
        let words = match words.split_once(&of_the_manager) {
            Some((before, after)) => {
                let others = after.split_once("; ").map_or("", |(_, others)| others);
                let before = if others.is_empty() { before.trim_end_matches("; ") } else { before };
                format!("{before}{others}")
            }
            None => words.to_owned(),
        };
        // From behind, as a number never becomes a smaller one.
        let shards = self.indices.iter().filter(|index| !index.lost.is_empty()).flat_map(|index| {
            (0..index.shards.len()).rev().map(move |place| {
                (format!("of {}[{place}]", index.name), format!("of {}", index.name_of(place)))
            })
        });
        let words = shards.fold(words, |words, (from, to)| words.replace(&from, &to));
        // Each once: a node of the cluster may be called as another one is in virtual time.
        let (mut told, mut rest) = (String::new(), words.as_str());
        while let Some((before, after)) = rest.split_once('[') {
            told.push_str(before);
            told.push('[');
            let machine = after.split(']').next().unwrap_or_default();
            let name = self.stands_for(machine);
            told.push_str(name.unwrap_or_default());
            rest = if name.is_some() { &after[machine.len()..] } else { after };
        }
        told.push_str(rest);
        told
    }

    /// A setting's value with the names that nodes have in virtual time: filters name nodes.
    pub(crate) fn translated(&self, setting: &str, value: &str) -> String {
        if !setting.ends_with("._name") {
            return value.to_owned();
        }
        let one = |name: &str| {
            let found = self.nodes.iter().position(|node| node.name == name.trim());
            found.map_or_else(|| name.trim().to_owned(), Twin::machine)
        };
        value.split(',').map(one).collect::<Vec<_>>().join(",")
    }

    /// How its indices are put in place, with further settings of all of them.
    pub fn placements(&self, settings: &BTreeMap<&str, &str>) -> Vec<Placement> {
        let place = |index: &TwinIndex| {
            let own = index.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let all: BTreeMap<&str, &str> =
                own.chain(settings.iter().map(|(name, value)| (*name, *value))).collect();
            let placed = PlacedIndex {
                index: index.name.clone(),
                replicas: index.replicas,
                settings: all
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), Some(self.translated(name, value))))
                    .collect(),
                nodes: index
                    .shards
                    .iter()
                    .map(|shard| shard.nodes.iter().copied().map(Twin::machine).collect())
                    .collect(),
            };
            let contents = index.shards.iter().map(|shard| shard.contents).collect();
            Placement { placed, contents }
        };
        self.indices.iter().map(place).collect()
    }

    /// Copies and bytes that are to be copied because of the question, where everything has to be copied whole; of a
    /// shard that is lost none. What goes to nodes that join is estimated: as many copies as they hold once all hold as
    /// many as each other, and of each as much as all hold on average.
    pub fn outstanding(&self) -> (u64, u64) {
        if let Question::Add(added) = &self.question {
            let (copies, bytes) = self.copies(|_, shard| shard.nodes.len());
            let moved = copies * added.len() as u64 / self.nodes.len() as u64;
            return (moved, bytes / copies.max(1) * moved);
        }
        self.copies(|index, shard| {
            let wanted = match &self.question {
                Question::Replicas(wanted) => wanted.get(&index.name).copied(),
                _ => None,
            };
            let copies = wanted.unwrap_or(index.replicas) as usize + 1;
            let lost = match &self.question {
                Question::Lose(gone) | Question::Drain(gone) => {
                    shard.nodes.iter().filter(|node| gone.contains(node)).count()
                }
                _ => 0,
            };
            match &self.question {
                Question::Lose(_) if lost == shard.nodes.len() => 0,
                _ => (copies + lost).saturating_sub(shard.nodes.len()),
            }
        })
    }

    /// Whether copies are missing as it is, whatever is asked.
    pub(crate) fn lacks_copies(&self) -> bool {
        let missing = |index: &TwinIndex, shard: &TwinShard| {
            (index.replicas as usize + 1).saturating_sub(shard.nodes.len())
        };
        self.copies(missing).0 > 0
    }

    /// So many copies of each shard, and their bytes.
    fn copies(&self, count: impl Fn(&TwinIndex, &TwinShard) -> usize) -> (u64, u64) {
        let mut sum = (0, 0);
        for index in &self.indices {
            for shard in &index.shards {
                let copies = count(index, shard) as u64;
                sum = (sum.0 + copies, sum.1 + copies * shard.contents.bytes);
            }
        }
        sum
    }

    /// Copies and bytes that are made on other nodes while nodes that restart are away for longer than their copies
    /// wait for them: as long as the index says, or `delay` for all of them. Where nobody says it they do not wait.
    pub(crate) fn made_while_away(&self, delay: Option<&str>) -> (u64, u64) {
        let Question::Restart { nodes, down, .. } = &self.question else { return (0, 0) };
        let restarted: BTreeSet<&usize> = nodes.iter().collect();
        let is_made = |index: &TwinIndex| {
            let own = index.settings.get(DELAY).map(String::as_str);
            delay.or(own).and_then(|text| parse_duration(text).ok()).unwrap_or_default() < *down
        };
        // Nothing is copied from a node that is away.
        self.copies(|index, shard| match shard.nodes.len() > 1 && is_made(index) {
            true => shard.nodes.iter().filter(|node| restarted.contains(node)).count(),
            false => 0,
        })
    }

    /// The shards without replicas whose node restarts, as `logs[3]`: nobody can read them while it is away.
    pub(crate) fn shards_without_a_copy_meanwhile(&self) -> Vec<String> {
        let Question::Restart { nodes, .. } = &self.question else { return Vec::new() };
        self.shards_where(|index, shard| {
            index.replicas == 0 && shard.nodes.len() == 1 && nodes.contains(&shard.nodes[0])
        })
    }

    fn shards_where(&self, is_it: impl Fn(&TwinIndex, &TwinShard) -> bool) -> Vec<String> {
        let of_index = |index: &TwinIndex| -> Vec<String> {
            let shards = index.shards.iter().enumerate().filter(|(_, shard)| is_it(index, shard));
            shards.map(|(number, _)| index.name_of(number)).collect()
        };
        self.indices.iter().flat_map(of_index).collect()
    }

    /// Shards that have more copies on the nodes that are drained than there are nodes left which have none of them, as
    /// `logs[3]`. Nodes that `excluded` names (with the names of the cluster that was seen) take nothing either.
    pub(crate) fn shards_that_stay(&self, excluded: &[&str]) -> Vec<String> {
        let Question::Drain(drained) = &self.question else { return Vec::new() };
        let of_index = |index: &TwinIndex| -> Vec<String> {
            let takers = self.takers(index, drained, excluded);
            let stays = |shard: &TwinShard| {
                let leave = shard.nodes.iter().filter(|node| drained.contains(node)).count();
                leave > takers.iter().filter(|node| !shard.nodes.contains(node)).count()
            };
            let shards = index.shards.iter().enumerate().filter(|(_, shard)| stays(shard));
            shards.map(|(number, _)| index.name_of(number)).collect()
        };
        self.indices.iter().flat_map(of_index).collect()
    }

    /// How many copies would find no node, and the first shard that has some, as `logs[3]`: where there are to be more
    /// replicas, and fewer nodes are there than a shard has copies, each on a node of its own. Nodes that `excluded`
    /// names (with the names of the cluster that was seen) keep what they have, and take nothing.
    pub(crate) fn copies_without_a_node(&self, excluded: &[&str]) -> Option<(usize, String)> {
        let Question::Replicas(wanted) = &self.question else { return None };
        let mut homeless = (0, None);
        for index in &self.indices {
            let Some(replicas) = wanted.get(&index.name) else { continue };
            let takers = self.takers(index, &[], excluded);
            for (number, shard) in index.shards.iter().enumerate() {
                let room = takers.iter().filter(|node| !shard.nodes.contains(node)).count();
                let without = (*replicas as usize + 1).saturating_sub(shard.nodes.len() + room);
                if without > 0 {
                    homeless.0 += without;
                    homeless.1.get_or_insert_with(|| index.name_of(number));
                }
            }
        }
        homeless.1.map(|first| (homeless.0, first))
    }

    /// The nodes that may be given copies of an index: those that stay, are not `excluded`, and pass its filters.
    fn takers(&self, index: &TwinIndex, gone: &[usize], excluded: &[&str]) -> Vec<usize> {
        let named = |kind: &str| {
            let list = index.settings.get(&format!("index.routing.allocation.{kind}._name"));
            let list = list.filter(|list| !list.is_empty());
            list.map(|list| list.split(',').map(str::trim).collect::<BTreeSet<&str>>())
        };
        let (exclude, include, require) = (named("exclude"), named("include"), named("require"));
        let takes = |at: &usize| {
            let name = self.nodes[*at].name.as_str();
            !gone.contains(at)
                && !excluded.contains(&name)
                && exclude.as_ref().is_none_or(|names| !names.contains(name))
                && include.as_ref().is_none_or(|names| names.contains(name))
                && require.as_ref().is_none_or(|names| names.iter().all(|one| *one == name))
        };
        (0..self.nodes.len()).filter(takes).collect()
    }

    /// Shards that have no primary already, whatever is asked, as `logs[3]`.
    pub(crate) fn already_lost(&self) -> Vec<String> {
        let of_index = |index: &TwinIndex| -> Vec<String> {
            index.lost.iter().map(|number| format!("{}[{number}]", index.name)).collect()
        };
        self.indices.iter().flat_map(of_index).collect()
    }

    /// Shards of which no copy would be left, as `logs[3]`.
    pub(crate) fn lost_shards(&self) -> Vec<String> {
        self.lost(|_, _| true)
    }

    /// Those of them that would not be lost once all their replicas are started.
    pub(crate) fn lost_for_want_of_replicas(&self) -> Vec<String> {
        let Question::Lose(lost) = &self.question else { return Vec::new() };
        self.lost(|index, shard| {
            shard.nodes.len() <= index.replicas as usize && lost.len() <= index.replicas as usize
        })
    }

    /// Whether copies of shards that are not lost would be made when nodes are. Nodes that `excluded` names (with the
    /// names of the cluster that was seen) take none.
    pub(crate) fn makes_others(&self, excluded: &[&str]) -> bool {
        let Question::Lose(lost) = &self.question else { return false };
        self.indices.iter().any(|index| {
            let takers = self.takers(index, lost, excluded);
            index.shards.iter().any(|shard| {
                let gone = shard.nodes.iter().filter(|node| lost.contains(node)).count();
                (1..shard.nodes.len()).contains(&gone)
                    && takers.iter().any(|node| !shard.nodes.contains(node))
            })
        })
    }

    fn lost(&self, counts: impl Fn(&TwinIndex, &TwinShard) -> bool) -> Vec<String> {
        let Question::Lose(lost) = &self.question else { return Vec::new() };
        let lost: BTreeSet<&usize> = lost.iter().collect();
        self.shards_where(|index, shard| {
            shard.nodes.iter().all(|node| lost.contains(node)) && counts(index, shard)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn twin(question: Question) -> Twin {
        let node = |name: &str| TwinNode { name: name.to_owned(), ..TwinNode::default() };
        let contents = ShardContents { documents: 10, bytes: 1000, segments: 1 };
        let shard = |nodes: &[usize]| TwinShard { contents, nodes: nodes.to_vec() };
        let index = TwinIndex {
            name: "logs".to_owned(),
            replicas: 1,
            shards: vec![shard(&[0, 1]), shard(&[1, 2]), shard(&[2])],
            ..TwinIndex::default()
        };
        let nodes = ["a", "b", "c"].map(node).to_vec();
        Twin { nodes, indices: vec![index], question, uncertain: Vec::new() }
    }

    #[test]
    fn what_is_outstanding_is_what_is_lost_and_what_is_missing() {
        assert_eq!(twin(Question::Lose(vec![1])).outstanding(), (3, 3000));
        let more = BTreeMap::from([("logs".to_owned(), 2)]);
        assert_eq!(twin(Question::Replicas(more)).outstanding(), (4, 4000));
        assert_eq!(twin(Question::Lose(vec![2])).lost_shards(), ["logs[2]"]);
        assert_eq!(twin(Question::Lose(vec![2])).lost_for_want_of_replicas(), ["logs[2]"]);
        let two = twin(Question::Lose(vec![1, 2]));
        assert_eq!(two.lost_shards(), ["logs[1]", "logs[2]"]);
        assert_eq!(two.lost_for_want_of_replicas(), Vec::<String>::new(), "one replica is too few");
        assert!(!two.makes_others(&[]), "a has a copy of logs[0] already");
        let one = twin(Question::Lose(vec![2]));
        assert!(one.makes_others(&[]) && !one.makes_others(&["a"]), "logs[1] goes to a");
        assert_eq!(one.outstanding(), (1, 1000), "of logs[2] none is made");
        assert_eq!(twin(Question::Lose(vec![1])).lost_shards(), Vec::<String>::new());
        assert_eq!(
            twin(Question::Drain(vec![2])).outstanding(),
            (3, 3000),
            "logs[2] lacks a replica"
        );
        // c has just joined: a third of five copies, of which a part is never moved.
        assert_eq!(twin(Question::Add(vec![2])).outstanding(), (1, 1000));
    }

    #[test]
    fn shards_keep_their_numbers_where_others_are_lost_already() {
        let mut twin = twin(Question::Lose(vec![2]));
        twin.indices[0].lost = BTreeSet::from([0, 2, 5]);
        assert_eq!(twin.lost_shards(), ["logs[4]"], "1, 3 and 4 are there");
        assert_eq!(twin.already_lost(), ["logs[0]", "logs[2]", "logs[5]"]);
        assert_eq!(
            twin.in_its_names("of logs[0]: no; of logs[1]: no"),
            "of logs[1]: no; of logs[3]: no"
        );
    }

    #[test]
    fn what_cannot_leave_a_drained_node_is_known_before() {
        let stays = |drained: &[usize], excluded: &[&str]| {
            twin(Question::Drain(drained.to_vec())).shards_that_stay(excluded)
        };
        assert_eq!(stays(&[1], &[]), Vec::<String>::new());
        assert_eq!(stays(&[1], &["c"]), ["logs[0]"], "a has a copy of it already");
        assert_eq!(stays(&[1, 2], &[]), ["logs[0]", "logs[1]"]);
        assert_eq!(twin(Question::Lose(vec![1])).shards_that_stay(&[]), Vec::<String>::new());
    }

    #[test]
    fn copies_that_find_no_node_are_known_before() {
        let homeless =
            |question: Question, excluded: &[&str]| twin(question).copies_without_a_node(excluded);
        let first = |copies: usize, shard: &str| Some((copies, shard.to_owned()));
        let replicas = |number| Question::Replicas(BTreeMap::from([("logs".to_owned(), number)]));
        assert_eq!(homeless(replicas(2), &[]), None);
        // c keeps the copies of logs[1] and logs[2], and takes none of logs[0].
        assert_eq!(homeless(replicas(2), &["c"]), first(1, "logs[0]"));
        assert_eq!(homeless(replicas(3), &[]), first(3, "logs[0]"));
        let other = Question::Replicas(BTreeMap::from([("other".to_owned(), 3)]));
        assert_eq!(homeless(other, &[]), None, "nobody asks about logs");
        assert_eq!(homeless(Question::Lose(vec![0, 1]), &[]), None, "the answer says it");
    }

    #[test]
    fn an_index_that_is_kept_from_nodes_finds_no_room_there() {
        let kept_to = |question: Question, names: &str| {
            let mut twin = twin(question);
            let include = "index.routing.allocation.include._name".to_owned();
            twin.indices[0].settings.insert(include, names.to_owned());
            (twin.shards_that_stay(&[]), twin.copies_without_a_node(&[]).map(|(copies, _)| copies))
        };
        let drained = kept_to(Question::Drain(vec![1]), "b,c");
        assert_eq!(drained, (vec!["logs[1]".to_owned()], None), "c has a copy of it already");
        let more = || Question::Replicas(BTreeMap::from([("logs".to_owned(), 2)]));
        assert_eq!(kept_to(more(), "a,b,c"), (vec![], None));
        assert_eq!(kept_to(more(), "b,c"), (vec![], Some(2)), "of logs[1] and logs[2]");
    }

    #[test]
    fn copies_are_made_elsewhere_while_a_node_is_away_for_long() {
        let made = |down_s: u64, delay: Option<&str>| {
            let down = Duration::from_secs(down_s);
            let mut twin = twin(Question::Restart { nodes: vec![1, 2], down, flush: false });
            twin.indices[0].settings.insert(DELAY.to_owned(), "1m".to_owned());
            twin.made_while_away(delay)
        };
        assert_eq!(made(30, None), (0, 0));
        assert_eq!(made(300, None), (3, 3000), "logs[2] has no other copy");
        assert_eq!(made(30, Some("10s")), (3, 3000));
        assert_eq!(twin(Question::Lose(vec![1])).made_while_away(None), (0, 0));
    }

    #[test]
    fn a_shard_with_one_copy_is_away_with_its_node_alone() {
        let away = |nodes: &[usize]| {
            let (nodes, down) = (nodes.to_vec(), Duration::from_secs(30));
            let mut twin = twin(Question::Restart { nodes, down, flush: false });
            let with_replica = twin.shards_without_a_copy_meanwhile();
            assert_eq!(with_replica, Vec::<String>::new(), "the one that lacks is made first");
            twin.indices[0].replicas = 0;
            twin.shards_without_a_copy_meanwhile()
        };
        assert_eq!(away(&[0, 1, 2]), ["logs[2]"], "others have a second copy still");
        assert_eq!(away(&[0, 1]), Vec::<String>::new());
    }

    #[test]
    fn filters_name_the_nodes_of_virtual_time() {
        let twin = twin(Question::Lose(vec![1]));
        let exclude = "cluster.routing.allocation.exclude._name";
        assert_eq!(twin.translated(exclude, "a, c"), "leader-1,leader-3");
        assert_eq!(twin.translated("indices.recovery.chunk_size", "a"), "a");
        assert_eq!(
            twin.in_its_names("[leader-3]: it waits for [leader-1]"),
            "[c]: it waits for [a]"
        );
        assert_eq!(
            twin.in_its_names("no: [leader-0]: named by x; [leader-1]: full; [leader-2]: gone"),
            "no: [a]: full; [b]: gone"
        );
        assert_eq!(twin.in_its_names("no: [leader-1]: full; [leader-0]: named"), "no: [a]: full");
        let mut like = twin.clone();
        like.nodes[0].name = "leader-2".to_owned();
        assert_eq!(like.in_its_names("[leader-1] waits, not [x"), "[leader-2] waits, not [x");
        assert_eq!((twin.stands_for("leader-2"), twin.stands_for("leader-0")), (Some("b"), None));
        let recorded = [0, 2].map(|number| twin.recorded_name(&format!("leader-{number}")));
        assert_eq!(recorded, ["manager of the twin", "b"]);
    }
}
