//! A case of a follower: what is injected how strongly into which surroundings, all of it drawn from one number. Pure.

use std::time::Duration;

use insight::diagnosis::Class;
use world::LinkConfig;
use world::model::{Host, Tcp};

use super::super::conditions::LEFT;
use super::super::draw::{Draw, Subject, Turn};
use super::super::one_cause::{CaseOf, Known, OneCause};

/// Reads under way where nobody says how many: `max_outstanding_read_requests`.
const READS: u32 = 12;
/// Operations of a request that a path or a host which is slow still carries within a look.
const FEW_OPS: u32 = 128;
/// Sockets to a proxy where nobody says how many: `proxy_socket_connections`.
const SOCKETS: u32 = 18;
/// So many times what is written is carried by that many sockets, by their windows. One shard has reads under way in
/// two thirds of them, and a read waits for its round trip besides.
const SOCKETS_CARRY: f64 = 4.0;
/// Bytes of an operation beside its document on the way, about: 30 to 50 were measured.
const OPERATION_BYTES: usize = 40;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The follower has everything, and nothing is written.
    Idle,
    /// What is written is followed at once.
    KeepsUp,
    /// Much was written a moment ago, and the follower is about to have it.
    CatchesUp,
    /// Few reads are under way, over a long path.
    FewReads,
    /// A path that carries less than is written.
    NarrowPath,
    /// The follower's cores take longer for an operation than its leader's.
    SlowCores,
    /// The follower's disk writes less than comes.
    SlowDisk,
    /// Somebody paused it.
    Paused,
    /// The leader is reached through a proxy, by few sockets over a long path.
    FewSockets,
    /// The same where these carry what is written.
    SocketsEnough,
}

/// Every kind. Four in eleven are healthy.
#[rustfmt::skip]
const DECK: [Kind; 11] = [
    Kind::FewReads, Kind::KeepsUp, Kind::SlowCores, Kind::NarrowPath, Kind::Idle, Kind::SlowDisk,
    Kind::FewReads, Kind::CatchesUp, Kind::Paused, Kind::FewSockets, Kind::SocketsEnough,
];
/// The same of followers that run as processes on one machine, whose cores are as they are.
#[rustfmt::skip]
const DECK_OF_PROCESSES: [Kind; 10] = [
    Kind::FewReads, Kind::KeepsUp, Kind::NarrowPath, Kind::SlowDisk, Kind::Idle, Kind::FewReads,
    Kind::CatchesUp, Kind::Paused, Kind::FewSockets, Kind::SocketsEnough,
];

/// Something that an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Reads,
    Path,
    Cores,
    Disks,
    Resume,
    Sockets,
}

/// Everything that a run is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) shards: u32,
    pub(crate) document_bytes: usize,
    /// What is written to the leader, a second.
    pub(crate) writes_per_s: f64,
    /// Documents that are written before anybody looks.
    pub(crate) burst: u64,
    /// The path between the clusters.
    pub(crate) link: LinkConfig,
    /// `max_outstanding_read_requests`.
    pub(crate) reads: u32,
    /// `max_read_request_operation_count` and `max_write_request_operation_count`.
    pub(crate) ops: u32,
    /// The follower's host.
    pub(crate) far: Host,
    pub(crate) is_paused: bool,
    /// Sockets to the proxy through which the leader is reached; none where it is reached at its nodes.
    pub(crate) sockets: Option<u32>,
}

pub(crate) type Case = CaseOf<Kind, Conditions>;

impl Case {
    /// The case of a follower of a seed; none of most seeds.
    pub(crate) fn of(seed: u64) -> Option<Case> {
        Case::drawn(seed, &DECK)
    }

    /// The same of followers that run as processes.
    pub(crate) fn on_processes(seed: u64) -> Option<Case> {
        let mut case = Case::drawn(seed, &DECK_OF_PROCESSES)?;
        // The kernel's own TCP runs there, and hosts are as they are.
        case.surroundings.link.queue_bytes = None;
        case.surroundings.link.tcp = None;
        case.surroundings.far = Host::default();
        Some(case)
    }

    fn drawn(seed: u64, deck: &[Kind]) -> Option<Case> {
        let turn = Turn::among(Subject::Follower, seed)?;
        let (kind, severity) = (turn.kind(deck), turn.severity_in_turn(deck));
        let surroundings = surroundings(kind, &mut Draw::of(seed.rotate_left(32)));
        Some(Case { seed, kind, severity, surroundings })
    }
}

