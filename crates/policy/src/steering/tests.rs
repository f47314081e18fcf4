//! The state machine against a cluster of a few formulas.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::{Scope, Setting};
use world::Time;

use super::bounds::amount;
use super::*;

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const MB: f64 = (1 << 20) as f64;

/// Recoveries whose rate is the least of some ceilings.
struct Sim {
    now: Time,
    settings: BTreeMap<&'static str, (Role, Setting)>,
    /// Bytes a second of each chunk in flight.
    per_chunk: f64,
    /// What disks and link carry.
    knee: f64,
    moved: f64,
    later_only: bool,
    /// When the recovery that goes on began, and how long one takes; none for one that never ends.
    began: Time,
    takes: Option<Duration>,
    active: usize,
    /// Milliseconds of a search at a rate.
    search_ms: Option<Box<dyn Fn(f64) -> f64>>,
    cpu: Option<f64>,
    /// What is said to hold, where that is not what does.
    says: Option<Vec<Verdict>>,
    passes_in: Duration,
    gain: Option<f64>,
    then: Option<Holds>,
    /// Values that recoveries which go on keep to.
    obeyed: BTreeMap<&'static str, u64>,
    did: Vec<Decision>,
}

impl Sim {
    fn new(limit: &str, chunks: &str) -> Sim {
        let found = |role, value: &str, scope| (role, Setting { value: value.to_owned(), scope });
        let settings = BTreeMap::from([
            (LIMIT, found(Role::Rate, limit, Scope::Persistent)),
            (CHUNKS, found(Role::Chunks, chunks, Scope::Default)),
        ]);
        Sim {
            now: Time(0),
            settings,
            per_chunk: 1e9,
            knee: 1e9,
            moved: 0.0,
            later_only: false,
            began: Time(0),
            takes: None,
            active: 1,
            search_ms: None,
            cpu: None,
            says: None,
            passes_in: Duration::from_millis(100),
            gain: None,
            then: None,
            obeyed: BTreeMap::new(),
            did: Vec::new(),
        }
    }

    fn value(&self, name: &str) -> &str {
        &self.settings[name].1.value
    }

    fn number(&self, name: &'static str) -> f64 {
        let (role, setting) = &self.settings[name];
        let now = amount(*role, &setting.value).unwrap_or(u64::MAX);
        let obeyed = if self.later_only && name == CHUNKS { self.obeyed.get(name) } else { None };
        *obeyed.unwrap_or(&now) as f64
    }

