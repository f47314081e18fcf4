//! Two faults that overlap: every two kinds in turn, on slow machines.

use std::collections::BTreeSet;

use serde_json::json;

use crate::scenario::{
    Case, Chance, Fault, Machine, Nodes, SHAPES, Scenario, Side, What, Writer, index_settings,
    parameters, replicas_of, some_node,
};

/// What goes wrong, without where and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Kill,
    KillAll,
    Stop,
    Pause,
    Cut,
    CutOff,
    FullDisk,
    Flush,
    PauseFollowing,
    MoveClock,
    Unfollow,
    /// Not one of the pairs, as the following: they have runs of their own.
    Damage,
    Move,
    Drain,
}

impl Kind {
    pub const ALL: [Kind; 11] = [
        Kind::Kill,
        Kind::KillAll,
        Kind::Stop,
        Kind::Pause,
        Kind::Cut,
        Kind::CutOff,
        Kind::FullDisk,
        Kind::Flush,
        Kind::PauseFollowing,
        Kind::MoveClock,
        Kind::Unfollow,
    ];

    /// What befalls a node alone.
    const OF_NODES: [Kind; 5] = [Kind::Kill, Kind::Stop, Kind::Pause, Kind::CutOff, Kind::FullDisk];

    /// Every two of some, also of one kind.
    fn two_of(kinds: &[Kind]) -> Vec<(Kind, Kind)> {
        let with = |at: usize| kinds[at..].iter().map(move |other| (kinds[at], *other));
        (0..kinds.len()).flat_map(with).collect()
    }

    /// Every two of them.
    pub fn pairs() -> Vec<(Kind, Kind)> {
        Kind::two_of(&Kind::ALL)
    }

    fn at(self, chance: &mut Chance, side: Side, node: usize) -> What {
        match self {
            Kind::Kill => What::Kill(side, node),
            Kind::KillAll => What::KillAll(side),
            Kind::Stop => What::Stop(side, node),
            Kind::Pause => What::Pause(side, node),
            Kind::Cut => What::Cut,
            Kind::CutOff => What::CutOff(side, node),
            Kind::FullDisk => What::FullDisk(side, node, chance.magnitude(0, 20_000)),
            Kind::Flush => What::Flush(side),
            Kind::PauseFollowing => What::PauseFollowing,
            Kind::MoveClock => {
                let by_ms = chance.magnitude(1, 24 * 3_600_000) as i64;
                What::MoveClock(side, node, if chance.percent(50) { by_ms } else { -by_ms })
            }
            Kind::Unfollow => What::Unfollow,
            Kind::Damage => What::Damage(side, node, chance.next()),
            Kind::Move => What::Move(side, chance.next()),
            Kind::Drain => What::Drain(side, node),
        }
    }
}

impl What {
    pub fn kind(&self) -> Kind {
        match self {
            What::Kill(..) => Kind::Kill,
            What::KillAll(..) => Kind::KillAll,
            What::Stop(..) => Kind::Stop,
            What::Pause(..) => Kind::Pause,
            What::Cut => Kind::Cut,
            What::CutOff(..) => Kind::CutOff,
            What::FullDisk(..) => Kind::FullDisk,
            What::Flush(..) => Kind::Flush,
            What::PauseFollowing => Kind::PauseFollowing,
            What::MoveClock(..) => Kind::MoveClock,
            What::Unfollow => Kind::Unfollow,
            What::Damage(..) => Kind::Damage,
            What::Move(..) => Kind::Move,
            What::Drain(..) => Kind::Drain,
        }
    }
}

impl Scenario {
    /// Pairs of kinds of faults of which both were there at some moment.
    pub fn overlapping(&self) -> BTreeSet<(Kind, Kind)> {
        let ends = |fault: &Fault| fault.at_ms + fault.lasts_ms;
        let overlap = |a: &Fault, b: &Fault| a.at_ms <= ends(b) && b.at_ms <= ends(a);
        let mut pairs = BTreeSet::new();
        for (number, a) in self.faults.iter().enumerate() {
            for b in self.faults[number + 1..].iter().filter(|b| overlap(a, b)) {
                let (a, b) = (a.what.kind(), b.what.kind());
                pairs.insert((a.min(b), a.max(b)));
            }
        }
        pairs
    }