impl OneCause for Case {
    type Conditions = Conditions;
    type Action = Action;
    const ACTIONS: &'static [Action] = &[
        Action::Reads,
        Action::Path,
        Action::Cores,
        Action::Disks,
        Action::Resume,
        Action::Sockets,
    ];

    fn known(&self) -> Known<Action> {
        use Class::{FollowerReader, FollowerStopped, FollowerWriter, Proxy};
        match self.kind {
            Kind::Idle => ("healthy: a follower that has everything", None, &[]),
            Kind::KeepsUp => ("healthy: a follower that keeps up", None, &[]),
            Kind::CatchesUp => ("healthy: a follower that catches up", None, &[]),
            // A shorter path would do as well, and nobody can shorten it.
            Kind::FewReads => {
                ("a follower's few reads", Some(FollowerReader), &[Action::Reads, Action::Path])
            }
            Kind::NarrowPath => ("a follower's narrow path", Some(FollowerReader), &[Action::Path]),
            Kind::SlowCores => ("a follower's slow cores", Some(FollowerWriter), &[Action::Cores]),
            Kind::SlowDisk => ("a follower's slow disk", Some(FollowerWriter), &[Action::Disks]),
            Kind::Paused => ("a follower that is paused", Some(FollowerStopped), &[Action::Resume]),
            Kind::FewSockets => {
                ("a follower's few sockets to a proxy", Some(Proxy), &[Action::Sockets])
            }
            Kind::SocketsEnough => ("healthy: a follower behind a proxy that keeps up", None, &[]),
        }
    }

    /// `rate` is in operations a second.
    fn injected(&self, rate: f64) -> Conditions {
        let share = LEFT[self.severity.clamp(1, LEFT.len()) - 1];
        let left = rate * share;
        let mut conditions = self.surroundings.clone();
        let Conditions { document_bytes, shards, reads, ops, .. } = self.surroundings;
        match self.kind {
            Kind::Idle | Kind::KeepsUp | Kind::CatchesUp | Kind::SocketsEnough => {}
            Kind::FewSockets => {
                let sockets = f64::from(SOCKETS) * share / SOCKETS_CARRY;
                conditions.sockets = Some((sockets.round() as u32).max(1));
            }
            Kind::FewReads => {
                let under_way = f64::from(reads * ops * shards);
                conditions.link.rtt = Duration::from_secs_f64(under_way / left);
            }
            Kind::NarrowPath => {
                conditions.link.rate_bytes_per_s = Some((left * document_bytes as f64) as u64);
            }
            Kind::SlowCores => {
                let costs = &conditions.far.costs;
                let bytes_s = document_bytes as f64 / costs.index_bytes_per_s as f64;
                let now_s = costs.index_document.as_secs_f64() + bytes_s;
                // Each shard is written by one core at a time.
                let then_s = f64::from(shards) / left;
                conditions.far.costs = costs.slowed(then_s / now_s);
            }
            Kind::SlowDisk => {
                conditions.far.disk.write_bytes_per_s = (left * document_bytes as f64) as u64;
            }
            Kind::Paused => conditions.is_paused = true,
        }
        conditions
    }

    fn act(&self, conditions: &mut Conditions, action: Action) {
        match action {
            Action::Reads => conditions.reads = READS.max(conditions.reads * 8),
            Action::Path => conditions.link = self.surroundings.link.clone(),
            Action::Cores => conditions.far.costs = self.surroundings.far.costs.clone(),
            Action::Disks => conditions.far.disk = self.surroundings.far.disk.clone(),
            Action::Resume => conditions.is_paused = false,
            Action::Sockets => conditions.sockets = conditions.sockets.map(|_| SOCKETS),
        }
    }
}