    fn ceilings(&self) -> [(Holds, &'static str, f64); 3] {
        let slots = if self.settings.contains_key(SLOTS) { self.number(SLOTS) } else { 1.0 };
        [
            (Holds::Rate, "rate limit", self.number(LIMIT)),
            (Holds::InFlight, "latency", self.number(CHUNKS) * self.per_chunk * slots),
            (Holds::Elsewhere, "disk", self.knee),
        ]
    }

    fn rate(&self) -> f64 {
        self.ceilings().iter().map(|(.., rate)| *rate).fold(f64::MAX, f64::min)
    }

    fn look(&self) -> Look {
        let rate = self.rate();
        let (holds, label, _) = *self.ceilings().iter().find(|(.., one)| *one == rate).unwrap();
        let levers = self.settings.iter().map(|(name, (role, setting))| Lever {
            name: (*name).to_owned(),
            role: *role,
            setting: setting.clone(),
            most: (*role == Role::Chunks).then_some(8),
            later_only: self.later_only && *role == Role::Chunks,
        });
        let search_ms = self.search_ms.as_ref().map(|of| of(rate));
        let held =
            Verdict { holds, label: label.into(), setting: None, gain: self.gain, then: self.then };
        Look {
            at: self.now,
            moved_bytes: self.moved as u64,
            replayed_ops: 0,
            active: vec![self.began; self.active],
            waiting: 0,
            passes_in: self.passes_in,
            verdicts: self.says.clone().unwrap_or_else(|| vec![held]),
            levers: levers.collect(),
            settings_are_new: true,
            foreground: Foreground { search_ms, cpu: self.cpu, ..Foreground::default() },
        }
    }

    fn set(&mut self, name: &str, value: &str, scope: Scope) {
        let (_, setting) = self.settings.iter_mut().find(|(known, _)| **known == name).unwrap().1;
        *setting = Setting { value: value.to_owned(), scope };
    }

    /// Steers for some seconds; what was decided, without waiting.
    fn steer(&mut self, steering: &mut Steering, seconds: u64) -> Vec<Decision> {
        let from = self.did.len();
        for _ in 0..seconds {
            // A chunk more or less between looks.
            let lump = 1.0 + 0.02 * f64::from((self.now.0 / 1_000_000_000 % 5) as u32) - 0.04;
            self.moved += self.rate() * lump * if self.active > 0 { 1.0 } else { 0.0 };
            self.now = self.now + Duration::from_secs(1);
            if self.takes.is_some_and(|takes| self.now - self.began >= takes) {
                self.began = self.now;
                self.obeyed.clear();
            }
            let decision = steering.next(&self.look());
            match &decision {
                Decision::Set(proposal) => {
                    if self.later_only && proposal.setting == CHUNKS {
                        self.obeyed.insert(CHUNKS, self.number(CHUNKS) as u64);
                    }
                    self.set(&proposal.setting, &proposal.to, Scope::Persistent);
                }
                Decision::TakeBack(_, back) | Decision::GiveWay(back, _) => {
                    let default = back.is_as_found && back.setting == CHUNKS;
                    let scope = if default { Scope::Default } else { Scope::Persistent };
                    self.set(&back.setting, &back.to, scope);
                }
                _ => {}
            }
            if !matches!(decision, Decision::Look | Decision::Wait(_)) {
                self.did.push(decision);
            }
        }
        self.did[from..].to_vec()
    }

    fn waits(&mut self, steering: &mut Steering) -> String {
        // What is measured has its time.
        for _ in 0..10 {
            self.now = self.now + Duration::from_secs(1);
            self.moved += self.rate();
            match steering.next(&self.look()) {
                Decision::Wait(why) => return why,
                Decision::Look => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("it goes on measuring")
    }
}

fn steering() -> Steering {
    Steering::new(Time(0), Bounds::default(), Marks::default())
}

fn within(name: &str, most: &str) -> Steering {
    let mut bounds = Bounds::default();
    bounds.at_most(name, most).unwrap();
    Steering::new(Time(0), bounds, Marks::default())
}

#[test]
fn a_limit_is_raised_step_by_step_up_to_the_knee_and_no_further() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.knee = 35.0 * MB;
    let did = sim.steer(&mut steering, 120);
    // 10, 20, 40: there the disk holds.
    assert_eq!(sim.value(LIMIT), "40mb", "{did:#?}");
    let sets = did.iter().filter(|one| matches!(one, Decision::Set(_))).count();
    assert_eq!(sets, 2, "{did:#?}");
    let Decision::Keep(last) = did.last().unwrap() else { panic!("{did:#?}") };
    assert!((1.7..1.8).contains(&last.got().unwrap()), "{last:?}");
    assert!(sim.waits(&mut steering).starts_with("at the knee: disk holds"));
}

#[test]
fn what_brings_nothing_is_taken_back_and_not_tried_again() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    // The verdict blames chunks, and they are not it.
    sim.per_chunk = 5.0 * MB;
    sim.knee = 10.0 * MB;
    let did = sim.steer(&mut steering, 200);
    assert!(matches!(&did[0], Decision::Set(one) if one.setting == LIMIT), "{did:#?}");
    assert!(matches!(&did[1], Decision::TakeBack(one, back) if one.says.contains("nothing")
        && back.is_as_found && back.to == "10mb"));
    assert_eq!((did.len(), sim.value(LIMIT)), (2, "10mb"), "{did:#?}");
    assert!(sim.waits(&mut steering).contains("brings nothing"));
}

#[test]
fn never_above_what_the_user_says() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), within(LIMIT, "25mb"));
    let did = sim.steer(&mut steering, 300);
    assert_eq!(sim.value(LIMIT), "25mb", "{did:#?}");
    let values = did.iter().filter_map(|one| match one {
        Decision::Set(one) => amount(Role::Rate, &one.to),
        _ => None,
    });
    assert!(values.max() <= Some(25 << 20));
    assert!(sim.waits(&mut steering).contains("as far as it may rise"));
    // A bound below what was found lowers nothing.
    let (mut sim, mut steering) = (Sim::new("40mb", "2"), within(LIMIT, "20mb"));
    assert_eq!(sim.steer(&mut steering, 60), []);
}

