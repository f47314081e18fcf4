//! The small cluster that the tests of this folder share.

use std::collections::BTreeMap;

use super::super::indices::{REPLICAS, SHARDS};
use super::super::{Index, Made, PlacedIndex, RerouteAction, RerouteCommand, check};
use super::*;

/// A copy, as tests name it: index, shard, allocation id.
pub type CopyId = (String, u32, String);

/// A cluster with nodes `n1`, `n2`, ... and the disks of those. Checks the state after each event.
pub struct Lab {
    pub state: ClusterState,
    pub now_ms: u64,
    /// What the disk of each node holds, present or not.
    disks: BTreeMap<String, BTreeMap<(String, u32), String>>,
    zones: BTreeMap<String, String>,
    /// How far the copies of a node go, and what global checkpoint they know; of others nothing is known.
    pub extents: BTreeMap<String, (u64, Option<u64>)>,
}

pub fn node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        transport_address: format!("{name}:9300"),
        http_address: format!("{name}:9200"),
        attributes: BTreeMap::new(),
    }
}

pub fn update(pairs: &[(&str, &str)]) -> Update {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect()
}

/// An index is made, without mappings and aliases.
pub fn creation(index: &str, settings: Update) -> Event {
    let made = Made { settings, ..Made::default() };
    Event::CreateIndex { index: index.to_owned(), made }
}

impl ClusterState {
    /// An index as a change names it; of one that is not there nobody knows the UUID.
    pub fn meant(&self, name: &str) -> Index {
        let unknown = Index { name: name.to_owned(), uuid: String::new() };
        self.index(name).unwrap_or(unknown)
    }
}

impl Lab {
    pub fn new(nodes: u32) -> Self {
        let names: Vec<String> = (1..=nodes).map(|n| format!("n{n}")).collect();
        let mut draw = 0;
        let state = ClusterState::new("lab", names.iter().map(|name| node(name)), || {
            draw += 1;
            draw
        });
        let (disks, zones, extents) = Default::default();
        let mut lab = Lab { state, now_ms: 1000, disks, zones, extents };
        for name in &names {
            lab.join(name);
        }
        lab
    }

    /// With the index `a` of so many shards and replicas of each, all of them started.
    pub fn started(nodes: u32, (shards, replicas): (u32, u32)) -> Self {
        let mut lab = Lab::new(nodes);
        lab.create("a", shards, replicas);
        lab.start_all();
        lab
    }

    pub fn apply(&mut self, event: Event) -> Applied {
        self.now_ms += 1;
        let before = self.state.clone();
        let applied = apply(&mut self.state, self.now_ms, event.clone());
        check(&self.state).unwrap_or_else(|what| panic!("{what}\nafter {event:?}"));
        match &applied {
            Err(_) => assert_eq!(self.state, before, "refused, and yet changed: {event:?}"),
            Ok(changes) => {
                let grown = u64::from(!changes.is_empty());
                assert_eq!(self.state.version, before.version + grown, "{event:?}");
                self.write_disks(changes);
            }
        }
        applied
    }

