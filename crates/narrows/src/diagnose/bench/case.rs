//! A case: what is injected how strongly into which surroundings, all of it drawn from one number.

use std::time::Duration;

use insight::diagnosis::Class;
use world::LinkConfig;
use world::model::{Host, Tcp};

use super::cause::{Cause, Load, Oddity};
use super::conditions::{
    BATCHES_MAX, CHUNK, CHUNKS, Conditions, Engine, OPERATIONS, SLOTS, SLOTS_ENOUGH, SOCKETS_ENOUGH,
};
use super::draw::{Draw, Turn};
use crate::diagnose::LIMIT;

/// What goes on where nothing holds anything back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Well {
    Idle,
    /// Recoveries that are over at once.
    Quick,
}

impl Well {
    fn name(self) -> &'static str {
        match self {
            Well::Idle => "nothing recovers",
            Well::Quick => "a quick recovery",
        }
    }
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Healthy(Well, Option<Load>),
    One(Cause),
    /// The first holds; once it is lifted, the second does.
    Two(Cause, Cause),
    Unknown(Oddity),
}

/// Every kind of case. Each half of the seeds goes through it. With what is drawn beside, three in ten cases are
/// healthy, and one in five has two causes; what of these is no case is drawn again (a test of `bench` reckons it). The
/// first of those with two is the chained case of the published slides: the throttle, then the disk's scheduler.
#[rustfmt::skip]
pub(crate) const DECK: [Kind; 36] = {
    use Cause::*;
    use Kind::*;
    use Well::*;
    [
        One(RateLimit), Healthy(Idle, None), Two(RateLimit, DiskScheduler), One(Latency),
        Healthy(Quick, Some(Load::Indexing)), One(Bandwidth), Two(RateLimit, Window), Healthy(Quick, None),
        One(DiskRead), Two(RateLimit, Bandwidth), One(Slots), Unknown(Oddity::SourcePauses),
        Healthy(Idle, Some(Load::Search)), One(Window), Two(Latency, RateLimit), One(Cpu),
        Healthy(Quick, Some(Load::Search)), One(Loss), Two(Bandwidth, DiskWrite), Healthy(Idle, None),
        One(DiskWrite), Two(DiskWrite, RateLimit), Two(RateLimit, DiskWrite), One(ThreadCpu),
        Two(Bandwidth, DiskRead), Two(Window, DiskWrite), One(DiskScheduler), One(Neighbour),
        Healthy(Idle, Some(Load::Indexing)), One(Block), Two(RateLimit, Cpu), Healthy(Quick, None),
        Two(RateLimit, DiskRead), Two(Window, DiskRead), Healthy(Quick, Some(Load::Indexing)),
        Unknown(Oddity::TargetPauses),
    ]
};
/// The same of nodes that run as processes on one machine, whose cores and disks are as they are.
#[rustfmt::skip]
const DECK_OF_PROCESSES: [Kind; 20] = {
    use Cause::*;
    use Kind::*;
    use Well::*;
    [
        One(RateLimit), Healthy(Idle, None), One(Latency), Two(RateLimit, Bandwidth), Healthy(Quick, None),
        One(Bandwidth), One(Slots), Two(Bandwidth, RateLimit), Healthy(Idle, Some(Load::Search)),
        Unknown(Oddity::TargetPauses), One(Window), Two(RateLimit, Bandwidth),
        Healthy(Quick, Some(Load::Indexing)), One(Block), Two(RateLimit, Window),
        Healthy(Quick, Some(Load::Search)), One(Quota), Two(Window, RateLimit),
        Healthy(Idle, Some(Load::Indexing)), Unknown(Oddity::SourcePauses),
    ]
};
/// Kinds that the embedded engine's deck has besides: its processes emulate a slow disk. The others keep the shares of
/// healthy cases and of two causes. A round trip before a limit is in this deck alone: of five such draws on OpenSearch
/// none was a case.
#[rustfmt::skip]
const OF_EMBEDDED: [Kind; 11] = {
    use Cause::*;
    use Kind::*;
    use Well::*;
    [
        One(DiskWrite), Healthy(Quick, None), Two(RateLimit, DiskWrite), One(DiskRead),
        Two(Bandwidth, RateLimit), Two(DiskWrite, RateLimit), One(Loss), Healthy(Quick, Some(Load::Search)),
        Two(RateLimit, DiskRead), Two(Latency, RateLimit), Two(DiskRead, RateLimit),
    ]
};
/// Kinds that OpenSearch's deck has besides: its nodes replay operations, collect garbage, and have disks of their own
/// where the machine lets us make such. The others keep the shares of healthy cases and of two causes.
#[rustfmt::skip]
const OF_OPENSEARCH: [Kind; 16] = {
    use Cause::*;
    use Kind::*;
    use Well::*;
    [
        One(Replay), Healthy(Quick, Some(Load::Search)), Two(Bandwidth, RateLimit), One(Collections),
        Healthy(Idle, None), Two(RateLimit, Bandwidth), One(Loss), Healthy(Quick, None), One(DiskWrite),
        Two(RateLimit, DiskWrite), Healthy(Quick, Some(Load::Indexing)), One(DiskRead),
        Two(DiskWrite, RateLimit), One(Neighbour), Two(RateLimit, DiskRead),
        Healthy(Quick, Some(Load::Search)),
    ]
};