#[test]
fn one_limit_after_the_other_is_lifted() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.per_chunk = 12.0 * MB;
    sim.steer(&mut steering, 300);
    assert_eq!((sim.value(LIMIT), sim.value(CHUNKS)), ("80mb", "8"));
    assert!(sim.rate() >= 79.0 * MB);
}

#[test]
fn users_that_suffer_are_given_way_within_two_looks() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    // From 30 MB/s on searches wait.
    sim.search_ms = Some(Box::new(|rate| if rate > 30.0 * MB { 80.0 } else { 10.0 }));
    let mut bad_looks = 0;
    let mut worst = 0;
    for _ in 0..1200 {
        let is_bad = sim.rate() > 30.0 * MB;
        bad_looks = if is_bad { bad_looks + 1 } else { 0 };
        worst = worst.max(bad_looks);
        sim.steer(&mut steering, 1);
    }
    assert!(worst <= 2, "users suffered for {worst} looks");
    let gave_way = sim.did.iter().filter(|one| matches!(one, Decision::GiveWay(..))).count();
    assert!((1..=6).contains(&gave_way), "{:#?}", sim.did);
    assert!(sim.rate() >= 20.0 * MB, "what did not hurt is kept: {}", sim.value(LIMIT));
    let all: usize = gave_way * 2;
    assert!(all * 100 <= 1200, "users suffered for {all} of 1200 looks");
}

#[test]
fn a_cluster_that_does_not_answer_is_given_way() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    assert!(matches!(steering.unseen(sim.now), Decision::Wait(_)), "nothing is to be taken back");
    let did = sim.steer(&mut steering, 60);
    let raised = did.iter().filter(|one| matches!(one, Decision::Set(_))).count();
    assert!(raised > 1, "{did:#?}");
    let on_trial = steering.on_trial();
    let Decision::GiveWay(back, why) = steering.unseen(sim.now) else { panic!("{did:#?}") };
    assert!(on_trial.is_none_or(|on_trial| on_trial == back), "what is on trial goes first");
    assert_eq!((back.setting.as_str(), why.as_str()), (LIMIT, "the cluster does not answer"));
    let mut last = back;
    while let Decision::GiveWay(back, _) = steering.unseen(sim.now) {
        assert_eq!(back.from, last.to, "one after the other");
        last = back;
    }
    assert!(last.is_as_found && last.to == "10mb", "{last:?}");
    assert!(steering.in_force().is_empty() && steering.on_trial().is_none());
}

#[test]
fn what_is_on_trial_is_told() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    assert_eq!(steering.on_trial(), None);
    let did = sim.steer(&mut steering, 8);
    let Some(Decision::Set(proposal)) = did.last() else { panic!("{did:#?}") };
    let back = steering.on_trial().unwrap();
    assert_eq!((&back.from, &back.to, back.is_as_found), (&proposal.to, &proposal.from, true));
}

#[test]
fn users_who_suffer_anyway_are_no_reason_to_change_what_was_found() {
    let marks = Marks { p99_ms: Some(50.0), ..Marks::default() };
    let mut steering = Steering::new(Time(0), Bounds::default(), marks);
    let mut look = Sim::new("10mb", "2").look();
    look.foreground.probes_ms = vec![90.0];
    for s in 1..60 {
        (look.at, look.moved_bytes) = (Time(s * 1_000_000_000), s * (10 << 20));
        let Decision::Wait(why) = steering.next(&look) else { panic!() };
        assert!(why.contains("suffer"), "{why}");
    }
}

#[test]
fn a_setting_that_somebody_else_changes_meanwhile_ends_it() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let did = sim.steer(&mut steering, 8);
    assert!(matches!(did.last(), Some(Decision::Set(_))), "{did:#?}");
    sim.set(LIMIT, "15mb", Scope::Persistent);
    let did = sim.steer(&mut steering, 5);
    let Some(Decision::Stop(why)) = did.last() else { panic!("{did:#?}") };
    assert_eq!(why, &format!("somebody else changes {LIMIT}: it is 15mb and was 20mb"));
    assert_eq!(sim.value(LIMIT), "15mb", "and it is left");
}

