//! Events of the virtual world a second of a core, without any engine: what the world itself costs.
//!
//! `cargo bench -p world --bench events`. Through the engine: `cargo bench -p narrows --bench virtual_recovery`.

use std::time::Duration;

use testbed::bench::Table;
use world::{Connection, Env, Work};

struct Sized(u64);

testbed::stays_virtual!(Sized, |message| message.0);

const TABLE: Table = Table {
    page: "virtual_recovery",
    name: "events",
    columns: &["without an engine", "events, M", "core s", "M events/s of a core"],
};

fn main() {
    TABLE.begin();
    measure("timers: 1000 tasks sleep", async |env| {
        let tasks: Vec<_> = (0..1000)
            .map(|number| {
                let inner = env.clone();
                env.spawn("sleeps", async move {
                    for _ in 0..2000 {
                        inner.sleep(Duration::from_nanos(1000 + number)).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            let _ = task.await;
        }
    });
    measure("questions of 100 bytes, 100 connections", |env| exchange(env, 100, 3000, 100));
    measure("chunks of 512 KB, 20 connections", |env| exchange(env, 20, 5000, 512 << 10));
    measure("chunks of 32 MB, 20 connections", |env| exchange(env, 20, 500, 32 << 20));
}

fn measure<F: Future<Output = ()> + 'static>(what: &str, body: impl FnOnce(Env) -> F) {
    let began_s = core_seconds();
    let ((), trace) = world::virtual_world::run_traced(1, body).expect("it ends");
    let took_s = core_seconds() - began_s;
    let events_m = trace.events as f64 / 1e6;
    TABLE.row(&[
        what.to_owned(),
        format!("{events_m:.2}"),
        format!("{took_s:.2}"),
        format!("{:.2}", events_m / took_s),
    ]);
}

/// Seconds of a core that this process has had: other programs do not count.
fn core_seconds() -> f64 {
    world::real_world::run(0, async |env| env.cpu_time()).as_secs_f64()
}

/// Clients ask a server, which answers with `bytes`, and do some work; each question has a time limit.
async fn exchange(env: Env, connections: u64, questions: u64, bytes: u64) {
    let host = env.host("server");
    let mut listener = host.listen::<Sized>("server:9300").await.expect("it is free");
    let server = host.clone();
    host.spawn("server", async move {
        while let Ok(Connection { sender, mut receiver }) = listener.accept().await {
            let inner = server.clone();
            let answers = async move {
                while let Ok(Some(_)) = receiver.recv().await {
                    let (sender, env) = (sender.clone(), inner.clone());
                    let answer = async move {
                        env.work(Work::Hash { bytes }, || ()).await;
                        let _ = sender.send(Sized(bytes)).await;
                    };
                    inner.spawn("answers", answer).detach();
                }
            };
            server.spawn("serves", answers).detach();
        }
    })
    .detach();
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let inner = env.clone();
            env.spawn("asks", async move {
                let connected = inner.connect::<Sized>("server:9300").await;
                let Connection { sender, mut receiver } = connected.expect("it listens");
                for _ in 0..questions {
                    sender.send(Sized(100)).await.expect("it is open");
                    let answer = inner.timeout(Duration::from_secs(900), receiver.recv()).await;
                    assert!(answer.is_ok_and(|answer| answer.is_ok_and(|one| one.is_some())));
                    inner.work(Work::DiskWrite { bytes }, || ()).await;
                }
            })
        })
        .collect();
    for client in clients {
        let _ = client.await;
    }
}
