//! What a hand on the settings is told of a cluster: a look of [`policy::steering`], made of observations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use policy::steering::{Foreground, Holds, Lever, Look, Role, STEERED, Verdict};
use record::observation::{Node, Observation, Recovery, Scope};
use record::units::parse_size;
use world::Time;

use super::busiest::busiest;
use super::class::Class;
use super::diagnose::Diagnosis;
use super::events::{Key, key};
use super::finding::Finding;
use super::knobs::{Knobs, SLOTS};
use super::node_span::NodeSpan;
use super::repository_limit::is_of_repository;
use super::series::{Series, Transfer};
use super::waiting::unassigned;

const OPERATIONS: (&str, &str) = ("indices.recovery.max_concurrent_operations", "1");

/// A recovery that was seen.
#[derive(Clone, Debug)]
struct Seen {
    first: Time,
    bytes: u64,
    ops: u64,
}

/// Makes looks; it sums over recoveries that come and go, so that it is told of every observation.
#[derive(Clone, Debug, Default)]
pub struct Onlooker {
    seen: BTreeMap<Key, Seen>,
    levers: BTreeMap<String, Lever>,
    moved_bytes: u64,
    replayed_ops: u64,
}

impl Onlooker {
    /// The last observation of a series as a look. `settings_are_new` says whether that observation asked for settings,
    /// or repeats them. `diagnosis` is of the observations since the last change; `users` is what users feel, as far as
    /// observations do not tell it.
    pub fn look(
        &mut self,
        at: Time,
        series: &Series<'_>,
        settings_are_new: bool,
        diagnosis: &Diagnosis,
        users: Foreground,
    ) -> Look {
        let none = Observation::default();
        let last = series.last().unwrap_or(&none);
        let active = self.count(at, last);
        let of_nodes = self.nodes(series, users);
        let passes_in_ms = busiest(series).and_then(|busiest| busiest.passes_in_ms).unwrap_or(0.0);
        let levers = levers(series, last);
        Look {
            at,
            moved_bytes: self.moved_bytes,
            replayed_ops: self.replayed_ops,
            active,
            waiting: unassigned(last).count() as u32,
            targets: targets(last).len() as u32,
            passes_in: Duration::try_from_secs_f64(passes_in_ms / 1e3).unwrap_or_default(),
            verdicts: verdicts(series, diagnosis),
            resting: self.resting(series, &levers),
            levers,
            settings_are_new,
            foreground: of_nodes,
        }
    }

    /// The settings that ruled recoveries before and none that goes on, with their values of now.
    fn resting(&mut self, series: &Series<'_>, levers: &[Lever]) -> Vec<Lever> {
        for lever in levers {
            // As found: what it goes back to where the cluster does not tell values that nobody set.
            self.levers.entry(lever.name.clone()).or_insert_with(|| lever.clone());
        }
        let rests = |lever: &&Lever| !levers.iter().any(|one| one.name == lever.name);
        let now = |lever: &Lever| {
            let setting = series.setting_or_default(&lever.name, &lever.setting.value);
            let is_set = [&setting, &lever.setting].iter().any(|one| one.scope != Scope::Default);
            // Nobody changes a default: which one is told goes by the node that answers.
            let setting = if is_set { setting } else { lever.setting.clone() };
            Lever { setting, ..lever.clone() }
        };
        self.levers.values().filter(rests).map(now).collect()
    }

    /// Counts what recoveries did since the observation before; when those that go on were first seen.
    fn count(&mut self, at: Time, last: &Observation) -> Vec<Time> {
        let mut active = Vec::new();
        // What a recovery did before anybody looked is nobody's rate.
        let is_first_look = self.seen.is_empty() && self.moved_bytes == 0;
        for recovery in last.recoveries.iter().filter(|one| one.copies_files()) {
            let key = key(recovery);
            let bytes = recovery.recovered_bytes.unwrap_or(0);
            let ops = recovery.recovered_ops.unwrap_or(0);
            let before = self.seen.get(&key);
            let (was_bytes, was_ops) = match before {
                Some(before) => (before.bytes, before.ops),
                None if is_first_look => (bytes, ops),
                None => (0, 0),
            };
            self.moved_bytes += bytes.saturating_sub(was_bytes);
            self.replayed_ops += ops.saturating_sub(was_ops);
            let first = before.map_or(at, |before| before.first);
            if !recovery.ended {
                active.push(first);
            }
            // Also where it ended: an answer that lacks a recovery says that of one that goes on.
            self.seen.insert(key, Seen { first, bytes, ops });
        }
        // Without these a raise that makes short recoveries shorter would seem to bring nothing.
        self.moved_bytes = self.moved_bytes.saturating_add(last.unseen_bytes.unwrap_or(0));
        active
    }

