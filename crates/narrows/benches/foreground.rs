//! What clients feel of a recovery that runs beside them without a throttle, and what the recovery makes of it.
//!
//! `cargo bench -p narrows --bench foreground`: clients send bulks and get documents at a steady rate, from which each
//! latency is counted from when a request was due. First alone, then beside recoveries that follow each other: with
//! five fixed chunks of 1 MB, and with the adaptive scheduler, which gives way when clients suffer.
//! NARROWS_DOCUMENTS sets the size of what is recovered, NARROWS_SECONDS how long each is measured.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::{Clusters, EmbeddedClusters};
use futures_util::future::join_all;
use lab::corpus::{BulkBodies, Corpus, Source, portions};
use serde_json::{Value, json};
use testbed::bench::Table;
use world::{Env, LinkConfig};

const BULK_CLIENTS: u32 = 2;
const BULK_DOCUMENTS: u64 = 500;
const BULK_EVERY: Duration = Duration::from_millis(25);
const GET_EVERY: Duration = Duration::from_millis(5);
/// A recovery is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

const TABLE: Table = Table {
    page: "foreground",
    name: "measured",
    columns: &["recovery", "bulk p50, p99, ms", "get p50, p99, ms", "recovery, MB/s"],
};

fn main() {
    let documents = common::sized("NARROWS_DOCUMENTS", 6_000_000);
    let seconds = common::sized("NARROWS_SECONDS", 12);
    world::real_world::run(1, async |env| {
        TABLE.begin();
        let run = Run { env: env.clone(), during: Duration::from_secs(seconds), documents };
        run.all(Kind::Peer).await;
        run.all(Kind::Remote).await;
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Peer,
    Remote,
}

struct Run {
    env: Env,
    during: Duration,
    documents: u64,
}

impl Run {
    async fn all(&self, kind: Kind) {
        let (clusters, link): (&[(&str, usize)], _) = match kind {
            Kind::Peer => (&[("leader", 2)], None),
            Kind::Remote => {
                let rtt = Duration::from_millis(10);
                let link = LinkConfig { rtt, ..LinkConfig::default() };
                (&[("leader", 1), ("follower", 1)], Some(link))
            }
        };
        let mut target = common::start(&self.env, clusters, link).await;
        common::create(&target, "leader", Corpus::Geopoint, 1).await;
        common::index(&target, "leader", Corpus::Geopoint, self.documents, 4, 5000).await;
        common::ask(&target, "leader", "POST", "/a/_flush", Value::Null).await;
        // The clients' own index: a shard on each node.
        let body = json!({
            "settings": { "number_of_shards": clusters[0].1, "number_of_replicas": 0 },
            "mappings": Corpus::Geopoint.mapping(),
        });
        common::ask(&target, "leader", "PUT", "/b", body).await;
        let path = "/_cluster/health/b?wait_for_status=green";
        common::ask(&target, "leader", "GET", path, Value::Null).await;
        common::ask(&target, "leader", "PUT", "/b/_doc/1", json!({})).await;
        let name = if kind == Kind::Peer { "peer" } else { "remote" };
        // What a first request costs is nobody's latency here.
        self.clients(&target, Duration::from_secs(2)).await;
        let alone = self.clients(&target, self.during).await;
        alone.print(&format!("{name}: none"), None);
        for (label, scheduler) in [("1 MB x 5", "file_window"), ("adaptive", "adaptive")] {
            self.set(&target, kind, scheduler).await;
            let moved = Moved::default();
            let stop = Cell::new(false);
            let clients = async {
                let latencies = self.clients(&target, self.during).await;
                stop.set(true);
                latencies
            };
            let (latencies, ()) =
                futures_util::future::join(clients, self.recoveries(&target, kind, &moved, &stop))
                    .await;
            latencies.print(&format!("{name}: {label}"), Some(&moved));
            // Until the detectors have a quiet baseline again.
            self.clients(&target, Duration::from_secs(3)).await;
        }
        target.stop().await;
    }

    async fn set(&self, target: &EmbeddedClusters, kind: Kind, scheduler: &str) {
        let settings = json!({
            "indices.recovery.max_bytes_per_sec": "-1",
            "indices.recovery.chunk_size": "1mb",
            "indices.recovery.max_concurrent_file_chunks": 5,
            "ccr.indices.recovery.max_bytes_per_sec": "-1",
            "ccr.indices.recovery.chunk_size": "1mb",
            "ccr.indices.recovery.max_concurrent_file_chunks": 5,
            "narrows.recovery.scheduler": scheduler,
        });
        let body = json!({ "persistent": settings });
        common::ask(target, "leader", "PUT", "/_cluster/settings", body).await;
        if kind == Kind::Remote {
            common::connect(&self.env, target, settings).await;
        }
    }

    /// Clients at a steady rate; answers their latencies.
    async fn clients(&self, target: &EmbeddedClusters, during: Duration) -> Latencies {
        let latencies = Rc::new(Latencies::default());
        let source = Source::Generated(Corpus::Geopoint);
        let rounds = during.as_millis() as u64 / BULK_EVERY.as_millis() as u64;
        let documents = rounds * BULK_DOCUMENTS * u64::from(BULK_CLIENTS);
        let bulks = portions(documents, BULK_CLIENTS).into_iter().enumerate().map(|(n, part)| {
            let bodies = BulkBodies::new(&source, 42, part, BULK_DOCUMENTS).expect("generated");
            let (env, latencies) = (self.env.clone(), latencies.clone());
            async move {
                // Not all at the same moment.
                env.sleep(BULK_EVERY * n as u32 / BULK_CLIENTS).await;
                let requests = bodies.map(|body| body.expect("it is generated").body);
                let began = env.now();
                join_all(requests.enumerate().map(|(round, body)| {
                    let (env, latencies) = (env.clone(), latencies.clone());
                    async move {
                        let due = began + BULK_EVERY * round as u32;
                        env.sleep_until(due).await;
                        let path = "/b/_bulk?filter_path=errors";
                        let answer = target.request("leader", "POST", path, body).await;
                        let answer = answer.and_then(|answer| answer.json()).expect("accepted");
                        assert_eq!(answer["errors"], false);
                        latencies.bulks.borrow_mut().push(env.now() - due);
                    }
                }))
                .await;
            }
        });
        let gets = async {
            let began = self.env.now();
            let rounds = during.as_millis() as u64 / GET_EVERY.as_millis() as u64;
            let all = (0..rounds).map(|round| {
                let (env, latencies) = (self.env.clone(), latencies.clone());
                async move {
                    let due = began + GET_EVERY * round as u32;
                    env.sleep_until(due).await;
                    let answer = target.request("leader", "GET", "/b/_doc/1", Bytes::new()).await;
                    answer.expect("it is there");
                    latencies.gets.borrow_mut().push(env.now() - due);
                }
            });
            join_all(all).await;
        };
        futures_util::future::join(join_all(bulks), gets).await;
        Rc::into_inner(latencies).expect("the clients have ended")
    }

    /// One recovery after another until told to stop; the last is waited for.
    async fn recoveries(
        &self,
        target: &EmbeddedClusters,
        kind: Kind,
        moved: &Moved,
        stop: &Cell<bool>,
    ) {
        while !stop.get() {
            let (cluster, row_type) = match kind {
                Kind::Peer => ("leader", "PEER"),
                Kind::Remote => ("follower", "SNAPSHOT"),
            };
            self.begin(target, kind).await;
            let row = loop {
                self.env.sleep(LOOK_EVERY).await;
                let answer = common::ask(target, cluster, "GET", "/a/_recovery", Value::Null).await;
                let rows = answer["a"]["shards"].as_array().cloned().unwrap_or_default();
                let row = rows.into_iter().find(|row| row["type"] == row_type);
                if let Some(row) = row.filter(|row| row["stage"] == "DONE") {
                    break row;
                }
            };
            let number =
                |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
            moved.bytes.set(moved.bytes.get() + number("/index/size/recovered_in_bytes"));
            moved.seconds.set(moved.seconds.get() + number("/total_time_in_millis") / 1e3);
            match kind {
                Kind::Peer => self.replicas(target, 0).await,
                Kind::Remote => {
                    common::ask(target, "follower", "DELETE", "/a", Value::Null).await;
                }
            }
        }
    }

    async fn begin(&self, target: &EmbeddedClusters, kind: Kind) {
        match kind {
            Kind::Peer => self.replicas(target, 1).await,
            Kind::Remote => common::follow(target, 0).await,
        }
    }

    async fn replicas(&self, target: &EmbeddedClusters, replicas: u32) {
        let body = json!({ "index.number_of_replicas": replicas });
        common::ask(target, "leader", "PUT", "/a/_settings", body).await;
    }
}

#[derive(Default)]
struct Moved {
    bytes: Cell<f64>,
    seconds: Cell<f64>,
}

#[derive(Default)]
struct Latencies {
    bulks: RefCell<Vec<Duration>>,
    gets: RefCell<Vec<Duration>>,
}

impl Latencies {
    fn print(&self, name: &str, moved: Option<&Moved>) {
        let pair = |all: &RefCell<Vec<Duration>>| {
            let mut all = all.borrow_mut();
            all.sort();
            let at = |part: usize| all[(all.len() - 1) * part / 100].as_secs_f64() * 1e3;
            format!("{:.1}, {:.1}", at(50), at(99))
        };
        let rate = moved
            .map(|moved| format!("{:.0}", moved.bytes.get() / moved.seconds.get().max(1e-9) / 1e6));
        let (bulks, gets) = (pair(&self.bulks), pair(&self.gets));
        TABLE.row(&[name, &bulks, &gets, &rate.unwrap_or_default()]);
    }
}