    fn write_disks(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Assigned { index, shard, allocation_id, node, .. } = change else {
                continue;
            };
            let uuid = self.state.indices[index].uuid.clone();
            let disk = self.disks.entry(node.clone()).or_default();
            disk.insert((uuid, *shard), allocation_id.clone());
        }
    }

    pub fn join(&mut self, name: &str) -> Vec<Change> {
        let disk = self.disks.entry(name.to_owned()).or_default();
        let found = disk.iter().map(|((uuid, shard), id)| FoundCopy {
            index_uuid: uuid.clone(),
            shard: *shard,
            allocation_id: id.clone(),
            next_seq_no: self.extents.get(name).map(|(next_seq_no, _)| *next_seq_no),
            global_checkpoint: self.extents.get(name).and_then(|(_, checkpoint)| *checkpoint),
        });
        let found = found.collect();
        let mut node = node(name);
        node.attributes.extend(self.zones.get(name).map(|zone| ("zone".to_owned(), zone.clone())));
        self.apply(Event::NodeJoined { node, found }).unwrap()
    }

    /// The node joins anew, from a zone.
    pub fn in_zone(&mut self, name: &str, zone: &str) {
        self.zones.insert(name.to_owned(), zone.to_owned());
        self.leave(name);
        self.join(name);
    }

    pub fn leave(&mut self, name: &str) -> Vec<Change> {
        self.apply(Event::NodeLeft { node: name.to_owned() }).unwrap()
    }

    pub fn create(&mut self, index: &str, shards: u32, replicas: u32) -> Vec<Change> {
        let numbers = [shards.to_string(), replicas.to_string()];
        let settings = update(&[(SHARDS, &numbers[0]), (REPLICAS, &numbers[1])]);
        self.apply(creation(index, settings)).unwrap()
    }

    pub fn set(&mut self, name: &str, value: &str) -> Vec<Change> {
        let persistent = update(&[(name, value)]);
        self.apply(Event::PutClusterSettings { persistent, transient: Update::new() }).unwrap()
    }

    pub fn replicas(&mut self, index: &str, replicas: u32) -> Vec<Change> {
        self.set_index(index, REPLICAS, &replicas.to_string())
    }

    pub fn set_index(&mut self, index: &str, name: &str, value: &str) -> Vec<Change> {
        let settings = update(&[(name, value)]);
        self.apply(Event::PutIndexSettings { index: self.state.meant(index), settings }).unwrap()
    }

    /// Puts an index in place, whose shards have copies on these nodes.
    pub fn place(&mut self, index: &str, replicas: u32, nodes: Vec<Vec<String>>) -> Applied {
        let placed = PlacedIndex { index: index.to_owned(), replicas, nodes, ..Default::default() };
        self.apply(Event::PlaceIndex(Box::new(placed)))
    }

    /// Every copy that recovers.
    pub fn initializing(&self) -> Vec<CopyId> {
        let copies = |(index, number, shard): (&str, u32, &IndexShardRoutingTable)| -> Vec<CopyId> {
            let recovering = shard.assigned().filter(|copy| copy.recovery().is_some());
            recovering.map(|c| (index.to_owned(), number, c.allocation_id.clone())).collect()
        };
        self.state.shards().flat_map(copies).collect()
    }

    pub fn start(&mut self, (index, shard, allocation_id): &CopyId) -> Vec<Change> {
        let (index, allocation_id) = (index.clone(), allocation_id.clone());
        self.apply(Event::ShardStarted { index, shard: *shard, allocation_id }).unwrap()
    }

    /// The first of the copies that recover fails.
    pub fn fail_first(&mut self, reason: &str) {
        let place = self.initializing()[0].clone();
        self.fail(&place, reason);
    }

    pub fn fail(&mut self, (index, shard, allocation_id): &CopyId, why: &str) -> Vec<Change> {
        let (index, allocation_id) = (index.clone(), allocation_id.clone());
        let (reason, disk_full) = (why.to_owned(), why == "no room");
        let shard = *shard;
        self.apply(Event::ShardFailed { index, shard, allocation_id, reason, disk_full }).unwrap()
    }

    /// A command of `_cluster/reroute`.
    pub fn reroute(&mut self, action: RerouteAction, shard: (&str, u32), node: &str) -> Applied {
        let (index, shard, node) = (shard.0.to_owned(), shard.1, node.to_owned());
        self.apply(Event::Reroute { commands: vec![RerouteCommand { action, index, shard, node }] })
    }

    /// Moves a copy, and answers with the id of its target.
    pub fn move_copy(&mut self, shard: (&str, u32), from: &str, to: &str) -> String {
        self.reroute(RerouteAction::Move { to_node: to.to_owned() }, shard, from).unwrap();
        let copy = self.shard(shard.0, shard.1).on_node(from).unwrap();
        copy.target.as_ref().unwrap().allocation_id.clone()
    }

    /// Starts what recovers until nothing does.
    pub fn start_all(&mut self) {
        while let Some(place) = self.initializing().first().cloned() {
            self.start(&place);
        }
    }

    /// How many copies are on a node.
    pub fn on(&self, node: &str) -> usize {
        self.state.copies_on(node).count()
    }

    pub fn shard(&self, index: &str, shard: u32) -> &IndexShardRoutingTable {
        self.state.shard(index, shard).unwrap()
    }

    /// The primary of now takes a copy out of sync.
    pub fn out_of_sync(&mut self, index: &str, shard: u32, id: &str) -> Applied {
        let primary_term = self.shard(index, shard).primary_term;
        self.out_of_sync_at(index, shard, id, primary_term)
    }

    pub fn out_of_sync_at(&mut self, index: &str, shard: u32, id: &str, term: u64) -> Applied {
        self.apply(Event::CopyOutOfSync {
            index: self.state.meant(index),
            shard,
            allocation_id: id.to_owned(),
            primary_term: term,
            reason: "a write failed".to_owned(),
        })
    }
}
