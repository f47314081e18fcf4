//! The cases of the document "Adaptive Replica Selection benchmarks" (2017) on the engine in virtual time: 100 clients
//! in a closed loop, each without and with adaptive selection, and with ours. Small, and for what must hold whatever
//! the figures are; those stand beside the document's in the plan `replica-selection` (`narrows published`). Of that plan
//! the crate `lab` runs the case with 4 replicas and a loaded node.
//!
//! Where each shard's turn begins is chance: a cluster that is "started fresh" keeps it to its end, and whether the
//! shards of a node have their turn there in the same searches makes one slow half of them or slows all.
//!
//! More requests than a test has: `NARROWS_NIGHT=25 cargo test --release -p engine --test it replica_selection`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::common::{Cluster, ask};
use serde_json::json;
use world::Env;
use world::model::{CoreCosts, Host};

const NODES: usize = 5;
const CLIENTS: usize = 100;
const REQUESTS: u64 = 1_600;

/// Of all cases and variants.
const SEED: u64 = 42;

/// A case of the document.
struct Case {
    name: &'static str,
    replicas: u32,
    es3_loaded: bool,
    /// Whether requests go to all nodes in turn.
    all_nodes: bool,
}

const fn case(name: &'static str, replicas: u32, es3_loaded: bool, all_nodes: bool) -> Case {
    Case { name, replicas, es3_loaded, all_nodes }
}

const CASES: [Case; 4] = [
    case("1 replica", 1, false, false),
    case("1 replica, es3 loaded", 1, true, false),
    case("4 replicas", 4, false, false),
    case("1 replica, all nodes", 1, false, true),
];

/// What a run measured.
struct Figures {
    /// Searches a second; 50th, 90th, 99th percentile in milliseconds.
    values: [f64; 4],
    /// Shard searches by node.
    by_node: Vec<u64>,
}

fn host(competitors: u32) -> Host {
    let costs = CoreCosts {
        search: Duration::from_millis(165),
        search_spread: 0.5,
        ..CoreCosts::default()
    };
    Host { cores: 16, competitors, costs, ..Host::default() }
}

fn measure(case: &'static Case, selection: &'static str) -> Figures {
    world::virtual_world::run(SEED, move |env| async move {
        let settings = [("thread_pool.search.size", "25"), ("narrows.search.selection", selection)];
        let c = Cluster::start_with(&env, "es", NODES, &settings).await;
        c.create("a", 5, case.replicas).await;
        c.index("a", 0, 50).await;
        for node in 0..NODES {
            let competitors = if case.es3_loaded && node == 2 { 32 } else { 0 };
            env.host(&format!("es-{node}")).set_host_model(host(competitors));
        }
        let before = by_node(&c).await;
        let values = closed_loop(&env, &c, case.all_nodes).await;
        let by_node = by_node(&c).await.iter().zip(&before).map(|(a, b)| a - b).collect();
        c.stop().await;
        Figures { values, by_node }
    })
}

async fn by_node(c: &Cluster) -> Vec<u64> {
    let stats = c.get("/_nodes/stats").await;
    let of = |node: usize| &stats["nodes"][format!("es-{node}")];
    let rows = of(0)["adaptive_selection"].as_object().unwrap();
    assert!(rows.values().all(|row| row["outgoing_searches"] == 0), "{rows:?}");
    (0..NODES).map(|n| of(n)["thread_pool"]["search"]["completed"].as_u64().unwrap()).collect()
}

/// Every client asks again as soon as it is answered. The first fifth warms up.
async fn closed_loop(env: &Env, c: &Cluster, all_nodes: bool) -> [f64; 4] {
    let (next, done) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let requests = testbed::night::times("searches of a case", REQUESTS) as usize;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (env2, next, done) = (env.clone(), next.clone(), done.clone());
            let nodes: Vec<_> = (0..NODES).map(|n| c.node(n).clone()).collect();
            env.spawn("a client", async move {
                while next.get() < requests {
                    next.set(next.get() + 1);
                    let node = if all_nodes { next.get() % NODES } else { 0 };
                    let began = env2.now();
                    let body = json!({"size": 0});
                    let (status, answer) = ask(&nodes[node], "POST", "/a/_search", body).await;
                    assert_eq!((status, &answer["_shards"]["failed"]), (200, &json!(0)));
                    done.borrow_mut().push((env2.now(), (env2.now() - began).as_secs_f64() * 1e3));
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let done = done.borrow();
    // At the end clients stop one by one, and the load is not what it was.
    let kept = &done[requests / 5..requests - CLIENTS];
    let span = kept[kept.len() - 1].0 - kept[0].0;
    let mut latencies: Vec<f64> = kept.iter().map(|done| done.1).collect();
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[(share * latencies.len() as f64) as usize];
    [(kept.len() - 1) as f64 / span.as_secs_f64(), at(0.5), at(0.9), at(0.99)]
}

fn change(from: &Figures, to: &Figures) -> [f64; 4] {
    std::array::from_fn(|n| (to.values[n] / from.values[n] - 1.0) * 100.0)
}

#[test]
fn a_loaded_node_is_routed_around_and_ours_is_no_worse_than_the_field_s() {
    for case in &CASES {
        let none = measure(case, "none");
        let ars = measure(case, "ars_6_1");
        let ours = measure(case, "narrows");
        let changed = change(&none, &ars);
        // "Routed away from es3": less than the others, and not nothing.
        if case.es3_loaded {
            let es3 = ars.by_node[2];
            let others = ars.by_node.iter().enumerate().filter(|(n, _)| *n != 2).map(|(_, n)| *n);
            assert!(es3 > 0 && others.min().unwrap() > es3 * 3 / 2, "{:?}", ars.by_node);
            assert!(changed[0] > 50.0 && changed[2] < -20.0, "{}: {changed:?}", case.name);
        } else {
            assert!(changed.iter().all(|change| change.abs() < 30.0), "{}: {changed:?}", case.name);
        }
        let (tail, its) = (ours.values[3], ars.values[3]);
        assert!(ours.values[0] > 0.96 * ars.values[0], "{}", case.name);
        assert!(tail < 1.06 * its, "{}: {tail} ms and {its} ms", case.name);
    }
}