fn surroundings(kind: Kind, draw: &mut Draw) -> Conditions {
    let far_ms = draw.between(0.2, 300.0);
    let near_ms = draw.between(0.2, 3.0);
    let rtt = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    let mut conditions = Conditions {
        shards: draw.one_of(&[1, 1, 2]),
        document_bytes: draw.one_of(&[300, 1000, 2000]),
        writes_per_s: draw.between(2000.0, 4000.0),
        burst: 0,
        link: LinkConfig {
            rtt: rtt(far_ms),
            rate_bytes_per_s: draw.one_of(&[None, Some(125_000_000)]),
            queue_bytes: Some(draw.between(0.5e6, 4e6) as u64),
            tcp: Some(Tcp::default()),
            ..LinkConfig::default()
        },
        reads: READS,
        ops: draw.one_of(&[FEW_OPS, 1024, 5120]),
        far: Host { cores: draw.one_of(&[2, 4, 8]), ..Host::default() },
        is_paused: false,
        sockets: None,
    };
    match kind {
        Kind::Idle => conditions.writes_per_s = 0.0,
        Kind::KeepsUp => {
            // What is on its way is no lag.
            conditions.writes_per_s = draw.between(500.0, 2000.0);
            conditions.link.rtt = rtt(far_ms.min(100.0));
        }
        Kind::SocketsEnough => {
            conditions.writes_per_s = draw.between(500.0, 2000.0);
            conditions.link.rtt = rtt(far_ms.min(100.0));
            conditions.sockets = Some(draw.one_of(&[1, 2, 4, SOCKETS]));
        }
        Kind::FewSockets => {
            conditions.sockets = Some(SOCKETS);
            conditions.ops = FEW_OPS;
            let rtt_ms = draw.between(60.0, 200.0);
            conditions.link.rtt = rtt(rtt_ms);
            let bytes = (conditions.document_bytes + OPERATION_BYTES) as f64;
            let in_a_trip = conditions.writes_per_s * bytes * rtt_ms / 1e3;
            let window = SOCKETS_CARRY * in_a_trip / f64::from(SOCKETS);
            conditions.link.window_bytes = Some((window as u64).max(4096));
        }
        Kind::Paused => {}
        Kind::CatchesUp => {
            // A few seconds for all of it.
            conditions.writes_per_s = draw.between(100.0, 500.0);
            let per_s = draw.between(5000.0, 10_000.0);
            (conditions.reads, conditions.ops, conditions.shards) = (2, FEW_OPS, 1);
            conditions.link.rtt = rtt(f64::from(2 * FEW_OPS) / per_s * 1e3);
            conditions.burst = (per_s * draw.between(5.0, 8.0)) as u64;
        }
        Kind::FewReads => {
            conditions.reads = draw.one_of(&[1, 2, 4]);
            let under_way = draw.between(24.0, 60.0) / f64::from(conditions.shards);
            conditions.ops = (under_way / f64::from(conditions.reads)) as u32 + 1;
            conditions.link.rtt = rtt(near_ms);
        }
        Kind::NarrowPath | Kind::SlowCores | Kind::SlowDisk => {
            conditions.ops = FEW_OPS;
            conditions.link.rtt = rtt(far_ms.min(60.0));
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::super::super::one_cause::counted;
    use super::*;

    #[test]
    fn one_seed_in_five_and_its_neighbour_draw_a_follower_of_every_kind_and_severity() {
        let all: Vec<Case> = (0..330).filter_map(Case::of).collect();
        assert_eq!(counted(&all, &DECK), (66, 24));
    }

    /// A kernel's own TCP and a machine's own cores are as they are; a disk can be slow there.
    #[test]
    fn processes_are_asked_for_nothing_that_only_simulated_hosts_can_do() {
        let all: Vec<Case> = (0..300).filter_map(Case::on_processes).collect();
        assert_eq!(all.len(), 60);
        for case in &all {
            let injected = case.injected(case.surroundings.writes_per_s);
            injected.link.check_real().unwrap();
            let disk = injected.far.disk.clone();
            assert_eq!(injected.far, Host { disk, ..Host::default() }, "{case:?}");
        }
        assert_eq!(all.iter().filter(|case| case.classes().is_empty()).count(), 24);
    }

    #[test]
    fn what_is_injected_is_taken_back_by_its_own_action_alone() {
        let all = (0..330).filter_map(Case::of);
        for case in all.chain((0..300).filter_map(Case::on_processes)) {
            let injected = case.injected(case.surroundings.writes_per_s);
            assert_eq!(injected == case.surroundings, case.lifted_by().is_empty(), "{case:?}");
            for action in Case::ACTIONS {
                let mut lifted = injected.clone();
                case.act(&mut lifted, *action);
                let is_own = case.lifted_by().contains(action) && *action != Action::Reads;
                assert_eq!(lifted == case.surroundings && lifted != injected, is_own, "{case:?}");
            }
        }
    }
}