    pub fn pair(case: &Case) -> Scenario {
        let mut chance = Chance::new(case.seed);
        let chance = &mut chance;
        // Every second one is about two nodes.
        let is_of_nodes = case.seed % 2 == 1;
        let least = if is_of_nodes { 2 } else { 1 };
        let nodes = |chance: &mut Chance| chance.between(least, 4) as usize;
        let (leaders, followers) = (nodes(chance), nodes(chance).min(3));
        let is_dense = chance.percent(60);
        let load_ms =
            if is_dense { chance.between(300, 3_000) } else { chance.magnitude(500, 40_000) };
        let writer = |chance: &mut Chance| Writer {
            documents: chance.one_of(&[3, 30, 300]),
            batch: chance.between(1, if is_dense { 3 } else { 15 }),
            pause_ms: if is_dense { chance.between(1, 20) } else { chance.between(5, 1500) },
            creates_percent: chance.one_of(&[15, 60]),
        };
        let writers =
            (0..chance.between(1, if is_dense { 5 } else { 3 })).map(|_| writer(chance)).collect();
        let is_slow = chance.percent(70);
        let mut machines = |count: usize| -> Vec<Machine> {
            let machine = |chance: &mut Chance| Machine {
                seek_us: chance.magnitude(20, 20_000),
                sync_us: chance.magnitude(110, 400_000),
                delay_us: chance.magnitude(25, 10_000),
            };
            (0..if is_slow { count } else { 0 }).map(|_| machine(chance)).collect()
        };
        let machines = [machines(leaders), machines(followers), Vec::new()];
        let replicas = |chance: &mut Chance, nodes: usize| match chance.percent(50) {
            true => (nodes as u32 - 1).min(2),
            false => replicas_of(chance, nodes),
        };
        let follow_at_ms = if chance.percent(50) { 0 } else { chance.between(0, load_ms) };
        let mut follower_settings = index_settings(chance, true);
        if chance.percent(20) {
            follower_settings["index.translog.durability"] = json!("async");
            let interval_ms = chance.magnitude(100, 60_000);
            follower_settings["index.translog.sync_interval"] = json!(format!("{interval_ms}ms"));
        }
        let mut scenario = Scenario {
            seed: case.seed,
            leaders,
            followers,
            last: 0,
            searchers: chance.between(0, 2),
            shards: chance.between(1, 2) as u32,
            leader_replicas: replicas(chance, leaders),
            follower_replicas: replicas(chance, followers),
            rtt_ms: chance.magnitude(1, 150),
            rate_bytes_per_s: 1000 * chance.magnitude(20, 20_000),
            leader_settings: index_settings(chance, false),
            follower_settings,
            parameters: parameters(chance),
            follow_at_ms,
            load_ms,
            writers,
            requests_max: case.requests.unwrap_or(u64::MAX),
            patience_ms: chance.one_of(&[10_000, 100_000]),
            machines,
            faults: Vec::new(),
        };
        let pairs = if is_of_nodes { Kind::two_of(&Kind::OF_NODES) } else { Kind::pairs() };
        let turn = case.seed / SHAPES.len() as u64 % pairs.len() as u64;
        scenario.faults = scenario.pair_of_faults(chance, pairs[turn as usize]);
        scenario
    }

    /// The pair whose turn it is, often with another fault in its company.
    fn pair_of_faults(
        &self,
        chance: &mut Chance,
        (mut first, mut second): (Kind, Kind),
    ) -> Vec<Fault> {
        if chance.percent(50) {
            std::mem::swap(&mut first, &mut second);
        }
        let nodes: Nodes = [self.leaders, self.followers, 0];
        let is_followers = [first, second]
            .iter()
            .any(|kind| matches!(kind, Kind::PauseFollowing | Kind::Unfollow));
        let (side, node) = some_node(chance, nodes, if is_followers { 20 } else { 60 });
        let on_this_side = nodes[side as usize];
        let (other_side, other) = match chance.between(0, 99) {
            0..60 => {
                (side, (node + chance.between(0, on_this_side as u64 - 1) as usize) % on_this_side)
            }
            60..85 => (side, node),
            _ => some_node(chance, nodes, 50),
        };
        let at_ms = match chance.between(0, 99) {
            0..35 => chance.between(0, self.load_ms),
            // About the last writes: nothing that comes later mends what they leave.
            35..70 => self.load_ms.saturating_sub(chance.magnitude(1, 400)),
            // About the first recoveries.
            _ => self.follow_at_ms + chance.magnitude(1, 2_000),
        };
        // The longest are longer than any request waits.
        let lasts = |chance: &mut Chance| match chance.percent(25) {
            true => chance.between(40_000, 120_000),
            false => chance.magnitude(5, 40_000),
        };
        let lasts_ms = lasts(chance);
        let first = Fault { at_ms, lasts_ms, what: first.at(chance, side, node) };
        let what = second.at(chance, other_side, other);
        let second = match chance.between(0, 99) {
            0..40 => {
                Fault { at_ms: at_ms + chance.between(0, lasts_ms), lasts_ms: lasts(chance), what }
            }
            40..70 => {
                let at_ms = at_ms + chance.magnitude(1, 50).min(lasts_ms);
                Fault { at_ms, lasts_ms: lasts(chance), what }
            }
            // It takes over from the first.
            _ => {
                let before_ms = chance.magnitude(1, 300).min(lasts_ms);
                let at_ms = at_ms + lasts_ms - before_ms;
                Fault { at_ms, lasts_ms: before_ms + lasts(chance), what }
            }
        };
        let mut faults = vec![first, second];
        if chance.percent(50) {
            let kinds = [Kind::Kill, Kind::Pause, Kind::CutOff, Kind::FullDisk, Kind::Flush];
            let (side, node) =
                if chance.percent(60) { (side, 0) } else { some_node(chance, nodes, 50) };
            let what = chance.one_of(&kinds).at(chance, side, node);
            let at_ms = at_ms.saturating_sub(100) + chance.magnitude(1, 1_000);
            faults.push(Fault { at_ms, lasts_ms: lasts(chance), what });
        }
        faults
    }
}
