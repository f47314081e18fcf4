//! What is told over time: when a cluster will be green, what happened between looks, what flows between nodes.

use insight::diagnosis::{
    Diagnosis, Event, EventFinder, Series, TimeToGreen, Topic, diagnose, flows, paces,
    time_to_green,
};
use record::observation::{Gap, Health, Observation, Recovery, Scope, WaitingCopy};

use crate::common::{MAX_BYTES, MB, cluster, node, recovery, settings, settings_of};

fn copy(index: &str, state: &str, node: Option<&str>) -> WaitingCopy {
    WaitingCopy {
        index: index.into(),
        state: state.into(),
        node: node.map(str::to_owned),
        reason: Some("NODE_LEFT".into()),
        ..WaitingCopy::default()
    }
}

/// Second `s` of a yellow cluster with one recovery of 50 GB at 40 MB/s, and so many copies that wait for a slot.
fn look(s: u64, unassigned: u64) -> Observation {
    let mut waiting = vec![copy("logs", "INITIALIZING", Some("b"))];
    waiting.extend((0..unassigned).map(|_| copy("logs", "UNASSIGNED", None)));
    Observation {
        cluster: cluster("opensearch"),
        health: Some(Health {
            status: "yellow".into(),
            initializing: Some(1),
            unassigned: Some(unassigned),
            delayed: Some(0),
            ..Health::default()
        }),
        nodes: vec![node("a", s), node("b", s)],
        recoveries: vec![recovery("logs", s, 40 * MB)],
        waiting: waiting.into(),
        ..Observation::default()
    }
}

/// Looks a second apart.
fn series(looks: &[Observation]) -> Series<'_> {
    Series::new(looks.iter().enumerate().map(|(s, look)| (s as f64 * 1e3, look)))
}

fn green(looks: &[Observation]) -> TimeToGreen {
    let series = series(looks);
    time_to_green(&series, &paces(&series), &diagnose(&series))
}

