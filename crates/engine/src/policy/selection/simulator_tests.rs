//! The policies beside each other, and the oracle, on the cases that matter.

use super::simulator::{Arrival, Case, Chooser, Figures, NodeModel, run};
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
        service_ms: 160.0,
        spread: 1.0,
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
        ("fails fast, open 60 %", with(open(base(4), 0.6), &|c| c.nodes[1].failing = 0.9)),
        (
            "background on one node, open 70 %",
            with(open(base(1), 0.7), &|c| {
                c.nodes[0].competitors = 8.0;
                c.nodes[0].competing_s = (40.0, 80.0);
            }),
        ),
        ("2 copies", replicas(2, 60)),
        ("10 copies", replicas(10, 300)),
        ("100 copies", replicas(100, 3000)),
    ]
}

const POLICIES: [(&str, Chooser); 11] = [
    ("none", Chooser::Policy(Policy::Rotation)),
    ("random", Chooser::Policy(Policy::Random)),
    ("least outstanding", Chooser::Policy(Policy::LeastOutstanding)),
    ("ars 6.1", Chooser::Policy(Policy::Ars(ArsForm::Inverted))),
    ("ars 7.13", Chooser::Policy(Policy::Ars(ArsForm::Corrected))),
    ("ars 9.5", Chooser::Policy(Policy::Ars(ArsForm::QueueOnly))),
    ("c3", Chooser::Policy(Policy::C3)),
    ("two choices", Chooser::Policy(Policy::TwoChoices)),
    ("prequal", Chooser::Policy(Policy::Prequal)),
    ("narrows", Chooser::Policy(Policy::Narrows)),
    ("oracle", Chooser::Oracle),
];

fn line(name: &str, figures: &Figures) -> String {
    format!(
        "  {name:20} {:8.1} /s  p50 {:7.0}  p90 {:7.0}  p99 {:7.0}  mean {:7.0}  fail {:5} ev {} {:?}",
        figures.per_s,
        figures.at(0.5),
        figures.at(0.9),
        figures.at(0.99),
        figures.mean_ms(),
        figures.failures,
        figures.events,
        if figures.by_node.len() <= 6 { &figures.by_node[..] } else { &[] },
    )
}

#[test]
#[ignore = "prints a table"]
fn table() {
    let only = std::env::var("CASE").unwrap_or_default();
    for (name, case) in cases() {
        if !name.contains(&only) {
            continue;
        }
        println!("{name}");
        for (policy, chooser) in POLICIES {
            println!("{}", line(policy, &run(&case, chooser)));
        }
    }
}
