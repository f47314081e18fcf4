//! Searches: nodes that answer them late, refuse them, or stand still, while nothing recovers.

use insight::diagnosis::{By, Class};
use record::observation::{Observation, Selection};

use super::{judge, looks_at, looks_at_rest, only};
use crate::common::{MB, node, settings};

/// Looks at a node b that answers searches late, with adaptive selection on or off, and changes to each.
fn routed(
    selects: &str,
    late_ms: u64,
    change: fn(&mut Observation, u64),
) -> Vec<(f64, Observation)> {
    looks_at_rest(|look, s| {
        let known = |(id, rank, ms): (&str, f64, u64)| {
            let response_ns = Some(ms * 1_000_000);
            let seen = Selection { rank: Some(rank), response_ns, ..Selection::default() };
            (id.to_owned(), seen)
        };
        let seen = [("id-a", 1.0, 10), ("id-b", 40.0, late_ms), ("id-c", 1.2, 12)];
        look.nodes[0].adaptive_selection = seen.map(known).into();
        look.settings = settings(&[("cluster.routing.use_adaptive_replica_selection", selects)]);
        change(look, s);
    })
}

#[test]
fn routing_is_seen() {
    let nothing = |_: &mut Observation, _: u64| ();
    let is_busy = |look: &mut Observation, _: u64| look.nodes[1].os_cpu_percent = Some(97);
    let finding = only(&routed("false", 60, nothing));
    assert_eq!((finding.class, finding.place.as_str()), (Class::ReplicaRouting, "b"));
    assert!(finding.sentence.contains("5.00 times their median time"), "{}", finding.sentence);
    assert_eq!(finding.lift.unwrap().default.as_deref(), Some("true"));
    // The node itself has nothing to do, or its cores may be why it is late.
    let idle: Vec<(Class, By)> = finding.ruled_out.iter().map(|one| (one.class, one.by)).collect();
    let figure = |class| (class, By::Figure);
    assert_eq!(idle, [Class::Cpu, Class::Disk, Class::CpuQuota, Class::Gc].map(figure));
    let busy = only(&routed("false", 60, is_busy));
    let cores = &busy.ruled_out[0];
    assert!(cores.by == By::Weaker && cores.why.contains("cores of b are busy 97 %"), "{cores:?}");
    // It works as the others do, so that it is the way to it that takes the time.
    let far = routed("false", 60, |look, _| {
        let seen = look.nodes[0].adaptive_selection.values_mut();
        seen.for_each(|seen| seen.service_ns = Some(5_000_000));
    });
    let action = only(&far).lift.unwrap().action;
    assert!(
        action.contains("less than 3 times as long as the others, so look at the way to it"),
        "{action}"
    );
    // A rank is the cube of a queue, and differs for a moment where nodes are alike.
    assert!(judge(&routed("false", 25, nothing)).findings.is_empty());
    let around = judge(&routed("true", 60, nothing));
    assert!(around.findings.is_empty());
    let [said] = &around.notes[..] else { panic!("{around:#?}") };
    assert!(said.starts_with("b answers searches far later"), "{said}");
    assert!(said.contains("sends searches around it"), "{said}");
    assert!(around.headline.starts_with("healthy: nothing recovers or waits"), "{around:#?}");
    // What it lacks is told, too.
    let said = &judge(&routed("true", 60, is_busy)).notes[0];
    let between = "their median time); a sees of b: 60 ms until its answer is here; the cores of b are busy 97 % of \
                   the time; adaptive";
    assert!(said.contains(between), "{said}");
    // Its cores may have nothing to do as they are not let run.
    let kept = routed("true", 60, |look, s| {
        look.nodes[1].cgroup_throttled_ns = Some(s * 900_000_000);
    });
    let said = &judge(&kept).notes[0];
    assert!(said.contains("; the control group of b kept it from running for"), "{said}");
}