#[test]
fn a_setting_that_somebody_else_changed_first_is_left_alone_and_others_are_not() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.per_chunk = 2.0 * MB;
    sim.steer(&mut steering, 2);
    sim.set(LIMIT, "100mb", Scope::Transient);
    let did = sim.steer(&mut steering, 100);
    assert!(did.iter().any(|one| matches!(one, Decision::Leave(why) if why.contains(LIMIT))));
    assert_eq!((sim.value(LIMIT), sim.value(CHUNKS)), ("100mb", "8"), "{did:#?}");
}

#[test]
fn the_same_value_written_otherwise_is_nobodys_change() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.steer(&mut steering, 2);
    sim.set(LIMIT, "10240kb", Scope::Persistent);
    let did = sim.steer(&mut steering, 20);
    assert!(!did.iter().any(|one| matches!(one, Decision::Leave(_) | Decision::Stop(_))));
}

#[test]
fn what_only_later_recoveries_obey_is_set_where_others_begin_and_measured_once_they_have() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    sim.per_chunk = 5.0 * MB;
    sim.later_only = true;
    // One recovery without an end would never obey.
    assert_eq!(sim.steer(&mut steering, 60), []);
    assert!(sim.waits(&mut steering).contains("none was seen to begin"));
    sim.takes = Some(Duration::from_secs(25));
    let did = sim.steer(&mut steering, 300);
    assert_eq!(sim.value(CHUNKS), "8", "{did:#?}");
    let kept = did.iter().filter_map(|one| match one {
        Decision::Keep(outcome) => outcome.got(),
        _ => None,
    });
    assert!(kept.clone().count() == 2 && kept.clone().all(|got| (1.9..2.1).contains(&got)));
}

#[test]
fn a_dry_run_proposes_the_same_again_and_changes_nothing() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut proposed = 0;
    for _ in 0..30 {
        sim.moved += sim.rate();
        sim.now = sim.now + Duration::from_secs(1);
        if let Decision::Set(proposal) = steering.next(&sim.look()) {
            assert_eq!((proposal.from.as_str(), proposal.to.as_str()), ("10mb", "20mb"));
            assert_eq!(proposal.expected, Some(2.0));
            proposed += 1;
            steering.withdraw();
        }
    }
    assert!(proposed > 20, "{proposed}");
    assert!(steering.in_force().is_empty());
}

#[test]
fn a_setting_that_the_cluster_refuses_is_left() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.moved = 0.0;
    let mut proposed = 0;
    for _ in 0..60 {
        sim.moved += sim.rate();
        sim.now = sim.now + Duration::from_secs(1);
        if let Decision::Set(proposal) = steering.next(&sim.look()) {
            steering.leave(&proposal.setting);
            proposed += 1;
        }
    }
    assert_eq!(proposed, 1);
}

#[test]
fn nothing_is_begun_while_nothing_recovers() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.active = 0;
    assert_eq!(sim.steer(&mut steering, 60), []);
    assert_eq!(sim.waits(&mut steering), "nothing recovers");
    // A recovery that ends in the middle of a trial does not tell.
    sim.active = 1;
    let did = sim.steer(&mut steering, 8);
    assert!(matches!(did.last(), Some(Decision::Set(_))), "{did:#?}");
    sim.active = 0;
    let did = sim.steer(&mut steering, 90);
    assert!(matches!(&did[..], [Decision::TakeBack(one, _)] if one.after_per_s.is_none()));
    assert_eq!(sim.value(LIMIT), "10mb");
    // Nor does it say that more brings nothing: the same is tried again, later.
    sim.active = 1;
    assert_eq!(sim.steer(&mut steering, 20), []);
    assert!(sim.waits(&mut steering).contains("did not tell"));
    let did = sim.steer(&mut steering, 400);
    let kept = did.iter().filter(|one| matches!(one, Decision::Keep(_))).count();
    assert!(kept > 0 && sim.value(LIMIT) != "10mb", "{did:#?}");
}

