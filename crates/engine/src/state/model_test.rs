//! Random events against a model of the disks: whatever happens, the invariants hold, and no
//! acknowledged write is lost.
//!
//! The model plays the nodes. A write goes to every assigned copy; the primary has those that miss it
//! taken out of sync, and only then is it acknowledged. Whatever becomes primary must have it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Change, ClusterState, Event, FollowOrigin, FoundCopy, Made, Node, RecoverySource,
    RerouteAction, RerouteCommand, ShardCopy, StateDiff, Status, apply_all, check, explain, health,
};
use crate::settings::Update;

const NODES: u8 = 4;

#[derive(Clone, Debug)]
enum Act {
    One(Report),
    RestartManager,
    Create {
        index: u8,
        shards: u8,
        replicas: u8,
        follows: bool,
    },
    Delete(u8),
    Replicas {
        index: u8,
        replicas: u8,
    },
    /// An index has as many replicas as there are nodes for, or as many as it has.
    Expand {
        index: u8,
        range: u8,
    },
    /// To the n-th shard; bit i of `missed_by` has the i-th copy miss it.
    Write {
        shard: u8,
        missed_by: u8,
    },
    /// The n-th shard's primary of an older term tries to acknowledge.
    StaleWrite(u8),
    Enable(u8),
    Recoveries(u8),
    Retry,
    /// The n-th shard's i-th copy is moved to a node.
    Move {
        shard: u8,
        copy: u8,
        to: u8,
    },
    /// The recovery of the n-th shard's i-th copy, or its move, is given up.
    Cancel {
        shard: u8,
        copy: u8,
    },
    /// A node that no copy may be on; the last number is none.
    Exclude(u8),
    /// A node deletes the files that it may delete.
    Clean(u8),
    /// What happens while the manager is busy, and is handled at once. Whoever reports does not know yet
    /// what comes of the others.
    Together(Vec<Report>),
}

/// What a node or the manager's watch reports.
#[derive(Clone, Debug)]
enum Report {
    Join(u8),
    Leave(u8),
    Start(u8),
    Fail(u8),
    Replicas(u8),
    /// The n-th shard's primary takes its i-th copy out of sync.
    OutOfSync {
        shard: u8,
        copy: u8,
    },
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        2 => (0..NODES).prop_map(Report::Join),
        3 => (0..NODES).prop_map(Report::Leave),
        6 => any::<u8>().prop_map(Report::Start),
        2 => any::<u8>().prop_map(Report::Fail),
        1 => (0..NODES).prop_map(Report::Replicas),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(shard, copy)| Report::OutOfSync { shard, copy }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let replicas = 0..NODES;
    prop_oneof![
        3 => (0..NODES).prop_map(|n| Act::One(Report::Join(n))),
        2 => (0..NODES).prop_map(|n| Act::One(Report::Leave(n))),
        1 => Just(Act::RestartManager),
        1 => (0..3u8, 1..4u8, replicas.clone(), any::<bool>()).prop_map(
            |(index, shards, replicas, follows)| Act::Create { index, shards, replicas, follows }
        ),
        1 => (0..9u8).prop_map(Act::Delete),
        1 => (0..3u8, replicas).prop_map(|(index, replicas)| Act::Replicas { index, replicas }),
        1 => (0..3u8, 0..4u8).prop_map(|(index, range)| Act::Expand { index, range }),
        12 => any::<u8>().prop_map(|n| Act::One(Report::Start(n))),
        2 => any::<u8>().prop_map(|n| Act::One(Report::Fail(n))),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(shard, missed_by)| Act::Write {
            shard,
            missed_by: missed_by & 0b0101,
        }),
        1 => any::<u8>().prop_map(Act::StaleWrite),
        1 => (0..6u8).prop_map(Act::Enable),
        1 => (0..4u8).prop_map(Act::Recoveries),
        1 => Just(Act::Retry),
        5 => (any::<u8>(), 0..4u8, 0..NODES).prop_map(|(shard, copy, to)| Act::Move { shard, copy, to }),
        1 => (any::<u8>(), 0..4u8).prop_map(|(shard, copy)| Act::Cancel { shard, copy }),
        1 => (0..=NODES).prop_map(Act::Exclude),
        1 => (0..NODES).prop_map(Act::Clean),
        4 => prop::collection::vec(report(), 1..6).prop_map(Act::Together),
    ]
}

