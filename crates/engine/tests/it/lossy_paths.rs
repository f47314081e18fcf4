//! The adaptive schedule on paths that lose segments, in virtual time: how many connections it opens, what they carry,
//! and what is left to another flow of the same link.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use world::model::Tcp;
use world::{Connection, Env, LinkConfig, Task, virtual_world};

use crate::common::pair::{Pair, pair_over};

const RATE: u64 = 125_000_000;
const RTT: Duration = Duration::from_millis(100);
/// Runs of documents in the index.
const RUNS: u64 = 4;
const RUN: u64 = 10_000_000;

/// A message of a foreign flow.
struct Foreign;

const FOREIGN_BYTES: u64 = 64 << 10;

testbed::stays_virtual!(Foreign, |_message| FOREIGN_BYTES);

fn line(loss: f64, queue_bytes: Option<u64>) -> LinkConfig {
    LinkConfig {
        rtt: RTT,
        rate_bytes_per_s: Some(RATE),
        queue_bytes,
        tcp: Some(Tcp { loss, ..Tcp::default() }),
        ..LinkConfig::default()
    }
}

async fn started(env: &Env, config: LinkConfig) -> Pair {
    let pair = pair_over(env, config, (2, 2), (0, 0)).await;
    let path = format!("/a/_narrows/run?documents={RUN}&source_bytes={}", RUN * 80);
    for _ in 0..RUNS {
        pair.leader.post(&path).await;
    }
    pair.leader.post("/a/_flush").await;
    pair.set(json!({ "ccr.indices.recovery.max_bytes_per_sec": "-1" })).await;
    pair
}

/// One connection, from the leader's side to the follower's, that sends all it can. Counts what arrived.
async fn foreign_flow(env: &Env, pair: &Pair) -> (Rc<Cell<u64>>, Vec<Task<()>>) {
    let (here, there) = (env.host("foreign-leader"), env.host("foreign-follower"));
    let mut listener = here.listen::<Foreign>(&here.any_address()).await.unwrap();
    let route = pair.link.route(listener.address()).await.unwrap();
    let sends = here.spawn("foreign flow", async move {
        let Connection { sender, receiver: _receiver } = listener.accept().await.unwrap();
        while sender.send(Foreign).await.is_ok() {}
    });
    let Connection { sender, mut receiver } = there.connect::<Foreign>(&route).await.unwrap();
    let arrived = Rc::new(Cell::new(0));
    let counts = arrived.clone();
    let counting = there.spawn("counts", async move {
        let _open = sender;
        while let Ok(Some(Foreign)) = receiver.recv().await {
            counts.set(counts.get() + FOREIGN_BYTES);
        }
    });
    (arrived, vec![sends, counting])
}

/// What came of a recovery.
struct Outcome {
    /// Of the files, of the link's rate.
    share: f64,
    connections_max: u64,
    /// Of the foreign flow meanwhile, of the link's rate.
    foreign: f64,
}

async fn recover(env: &Env, pair: &Pair, scheduler: &str, foreign: &Cell<u64>) -> Outcome {
    pair.set(json!({ "narrows.recovery.scheduler": scheduler })).await;
    let (began, foreign_before) = (env.now(), foreign.get());
    pair.follow("b").await;
    let rows = loop {
        let mut rows = pair.recoveries("b").await;
        rows.retain(|row| row["primary"] == true);
        if rows.len() == 2 && rows.iter().all(|row| row["stage"] == "DONE") {
            break rows;
        }
        assert!(env.now() - began < Duration::from_secs(7200), "{scheduler}");
        env.sleep(Duration::from_millis(50)).await;
    };
    let took_s = (env.now() - began).as_secs_f64();
    let sum = |of: &dyn Fn(&Value) -> &Value| -> u64 {
        rows.iter().map(|row| of(row).as_u64().unwrap()).sum()
    };
    let bytes = sum(&|row| &row["index"]["size"]["recovered_in_bytes"]);
    assert_eq!(sum(&|row| &row["narrows"]["connections"]), 0, "closed at the end");
    assert_eq!(sum(&|row| &row["narrows"]["retries"]), 0, "{rows:?}");
    let most = rows.iter().map(|row| row["narrows"]["connections_max"].as_u64().unwrap()).max();
    pair.follower.delete("/b").await;
    let of_link = |bytes: u64| bytes as f64 / took_s / RATE as f64;
    let outcome = Outcome {
        share: of_link(bytes),
        connections_max: most.unwrap(),
        foreign: of_link(foreign.get() - foreign_before),
    };
    println!(
        "{scheduler}: {:.1} % of the link over {} connections, {bytes} bytes; foreign {:.2} %",
        outcome.share * 100.0,
        outcome.connections_max,
        outcome.foreign * 100.0
    );
    outcome
}