/// The trap: averages over few searches make one of nodes that are alike late for a moment, as one of them sees it.
#[test]
fn a_node_is_blamed_where_a_second_sign_says_that_it_is_late() {
    let found = |late_ms: u64, works_ms: u64, also_late: usize| {
        let looks = looks_at_rest(move |look, s| {
            look.nodes.extend(["c", "d"].map(|name| node(name, s)));
            look.settings =
                settings(&[("cluster.routing.use_adaptive_replica_selection", "false")]);
            for (seen_by, node) in look.nodes.iter_mut().enumerate() {
                let ms = if seen_by <= also_late { late_ms } else { 14 };
                let known =
                    [("id-a", 1.0, 10, 3), ("id-b", 40.0, ms, works_ms), ("id-c", 1.2, 12, 3)];
                let known = known.map(|(id, rank, ms, works_ms)| {
                    let (service_ns, response_ns) =
                        (Some(works_ms * 1_000_000), Some(ms * 1_000_000));
                    (
                        id.to_owned(),
                        Selection { rank: Some(rank), service_ns, response_ns, queue: None },
                    )
                });
                node.adaptive_selection = known.into();
            }
        });
        judge(&looks).findings.first().map(|found| found.class)
    };
    assert_eq!(found(37, 3, 0), None, "3.08 times, as one of four sees it");
    assert_eq!(found(370, 3, 0), None, "the way from one of four to it");
    assert_eq!(found(37, 3, 1), Some(Class::ReplicaRouting), "half of them see it");
    assert_eq!(found(37, 12, 0), Some(Class::ReplicaRouting), "it works four times as long");
}

/// The trap: a manager, or a node on which nothing recovers, stands still half of the time and is called well.
#[test]
fn a_node_that_collections_stop_is_told_where_nothing_recovers() {
    let notes = |recovers: bool| {
        let diagnosis = judge(&looks_at(9 * MB, move |look, s| {
            look.recoveries.retain(|_| recovers);
            look.nodes[1].gc_ms = Some(s * 400);
        }));
        let is_found = diagnosis.findings.iter().any(|one| one.class == Class::Gc);
        (is_found, diagnosis.notes)
    };
    let (is_found, said) = notes(false);
    assert!(!is_found && said.len() == 1, "{said:?}");
    assert!(said[0].starts_with("garbage collections take 40 % of the time on b: "), "{said:?}");
    assert_eq!(notes(true), (true, Vec::new()), "a finding says it");
}

#[test]
fn a_node_that_cancels_searches_is_told_with_what_they_used_too_much_of() {
    let notes = |grows: u64| {
        judge(&looks_at_rest(move |look, s| {
            // Asked for more rarely than nodes are.
            if s.is_multiple_of(5) {
                let counts = [("cpu_usage", 7 + s * grows), ("heap_usage", 2)];
                let counts = counts.map(|(what, count)| (what.to_owned(), count));
                look.nodes[1].searches_cancelled = counts.into();
            }
            look.nodes[1].os_cpu_percent = Some(99);
        }))
        .notes
    };
    let expected = "b cancelled searches to have room (search_backpressure.mode = enforced): 30 for cpu_usage; the \
                    cores of b are busy 99 % of the time";
    assert_eq!(notes(3), [expected]);
    assert!(notes(0).is_empty(), "it cancelled some long ago");
}

#[test]
fn a_node_that_refuses_searches_is_told_with_what_it_lacks() {
    let notes = |refused: u64| {
        judge(&looks_at_rest(move |look, s| {
            look.nodes[0].searches_refused = Some(9);
            look.nodes[1].searches_refused = Some(s * refused);
            look.nodes[1].os_cpu_percent = Some(99);
        }))
        .notes
    };
    let expected = "b refused 500 searches, 50.0 a second, as its queue was full (thread_pool.search.rejected); the \
                    cores of b are busy 99 % of the time";
    assert_eq!(notes(50), [expected]);
    assert!(notes(0).is_empty(), "it refused some long ago");
    let once = judge(&looks_at_rest(|look, s| look.nodes[1].searches_refused = Some(s / 10)));
    let [once] = &once.notes[..] else { panic!("{once:#?}") };
    assert!(once.starts_with("b refused 1 search, as its queue was full"), "{once}");
}