#[track_caller]
fn within(found: &TimeToGreen) -> (f64, f64, &str) {
    match found {
        TimeToGreen::Within { soon_s, late_s, rests_on } => (*soon_s, *late_s, rests_on),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn unknown(found: &TimeToGreen, words: &str) {
    assert!(matches!(found, TimeToGreen::Unknown { why } if why.contains(words)), "{found:?}");
    assert_eq!(found.words(), "unknown");
}

#[test]
fn one_recovery_is_as_long_as_it_takes_itself() {
    let looks: Vec<_> = (0..=9).map(|s| look(s, 0)).collect();
    let found = green(&looks);
    // 50 GB at 40 MB/s, less what came in 10 s.
    let (soon, late, rests_on) = within(&found);
    assert!(soon < 1240.0 && 1240.0 < late && late < 1500.0, "{soon} {late}");
    assert!(rests_on.starts_with("1 recovery at its current rate"), "{rests_on}");
}

#[test]
fn copies_that_wait_come_on_top_and_their_size_is_said() {
    let one: Vec<_> = (0..=9).map(|s| look(s, 0)).collect();
    let four: Vec<_> = (0..=9).map(|s| look(s, 3)).collect();
    let (one, four) = (green(&one), green(&four));
    let ((soon, late, _), (soon_4, late_4, rests_on)) = (within(&one), within(&four));
    assert!(soon_4 > 3.5 * soon && late_4 > 3.5 * late, "{soon_4} {late_4}");
    assert!(rests_on.contains("3 copies that wait") && rests_on.contains("50.0 GB"), "{rests_on}");
}

/// The trap: at its first look a copy that got a slot has no rate, and each time that left the whole unknown.
#[test]
fn a_copy_that_just_began_shares_what_the_others_bring() {
    let plain: Vec<_> = (0..=9).map(|s| look(s, 0)).collect();
    let mut with_new = plain.clone();
    let last = with_new.last_mut().unwrap();
    last.recoveries.push(recovery("new", 0, 0));
    let new = copy("new", "INITIALIZING", Some("b"));
    last.waiting = last.waiting.iter().cloned().chain([new]).collect();
    let (one, two) = (green(&plain), green(&with_new));
    let ((soon, late, _), (soon_2, late_2, rests_on)) = (within(&one), within(&two));
    assert!(soon_2 > 1.9 * soon && late_2 > 1.9 * late, "{soon_2} {late_2}");
    assert!(rests_on.starts_with("1 recovery at its current rate and 1 more that"), "{rests_on}");
}

/// Of many small copies none is seen twice, so that none has a rate. How many are missing falls all the same.
#[test]
fn many_small_copies_are_reckoned_by_their_number() {
    let at = |came_a_s: u64| {
        let small = |s: u64| {
            let mut look = look(s, 100 - came_a_s * s);
            let name = format!("logs-{s}");
            look.recoveries = vec![Recovery { start_ms: Some(s), ..recovery(&name, 0, 0) }];
            look.waiting = [].into();
            look
        };
        green(&(0..=9).map(small).collect::<Vec<_>>())
    };
    // 64 wait and one goes on, and four come a second.
    let found = at(4);
    let (soon, late, rests_on) = within(&found);
    assert!(soon < 16.25 && 16.25 < late && late < 20.0, "{soon} {late}");
    assert!(rests_on.starts_with("65 copies are missing"), "{rests_on}");
    unknown(&at(0), "not known yet");
}

#[test]
fn what_cannot_be_told_is_unknown() {
    let all = |change: fn(&mut Observation)| {
        let mut looks: Vec<_> = (0..=9).map(|s| look(s, 0)).collect();
        looks.iter_mut().for_each(change);
        green(&looks)
    };
    unknown(&all(|look| look.health = None), "not told");
    unknown(&all(|look| look.recoveries.clear()), "none of them recovers");
    unknown(&all(|look| look.health.as_mut().unwrap().delayed = Some(2)), "come back: 2");
    unknown(&green(&[look(0, 0)]), "not known yet");
    assert_eq!(all(|look| look.health.as_mut().unwrap().status = "green".into()), TimeToGreen::Now);
    unknown(
        &all(|look| {
            block(look);
            look.recoveries.clear();
        }),
        "not before this is lifted",
    );
}

/// A copy of another index is said to have no place.
fn block(look: &mut Observation) {
    *look.health.as_mut().unwrap().unassigned.as_mut().unwrap() += 1;
    let blocked = WaitingCopy {
        can_allocate: Some("no".into()),
        explanation: Some("cluster.routing.allocation.enable is none".into()),
        ..copy("other", "UNASSIGNED", None)
    };
    look.waiting = look.waiting.iter().cloned().chain([blocked]).collect();
}

/// The trap: one index with more replicas than nodes keeps a cluster yellow for good, and its recoveries come all the
/// same.
#[test]
fn what_no_node_may_hold_leaves_the_time_of_the_rest() {
    for queued in [0, 2] {
        let plain: Vec<_> = (0..=9).map(|s| look(s, queued)).collect();
        let mut blocked = plain.clone();
        blocked.iter_mut().for_each(block);
        let whole = green(&plain);
        let (soon, late, rests_on) = within(&whole);
        let found = green(&blocked);
        let TimeToGreen::Partly { soon_s, late_s, rests_on: told } = &found else {
            panic!("{found:?}")
        };
        assert_eq!(*late_s, late, "{found:?}");
        assert!(*soon_s <= soon && *soon_s > 0.0, "{found:?}");
        assert!(told.starts_with(rests_on), "{told}");
        assert!(told.contains("no node may hold the replica of other[0]"), "{told}");
        assert!(found.words().starts_with("not by itself; the rest in "), "{}", found.words());
    }
}

#[test]
fn a_copy_that_only_moves_is_not_waited_for() {
    let moving = |s| {
        let mut look = look(s, 0);
        let slow = Recovery { target: Some("c".into()), ..recovery("moved", s, MB) };
        look.recoveries.push(slow);
        look
    };
    let looks: Vec<_> = (0..=9).map(moving).collect();
    let found = green(&looks);
    assert!(within(&found).1 < 1500.0, "50 GB at 1 MB/s would take 14 hours: {found:?}");
}

#[test]
fn flows_are_what_goes_between_two_nodes() {
    let with_more = |s| {
        let mut look = look(s, 0);
        let more = [("logs2", "c", 10), ("logs3", "b", 5)];
        look.recoveries.extend(more.map(|(index, target, rate)| Recovery {
            target: Some(target.into()),
            ..recovery(index, s, rate * MB)
        }));
        look
    };
    let looks: Vec<_> = (0..=3).map(with_more).collect();
    let found = flows(&paces(&series(&looks)));
    let pairs: Vec<_> =
        found.iter().map(|f| (f.source.as_str(), f.target.as_str(), f.recoveries)).collect();
    assert_eq!(pairs, [("a", "b", 2), ("a", "c", 1)]);
    assert!((found[0].bytes_per_s.unwrap() - 45e6).abs() < 1e3, "{found:?}");
}

fn nothing() -> Diagnosis {
    diagnose(&Series::new([]))
}

/// What a finder says of the second of two looks.
fn happened(before: &Observation, now: &Observation) -> Vec<String> {
    let mut finder = EventFinder::default();
    assert_eq!(finder.take(before, &nothing()), []);
    finder.take(now, &nothing()).into_iter().map(|event| event.sentence).collect()
}

#[test]
fn nodes_that_come_and_go_are_told() {
    let of = |nodes: &[(&str, u64)]| Observation {
        nodes: nodes.iter().map(|(name, s)| node(name, *s)).collect(),
        ..Observation::default()
    };
    assert_eq!(happened(&of(&[("a", 1), ("b", 1)]), &of(&[("b", 2)])), ["node a left"]);
    assert_eq!(happened(&of(&[("a", 1)]), &of(&[("a", 2), ("c", 1)])), ["node c joined"]);
    assert_eq!(happened(&of(&[("a", 9)]), &of(&[("a", 1)])), ["node a started again"]);
    let many: Vec<String> = (0..9).map(|n| format!("n{n}")).collect();
    let all: Vec<(&str, u64)> = many.iter().map(|name| (name.as_str(), 1)).collect();
    assert_eq!(happened(&of(&all), &of(&[("x", 1)]))[0], "9 nodes left, the first: node n0 left");
    // A look that did not ask for nodes says nothing of them.
    assert!(happened(&of(&[("a", 1)]), &of(&[])).is_empty());
}

#[test]
fn settings_that_somebody_changes_are_told_with_both_values() {
    let of = |value: &str, scope| Observation {
        settings: settings_of(scope, &[(MAX_BYTES, value)]),
        ..Observation::default()
    };
    let (default, set) = (Scope::Default, Scope::Persistent);
    let told = |before: &Observation, now: &Observation| happened(before, now).join("");
    let raised = told(&of("40mb", default), &of("80mb", set));
    assert_eq!(raised, format!("{MAX_BYTES} was raised from 40mb (default) to 80mb"));
    let lowered = told(&of("-1", set), &of("80mb", set));
    assert_eq!(lowered, format!("{MAX_BYTES} was lowered from -1 to 80mb"));
    let reset = told(&of("80mb", set), &of("40mb", default));
    assert_eq!(reset, format!("{MAX_BYTES} was reset from 80mb to 40mb (default)"));
    assert_eq!(told(&of("80mb", set), &of("80mb", set)), "");
    let other = Observation { settings: settings(&[("a", "x")]), ..Observation::default() };
    assert_eq!(told(&other, &Observation::default()), "");
}

#[test]
fn health_and_recoveries_are_told() {
    let mut green = look(0, 0);
    green.health.as_mut().unwrap().status = "green".into();
    (green.waiting, green.recoveries) = ([].into(), vec![]);
    let began = happened(&green, &look(1, 0));
    assert_eq!(
        began,
        [
            "health went from green to yellow",
            "index logs became yellow (NODE_LEFT)",
            "logs[0] began to recover from a to b, 50.0 GB"
        ]
    );
    let mut done = Observation { nodes: vec![], ..green };
    let gone = Recovery { ended: true, total_ms: Some(200_000), ..recovery("logs", 9, MB) };
    done.recoveries = vec![Recovery { stage: "DONE".into(), ..gone.clone() }];
    let ended = happened(&look(1, 0), &done);
    assert_eq!(
        ended,
        [
            "health went from yellow to green",
            "index logs is green again",
            "the recovery of logs[0] to b ended after 3:20"
        ]
    );
    // One that was cancelled never ended.
    done.recoveries = vec![gone];
    assert_eq!(
        happened(&look(1, 0), &done)[2],
        "the recovery of logs[0] to b is gone; it was last seen in INDEX with 10.0 MB of 50.0 GB"
    );
}

/// Neither that recoveries are gone and copies have their place, nor that they begin and lack it anew.
#[test]
fn a_question_that_failed_is_no_event() {
    let gap = |path: &str| Gap { path: path.into(), ..Gap::default() };
    let unknown = Observation {
        recoveries: vec![],
        waiting: [].into(),
        gaps: vec![gap("/_recovery"), gap("/_cat/shards")],
        ..look(1, 2)
    };
    for looks in [vec![look(0, 2), unknown.clone(), look(2, 2)], vec![unknown, look(2, 2)]] {
        let mut finder = EventFinder::default();
        for look in &looks {
            assert_eq!(finder.take(look, &nothing()), []);
        }
    }
}

#[test]
fn another_verdict_is_told_once_it_has_held() {
    let throttled = |s| {
        let mut look = look(s, 0);
        look.settings = settings(&[(MAX_BYTES, "39mb")]);
        look.recoveries[0].source_throttle_ms = Some(s * 900);
        look
    };
    let looks: Vec<_> = (0..=12).map(throttled).collect();
    let mut finder = EventFinder::default();
    let mut said: Vec<Event> = Vec::new();
    for end in 1..=looks.len() {
        said.extend(finder.take(&looks[end - 1], &diagnose(&series(&looks[..end]))));
    }
    let verdicts: Vec<_> = said.iter().filter(|one| one.topic == Topic::Verdict).collect();
    assert_eq!(verdicts.len(), 1, "{said:?}");
    assert!(verdicts[0].sentence.starts_with("rate limit: "), "{verdicts:?}");
}