/// Kinds that take the place of others every other time that the deck is gone through, so that all other draws stay as
/// they are. Nodes that run as processes keep the connections that they were started with, and the machine's cores.
const STAND_INS: [(Kind, Kind); 2] = [
    (Kind::One(Cause::Window), Kind::One(Cause::Sockets)),
    (Kind::One(Cause::Neighbour), Kind::One(Cause::Crowd)),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    /// 1 to 3.
    pub(crate) severity: usize,
    /// Whether cores that are slow are the source's.
    pub(crate) at_source: bool,
    /// Without anything injected.
    pub(crate) surroundings: Conditions,
}

impl Case {
    /// The case of a seed.
    pub(crate) fn of(seed: u64) -> Case {
        Case::again(seed, 0)
    }

    /// The same of a seed of which so many draws were no cases: the same kind and severity in other surroundings.
    pub(super) fn again(seed: u64, refused: u8) -> Case {
        let turn = Turn::of(seed);
        let (drawn, severity) = (turn.kind(&DECK), turn.severity(&DECK));
        let stand_in = STAND_INS.iter().find(|(of, _)| *of == drawn && turn.is_second(&DECK));
        let kind = stand_in.map_or(drawn, |(_, kind)| *kind);
        let mut draw = Draw::again(seed, refused);
        let at_source = draw.one_of(&[true, false]);
        let surroundings = surroundings(kind, &mut draw);
        Case { seed, kind, severity, at_source, surroundings }
    }

    /// The case of a seed on nodes that run as processes.
    pub(crate) fn on_processes(seed: u64, engine: Engine) -> Case {
        Case::again_on_processes(seed, engine, 0)
    }

    /// The same of a seed of which so many draws were no cases.
    pub(super) fn again_on_processes(seed: u64, engine: Engine, refused: u8) -> Case {
        let turn = Turn::of(seed);
        let deck = deck_of_processes(engine);
        let (kind, severity) = (turn.kind(&deck), turn.severity_in_turn(&deck));
        let mut draw = Draw::again(seed, refused);
        let surroundings = of_processes(kind, engine, &mut draw);
        Case { seed, kind, severity, at_source: false, surroundings }
    }

    /// The classes that are right, that which holds first; none where nothing is to be found.
    pub(crate) fn classes(&self) -> Vec<Class> {
        match self.kind {
            Kind::Healthy(..) => Vec::new(),
            Kind::One(cause) => vec![cause.class()],
            Kind::Two(first, second) => vec![first.class(), second.class()],
            Kind::Unknown(_) => vec![Class::Unknown],
        }
    }

    /// What is injected, that which holds first.
    pub(crate) fn causes(&self) -> Vec<Cause> {
        match self.kind {
            Kind::Healthy(..) | Kind::Unknown(_) => Vec::new(),
            Kind::One(cause) => vec![cause],
            Kind::Two(first, second) => vec![first, second],
        }
    }

    /// With the second of two causes injected, where the surroundings alone carry `rate` bytes a second; as it is
    /// where there is no second.
    pub(crate) fn with_second(&self, rate: f64) -> Conditions {
        let mut conditions = self.surroundings.clone();
        if let Kind::Two(_, second) = self.kind {
            conditions.inject(second, 1, self.at_source, rate);
        }
        conditions
    }