    /// What statistics of nodes tell of their users, over the last two looks.
    fn nodes(&self, series: &Series<'_>, users: Foreground) -> Foreground {
        let pair = series.tail(2);
        let spans: Vec<_> = pair.nodes().collect();
        let most = |share: fn(&NodeSpan<'_>) -> Option<f64>| {
            spans.iter().filter_map(|span| share(span)).reduce(f64::max)
        };
        let rise = |counter: fn(&Node) -> Option<u64>| {
            spans.iter().filter_map(|span| span.rise(counter)).sum::<u64>()
        };
        Foreground {
            cpu: most(|span| Some(span.cpu()?.0)),
            gc: most(|span| span.share(|node| node.gc_ms)),
            tripped: users.tripped + rise(|node| Some(node.breakers_tripped.values().sum())),
            rejected: users.rejected + rise(|node| node.pressure_rejections),
            ..users
        }
    }
}

/// The nodes onto which copies recover, and those that would take one that waits once a slot is free.
fn targets(last: &Observation) -> BTreeSet<&str> {
    let goes_on = last.recoveries.iter().filter(|one| !one.ended && one.copies_files());
    let answers = last.waiting.iter().flat_map(|copy| &copy.decisions);
    let would = answers.filter(|answer| answer.decision == "THROTTLE");
    let targets = goes_on.filter_map(|one| one.target.as_deref());
    targets.chain(would.map(|answer| answer.node.as_str())).collect()
}

/// What holds recoveries, the strongest first. The limit of a repository is no setting that may be raised: it counts
/// where nothing else holds. What opens the files of its own disk passes no setting either.
fn verdicts(series: &Series<'_>, diagnosis: &Diagnosis) -> Vec<Verdict> {
    let opens = series.transfers().iter().filter(|one| !one.last().copies_files());
    let opens: BTreeSet<String> = opens.map(Transfer::name).collect();
    let of_others = diagnosis.findings.iter().filter(|one| !one.is_of(&opens));
    let mut verdicts: Vec<Verdict> = of_others.filter_map(verdict).collect();
    let is_held = |one: &Finding| is_of_repository(one) && !one.over;
    if verdicts.is_empty() && diagnosis.findings.iter().any(is_held) {
        let label = "the limit of a repository".to_owned();
        let holds = Holds::Elsewhere;
        verdicts.push(Verdict { holds, label, setting: None, gain: None, then: None });
    }
    verdicts
}

/// A finding as a verdict; none for what does not hold recoveries, or is not through yet.
fn verdict(finding: &Finding) -> Option<Verdict> {
    let setting = finding.lift.as_ref().and_then(|lift| lift.setting.clone());
    let is_steered =
        setting.as_ref().is_some_and(|name| STEERED.iter().any(|(one, ..)| one == name));
    let holds = match finding.class {
        Class::RateLimit if !is_steered => return None,
        Class::AllocationSlots if is_steered => Holds::Slots,
        class => limit_of(class)?,
    };
    Some(Verdict {
        holds,
        label: finding.class.label().to_owned(),
        setting: setting.filter(|_| is_steered),
        gain: gain_of(holds, finding.gain.as_ref().map(|gain| gain.factor), finding.next.factor),
        then: finding.next.class.and_then(limit_of),
    })
}

/// What lifting a limit brings at most. A finding promises what the value that it advises brings; a step of a limiter
/// may go further, up to the next limit.
fn gain_of(holds: Holds, advised: Option<f64>, next: Option<f64>) -> Option<f64> {
    let next = next.filter(|_| holds == Holds::Rate);
    advised.map(|gain| next.map_or(gain, |next| next.max(gain)))
}

/// Where the limit of a class lies; none where that is no recovery that goes on.
fn limit_of(class: Class) -> Option<Holds> {
    Some(match class {
        Class::RateLimit => Holds::Rate,
        Class::Latency | Class::ThreadCpu => Holds::InFlight,
        Class::OperationReplay => Holds::Operations,
        Class::Bandwidth => Holds::Path,
        Class::NoisyNeighbour => Holds::Neighbour,
        Class::Unknown => Holds::Unknown,
        // These hold copies or followers.
        Class::AllocationSlots
        | Class::AllocationBlock
        | Class::FollowerReader
        | Class::FollowerWriter
        | Class::FollowerStopped
        | Class::ReplicaRouting
        | Class::DcpMemory
        | Class::DcpConsumer
        | Class::DcpProducer => return None,
        Class::MergeThrottle
        | Class::CpuQuota
        | Class::Gc
        | Class::Cpu
        | Class::Disk
        | Class::Memory
        | Class::Proxy => Holds::Elsewhere,
    })
}