/// Nobody knows that the change does no harm where nothing is measured with it.
#[test]
fn a_trial_that_never_tells_is_made_ever_more_rarely() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut trials = 0;
    for _ in 0..72 {
        sim.active = 1;
        trials += sim.steer(&mut steering, 8).len();
        sim.active = 0;
        sim.steer(&mut steering, 92);
        assert_eq!(sim.value(LIMIT), "10mb");
    }
    assert!((3..8).contains(&trials), "{trials} trials in two hours");
}

#[test]
fn what_is_in_force_is_told_with_what_was_found() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), within(LIMIT, "40mb"));
    sim.steer(&mut steering, 100);
    assert_eq!(steering.in_force(), BTreeMap::from([(LIMIT, ("10mb", "40mb"))]));
}

/// Steers until the limit has a value.
fn until(sim: &mut Sim, steering: &mut Steering, limit: &str) {
    for _ in 0..60 {
        if sim.value(LIMIT) == limit {
            return;
        }
        sim.steer(steering, 1);
    }
    panic!("the limit is not {limit}: {:#?}", sim.did);
}

#[test]
fn a_raise_in_a_bad_moment_is_tried_again_once_the_rate_without_it_is_worse() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    until(&mut sim, &mut steering, "20mb");
    // A disk that is slow for a while, and slower yet.
    sim.knee = 9.0 * MB;
    until(&mut sim, &mut steering, "10mb");
    sim.knee = 6.0 * MB;
    sim.steer(&mut steering, 10);
    sim.knee = 1e9;
    sim.steer(&mut steering, 30);
    assert_ne!(sim.value(LIMIT), "10mb", "{:#?}", sim.did);
}

#[test]
fn a_raise_in_a_bad_moment_that_is_over_is_not_tried_again_at_once() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    until(&mut sim, &mut steering, "20mb");
    sim.knee = 9.0 * MB;
    until(&mut sim, &mut steering, "10mb");
    sim.knee = 1e9;
    sim.steer(&mut steering, 60);
    assert_eq!(sim.value(LIMIT), "10mb", "{:#?}", sim.did);
}

#[test]
fn a_rate_that_varies_by_more_than_a_raise_may_bring_does_not_tell_and_it_is_tried_again_later() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let mut at = Vec::new();
    for second in 0..500 {
        // Every other second next to nothing goes; otherwise as much with the raise as without it.
        sim.knee = match (second % 2, sim.value(LIMIT)) {
            (0, _) => 2.0 * MB,
            (_, "10mb") => 1e9,
            _ => 9.9 * MB,
        };
        let did = sim.steer(&mut steering, 1);
        at.extend(did.iter().filter(|one| matches!(one, Decision::Set(_))).map(|_| second));
        for one in &did {
            let Decision::TakeBack(outcome, _) = one else { continue };
            assert!(outcome.says.contains("varies too much to tell"), "{outcome:?}");
        }
    }
    assert_eq!(at.len(), 2, "{:#?}", sim.did);
    assert!(at[1] - at[0] >= 300, "{at:?}");
}

/// The values that a setting was given, one after the other.
fn tried<'d>(did: &'d [Decision], name: &str) -> Vec<&'d str> {
    let sets = did.iter().filter_map(|one| match one {
        Decision::Set(proposal) if proposal.setting == name => Some(proposal.to.as_str()),
        _ => None,
    });
    sets.collect()
}

#[test]
fn a_rate_that_leaps_is_not_measured_for_long() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    let did = sim.steer(&mut steering, 16);
    assert_eq!(tried(&did, LIMIT), ["20mb", "40mb", "80mb"]);
}

#[test]
fn a_rate_that_rises_by_less_than_a_leap_is_measured_for_as_long_as_one_that_does_not() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    sim.knee = 13.0 * MB;
    let did = sim.steer(&mut steering, 11);
    assert!(matches!(&did[..], [Decision::Set(_)]), "{did:#?}");
    let did = sim.steer(&mut steering, 1);
    assert!(matches!(&did[..], [Decision::Keep(_)]), "{did:#?}");
}

#[test]
fn steps_are_larger_where_much_is_promised_and_cores_have_room_beside_users() {
    for (cpu, to) in [(Some(0.2), "40mb"), (Some(0.3), "20mb"), (None, "20mb")] {
        let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
        sim.search_ms = Some(Box::new(|_| 10.0));
        (sim.cpu, sim.gain) = (cpu, Some(8.0));
        let did = sim.steer(&mut steering, 8);
        assert_eq!(tried(&did, LIMIT), [to], "{cpu:?}");
    }
}