    /// With everything injected, where [`Case::with_second`] carries `rate` bytes a second.
    pub(crate) fn injected(&self, mut conditions: Conditions, rate: f64) -> Conditions {
        match self.kind {
            Kind::Healthy(..) => {}
            Kind::One(first) | Kind::Two(first, _) => {
                conditions.inject(first, self.severity, self.at_source, rate);
            }
            Kind::Unknown(oddity) => conditions.disturb(oddity, self.severity),
        }
        conditions
    }

    /// What it is about, in words.
    pub(crate) fn name(&self) -> String {
        match self.kind {
            Kind::Healthy(well, None) => format!("healthy: {}", well.name()),
            Kind::Healthy(well, Some(load)) => {
                format!("healthy: {}, {} beside", well.name(), load.name())
            }
            Kind::One(cause) => cause.name().to_owned(),
            Kind::Two(first, second) => format!("{}, then {}", first.name(), second.name()),
            Kind::Unknown(oddity) => format!("unknown: {}", oddity.name()),
        }
    }
}

impl Kind {
    fn has(self, cause: Cause) -> bool {
        match self {
            Kind::One(one) => one == cause,
            Kind::Two(first, second) => first == cause || second == cause,
            Kind::Healthy(..) | Kind::Unknown(_) => false,
        }
    }
}

fn surroundings(kind: Kind, draw: &mut Draw) -> Conditions {
    let near_ms = draw.between(0.05, 0.8);
    let far_ms = draw.between(2.0, 300.0);
    let is_near = draw.share() < 0.4;
    let mut conditions = Conditions {
        link: LinkConfig {
            rtt: Duration::from_secs_f64(if is_near { near_ms } else { far_ms } / 1e3),
            rate_bytes_per_s: draw.one_of(&[None, Some(125_000_000), Some(1_250_000_000)]),
            // A router keeps some of what waits, and drops the rest; without that, a full link only looks longer.
            queue_bytes: Some(draw.between(0.5e6, 4e6) as u64),
            tcp: Some(Tcp::default()),
            ..LinkConfig::default()
        },
        near: Host { cores: draw.one_of(&[2, 4, 8, 16]), ..Host::default() },
        far: Host { cores: draw.one_of(&[2, 4, 8, 16]), ..Host::default() },
        shards: draw.one_of(&[1, 1, 2]),
        shard_bytes: draw.between(10e9, 80e9) as u64,
        segments: draw.one_of(&[1, 5, 20]),
        recovers: true,
        load: draw.one_of(&[None, None, None, Some(Load::Search), Some(Load::Indexing)]),
        is_flushed: true,
        ..Conditions::default()
    };
    for host in [&mut conditions.near, &mut conditions.far] {
        host.disk.read_bytes_per_s = draw.between(400e6, 3e9) as u64;
        host.disk.write_bytes_per_s = draw.between(400e6, 3e9) as u64;
    }
    if let Some(limit) = draw.one_of(&[None, Some("100mb"), Some("250mb"), Some("-1")]) {
        conditions.set(LIMIT, limit);
    }
    if let Some(count) = draw.one_of(&[None, None, Some(4), Some(8)]) {
        conditions.set(CHUNKS, count);
    }
    if let Some(size) = draw.one_of(&[None, None, Some("1mb"), Some("4mb")]) {
        conditions.set(CHUNK, size);
    }
    fit(&mut conditions, kind, draw, (near_ms, far_ms));
    conditions
}

fn deck_of_processes(engine: Engine) -> Vec<Kind> {
    let own: &[Kind] = if engine == Engine::OPENSEARCH { &OF_OPENSEARCH } else { &OF_EMBEDDED };
    [&DECK_OF_PROCESSES[..], own].concat()
}