/// The settings that rule what recovers now.
fn levers(series: &Series<'_>, last: &Observation) -> Vec<Lever> {
    let flavour = series.flavour();
    // The field's engines read these when a recovery begins; the embedded one at each chunk.
    let begins = flavour != "narrows";
    let mut found: Vec<Lever> = Vec::new();
    let mut add = |name: &str, setting, role, most, later_only| {
        let is_there = series.setting(name).is_some() || !series.tells_defaults();
        if is_there && !found.iter().any(|lever| lever.name == name) {
            found.push(Lever { name: name.to_owned(), role, setting, most, later_only });
        }
    };
    let today = |(name, default): (&str, &str)| series.setting_or_default(name, default);
    let goes_on = |recovery: &&Recovery| !recovery.ended && recovery.copies_files();
    for recovery in last.recoveries.iter().filter(goes_on) {
        let knobs = Knobs::of(recovery, series);
        // One value for all would slow nodes down that let more through by default.
        let slows = |(_, default): &(&str, &str)| {
            parse_size(default).is_ok_and(|bytes| knobs.slowed_by(bytes, series).is_some())
        };
        // That of a node of no tier: which default is told goes by the node that answered.
        if let Some((name, _)) = knobs.rate.filter(|rate| !slows(rate))
            && let Some((setting, _)) = knobs.limiter_of("", series)
        {
            add(name, setting, Role::Rate, None, false);
        }
        // A scheduler that chooses what is in flight leaves nothing to set.
        if let Some((name, default, most)) = knobs.chunks_setting(series) {
            let setting = today((name, default));
            add(name, setting, Role::Chunks, Some(u64::from(most)), begins);
        }
        if let (Some(name), Some(_)) = (knobs.chunk_setting(series), knobs.chunk_bytes(series)) {
            add(name, today((name, knobs.chunk.1)), Role::ChunkSize, None, begins);
        }
        // The embedded engine takes no other value than 1.
        if begins && !recovery.is_from_remote() {
            add(OPERATIONS.0, today(OPERATIONS), Role::Operations, None, true);
        }
    }
    add(SLOTS.0, today(SLOTS), Role::Slots, None, false);
    found
}

#[cfg(test)]
mod tests {
    use record::observation::{Decision, Identity, Setting, WaitingCopy};

    use super::*;

    fn recovery(start_ms: u64, bytes: u64, ended: bool) -> Recovery {
        Recovery {
            index: "logs".into(),
            kind: "PEER".into(),
            stage: "INDEX".into(),
            start_ms: Some(start_ms),
            recovered_bytes: Some(bytes),
            ended,
            ..Recovery::default()
        }
    }

    fn look(onlooker: &mut Onlooker, s: u64, recoveries: Vec<Recovery>) -> Look {
        sees(onlooker, s, &Observation { recoveries, ..Observation::default() })
    }

    fn sees(onlooker: &mut Onlooker, s: u64, seen: &Observation) -> Look {
        let series = Series::new([(s as f64 * 1e3, seen)]);
        let diagnosis = super::super::diagnose(&series);
        onlooker.look(Time(s * 1_000_000_000), &series, true, &diagnosis, Foreground::default())
    }

    #[test]
    fn bytes_are_summed_over_recoveries_that_come_and_go() {
        let mut onlooker = Onlooker::default();
        assert_eq!(look(&mut onlooker, 0, vec![recovery(1, 500, false)]).moved_bytes, 0);
        assert_eq!(look(&mut onlooker, 1, vec![recovery(1, 700, false)]).moved_bytes, 200);
        let last = vec![recovery(1, 900, true), recovery(2, 50, false)];
        let found = look(&mut onlooker, 2, last);
        assert_eq!((found.moved_bytes, found.active), (450, vec![Time(2_000_000_000)]));
        assert_eq!(look(&mut onlooker, 3, vec![recovery(2, 150, false)]).moved_bytes, 550);
    }

    #[test]
    fn bytes_of_recoveries_between_two_looks_are_counted() {
        let mut onlooker = Onlooker::default();
        look(&mut onlooker, 0, vec![recovery(1, 500, false)]);
        let recoveries = vec![recovery(1, 900, true), recovery(3, 50, false)];
        let seen = Observation { recoveries, unseen_bytes: Some(700), ..Observation::default() };
        let found = sees(&mut onlooker, 1, &seen);
        assert_eq!((found.moved_bytes, found.active.len()), (400 + 50 + 700, 1));
    }

    #[test]
    fn a_recovery_that_an_answer_lacks_is_not_counted_again() {
        let mut onlooker = Onlooker::default();
        look(&mut onlooker, 0, vec![recovery(1, 500, false)]);
        // The sampler takes what is not in an answer for ended.
        assert_eq!(look(&mut onlooker, 1, vec![recovery(1, 500, true)]).active, []);
        assert_eq!(look(&mut onlooker, 2, Vec::new()).moved_bytes, 0);
        let back = look(&mut onlooker, 3, vec![recovery(1, 700, false)]);
        assert_eq!((back.moved_bytes, back.active), (200, vec![Time(0)]), "nor is it new");
    }