type ShardId = (String, u32);

/// What a disk holds of a shard: the id, and the last write that it has without a gap.
#[derive(Clone, Debug)]
struct Files {
    allocation_id: String,
    has: u64,
}

struct Model {
    state: ClusterState,
    now_ms: u64,
    disks: BTreeMap<String, BTreeMap<ShardId, Files>>,
    acknowledged: BTreeMap<ShardId, u64>,
}

fn name(node: u8) -> String {
    format!("n{node}")
}

fn node(node: u8) -> Node {
    let name = name(node);
    Node {
        transport_address: format!("{name}:1"),
        http_address: format!("{name}:2"),
        attributes: BTreeMap::new(),
        name,
    }
}

fn one(name: &str, value: Option<&str>) -> Update {
    [(name.to_owned(), value.map(str::to_owned))].into()
}

fn out_of_sync(
    state: &ClusterState,
    place: &(String, u32),
    allocation_id: String,
    primary_term: u64,
) -> Event {
    Event::CopyOutOfSync {
        index: state.meant(&place.0),
        shard: place.1,
        allocation_id,
        primary_term,
        reason: "missed a write".to_owned(),
    }
}

impl Model {
    fn new() -> Self {
        let mut state = ClusterState::new("model", (0..NODES).map(node), || 7);
        state.persistent.insert("cluster.remote.eu.seeds".to_owned(), "h:1".to_owned());
        let disks = (0..NODES).map(|n| (name(n), BTreeMap::new())).collect();
        let mut model = Model { state, now_ms: 0, disks, acknowledged: BTreeMap::new() };
        (0..NODES).for_each(|n| model.join(n));
        model
    }

    /// Applies an event; answers whether it was accepted.
    fn event(&mut self, event: Event) -> bool {
        self.events(vec![event])[0]
    }

    /// Applies events at once; answers which were accepted.
    fn events(&mut self, events: Vec<Event>) -> Vec<bool> {
        self.now_ms += 1;
        let before = self.state.clone();
        let batch = apply_all(&mut self.state, self.now_ms, events.clone());
        check(&self.state).unwrap_or_else(|what| panic!("{what} after {events:?}"));
        let diff = StateDiff::between(&before, &self.state);
        assert_eq!(diff.apply(&before).as_ref(), Ok(&self.state), "after {events:?}");
        if batch.changes.is_empty() {
            assert_eq!(self.state, before, "no change, and yet changed: {events:?}");
        } else {
            assert_eq!(self.state.version, before.version + 1, "{events:?}");
        }
        let accepted: Vec<bool> = batch.accepted.iter().map(Result::is_ok).collect();
        if !accepted.contains(&true) {
            assert_eq!(batch.changes, [], "refused, and yet changed: {events:?}");
            return accepted;
        }
        self.check_history(&before, &events);
        self.write_disks(&batch.changes);
        self.check_primaries(&events);
        for explanation in explain(&self.state, self.now_ms) {
            assert_ne!(explanation.can_allocate, "yes", "{explanation:?} after {events:?}");
            assert!(explanation.reason.is_some(), "{explanation:?} after {events:?}");
        }
        accepted
    }