#[test]
fn where_segments_are_lost_connections_are_opened_and_fill_the_link() {
    for (loss, least) in [(0.001, 0.4), (0.005, 0.3)] {
        virtual_world::run(1, async move |env: Env| {
            let pair = started(&env, line(loss, None)).await;
            let ours = recover(&env, &pair, "adaptive", &Cell::new(0)).await;
            assert!(ours.share > least, "{loss}: {:.3} of the link", ours.share);
            assert!(ours.connections_max > 20, "{}", ours.connections_max);
            pair.stop().await;
        });
    }
}

#[test]
fn a_path_that_loses_nothing_has_the_configured_connections() {
    virtual_world::run(1, async |env: Env| {
        let pair = started(&env, line(0.0, None)).await;
        let ours = recover(&env, &pair, "adaptive", &Cell::new(0)).await;
        assert_eq!(ours.connections_max, 2);
        assert!(ours.share > 0.85, "{:.3} of the link", ours.share);
        pair.stop().await;
    });
}

/// A queue of a bandwidth-delay product, which the foreign flow fills; what is lost then is lost to congestion.
#[test]
fn beside_a_foreign_flow_that_fills_the_link_no_connection_is_opened() {
    virtual_world::run(1, async |env: Env| {
        let pair = started(&env, line(0.0, Some(RATE / 10))).await;
        let (foreign, _tasks) = foreign_flow(&env, &pair).await;
        env.sleep(Duration::from_secs(20)).await;
        let fixed = recover(&env, &pair, "file_window", &foreign).await;
        let ours = recover(&env, &pair, "adaptive", &foreign).await;
        // Two nodes with two connections each, and one foreign: four fifths.
        assert!(ours.share <= 0.8, "{:.3} of the link", ours.share);
        assert!(
            ours.foreign >= 0.2 || ours.foreign >= 0.9 * fixed.foreign,
            "{:.3} beside {:.3}",
            ours.foreign,
            fixed.foreign
        );
        assert!(ours.connections_max <= 4, "{}", ours.connections_max);
        pair.stop().await;
    });
}

/// Of one seed a flow that loses segments by chance differs by a tenth from minute to minute.
#[test]
fn a_foreign_flow_that_loses_segments_keeps_what_it_had() {
    let of_seed = |seed: u64| {
        virtual_world::run(seed, async |env: Env| {
            let pair = started(&env, line(0.001, Some(RATE / 10))).await;
            let (foreign, _tasks) = foreign_flow(&env, &pair).await;
            env.sleep(Duration::from_secs(20)).await;
            let (before, began) = (foreign.get(), env.now());
            env.sleep(Duration::from_secs(60)).await;
            let alone_s = (env.now() - began).as_secs_f64();
            let alone = (foreign.get() - before) as f64 / alone_s / RATE as f64;
            let ours = recover(&env, &pair, "adaptive", &foreign).await;
            println!("the foreign flow alone: {:.2} %", alone * 100.0);
            assert!(ours.share > 0.5, "{:.3} of the link", ours.share);
            pair.stop().await;
            (ours.foreign, alone)
        })
    };
    let seeds = [1, 2, 3, 4].map(of_seed);
    let (beside, alone) =
        seeds.iter().fold((0.0, 0.0), |(beside, alone), one| (beside + one.0, alone + one.1));
    assert!(beside > 0.9 * alone, "{beside:.4} of {alone:.4} in {seeds:?}");
}