    #[test]
    fn what_waits_is_of_the_nodes_that_take_copies_now_or_once_a_slot_is_free() {
        let onto = |target: &str, ended| Recovery {
            target: Some(target.to_owned()),
            ..recovery(1, 0, ended)
        };
        let says = |node: &str, decision: &str| Decision {
            node: node.to_owned(),
            decider: "throttling".to_owned(),
            decision: decision.to_owned(),
            explanation: String::new(),
        };
        let decisions = vec![says("b", "THROTTLE"), says("c", "THROTTLE"), says("d", "NO")];
        let seen = Observation {
            recoveries: vec![onto("a", false), onto("b", false), onto("e", true)],
            waiting: [WaitingCopy { decisions, ..WaitingCopy::default() }].into(),
            ..Observation::default()
        };
        assert_eq!(targets(&seen), BTreeSet::from(["a", "b", "c"]));
    }

    #[test]
    fn a_setting_whose_recoveries_have_ended_is_looked_at_and_not_moved() {
        const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
        let mut onlooker = Onlooker::default();
        let names = |levers: &[Lever]| -> Vec<String> {
            levers.iter().map(|lever| lever.name.clone()).collect()
        };
        let first = look(&mut onlooker, 0, vec![recovery(1, 500, false)]);
        assert!(names(&first.levers).contains(&LIMIT.to_owned()) && first.resting.is_empty());
        let ended = look(&mut onlooker, 1, vec![recovery(1, 900, true)]);
        assert_eq!(names(&ended.levers), [SLOTS.0], "it rules no recovery");
        let resting = |look: &Look| -> Option<Setting> {
            let found = look.resting.iter().find(|lever| lever.name == LIMIT);
            found.map(|lever| lever.setting.clone())
        };
        assert!(resting(&ended).is_some());
        let set = Setting { value: "3mb".into(), scope: Scope::Persistent };
        let settings = Some(BTreeMap::from([(LIMIT.to_owned(), set.clone())]));
        let seen = Observation { settings, ..Observation::default() };
        let later = sees(&mut onlooker, 2, &seen);
        assert_eq!(resting(&later), Some(set), "with its value of now");
    }

    #[test]
    fn a_higher_limit_promises_what_lies_below_the_next_one_and_not_what_one_value_brings() {
        assert_eq!(gain_of(Holds::Rate, Some(2.0), Some(30.0)), Some(30.0));
        assert_eq!(gain_of(Holds::Rate, Some(2.0), None), Some(2.0));
        assert_eq!(gain_of(Holds::InFlight, Some(2.0), Some(30.0)), Some(2.0));
    }

    #[test]
    fn a_setting_that_the_cluster_does_not_have_is_none_to_move() {
        let set = |value: &str| Setting { value: value.into(), scope: Scope::Default };
        let settings = BTreeMap::from([
            ("indices.recovery.max_bytes_per_sec".to_owned(), set("40mb")),
            ("indices.recovery.max_concurrent_file_chunks".to_owned(), set("2")),
        ]);
        let seen = Observation {
            recoveries: vec![recovery(1, 0, false)],
            settings: Some(settings),
            ..Observation::default()
        };
        let names = |seen: &Observation| -> Vec<String> {
            let found = levers(&Series::new([(0.0, seen)]), seen);
            found.into_iter().map(|lever| lever.name).collect()
        };
        let expected =
            ["indices.recovery.max_bytes_per_sec", "indices.recovery.max_concurrent_file_chunks"];
        assert_eq!(names(&seen), expected);
        // Nor one whose value for all would slow down a node of Elasticsearch's cold tier.
        let cluster = Identity {
            flavour: "elasticsearch".into(),
            version: "8.15.0".into(),
            ..Identity::default()
        };
        let cold = Node {
            name: "c".into(),
            roles: vec!["data_cold".into()],
            memory_bytes: Some(64 << 30),
            ..Node::default()
        };
        let mut seen = Observation { cluster, nodes: vec![cold], ..seen };
        assert_eq!(names(&seen), expected[1..]);
        // Hardly anything recovers onto a node of the frozen tier, and what it has is nobody else's default.
        seen.nodes[0].roles = vec!["data_frozen".into()];
        seen.settings.as_mut().unwrap().insert(expected[0].to_owned(), set("250mb"));
        let found = levers(&Series::new([(0.0, &seen)]), &seen);
        assert_eq!((&*found[0].name, &*found[0].setting.value), (expected[0], "40mb"));
    }
}