/// Small indices, and a limit that lets even these take some seconds: what is over at once is judged healthy.
fn of_processes(kind: Kind, engine: Engine, draw: &mut Draw) -> Conditions {
    let rtt_ms = draw.one_of(&[0.0, 0.0, 5.0, 15.0]);
    let shards = draw.one_of(&[1, 1, 2]);
    let mut conditions = Conditions {
        link: LinkConfig { rtt: Duration::from_secs_f64(rtt_ms / 1e3), ..LinkConfig::default() },
        engine,
        shards,
        shard_bytes: draw.between(64e6, 96e6) as u64 / u64::from(shards),
        segments: 1,
        recovers: true,
        load: draw.one_of(&[None, None, None, Some(Load::Search), Some(Load::Indexing)]),
        is_flushed: true,
        ..Conditions::default()
    };
    conditions.set(LIMIT, draw.one_of(&["10mb", "16mb"]));
    let rtt = |low_ms: f64, high_ms: f64, draw: &mut Draw| {
        Duration::from_secs_f64(draw.between(low_ms, high_ms) / 1e3)
    };
    match kind {
        Kind::Healthy(well, load) => {
            conditions.load = load;
            conditions.recovers = well != Well::Idle;
            conditions.set(LIMIT, "-1");
            conditions.link.rtt = Duration::ZERO;
            conditions.shard_bytes = draw.between(1e6, 8e6) as u64;
        }
        Kind::One(Cause::Slots) => {
            conditions.shards = draw.one_of(&[12, 16]);
            conditions.shard_bytes = draw.between(1e6, 3e6) as u64;
            conditions.set(SLOTS, SLOTS_ENOUGH);
            conditions.set(LIMIT, "-1");
            conditions.link.rtt = rtt(60.0, 120.0, draw);
        }
        Kind::One(Cause::Latency) | Kind::Two(Cause::Latency, _) => {
            // So little in flight that a short round trip holds these few bytes for some seconds.
            conditions.set(CHUNK, if matches!(kind, Kind::One(_)) { "64kb" } else { "256kb" });
            conditions.link.rtt = Duration::ZERO;
        }
        Kind::Unknown(_) | Kind::One(Cause::Collections) => {
            // The round trip alone holds, so that no limiter makes up for what a pause has left.
            conditions.set(LIMIT, "-1");
            conditions.link.rtt = rtt(60.0, 120.0, draw);
        }
        Kind::One(Cause::Quota) if engine == Engine::OPENSEARCH => {
            // The smallest part of a core with which it answers carries what the limit lets through.
            conditions.set(LIMIT, "-1");
            conditions.link.rtt = Duration::ZERO;
        }
        Kind::One(Cause::Replay) => {
            conditions.is_flushed = false;
            conditions.set(OPERATIONS, BATCHES_MAX);
            // A batch is as large: over this path its round trip takes longer than its documents.
            conditions.set(CHUNK, "256kb");
            conditions.link.rtt = rtt(60.0, 120.0, draw);
        }
        Kind::One(Cause::RateLimit | Cause::Block | Cause::Quota) => {}
        Kind::One(_) | Kind::Two(..) => {
            conditions.set(CHUNKS, 4);
            conditions.set(CHUNK, "1mb");
            if kind.has(Cause::Window) {
                conditions.link.rtt = rtt(15.0, 60.0, draw);
            }
            if kind.has(Cause::Loss) {
                // What a lossy line lets through are few chunks of 1 MB.
                conditions.set(CHUNK, "256kb");
                conditions.link.rtt = rtt(30.0, 80.0, draw);
            }
        }
    }
    conditions
}

