//! The policies beside each other on the cases that matter.

use super::simulator::{Arrival, Case, NodeModel, run};
use super::tests::POLICIES;
use super::{ArsForm, Policy};

const SEED: u64 = 42;

fn base(replicas: usize) -> Case {
    let nodes = vec![NodeModel::default(); 5];
    let shards = (0..5).map(|s| (0..=replicas).map(|r| (s + r) % 5).collect()).collect();
    Case {
        nodes,
        shards,
        coordinators: 1,
        arrival: Arrival::Closed(100),
        requests: 8_000,
        warm_up: 1_000,
        seed: SEED,
    }
}

fn loaded(mut case: Case) -> Case {
    case.nodes[2].competitors = 32.0;
    case
}

fn cases() -> Vec<(&'static str, Case)> {
    let open = |mut case: Case, share: f64| {
        case.arrival = Arrival::Open(share * 100.0);
        case
    };
    let with = |mut case: Case, change: &dyn Fn(&mut Case)| {
        change(&mut case);
        case
    };
    let many = |coordinators: usize| move |case: &mut Case| case.coordinators = coordinators;
    let replicas = |copies: usize, clients: usize| {
        let mut case = base(1);
        case.nodes = vec![NodeModel::default(); copies];
        case.nodes[copies / 2].competitors = 32.0;
        case.shards = vec![(0..copies).collect()];
        case.arrival = Arrival::Closed(clients);
        case
    };
    vec![
        ("1 replica", base(1)),
        ("1 replica, es3 loaded", loaded(base(1))),
        ("4 replicas", base(4)),
        ("4 replicas, es3 loaded", loaded(base(4))),
        ("1 replica, all nodes", with(base(1), &many(6))),
        ("4 replicas, es3 loaded, 20 coordinators", with(loaded(base(4)), &many(20))),
        ("open 70 %", open(base(1), 0.7)),
        ("open 90 %", open(base(1), 0.9)),
        ("open 40 %, es3 loaded", open(loaded(base(1)), 0.4)),
        ("open 70 %, es3 loaded", open(loaded(base(1)), 0.7)),
        ("open 70 %, 4 replicas, 20 coordinators", with(open(base(4), 0.7), &many(20))),
        ("open 90 %, 4 replicas, 20 coordinators", with(open(base(4), 0.9), &many(20))),
        ("cold node joins, open 60 %", with(open(base(4), 0.6), &|c| c.nodes[4].joins_s = 40.0)),
        ("fails fast, open 60 %", with(open(base(4), 0.6), &|c| c.nodes[1].failing = 1.0)),
        (
            "background on one node, open 70 %",
            with(open(base(1), 0.7), &|c| {
                c.nodes[0].competitors = 8.0;
                c.nodes[0].competing_s = (40.0, 80.0);
            }),
        ),
        (
            "one stands still for 10 s, open 70 %",
            with(open(base(1), 0.7), &|c| c.nodes[2].paused_s = (40.0, 50.0)),
        ),
        ("2 copies", replicas(2, 60)),
        ("10 copies", replicas(10, 300)),
    ]
}

#[test]
fn nothing_is_left_in_flight_whatever_fails() {
    println!("seed {SEED}");
    for policy in POLICIES {
        let mut case = base(1);
        case.requests = 600;
        case.warm_up = 10;
        case.nodes[1].failing = 0.5;
        case.nodes[2].failing = 1.0;
        // Shards whose two copies both fail end without an answer, and count as done.
        let figures = run(&case, policy);
        assert_eq!(figures.left, 0);
        assert_eq!(figures.latencies_ms.len(), case.requests - case.warm_up);
        assert!(figures.failures > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let mut case = loaded(base(4));
    case.requests = 1_000;
    for policy in POLICIES {
        let (a, b) = (run(&case, policy), run(&case, policy));
        assert_eq!((a.latencies_ms, a.by_node, a.events), (b.latencies_ms, b.by_node, b.events));
    }
}

/// Ours against the field's, over every case: no worse in throughput and tail, but for chance.
#[test]
fn narrows_is_no_worse_than_adaptive_selection_in_any_case() {
    println!("seed {SEED}");
    for (name, mut case) in cases() {
        (case.requests, case.warm_up) = (6_000, 1_000);
        let ours = run(&case, Policy::Narrows);
        let ars = run(&case, Policy::Ars(ArsForm::Corrected));
        assert!(ours.per_s > 0.96 * ars.per_s, "{name}: {} and {}", ours.per_s, ars.per_s);
        let (tail, its) = (ours.at(0.99), ars.at(0.99));
        assert!(tail < 1.06 * its, "{name}: 99th percentile {tail} and {its}");
    }
}

/// How near that is to the best there is, the plan `selection-policies` tells.
#[test]
fn at_the_same_rate_a_loaded_node_costs_narrows_less_of_everything() {
    let mut case = loaded(base(1));
    case.arrival = Arrival::Open(40.0);
    let of = |policy| run(&case, policy);
    let none = of(Policy::Rotation);
    let ars = of(Policy::Ars(ArsForm::Corrected));
    let ours = of(Policy::Narrows);
    assert!(ours.at(0.5) < none.at(0.5) && ours.at(0.5) < ars.at(0.5));
    assert!(ours.at(0.99) < 0.8 * ars.at(0.99), "{} and {}", ours.at(0.99), ars.at(0.99));
}