#[test]
fn a_limit_is_raised_far_where_what_is_in_flight_holds_next_anyway() {
    for (then, to) in [(Some(Holds::InFlight), "40mb"), (Some(Holds::Elsewhere), "20mb")] {
        let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
        (sim.gain, sim.then) = (Some(1.5), then);
        let did = sim.steer(&mut steering, 8);
        assert_eq!(tried(&did, LIMIT), [to], "{then:?}");
    }
}

/// Neither brings much alone.
#[test]
fn of_two_limits_at_nearly_the_same_rate_both_are_lifted() {
    let (mut sim, mut steering) = (Sim::new("20mb", "2"), steering());
    sim.per_chunk = 9.8 * MB;
    (sim.gain, sim.then) = (Some(1.02), Some(Holds::Rate));
    sim.steer(&mut steering, 100);
    assert_eq!((sim.value(CHUNKS), sim.value(LIMIT)), ("8", "80mb"), "{:#?}", sim.did);
}

#[test]
fn a_leap_of_what_is_expected_is_one_even_where_the_setting_was_raised_by_more() {
    let (mut sim, mut steering) = (Sim::new("10mb", "2"), steering());
    (sim.gain, sim.then) = (Some(1.5), Some(Holds::InFlight));
    sim.knee = 15.0 * MB;
    let did = sim.steer(&mut steering, 10);
    assert!(matches!(did.last(), Some(Decision::Keep(_))), "{did:#?}");
}

#[test]
fn what_is_in_flight_is_tried_where_a_path_carries_no_more_unless_it_stands_in_line_there() {
    for (passes_in_ms, values) in [(100, vec!["4", "8"]), (600, vec![])] {
        let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
        (sim.per_chunk, sim.passes_in) = (5.0 * MB, Duration::from_millis(passes_in_ms));
        sim.says = Some(vec![Verdict { holds: Holds::Path, ..Verdict::unseen() }]);
        let did = sim.steer(&mut steering, 60);
        assert_eq!(tried(&did, CHUNKS), values, "{passes_in_ms} ms");
        assert!(tried(&did, LIMIT).is_empty(), "{did:#?}");
    }
}

#[test]
fn where_nothing_visible_holds_what_is_in_flight_is_tried() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    (sim.per_chunk, sim.says) = (5.0 * MB, Some(Vec::new()));
    let did = sim.steer(&mut steering, 60);
    assert_eq!((sim.value(CHUNKS), sim.value(LIMIT)), ("8", "500mb"), "{did:#?}");
    let tells = |one: &Decision| matches!(one, Decision::Set(one) if one.expected.is_some());
    assert!(!did.iter().any(tells), "nobody promised anything: {did:#?}");
    assert!(sim.waits(&mut steering).contains("nothing visible holds"));
}

#[test]
fn where_a_large_step_brings_less_a_small_one_is_tried() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    (sim.per_chunk, sim.says) = (5.0 * MB, Some(Vec::new()));
    for _ in 0..100 {
        sim.knee = if sim.value(CHUNKS) == "8" { 8.0 * MB } else { 1e9 };
        sim.steer(&mut steering, 1);
    }
    assert_eq!((tried(&sim.did, CHUNKS), sim.value(CHUNKS)), (vec!["8", "4", "8"], "4"));
}

#[test]
fn once_slots_are_at_their_most_what_each_recovery_has_in_flight_is_raised() {
    let (mut sim, mut steering) = (Sim::new("500mb", "2"), steering());
    let setting = Setting { value: "1".to_owned(), scope: Scope::Persistent };
    sim.settings.insert(SLOTS, (Role::Slots, setting));
    sim.per_chunk = MB;
    let (setting, gain) = (Some(SLOTS.to_owned()), Some(2.0));
    sim.says = Some(vec![Verdict { holds: Holds::Slots, setting, gain, ..Verdict::unseen() }]);
    let did = sim.steer(&mut steering, 60);
    assert_eq!((tried(&did, SLOTS), tried(&did, CHUNKS)), (vec!["2", "4"], vec!["8"]), "{did:#?}");
}