/// Surroundings in which a kind can show at all: a path that is full needs bytes enough in flight, and no lower limit.
fn fit(conditions: &mut Conditions, kind: Kind, draw: &mut Draw, (near_ms, far_ms): (f64, f64)) {
    let rtt = |conditions: &mut Conditions, ms: f64| {
        conditions.link.rtt = Duration::from_secs_f64(ms / 1e3);
    };
    let first = match kind {
        Kind::Healthy(well, load) => {
            conditions.load = load;
            conditions.recovers = well != Well::Idle;
            conditions.set(LIMIT, "-1");
            rtt(conditions, near_ms);
            if well == Well::Quick {
                conditions.shard_bytes = draw.between(1e6, 200e6) as u64;
            }
            return;
        }
        Kind::Unknown(_) => {
            conditions.set(LIMIT, "-1");
            conditions.settings.remove(CHUNKS);
            conditions.settings.remove(CHUNK);
            return rtt(conditions, draw.between(20.0, 60.0));
        }
        Kind::One(cause) => cause,
        Kind::Two(first, second) => {
            if first != Cause::RateLimit && second != Cause::RateLimit {
                conditions.set(LIMIT, "-1");
            }
            if first == Cause::Latency { first } else { second }
        }
    };
    match first {
        Cause::RateLimit => {}
        Cause::Latency | Cause::ThreadCpu | Cause::Crowd => {
            rtt(conditions, near_ms);
            conditions.settings.remove(CHUNKS);
            conditions.settings.remove(CHUNK);
            if first == Cause::ThreadCpu {
                conditions.set(CHUNKS, 1);
                conditions.set(LIMIT, "-1");
                conditions.shards = 1;
            } else {
                // More in flight gives that much back over the longest of round trips.
                conditions.set(LIMIT, draw.one_of(&["60mb", "100mb"]));
            }
        }
        Cause::Slots => {
            // Many small shards: their round trips take longer than their bytes.
            conditions.shards = draw.one_of(&[80, 160]);
            conditions.shard_bytes = draw.between(1e6, 6e6) as u64;
            conditions.segments = 1;
            conditions.set(SLOTS, SLOTS_ENOUGH);
            rtt(conditions, far_ms.max(60.0));
        }
        Cause::Block => {}
        Cause::Sockets => {
            // Chunks take turns over the sockets. Two for each keep all of them at work.
            conditions.shards = 2;
            conditions.sockets = Some(SOCKETS_ENOUGH);
            conditions.set(CHUNKS, 8);
            conditions.set(CHUNK, "2mb");
            conditions.set(LIMIT, "200mb");
            rtt(conditions, draw.between(10.0, 60.0));
        }
        _ => {
            conditions.set(CHUNKS, 8);
            conditions.set(CHUNK, "4mb");
            conditions.set(LIMIT, draw.one_of(&["200mb", "400mb"]));
            if kind.has(Cause::Window) || kind.has(Cause::Loss) {
                rtt(conditions, far_ms.max(15.0));
            }
            if first == Cause::Loss {
                // What a lossy line lets through are few chunks of 4 MB.
                conditions.set(CHUNK, "1mb");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::SEVERITIES;
    use super::*;

    #[test]
    fn each_deck_has_what_no_class_is_for_and_the_chained_case_is_drawn() {
        let of_processes = [Engine::OURS, Engine::OPENSEARCH].map(deck_of_processes);
        for deck in [&DECK[..], &of_processes[0], &of_processes[1]] {
            let unknown = deck.iter().filter(|kind| matches!(kind, Kind::Unknown(_)));
            assert!(unknown.count() >= 2);
        }
        assert!(DECK.contains(&Kind::Two(Cause::RateLimit, Cause::DiskScheduler)));
    }

    #[test]
    fn a_seed_gives_one_case_and_its_neighbour_the_same_kind_elsewhere() {
        let (one, other) = (Case::of(42), Case::of(43));
        assert_eq!(one, Case::of(42));
        assert_eq!((one.kind, one.severity), (other.kind, other.severity));
        assert_ne!(one.surroundings, other.surroundings);
        let severities: Vec<usize> =
            (0..3).map(|turn| Case::of(turn * 2 * DECK.len() as u64).severity).collect();
        assert_eq!(severities, [1, 2, 3]);
    }

    #[test]
    fn few_sockets_and_a_neighbour_of_the_cores_are_drawn_every_other_time_with_each_severity() {
        let turn = 2 * DECK.len() as u64;
        for (of, kind) in STAND_INS {
            let first = 2 * DECK.iter().position(|one| *one == of).unwrap() as u64;
            let drawn = [0, 1, 2, 3, 4, 5].map(|nth| Case::of(first + nth * turn));
            assert_eq!(drawn.each_ref().map(|case| case.kind), [of, kind, of, kind, of, kind]);
            let mut severities = [1, 3, 5].map(|nth: usize| drawn[nth].severity);
            severities.sort_unstable();
            assert_eq!(severities, [1, 2, 3]);
        }
    }

    #[test]
    fn a_higher_severity_leaves_fewer_sockets_and_more_processes_beside() {
        let injected = |cause: Cause| {
            let is_of = |case: &Case| case.kind == Kind::One(cause);
            let mut case = (0..100_000).map(Case::of).find(is_of).unwrap();
            [1, 2, 3].map(|severity| {
                case.severity = severity;
                case.injected(case.surroundings.clone(), 100e6)
            })
        };
        assert_eq!(injected(Cause::Sockets).map(|one| one.sockets), [Some(5), Some(3), Some(1)]);
        let crowds = injected(Cause::Crowd).map(|one| (one.crowd, one.far.cores));
        assert!(crowds[0].0 < crowds[1].0 && crowds[1].0 < crowds[2].0, "{crowds:?}");
        // Each core has one at least.
        assert!(crowds.iter().all(|(crowd, cores)| crowd % cores == 0 && crowd >= cores));
    }

    #[test]
    fn what_is_drawn_again_is_of_the_same_kind_and_severity_elsewhere() {
        for seed in 0..200 {
            let (one, again) = (Case::of(seed), Case::again(seed, 1));
            assert_eq!(again, Case::again(seed, 1));
            assert_eq!((one.kind, one.severity), (again.kind, again.severity), "{seed}");
            assert_ne!(one.surroundings, again.surroundings, "{seed}");
            assert_ne!(again.surroundings, Case::again(seed, 2).surroundings, "{seed}");
            let on = |refused| Case::again_on_processes(seed, Engine::OURS, refused);
            assert_eq!(on(0), Case::on_processes(seed, Engine::OURS));
            assert_eq!((on(0).kind, on(0).severity), (on(1).kind, on(1).severity), "{seed}");
            assert_ne!(on(0).surroundings, on(1).surroundings, "{seed}");
        }
    }

    #[test]
    fn a_kind_on_processes_meets_each_severity_in_three_turns_of_the_deck() {
        for engine in [Engine::OURS, Engine::OPENSEARCH] {
            let seeds = 2 * deck_of_processes(engine).len() as u64;
            for first in (0..seeds).step_by(2) {
                let turn = |turn: u64| Case::on_processes(first + turn * seeds, engine);
                let mut severities: Vec<usize> = (0..3).map(|nth| turn(nth).severity).collect();
                severities.sort_unstable();
                assert_eq!((severities, turn(1).kind), (vec![1, 2, 3], turn(0).kind));
            }
        }
    }

    #[test]
    fn what_lifts_a_cause_changes_what_was_injected() {
        let of = |case: Case| {
            let injected = case.injected(case.with_second(100e6), 65e6);
            for cause in case.causes() {
                let mut lifted = injected.clone();
                lifted.act(cause.lifted_by()[0]);
                assert_ne!(lifted, injected, "seed {}: {}", case.seed, cause.name());
            }
        };
        (0..2 * DECK.len() as u64 * SEVERITIES).map(Case::of).for_each(of);
        for engine in [Engine::OURS, Engine::OPENSEARCH] {
            (0..160).map(|seed| Case::on_processes(seed, engine)).for_each(of);
        }
    }

    /// A kernel's own TCP and a machine's own cores are as they are; of a disk, the rates can be set.
    #[test]
    fn processes_are_asked_for_nothing_that_only_simulated_hosts_can_do() {
        for seed in 0..160 {
            let case = Case::on_processes(seed, Engine::OPENSEARCH);
            let injected = case.injected(case.with_second(16e6), 16e6);
            injected.link.check_real().unwrap();
            for host in [&injected.near, &injected.far] {
                let mut usual = Host::default();
                usual.disk.read_bytes_per_s = host.disk.read_bytes_per_s;
                usual.disk.write_bytes_per_s = host.disk.write_bytes_per_s;
                assert_eq!(*host, usual, "{seed}");
            }
            // Neighbours write to a slow disk alone: on a fast one they would not be noticed.
            assert!(injected.neighbours() == 0 || injected.has_slow_disk(), "{seed}");
        }
    }

    #[test]
    fn a_disk_of_opensearch_is_slow_to_read_slow_to_write_and_shared_and_a_limit_comes_before_it() {
        use Cause::{DiskRead, DiskWrite, Neighbour, RateLimit};
        let deck = deck_of_processes(Engine::OPENSEARCH);
        let one = [DiskRead, DiskWrite, Neighbour].map(Kind::One);
        let two = [(RateLimit, DiskRead), (RateLimit, DiskWrite), (DiskWrite, RateLimit)];
        let two = two.map(|(first, second)| Kind::Two(first, second));
        for kind in one.iter().chain(&two) {
            assert!(deck.contains(kind), "{kind:?}");
        }
        // With each severity a neighbour leaves less of the disk.
        let seeds = 2 * deck.len() as u64;
        let of = |turn: u64| {
            let case = |seed: u64| Case::on_processes(seed + turn * seeds, Engine::OPENSEARCH);
            let is_shared = |case: &Case| case.kind == Kind::One(Neighbour);
            let case = (0..seeds).map(case).find(is_shared).unwrap();
            (case.severity, case.injected(case.surroundings.clone(), 10e6).neighbours())
        };
        let mut neighbours = [0, 1, 2].map(of);
        neighbours.sort_unstable();
        assert_eq!(neighbours, [(1, 3), (2, 5), (3, 14)]);
    }
}