    fn check_history(&self, before: &ClusterState, event: &[Event]) {
        for (index, number, old) in before.shards() {
            let Some(new) = self.state.shard(index, number) else { continue };
            if before.indices[index].uuid != self.state.indices[index].uuid {
                continue;
            }
            assert!(new.primary_term >= old.primary_term, "a term went back after {event:?}");
            assert!(new.was_started() || !old.was_started(), "nothing in sync after {event:?}");
            let (was, is) = (old.started_primary(), new.started_primary());
            if let (Some(was), Some(is)) = (was, is)
                && was.allocation_id != is.allocation_id
            {
                let target = was.target.as_ref().map(|target| &target.allocation_id);
                let is_moved = target == Some(&is.allocation_id);
                let is_later = new.primary_term > old.primary_term;
                assert!(is_moved || is_later, "two of one term after {event:?}");
            }
        }
    }

    fn write_disks(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Assigned { index, shard, allocation_id, node, recovery } = change else {
                continue;
            };
            let key = (self.state.indices[index].uuid.clone(), *shard);
            let disk = self.disks.get_mut(node).unwrap();
            if *recovery == RecoverySource::ExistingStore {
                assert_eq!(disk[&key].allocation_id, *allocation_id);
            } else {
                let allocation_id = allocation_id.clone();
                disk.insert(key, Files { allocation_id, has: 0 });
            }
        }
    }

    /// The promise: a started primary has every acknowledged write.
    fn check_primaries(&self, event: &[Event]) {
        for (index, number, shard) in self.state.shards() {
            let Some(primary) = shard.started_primary() else { continue };
            let key = (self.state.indices[index].uuid.clone(), number);
            let files = &self.disks[primary.node.as_ref().unwrap()][&key];
            assert_eq!(files.allocation_id, primary.allocation_id);
            let acknowledged = self.acknowledged.get(&key).copied().unwrap_or(0);
            assert!(files.has >= acknowledged, "writes of {index} {number} lost after {event:?}");
        }
    }

    fn join(&mut self, n: u8) {
        let event = self.joining(n);
        assert!(self.event(event));
    }

    fn joining(&self, n: u8) -> Event {
        let found = self.disks[&name(n)].iter().map(|((uuid, shard), files)| FoundCopy {
            index_uuid: uuid.clone(),
            shard: *shard,
            allocation_id: files.allocation_id.clone(),
            ..FoundCopy::default()
        });
        Event::NodeJoined { node: node(n), found: found.collect() }
    }

    /// The n-th copy that recovers: index, shard, id.
    fn recovering(&self, n: u8) -> Option<(String, u32, String)> {
        let mut all = Vec::new();
        for (index, number, shard) in self.state.shards() {
            for copy in shard.assigned().filter(|copy| copy.recovery().is_some()) {
                all.push((index.to_owned(), number, copy.allocation_id.clone()));
            }
        }
        (!all.is_empty()).then(|| all.swap_remove(usize::from(n) % all.len()))
    }

    fn nth_shard(&self, n: u8) -> Option<(String, u32)> {
        let all: Vec<_> = self.state.shards().collect();
        let (index, number, _) = all.get(usize::from(n) % all.len().max(1))?;
        Some(((*index).to_owned(), *number))
    }

    fn start(&mut self, n: u8) -> bool {
        let event = self.starting(n);
        event.is_some_and(|event| self.event(event))
    }

    /// The n-th copy that recovers has all that its source has.
    fn starting(&mut self, n: u8) -> Option<Event> {
        let (index, shard, allocation_id) = self.recovering(n)?;
        let key = (self.state.indices[&index].uuid.clone(), shard);
        let routing = self.state.shard(&index, shard).unwrap();
        let copy = routing.assigned().find(|c| c.allocation_id == allocation_id).unwrap();
        if let Some(RecoverySource::Peer { from_node }) = copy.recovery() {
            let has = self.disks[from_node][&key].has;
            let to = copy.node.clone().unwrap();
            self.disks.get_mut(&to).unwrap().get_mut(&key).unwrap().has = has;
        }
        Some(Event::ShardStarted { index, shard, allocation_id })
    }

    fn failing(&self, n: u8) -> Option<Event> {
        let (index, shard, allocation_id) = self.recovering(n)?;
        let (reason, disk_full) = ("disk".to_owned(), n.is_multiple_of(2));
        Some(Event::ShardFailed { index, shard, allocation_id, reason, disk_full })
    }

    fn report(&mut self, report: &Report) -> Option<Event> {
        match *report {
            Report::Join(n) => Some(self.joining(n)),
            Report::Leave(n) => Some(Event::NodeLeft { node: name(n) }),
            Report::Start(n) => self.starting(n),
            Report::Fail(n) => self.failing(n),
            Report::Replicas(n) => {
                let settings = one("index.number_of_replicas", Some(&n.to_string()));
                Some(Event::PutIndexSettings { index: self.state.meant("i0"), settings })
            }
            Report::OutOfSync { shard, copy } => {
                let place = self.nth_shard(shard)?;
                let shard = self.state.shard(&place.0, place.1)?;
                let id = shard.copies.get(usize::from(copy) % shard.copies.len())?;
                Some(out_of_sync(&self.state, &place, id.allocation_id.clone(), shard.primary_term))
            }
        }
    }

    fn out_of_sync(&mut self, place: &(String, u32), id: String, primary_term: u64) -> bool {
        let event = out_of_sync(&self.state, place, id, primary_term);
        self.event(event)
    }

    fn write(&mut self, place: &(String, u32), missed_by: u8) {
        let shard = self.state.shard(&place.0, place.1).unwrap().clone();
        if shard.started_primary().is_none() {
            return;
        }
        let key = (self.state.indices[&place.0].uuid.clone(), place.1);
        let write = self.acknowledged.get(&key).copied().unwrap_or(0) + 1;
        let mut failed: Vec<String> = shard.missing_in_sync().map(str::to_owned).collect();
        for (at, copy) in shard.copies.iter().enumerate().filter(|(_, copy)| copy.is_started()) {
            if !copy.primary && missed_by >> at & 1 == 1 {
                failed.push(copy.allocation_id.clone());
                continue;
            }
            let disk = self.disks.get_mut(copy.node.as_ref().unwrap()).unwrap();
            disk.get_mut(&key).unwrap().has = write;
        }
        for id in failed {
            assert!(self.out_of_sync(place, id, shard.primary_term), "the primary is believed");
        }
        self.acknowledged.insert(key, write);
    }

    /// A primary of an older term has not noticed yet: it must not be able to acknowledge.
    fn stale_write(&mut self, place: &(String, u32)) {
        let shard = self.state.shard(&place.0, place.1).unwrap().clone();
        for id in shard.in_sync {
            assert!(!self.out_of_sync(place, id, shard.primary_term - 1));
        }
    }

    fn clean(&mut self, n: u8) {
        let name = name(n);
        if self.state.present.contains(&name) {
            let disk = self.disks.get_mut(&name).unwrap();
            let copies: Vec<_> = disk.keys().cloned().collect();
            for copy in self.state.obsolete(&name, self.state.indices.keys(), &copies) {
                disk.remove(&copy);
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let index = |index: u8| format!("i{index}");
        match *act {
            Act::One(ref report) => drop(self.report(report).map(|event| self.event(event))),
            Act::RestartManager => drop(self.event(Event::ManagerRestarted)),
            Act::Create { index: i, shards, replicas, follows } => {
                self.create(index(i), shards, replicas, follows);
            }
            Act::Delete(i) => {
                self.event(Event::DeleteIndex { index: self.state.meant(&index(i)) });
            }
            Act::Replicas { index: i, replicas } => {
                let settings = one("index.number_of_replicas", Some(&replicas.to_string()));
                self.event(Event::PutIndexSettings {
                    index: self.state.meant(&index(i)),
                    settings,
                });
            }
            Act::Expand { index: i, range } => {
                let range = ["false", "0-1", "0-all", "1-2"][usize::from(range)];
                let settings = one("index.auto_expand_replicas", Some(range));
                self.event(Event::PutIndexSettings {
                    index: self.state.meant(&index(i)),
                    settings,
                });
            }
            Act::Together(ref reports) => {
                let events: Vec<Event> = reports.iter().filter_map(|r| self.report(r)).collect();
                self.events(events);
            }
            Act::Write { shard, missed_by } => {
                if let Some(place) = self.nth_shard(shard) {
                    self.write(&place, missed_by);
                }
            }
            Act::StaleWrite(shard) => {
                if let Some(place) = self.nth_shard(shard) {
                    self.stale_write(&place);
                }
            }
            Act::Enable(n) => {
                let word =
                    ["all", "all", "all", "primaries", "new_primaries", "none"][usize::from(n)];
                self.set(one("cluster.routing.allocation.enable", Some(word)));
            }
            Act::Recoveries(n) => {
                const NAME: &str = "cluster.routing.allocation.node_concurrent_recoveries";
                self.set(one(NAME, Some(&n.to_string())));
            }
            Act::Retry => drop(self.event(Event::RetryFailed)),
            Act::Move { shard, copy, to } => {
                let action = |_: &ShardCopy| RerouteAction::Move { to_node: name(to) };
                self.reroute(shard, copy, action);
            }
            Act::Cancel { shard, copy } => {
                // That of a started primary would lose what nobody else has.
                let action =
                    |copy: &ShardCopy| RerouteAction::Cancel { allow_primary: !copy.is_started() };
                self.reroute(shard, copy, action);
            }
            Act::Exclude(n) => {
                let excluded = (n < NODES).then(|| name(n));
                let setting = "cluster.routing.allocation.exclude._name";
                self.set(one(setting, excluded.as_deref()));
            }
            Act::Clean(n) => self.clean(n),
        }
    }

    /// Commands something of a copy, or of its target where it has one; whatever comes of it.
    fn reroute(&mut self, shard: u8, copy: u8, action: impl Fn(&ShardCopy) -> RerouteAction) {
        let Some((index, shard)) = self.nth_shard(shard) else { return };
        let routing = self.state.shard(&index, shard).unwrap();
        let copies: Vec<&ShardCopy> = routing.assigned().collect();
        let Some(copy) = copies.get(usize::from(copy) % copies.len().max(1)) else { return };
        let (action, node) = (action(copy), copy.node.clone().unwrap());
        self.event(Event::Reroute {
            commands: vec![RerouteCommand { action, index, shard, node }],
        });
    }

    fn set(&mut self, transient: Update) {
        assert!(self.event(Event::PutClusterSettings { persistent: Update::new(), transient }));
    }

    fn create(&mut self, index: String, shards: u8, replicas: u8, follows: bool) {
        let mut settings = one("index.number_of_replicas", Some(&replicas.to_string()));
        if !follows {
            settings.extend(one("index.number_of_shards", Some(&shards.to_string())));
        }
        let made = Made { settings, ..Made::default() };
        let event = if follows {
            let leader = FollowOrigin {
                following: Default::default(),
                remote_cluster: "eu".to_owned(),
                leader_index: "l".to_owned(),
                leader_uuid: "u".to_owned(),
            };
            let shards = u32::from(shards);
            Event::CreateFollower { index, leader, shards, routing_shards: None, made }
        } else {
            Event::CreateIndex { index, made }
        };
        self.event(event);
    }

    /// Everyone returns and nothing fails any more.
    fn heal(&mut self) {
        self.set(one("cluster.*", None));
        self.event(Event::RetryFailed);
        for n in 0..NODES {
            if !self.state.present.contains(&name(n)) {
                self.join(n);
            }
        }
        while self.start(0) {}
        let health = health(&self.state);
        assert_eq!(health.status, Status::Green, "{:#?}", explain(&self.state, self.now_ms));
        assert_eq!(health.relocating_shards, 0, "a move does not end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_no_acknowledged_write_is_lost(
        acts in prop::collection::vec(act(), 1..120)
    ) {
        let mut model = Model::new();
        model.act(&Act::Create { index: 0, shards: 2, replicas: 2, follows: false });
        for act in &acts {
            model.act(act);
        }
        model.heal();
    }
}
